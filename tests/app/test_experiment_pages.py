"""Switchboard, Explanation, Class lens and what Attention shows beside its maps: every number is the library's."""

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.test_pages import charts_of, html_of, open_page, words_of
from tests.app.tiny import LEARNED, MANY, PAIRS, PLAIN
from tests.conftest import TEXTS, make_checkpoint
from txcls.checkpoint import load_checkpoint, save_checkpoint
from txcls.classifier import Classifier
from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.data.types import LabelledTexts
from txcls.figures import FEED_FORWARD
from txcls.inspection.ablation import Change, ablate, ablate_each, ablate_on_rows, measure_means, with_heads
from txcls.inspection.attention import attention_rollout, head_statistics, query_key
from txcls.inspection.attribution import (
    METHODS,
    average_explanations,
    deletion_curves,
    evaluate_explanation,
    explain,
    with_explanations,
)
from txcls.inspection.lens import class_lens
from txcls.inspection.tracing import trace_text

TEXT = "banks signed a deal after the election"
ODD = {"one token": "bank", "unknown only": "zyzzyva qwertz", "long": "the bank raised its rates again " * 30}


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Classifier:
    """A checkpoint that keeps what `evaluate --heads --explanations` measures."""
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    classifier = Classifier(make_checkpoint(tmp_path / "mine", ngram_buckets=16, d_ngram=4))
    rows = LabelledTexts(TEXTS, [0, 1, 2, 3] * 2, classifier.classes)
    means = measure_means(classifier, TEXTS, split="validation")
    effects = {off: ablate_on_rows(classifier, rows, off=off, means=means) for off in ("zero", "mean")}
    kept = with_heads(classifier.checkpoint, means, effects)  # type: ignore[arg-type]
    figures = [evaluate_explanation(classifier, text) for text in TEXTS[:3]]
    save_checkpoint(with_explanations(kept, average_explanations(figures, split="test")))
    return Classifier.load("mine")


def plain() -> Classifier:
    return Classifier.load(PLAIN)


def after(app: AppTest) -> list[float]:
    """The bars of the changed model, lowest first."""
    bars = next(figure["data"][1]["x"] for figure in charts_of(app) if figure["data"][0]["type"] == "bar")
    values = np.frombuffer(base64.b64decode(bars["bdata"]), dtype=bars["dtype"])
    return sorted(values.tolist())


def board(app: AppTest, place: int = 0):  # type: ignore[no-untyped-def]
    return next(figure for figure in charts_of(app)[place:] if figure["data"][0]["type"] == "heatmap")["data"][0]


def test_board_and_bars_are_the_librarys() -> None:
    app = open_page("switchboard", text=TEXT)
    effects = ablate_each(plain(), TEXT)
    shown = [[float(cell.replace("−", "-")) for cell in row if cell] for row in board(app)["text"]]
    expected = 100 * np.column_stack([effects.heads, effects.feed_forward])
    np.testing.assert_allclose(shown, expected, atol=0.0501)
    app.multiselect(key=f"switch_parts_{PLAIN}").set_value([(1, 0), (0, FEED_FORWARD)]).run()
    assert not app.exception
    changed = ablate(plain(), TEXT, [[Change("head", "zero", 1, 0), Change("feed_forward", "zero", 0)]]).changed[0]
    assert after(app) == pytest.approx(sorted(changed), abs=1e-6)
    assert f"{changed.max():.1%}".replace("%", " %") in words_of(app)
    app.segmented_control(key="switch_heads").set_value("uniform").run()
    changed = ablate(plain(), TEXT, [[Change("head", "uniform", 1, 0), Change("feed_forward", "zero", 0)]]).changed[0]
    assert after(app) == pytest.approx(sorted(changed), abs=1e-6)
    app.button(key="switch_reset").click().run()
    assert "Nothing is changed yet" in words_of(app)


def test_switches_are_carried_to_another_text_but_silent_tokens_are_not() -> None:
    app = open_page("switchboard", text=TEXT)
    app.multiselect(key=f"switch_parts_{PLAIN}").set_value([(1, 0)]).run()
    [tokens] = [one for one in app.multiselect if one.key and one.key.startswith("switch_tokens")]
    tokens.set_value([1]).run()
    changes = [Change("head", "zero", 1, 0), Change("token", "zero", index=1)]
    assert after(app) == pytest.approx(sorted(ablate(plain(), TEXT, [changes]).changed[0]), abs=1e-6)
    app.text_area[0].set_value("the bank raised its rates").run()
    assert "With 1 part changed" in words_of(app)


