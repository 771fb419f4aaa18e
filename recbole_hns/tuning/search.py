"""A search on Ray Tune: select on validation, test the winner once."""

from __future__ import annotations

import csv
import json
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from recbole.trainer import Trainer
from recbole.utils import get_trainer

from recbole_hns.bridge.config import HNSConfig
from recbole_hns.errors import Error
from recbole_hns.report import make_report
from recbole_hns.runs.result import write_json
from recbole_hns.tuning.cluster import check_fits, connected
from recbole_hns.tuning.data import prepare_search
from recbole_hns.tuning.space import Domain, check_space, read_space

SCHEDULERS = ("none", "asha", "median", "pbt")
PBT_KEYS = ("M", "rho", "learning_rate")
METRIC = "score"


@dataclass(frozen=True)
class SearchPlan:
    """Everything that decides what a search finds; kept in its folder, for ``--resume``."""

    model: str
    dataset: str
    settings: dict[str, Any]  # fixed for all trials, the sampler among them
    space: dict[str, Any]
    num_samples: int
    scheduler: str
    seeds: int
    refit: bool = False

    @classmethod
    def read(cls, folder: Path) -> SearchPlan:
        """The plan of a search that was begun."""
        file = folder / "search.json"
        try:
            return cls(**json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise Error(
                f"resume={folder} is not the folder of a search: it has no {file.name}."
            ) from error

    @property
    def domains(self) -> dict[str, Domain]:
        """The search space."""
        return {key: Domain(kind, tuple(values)) for key, (kind, values) in self.space.items()}

    def config(self, searched: dict[str, Any] | None = None) -> HNSConfig:
        """A configuration of the search; what is searched and not given has the first of its values."""
        first = {key: domain.values[0] for key, domain in self.domains.items()}
        return HNSConfig(self.model, self.dataset, None, {**self.settings, **first, **(searched or {})})


def make_plan(
    model: str,
    dataset: str,
    settings: dict[str, Any],
    search_file: Path,
    num_samples: int = 1,
    scheduler: str = "none",
    seeds: int = 5,
    refit: bool = False,
) -> SearchPlan:
    """A plan whose every setting has been tried on the configuration."""
    space = read_space(search_file)
    foreign = sorted(set(space) & set(settings))
    if foreign:
        raise Error(f"{foreign[0]} is both given and searched by {search_file}: leave one of them out.")
    for name, value, least in (("num_samples", num_samples, 1), ("seeds", seeds, 0)):
        if value < least:
            raise Error(f"{name}={value} is not allowed: at least {least} is needed.")
    if refit and not seeds:
        raise Error("seeds=0 tests nothing, so there is nothing to refit: leave out --refit.")
    plan = SearchPlan(
        model=str(model),
        dataset=str(dataset),
        settings=dict(settings),
        space={key: [domain.kind, list(domain.values)] for key, domain in space.items()},
        num_samples=num_samples,
        scheduler=scheduler,
        seeds=seeds,
        refit=refit,
    )
    config = plan.config()
    plan.settings.setdefault("sampler", config.spec.sampler)  # best.yaml is to name it
    if config["refit"]:
        raise Error("refit=True leaves a search nothing to validate on: give --refit, without a value.")
    if get_trainer(config["MODEL_TYPE"], config["model"]).fit is not Trainer.fit:
        raise Error(f"{config['model']} trains by a procedure of its own, which a search cannot follow.")
    check_space(space, plan.config)
    if scheduler == "pbt" and not set(space) & set(PBT_KEYS):
        raise Error(f"scheduler=pbt changes {', '.join(PBT_KEYS)} during training: search one of them.")
    return plan


def run_search(
    plan: SearchPlan,
    folder: Path,
    cpus: float = 1,
    gpus: float = 0,
    ray_address: str | None = None,
    max_failures: int = 0,
    resume: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Run a search, or go on with one; returns the winner with its repeated test, if there are seeds."""
    from recbole_hns.tuning.live import LiveTable
    from recbole_hns.tuning.trial import Study

    config = plan.config()
    folder = folder.absolute()
    study = Study(plan, threads=max(1, int(cpus)), results=str(folder / "trials"))
    data = prepare_search(config)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(asdict(plan), folder / "search.json")
    with connected(ray_address):
        check_fits(cpus, gpus)
        table = LiveTable(plan, config, progress)
        start = time.perf_counter()
        trials = _tune(plan, study, data, folder, cpus, gpus, max_failures, resume, table)
        seconds = time.perf_counter() - start
        write_trials(trials, list(plan.space), folder / "trials.csv")
        winner = best_trial(trials, config["valid_metric_bigger"])
        write_best(plan, winner, folder / "best.yaml")
        kinds = {"runs": {}}
        if plan.refit:
            kinds["refit"] = {"refit": True, "epochs": (winner["best_epoch"] or 0) + 1}
        tests = _test_winner(plan, winner, folder, kinds, cpus, gpus, progress)
    summary = {
        "valid_metric": config["valid_metric"],
        "best": {key: winner[key] for key in plan.space},
        "best_score": winner["best_score"],
        "trials": len(trials),
        "failed": sum(trial["status"] == "failed" for trial in trials),
        "test": summarise(tests["runs"]),
        "seeds": [test["seed"] for test in tests["runs"]],
        "startup_seconds": round(table.first_start - start, 3),  # Ray's workers load the libraries
        "search_seconds": round(start + seconds - table.first_start, 3),
    }
    if plan.refit:
        epochs = kinds["refit"]["epochs"]
        summary["refit"] = {"epochs": epochs, "test": summarise(tests["refit"])}
    write_json(summary, folder / "summary.json")
    title = f"{config['model']} on {config['dataset']} with {config.spec.sampler}: a search"
    made = [folder / name for name in ("trials", *kinds) if (folder / name).is_dir()]
    make_report(made, folder / "report", title=title)
    return summary


def _tune(plan, study, data, folder, cpus, gpus, max_failures, resume, table) -> list[dict[str, Any]]:
    from ray import tune

    from recbole_hns.tuning.ray_names import CheckpointConfig, FailureConfig, RunConfig
    from recbole_hns.tuning.trial import Trial

    trainable = tune.with_resources(
        tune.with_parameters(Trial, study=study, data=data), {"cpu": cpus, "gpu": gpus}
    )
    mode = "max" if plan.config()["valid_metric_bigger"] else "min"
    if resume and tune.Tuner.can_restore(str(folder / "ray")):
        tuner = tune.Tuner.restore(str(folder / "ray"), trainable, restart_errored=False)
        # Ray pickles callbacks with the search; the table is this process' own.
        _replace_callbacks(tuner, [table])
    else:
        tuner = tune.Tuner(
            trainable,
            param_space={key: domain.for_ray() for key, domain in plan.domains.items()},
            tune_config=tune.TuneConfig(
                metric=METRIC,
                mode=mode,
                num_samples=plan.num_samples,
                scheduler=_scheduler(plan),
                reuse_actors=plan.scheduler != "pbt",
                search_alg=_searcher(plan),
            ),
            run_config=RunConfig(
                name="ray",
                storage_path=str(folder),
                failure_config=FailureConfig(max_failures=max_failures),
                # pbt: a trial may still want a checkpoint of another when that has a newer one.
                checkpoint_config=CheckpointConfig(num_to_keep=3 if plan.scheduler == "pbt" else 1),
                callbacks=[table],
                verbose=0,
            ),
        )
    with table:
        grid = tuner.fit()
    unfinished = [r for r in grid if r.error is None and not (r.metrics or {}).get("done")]
    if unfinished:  # Ray takes Ctrl-C for itself, saves the search and returns
        raise KeyboardInterrupt(
            f"{len(grid) - len(unfinished)} of {len(grid)} trials are finished and kept; go on with "
            f"recbole-hns tune --resume={folder}"
        )
    rows = [_row(result, plan) for result in grid]
    return sorted(rows, key=lambda row: [_place(row[k], domain) for k, domain in plan.domains.items()])


def _place(value, domain: Domain):
    """Where a value stands in its list, or on its range: Ray has an order of its own after a restart."""
    return domain.values.index(value) if value in domain.values else value


def _replace_callbacks(tuner, callbacks) -> None:
    inner = getattr(tuner, "_local_tuner", None)
    if inner is not None:
        inner._run_config.callbacks = callbacks


def _searcher(plan: SearchPlan):
    """Grid and random search with a seed of the run's own."""
    from ray.tune.search import BasicVariantGenerator

    return BasicVariantGenerator(random_state=plan.config()["seed"])


def _scheduler(plan: SearchPlan):
    from ray.tune import schedulers

    domain = plan.domains.get("epochs")
    epochs = max(domain.examples) if domain else plan.config()["epochs"]
    if plan.scheduler == "asha":
        return schedulers.ASHAScheduler(max_t=epochs, grace_period=max(1, min(5, epochs)))
    if plan.scheduler == "median":
        return schedulers.MedianStoppingRule(grace_period=max(1, min(5, epochs)), min_samples_required=3)
    if plan.scheduler == "pbt":
        domains = {key: domain for key, domain in plan.domains.items() if key in PBT_KEYS}
        return schedulers.PopulationBasedTraining(
            perturbation_interval=max(1, epochs // 10),
            hyperparam_mutations={key: domain.for_mutation() for key, domain in domains.items()},
            require_attrs=False,
        )
    return schedulers.FIFOScheduler()


def _row(result, plan: SearchPlan) -> dict[str, Any]:
    """A trial as a row of the table."""
    metrics, config = result.metrics or {}, result.config or {}
    row = {key: config.get(key) for key in plan.space}
    row["status"] = "failed" if result.error is not None else "done"
    row["best_score"] = metrics.get("best_score")
    row["best_epoch"] = metrics.get("best_epoch")
    row.setdefault("epochs", metrics.get("epoch"))  # where they are searched, what was asked for
    row["seconds"] = metrics.get("time_total_s")
    valid = {k[5:]: v for k, v in metrics.items() if k.startswith("best_") and "@" in k}
    row.update({f"valid {name}": value for name, value in valid.items()})
    row["reason"] = "" if result.error is None else reason_of(result.error)
    return row


def reason_of(error: BaseException | str) -> str:
    """The last line of a trial's error, which says what went wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def best_trial(trials: list[dict[str, Any]], bigger: bool) -> dict[str, Any]:
    """The trial with the best validation score among those that did not fail."""
    scored = [t for t in trials if t["status"] != "failed" and t["best_score"] is not None]
    if not scored:
        reasons = sorted({trial["reason"] for trial in trials if trial["reason"]})
        raise Error(f"every trial failed: {'; '.join(reasons) or 'see the folder of the search'}.")
    return (max if bigger else min)(scored, key=lambda trial: trial["best_score"])


def write_trials(trials: list[dict[str, Any]], keys: list[str], file: Path) -> None:
    """All trials, one line each."""
    columns = list(dict.fromkeys([*keys, *(key for trial in trials for key in trial)]))
    with open(file, "w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, columns)
        writer.writeheader()
        writer.writerows(trials)


def write_best(plan: SearchPlan, winner: dict[str, Any], file: Path) -> None:
    """The winner as a property file for ``--config_files``."""
    settings = {**plan.settings, **{key: winner[key] for key in plan.space}}
    settings = {key: value for key, value in settings.items() if key not in ("model", "dataset")}
    text = f"# The best of a search on {plan.dataset} with {plan.model}, by validation.\n"
    file.write_text(
        text + yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), encoding="utf-8"
    )


def _test_winner(plan, winner, folder, kinds, cpus, gpus, progress) -> dict[str, list[dict[str, Any]]]:
    """Train the winner anew with several seeds, and look at the test set for the first time.

    ``kinds`` maps names to settings beside those of the search; the runs of a kind go to its folder.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
    from tqdm import tqdm

    from recbole_hns.tuning.winner import run_winner

    searched = {key: winner[key] for key in plan.space}
    first = plan.config()["seed"]
    # A run reads the data set itself, which is surely here.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=3, scheduling_strategy=here)(run_winner)
    start, threads = str(Path.cwd()), max(1, int(cpus))
    kind_of = {
        task.remote(plan, {**searched, **more}, first + n, str(folder / kind), start, threads): kind
        for kind, more in kinds.items()
        for n in range(plan.seeds)
    }
    tests: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    waiting = list(kind_of)
    with tqdm(total=len(waiting), desc="testing the winner", disable=not progress) as bar:
        while waiting:
            done, waiting = ray.wait(waiting)
            for one in done:
                tests[kind_of[one]].append(ray.get(one))
            bar.update(len(done))
    return {kind: sorted(found, key=lambda test: test["seed"]) for kind, found in tests.items()}


def summarise(tests: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation of every metric over the seeds."""
    names = tests[0]["test"] if tests else ()
    values = {name: [test["test"][name] for test in tests] for name in names}
    return {
        name: {
            "mean": statistics.fmean(column),
            "std": statistics.stdev(column) if len(column) > 1 else 0.0,
        }
        for name, column in values.items()
    }
