import re
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, each_bad_text, figures_of, go_to, numbers, open_page
from tests.app.reports import save_reports_model
from tests.app.tiny import PAIRS, PLAIN
from txcls.app.pages.whatif import MAX_FLIPS
from txcls.app.shell import cached_results, checkpoints
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.inference.predictor import Predictor
from txcls.inspection.patching import PatchGrid, patch_grid, patch_route
from txcls.inspection.vocabulary import token_cosines

TEXT, CHANGED = "the bank raised its rates again", "the club raised its new rates"
BOX = "text_box_changed"


def change(app: AppTest, text: str) -> AppTest:
    return app.text_area(key=BOX).set_value(text).run()


def test_a_changed_text_is_compared_shared_and_kept() -> None:
    app = change(open_page("whatif", text=TEXT), CHANGED)
    assert app.query_params["changed"] == CHANGED
    comparison = cached_results.compare_texts(checkpoints.source(PLAIN), TEXT, CHANGED)
    bars, effects = (figure["data"] for figure in figures_of(app)[:2])
    assert [bar["name"] for bar in bars] == ["as typed", "changed"]  # type: ignore[index, union-attr]
    order = [score.label for score in comparison.before.ranked]
    for bar, prediction in zip(bars, (comparison.before, comparison.after), strict=True):
        probabilities = {score.label: score.probability for score in prediction.ranked}
        np.testing.assert_allclose(numbers(bar["x"]), [probabilities[label] for label in order], atol=1e-6)
    for bar, expected in zip(effects, (comparison.effects_before, comparison.effects_after), strict=True):
        heights = numbers(bar["y"]).astype(float)
        np.testing.assert_allclose(heights[~np.isnan(heights)], 100 * expected, atol=1e-4)
    names = list(effects[0]["x"])
    assert any("bank" in name and "club" in name for name in names) and any("∅" in name for name in names)
    assert f"{comparison.after.ranked[0].label}" in body_text(app)
    go_to(app, "classify")
    go_to(app, "whatif")
    assert app.text_area(key=BOX).value == CHANGED and app.text_area[0].value == TEXT


@pytest.mark.parametrize("name", [PLAIN, PAIRS])
def test_the_search_lists_flips_and_offers_the_smallest(name: str) -> None:
    app = open_page("whatif", checkpoint=name, text=TEXT)
    app.button(key="flip_start").click().run()
    assert not app.exception
    *_, last = cached_results.flips(checkpoints.source(name), TEXT)
    if not last.flips:
        assert f"**None** of the {last.total}" in body_text(app)
        return
    assert f"smallest of **{len(last.flips)}** changes that flip it, of {last.total:,} tried" in body_text(app)
    for flip in last.flips[:MAX_FLIPS]:
        assert f"| {flip.size:.2f} |" in body_text(app) and flip.label in body_text(app)
    app.button(key="flip_use").click().run()
    assert app.text_area(key=BOX).value == last.flips[0].text == app.query_params["changed"]
    assert re.search(rf"The change .*turns .* into \*\*{last.flips[0].label}\*\*", body_text(app))
    assert body_text(app).count("**your change**") == 1


def test_the_visitors_change_of_one_word_is_listed_with_its_distance() -> None:
    changed = TEXT.replace("bank", "club")
    app = open_page("whatif", text=TEXT, changed=changed)
    app.button(key="flip_start").click().run()
    classifier = Predictor.load(PLAIN)
    first, second = (classifier.predict([text])[0] for text in (TEXT, changed))
    old, new = (prediction.tokens[1] for prediction in (first, second))
    size = 1 - token_cosines(classifier, [old.id])[0, new.id]
    stays = "stays " * (first.label == second.label)
    assert f"| bank → club · **your change** | {stays}{second.label} |" in body_text(app)
    assert f"| {size:.2f} |" in body_text(app)


def test_bad_changed_texts_raise_no_error() -> None:
    app = open_page("whatif", text=TEXT)
    for kind in each_bad_text(app, lambda app, text: app.text_area(key=BOX).set_value(text)):
        assert app.text_area[0].value == TEXT, kind


PAIR = {"text": "Rovers lost to City.", "changed": "Rovers easily beat City."}
PATCHED = {**PAIR, "experiment": "patch"}


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Predictor:
    """A model of match reports that gives different predictions for the two texts of PAIR."""
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    checkpoint = save_reports_model(tmp_path / "reports", measured=False)
    with torch.no_grad():  # move the bias to halfway between the two texts' logits
        texts = [torch.tensor([checkpoint.tokenizer.encode(text).ids]) for text in PAIR.values()]
        checkpoint.model.head.bias -= (checkpoint.model(texts[0])[0] + checkpoint.model(texts[1])[0]) / 2
    save_checkpoint(checkpoint)
    return Predictor.load("reports")


def test_two_texts_of_equal_length_have_maps_and_a_cell_is_patched(reports: Predictor) -> None:
    def maps(app: AppTest, grid: PatchGrid) -> None:
        """The maps are the states and the heads of the grid."""
        _, states, heads = (figure["data"] for figure in figures_of(app)[:3])
        is_head = np.array([part.head is not None for part in grid.parts])
        is_state = np.array([part.name.startswith(("embeddings", "residual")) for part in grid.parts])
        for drawn, rows in ((states, is_state), (heads, is_head)):
            np.testing.assert_allclose(numbers(drawn[0]["z"]), grid.values[rows], atol=1e-5)  # type: ignore[index]

    grid = patch_grid(reports, *PAIR.values())
    maps(open_page("whatif", **PATCHED), grid)
    linked = open_page("whatif", **PATCHED, patched="3.5")
    after = reports.calibrate(torch.from_numpy(grid.logits[2, 4])[None], n_tokens=9)[0].numpy()
    bars = figures_of(linked)[0]["data"]
    assert set(numbers(bars[1]["x"]).round(5)) <= set(after.round(5))  # type: ignore[index]
    assert grid.parts[2].name in body_text(linked).lower()


def test_the_steps_of_the_way_are_buttons(reports: Predictor) -> None:
    route = patch_route(reports, *PAIR.values())
    app = open_page("whatif", **PATCHED)
    assert f"Copying all attention patterns moves **{route.patterns:.0%}**" in body_text(app).replace(
        "\u00a0", ""
    ).replace("−", "-")
    app.button(key="stage_changed").click().run()
    assert app.query_params["stage"] == "changed"
    share = f"{route.states['changed'][1]:.0%}"
    assert f"**{share}** after layer 1" in body_text(app).replace("\u00a0", "").replace("−", "-")
    app.button(key="stage_changed").click().run()
    assert "stage" not in app.query_params