def test_a_link_opens_with_its_switches_and_they_are_in_the_link() -> None:
    app = open_page("switchboard", text=TEXT, switched="2.1,1.ff,t2,9.1,bigrams", heads="uniform", off="mean")
    changes = [
        Change("head", "uniform", 1, 0), Change("feed_forward", "zero", 0), Change("token", "zero", index=1),
    ]  # fmt: skip
    assert after(app) == pytest.approx(sorted(ablate(plain(), TEXT, [changes]).changed[0]), abs=1e-6), "it has no more"
    assert app.segmented_control(key="switch_heads").value == "uniform"
    app.multiselect(key=f"switch_parts_{PLAIN}").set_value([(0, 1)]).run()
    assert app.query_params["switched"] == "1.2,t2"
    app.text_area[0].set_value("the bank raised its rates").run()
    assert app.query_params["switched"] == "1.2", "the second token is another now"
    app.button(key="switch_reset").click().run()
    assert "switched" not in app.query_params and "Nothing is changed yet" in words_of(app)


def test_mean_ablation_and_accuracy_come_with_a_measured_checkpoint(measured: Classifier) -> None:
    app = open_page("switchboard", text=TEXTS[0])
    from txcls.inspection.ablation import Means

    app.segmented_control(key="switch_off").set_value("mean").run()
    effects = ablate_each(measured, TEXTS[0], heads="mean", off="mean", means=Means.of(measured))
    shown = [[float(cell.replace("−", "-")) for cell in row if cell] for row in board(app)["text"]]
    np.testing.assert_allclose(shown, 100 * np.column_stack([effects.heads, effects.feed_forward]), atol=0.0501)
    kept = measured.checkpoint.metrics["heads"]
    accuracy = [[float(cell.replace("−", "-")) for cell in row if cell] for row in board(app, 2)["text"]]
    parts = np.column_stack([kept["mean"]["heads"], kept["mean"]["feed_forward"]])
    np.testing.assert_allclose(accuracy, 100 * (parts - kept["accuracy"]), atol=0.00501)
    assert "8 test texts" in words_of(app) and "8 validation texts" in words_of(app)
    app.pills(key="switch_extras_mine").set_value(["positions", "bigrams"]).run()
    assert not app.exception and "With 2 parts changed" in words_of(app)


def test_what_was_not_measured_is_said_with_the_command() -> None:
    assert "evaluate ag_news --heads --write" in words_of(open_page("switchboard", text=TEXT))
    app = open_page("explanation", text=TEXT)
    assert "evaluate ag_news --explanations 200 --write" in words_of(app)
    assert any(button.key == "run_averages" for button in app.button)


def test_without_the_data_nothing_is_offered_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    made = make_checkpoint(tmp_path / "mine")
    config = made.config.model_copy(update={"data": DataConfig(dataset="table")})
    save_checkpoint(replace(made, config=config))
    app = open_page("explanation", text=TEXT)
    assert "cannot be computed anew" in words_of(app)
    assert not any(button.key == "run_averages" for button in app.button)


@pytest.mark.parametrize("target", ["logit", "probability"])
def test_scores_curves_and_errors_are_the_librarys(target: str) -> None:
    app = open_page("explanation", text=TEXT)
    app.segmented_control(key="explain_target").set_value(target).run()
    found = explain(plain(), TEXT, target=target)  # type: ignore[arg-type]
    shown = html_of(app)
    for name in METHODS:
        assert METHODS[name] in shown
        for score in found.scores[name]:
            sign = "+" if name in ("gradient", "integrated", "leave_one_out") else ""
            assert f"<td>{score:{sign}.4f}</td>".replace("-", "−") in shown
    curves = deletion_curves(plain(), TEXT, found.scores)
    for area in (*curves.areas.values(), curves.random_area):
        assert f"<td>{area:.3f}</td>" in shown
    words = words_of(app)
    assert f"**{found.integrated.completeness_error:.4f}**" in words
    assert f"{found.integrated.value:.4f} here" in words and f"{found.integrated.baseline_value:.4f} there" in words
    assert "Jain & Wallace 2019" in words and "Wiegreffe & Pinter 2019" in words and "recurrent" in words


