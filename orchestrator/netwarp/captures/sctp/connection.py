"""`analyze_sctp`: the complete analysis of one association. Definitions: docs/metrics.md, "SCTP"."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from ...core.wire import SCTP
from ..capture import Capture
from .association import Association, ending, restarted
from .events import events
from .tables import tables
from .totals import Series, series, totals


@dataclasses.dataclass(frozen=True, eq=False)
class SctpAssociation:
    """The analysis of one association; docs/metrics.md, "SCTP", defines every name.

    flow: row of the capture's flow table. from_, to: ends of the data direction, "address:port". point: see
    Association.point. ended: "shutdown", "abort" or "open" (its end is not in the capture). t0_ns: origin of times.
    parts: the arrays from which the rest is computed. Totals, series, events and tables are computed when first
    accessed.
    """

    flow: int
    direction: int
    from_: str
    to: str
    point: str
    ended: str
    restart_of: int | None
    t0_ns: int
    parts: Association = dataclasses.field(repr=False)

    @functools.cached_property
    def totals(self) -> dict[str, float | int | None]:
        """Numbers; None if there is nothing to measure or this capture point cannot show it."""
        return totals(self.parts)

    @functools.cached_property
    def series(self) -> Series:
        """Name -> (seconds, values)."""
        return series(self.parts, self.t0_ns)

    @functools.cached_property
    def events(self) -> list[dict[str, Any]]:
        """{t_s, what, path, ...}, sorted by time."""
        return events(self.parts, self.t0_ns)

    @functools.cached_property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Rows as dictionaries: paths, chunks, streams, payloads, bundling, fragmentation, outages, causes."""
        return tables(self.parts, self.t0_ns)

    def __eq__(self, other: object) -> bool:
        """True if both have equal results, apart from the origin of times."""
        return isinstance(other, SctpAssociation) and self._compared() == other._compared()

    __hash__ = None  # type: ignore[assignment]

    def _compared(self) -> tuple[object, ...]:
        about = (self.flow, self.direction, self.from_, self.to, self.point, self.ended, self.restart_of)
        return (*about, self.totals, self.events, self.tables)


def analyze_sctp(
    capture: Capture,
    flow: int,
    *,
    direction: int | None = None,
    receiver: Capture | None = None,
    t0_ns: int | None = None,
) -> SctpAssociation:
    """Analyse one association of a capture point.

    capture: read with all row tables. flow: row of its flow table. direction: of the data (0: from the initiator); by
    default the one with more user data. receiver: capture of the same run at the data's receiver; it shows what really
    arrived twice, not only what was reported. t0_ns: origin of times (default: the first packet). Raises ValueError if
    that row is not an SCTP association.
    """
    if not 0 <= flow < len(capture.flows) or capture.flows["protocol"][flow] != SCTP:
        raise ValueError(f"flow {flow} is no SCTP association of {capture.files}")
    association = Association(capture, flow, direction=direction, receiver=receiver)
    start = int(capture.sources["first_ns"][capture.sources["packets"] > 0].min()) if t0_ns is None else t0_ns
    first = int(association.row["path"])
    ends = [capture.address(first, int(association.row["path_direction"]) ^ end) for end in (0, 1)]
    names = [f"{address}:{port}" for address, port in zip(ends, association.row["port"].tolist(), strict=True)]
    return SctpAssociation(
        flow=flow,
        direction=association.direction,
        from_=names[association.direction],
        to=names[1 - association.direction],
        point=association.point,
        ended=ending(association),
        restart_of=restarted(association),
        t0_ns=start,
        parts=association,
    )
