"""Runs: load, split, build, check, train, test."""
