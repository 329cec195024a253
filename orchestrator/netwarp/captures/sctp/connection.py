"""`analyze_sctp`: the complete analysis of one association. Definitions: docs/metrics.md, "SCTP"."""

from __future__ import annotations

import functools
from typing import Any

from ...core.wire import ABORT, SCTP, SHUTDOWN, SHUTDOWN_COMPLETE
from ..capture import Capture
from ..native import NONE
from .association import Association
from .tables import events, tables
from .totals import Series, Totals, series, totals


class SctpAssociation(Association):
    """An association with its numbers; times count from t0_ns (default: the capture's first packet)."""

    def __init__(self, capture: Capture, flow: int, direction: int | None, t0_ns: int | None) -> None:
        super().__init__(capture, flow, direction=direction)
        self.t0_ns = capture.first_ns if t0_ns is None else t0_ns
        kinds = (len(self.columns.of_type(kind)) for kind in (SHUTDOWN, SHUTDOWN_COMPLETE))
        # "open": its end is not in the capture
        self.ended = "abort" if len(self.columns.of_type(ABORT)) else "shutdown" if all(kinds) else "open"
        # the flow that this association restarted (RFC 9260 5.2.2)
        self.restart_of = None if self.row["restart_of"] == NONE else int(self.row["restart_of"])
        path, turned = int(self.row["path"]), int(self.row["path_direction"])
        names = [f"{capture.address(path, turned ^ end)}:{port}" for end, port in enumerate(self.row["port"].tolist())]
        self.from_, self.to = names[self.direction], names[1 - self.direction]

    @functools.cached_property
    def totals(self) -> Totals:
        """Numbers; None if there is nothing to measure or this capture point cannot show it."""
        return totals(self)

    @functools.cached_property
    def series(self) -> Series:
        """Name -> (seconds, values)."""
        return series(self, self.t0_ns)

    @functools.cached_property
    def events(self) -> list[dict[str, Any]]:
        """{t_s, what, path, ...}, sorted by time."""
        return events(self, self.t0_ns)

    @functools.cached_property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Rows as dictionaries: paths, chunks, streams, payloads, bundling, fragmentation, outages, causes."""
        return tables(self, self.t0_ns)


def analyze_sctp(
    capture: Capture, flow: int, *, direction: int | None = None, t0_ns: int | None = None
) -> SctpAssociation:
    """Analyse one association of a capture point (read with all row tables). flow: row of its flow table. direction: of
    the data (0: from the initiator); by default the one with more user data. Raises ValueError if that row is not an
    SCTP association.
    """
    if not 0 <= flow < len(capture.flows) or capture.flows["protocol"][flow] != SCTP:
        raise ValueError(f"flow {flow} is no SCTP association of {capture.files}")
    return SctpAssociation(capture, flow, direction, t0_ns)
