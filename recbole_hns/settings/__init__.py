"""What settings may be, and how they are read."""
