"""Cells of an exploration: a cell of a spec as a spec of its own, and that spec with changes as a cell."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..core.errors import SpecError
from ..core.types import Cell, GuestKernel
from ..experiment import Spec
from ..experiment.load import parse_spec
from ..experiment.toml_writer import toml_text
from ..plan.make import make_plan
from ..plan.replay import replay_spec
from .changes import Change, Document, FaultChange, SettingChange, changed, named
from .mutation import directions

EXPLORED = "explored"
"""The factor whose level is a schedule of the exploration."""


@dataclass(frozen=True, slots=True)
class Root:
    """A cell of the spec, and the document of a spec whose only cell it is. given: what the document says of events,
    losses and settings, as changes: an oracle excuses by them what it excuses by changes of a schedule.
    """

    cell: Cell
    document: Document
    given: tuple[Change, ...] = ()


def root_of(spec: Spec, cell: Cell) -> Root:
    """The root of a cell. Every direction that a host sends into counts its packets, as with the changes of an
    exploration: a packet program takes part in the kernel's random numbers, and cells would differ from the start.
    """
    document: dict[str, Any] = tomllib.loads(replay_spec(spec, cell, cell.id))
    for link, side in directions(cell):
        if not cell.shapes[link, "forward" if side == "forward" else "backward"].packet_rules:
            document.setdefault("link", {}).setdefault(link, {}).setdefault(side, {}).setdefault("drop", [])
    return Root(cell, document, tuple(_given(document, cell)))


def _given(document: Document, cell: Cell) -> Iterator[Change]:
    """What the document says of this cell: of its flows, links and nodes, which may be fewer than the document's."""
    there = {
        "link": [link.name for link in cell.links],
        "flow": [flow.name for flow in cell.flows],
        "node": [node.name for node in cell.nodes],
    }
    for name, table in document.get("event", {}).items():
        yield FaultChange(name, {key: str(value) for key, value in table.items()})
    for kind, names in there.items():
        for name in names:
            yield from _settings((kind, name), document.get(kind, {}).get(name, {}))


def _settings(path: tuple[str, ...], table: Document) -> Iterator[SettingChange]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _settings((*path, key), value)
        elif isinstance(value, str | int | bool):
            yield SettingChange((*path, key), value)


def cell_of(root: Root, spec: Spec, changes: Sequence[Change], builds: Callable[[str], GuestKernel]) -> Cell:
    """The root's cell with these changes. Raises SpecError where the spec cannot say them together."""
    text = text_of(root, changes)
    planned = make_plan(parse_spec(text.encode(), spec.path, sets={}), builds=builds)
    if len(planned.cells) != 1:
        raise SpecError("more than one cell")
    cell = root.cell
    return msgspec.structs.replace(
        planned.cells[0],
        spec=cell.spec,
        experiment=cell.experiment,
        factors={**cell.factors, EXPLORED: named(changes)},
        seed=cell.seed,
        repetition=cell.repetition,
    )


def text_of(root: Root, changes: Sequence[Change], title: str = "") -> str:
    """The spec of a root with changes, as a user would write it."""
    document = changed(root.document, changes)
    return toml_text(document | ({"title": title} if title else {}))
