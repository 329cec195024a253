"""The first data packet that differs between two runs of a cell: when it leaves, by which path, or its content."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..captures.native import Bools, Ints
from ..core.numbers import fixed
from ..core.timer_wheel import HZ, slot_s
from ..core.types import Cell
from ..store.run_dir import CellDir
from .capture_point import CapturePoint, captured_links, read_point
from .cell_records import read_cell_records
from .flow_packets import FlowPackets, packets_at_both_ends


@dataclass(frozen=True, slots=True)
class Sent:
    """A data packet as it leaves its sender: time (s from T0), path, whether a retransmission, and the time since the
    last packet that came back (None: none had).
    """

    t_s: float
    path: str
    retransmission: bool
    since_back_s: float | None

    def __str__(self) -> str:
        what = "a retransmission" if self.retransmission else "new data"
        return f"{what} on {self.path} at {fixed(self.t_s, 6)} s"


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first data packets that differ. number: of the data packet, from 1. a, b: the packet in each run; None: that
    run sends no more.
    """

    flow: str
    number: int
    a: Sent | None
    b: Sent | None

    def words(self, name_a: str, name_b: str) -> str:
        """A sentence."""
        ours, theirs = (f"{name} sends {sent or 'no more'}" for name, sent in ((name_a, self.a), (name_b, self.b)))
        sentence = f"the senders part at data packet {fixed(self.number, 0)}: {ours}, {theirs}"
        return sentence + self._timer()

    def _timer(self) -> str:
        """A hint for the case that both are retransmissions after a silence: the timer wheel's granularity may be the
        whole difference.
        """
        a, b = self.a, self.b
        if a is None or b is None or not (a.retransmission and b.retransmission):
            return ""
        if a.since_back_s is None or b.since_back_s is None:
            return ""
        later_ms = abs(b.t_s - a.t_s) * 1e3
        slot_ms = slot_s(min(a.since_back_s, b.since_back_s)) * 1e3
        within = "within" if later_ms <= slot_ms else "beyond"
        return (
            f" ({fixed(a.since_back_s, 3)} and {fixed(b.since_back_s, 3)} s after the last packet back: "
            f"{fixed(later_ms, 0)} ms apart, {within} the {fixed(slot_ms, 0)} ms slot of "
            f"a timer of that length at {HZ} Hz)"
        )


def first_divergence(cell: Cell, a: CellDir, b: CellDir, flow_name: str, slack_s: float) -> Divergence | None:
    """The first data packet of a flow that differs between the senders' captures: in time by more than `slack_s`, in
    path, in payload, or in being a retransmission. None if there is none. Raises CaptureError.
    """
    first, second = (_sent(cell, directory, flow_name) for directory in (a, b))
    both = min(len(first.t_ns), len(second.t_ns))
    unlike: Bools = np.abs(first.t_ns[:both] - second.t_ns[:both]) > int(slack_s * 1e9)
    for x, y in ((first.path, second.path), (first.payload, second.payload), (first.again, second.again)):
        unlike |= x[:both] != y[:both]
    at = int(np.argmax(unlike)) if unlike.any() else both
    if at == len(first.t_ns) == len(second.t_ns):
        return None
    return Divergence(flow_name, at + 1, first.packet(at), second.packet(at))


@dataclass(frozen=True, slots=True)
class _Sender:
    """The data packets in the order they left, and the times at which packets came back."""

    t_ns: Ints
    path: Ints
    payload: Ints
    again: Bools
    back_ns: Ints
    names: list[str]

    def packet(self, at: int) -> Sent | None:
        if at >= len(self.t_ns):
            return None
        before = int(np.searchsorted(self.back_ns, self.t_ns[at], side="right"))
        since = (self.t_ns[at] - self.back_ns[before - 1]) / 1e9 if before else None
        name = self.names[int(self.path[at])]
        return Sent(float(self.t_ns[at]) / 1e9, name, bool(self.again[at]), None if since is None else float(since))


def _sent(cell: Cell, directory: CellDir, flow_name: str) -> _Sender:
    flow = next(flow for flow in cell.flows if flow.name == flow_name)
    records = read_cell_records(directory.init_log)
    left = records.checksums_left
    points: list[CapturePoint | None] = []
    for node in (flow.sender, flow.receiver):
        links = captured_links(cell, node)
        points.append(read_point(directory.root, node, links, host=True, unfinished=left) if links else None)
    sender, _, names = packets_at_both_ends(flow, points[0], points[1], records.ready.t0_realtime_ns)
    if sender is None:
        empty = np.zeros(0, dtype=np.int64)
        return _Sender(empty, empty, empty, empty.astype(np.bool_), empty, names)
    return _data_packets(sender, names)


def _data_packets(sender: FlowPackets, names: list[str]) -> _Sender:
    data = sender.data
    keep = data.payload_bytes > 0
    return _Sender(
        data.t_ns[keep], data.path[keep], data.payload_bytes[keep], data.retransmission[keep],
        np.sort(sender.back.t_ns), names,
    )  # fmt: skip
