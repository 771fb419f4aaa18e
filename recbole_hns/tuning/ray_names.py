"""Names that Ray moved between 2.6, which RecBole asks for, and today."""

try:
    from ray.tune import (
        Checkpoint,
        CheckpointConfig,
        FailureConfig,
        RunConfig,
        get_checkpoint,
        report,
    )
except ImportError:
    from ray.air import Checkpoint, CheckpointConfig, FailureConfig, RunConfig, session

    report, get_checkpoint = session.report, session.get_checkpoint

__all__ = ["Checkpoint", "CheckpointConfig", "FailureConfig", "RunConfig", "get_checkpoint", "report"]
