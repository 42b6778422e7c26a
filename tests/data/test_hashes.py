import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from txcls.data.hashes import SKETCH_SIZE, KnownShare, hash_text, hashed_share, repeats, sketch


@given(st.text(), st.text(max_size=5))
def test_case_spaces_and_composition_do_not_change_hashes(text: str, salt: str) -> None:
    spaced = f" {text}\n".replace(" ", " \t ")
    for other in (text.lower(), spaced, unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text)):
        assert hashed_share(other, salt=salt) == hashed_share(text, salt=salt)
        assert hash_text(other) == hash_text(text)


def test_hashed_shares_are_uniform_and_independent_for_two_salts() -> None:
    texts = [f"text {n}" for n in range(20_000)]
    first, second = (np.array([hashed_share(text, salt=salt) for text in texts]) for salt in ("0", "1"))
    assert first.min() >= 0 and first.max() < 1
    assert np.histogram(first, bins=10, range=(0, 1))[0].min() > 1_850
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(((first < 0.1) & (second < 0.1)).mean() - 0.01) < 0.003


def test_hashed_shares_are_the_same_in_all_versions() -> None:
    assert round(hashed_share("Stocks  rise", salt="validation 0"), 6) == 0.427749


def test_the_share_of_known_texts_is_estimated_from_a_sketch() -> None:
    known = [f"text {n}" for n in range(5000)]
    mixed = [*(text.upper() for text in known[:600]), *(f"other {n}" for n in range(400))]
    assert len(sketch(known)) == SKETCH_SIZE and abs(KnownShare(sketch(known), mixed).share - 0.6) < 0.15
    for start in range(0, 1000, 50):
        part = [*known[start : start + 50], *(f"other {start + n}" for n in range(50))]
        assert abs(KnownShare(sketch(known), part).share - 0.5) < 0.25, "a file of 100 rows"
    assert KnownShare(sketch(known), known).share == 1.0 and KnownShare(sketch(known), ["other"] * 50).share == 0.0
    assert (
        KnownShare(sketch([*known, "see above"]), ["see above"] * 600 + [f"new {n}" for n in range(400)]).share < 0.05
    )
    assert KnownShare(sketch(known[:10]), [*known[:3], "other"]).share == 0.75 and KnownShare([], known).share == 0.0
    assert str(KnownShare(sketch(known), known[:50])) == "about 100\u00a0% of the different texts of these rows", (
        "a sketch of a part"
    )
    assert repeats(["A  b", "c"], ["a b"]).tolist() == [True, False]
