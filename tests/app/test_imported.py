"""Every page shows an imported model, and says what is not known of it."""

from itertools import product
from pathlib import Path

import pytest
import torch

from tests.app.drawn import body_text, charts_of, open_page
from tests.bert import write_bert
from txcls.app.menu import PAGES
from txcls.app.shell import cache, checkpoints, prediction
from txcls.app.shell.cache import Cache
from txcls.app.shell.limits import Limits
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.hugging_face import load_bert
from txcls.data.datasets import sentences
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import measure_means
from txcls.inspection.steps import walk_through
from txcls.model import TextClassifier
from txcls.web import export

TEXT = "The cat sat on the mat, playing!"
CALIBRATED = ("calibrated on validation", "fitted on validation", "test texts", "measure tiny heads")
"""What is not true of an imported model."""


@pytest.fixture(scope="module", params=["bert", "distilbert"])
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("imported")
    write_bert(root / "published", request.param)
    checkpoint = load_bert(root / "published")
    rows = [checkpoint.tokenizer.encode(text).ids for text in sentences()[:9]]
    assert isinstance(checkpoint.model, TextClassifier)
    with torch.no_grad():  # so that texts get different answers
        checkpoint.model.head.bias -= torch.cat([checkpoint.model(torch.tensor([row])) for row in rows]).mean(dim=0)
    means = measure_means(Predictor(checkpoint), sentences(), split="shipped")
    save_checkpoint(checkpoint.with_metrics(means=means.to_dict()), root / "checkpoints" / "tiny")
    return root / "checkpoints"


@pytest.fixture(autouse=True)
def _only_imported(imported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(imported))


@pytest.mark.parametrize("page", [page.name for page in PAGES if page.name != "language"])
def test_a_page_shows_it_and_claims_nothing_that_was_not_measured(page: str) -> None:
    app = open_page(page, checkpoint="tiny", text=TEXT, changed="The dog sat on the mat, playing!")
    assert not app.exception and not app.error
    words = body_text(app) + " ".join(str(element.proto.help) for element in app.subheader)
    assert not [claim for claim in CALIBRATED if claim in words]
    if page not in ("film", "report", "tokens", "steps"):
        assert charts_of(app) or page == "explanation"
        assert "Imported, not measured or calibrated here" in words


def test_tokens_are_pieces_with_their_marks() -> None:
    words = body_text(open_page("tokens", checkpoint="tiny", text="Played [SEP] zyzzyva"))
    assert all(f">{piece}<" in words for piece in ("play", "##ed", "[SEP]", "[CLS]"))
    assert "played [sep] zyzzyva" in words and "as typed" not in words


def test_the_steps_show_the_norm_of_the_embeddings_and_the_pooler() -> None:
    steps = walk_through(Predictor.load("tiny"), TEXT).steps
    assert {"norm_embeddings", "pooler"} <= {step.name for step in steps}
    assert "without a calibration" in steps[-2].description


def test_what_each_head_is_worth_is_measured_on_demand_on_the_shipped_sentences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_page("heads", checkpoint="tiny", text=TEXT)
    assert "was imported without labelled texts" in body_text(app)
    monkeypatch.setattr(export, "MAX_IMPORTED", 1000)
    monkeypatch.setattr(prediction, "MAX_SECONDS", 0.0)
    app.session_state["worths"] = True
    app.run()
    app.button(key="compute_what each head is worth").click().run()
    assert "The 6 heads worth most" in body_text(app) and "64 sentences" in body_text(app)


def two_answers(classifier: Predictor) -> tuple[str, str]:
    """Two texts of as many tokens with different answers."""
    words = ("a", "bank", "comet", "dog", "end", "land", "match", "mat", "on", "rover", "they", "won")
    first: dict[str | None, str] = {}
    for text in map(" ".join, product(words, repeat=3)):
        first.setdefault(classifier.predict([text])[0].label, text)
        if len(first) > 1:
            break
    one, other = first.values()
    return one, other


def test_a_large_model_has_no_picture_and_waits_to_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MAX_IMPORTED", 1000)
    monkeypatch.setattr(prediction, "MAX_SECONDS", 0.0)
    app = open_page("classify", checkpoint="tiny", text=TEXT)
    assert "it would send 0 MB of weights to each browser" in body_text(app) and charts_of(app)
    one, other = two_answers(Predictor.load("tiny"))
    for page, key, params in (
        ("heads", "compute_the effect of each part on this text", {}),
        ("explanation", "compute_the other methods", {}),
        ("whatif", "compute_the grid of all parts and tokens", {"experiment": "patch", "changed": other}),
    ):
        app = open_page(page, checkpoint="tiny", text=one, **params)
        assert "about" in app.button(key=key).label
        n = len(body_text(app))
        app.button(key=key).click().run()
        assert not app.exception and not [button for button in app.button if button.key == key]
        assert len(body_text(app)) > n


def test_a_model_larger_than_the_cache_stays_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Cache(1_000_000, seconds=60)
    monkeypatch.setattr(cache, "shared_cache", lambda: small)
    monkeypatch.setattr(checkpoints, "limits", lambda: Limits(cache_megabytes=1))
    monkeypatch.setattr(Predictor, "n_parameters", 10**9)
    source = checkpoints.source("tiny")
    first = checkpoints.classifier(source)
    assert checkpoints.is_loaded(source) and checkpoints.classifier(source) is first
    assert small.size == 600_000
