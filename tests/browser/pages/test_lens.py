"""The page Class lens in a browser."""

import numpy as np
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.visiting import cells, visit, written
from txcls.inspection.lens import class_lens
from txcls.predictor import Predictor

TEXT = "the bank raised its rates after the report"


def test_lens_shows_the_librarys_numbers(page: Page, server: Server, answers: Predictor) -> None:
    visit(page, server, "lens", text=TEXT)
    lens = class_lens(answers, TEXT)
    shown = page.locator(".txcls-steps > *").all_text_contents()[3:]
    for place, (state, row) in enumerate(zip(lens.states, lens.probabilities, strict=True)):
        best = answers.classes[int(row.argmax())]
        assert shown[3 * place : 3 * place + 3] == [state, best, f"{row.max():.1%}".replace("%", " %")]
    winner, second = np.argsort(-lens.logits)[:2]
    between = lens.contributions[:, :, winner] - lens.contributions[:, :, second]
    added = [*between.sum(axis=1), lens.bias[winner] - lens.bias[second]]
    np.testing.assert_allclose(written(page, "chart_contributions"), added, atol=0.00501)
    np.testing.assert_allclose(cells(page, "chart_lengths"), lens.lengths, rtol=1e-5)
    np.testing.assert_allclose(cells(page, "chart_contribution_map"), between, atol=1e-5)
    for length in lens.lengths.mean(axis=1):
        expect(page.get_by_text("The Euclidean norm")).to_contain_text(f"{length:.1f}")
