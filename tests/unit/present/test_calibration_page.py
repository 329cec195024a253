"""calibration.html: whole, offline, and hostile names are text in it; what `netwarp calibrate` refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from netwarp import SpecError, calibrate
from netwarp.present.pages.calibration import write_calibration_page
from netwarp.store.probe_rows import Calibration

BAD = '<script>alert("x")</script>'
CURVE: dict[str, Any] = {
    "probe": BAD, "title": BAD, "x_label": BAD, "y_label": BAD, "x": [1.0, 2.0, 3.0], "measured": [0.1, 0.6, 1.0],
    "configured": [0.2, 0.5, 1.0], "bars": False,
}  # fmt: skip


def row(probe: str, quantity: str, measured: float | None, *, ok: bool, unit: str = "s") -> dict[str, Any]:
    """One comparison with 0.02."""
    return {
        "probe": probe, "quantity": quantity, "configured": 0.02, "measured": measured, "bound": 1e-5, "unit": unit,
        "ok": ok,
    }  # fmt: skip


def page(tmp_path: Path, rows: list[dict[str, Any]], **more: Any) -> str:
    """The page of these rows."""
    facts = {"key": "", "kernel_release": "", "kernel_sha256": "", "backend": "", "date_utc": ""}
    calibration = msgspec.convert({**facts, "rows": rows, **more}, Calibration)
    return write_calibration_page(tmp_path / "page.html", calibration, "index.html").read_text()


def test_every_row_is_there_and_what_is_off_is_said_first(tmp_path: Path) -> None:
    rows = [row("adsl", "delay there", 0.0200001, ok=True), row("adsl", "delay back", 0.021, ok=False)]
    text = page(tmp_path, rows, curves=[CURVE], kernel_release="6.12", backend="virtual", key="0123", date_utc="now")
    assert "<title>Calibration: 1 off</title>" in text
    assert "1 of 2 within bounds" in text
    assert "Linux 6.12, back end virtual, measured now, calibration 0123" in text
    assert "20.0001" in text  # ms
    assert text.count('<span class="calibration-off">OFF</span>') == 1
    assert 'href="index.html"' in text
    assert "http" not in text.replace("https", "http").split("</style>")[1]


def test_lines_and_bars(tmp_path: Path) -> None:
    bars = {**CURVE, "probe": "adsl", "bars": True}
    text = page(tmp_path, [row("adsl", "x", 0.02, ok=True)], curves=[bars, {**bars, "bars": False}])
    assert text.count('<rect class="calibration-bar"') == 3
    assert text.count('<polyline class="calibration-measured"') == 1
    assert text.count('<polyline class="calibration-configured"') == 1


def test_names_are_text(tmp_path: Path) -> None:
    text = page(tmp_path, [row(BAD, BAD, None, ok=False, unit=BAD)], curves=[CURVE], backend=BAD)
    assert BAD not in text
    assert "&lt;script&gt;" in text
    assert "none" in text


def test_a_calibration_without_curves_has_a_page(tmp_path: Path) -> None:
    assert "1 of 1 within bounds" in page(tmp_path, [row("x", "y", 0.02, ok=True)])


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["wired-lann"], {}, 'there is no profile "wired-lann", did you mean "wired-lan"?'),
        (["wired-lan"], {"jobs": 0}, "--jobs 0: at least 1"),
        (["generic"], {"backend": "guest"}, "name profiles"),
    ],
)
def test_mistakes_measure_nothing(names: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        calibrate(names, **options)
    assert message in str(caught.value)
