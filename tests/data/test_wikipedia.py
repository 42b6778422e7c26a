import bz2
import gzip
import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from txcls.config import DataConfig
from txcls.data.unlabelled_texts import open_texts
from txcls.data.wikipedia import Article, articles
from txcls.errors import DataError

BODY = (
    "A comet is an icy body that warms and begins to release gases when it passes close to the Sun, which makes a tail."
)


def article(title: str, body: str = BODY, *, number: int = 1) -> str:
    start = f'<doc id="{number}" url="http://en.wikipedia.org/wiki?curid={number}" title="{title}">'
    return f"{start}\n{title}\n\n{body}\n\n</doc>\n"


def extraction_of(n: int, *, body: str = BODY) -> str:
    return "".join(article(f"Comet {number}", body, number=number) for number in range(n))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_are_read_under_any_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "wiki_00").write_bytes(pack((article("Comet") + article("Étoile")).encode()))
    assert [article.title for article in articles(tmp_path / "wiki_00")] == ["Comet", "Étoile"]


def test_texts_have_title_headings_and_paragraphs_and_short_articles_are_left_out(tmp_path: Path) -> None:
    text = article("Comet", f"{BODY}\nHistory.\n\nSeen <doc by eye.") + article("List of comets", "See also.\nOthers.")
    (tmp_path / "wiki").write_text(text, encoding="utf-8")
    assert list(articles(tmp_path)) == [Article("Comet", f"Comet\n{BODY}\nHistory.\nSeen <doc by eye.")]


@pytest.mark.parametrize(
    "raw, problem",
    [
        (b"Just text.\n", r"wiki, line 1: 'Just text\.' is outside any article; expected a line <doc"),
        (b'{"id": "12", "text": "Anarchism"}\n', "line 1: .* as WikiExtractor writes without --json"),
        ((article("A") + "between\n" + article("B")).encode(), "wiki, line 7: 'between' is outside any article"),
        (article("A").replace("</doc>\n", "").encode() + article("B").encode(), "line 6: .* from line 1 ends with"),
        (article("A").encode() + article("B").encode()[:-8], "wiki, line 7: .* has no </doc>"),
        (article("A").encode().replace(b"icy", b"\xff"), "wiki: byte 0xff is not utf-8"),
        (lzma.compress(article("A").encode())[:-20], "wiki: cannot read it"),
    ],
)
def test_malformed_extractions_are_refused_with_file_and_line(tmp_path: Path, raw: bytes, problem: str) -> None:
    (tmp_path / "wiki").write_bytes(raw)
    with pytest.raises(DataError, match=problem):
        list(articles(tmp_path))


def test_an_articles_part_depends_only_on_its_title() -> None:
    splits = Counter(Article(f"Title {n}", "").split for n in range(20_000))
    assert 120 < splits["test"] < 280 and 120 < splits["validation"] < 280
    assert all(Article(f"Title {n}", "").split == Article(f"TITLE  {n}", "other").split for n in range(500))


@pytest.fixture
def extraction(tmp_path: Path) -> Path:
    (tmp_path / "wikipedia").mkdir()
    (tmp_path / "wikipedia" / "wiki_00").write_text(extraction_of(1000), encoding="utf-8")
    return tmp_path / "wikipedia"


def test_pre_training_never_reads_test_articles(extraction: Path) -> None:
    texts = open_texts(DataConfig(dataset="wikipedia"), path=extraction)
    splits = {
        split: [read.text for read in articles(extraction) if read.split == split]
        for split in ("training", "validation", "test")
    }
    assert splits["test"] and (texts.training, texts.validation) == (splits["training"], splits["validation"])


def test_a_mixture_leaves_out_validation_articles_and_test_texts_of_other_sources(
    extraction: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_DATA", str(extraction.parent))
    (extraction.parent / "ag_news").mkdir()
    copied = next(article for article in articles(extraction) if article.split == "training")
    rows = "".join(f'"{n % 4 + 1}","Headline {n}","Something happened."\n' for n in range(600))
    rows += f'"1","Twice","here  and THERE"\n"1","{copied.title}","unread"\n'
    (extraction.parent / "ag_news" / "train.csv").write_text(rows, encoding="utf-8")
    test = f'"1","{copied.title}","{BODY}"\n"2","twice","here and there"\n'
    (extraction.parent / "ag_news" / "test.csv").write_text(test, encoding="utf-8")
    texts = open_texts(DataConfig(dataset="mixture", sources=("ag_news", "wikipedia")))
    everything = {*texts.training, *texts.validation}
    held_out = {article.text for article in articles(extraction) if article.split == "validation"}
    assert held_out <= {*texts.validation} and not held_out & {*texts.training}
    assert not any(article.text in everything for article in articles(extraction) if article.split == "test")
    assert copied.text not in everything and "Twice here  and THERE" not in everything
    assert f"{copied.title} unread" in everything, "only equal texts are left out"
    assert texts.rows == {"ag_news": 602}
