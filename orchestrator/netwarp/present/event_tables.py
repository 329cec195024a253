"""Tables of events: the packets around a fault, one table per cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.numbers import fixed
from ..core.outputs import EventTable
from .axes import NumberTable, Row
from .figures.over_time.data import varying
from .result_tables import conditions
from .run_data import RunData

SHOWN_ROWS = 2000


@dataclass(frozen=True, slots=True)
class EventGroup:
    """The events of one cell: its levels in words, and rows whose times are as the capture has them."""

    title: str
    cell: str
    table: NumberTable


@dataclass(frozen=True, slots=True)
class Events:
    """A table of events ready to be written: a table a cell."""

    name: str
    title: str
    conditions: str
    groups: tuple[EventGroup, ...]


def make_events(data: RunData, table: EventTable) -> Events | None:
    """Its rows from tables/<name>.csv; None where there are none."""
    factors = varying(data, table.where)
    groups: dict[str, list[Mapping[str, str]]] = {}
    for row in data.tables.get(table.name, ())[:SHOWN_ROWS]:
        groups.setdefault(row["cell_id"], []).append(row)
    if not groups:
        return None
    event_groups = tuple(
        EventGroup(
            ", ".join(data.level_title(name, rows[0][name]) for name in factors if rows[0][name] != "-"),
            cell,
            NumberTable(
                table.title,
                ("time (s)", "event", "at", "path", "what", "note"),
                ("number", "bytes"),
                tuple(_event(row) for row in rows),
            ),
        )
        for cell, rows in groups.items()
    )
    return Events(table.name, table.title, conditions(data, table.where), event_groups)


def _event(row: Mapping[str, str]) -> Row:
    at = f"{row['node']}, {row['link']}" if row["node"] else row["link"]
    heads = (fixed(float(row["t_s"]), 6), row["event"], at, row["path"], row["type"], row["note"])
    return Row(heads, (row["number"], row["bytes"]))
