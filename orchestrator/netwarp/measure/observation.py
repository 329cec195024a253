"""The observation of one flow at both of its ends: every group of metrics is computed from it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from ..captures.mptcp.subflows import Lifetime, SubflowGroup, lifetimes, subflow_groups
from ..captures.native import Bools, Ints
from ..captures.time_spans import by, longest_gap
from ..core.types import Cell, Flow
from ..store.app_records import AppRecord, Connected, Lost, Schedule, Summary
from ..store.derived import PageObject
from ..store.init_records import Exit
from ..store.ndjson import last, of_kind
from ..testbed.message_files import listed, rows_of
from .datagram_flows import DatagramFlow
from .delivery import Delivery, SentMessages, datagram_messages, delivered, messages_of, stream_messages
from .flow_packets import FlowPackets, PacketColumns
from .kernel_samples import PathSamples
from .page_objects import page_objects
from .planned_paths import Fault, faults_met, links_of
from .sent_data import AckedData, arrival_of_first_sent_since, outstanding_of
from .timetable import Timetable

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Window:
    """The time that counts. first_ns: arrival of the first payload (None: none arrived); end_ns: the last instant that
    counts (None: the flow has no end yet); complete: a flow with a number of bytes has received all of them.
    """

    first_ns: int | None = None
    end_ns: int | None = None
    complete: bool = False

    def holds(self, t_ns: Ints) -> Bools:
        """The instants (from T0) that are not after the end."""
        return by(t_ns, self.end_ns)

    def runs(self, from_ns: int, to_ns: int, duration_ns: int) -> bool:
        """True if the flow runs all that time: its first payload arrived by its beginning, and it ends at its end at
        the earliest (without an end: with the cell).
        """
        end_ns = duration_ns if self.end_ns is None else self.end_ns
        return self.first_ns is not None and self.first_ns <= from_ns and end_ns >= to_ns

    def until_ns(self, packets: FlowPackets) -> int | None:
        """The end as times of captures are, ns since 1970."""
        return None if self.end_ns is None else packets.t0_realtime_ns + self.end_ns


@dataclasses.dataclass(frozen=True)
class Moments:
    """Instants around the flow's first fault, ns from T0; None if it did not happen. path_in_use: the path of the last
    new payload before the fault; hit: whether the fault is on that path.
    """

    fault: Fault | None = None
    path_in_use: int | None = None
    hit: bool = False
    first_retransmission_other_path_ns: int | None = None
    first_new_sent_other_path_ns: int | None = None
    first_useful_arrival_other_path_ns: int | None = None
    first_new_after_repair_ns: int | None = None

    @property
    def hit_path(self) -> int | None:
        """The path in use when the fault began, if the fault is on it."""
        return self.path_in_use if self.hit else None


@dataclasses.dataclass(frozen=True, eq=False)
class FlowObservation:
    """One flow of a cell. sender, receiver: its packets at both ends (None: no capture there). path_names: by index of
    a path. samples: of the sender's socket, by path name. sender_records: the records of the sending application; their
    times count from t0_monotonic_ns.
    """

    cell: Cell
    flow: Flow
    sender: FlowPackets | None = None
    receiver: FlowPackets | None = None
    path_names: Sequence[str] = ()
    window: Window = Window()
    moments: Moments = Moments()
    samples: Mapping[str, PathSamples] = dataclasses.field(default_factory=dict)
    sender_records: list[AppRecord] = dataclasses.field(default_factory=list)
    receiver_records: list[AppRecord] = dataclasses.field(default_factory=list)
    t0_monotonic_ns: int = 0
    peer: FlowObservation | None = None
    """Of a flow whose messages answer those of the other direction: that direction, with no `peer` of its own."""

    datagrams: DatagramFlow | None = None
    """Of netwarp's own UDP: its datagrams."""

    _known: dict[Callable[..., object], object] = dataclasses.field(default_factory=dict, repr=False)

    def once(self, function: Callable[[FlowObservation], Result]) -> Result:
        """What a function makes of this observation, computed when it is first asked for: a group of metrics takes
        what it needs of another group so.
        """
        if function not in self._known:
            self._known[function] = function(self)
        return self._known[function]  # type: ignore[return-value]

    @functools.cached_property
    def sent(self) -> PacketColumns | None:
        """The packets that the sender sent within the window."""
        return None if self.sender is None else self.sender.data.until(self.window.end_ns)

    @functools.cached_property
    def arrived(self) -> PacketColumns | None:
        """The packets that arrived at the receiver within the window."""
        return None if self.receiver is None else self.receiver.data.until(self.window.end_ns)

    @functools.cached_property
    def delivery(self) -> Delivery | None:
        """The data that the receiving application could read. None for programs of the user's own: only of netwarp's
        own messages is it known which bytes belong together.
        """
        return None if self.receiver is None or self.flow.program else delivered(self.receiver, self.flow.protocol)

    @functools.cached_property
    def messages(self) -> SentMessages | None:
        """The messages of netwarp's own programs; None where the captures do not tell them."""
        if self.datagrams is not None:
            return datagram_messages(self.datagrams, self.timetable)
        if self.sender is None or self.receiver is None or self.delivery is None:
            return None
        if of_kind(self.sender_records, Lost):  # each connection has messages of its own
            return None
        if self.flow.protocol == "sctp":
            return messages_of(self.flow, self.sender, self.receiver, self.timetable)
        return stream_messages(self.flow, self.sender, self.delivery, self.timetable)

    @functools.cached_property
    def timetable(self) -> Timetable:
        """When each message of netwarp's own programs was due."""
        if listed(self.flow) is None:
            return Timetable(self.flow, self.connected_ns)
        rows = np.array(rows_of(self.cell, self.flow), dtype=np.int64).reshape(-1, 3)
        schedule = last(self.sender_records, Schedule)
        peer = None if self.peer is None or self.peer.messages is None else self.peer.messages.delivered_ns
        left_out = 0 if schedule is None else schedule.left_out
        return Timetable(self.flow, self.connected_ns, rows[:, 0], rows[:, 1], left_out, peer)

    @functools.cached_property
    def page_objects(self) -> list[PageObject]:
        """The objects of a flow's pages, by the client's captures."""
        if not self.flow.is_page or self.receiver is None:
            return []
        return page_objects(self.flow, self.receiver, self.receiver_records, self.t0_monotonic_ns)

    @functools.cached_property
    def outstanding(self) -> AckedData | None:
        """The data that the sender had sent and that was not yet acknowledged."""
        return None if self.sender is None else outstanding_of(self.flow, self.sender)

    @functools.cached_property
    def subflows(self) -> Sequence[Lifetime]:
        """The MPTCP subflows at the sender, until the end of the window."""
        if self.sender is None or self.flow.protocol != "mptcp":
            return ()
        capture, end_ns = self.sender.point.capture, self.window.until_ns(self.sender)
        return [subflow for group in mptcp_groups(self.sender) for subflow in lifetimes(capture, group, end_ns)]

    @functools.cached_property
    def connected_ns(self) -> int | None:
        """The time at which the sending application was connected, from T0."""
        connected = of_kind(self.sender_records, Connected)
        return connected[0].t_ns - self.t0_monotonic_ns if connected else None

    @functools.cached_property
    def longest_gap(self) -> tuple[int, int] | None:
        """Begin and end (ns) of the longest gap between two arrivals of new payload that overlaps a fault the flow
        meets.

        None: no fault; nothing arrived after it; or the longest silence lasts to the end of the window, so that the
        length of the outage is not known.
        """
        data, end_ns = self.arrived, self.window.end_ns
        if data is None:
            return None
        t_ns = data.t_ns[data.new_bytes > 0]
        longest: tuple[int, int] | None = None
        silence = 0
        for fault in faults_met(self.cell, self.flow):
            to_ns = fault.to_ns if fault.to_ns is not None else self.cell.duration_ns
            if len(t_ns) and t_ns[-1] <= to_ns and end_ns is not None and end_ns >= fault.from_ns:
                silence = max(silence, end_ns - int(t_ns[-1]))
            gap = longest_gap(t_ns, fault.from_ns, to_ns)
            if gap is not None and (longest is None or gap[1] - gap[0] > longest[1] - longest[0]):
                longest = gap
        return longest if longest is not None and longest[1] - longest[0] >= silence else None


