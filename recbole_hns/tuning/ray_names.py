"""Names that Ray moved between 2.6, which RecBole asks for, and today."""

try:
    from ray.tune import (
        Checkpoint,
        CheckpointConfig,
        FailureConfig,
        RunConfig,
        get_checkpoint,
        get_context,
        report,
    )

    def trial_name() -> str:
        """The name of the trial that this process runs."""
        return str(get_context().get_trial_name())

except ImportError:
    from ray.air import Checkpoint, CheckpointConfig, FailureConfig, RunConfig, session

    report, get_checkpoint, trial_name = session.report, session.get_checkpoint, session.get_trial_name

__all__ = [
    "Checkpoint",
    "CheckpointConfig",
    "FailureConfig",
    "RunConfig",
    "get_checkpoint",
    "report",
    "trial_name",
]
