"""Signals are wishes to stop, which are granted where the run can be saved."""

import os
import signal

import pytest
import torch
from killable import assert_same, at_moment, settings_for, what_is_left

from recbole_hns import RunStopped, run_recbole_hns
from recbole_hns.training.stopping import StopRequest

HANGUP = getattr(signal, "SIGHUP", None)
pytestmark = pytest.mark.skipif(HANGUP is None, reason="a signal that Windows does not have")


@pytest.fixture(autouse=True)
def with_nobodys_handler():
    """Ray takes SIGTERM when it is imported, which another test may have done."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_run_whose_terminal_is_closed_is_saved_and_goes_on(tmp_path, tiny):
    whole, stopped = (
        settings_for("dns", tiny["data_path"], tmp_path / name) for name in ("whole", "stopped")
    )
    run_recbole_hns("MF", "tiny", "dns", config_dict=whole)
    with at_moment("batch", 13, lambda: signal.raise_signal(HANGUP)), pytest.raises(RunStopped) as stop:
        run_recbole_hns("MF", "tiny", "dns", config_dict=stopped)
    assert stop.value.signum == HANGUP
    state = torch.load(stop.value.checkpoint, weights_only=True)
    assert (state["epoch"], state["batch"]) == (2, 3)
    run_recbole_hns(resume=stop.value.checkpoint)
    assert_same(what_is_left(tmp_path / "whole"), what_is_left(tmp_path / "stopped"))


def test_a_terminal_that_is_gone_does_not_keep_a_run_from_noting_the_signal(monkeypatch):
    def gone(handle, text):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "write", gone)
    with StopRequest() as stop:
        signal.raise_signal(HANGUP)
        assert stop.signum == HANGUP
    assert signal.getsignal(HANGUP) == signal.SIG_DFL


def test_nohup_is_respected():
    before = signal.signal(HANGUP, signal.SIG_IGN)
    try:
        with StopRequest() as stop:
            signal.raise_signal(HANGUP)
            assert stop.signum is None
        assert signal.getsignal(HANGUP) == signal.SIG_IGN
    finally:
        signal.signal(HANGUP, before)
