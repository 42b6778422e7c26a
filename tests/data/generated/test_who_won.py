import re
from collections import Counter
from itertools import islice

from txcls.data.generated.who_won import (
    HELD_OUT,
    MAINS,
    PLACES,
    RELATIVES,
    TEAMS,
    TIMES,
    reports,
    reports_by_split,
    roles_of_text,
    split_of,
    swap_teams,
)
from txcls.data.types import SplitName

SOME = list(islice(reports(3000, seed=5), 6000))
TEAM = f"({'|'.join(TEAMS)})"
CLAUSE = re.compile(rf", (?:who (?:were \w+ by|\w+ to|\w+) {TEAM}|whom {TEAM} \w+) (?:{'|'.join(TIMES)})(?:,|(?=\.))")
OPENING = re.compile(r"^(Yesterday|On Saturday|In the rain|After extra time), ")
WINNERS = (  # a pattern for each main clause without relative clauses, and which of the two teams won
    (rf"It was {TEAM} who (?:\w+ly )?\w+ to {TEAM}", 1),
    (rf"It was {TEAM} who (?:\w+ly )?\w+ {TEAM}", 0),
    (rf"It was {TEAM} that {TEAM} (?:\w+ly )?\w+", 1),
    (rf"Not {TEAM} but {TEAM} won the match", 1),
    (rf"Not {TEAM} but {TEAM} lost the match", 0),
    (rf"{TEAM} were (?:\w+ly )?\w+ by {TEAM}", 1),
    (rf"{TEAM} (?:\w+ly )?\w+ to {TEAM}", 1),
    (rf"{TEAM} (?:\w+ly )?\w+ {TEAM}", 0),
)


def winner_of(text: str) -> str:
    """The winner according to regular expressions that are independent of the generator."""
    main = OPENING.sub("", CLAUSE.sub("", text))
    main = main[0].upper() + main[1:]
    for pattern, winner in WINNERS:
        if match := re.match(pattern, main):
            return match.groups()[winner]
    raise AssertionError(text)


def test_the_label_is_the_winner_of_the_sentence() -> None:
    assert not [report.text for report in SOME if winner_of(report.text) != report.winner]


def test_reports_with_swapped_teams_have_the_same_words_and_different_labels() -> None:
    for first, second in zip(SOME[::2], SOME[1::2], strict=True):
        words, swapped_words = (Counter(re.findall(r"\w+|[.,]", report.text.lower())) for report in (first, second))
        assert words == swapped_words
        assert (first.winner, first.loser, first.form) == (second.loser, second.winner, second.form)
        assert split_of(first) == split_of(second)


def test_roles_cover_the_right_words() -> None:
    for report in SOME:
        words = {role: [report.text[start:end] for start, end in ranges] for role, ranges in report.roles.items()}
        assert words["winner"] == [report.winner] and words["loser"] == [report.loser]
        assert words["first team"] + words["second team"] in (
            [report.winner, report.loser],
            [report.loser, report.winner],
        )
        assert report.roles["first team"][0] < report.roles["second team"][0]
        assert len(words["verb"]) == 1
        assert len(words.get("other team", [])) == len(words.get("other verb", [])) == len(report.form.relatives)
        assert {word.lower() for word in words.get("marker", [])} <= {"were", "by", "to", "that", "not", "but"}


def test_training_has_every_construction_but_no_held_out_combination() -> None:
    def combinations(split: SplitName) -> set[tuple[str, str, str]]:
        return {
            (report.form.main, place, kind)
            for report in reports_by_split()[split]
            for place, kind, *_ in report.form.relatives
        }

    every = {(main, place, kind) for main in MAINS for place in PLACES for kind in RELATIVES}
    splits: tuple[SplitName, ...] = ("train", "validation", "test")
    for split in splits:
        assert combinations(split) == every - HELD_OUT
    assert combinations("new") >= HELD_OUT
    for report in reports_by_split()["new"]:
        assert any((report.form.main, place, kind) in HELD_OUT for place, kind, *_ in report.form.relatives)
    for n, parts in enumerate((MAINS, PLACES, RELATIVES)):
        assert {combination[n] for combination in HELD_OUT} == set(parts), "every part occurs in a new combination"


def test_no_text_is_in_two_splits() -> None:
    texts = [{report.text for report in reports_by_split()[split]} for split in ("train", "validation", "test", "new")]
    assert len(set().union(*texts)) == sum(map(len, texts))
    assert min(map(len, texts)) > 3000


def test_the_roles_of_a_text_are_those_of_the_grammar() -> None:
    for report, swapped in zip(SOME[:1000:2], SOME[1:1000:2], strict=True):
        expected = {role: list(ranges) for role, ranges in report.roles.items() if role not in ("winner", "loser")}
        assert {role: list(ranges) for role, ranges in roles_of_text(report.text).items()} == expected, report.text
        assert swap_teams(report.text) == swapped.text
    assert roles_of_text("Rovers won.") == {} and swap_teams("Rovers won.") is None
