import numpy as np
import pytest

from tests.conftest import TEXTS, Untrained
from txcls.inference.predictor import Predictor
from txcls.inspection.counterfactuals import align_tokens, compare_texts, search_flips
from txcls.inspection.vocabulary import nearest_tokens


@pytest.mark.parametrize("seed", range(20))
def test_every_token_of_both_texts_is_in_exactly_one_pair_in_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    before, after = (["abcd"[n] for n in random.integers(4, size=random.integers(0, 12))] for _ in range(2))
    pairs = align_tokens(before, after)
    assert [p.before for p in pairs if p.before is not None] == list(range(len(before)))
    assert [p.after for p in pairs if p.after is not None] == list(range(len(after)))
    for pair in pairs:
        same = pair.before is not None and pair.after is not None and before[pair.before] == after[pair.after]
        assert (pair.change == "same") == same or pair.change == "changed"


@pytest.mark.parametrize("model", [{}, {"pooling": "class_token"}])
def test_leave_one_out_effects_equal_predictions_for_shorter_texts(
    untrained: Untrained, model: dict[str, object]
) -> None:
    classifier = untrained(**model)
    comparison = compare_texts(classifier, TEXTS[1], TEXTS[4])
    assert comparison.label == classifier.predict([TEXTS[1]])[0].label
    for text, effects, prediction in (
        (TEXTS[1], comparison.effects_before, comparison.before),
        (TEXTS[4], comparison.effects_after, comparison.after),
    ):
        whole = {ranked.label: ranked.probability for ranked in prediction.ranked}[comparison.label]
        parts = text.split()
        expected = []
        for place in range(len(parts)):
            [shorter] = classifier.predict([" ".join(parts[:place] + parts[place + 1 :])])
            expected.append(whole - {ranked.label: ranked.probability for ranked in shorter.ranked}[comparison.label])
        assert len(effects) == len(prediction.tokens)
        np.testing.assert_allclose(effects[~np.isnan(effects)], expected, atol=1e-5)


def test_the_search_finds_the_same_flips_as_a_loop_over_all_changes(classifier: Predictor) -> None:
    n_flips = 0
    for text in TEXTS:
        [original] = classifier.predict([text])
        tokens = original.tokens
        expected = set()
        for place, token in enumerate(tokens):
            near = [classifier.tokenizer.decode([index]) for index, _ in nearest_tokens(classifier, token.id, n=5)]
            for word in ("", *near):
                changed = text[: token.start] + word + text[token.end :]
                [prediction] = classifier.predict([changed])
                if prediction.label != original.label:
                    expected.add((place, word, prediction.label))
        *_, last = search_flips(classifier, text, n_neighbours=5, batch_size=7)
        assert {(flip.position, flip.replacement, flip.label) for flip in last.flips} == expected
        assert last.done == last.total == len(tokens) * 6
        n_flips += len(expected)
        sizes = [flip.size for flip in last.flips]
        assert sizes == sorted(sizes)
        for flip in last.flips:
            [again] = classifier.predict([flip.text])
            assert again.ranked[0].probability == pytest.approx(flip.probability, abs=1e-5)
            cosines = dict(nearest_tokens(classifier, tokens[flip.position].id, n=5))
            known = {classifier.tokenizer.decode([index]): 1 - cosine for index, cosine in cosines.items()}
            assert flip.size == pytest.approx(known.get(flip.replacement, 1.0), abs=1e-5)
    assert n_flips
