"""The protocol's own analyser for one connection of a capture."""

from __future__ import annotations

from typing import Any

from ..core.wire import SCTP
from .capture import Capture
from .progress import progress_series
from .sctp import analyze_sctp
from .tcp import analyze_tcp


def analyze_flow(capture: Capture, flow: int, start_ns: int) -> dict[str, Any]:
    """`totals`, `series`, `events` and `tables` of a connection whose rows are in memory; times from start_ns."""
    if capture.flows["protocol"][flow] == SCTP:
        return _sctp(capture, flow, start_ns)
    return _tcp(capture, flow, start_ns)


def _tcp(capture: Capture, flow: int, start_ns: int) -> dict[str, Any]:
    found = analyze_tcp(capture, flow, t0_ns=start_ns)
    return {
        "totals": found.totals,
        "series": progress_series(capture, flow, found.data_direction, start_ns) | found.series,
        "events": found.events,
    }


def _sctp(capture: Capture, flow: int, start_ns: int) -> dict[str, Any]:
    found = analyze_sctp(capture, flow, t0_ns=start_ns)
    about = {"data_direction": found.direction, "point": found.point, "ending": found.ended}
    return {
        "totals": about | found.totals,
        "series": progress_series(capture, flow, found.direction, start_ns) | found.series,
        "events": found.events,
        "tables": found.tables,
    }
