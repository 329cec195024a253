"""SCTP associations (RFC 9260): what a capture tells of them beyond the tables (docs/metrics.md, "SCTP")."""

from __future__ import annotations

from ..capture import Capture
from .association import Association, SctpAssociation, ending, restarted
from .events import events
from .tables import tables
from .totals import series, totals

__all__ = ["Association", "SctpAssociation", "analyze_sctp"]


def analyze_sctp(
    capture: Capture,
    flow: int,
    *,
    direction: int | None = None,
    receiver: Capture | None = None,
    t0_ns: int | None = None,
) -> SctpAssociation:
    """Everything about one association of a capture point.

    capture: read with all row tables. flow: row of its flow table. direction: of the data to look at (0: from the
    initiator); by default the one with more user data. receiver: capture of the same run at the data's receiver: then
    what arrived twice is known, not only what was reported. t0_ns: what times count from (default: the first packet).
    Raises ValueError: that row is no SCTP association.
    """
    if not 0 <= flow < len(capture.flows) or capture.flows["protocol"][flow] != 132:
        raise ValueError(f"flow {flow} is no SCTP association of {capture.files}")
    found = Association(capture, flow, direction=direction, receiver=receiver)
    start = int(capture.sources["first_ns"][capture.sources["packets"] > 0].min()) if t0_ns is None else t0_ns
    first = int(found.row["path"])
    ends = [capture.address(first, int(found.row["path_direction"]) ^ end) for end in (0, 1)]
    names = [f"{address}:{port}" for address, port in zip(ends, found.row["port"].tolist(), strict=True)]
    return SctpAssociation(
        flow=flow,
        direction=found.direction,
        from_=names[found.direction],
        to=names[1 - found.direction],
        point=found.point,
        ended=ending(found),
        restart_of=restarted(found),
        totals=totals(found),
        series=series(found, start),
        events=events(found, start),
        tables=tables(found, start),
        parts=found,
    )
