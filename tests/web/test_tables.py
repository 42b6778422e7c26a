"""The tables that a page reads texts with, against what Python and `tokenizers` do."""

import random
import re
from itertools import pairwise

import pytest
from tokenizers import pre_tokenizers

from txcls.web.tables import END, reading_tables


def members(ranges: str) -> set[int]:
    bounds, at = [], 0
    for number in ranges.split():
        at += int(number, 36)
        bounds.append(at)
    return {code for start, end in list(pairwise(bounds))[::2] for code in range(start, end)}


def test_classes_hold_what_pythons_do() -> None:
    classes = reading_tables(steps=[], tokenizers=[])["classes"]
    everything = [chr(code) for code in range(END)]
    for name, pattern in (("word", r"\w"), ("digit", r"\d"), ("space", r"\s")):
        assert members(classes[name]) == {ord(one) for one in everything if re.match(pattern, one)}


@pytest.mark.slow
def test_lower_case_covers_all_of_unicode() -> None:
    lower = reading_tables(steps=["lowercase"], tokenizers=[])["lower"]
    made = {ord(character): text for character, text in lower["longer"].items()}
    for first, step, count, shift in zip(*[iter(lower["runs"])] * 4, strict=True):
        made |= {first + n * step: chr(first + n * step + shift) for n in range(count)}
    assert made == {code: chr(code).lower() for code in range(END) if chr(code).lower() != chr(code)}
    cased, ignorable = members(lower["cased"]), members(lower["ignorable"])
    assert cased == {code for code in range(END) if f"{chr(code)}Σ".lower().endswith("ς")}
    assert cased | ignorable == {code for code in range(END) if f"a{chr(code)}Σ".lower().endswith("ς")}


def test_byte_level_classes_split_as_the_library_does() -> None:
    found = reading_tables(steps=[], tokenizers=["bpe"])["byte_level"]
    letters, numbers, spaces = (members(found[name]) for name in ("letter", "number", "space"))
    assert {ord(" "), ord("\n"), 0x85, 0x2028} <= spaces and 0x1C not in spaces
    split = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    rng = random.Random(0)
    for code in [*range(0x300), *(rng.randrange(END) for _ in range(20_000))]:
        if 0xD800 <= code < 0xE000:
            continue
        assert (code in letters) == (len(split(f"a{chr(code)}b")) == 1), hex(code)
        assert (code in numbers) == (len(split(f"1{chr(code)}2")) == 1), hex(code)


def test_only_what_is_needed_is_in_the_tables() -> None:
    few = reading_tables(steps=["whitespace"], tokenizers=["whitespace"])
    assert not {"entities", "lower", "treebank", "byte_level"} & few.keys() and "mark" not in few["classes"]
