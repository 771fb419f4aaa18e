"""Runs that are killed at a chosen moment, or stopped by a signal, and what they leave behind."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import signal
from pathlib import Path

import torch

SETTINGS = {
    "epochs": 5,
    "train_batch_size": 64,
    "eval_batch_size": 512,
    "embedding_size": 8,
    "learning_rate": 0.05,
    "N": 10,
    "valid_metric": "NDCG@10",
    "metric_decimal_place": 10,
    "show_progress": False,
    "state": "ERROR",
}
OF_SAMPLER = {
    "dns": {"M": 2},
    "adasir_p": {"pool_size": 6, "proposals": 12},
    "irgan": {"generator_size": 4},
    "aobpr": {"lam": 10},
    "warp": {"max_trials": 20},
}
WITHOUT_N = ("warp", "non_sampling")

MOMENTS = ("batch", "evaluation", "write", "before rename", "between renames", "after rename")


def settings_for(sampler: str, data_path: str, folder: Path, **more) -> dict:
    """A small run whose files go into a folder of its own."""
    settings = {**SETTINGS, **OF_SAMPLER.get(sampler, {}), **more, "data_path": data_path}
    if sampler in WITHOUT_N:
        settings.pop("N")
    return {
        **settings,
        "checkpoint_dir": str(folder / "saved"),
        "result_dir": str(folder / "results"),
    }


@contextlib.contextmanager
def at_moment(kind: str, count: int, act):
    """Call ``act`` when something happens for the ``count``-th time (1, 2, …) inside ``with``."""
    from recbole_hns import files
    from recbole_hns.training.trainer import HNSTrainerMixin

    seen = 0

    def tick(wanted: str) -> None:
        nonlocal seen
        if kind == wanted:
            seen += 1
            if seen == count:
                act()

    loss, score = HNSTrainerMixin.sampled_loss, HNSTrainerMixin._full_sort_batch_eval
    replace, save = os.replace, torch.save

    def sampled_loss(self, batch):
        tick("batch")
        return loss(self, batch)

    def full_sort(self, batched_data):
        tick("evaluation")
        return score(self, batched_data)

    def replaced(source, target):
        is_new = str(target).endswith(".pth")
        if is_new:
            tick("between renames")
        else:
            tick("before rename")
        replace(source, target)
        if is_new:
            tick("after rename")

    def half_saved(content, stream):
        whole = io.BytesIO()
        save(content, whole)
        half = len(whole.getvalue()) // 2
        stream.write(whole.getvalue()[:half])
        stream.flush()
        tick("write")
        stream.write(whole.getvalue()[half:])

    HNSTrainerMixin.sampled_loss, HNSTrainerMixin._full_sort_batch_eval = sampled_loss, full_sort
    files.os.replace, torch.save = replaced, half_saved
    try:
        yield
    finally:
        HNSTrainerMixin.sampled_loss, HNSTrainerMixin._full_sort_batch_eval = loss, score
        files.os.replace, torch.save = replace, save


def child(folder: str, model, sampler: str, settings: dict, resume, kind, count) -> None:
    """A run in a process of its own, which kills itself at a moment if one is named."""
    import psutil

    from recbole_hns import run_recbole_hns

    psutil.cpu_percent = lambda interval=None: 0.0  # RecBole watches the CPU for a second
    os.chdir(folder)
    torch.set_num_threads(1)
    with contextlib.ExitStack() as stack:
        if kind is not None:
            die = lambda: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
            stack.enter_context(at_moment(kind, count, die))
        if resume is None:
            run_recbole_hns(model, "tiny", sampler, config_dict=settings)
        else:
            run_recbole_hns(resume=resume)


def start(folder: Path, sampler: str, settings, resume=None, kind=None, count=0, model="MF"):
    """Start a run; a server that has imported everything forks it, before any thread is started."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["recbole_hns.runs.run", "recbole_hns.kernels.numba"])
    folder.mkdir(parents=True, exist_ok=True)
    process = context.Process(
        target=child, args=(str(folder), model, sampler, settings, resume, kind, count)
    )
    process.start()
    return process


def finish(process, code: int = 0) -> None:
    """Wait for a run and see how it ended."""
    process.join(120)
    assert process.exitcode == code, process.exitcode


def what_is_left(folder: Path) -> dict:
    """Everything that a run wrote and that must not depend on whether it was killed."""
    (last,) = folder.glob("saved/*.last.pth")
    (best,) = (file for file in folder.glob("saved/*.pth") if file != last)
    (result,) = folder.glob("results/*/result.json")
    record = json.loads(result.read_text())
    left = {
        "last": torch.load(last, weights_only=True),
        "best": torch.load(best, weights_only=True),
        "result": {key: record[key] for key in ("best", "test", "epochs", "sampler", "seed")},
    }
    for content in (left["last"], left["best"]):
        for key in ("settings", "final", "versions", "seconds"):
            content.pop(key, None)
    return _without_times(left)


def _without_times(value):
    if isinstance(value, dict):
        return {key: _without_times(v) for key, v in value.items() if not str(key).endswith("_seconds")}
    return [_without_times(item) for item in value] if isinstance(value, (list, tuple)) else value


def assert_same(a, b, where: str = "") -> None:
    """Equal to the last bit, tensors and all."""
    assert type(a) is type(b), where
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype, where
        assert torch.equal(*(tensor.to_dense() if tensor.is_sparse else tensor for tensor in (a, b))), (
            where
        )
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_same(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for number, (x, y) in enumerate(zip(a, b)):
            assert_same(x, y, f"{where}/{number}")
    else:
        assert a == b, where