def test_kept_averages_are_shown(measured: Classifier) -> None:
    shown = html_of(open_page("explanation", text=TEXTS[0]))
    kept = measured.checkpoint.metrics["explanations"]
    for area in (*kept["areas"].values(), kept["random_area"]):
        assert f"<td>{area:.3f}</td>" in shown


def test_averages_are_computed_anew_where_the_data_are_here() -> None:
    app = open_page("explanation", checkpoint=MANY, text=TEXT)  # its data are the sample set, which ships
    config = load_checkpoint(MANY).config
    assert config.data.dataset == "sample"
    app.button(key="run_averages").click().run(timeout=120)
    assert not app.exception
    n = len(open_dataset(DataConfig(dataset="sample")).load("test"))
    assert f"{min(n, 200)} random test texts, computed just now" in words_of(app)


def test_added_tokens_hold_a_share_that_is_stated() -> None:
    shown = words_of(open_page("explanation", checkpoint=LEARNED, text=TEXT))
    explained = explain(Classifier.load(LEARNED), TEXT)
    assert f"last-layer attention {explained.elsewhere['attention']:.0%}" in shown
    assert "Tokens that the model adds" not in words_of(open_page("explanation", text=TEXT))


def test_lens_prints_the_librarys_numbers_and_says_that_it_is_approximate() -> None:
    app = open_page("lens", text=TEXT)
    lens = class_lens(plain(), TEXT)
    shown = html_of(app)
    for state, row in zip(lens.states, lens.probabilities, strict=True):
        best = plain().classes[int(row.argmax())]
        assert f"<div>{state}</div><b>{best}</b><div>{row.max():.1%}</div>".replace("%", " %") in shown
    words = words_of(app)
    assert "**Approximate**" in words
    for length in lens.lengths.mean(axis=1):
        assert f"**{length:.1f}**" in words
    bars = next(f for f in charts_of(app) if f["data"][0]["type"] == "bar")["data"][1]["text"]
    mean = [100 * float(one) for one in lens.shares @ lens.weights]
    assert [float(one.removesuffix(" %").replace("−", "-")) for one in bars] == pytest.approx(mean, abs=0.0501)


def test_attention_page_prints_the_librarys_numbers() -> None:
    app = open_page("attention", text=TEXT, layer="2", head="2")
    traced = trace_text(plain(), TEXT)
    pattern = traced.attention[1, 1]
    query, key = np.unravel_index(int(pattern.argmax()), pattern.shape)
    found = query_key(traced, layer=1, head=1, query=int(query), key=int(key))
    words = words_of(app)
    assert f"**{found.score:.3f}**" in words and f"**{found.weight:.3f}**" in words
    heads = head_statistics(traced.attention)
    maps = [figure["data"][0] for figure in charts_of(app) if figure["data"][0]["type"] == "heatmap"]
    boards = [one["text"] for one in maps if "text" in one]
    np.testing.assert_allclose(np.array(boards[0], dtype=float), heads.entropy, atol=0.00501)
    np.testing.assert_allclose(np.array(boards[1], dtype=float), heads.distance, atol=0.0501)
    assert attention_rollout(traced.attention).shape == pattern.shape


def test_two_checkpoints_maps_stand_side_by_side() -> None:
    app = open_page("attention", text=TEXT, layer="2", head="2", versus=PAIRS)
    assert any(heading.value == "The same text in ag\\_news and in pairs" for heading in app.subheader)
    assert "numbered by chance" in words_of(app)


@pytest.mark.parametrize("page", ["switchboard", "explanation", "lens", "attention"])
@pytest.mark.parametrize("kind", ODD)
def test_odd_texts_work_in_a_model_of_one_layer_and_one_head(
    page: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    make_checkpoint(tmp_path / "small", n_layers=1, n_heads=1, norm="post", pooling="first", max_length=100)
    app = open_page(page, text=ODD[kind])
    assert not app.exception and not app.error
    if kind == "long" and page in ("lens", "attention"):
        assert any("64 of this text's 100" in slider.label for slider in app.slider)