def goodput_known(flows: Iterable[FlowObservation]) -> bool:
    """True if the captures tell how much of their bytes is new payload. Of QUIC, which is encrypted, they do not: then
    flows are compared by their throughput, all of them.
    """
    return all(flow.flow.protocol != "quic" for flow in flows)


def end_ns(observation: FlowObservation) -> int:
    """The end of the time in which a message may be delivered: of the window, or of the cell where that has none."""
    end = observation.window.end_ns
    return observation.cell.duration_ns if end is None else end


def mptcp_groups(packets: FlowPackets) -> list[SubflowGroup]:
    """The MPTCP connections of a flow at one end; each is a group of subflows."""
    return [group for group in subflow_groups(packets.point.capture) if group.flows[0] in packets.data_direction]


def first_ns(t_ns: Ints, condition: Bools) -> int | None:
    """The first instant at which a condition holds."""
    places = np.flatnonzero(condition)
    return int(t_ns[places[0]]) if len(places) else None


def program_end(flow: Flow, exits: Mapping[str, Exit]) -> tuple[int, bool] | None:
    """When the user's program that connects ended by itself, in ns from T0, and whether with status 0; None: it did
    not, or was asked to at the flow's stop.
    """
    ended = exits.get(f"{flow.name}.{flow.opener}")
    if flow.program is None or ended is None or ended.t_ns is None or ended.killed or ended.signal is not None:
        return None
    known = ended.t_ns > flow.start_ns and (flow.stop_ns is None or ended.t_ns < flow.stop_ns)
    return (ended.t_ns, ended.status == 0) if known else None


