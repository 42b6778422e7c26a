from pathlib import Path

import pytest
from filelock import FileLock

from txcls.config import RunConfig, load_preset
from txcls.errors import TrainingError, TxclsError
from txcls.training import pretrain, train
from txcls.training.run_folder import folder_to_resume, state_file


@pytest.fixture
def quick() -> RunConfig:
    return load_preset("sample").with_settings(["train.epochs=1", "model.n_layers=1"])


@pytest.mark.parametrize("run", [train, pretrain])
def test_a_second_training_into_one_folder_is_refused(tmp_path: Path, quick: RunConfig, run: object) -> None:
    state_file(tmp_path / "out").parent.mkdir()
    with (
        FileLock(state_file(tmp_path / "out").with_name("lock")),
        pytest.raises(TrainingError, match=r"another training run is writing .*; wait for it"),
    ):
        run(quick, out=tmp_path / "out")  # type: ignore[operator]


def test_a_saved_state_is_overwritten_only_with_overwrite(tmp_path: Path, quick: RunConfig) -> None:
    state = state_file(tmp_path / "out")
    state.parent.mkdir()
    state.write_bytes(b"hours of work")
    with pytest.raises(
        TrainingError, match="continue it with --resume, discard it with --overwrite, or choose another folder"
    ) as caught:
        train(quick, out=tmp_path / "out")
    assert str(state) in str(caught.value) and state.read_bytes() == b"hours of work"
    assert [entry.name for entry in state.parent.iterdir()] == ["state.pt"], "and the lock is gone"
    trained = train(quick, out=tmp_path / "out", overwrite=True, max_steps=1)
    assert trained.path.is_dir() and not state.parent.exists()


def test_the_only_interrupted_run_nearby_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = tmp_path / "checkpoints" / "mine.csv"
    monkeypatch.chdir(tmp_path)
    assert folder_to_resume(default) == default
    for out, expected in (("mine", Path("mine")), ("checkpoints/other", default), ("checkpoints/mine.csv", default)):
        state_file(Path(out)).parent.mkdir(parents=True)
        state_file(Path(out)).touch()
        assert folder_to_resume(default) == expected


def test_a_training_that_fails_leaves_no_lock(tmp_path: Path, quick: RunConfig) -> None:
    with pytest.raises(TxclsError):
        train(quick, out=tmp_path / "out", data_path=tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []
