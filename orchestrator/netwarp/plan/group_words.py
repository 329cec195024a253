"""The flows that `count` made in words: one sentence a group, however many flows it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.numbers import with_unit
from ..core.types import Cell, Flow
from ..core.units import counted, counted_of, listed
from .types import Plan

MOST_LINES = 3
"""Of a group whose cells differ."""


def group_lines(plan: Plan) -> Iterator[str]:
    """A sentence for each group of flows of a plan; where cells differ, the first few, with their number of cells."""
    said: dict[str, dict[str, int]] = {}
    for cell in plan.cells:
        for name, text in _groups(cell):
            of_group = said.setdefault(name, {})
            of_group[text] = of_group.get(text, 0) + 1
    for name, texts in said.items():
        for text, cells in list(texts.items())[:MOST_LINES]:
            yield text if cells == len(plan.cells) else f"{text} (in {counted_of(cells, len(plan.cells), 'cell')})"
        if len(texts) > MOST_LINES:
            yield f"{name}: others in {counted(sum(list(texts.values())[MOST_LINES:]), 'cell')}; all with --json"


def _groups(cell: Cell) -> Iterator[tuple[str, str]]:
    """(group, sentence) of a cell."""
    groups: dict[str, list[Flow]] = {}
    for flow in cell.flows:
        if isinstance(flow.group, str):
            groups.setdefault(flow.group, []).append(flow)
    for name, flows in groups.items():
        ends = (_names([getattr(flow, end) for flow in flows]) for end in ("sender", "receiver"))
        paths = _names([path.name for flow in flows for path in flow.paths])
        protocol = _names([flow.protocol for flow in flows])
        stops = [flow.stop_ns for flow in flows if flow.stop_ns is not None]
        sizes = [flow.total_bytes for flow in flows if flow.total_bytes is not None]
        text = (
            f"{name}: {counted(len(flows), f'{protocol} flow')}, {listed([flow.name for flow in flows])};"
            f" from {' to '.join(ends)} over {paths}; start {_between([flow.start_ns / 1e9 for flow in flows], 's')}"
            + (f"; stop {_between([stop / 1e9 for stop in stops], 's')}" if stops else "")
            + (f"; size {_between(sizes, 'bytes')}, together {with_unit(sum(sizes), 'bytes')}" if sizes else "")
        )
        yield name, text


def _names(names: Sequence[str]) -> str:
    return listed(list(dict.fromkeys(names)))


def _between(values: Sequence[float], unit: str) -> str:
    low, high = with_unit(min(values), unit), with_unit(max(values), unit)
    return low if low == high else f"{low} to {high}"
