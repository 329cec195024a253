"""The page of `netwarp kernel watch`: one file without scripts."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.metrics.catalogue import METRICS
from ...core.units import counted
from ...core.version import __version__
from ...results.compared_numbers import ComparedNumber
from ...results.senses import sense
from ...results.watched import ChangedCell, Watched, headline, size_of
from ..comparison_words import amount
from ..html import environment, url
from ..stylesheets import stylesheet

SHOWN = 5
"""Numbers of a cell that stand open; the others are folded."""
VERDICT_CLASSES = {"pass": ("\u2713", "holds"), "fail": ("\u2717", "fails"), "skip": ("\u2013", "untested")}


@dataclass(frozen=True, slots=True)
class Change:
    """A number as the page has it. bar: how large the change is, in percent of the largest possible."""

    number: ComparedNumber
    title: str
    base: str
    new: str
    change: str
    bar: float


def watch_page(watched: Watched) -> bytes:
    """Its bytes."""
    cells = [
        {
            "place": place, "cell": cell, "numbers": [_change(one) for one in cell.numbers],
            "headline": _headline(cell),
            "captures": [_captures(side, cell, name) for side, name in zip(("base", "new"), cell.cells, strict=True)],
        }
        for place, cell in enumerate(watched.cells, 1)
    ]  # fmt: skip
    counts, numbered = watched.numbers, watched.finding_numbers
    both = [test for test in watched.tests if test.a and test.b]
    return (
        environment()
        .get_template("watch.html.j2")
        .render(
            watched=watched,
            sentence=sentence(watched),
            cells=cells,
            counts=counts,
            cells_run=sum(run.cells for run in watched.runs),
            tests=both,
            alone=[test for test in watched.tests if not (test.a and test.b)],
            verdicts=VERDICT_CLASSES,
            sides=[("A", watched.base), ("B", watched.new)],
            test_counts={kernel.sha256: watched.counts(kernel) for kernel in (watched.base, watched.new)},
            outcomes=[(numbered[each.name], each.spec, each.ended) for each in watched.ended],
            claims=[("", run.spec, moved) for run in watched.runs for moved in run.verdicts],
            numbered=numbered,
            shown=SHOWN,
            style=stylesheet("watch"),
            version=__version__,
        )
        .encode()
    )


def sentence(watched: Watched) -> str:
    """The answer in a sentence or two."""
    parts = []
    if broken := [cell for cell in watched.cells if sense(cell.numbers[0]) == "broke"]:
        parts.append(f"connections broke in {counted(len(broken), 'cell')}")
    if watched.splats:
        parts.append(counted(len(watched.splats), "splat"))
    if worse := sum(test.worse for test in watched.tests if test.a):
        parts.append(f"{counted(worse, 'test fails', 'tests fail')} that did not")
    if moved := sum(len(run.outcomes) for run in watched.runs):
        parts.append(f"{counted(moved, 'cell')} ended otherwise")
    if judged := sum(len(run.verdicts) for run in watched.runs):
        parts.append(f"{counted(judged, 'verdict')} changed")
    if watched.cells:
        parts.append(f"{counted(watched.numbers['changed'], 'number')} moved in {counted(len(watched.cells), 'cell')}")
    if watched.empty:
        return "Nothing was compared."
    if not parts:
        return "Nothing changed."
    said = ", ".join(parts)
    text = f"{said[0].upper()}{said[1:]}."
    if watched.cells:
        first = watched.cells[0]
        levels = " ".join(level for _, level in first.levels)
        place = f"{levels} of {first.spec}" if levels else first.spec
        named = "The first that broke" if broken else "The largest change"
        text += f" {named}, in {place}: {change_words(first.numbers[0])}."
    return text


def change_words(one: ComparedNumber) -> str:
    """A number that moved: "goodput from 9.6 to 7.1 Mbit/s"."""
    metric = METRICS.get(one.metric)
    title = metric.title if metric is not None else one.metric
    return f"{title} from {amount(one.a, one.unit)} to {amount(one.b, one.unit)}"


def _change(one: ComparedNumber) -> Change:
    metric = METRICS.get(one.metric)
    change = "" if one.relative is None else f"{one.relative:+.1%}".replace("-", "\u2212").replace("%", " %")
    return Change(
        one, one.metric if metric is None else metric.title, amount(one.a, one.unit), amount(one.b, one.unit), change,
        round(100 * min(1.0, size_of(one)), 1),
    )  # fmt: skip


def _headline(cell: ChangedCell) -> str:
    """The largest change of a headline metric, where it is not the cell's largest: "goodput +65.0 %"."""
    one = headline(cell)
    if one is None or one is cell.numbers[0]:
        return ""
    change = _change(one)
    return f"{change.title} {change.change or change.new}"


def _captures(side: str, cell: ChangedCell, name: str | None) -> str:
    """The cell's folder, beside the page."""
    return "" if name is None else url(side, "runs", cell.run, "cells", name) + "/"
