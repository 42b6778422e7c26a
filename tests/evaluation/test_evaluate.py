from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import TEXTS as PLAIN_TEXTS
from tests.conftest import add_noise, make_checkpoint
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import ModelConfig, TextConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.generated.who_won import TEAMS, reports_by_split
from txcls.data.hashes import sketch
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.evaluate import accuracy_without_order, evaluate, shuffle_words, with_evaluation
from txcls.evaluation.evaluate_file import far_below, rows_of_file
from txcls.evaluation.predict_logits import in_classes_of, predict_logits
from txcls.inference.predictor import Predictor
from txcls.model import TextClassifier
from txcls.tap import trace
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import CLS

CLASSES = ("a", "b", "c")
TEXTS = [f"{'word ' * (n % 9)}say number {n} twice: {n * 7919}, unbelievably {'so ' * (n % 5)}" for n in range(60)]


def encoded(texts: list[str], *, class_token: bool = False, **config: object) -> tuple[Tokenizer, TokenisedTexts]:
    settings = TextConfig.model_validate({"min_frequency": 1, "max_vocabulary": 400, **config})
    tokenizer = Tokenizer.fit(TEXTS, settings, max_length=40, class_token=class_token)
    labels = np.random.default_rng(0).integers(0, 3, size=len(texts)).tolist()
    return tokenizer, TokenisedTexts.encode(tokenizer, LabelledTexts(texts, labels, CLASSES))


def classifier(tokenizer: Tokenizer, **changes: object) -> TextClassifier:
    torch.manual_seed(1)
    settings = {"d_model": 16, "n_heads": 2, "d_ff": 32, "max_length": 40, "positions": "learned", **changes}
    model = TextClassifier(ModelConfig.model_validate(settings), vocab_size=tokenizer.vocab_size, n_classes=3)
    add_noise(model, 1.0)
    return model.eval()


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "none"])
def test_zeroing_positions_equals_an_edit_in_a_trace(positions: str) -> None:
    tokenizer, texts = encoded(TEXTS)
    model = classifier(tokenizer, positions=positions)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    measured = accuracy_without_order(model, texts, tokenizer=tokenizer)
    assert measured.keys() == {"words_shuffled"} | ({"positions_mean"} if positions != "none" else set())
    if positions != "none":
        vectors = model.embeddings.positional.detach()
        read = torch.cat([vectors[:length] for length in texts.lengths.tolist()])  # one row per token, over all texts
        right = []
        for index in range(len(texts)):
            ids = torch.from_numpy(texts[index].astype(np.int64))[None]
            edit = {"embeddings.positions": lambda value: read.mean(dim=0).expand_as(value)}
            with trace(record=(), edit=edit), torch.inference_mode():
                right.append(int(model(ids).argmax()) == texts.labels[index])
        assert measured["positions_mean"] == pytest.approx(np.mean(right), abs=1e-6)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("class_token", [False, True])
@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_shuffling_keeps_every_word_and_moves_most(kind: str, class_token: bool) -> None:
    tokenizer, texts = encoded(TEXTS, tokenizer=kind, class_token=class_token)
    shuffled = shuffle_words(texts, tokenizer)
    n_moved = 0
    for index in range(len(texts)):
        before, after = texts[index].tolist(), shuffled[index].tolist()
        assert sorted(before) == sorted(after)
        assert not class_token or after[0] == CLS
        words = [tokenizer.decode(ids).split() for ids in (before, after)]
        assert sorted(words[0]) == sorted(words[1]), "subwords of a word stay together"
        n_moved += before != after
    assert n_moved > 0.9 * len(texts)
    repeated = shuffle_words(texts, tokenizer)
    np.testing.assert_array_equal(repeated.ids, shuffled.ids)


def test_texts_of_an_unseen_kind_are_measured_and_stored(tmp_path: Path) -> None:
    untrained = make_checkpoint(tmp_path / "tiny", classes=TEAMS, max_length=40)
    with pytest.raises(DataError, match="no new split"):
        evaluate(replace(untrained, classes=CLASSES), split="new")
    data = untrained.config.data.model_copy(update={"dataset": "who_won"})
    checkpoint = replace(untrained, config=untrained.config.model_copy(update={"data": data}))
    evaluation = evaluate(checkpoint, split="new", measure_without_order=False)
    assert evaluation.metrics.n == len(reports_by_split()["new"])
    save_checkpoint(with_evaluation(checkpoint, split="new", evaluation=evaluation))
    loaded = load_checkpoint(tmp_path / "tiny")
    assert loaded.metrics["new"]["accuracy"] == pytest.approx(evaluation.metrics.accuracy, abs=1e-6)
    assert f"| new | {evaluation.metrics.n:,} | " in (tmp_path / "tiny" / "README.md").read_text(encoding="utf-8")


