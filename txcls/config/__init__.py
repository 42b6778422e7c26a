"""All settings of a run (`settings.py`), and the presets in presets/."""

from txcls.config.settings import (
    MAX_SNAPSHOTS,
    Calibration,
    CleaningStep,
    DataConfig,
    ModelConfig,
    Precision,
    RunConfig,
    ScopeRule,
    ScopeScore,
    TextConfig,
    TrainConfig,
    load_preset,
    preset_names,
)

__all__ = [
    "MAX_SNAPSHOTS", "Calibration", "CleaningStep", "DataConfig", "ModelConfig", "Precision", "RunConfig", "ScopeRule",
    "ScopeScore", "TextConfig", "TrainConfig", "load_preset", "preset_names",
]  # fmt: skip
