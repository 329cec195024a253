"""What each kind of figure shows, as text: a change of it is read in a review as a change of tests/data/figures/.

NETWARP_WRITE_STRUCTURE=1 writes the files anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from netwarp.present.figures import describe_figures
from netwarp.present.figures.description import Axis, Chart, Drawing, Grid, HeatMap, Series
from netwarp.present.figures.print import printed
from netwarp.present.looks import report_looks
from netwarp.present.run_data import read_run
from netwarp.present.style import Look
from support.checkout import ROOT
from support.report_kit import kinds_run

STRUCTURE = ROOT / "tests" / "data" / "figures"
KINDS = ("outage", "map", "spread", "boxes", "time", "panels")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Drawing, dict[str, Look]]]:
    data = read_run(kinds_run(tmp_path_factory.mktemp("kinds") / "run"))
    looks = dict(report_looks(data))
    return {figure.name: (figure, looks) for figure in describe_figures(data)}


@pytest.mark.parametrize("name", KINDS)
def test_a_figure_shows_what_it_showed(drawn: dict[str, tuple[Drawing, dict[str, Look]]], name: str) -> None:
    figure, looks = drawn[name]
    found = "\n".join(lines(figure, looks)) + "\n"
    file = STRUCTURE / f"{name}.txt"
    if os.environ.get("NETWARP_WRITE_STRUCTURE"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")


def test_every_kind_is_here(drawn: dict[str, tuple[Drawing, dict[str, Look]]]) -> None:
    assert set(drawn) == set(KINDS) == {file.stem for file in STRUCTURE.glob("*.txt")}
    assert {type(figure.marks) for figure, _ in drawn.values()} == {Chart, Grid, HeatMap}


def lines(figure: Drawing, looks: dict[str, Look]) -> Iterator[str]:
    """The figure's words, axes and marks, and the texts of the printed sheet in their order."""
    yield f"{figure.title} [{figure.conditions}]"
    yield f"words: {figure.words}"
    marks = figure.marks
    for name in ("x", "y", "value"):
        if axis := getattr(marks, name, None):
            yield f"{name}: {axis_words(axis)}"
    if isinstance(marks, Chart):
        yield f"sources: {', '.join(marks.sources)}; bands: {marks.bands}"
        yield from (series_words(one, looks) for one in marks.series)
        for box in marks.boxes:
            yield f"box {box.label} at {box.at:.3g}, {box.width:.3g} wide: {numbers(box.quartiles)}"
    elif isinstance(marks, Grid):
        for panel in marks.panels:
            yield f"panel {panel.label}; bands: {panel.bands}"
            yield from (f"  {series_words(one, looks)}" for one in panel.series)
    else:
        for part in marks.panels:
            yield f"panel {part.label}"
            for row in part.spots:
                yield "  " + " | ".join("" if spot is None else spot.text + spot.why for spot in row)
    yield f"table: {', '.join((*figure.table.row_titles, *figure.table.column_titles))}; {len(figure.table.rows)} rows"
    sheet = printed(marks, looks)["svg"].decode()
    size = re.search(r'width="([\d.]+)pt"', sheet), re.search(r'height="([\d.]+)pt"', sheet)
    yield "sheet: " + " x ".join(f"{float(one[1]):.0f} pt" for one in size if one)
    yield "on it: " + " | ".join(
        text.strip() for text in re.findall(r'<g id="text_\d+">\s*<!--(.*?)-->', sheet, re.DOTALL)
    )


def axis_words(axis: Axis) -> str:
    labels = " ".join(f"{at:.4g}={text!r}" for at, text in zip(axis.at, axis.ticks, strict=True))
    return f"{axis.label}, {axis.kind}{', from 0' if axis.from_zero else ''}, span {axis.span}, {labels or 'own marks'}"


def series_words(series: Series, looks: dict[str, Look]) -> str:
    look = looks[series.key]
    intervals = sum(end is not None for end in series.low)
    return (
        f"{series.label} [{series.key}] {look.light} {look.marker} {look.dash}: {series.form} of source"
        f" {series.source}, {len(series.x)} points, {intervals} intervals, x {numbers(series.x[:3])},"
        f" y {numbers(series.y[:3])}" + (f", {series.note}" if series.note else "")
    )


def numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
