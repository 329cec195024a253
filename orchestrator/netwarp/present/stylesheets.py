"""The styles of the pages: one file a component (styles/), whose classes begin with its name; base.css is shared."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

STYLES = Path(__file__).with_name("styles")
COMPONENTS = {
    "index": ("tile", "plain", "controls", "swatch", "legend", "chart", "summary", "conclusion", "testbed", "answers",
              "claims", "figures", "grid", "schedules", "events", "explore", "cells", "cell", "waterfall"),
    "comparison": ("tile", "plain", "comparison"),
    "watch": ("tile", "plain", "watch"),
    "capture": ("plain", "controls", "swatch", "legend", "chart", "ladder", "capture"),
    "calibration": ("plain", "calibration"),
}  # fmt: skip
"""The components of each page, by its template's name."""


def stylesheet(page: str) -> Markup:
    """The style sheet of a page: base.css, then its components. Every later file may override base.css alone."""
    names = ("base", *COMPONENTS[page])
    return Markup("\n".join((STYLES / f"{name}.css").read_text(encoding="utf-8") for name in names))
