"""Draw pages with Streamlit's AppTest, without a browser, and read their content."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest

from txcls.app.menu import LESSONS, PAGES, PLAYGROUND

ENTRY = str(Path(__file__).parents[2] / "txcls/app/shell/main.py")

BAD_TEXTS = {
    "empty": "",
    "whitespace": " \t\n\u3000 ",
    "megabyte": "shares fell in the market after the election. " * 22_000,
    "one long word": "x" * 100_000,
    "only unknown words": "zyzzyva qwertz",
    "emoji": "🦊🎉👩‍👩‍👧‍👦🇪🇺",
    "right to left": "ارتفعت أسعار النفط שלום עולם",
    "cjk": "東京で新しい望遠鏡が公開された",
    "combining": "Z̸̡̛a̷l̶g̵o̴ e\u0301\u0301\u0301",
    "control characters": "shares\x00fell\x07in\x1b[31m the\x7f market\u202e",
    "script": "<script>alert('x')</script> <img src=x onerror=alert(1)> shares & <b>prices</b> fell",
    "markdown": "# **shares** [fell](http://example.com) $x^2$ :red[prices] `a`",
    "only markup": "<p></p><br>",
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt; &#0; &amp;amp;",
}


def path_of(name: str) -> str:
    """Path of the page with this name, in the form that `st.switch_page` expects."""
    return next(page.path for page in (*PAGES, LESSONS, PLAYGROUND) if page.name == name)


def open_page(name: str, **params: str) -> AppTest:
    """Open the page with this name (`txcls.app.pages`) by a link with these parameters."""
    app = AppTest.from_file(ENTRY, default_timeout=60)
    for field, value in params.items():
        app.query_params[field] = value
    if name != "classify":
        app.switch_page(path_of(name))
    app.run()
    assert not app.exception, app.exception
    return app


def go_to(app: AppTest, name: str) -> AppTest:
    """Switch to another page in the same session."""
    return app.switch_page(path_of(name)).run()


def html_of(app: AppTest) -> str:
    """All HTML drawn with `st.html`, except style sheets."""
    bodies = [element.proto.body for element in app.get("html")]
    return "\n".join(body for body in bodies if not body.startswith("<style>"))


def body_text(app: AppTest) -> str:
    """All text on the page except headings, labels and charts."""
    return "\n".join(
        [html_of(app), *(e.value for kind in (app.markdown, app.info, app.warning, app.caption) for e in kind)]
    )


def says(elements: Iterable[Any], text: str) -> bool:
    """Whether any of the elements, such as `app.info`, contains the text."""
    return any(text in element.value for element in elements)


@dataclass(frozen=True)
class Chart:
    """A chart: its key, its description for screen readers, and the figure as sent to the browser."""

    key: str
    alt: str
    figure: dict[str, Any]


def charts_of(app: AppTest) -> list[Chart]:
    """The charts, in drawing order."""
    protos = [element.proto for element in app.get("plotly_chart")]
    return [Chart(proto.id.split("-", 2)[2], proto.alt, json.loads(proto.spec)) for proto in protos]


def chart(app: AppTest, key: str) -> Chart:
    """The only chart whose key starts with `key`."""
    (only_drawing,) = (drawing for drawing in charts_of(app) if drawing.key.startswith(key))
    return only_drawing


def figures_of(app: AppTest) -> list[dict[str, Any]]:
    """The figures of all charts, in drawing order."""
    return [chart.figure for chart in charts_of(app)]


def numbers(sent: Any) -> NDArray[Any]:
    """An array from a figure; NumPy arrays are sent as base64."""
    if not isinstance(sent, dict):
        return np.array(sent)
    values = np.frombuffer(base64.b64decode(sent["bdata"]), dtype=sent["dtype"])
    shape = sent.get("shape")
    return values.reshape([int(n) for n in shape.split(",")]) if shape else values


def type_text(app: AppTest, text: str) -> None:
    """Enter a text into the page's text box."""
    app.text_area[0].set_value(text)


def each_bad_text(app: AppTest, enter: Callable[[AppTest, str], object] = type_text) -> Iterator[str]:
    """Enter each of `BAD_TEXTS` in turn, and yield its name once the page has handled it without an exception.

    Args:
        app: the page.
        enter: enters a text; the page is rerun afterwards.
    """
    for kind, text in BAD_TEXTS.items():
        enter(app, text)
        app.run()
        assert not app.exception, f"{kind}: {app.exception}"
        assert not app.error, f"{kind}: {app.error}"
        shown = html_of(app)
        assert "<script>" not in shown and "<img" not in shown, kind
        try:
            body_text(app).encode("utf-8")
        except UnicodeEncodeError as error:
            raise AssertionError(f"{kind}: {error}") from error
        yield kind
