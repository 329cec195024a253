"""The little drawing of a variant's line and marker that stands beside its name."""

from __future__ import annotations

from markupsafe import Markup

from .style import Look

# each in a box of 10 x 10 around (0, 0)
_PATHS = {
    "circle": "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "square": "M-3.6,-3.6h7.2v7.2h-7.2Z",
    "triangle-up": "M0,-4.6L4.4,3.4H-4.4Z",
    "diamond": "M0,-5L5,0L0,5L-5,0Z",
    "triangle-down": "M0,4.6L4.4,-3.4H-4.4Z",
    "cross": "M-1.6,-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3Z",
    "x": "M-4.2,-2.2L-2.2,-4.2L0,-2L2.2,-4.2L4.2,-2.2L2,0L4.2,2.2L2.2,4.2L0,2L-2.2,4.2L-4.2,2.2L-2,0Z",
    "star": "M0,-5.2L1.3,-1.8L5,-1.6L2.1,0.7L3.1,4.3L0,2.2L-3.1,4.3L-2.1,0.7L-5,-1.6L-1.3,-1.8Z",
}
_DASHES = {
    "solid": "", "dash": "5 3", "dashdot": "6 2 1.5 2", "longdash": "9 3", "dot": "1.5 2.5", "longdashdot": "9 3 1.5 3",
}  # fmt: skip


def swatch(look: Look, number: int) -> Markup:
    """Inline SVG; its colour is that of CSS class v<number>. Decoration: the name beside it says the same."""
    dash = _DASHES[look.dash]
    return Markup(
        '<svg class="swatch v{}" viewBox="-15 -7 30 14" width="30" height="14" aria-hidden="true" focusable="false">'
        '<path class="line" d="M-14,0H14"{}/><path class="mark" d="{}"/></svg>'
    ).format(number, Markup(' stroke-dasharray="{}"').format(dash) if dash else "", _PATHS[look.marker])


def variant_css(looks: list[Look]) -> str:
    """.v0 { --c: ... } for both themes. Only our own constants go into it."""
    light = "".join(f".v{number}{{--c:{look.light}}}" for number, look in enumerate(looks))
    dark = "".join(f".v{number}{{--c:{look.dark}}}" for number, look in enumerate(looks))
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"
