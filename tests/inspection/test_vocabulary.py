"""Searching a vocabulary, by spelling and by cosine similarity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txcls.inference.predictor import Predictor
from txcls.inspection.vocabulary import nearest_tokens, search_vocabulary

WORDS = ("<pad>", "<unk>", "<mask>", "<cls>", "the", "then", "other", "bathe", "2004", "tehn")


def spelled(ids: tuple[int, ...]) -> list[str]:
    return [WORDS[index] for index in ids]


def test_search_by_exact_prefix_partial_and_similar_spelling() -> None:
    matches = search_vocabulary(WORDS, "the")
    assert matches.exact == 4 and matches.by_id is None
    assert spelled(matches.starting) == ["the", "then"] and matches.n_starting == 2
    assert spelled(matches.containing) == ["other", "bathe"] and matches.n_containing == 2
    assert "then" in spelled(matches.similar) and "the" not in spelled(matches.similar)
    misspelt = search_vocabulary(WORDS, "othre")
    assert misspelt.exact is None and spelled(misspelt.similar)[0] == "other"
    many = search_vocabulary([f"a{n}" for n in range(100)], "a", at_most=5)
    assert len(many.starting) == 5 and many.n_starting == 100


@given(st.text(st.characters(codec=None)))
def test_any_query_has_a_valid_result(query: str) -> None:
    matches = search_vocabulary(WORDS, query)
    assert query or not (matches.starting or matches.containing or matches.similar)
    assert len(matches.starting) <= matches.n_starting and len(matches.containing) <= matches.n_containing


def test_nearest_tokens_have_the_highest_cosine_similarity(classifier: Predictor) -> None:
    index = classifier.tokenizer.vocabulary.id_of("bank")
    vectors = classifier.checkpoint.model.embeddings.token.weight.detach().double().numpy()
    expected = [
        (other, float(vectors[index] @ vector / np.linalg.norm(vectors[index]) / np.linalg.norm(vector)))
        for other, vector in enumerate(vectors)
        if other > 3 and other != index
    ]
    expected.sort(key=lambda pair: -pair[1])
    nearest = nearest_tokens(classifier, index, n=5)
    assert [index for index, _ in nearest] == [index for index, _ in expected[:5]]
    assert [cosine for _, cosine in nearest] == pytest.approx([cosine for _, cosine in expected[:5]], abs=1e-5)
    with pytest.raises(IndexError):
        nearest_tokens(classifier, 10**6)
