"""A search on Ray Tune: select on validation, test the winner once."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recbole_hns.errors import Error
from recbole_hns.files import make_folder, write_json
from recbole_hns.locks import alone
from recbole_hns.report import make_report
from recbole_hns.runs import pipeline
from recbole_hns.runs.config import HNSConfig
from recbole_hns.runs.pipeline import Parts
from recbole_hns.settings.registry import imported, registered_here
from recbole_hns.tuning.cluster import check_fits, connected
from recbole_hns.tuning.plan import FILE, ModelClass, SearchPlan, changeable
from recbole_hns.tuning.study import NUMBER, Reports, Study, folder_of, name_of
from recbole_hns.tuning.trials import Row, at_an_end, best_trial, rows_of, starts, write_best, write_rows
from recbole_hns.tuning.winner import summarise, test_winner

if TYPE_CHECKING:
    from ray import tune
    from ray.tune.schedulers import TrialScheduler

    from recbole_hns.tuning.live import LiveTable

METRIC, TIME = "score", "epoch"  # what trials report


@dataclass(frozen=True)
class Machines:
    """Where trials run, and what each of them is given."""

    cpus: float = 1
    gpus: float = 0
    ray_address: str | None = None  # this machine where it is None
    max_failures: int = 1  # restarts of a trial that fails

    def check(self) -> None:
        """Refuse trials that nothing could run."""
        if self.cpus < 0 or self.gpus < 0 or self.cpus + self.gpus == 0:
            raise Error(f"cpus={self.cpus:g}, gpus={self.gpus:g}: a trial needs some of either.")


HERE = Machines()


def run_search(
    plan: SearchPlan,
    folder: Path,
    machines: Machines = HERE,
    progress: bool = True,
    model: ModelClass | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """Run a search, or go on with one; returns the winner with its repeated test, if there are seeds.

    What a search goes on from are its own files: trials that are done are not repeated, others go on from
    their last epoch.
    """
    machines.check()
    config, folder = plan.config(model=model), folder.absolute()
    if folder.parent.is_dir():
        with alone(folder):  # before anything is loaded or started
            pass
    parts = search_parts(config, trust)
    study = Study(
        plan=plan,
        model=model,
        threads=max(1, int(machines.cpus)),
        folder=str(folder),
        start=str(Path.cwd()),
        modules=imported(),
        parts=list(registered_here()),
    )
    with connected(machines.ray_address), ExitStack() as held:
        check_fits(machines.cpus, machines.gpus)
        held.enter_context(own_folder(plan, folder))
        from recbole_hns.tuning.live import LiveTable  # and with it Ray

        table = LiveTable(plan, config, len(plan.points()), progress)
        errors = _run_trials(study, parts, config, machines, table)
        rows, winner = _choose(study, config, errors)
        best = {key: winner[key] for key in plan.space}
        kinds: dict[str, dict[str, Any]] = {"runs": {}}
        if plan.refit:
            kinds["refit"] = {"refit": True, "epochs": (winner["best_epoch"] or 0) + 1}
        tests = test_winner(study, best, kinds, machines.cpus, machines.gpus, progress)
    summary = {
        "valid_metric": config["valid_metric"],
        "best": best,
        "best_score": winner["best_score"],
        "at_an_end": at_an_end(best, plan.domains),
        "changes": winner["changes"],
        "trials": len(rows),
        "failed": sum(row["status"] == "failed" for row in rows),
        "test": summarise(tests["runs"]),
        "seeds": [test["seed"] for test in tests["runs"]],
        "startup_seconds": round(table.startup_seconds, 3),
        "search_seconds": round(table.seconds, 3),
    }
    if plan.refit:
        summary["refit"] = {"epochs": kinds["refit"]["epochs"], "test": summarise(tests["refit"])}
    write_json(summary, folder / "summary.json")
    _report(config, folder, kinds)
    return summary


@contextmanager
def own_folder(plan: SearchPlan, folder: Path) -> Iterator[None]:
    """The folder of a search with its plan, which no other process works on within ``with``."""
    make_folder(folder.parent)
    with alone(folder):
        if (folder / FILE).is_file() and not SearchPlan.read(folder).is_as(plan):
            raise Error(f"{folder} holds another search: give another --name.")
        make_folder(folder)
        plan.write(folder)
        yield


def _choose(study: Study, config: HNSConfig, errors: dict[str, str]) -> tuple[list[Row], Row]:
    """All trials and the winner, written to trials.csv and best.yaml."""
    plan, folder, bigger = study.plan, Path(study.folder), bool(config["valid_metric_bigger"])
    rows = rows_of(plan, folder, bigger, errors)
    write_rows(rows, list(plan.space), folder / "trials.csv")
    winner = best_trial(rows, bigger)
    write_best(plan, {key: winner[key] for key in plan.space}, folder / "best.yaml", study.model)
    return rows, winner


def _report(config: HNSConfig, folder: Path, kinds: Iterable[str]) -> None:
    title = f"{config['model']} on {config['dataset']} with {config.sampler}: a search"
    made = [folder / name for name in ("trials", *kinds) if (folder / name).is_dir()]
    make_report(made, folder / "report", title=title)


def search_parts(config: HNSConfig, trust: bool = False) -> Parts:
    """The data of a search: a run's, without its test set."""
    parts = pipeline.split(config, pipeline.load(config, trust)).without_test()
    if len(parts.valid) == 0:
        raise Error("the validation set is empty, and a search selects on it: see eval_args.")
    return parts


