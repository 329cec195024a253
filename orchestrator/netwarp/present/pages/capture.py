"""The page about captures: one file with styles, scripts and Plotly in it; its tables need no script."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from ..html import environment
from ..series import keep_extremes, rounded
from ..style import looks
from ..stylesheets import stylesheet
from .build import STATIC, plotly_script

SCRIPTS = (STATIC / "report.js", STATIC / "charts.js", Path(__file__).with_name("capture.js"))
POINTS = 200_000
"""Points of all charts of a page together: about 4 MB of it."""
MOST_POINTS = 3000
LEAST_POINTS = 200


@dataclass(frozen=True, slots=True)
class Line:
    """times in s, values in the panel's unit; style: line (from point to point), step (holds until the next), bar (a
    step from 0 for each bin), marks (retransmissions), dots (samples), lost (at the upper edge of the panel).
    """

    name: str
    times: Any
    values: Any
    style: str = "line"
    key: str = ""
    """Lines of one key look alike, in all panels, and are one entry of the legend. Default: the name."""


@dataclass(frozen=True, slots=True)
class LinePanel:
    """Lines on one axis; unit as in numbers.py."""

    title: str
    unit: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Panels on one time axis. events: (time in s, what happened)."""

    name: str
    panels: Sequence[LinePanel]
    events: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, slots=True)
class TextTable:
    """rows of text; numeric: columns that are numbers (aligned to the right)."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A flow, or a path of a join: its facts (name, text), tables, chart, and its ladder as SVG."""

    anchor: str
    title: str
    lead: str
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[TextTable] = ()
    details: Sequence[TextTable] = ()
    chart: LineChart | None = None
    ladder: Markup | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A capture, or the joined hops. findings: what stands out; notes: what could not be known."""

    anchor: str
    title: str
    lead: str
    findings: Sequence[str] = ()
    notes: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    table: TextTable | None = None
    links: Sequence[str] = ()
    """Anchors for the first column of `table`, where there are any."""
    parts: Sequence[Part] = ()


@dataclass(slots=True)
class _Budget:
    """The number of points that a line may have, so that the page stays small; and how many were left out."""

    most: int
    thinned: set[str] = field(default_factory=set)


def capture_page(title: str, sections: Sequence[Section], version: str) -> bytes:
    """The page's bytes: HTML, styles, scripts, data and Plotly (compressed) in one."""
    charts = [part.chart for section in sections for part in section.parts if part.chart is not None]
    lines = sum(len(panel.lines) for chart in charts for panel in chart.panels)
    budget = _Budget(max(LEAST_POINTS, min(MOST_POINTS, POINTS // max(lines, 1))))
    payload = {"charts": {chart.name: _chart(chart, budget) for chart in charts}, "cells": {}}
    return (
        environment()
        .get_template("capture.html.j2")
        .render(
            title=title,
            sections=sections,
            version=version,
            payload=payload,
            points=budget.most,
            thinned=budget.thinned,
            style=Markup(_inline(stylesheet("capture"))),
            scripts=Markup("".join(f"<script>{_inline(path.read_text())}</script>\n" for path in SCRIPTS)),
            plotly=base64.b64encode(zlib.compress(plotly_script().read_bytes(), 9)).decode(),
        )
        .encode()
    )


def _inline(text: str) -> str:
    """Our own files inside an element: nothing in them may end it."""
    if "</script" in text.lower() or "</style" in text.lower():
        raise ValueError("a file of the report's own ends the element it is to stand in")
    return text


def _chart(chart: LineChart, budget: _Budget) -> dict[str, Any]:
    names = looks(line.key or line.name for panel in chart.panels for line in panel.lines)
    return {
        "panels": [
            {
                "title": panel.title,
                "unit": panel.unit,
                "lines": [_line(line, panel.unit, budget, chart.name) for line in panel.lines],
            }
            for panel in chart.panels
        ],
        "events": [[round(at, 6), text] for at, text in chart.events],
        "looks": {
            name: {"light": look.light, "dark": look.dark, "dash": "solid", "marker": look.marker}
            for name, look in names.items()
        },
    }


def _line(line: Line, unit: str, budget: _Budget, chart: str) -> dict[str, Any]:
    times, values = np.asarray(line.times, dtype=np.float64), np.asarray(line.values, dtype=np.float64)
    keep = keep_extremes(values, budget.most)
    if len(keep) < len(values):
        budget.thinned.add(chart)
    return {
        "name": line.name,
        "key": line.key or line.name,
        "style": line.style,
        "t": rounded("t_s", times[keep].tolist()),
        "v": rounded({"s": "_s", "bit/s": "_bit_s", "bytes": "_bytes"}.get(unit, ""), values[keep].tolist()),
        "of": len(values),
    }
