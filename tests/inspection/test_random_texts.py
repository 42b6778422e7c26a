"""Random texts of a data set."""

from txcls.inspection.random_texts import random_texts


def test_texts_are_drawn_without_repeats_and_the_same_each_time() -> None:
    texts = [f"text {n}" for n in range(50)]
    drawn = random_texts(texts, n=20)
    assert len(set(drawn)) == 20 and drawn == random_texts(texts, n=30)[:20] != random_texts(texts, n=20, seed=1)
    assert sorted(random_texts(texts, n=99)) == sorted(texts)
