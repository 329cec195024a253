"""The MPTCP connections of a summary: subflows that are connections of their own, and the data level above them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from .capture import Capture
from .connection import Connection, Series
from .mptcp import analyze_mptcp


@dataclasses.dataclass(frozen=True)
class Multipath:
    """One MPTCP connection. number: in the order of size, from 1; flows: numbers of its subflows in the summary;
    complete: False where the handshake, and so what belongs together, is not in the capture.
    """

    number: int
    flows: tuple[int, ...]
    complete: bool
    version: int
    direction: int
    totals: Mapping[str, Any]
    series: Mapping[str, Series]
    events: Sequence[Mapping[str, Any]]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "series"}
        return {"connection": found.pop("number"), **found}


def multipath_of(capture: Capture, connections: Sequence[Connection], start_ns: int) -> tuple[Multipath, ...]:
    """Those of a capture whose rows are in memory, the largest first; times from start_ns."""
    if not any(one.facts["mptcp_subflow"] for one in connections):
        return ()
    numbers = {one.row: one.number for one in connections}
    found = sorted(analyze_mptcp(capture, t0_ns=start_ns), key=lambda one: -(one.totals["payload_bytes"] or 0))
    return tuple(
        Multipath(
            number=number,
            flows=tuple(numbers[row] for row in one.flows),
            complete=one.complete,
            version=one.version,
            direction=one.direction,
            totals=one.totals,
            series=one.series,
            events=one.events,
            # the row of the flow table says nothing outside: the number of the flow in the summary does
            tables={
                name: [row | {"flow": numbers[row["flow"]]} if "flow" in row else row for row in rows]
                for name, rows in one.tables.items()
            },
        )
        for number, one in enumerate(found, 1)
    )
