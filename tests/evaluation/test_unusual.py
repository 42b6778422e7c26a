import json
from collections import Counter
from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import TEXTS, make_checkpoint, with_token_counts
from txcls.checkpoint.folders import TOKEN_COUNTS
from txcls.checkpoint.load import load_checkpoint
from txcls.checkpoint.probabilities import CountSurprisal
from txcls.data.batches import TokenisedTexts
from txcls.data.generated.who_won import reports_by_split
from txcls.errors import CheckpointError
from txcls.evaluation.fit_calibration import fit_token_counts
from txcls.inference.predictor import Predictor
from txcls.text.tokenizer import Tokenizer

SHIPPED = Path(__file__).parents[2] / "checkpoints"
USUAL = (
    "Who will win the World Cup final on Sunday?",
    "Oil prices rose again on Monday",
    "The goverment wants to lower taxes",
    "Wall Street rises on strong earnings",
)
OTHER_LANGUAGES = (
    "Der neue Trainer hat einen Vertrag über zwei Jahre unterschrieben.",
    "Les enfants jouent dans le jardin depuis ce matin.",
    "Дети с утра играют в саду.",
    "今日はとても天気がいい",
)


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_surprisal_is_that_of_the_counted_tokens_per_character(tmp_path: Path, kind: str) -> None:
    tokenizer = make_checkpoint(tmp_path / "tiny", text={"tokenizer": kind, "max_vocabulary": 300}).tokenizer
    text = "the bank é fell"
    counts = Counter(token.id for text in TEXTS for token in tokenizer.encode(text).tokens)
    surprisal = CountSurprisal([counts[n] for n in range(tokenizer.vocab_size)], tokenizer)
    tokens, known = tokenizer.encode(text).tokens, {n: count for n, count in counts.items() if n > 3}
    bits = sum(log2((sum(known.values()) + tokenizer.vocab_size) / (known.get(token.id, 0) + 1)) for token in tokens)
    characters = len(" " + text) if kind == "bpe" else len("thebankfell") + 1  # é is one unknown word
    assert surprisal.per_character([token.id for token in tokens]) == pytest.approx(bits / characters)


def test_counted_texts_are_usual_and_other_scripts_are_not(tmp_path: Path) -> None:
    classifier = Predictor(with_token_counts(make_checkpoint(tmp_path / "tiny")))
    predictions = classifier.predict([*TEXTS[:4], "שלום עולם", ""])
    assert [prediction.is_unusual for prediction in predictions] == [False] * 4 + [True, False]
    assert "unusual" in repr(classifier.predict(["zqxj vvkw"])[0])


def test_at_most_two_percent_of_held_out_texts_are_unusual(tmp_path: Path) -> None:
    tokenizer = make_checkpoint(tmp_path / "tiny").tokenizer
    random = np.random.default_rng(1)
    rows = [random.integers(4, tokenizer.vocab_size, size=n).astype(np.int32) for n in random.integers(1, 60, size=400)]
    held_out = TokenisedTexts.of(rows, np.zeros(400, dtype=np.int64))
    counts = fit_token_counts(held_out, held_out, tokenizer)
    surprisal = CountSurprisal(counts.counts, tokenizer)
    assert sum(counts.counts) == len(held_out.ids)
    assert 0 < np.mean([surprisal.per_character(row) > counts.bound for row in rows]) <= 0.02


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"counts": [1, 2]}, "2 numbers for"),
        ({"counts": "1"}, "counts"),
        ({"counts": [-1]}, "counts.0"),
        ({"bound": float("nan")}, "not readable"),
        ({"bound": "3"}, "bound"),
    ],
)
def test_a_damaged_file_is_refused_by_name_and_field(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with_token_counts(make_checkpoint(tmp_path / "tiny"))
    file = tmp_path / "tiny" / TOKEN_COUNTS
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    with pytest.raises(CheckpointError, match=f"(?s){TOKEN_COUNTS}.*{message}"):
        load_checkpoint(tmp_path / "tiny")


def test_match_reports_that_the_grammar_cannot_write_are_unusual(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "tiny")
    data = checkpoint.config.data.model_copy(update={"dataset": "who_won"})
    classifier = Predictor(replace(checkpoint, config=checkpoint.config.model_copy(update={"data": data})))
    for split in ("train", "validation", "test", "new"):
        for text in sorted({report.text for report in reports_by_split()[split]})[::10]:
            assert not classifier.is_unusual(text, ()), text
    assert not classifier.is_unusual(" rovers easily beat city", ())
    for text in (
        "Rovers were not beaten by City.",
        "Apple unveils new phone",
        "Rovers beat Rovers.",
        "Rovers beat City. And Albion beat United.",
        "Rovers beat City, who beat Rovers last week.",
    ):
        assert classifier.is_unusual(text, ()), text


@pytest.mark.parametrize("name", ["ag_news", "huffpost", "imdb", "clinc150", "agreement"])
def test_shipped_classifiers_find_other_languages_unusual(name: str) -> None:
    checkpoint = load_checkpoint(SHIPPED / name)
    assert all(prediction.is_unusual for prediction in Predictor(checkpoint).predict(OTHER_LANGUAGES))
    if name in ("ag_news", "huffpost"):
        assert not any(prediction.is_unusual for prediction in Predictor(checkpoint).predict(USUAL))


def test_tokenizers_of_words_count_unknown_words_as_rare(tmp_path: Path) -> None:
    tokenizer: Tokenizer = make_checkpoint(tmp_path / "tiny").tokenizer
    often_unknown = CountSurprisal([0, 1000, 0, 0, *[5] * (tokenizer.vocab_size - 4)], tokenizer)
    assert often_unknown.per_character([1]) > often_unknown.per_character([5])