def test_the_column_that_holds_the_classes_has_the_labels(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "tiny")
    first, second = checkpoint.classes[:2]
    file = tmp_path / "other.csv"
    rows = [("web", f"some words number {n}", (first, second.upper(), "unheard of")[n % 3]) for n in range(30)]
    file.write_text("chnl,what they wrote,queue\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    labelled, notes, remarks, *_ = rows_of_file(checkpoint, file)
    assert len(labelled) == 20 and set(labelled.labels) == {0, 1}
    assert labelled.texts[0] == "some words number 0"
    assert any("10 rows have labels" in remark for remark in remarks)
    assert "Labels: column 'queue', recognised by its values, which are classes." in notes
    file.write_text(file.read_text() + "web,no label here,\n")
    assert "Rows left out: 1 without a label (row 32)." in rows_of_file(checkpoint, file).remarks
    file.write_text("what they wrote\n" + "".join(f"some words number {n}\n" for n in range(30)))
    with pytest.raises(DataError, match=r"no column has labels, only texts .* but neither trained on nor evaluated"):
        rows_of_file(checkpoint, file)


@pytest.mark.parametrize("n_known", [3, 8])
def test_rows_that_were_trained_on_are_mentioned_unless_they_are_few(tmp_path: Path, n_known: int) -> None:
    texts = [f"some words number {n}" for n in range(100)]
    made = make_checkpoint(tmp_path / "tiny", classes=("no", "yes"))
    checkpoint = made.with_metrics(data={"sketch": sketch([*texts[:n_known], *map(str, range(30))]), "train_rows": 33})
    file = tmp_path / "new.csv"
    file.write_text("text,label\n" + "".join(f"{text},{('no', 'yes')[n % 2]}\n" for n, text in enumerate(texts)))
    notes = [note for note in rows_of_file(checkpoint, file).remarks if "was trained on" in note]
    assert len(notes) == (n_known == 8) and all("about 8\u00a0% of the different texts" in note for note in notes)


def test_a_file_far_below_the_held_out_rows_is_said_to_be_of_another_kind(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "tiny").with_metrics(test={"accuracy": 0.757, "n": 600})
    said = far_below(checkpoint, 1380, 3000)
    assert "75.7\u00a0%" in said
    assert far_below(checkpoint, 2120, 3000) == "", "5 points below"
    assert far_below(checkpoint, 6, 10) == "", "few rows: it may be chance"
    assert far_below(make_checkpoint(tmp_path / "other"), 1, 100) == "", "nothing was measured"


ROWS = LabelledTexts(["goal", "rain", "goal again"], [0, 1, 0], ("Sport", "Weather"))


def test_logits_of_many_texts_equal_those_of_single_texts_in_order(classifier: Predictor) -> None:
    rows = LabelledTexts([*PLAIN_TEXTS, "bank " * 20, "rain"], [0] * (len(PLAIN_TEXTS) + 2), classifier.classes)
    texts = TokenisedTexts.encode(classifier.tokenizer, rows)
    batched = predict_logits(classifier.checkpoint.model, texts, batch_size=2)
    single = [classifier.logits(torch.tensor([classifier.tokenizer.encode(text).ids])) for text in rows.texts]
    torch.testing.assert_close(batched, torch.cat(single), atol=1e-5, rtol=1e-5)


def test_labels_become_indices_into_the_checkpoints_classes(classifier: Predictor) -> None:
    checkpoint = replace(classifier.checkpoint, classes=("Weather", "Politics", "Sport"))
    rows = in_classes_of(ROWS, checkpoint)
    assert rows == LabelledTexts(ROWS.texts, [2, 0, 2], checkpoint.classes)
    assert in_classes_of(ROWS, replace(checkpoint, classes=ROWS.classes)) is ROWS
