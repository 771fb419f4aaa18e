"""Names that Ray moved between 2.6, which RecBole asks for, and today."""

try:
    from ray.tune import CheckpointConfig, FailureConfig, RunConfig
except ImportError:
    from ray.air import CheckpointConfig, FailureConfig, RunConfig

__all__ = ["CheckpointConfig", "FailureConfig", "RunConfig"]
