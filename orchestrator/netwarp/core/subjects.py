"""Subjects of a cell's measurements, as their column `flow` names them: a flow, a group of flows ("web"), a class of
sizes of a group ("web.mice"), a direction of a link ("p1.forward"), or the whole cell ("").
"""

from __future__ import annotations

from .metrics.catalogue import METRICS
from .types import Cell

OF_LINKS = ("link", "measured")
"""Values of the catalogue's column `flows` of metrics that directions of links have."""


def groups_of(cell: Cell) -> dict[str, list[str]]:
    """Group, or class of sizes of a group -> its flows."""
    found: dict[str, list[str]] = {}
    for flow in cell.flows:
        if isinstance(flow.group, str):
            found.setdefault(flow.group, []).append(flow.name)
            if isinstance(flow.size_class, str):
                found.setdefault(f"{flow.group}.{flow.size_class}", []).append(flow.name)
    return found


def links_of(cell: Cell) -> tuple[str, ...]:
    """The directions of links that are measured."""
    return () if not cell.measure else cell.measure.links


def shown_subjects(cell: Cell, metric: str, named: tuple[str, ...], *, pooled: bool) -> list[str]:
    """All that an output may show of a cell: of the flows of a group only those that it names, and, if the flows of a
    group stand together, the groups that it names.
    """
    groups = groups_of(cell)
    grouped = {flow for flows in groups.values() for flow in flows}
    known = [name for name in subjects(cell, metric) if name in named or not named or name not in grouped]
    return [*known, *(name for name in groups if pooled and name in named and name not in known)]


def subjects(cell: Cell, metric: str) -> list[str]:
    """All that may have a metric in a cell."""
    of = METRICS[metric].flows if metric in METRICS else "every"
    if of == "cell":
        return [""]
    if of == "group":
        return list(groups_of(cell))
    flows = [] if of == "link" else [flow.name for flow in cell.flows]
    return [*flows, *(links_of(cell) if of in OF_LINKS else ())]
