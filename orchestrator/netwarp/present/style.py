"""The look of each variant in all figures and tables: colour (Okabe and Ito 2008), marker and dash."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Look:
    """light, dark: colours for the two themes. marker: shape name. dash: Plotly's name. The words of `MARKERS`.

    number: of `look`; no two looks of a report have one.
    """

    number: int
    light: str
    dark: str
    marker: str
    dash: str


# Okabe-Ito without its yellow (too light on white) but with a grey; the dark column is the same hue, lighter.
_COLOURS = (
    ("#0072B2", "#56A8E0"),  # blue
    ("#D55E00", "#F28C45"),  # vermillion
    ("#009E73", "#3CC79D"),  # bluish green
    ("#CC79A7", "#E39BC3"),  # reddish purple
    ("#B07D00", "#E6B022"),  # orange, darkened until it reads on white
    ("#56B4E9", "#8FD0F7"),  # sky blue
    ("#333333", "#D0D0D0"),  # black
    ("#7A5195", "#B48ACB"),  # violet
)
MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")
_DASHES = ("solid", "dash", "dashdot", "longdash", "dot", "longdashdot")


COLOURS = len(_COLOURS)
MOST_SHAPES = 24
"""Markers and dashes together."""


def looks(variants: Iterable[str]) -> dict[str, Look]:
    """A look for each variant, in order of first appearance."""
    ordered = list(dict.fromkeys(variants))
    return {variant: look(number) for number, variant in enumerate(ordered)}


def look(number: int) -> Look:
    """The look with that number. Colour and marker alone distinguish 64 (the markers shift after every 8 colours); with
    the dash 384.
    """
    light, dark = _COLOURS[number % len(_COLOURS)]
    shift = number // len(_COLOURS)
    marker = MARKERS[(number + 3 * shift) % len(MARKERS)]
    return Look(number, light, dark, marker, _DASHES[(number + number // 64) % len(_DASHES)])


def solid(look: Look) -> Look:
    """The same look without its dash: dashed lines of many samples are hard to follow; colour and marker distinguish
    it.
    """
    return replace(look, dash=_DASHES[0])


MATPLOTLIB_MARKERS = {
    "circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "triangle-down": "v", "cross": "P", "x": "X",
    "star": "*",
}  # fmt: skip
MATPLOTLIB_DASHES: dict[str, str | tuple[int, tuple[float, ...]]] = {
    "solid": "-", "dash": (0, (5, 2.5)), "dashdot": "-.", "longdash": (0, (9, 3)), "dot": ":",
    "longdashdot": (0, (9, 3, 1.5, 3)),
}  # fmt: skip


# each in a box of 10 x 10 around (0, 0)
_MARKER_PATHS = {
    "circle": "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "square": "M-3.6,-3.6h7.2v7.2h-7.2Z",
    "triangle-up": "M0,-4.6L4.4,3.4H-4.4Z",
    "diamond": "M0,-5L5,0L0,5L-5,0Z",
    "triangle-down": "M0,4.6L4.4,-3.4H-4.4Z",
    "cross": "M-1.6,-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3Z",
    "x": "M-4.2,-2.2L-2.2,-4.2L0,-2L2.2,-4.2L4.2,-2.2L2,0L4.2,2.2L2.2,4.2L0,2L-2.2,4.2L-4.2,2.2L-2,0Z",
    "star": "M0,-5.2L1.3,-1.8L5,-1.6L2.1,0.7L3.1,4.3L0,2.2L-3.1,4.3L-2.1,0.7L-5,-1.6L-1.3,-1.8Z",
}
_DASH_ARRAYS = {
    "solid": "", "dash": "5 3", "dashdot": "6 2 1.5 2", "longdash": "9 3", "dot": "1.5 2.5", "longdashdot": "9 3 1.5 3",
}  # fmt: skip


def verdict_shown(name: str) -> str:
    """A verdict in a reader's words; any other text as it is."""
    return VERDICT_WORDS.get(name, (name,))[0]


