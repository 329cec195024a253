"""calibration.html: every comparison of a calibration, and the curves behind them; offline, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from ...core.numbers import fixed, given
from ...store.probe_rows import Calibration, Curve, ProbeRow
from ...store.run_dir import write_atomic
from ..html import environment
from ..stylesheets import stylesheet

SHOWN = {"s": (1e3, "ms"), "ratio": (1.0, "")}
"""Unit of a row -> (times, unit) in the page."""
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 340, 200, 46, 34, 8


def write_calibration_page(path: Path, calibration: Calibration, back: str | None = None) -> Path:
    """Write the page and return its path. back: the report it belongs to.

    Raises StoreError where it cannot be written.
    """
    groups = [_group(name, calibration) for name in dict.fromkeys(row.probe for row in calibration.rows)]
    page = (
        environment()
        .get_template("calibration.html.j2")
        .render(
            groups=groups,
            good=calibration.passed,
            total=len(calibration.rows),
            back=back,
            facts=_facts(calibration),
            wall=calibration.backend in ("guest", "netns"),
            style=stylesheet("calibration"),
        )
    )
    write_atomic(path, page.encode())
    return path


def _facts(calibration: Calibration) -> str:
    words = [
        f"Linux {calibration.kernel_release}", f"back end {calibration.backend}", f"measured {calibration.date_utc}",
        f"calibration {calibration.key}",
    ]  # fmt: skip
    if calibration.host_load_1min is not None:
        words.append(f"host load up to {fixed(calibration.host_load_1min, 1)}")
    return ", ".join(words)


def _group(name: str, calibration: Calibration) -> dict[str, Any]:
    mine = [row for row in calibration.rows if row.probe == name]
    return {
        "name": name,
        "anchor": "".join(letter if letter.isalnum() else "-" for letter in name),
        "rows": [_row(row) for row in mine],
        "good": sum(row.ok for row in mine),
        "charts": [Markup(chart(curve)) for curve in calibration.curves if curve.probe == name],
    }


def _row(row: ProbeRow) -> dict[str, Any]:
    scale, unit = SHOWN.get(row.unit, (1.0, row.unit))
    return {
        "quantity": row.quantity,
        "configured": given(scale * row.configured, 6),
        "measured": "none" if row.measured is None else given(scale * row.measured, 6),
        "bound": "exact" if not row.bound else given(scale * row.bound, 6),
        "share": 0.0
        if row.measured is None or not row.bound
        else min(1.0, abs(row.measured - row.configured) / row.bound),
        "unit": unit,
        "ok": row.ok,
    }


def chart(curve: Curve) -> str:
    """A small SVG: measured (line or bars) over configured (dashed, or ticks). Texts are escaped."""
    xs, high = curve.x, max(*curve.measured, *curve.configured, 1e-12)
    low_x, high_x = (xs[0], xs[-1]) if not curve.bars else (xs[0] - 0.5, xs[-1] + 0.5)
    high = 1.0 if not curve.bars else high * 1.05

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - low_x) / ((high_x - low_x) or 1)
        return LEFT + across * (WIDTH - LEFT - 8), HEIGHT - BOTTOM - y / high * (HEIGHT - BOTTOM - TOP)

    parts = [_axes(low_x, high_x, high, at, [curve.x_label, curve.y_label], curve)]
    if curve.bars:
        half = 0.32 * (at(1, 0)[0] - at(0, 0)[0])
        for x, seen, asked in zip(xs, curve.measured, curve.configured, strict=True):
            (middle, top), bottom = at(x, seen), at(x, 0)[1]
            parts.append(
                f'<rect class="calibration-bar" x="{middle - half:.1f}" y="{top:.1f}" width="{2 * half:.1f}" '
                f'height="{bottom - top:.1f}"/>'
            )
            level = at(x, asked)[1]
            parts.append(
                f'<line class="calibration-configured" x1="{middle - 1.3 * half:.1f}" x2="{middle + 1.3 * half:.1f}" '
                f'y1="{level:.1f}" y2="{level:.1f}"/>'
            )
    else:
        for kind, line in (("measured", curve.measured), ("configured", curve.configured)):
            points = " ".join(f"{px:.1f},{py:.1f}" for px, py in (at(x, y) for x, y in zip(xs, line, strict=True)))
            parts.append(f'<polyline class="calibration-{kind}" points="{points}"/>')
    title = escape(f"{curve.title}: measured against configured")
    caption = escape(f"{curve.title}: {curve.y_label}")
    return (
        f'<figure><figcaption>{caption}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{title}">{"".join(parts)}</svg></figure>'
    )


def _axes(low_x: float, high_x: float, high_y: float, at: Any, labels: Sequence[str], curve: Curve) -> str:
    (left, bottom), (right, _), (_, top) = at(low_x, 0), at(high_x, 0), at(low_x, high_y)
    parts = [f'<path class="calibration-axis" d="M{left:.1f},{top:.1f}V{bottom:.1f}H{right:.1f}"/>']
    ticks = curve.x if curve.bars else [low_x, (low_x + high_x) / 2, high_x]
    for x in ticks:
        place = at(x, 0)[0]
        anchor = "middle" if curve.bars or x not in (low_x, high_x) else "start" if x == low_x else "end"
        parts.append(f'<text x="{place:.1f}" y="{bottom + 13:.1f}" text-anchor="{anchor}">{given(x, 4)}</text>')
    for y in (0, high_y / 2, high_y):
        parts.append(f'<text x="{left - 5:.1f}" y="{at(low_x, y)[1] + 4:.1f}" text-anchor="end">{given(y, 2)}</text>')
    parts.append(f'<text x="{(left + right) / 2:.1f}" y="{HEIGHT - 5}" text-anchor="middle">{escape(labels[0])}</text>')
    return "".join(parts)