def _run_trials(
    study: Study, parts: Parts, config: HNSConfig, machines: Machines, table: LiveTable
) -> dict[str, str]:
    """Run what is not done; returns what went wrong, by the trial's name."""
    from recbole_hns.tuning.live import reason_of
    from recbole_hns.tuning.trial import clear

    own = Path(study.folder) / "ray"  # Ray's account of the search: pickles, which nobody reads
    shutil.rmtree(own, ignore_errors=True)
    with table, _our_interrupt():
        found = _tuner(study, parts, config, machines, table).fit()
    shutil.rmtree(own, ignore_errors=True)
    done = [
        found[n].error is not None or (found[n].metrics or {}).get("done") for n in range(len(found))
    ]
    if not all(done):  # Ray takes Ctrl-C for itself and returns
        raise KeyboardInterrupt(
            f"{sum(map(bool, done))} of {len(done)} trials are finished and kept; go on with "
            f"recbole-hns tune --resume={study.folder}"
        )
    errors = {}
    for number, name in enumerate(starts(study.plan)):  # the order that they were made in
        clear(folder_of(study.folder, name))
        if found[number].error is not None:
            errors[name] = reason_of(str(found[number].error))
    return errors


@contextmanager
def _our_interrupt() -> Iterator[None]:
    """Ray takes Ctrl-C for itself and keeps it; runs that follow in this process want it back."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and before is not None:  # None: set by something else than Python
            signal.signal(signal.SIGINT, before)


def _tuner(
    study: Study, parts: Parts, config: HNSConfig, machines: Machines, table: LiveTable
) -> tune.Tuner:
    from ray import tune

    from recbole_hns.tuning.ray_names import CheckpointConfig, FailureConfig, RunConfig
    from recbole_hns.tuning.trial import run_trial

    os.environ["RAY_CHDIR_TO_TRIAL_DIR"] = "0"  # a trial has a folder of its own
    begins = []
    for number, (name, settings) in enumerate(starts(study.plan).items()):
        lines = Reports.read(folder_of(study.folder, name)).lines  # of a search that goes on
        begins.append({NUMBER: number, **(lines[-1]["settings"] if lines else settings)})
    return tune.Tuner(
        tune.with_resources(
            tune.with_parameters(run_trial, study=study, parts=parts),
            {"cpu": machines.cpus, "gpu": machines.gpus},
        ),
        param_space={"trial": tune.grid_search(begins)},
        tune_config=tune.TuneConfig(
            metric=METRIC,
            mode="max" if config["valid_metric_bigger"] else "min",
            scheduler=_scheduler(study.plan, config),
            trial_name_creator=lambda trial: name_of(trial.config["trial"][NUMBER]),
            reuse_actors=True,
        ),
        run_config=RunConfig(
            name="ray",
            storage_path=study.folder,
            failure_config=FailureConfig(max_failures=machines.max_failures),
            # pbt: a trial may still want a checkpoint of another when that has a newer one.
            checkpoint_config=CheckpointConfig(num_to_keep=3),
            callbacks=[table],
            verbose=0,
        ),
    )


def _scheduler(plan: SearchPlan, config: HNSConfig) -> TrialScheduler:
    from ray.tune import schedulers

    domain = plan.domains.get("epochs")
    epochs = max(domain.examples) if domain else config["epochs"]
    grace = max(1, min(5, epochs))
    if plan.scheduler == "asha":
        return schedulers.ASHAScheduler(time_attr=TIME, max_t=epochs, grace_period=grace)
    if plan.scheduler == "median":
        return schedulers.MedianStoppingRule(time_attr=TIME, grace_period=grace, min_samples_required=3)
    if plan.scheduler == "pbt":
        return _population(plan, config, epochs)
    first_come: type[TrialScheduler] = schedulers.FIFOScheduler
    return first_come()


def _population(plan: SearchPlan, config: HNSConfig, epochs: int) -> TrialScheduler:
    from ray.tune import schedulers

    domains = changeable(plan, config)

    def within(settings: dict[str, Any]) -> dict[str, Any]:
        """Ray multiplies by 0.8 or 1.2, which may leave a range."""
        own = settings["trial"]
        return {**settings, "trial": {**own, **{key: d.clip(own[key]) for key, d in domains.items()}}}

    return schedulers.PopulationBasedTraining(
        time_attr=TIME,
        perturbation_interval=max(1, epochs // 10),
        hyperparam_mutations={"trial": {key: d.for_mutation() for key, d in domains.items()}},
        custom_explore_fn=within,
        require_attrs=False,
    )
