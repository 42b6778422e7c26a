from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import txcls
from tests.conftest import CLASSES, TEXTS, make_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.data.labelled import rows_from_python
from txcls.errors import CheckpointError, DataError
from txcls.evaluation.evaluate import evaluate_rows
from txcls.inspection.ablation import Ablation, ablate

TEXT = TEXTS[1]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> txcls.Classifier:
    """A classifier with random weights; tests must not change it."""
    return txcls.load(make_checkpoint(tmp_path_factory.mktemp("door") / "tiny").path)


def test_the_package_shows_its_public_names_and_nothing_else() -> None:
    assert set(dir(txcls)) == {*txcls.__all__, "__version__"}
    assert {"load", "train", "dataset", "Classifier", "Prediction", "inspection", "figures"} <= set(txcls.__all__)
    for name in txcls.__all__:
        assert getattr(txcls, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'Score'"):
        txcls.Score  # noqa: B018


def test_one_text_gives_one_prediction_and_many_a_list(tiny: txcls.Classifier) -> None:
    prediction = tiny(TEXT, top_k=2)
    assert isinstance(prediction, txcls.Prediction) and len(prediction.ranked) == 2
    assert (prediction.label, prediction.probability) == (prediction.ranked[0].label, prediction.ranked[0].probability)
    assert tiny([TEXT], top_k=2) == [prediction] and tiny([]) == []
    for texts in (tuple(TEXTS), np.array(TEXTS), pd.Series(TEXTS), iter(TEXTS)):
        assert [answer.text for answer in tiny(texts)] == list(TEXTS)
    nothing = tiny("   ")
    assert (nothing.label, nothing.probability) == (None, None)


@pytest.mark.parametrize("call", ["__call__", "predict", "probabilities"])
def test_all_calls_refuse_the_same_texts(tiny: txcls.Classifier, call: str) -> None:
    ask = getattr(tiny, call)
    for wrong in (pd.DataFrame({"text": ["a"]}), [None], [TEXT, 3], pd.Series([TEXT, float("nan")]), 3):
        with pytest.raises(TypeError, match=r"^texts: "):
            ask(wrong)
    if call != "__call__":
        with pytest.raises(TypeError, match="expected one value for each row"):
            ask(TEXT)


@pytest.mark.parametrize(
    "named, changes",
    [
        ({"heads": (0, 1)}, [Ablation("head", "zero", 0, 1)]),
        ({"heads": [(0, 1), (1, 0)]}, [Ablation("head", "zero", 0, 1), Ablation("head", "zero", 1, 0)]),
        ({"heads": np.array([[0, 1]])}, [Ablation("head", "zero", 0, 1)]),
        ({"heads": "all", "how": "uniform"}, [Ablation("head", "uniform", n // 2, n % 2) for n in range(4)]),
        ({"feed_forward": "all"}, [Ablation("feed_forward", "zero", 0), Ablation("feed_forward", "zero", 1)]),
        ({"positions": True, "heads": (1, 1)}, [Ablation("head", "zero", 1, 1), Ablation("positions")]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_named_parts_are_changed_together(
    tiny: txcls.Classifier, named: dict[str, object], changes: list[Ablation]
) -> None:
    result, expected = tiny.ablate(TEXT, **named), ablate(tiny, TEXT, [changes])  # type: ignore[arg-type]
    np.testing.assert_allclose(result.changed, expected.changed)
    assert result.changed.shape == (1, 4) and result.effect[0] != 0
    assert f"({100 * result.effect[0]:+.1f} points)" in repr(result)


def test_rows_given_are_measured_as_those_of_a_data_set(tiny: txcls.Classifier) -> None:
    labels = [CLASSES[n % 4] for n in range(len(TEXTS))]
    result = tiny.evaluate(pd.Series(TEXTS), labels, without_order=True)
    expected = evaluate_rows(tiny.checkpoint, rows_from_python(TEXTS, labels, classes=CLASSES))
    assert result == expected and result.metrics.order and result.metrics.n == len(TEXTS)
    right = [tiny(text).label == label for text, label in zip(TEXTS, labels, strict=True)]
    assert result.metrics.accuracy == pytest.approx(np.mean(right)) and f"{100 * np.mean(right):.2f}\u00a0%" in repr(
        result
    )
    assert not tiny.evaluate(TEXTS, labels).metrics.order
    with pytest.raises(DataError, match=r"labels: row 0 is 'Weather'; the classes are 'World'"):
        tiny.evaluate(TEXTS[:1], ["Weather"])
    with pytest.raises(ValueError, match="got 2 texts and 1 labels"):
        tiny.evaluate(TEXTS[:2], ["World"])


def test_a_saved_classifier_is_the_same_under_its_new_name(tiny: txcls.Classifier, tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "new" / "copy")
    loaded = txcls.load(folder)
    assert loaded.name == "copy" and "copy" in (folder / "README.md").read_text("utf-8")
    np.testing.assert_array_equal(loaded.probabilities(TEXTS), tiny.probabilities(TEXTS))
    with pytest.raises(CheckpointError, match=r"exists; choose another folder, or replace it with overwrite=True"):
        tiny.save(folder)
    tiny.save(str(folder), overwrite=True)
    assert load_checkpoint(folder).name == "copy"


def test_saving_replaces_only_checkpoints(tiny: txcls.Classifier, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.txt").write_text("meow")
    (tmp_path / "file").write_text("text")
    for name, why in (
        ("photos", "holds other files, which would be deleted"),
        ("file", "a file with that name exists"),
        ("n" * 300, "File name too long"),
    ):
        with pytest.raises(CheckpointError, match=why):
            tiny.save(tmp_path / name, overwrite=True)
    (tmp_path / "empty").mkdir()
    tiny.save(tmp_path / "empty", overwrite=True)
    assert load_checkpoint(tmp_path / "empty").name == "empty"
    assert (tmp_path / "photos" / "cat.txt").read_text() == "meow"
