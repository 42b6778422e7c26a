from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.conftest import TEXTS, make_language_model
from txcls.inference.generation import Sampling, TextModel, next_token_probabilities
from txcls.inspection.language_model import fill_blank, measure_surprisal, next_tokens, token_names
from txcls.text.vocabulary import MASK, UNK

PAIRS = {"tokenizer": "bpe", "max_vocabulary": 330}
TEXT = "the goalkeeper saved a late penalty after the report"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("language")
    make_language_model(root / "masked", objective="masked", max_length=16)
    make_language_model(root / "words", max_length=16)
    make_language_model(root / "pairs", max_length=40, text=PAIRS)
    return root


@pytest.fixture(scope="module")
def masked(folder: Path) -> TextModel:
    return TextModel.load(folder / "masked", objective="masked")


@pytest.fixture(scope="module", params=["words", "pairs"])
def causal(folder: Path, request: pytest.FixtureRequest) -> TextModel:
    return TextModel.load(folder / request.param)


def logits(model: TextModel, ids: list[int]) -> torch.Tensor:
    """Logits (T, V) of the plain forward pass."""
    with torch.no_grad():
        return model.model(torch.tensor([ids]))[0]


def test_fill_blank_gives_the_softmax_at_the_masked_token(masked: TextModel) -> None:
    ids = masked.encode(TEXT)
    for place in range(1, len(ids)):
        blanked = [*ids]
        blanked[place] = MASK
        expected = torch.softmax(logits(masked, blanked)[place].double(), -1)
        ranked = fill_blank(masked, ids, place, top=7)
        np.testing.assert_allclose(ranked.probabilities, expected.topk(7).values, rtol=1e-5)
        np.testing.assert_allclose(ranked.probabilities, expected[list(ranked.ids)], rtol=1e-5)
        assert sum(ranked.probabilities) + ranked.other == pytest.approx(1.0)
        assert ranked.n_others + len(ranked.ids) == len(masked.tokens)
        if ids[place] != UNK:
            assert ranked.true_id == ids[place]
            assert ranked.true_rank == 1 + int((expected > expected[ids[place]]).sum())
            assert ranked.true_probability == pytest.approx(float(expected[ids[place]]), rel=1e-5)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.5, top_k=9, top_p=0.8), Sampling(0.0)])
def test_next_tokens_are_the_softmax_at_the_last_token(causal: TextModel, sampling: Sampling) -> None:
    ids = causal.encode(TEXT)[:8]
    plain = logits(causal, ids)[-1]
    expected = torch.softmax(plain.double(), -1)
    drawn = next_token_probabilities(plain, sampling)
    predicted = next_tokens(causal, ids, sampling=sampling, top=12, truth=6)
    np.testing.assert_allclose(predicted.ranked.probabilities, expected.topk(12).values, rtol=1e-5)
    np.testing.assert_allclose(predicted.filtered, drawn[list(predicted.ranked.ids)], rtol=1e-4)
    assert predicted.n_candidates == int((drawn > 0).sum())
    assert predicted.candidate_share == pytest.approx(float(expected[drawn > 0].sum()), rel=1e-5)
    assert predicted.ranked.true_rank == 1 + int((expected > expected[6]).sum())


def test_surprisal_equals_a_forward_pass_per_prefix(causal: TextModel) -> None:
    ids = causal.encode(TEXT)
    scored = measure_surprisal(causal, ids)
    assert np.isnan(scored.bits[0])
    for place in range(1, len(ids)):
        probability = torch.softmax(logits(causal, ids[:place])[-1].double(), -1)[ids[place]]
        assert scored.bits[place] == pytest.approx(-float(torch.log2(probability)), rel=1e-4)
    loss = F.cross_entropy(logits(causal, ids)[:-1], torch.tensor(ids[1:]))
    assert scored.perplexity == pytest.approx(float(loss.exp()), rel=1e-4)


def test_surprisal_of_long_texts_is_computed_in_parts_with_equal_results(folder: Path) -> None:
    make_language_model(folder / "long", max_length=200)
    model = TextModel.load(folder / "long")
    ids = model.encode(" ".join(TEXTS) * 8)
    assert len(ids) == 200
    expected = F.cross_entropy(logits(model, ids)[:-1].double(), torch.tensor(ids[1:]), reduction="none") / np.log(2)
    np.testing.assert_allclose(measure_surprisal(model, ids).bits[1:], expected, rtol=1e-4)


def test_subwords_are_written_with_their_spaces(folder: Path) -> None:
    model = TextModel.load(folder / "pairs")
    ids = model.encode("the goalkeeper's 🦊 saved it")
    whole = model.decode(ids)
    for cut in range(2, len(ids)):
        before = model.decode(ids[:cut])
        if "\N{REPLACEMENT CHARACTER}" not in before:  # not in the middle of a character's bytes
            assert before + model.appended_text(ids[:cut], ids[cut:]) == whole
    assert "␣the" in token_names(model)
