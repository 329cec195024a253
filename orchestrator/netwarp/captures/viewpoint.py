"""Where and how a capture was taken, inferred before anything is said of its connections; told in one place."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from ..core.numbers import in_short
from ..core.units import counted
from .capture import NEAR
from .connection import Connection, Connections
from .stream import CapturedStream


@dataclasses.dataclass(frozen=True)
class Viewpoint:
    """captured_at: addresses of the host that captured; by: `said`, or how many connections' handshakes show it (0: it
    is not known). one_way: connections of which one end's packets are missing; incomplete: those of which data are
    acknowledged and not captured; middle: those captured on the way; copies: packets left out; set_back_s: of the
    capturing clock.
    """

    captured_at: tuple[str, ...]
    said: bool
    by: int
    middle: int
    one_way: int
    incomplete: int
    copies: int
    set_back_s: float

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md."""
        return dataclasses.asdict(self) | {"captured_at": list(self.captured_at)}

    @property
    def words(self) -> str:
        """One line."""
        where = " and ".join(self.captured_at)
        if where:
            place = (
                f"at {where} ({'as --captured-at says' if self.said else 'by the round trips of ' + self._handshakes})"
            )
        elif self.middle:
            place = f"between the ends (by the round trips of {counted(self.middle, 'handshake')})"
        else:
            place = "at an unknown point (--captured-at says it)"
        parts = [f"captured {place}"]
        if self.one_way:
            parts.append(f"of {counted(self.one_way, 'connection')} one direction alone")
        if self.incomplete:
            parts.append(f"of {counted(self.incomplete, 'connection')} not all packets")
        if self.copies:
            parts.append(f"{counted(self.copies, 'copy', 'copies')} left out")
        if self.set_back_s:
            parts.append(f"its clock set back by {in_short(self.set_back_s, 's')}")
        return "; ".join(parts)

    @property
    def _handshakes(self) -> str:
        return counted(self.by, "handshake")


def viewpoint(stream: CapturedStream, connections: Connections) -> Viewpoint:
    """By the connections that are looked at in depth."""
    capture = stream.capture
    at: Counter[str] = Counter()
    one_way = incomplete = middle = 0
    for connection in connections.in_depth():
        totals = connection.totals
        end, between = _end(connection)
        if end is not None:
            at[connection.ends[end].rpartition(":")[0].strip("[]")] += 1
        middle += between
        one_way += connection.facts["unseen_end"] is not None
        names = ("acknowledged_unseen_bytes", "acknowledged_unseen_chunks")
        incomplete += any(totals.get(f"{which}{name}") for name in names for which in ("", "reverse_"))
    most = at.most_common(1)[0][1] if at else 0
    return Viewpoint(
        captured_at=capture.captured_at or tuple(sorted(address for address, count in at.items() if count == most)),
        said=bool(capture.captured_at),
        by=most,
        middle=middle,
        one_way=one_way,
        incomplete=incomplete,
        copies=int(capture.sources["copies"].sum()) if not capture.flows["copies"].any() else 0,
        set_back_s=int(capture.sources["set_back_ns"].sum()) / 1e9,
    )


def _end(connection: Connection) -> tuple[int | None, bool]:
    """The end at which the capture was taken; and whether it was between the ends."""
    totals = connection.totals
    direction = int(totals.get("data_direction") or 0)
    if connection.protocol == "sctp":
        point = totals.get("point")
        return {"sender": direction, "receiver": 1 - direction}.get(str(point)), point == "middle"
    ratio = totals.get("capture_point_ratio")
    if ratio is None:
        return None, False
    return (direction if ratio < NEAR else 1 - direction if ratio > 1 - NEAR else None), NEAR <= ratio <= 1 - NEAR
