"""The datagrams of netwarp's own UDP senders, found by addresses and port, told apart by the number in their payload
(apps/traffic/pattern.h): which arrived, when, how often, in which order.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..captures.native import Bools, Ints, Rows
from ..core.types import Cell, Flow
from ..core.wire import ECN_MASK
from ..store.app_records import AppRecord, Options
from ..store.ndjson import last
from ..testbed.layout import make_layout
from .capture_point import CapturePoint
from .timetable import NEVER

NUMBERS = 1 << 32
"""A payload holds that many different numbers of messages."""


@dataclasses.dataclass(frozen=True, eq=False)
class Datagrams:
    """Datagrams in the order of a capture; times in ns from T0. number: of the message."""

    t_ns: Ints
    number: Ints
    ip_bytes: Ints
    payload_bytes: Ints
    codepoint: Ints
    """Of ECN (RFC 3168 5)."""

    def of(self, mine: Bools) -> Datagrams:
        """Some of them."""
        return Datagrams(**{field.name: getattr(self, field.name)[mine] for field in dataclasses.fields(self)})

    @property
    def first(self) -> Bools:
        """The first of each number: not a copy that came again."""
        first = np.zeros(len(self.number), dtype=np.bool_)
        first[np.unique(self.number, return_index=True)[1]] = True
        return first


@dataclasses.dataclass(frozen=True, eq=False)
class DatagramFlow:
    """The datagrams of a flow at both ends. sent: as they left, each number once. arrived_ns: when each of these first
    arrived, NEVER if it did not. known: False for those of which the capture ended too early to tell.
    """

    sent: Datagrams
    arrived: Datagrams
    arrived_ns: Ints
    known: Bools

    @property
    def repeated(self) -> int:
        """Arrivals of a datagram that had arrived before."""
        return int((~self.arrived.first).sum())

    @property
    def reordered(self) -> int:
        """Arrivals with a smaller number than one that came before (RFC 4737 3.2), repetitions aside."""
        numbers = self.arrived.number[self.arrived.first]
        return int((numbers < np.maximum.accumulate(numbers)).sum()) if len(numbers) else 0


def datagrams_at(cell: Cell, flow: Flow, point: CapturePoint, token: int, t0_realtime_ns: int) -> Datagrams:
    """The datagrams from the flow's sender to its receiver's port at one capture point. token: of its payload."""
    layout, path = make_layout(cell), flow.paths[0]
    pair = (layout.interface(flow.sender, path.sender_link).ip, layout.interface(flow.receiver, path.receiver_link).ip)
    rows: Rows = point.capture.datagrams
    rows = rows[point.between(rows, *pair) & (rows["destination_port"] == flow.port)]
    head = rows["head"] ^ np.uint64(token)
    return Datagrams(
        rows["time_ns"].astype(np.int64) - t0_realtime_ns,
        (head & np.uint64(NUMBERS - 1)).astype(np.int64),
        rows["ip_bytes"].astype(np.int64),
        rows["payload_bytes"].astype(np.int64),
        (point.capture.packets["tos"][rows["packet"]] & ECN_MASK).astype(np.int64),
    )


def token_of(records: list[AppRecord]) -> int | None:
    """The token of the payload, as an app was told it; None if it left no options."""
    options = last(records, Options)
    return None if options is None else options.token


def datagram_flow_of(
    cell: Cell, flow: Flow, sender: CapturePoint, receiver: CapturePoint, token: int, t0_realtime_ns: int
) -> DatagramFlow:
    """What became of each datagram."""
    sent = datagrams_at(cell, flow, sender, token, t0_realtime_ns)
    came = datagrams_at(cell, flow, receiver, token, t0_realtime_ns)
    first = sent.first
    sent = sent.of(first)
    arrived = came.of(np.isin(came.number, sent.number))
    arrived_ns = np.full(len(sent.number), NEVER, dtype=np.int64)
    once = arrived.first
    order = np.argsort(sent.number, kind="stable")
    place = order[np.searchsorted(sent.number, arrived.number[once], sorter=order)]
    arrived_ns[place] = arrived.t_ns[once]
    there = arrived_ns != NEVER
    longest = int((arrived_ns[there] - sent.t_ns[there]).max(initial=0))
    packets = receiver.capture.packets
    end_ns = int(packets["time_ns"].max(initial=0)) - t0_realtime_ns
    end_ns = max(end_ns, cell.duration_ns)
    return DatagramFlow(sent, arrived, arrived_ns, there | (sent.t_ns + longest <= end_ns))


def jitter_ns(sent_ns: Ints, arrived_ns: Ints) -> float | None:
    """The mean of RFC 3550's interarrival jitter over the arrivals (6.4.1; A.8: J += (|D| - J) / 16), in the order of
    arrival; None for fewer than two.
    """
    if len(arrived_ns) < 2:
        return None
    order = np.argsort(arrived_ns, kind="stable")
    differences = np.abs(np.diff((arrived_ns - sent_ns)[order])).tolist()
    jitter = total = 0.0
    for difference in differences:
        jitter += (difference - jitter) / 16
        total += jitter
    return total / len(differences)