def program_window(flow: Flow, t_ns: Ints, program: tuple[int, bool] | None) -> Window:
    """The window of a program whose payload (of datagrams: packets) arrived at these times: up to its exit or, where
    the kernel still sent what it had written, its last packet; at most to the flow's stop.
    """
    first = int(t_ns[0]) if len(t_ns) else None
    if program is None:
        return Window(first, flow.stop_ns, False)
    end = max(program[0], int(t_ns[-1]) if len(t_ns) else 0)
    stopped = flow.stop_ns is not None and end >= flow.stop_ns
    return Window(first, flow.stop_ns if stopped else end, program[1] and not stopped)


BROKEN = ("gave_up", "stalled", "peer_closed", "peer_aborted", "failed")
"""Reasons of a sender whose connection ended before its own end did."""


def is_break(flow: Flow, reason: str | None) -> bool:
    """True if a sender that ended for this reason lost its connection. One that did not open the connection ends when
    its peer closes it (a flow's other direction).
    """
    return reason in BROKEN and (reason != "peer_closed" or flow.opener == "sender")


def broke_ns(flow: Flow, records: Sequence[AppRecord], t0_monotonic_ns: int) -> int | None:
    """When a sender's connection broke for good (it never came up, was given up, reset or closed by its peer, or made
    no progress), from T0; None: it did not.
    """
    summary = last(records, Summary)
    return summary.t_ns - t0_monotonic_ns if summary is not None and is_break(flow, summary.reason) else None


def window_of(
    flow: Flow, receiver: FlowPackets | None, program: tuple[int, bool] | None = None, *, gone_ns: int | None = None
) -> Window:
    """The window: up to the stop of a timed flow, up to the arrival of the byte that completes a flow with a number of
    bytes, or up to the end of a program (program_end) that ended by itself. A flow that does not get all of its bytes
    through lasts until its end: gone_ns, where its connection broke or else the cell ends (None: not known).
    """
    if receiver is None:
        return Window(None, flow.stop_ns, False)
    fresh = np.flatnonzero(receiver.data.new_bytes > 0)
    t_ns, payload = receiver.data.t_ns[fresh], receiver.data.new_bytes[fresh]
    if flow.program is not None:
        return program_window(flow, t_ns, program)
    first = int(t_ns[0]) if len(t_ns) else None
    end = flow.stop_ns
    complete = False
    if flow.total_bytes is not None and len(t_ns):
        total = np.cumsum(payload)
        complete = bool(total[-1] >= flow.total_bytes)
        if complete:
            done = int(t_ns[np.searchsorted(total, flow.total_bytes)])
            complete = end is None or done <= end
            end = done if complete else end
    if flow.total_bytes is not None and not complete and gone_ns is not None:
        end = gone_ns if end is None else min(end, gone_ns)
    return Window(first, end, complete)


def moments_of(
    cell: Cell, flow: Flow, sender: FlowPackets | None, receiver: FlowPackets | None, window: Window
) -> Moments:
    """The moments around the first fault that the flow meets."""
    faults = faults_met(cell, flow)
    if not faults:
        return Moments()
    fault = faults[0]
    after_repair = None
    if receiver is not None and fault.to_ns is not None:
        data = receiver.data.until(window.end_ns)
        after_repair = first_ns(data.t_ns, (data.new_bytes > 0) & (data.t_ns > fault.to_ns))
    if sender is None:
        return Moments(fault, first_new_after_repair_ns=after_repair)
    data = sender.data.until(window.end_ns)
    fresh = data.new_bytes > 0
    before = np.flatnonzero(fresh & (data.t_ns < fault.from_ns))
    in_use = int(data.path[before[-1]]) if len(before) else None
    hit = in_use is not None and (in_use >= len(flow.paths) or fault.link in links_of(cell, flow, flow.paths[in_use]))
    if not hit:
        return Moments(fault, in_use, first_new_after_repair_ns=after_repair)
    elsewhere = (data.path != in_use) & (data.t_ns >= fault.from_ns)
    failover = None
    if receiver is not None:
        arrived = receiver.data
        there = (arrived.path != in_use) & (arrived.new_bytes > 0) & (arrived.t_ns >= fault.from_ns)
        there &= window.holds(arrived.t_ns)
        failover = arrival_of_first_sent_since(sender, receiver, flow.protocol, there, fault.from_ns)
    return Moments(
        fault=fault,
        path_in_use=in_use,
        hit=True,
        first_retransmission_other_path_ns=first_ns(data.t_ns, elsewhere & data.other_path),
        first_new_sent_other_path_ns=first_ns(data.t_ns, elsewhere & fresh),
        first_useful_arrival_other_path_ns=failover,
        first_new_after_repair_ns=after_repair,
    )
