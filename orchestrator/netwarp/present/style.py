"""One look for each variant, everywhere: colour (Okabe and Ito 2008, safe for colour-blind readers), marker, dash."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Look:
    """light, dark: colours for the two themes. marker: shape name. dash: Plotly's name. The words of `MARKERS`."""

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


def looks(variants: Iterable[str]) -> dict[str, Look]:
    """A look for each variant, in order of first appearance."""
    ordered = list(dict.fromkeys(variants))
    return {variant: look(number) for number, variant in enumerate(ordered)}


def look(number: int) -> Look:
    """The look of one number. Colour and marker alone tell 64 apart (the markers shift after every 8 colours); with the
    dash 384 differ.
    """
    light, dark = _COLOURS[number % len(_COLOURS)]
    shift = number // len(_COLOURS)
    marker = MARKERS[(number + 3 * shift) % len(MARKERS)]
    return Look(light, dark, marker, _DASHES[(number + number // 64) % len(_DASHES)])


def solid(look: Look) -> Look:
    """The same without its dash: a dashed line of many samples cannot be followed; colour and marker tell it apart."""
    return replace(look, dash=_DASHES[0])


MATPLOTLIB_MARKERS = {
    "circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "triangle-down": "v", "cross": "P", "x": "X",
    "star": "*",
}  # fmt: skip
MATPLOTLIB_DASHES: dict[str, str | tuple[int, tuple[float, ...]]] = {
    "solid": "-", "dash": (0, (5, 2.5)), "dashdot": "-.", "longdash": (0, (9, 3)), "dot": ":",
    "longdashdot": (0, (9, 3, 1.5, 3)),
}  # fmt: skip


VERDICTS = {
    "holds": ("\u2713", "holds"),
    "does not hold": ("\u2717", "fails"),
    "inconclusive": ("\u2248", "unsure"),
    "not tested": ("\u2013", "untested"),
}
"""Verdict -> (symbol, CSS class)."""
OUTCOMES = {
    "COMPLETED": ("\u2713", "holds"),
    "INVALID": ("!", "unsure"),
    "FAILED": ("\u2717", "fails"),
    "TIMED_OUT": ("\u25d4", "fails"),
    "UNSUPPORTED": ("\u2298", "untested"),
    "NOT_RUN": ("\u2026", "untested"),
}
"""Outcome (or its absence) -> (symbol, CSS class)."""