def verdict_counted(name: str, count: int) -> str:
    """ "1 does not hold", "2 do not hold"."""
    _, one, several = VERDICT_WORDS.get(name, (name,) * 3)
    return f"{count} {one if count == 1 else several}"


def swatch(look: Look) -> Markup:
    """Inline SVG; its colour is that of CSS class v<number>. Decoration: the name beside it says the same."""
    dash = _DASH_ARRAYS[look.dash]
    return Markup(
        '<svg class="swatch v{}" viewBox="-15 -7 30 14" width="30" height="14" aria-hidden="true" focusable="false">'
        '<path class="swatch-line" d="M-14,0H14"{}/><path class="swatch-mark" d="{}"/></svg>'
    ).format(look.number, Markup(' stroke-dasharray="{}"').format(dash) if dash else "", _MARKER_PATHS[look.marker])


def variant_css(looks: Iterable[Look]) -> str:
    """.v0 { --c: ... } for both themes. Only our own constants go into it."""
    each = {look.number: look for look in looks}.values()
    light = "".join(f".v{look.number}{{--c:{look.light}}}" for look in each)
    dark = "".join(f".v{look.number}{{--c:{look.dark}}}" for look in each)
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"


IN_FEW = "holds in less than half"
"""Shown in place of "holds" where a claim holds in less than half of its conditions."""
IN_PART = "holds in part"
"""Of a sentence of the paper that several claims stand for: some hold and some do not."""
IN_OVERLAP = "fits two opposite words"
"""Shown in place of "holds" where the paper's own use of words calls such a number the opposite, too."""
VERDICTS = {
    "holds": ("\u2713", "holds"),
    IN_FEW: ("\u25d0", "unsure"),
    IN_OVERLAP: ("\u2229", "unsure"),
    "weaker, same direction": ("\u2197", "unsure"),
    "does not hold": ("\u2717", "fails"),
    "inconclusive": ("\u2248", "unsure"),
    "its own source refutes it": ("\u2262", "refuted"),
    "not testable here": ("\u2298", "untested"),
    "not tested": ("\u2013", "untested"),
}
"""Verdict, or what is shown in its place -> (symbol, CSS class)."""
VERDICT_WORDS = {
    "holds": ("holds", "holds", "hold"),
    IN_FEW: (
        "holds in less than half of its conditions", "holds in less than half of its conditions",
        "hold in less than half of their conditions",
    ),
    IN_OVERLAP: (
        "fits two opposite words of the paper", "fits two opposite words of the paper",
        "fit two opposite words of the paper",
    ),
    IN_PART: ("holds in part", "holds in part", "hold in part"),
    "weaker, same direction": (
        "weaker, same direction", "is weaker, in the same direction", "are weaker, in the same direction",
    ),
    "does not hold": ("does not hold", "does not hold", "do not hold"),
    "inconclusive": ("inconclusive", "is inconclusive", "are inconclusive"),
    "its own source refutes it": (
        "paper contradicts itself", "the paper itself contradicts", "the paper itself contradicts",
    ),
    "not testable here": ("not testable here", "is not testable here", "are not testable here"),
    "not tested": ("not tested", "was not tested", "were not tested"),
}  # fmt: skip
"""Verdict -> its words: alone, and behind the number of claims that have it, one and several. Nothing else says a
verdict to a reader; tables and --json keep the verdict's own name.
"""
UNTESTED = ("not tested", "not testable here")
"""Verdicts of claims that no test was made of."""
OUTCOMES = {
    "COMPLETED": ("\u2713", "holds"),
    "INVALID": ("!", "unsure"),
    "FAILED": ("\u2717", "fails"),
    "TIMED_OUT": ("\u25d4", "fails"),
    "UNSUPPORTED": ("\u2298", "untested"),
    "NOT_RUN": ("\u2026", "untested"),
}
"""Outcome (or its absence) -> (symbol, CSS class)."""
