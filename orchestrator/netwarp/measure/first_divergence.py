"""The first data packet that differs between two runs of a cell: when it leaves, by which path, or its content."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..captures.native import Bools, Ints
from ..captures.time_spans import kept
from ..core.numbers import fixed
from ..core.timer_wheel import HZ, slot_s
from ..core.types import Cell
from ..store.run_dir import CellDir
from .capture_point import CapturePoint, captured_links, read_point
from .cell_records import read_cell_records
from .flow_packets import PacketColumns, packets_at_both_ends


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
    path, in payload, or in being a retransmission. None if there is none, or no capture. Raises CaptureError.
    """
    first, second = (_sent(cell, directory, flow_name) for directory in (a, b))
    if first is None or second is None:
        return None
    x, y = first.data, second.data
    both = min(len(x.t_ns), len(y.t_ns))
    unlike: Bools = np.abs(x.t_ns[:both] - y.t_ns[:both]) > int(slack_s * 1e9)
    for column in ("path", "payload_bytes", "retransmission"):
        unlike |= getattr(x, column)[:both] != getattr(y, column)[:both]
    at = int(np.argmax(unlike)) if unlike.any() else both
    if at == len(x.t_ns) == len(y.t_ns):
        return None
    return Divergence(flow_name, at + 1, first.packet(at), second.packet(at))


@dataclass(frozen=True, slots=True)
class _Sender:
    """The data packets in the order they left, the times at which packets came back, and the names of the paths."""

    data: PacketColumns
    back_ns: Ints
    names: list[str]

    def packet(self, at: int) -> Sent | None:
        if at >= len(self.data.t_ns):
            return None
        t_ns = int(self.data.t_ns[at])
        before = int(np.searchsorted(self.back_ns, t_ns, side="right"))
        since_s = (t_ns - int(self.back_ns[before - 1])) / 1e9 if before else None
        return Sent(t_ns / 1e9, self.names[int(self.data.path[at])], bool(self.data.retransmission[at]), since_s)


def _sent(cell: Cell, directory: CellDir, flow_name: str) -> _Sender | None:
    flow = next(flow for flow in cell.flows if flow.name == flow_name)
    records = read_cell_records(directory.init_log)
    points: list[CapturePoint | None] = []
    for node in (flow.sender, flow.receiver):
        links = captured_links(cell, node)
        left = records.checksums_left
        points.append(read_point(directory.root, node, links, host=True, unfinished=left) if links else None)
    sender, _, names = packets_at_both_ends(flow, points[0], points[1], records.ready.t0_realtime_ns)
    if sender is None:
        return None
    return _Sender(kept(sender.data, sender.data.payload_bytes > 0), np.sort(sender.back.t_ns), names)
