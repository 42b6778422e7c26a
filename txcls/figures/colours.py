"""The colours of everything: one sequential scale, one diverging scale, the palette of classes, and a few marks.

Charts take them from here, scripts as picture/palette.js and style sheets as variables (`txcls/web/assemble.py`).
"""

import json

SEQUENTIAL = (
    "#440154", "#482878", "#3E4A89", "#31688E", "#26828E", "#1F9E89", "#35B779", "#6ECE58", "#B5DE2B", "#FDE725",
)  # fmt: skip
"""Viridis, for attention and shares: yellow is most."""

DIVERGING = ("#30353D", "#B4BAC2", "#F2F2F2", "#F5DC6A", "#D9A800")
DIVERGING_ON_DARK = ("#9AA7BA", "#515966", "#23262E", "#8F7412", "#FFD84A")
"""From grey, through nearly the page's colour at zero, to yellow, for signed values; no class is grey or yellow."""
LESS, MORE = DIVERGING[0], DIVERGING[-1]

CLASSES = ("#4854FC", "#EA7106", "#1BB28D", "#924599", "#CC9F5C", "#D0060C", "#18716C", "#80734C")
CLASSES_ON_DARK = ("#6B5DFF", "#FF851B", "#2BBA94", "#A758AC", "#E7B772", "#E42A1A", "#31837E", "#877A54")
"""The palette of classes, distinguishable for colour-blind readers too (tests/figures/test_style.py); also that of
lines in charts without classes."""
N_RANKED = 6
"""If there are more classes than colours, this many get one: the most probable."""

BAR, OTHER = "#1F83C4", "#8A8A8A"
"""For bars that do not stand for a class, and for what is less important: other classes, controls, chance."""
MARK = "#FF6A13"
"""For what is selected, changed or switched off."""
UNKNOWN, RIGHT, WRONG = "#D98E00", "#009E73", "#D55E00"

ON_DARK = {**dict(zip(CLASSES, CLASSES_ON_DARK, strict=True)), LESS: DIVERGING_ON_DARK[0], MORE: DIVERGING_ON_DARK[-1]}
"""The colours that are lighter on a dark page."""


def javascript() -> str:
    """The colours as a module for scripts."""
    values = {
        "CLASS_COLOURS": CLASSES, "CLASS_COLOURS_ON_DARK": CLASSES_ON_DARK, "N_RANKED_COLOURS": N_RANKED,
        "OTHER": OTHER, "MARK": MARK, "SEQUENTIAL": SEQUENTIAL,
        "DIVERGING": DIVERGING, "DIVERGING_ON_DARK": DIVERGING_ON_DARK,
    }  # fmt: skip
    return "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in values.items())


def css() -> str:
    """The colours as variables for style sheets."""
    values = {"bar": BAR, "other": OTHER, "mark": MARK, "unknown": UNKNOWN, "right": RIGHT, "wrong": WRONG}
    both = {name: f"light-dark({colour}, {ON_DARK[colour]})" for name, colour in {"less": LESS, "more": MORE}.items()}

    def written(of: dict[str, str]) -> str:
        return f":root {{{' '.join(f'--txcls-{name}: {value};' for name, value in of.items())}}}"

    before_2024 = written({**values, "less": LESS, "more": MORE})
    return f"{before_2024}\n@supports (color: light-dark(red, red)) {{{written(both)}}}\n"
