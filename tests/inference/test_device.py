"""Device and precision: unusable devices are refused, and automatic precision depends on processor and model."""

import pytest
import torch

from txcls.config import ModelConfig
from txcls.errors import TrainingError
from txcls.inference.device import autocast_dtype, choose_device

CPU = torch.device("cpu")


@pytest.mark.parametrize("supported", [True, False])
def test_wide_models_use_bfloat16_where_the_processor_supports_it(
    supported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: supported)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    narrow, wide = ModelConfig(d_model=32, n_heads=4), ModelConfig(d_model=128, n_heads=4)
    assert autocast_dtype("auto", device=CPU, model=narrow) is None
    assert autocast_dtype("auto", device=CPU, model=wide) is (torch.bfloat16 if supported else None)
    for model in (narrow, wide):
        assert autocast_dtype("bfloat16", device=CPU, model=model) is torch.bfloat16
        assert autocast_dtype("float32", device=CPU, model=model) is None


def test_a_device_is_chosen_by_name_or_refused() -> None:
    assert choose_device("cpu") == CPU
    assert choose_device(None).type == ("cuda" if torch.cuda.is_available() else "cpu")
    for name in ("tpu9", "cuda:99"):
        with pytest.raises(TrainingError, match=f"device '{name}' cannot be used here .*; try --device cpu"):
            choose_device(name)
