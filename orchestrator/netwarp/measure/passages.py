"""Loss and queue delay of packets between two capture points: over the whole path of each flow, and over single links.

A packet is recognised by its fingerprint (captures/hop_joins.py, as `netwarp analyze --join` does). Its queue delay is
its one-way delay (RFC 7679) less what the links add without any queue: their one-way delays, and the sending times at
their rates (of links that events or a trace change, as they are when a packet comes). Jitter counts as queue delay with
its sign, and so does the wait for a delivery opportunity. A token bucket, which sends a packet after a pause at once,
counts as none.

A packet that did not come behind a link was lost there, or it waits there when the captures end. It was lost if one
came that it would have preceded. Of those after the last one that came, as many wait as the kernel's qdiscs hold.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import numpy as np
from msgspec.structs import replace as replaced

from ..captures.capture import read_captures
from ..captures.hop_joins import make_hop
from ..captures.native import NONE, Bools, Floats, Ints, Rows
from ..core.link_types import AckThinning, LinkImpairment, Slots
from ..core.topology import Crossing, DirectedLink, crossings
from ..core.types import BACK, Cell, Flow
from ..core.types import Path as FlowPath
from ..core.wire import ECN_MASK, IP_PROTOCOLS, UDP
from ..testbed.layout import Layout
from .capture_point import CapturePoint, capture_file
from .flow_packets import flow_rows
from .planned_paths import route_of

SHARES = (0.95, 0.99)
"""Of the packets, whose queue delay is shown."""
FOREVER_NS = 1 << 62
WIDEST_JITTERS = 4.0
"""Of a distribution's table (testbed/netem.py: LIMITS)."""
LONGEST_PACKET_BYTES = 65_549
GRAIN_NS = 2_000
"""A hop may be so much faster than its shape: the grain of times."""


@dataclasses.dataclass(frozen=True)
class Passages:
    """Packets before a link or path, in the order of time. t_s: when they came, from T0; delay_s: in queues, NaN: they
    did not come behind it; ip_bytes: their sizes. arrived_s: when they came behind it.
    """

    t_s: Floats
    delay_s: Floats
    ip_bytes: Ints
    arrived_s: Floats
    codepoint: Ints
    """Of ECN before the link; read where a link has DualPI2, else 0."""
    waiting: Bools
    """Those that wait, or may wait, when the captures end."""

    @property
    def came(self) -> Bools:
        """The packets that came behind the link or path."""
        return ~np.isnan(self.delay_s)

    @property
    def lost(self) -> Bools:
        """The packets that were lost."""
        return np.isnan(self.delay_s) & ~self.waiting

    def holding(self, packets: int) -> Passages:
        """These, where the qdiscs hold so many packets at the end: the first ones behind the last that came, then the
        last ones that it may have overtaken. The others were dropped.
        """
        there, may = np.flatnonzero(self.came), np.flatnonzero(self.waiting)
        behind = may[may > (there[-1] if len(there) else -1)]
        overtaken = may[: len(may) - len(behind)]
        kept = overtaken[max(0, len(overtaken) - max(0, packets - len(behind))) :]
        waiting = np.zeros_like(self.waiting)
        waiting[np.concatenate([kept, behind[:packets]])] = True
        return dataclasses.replace(self, waiting=waiting)

    def metrics(self) -> dict[str, float | None]:
        """Metrics of all of them; none of no packets."""
        if not len(self.t_s):
            return dict.fromkeys(NAMES)
        known = self.delay_s[self.came]
        through = len(self.t_s) - int(self.waiting.sum())
        late = np.quantile(known, SHARES).tolist() if len(known) else (None, None)
        return {
            "lost_packets": float(self.lost.sum()),
            "loss_ratio": float(self.lost.sum()) / through if through else None,
            "waiting_packets": float(self.waiting.sum()),
            "queue_delay_mean_s": float(known.mean()) if len(known) else None,
            "queue_delay_p95_s": late[0],
            "queue_delay_p99_s": late[1],
            "queue_delay_max_s": float(known.max()) if len(known) else None,
        }

    def within(self, from_ns: int, to_ns: int) -> Passages:
        """Those that came before the link or path from one instant on and before another."""
        inside = (self.t_s >= from_ns / 1e9) & (self.t_s < to_ns / 1e9)
        return Passages(**{field.name: getattr(self, field.name)[inside] for field in dataclasses.fields(self)})

    def span_metrics(self, from_ns: int, to_ns: int) -> dict[str, float | None]:
        """The metrics of those of a span, by their names there."""
        metrics = self.within(from_ns, to_ns).metrics()
        return {f"span_{name}": metrics[name] for name in ("loss_ratio", "queue_delay_mean_s", "queue_delay_p95_s")}


NAMES = (
    "lost_packets", "loss_ratio", "waiting_packets", "queue_delay_mean_s", "queue_delay_p95_s", "queue_delay_p99_s",
    "queue_delay_max_s",
)  # fmt: skip


def joined(passages: Sequence[Passages]) -> Passages:
    """The packets of several flows, in the order of time."""
    if not passages:
        nothing = np.zeros(0)
        none = np.zeros(0, dtype=np.int64)
        return Passages(nothing, nothing, none, nothing, none, none.astype(np.bool_))
    order = np.argsort(np.concatenate([each.t_s for each in passages]), kind="stable")
    columns = (field.name for field in dataclasses.fields(Passages))
    return Passages(**{name: np.concatenate([getattr(each, name) for each in passages])[order] for name in columns})


class PassageReader:
    """Reads the passages of a cell's flows; each capture is read once."""

    def __init__(
        self, cell: Cell, cell_dir: Path, layout: Layout, t0_realtime_ns: int,
        held: Mapping[tuple[str, str], int] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """held: the packets that the qdiscs of each direction hold at the end (groups/counters.py: held_packets)."""
        self._cell, self._dir, self._layout, self._t0_ns = cell, cell_dir, layout, t0_realtime_ns
        self._held = held
        self._points: dict[tuple[str, str], CapturePoint | None] = {}
        self._shapes = shapes_over_time(cell)
        self._two_queues = any(map(two_queues, cell.shapes.values()))
        self._ports = {
            flow.port
            for flow in cell.flows
            if flow.protocol == "quic" or (flow.protocol == "udp" and flow.program is None)
        }
        """Of QUIC and of netwarp's own UDP, whose flows are told apart by them."""

    def of_flow(self, flow: Flow) -> Passages:
        """The packets of a flow from its sender to its receiver, over all its planned paths."""
        whole: list[Passages] = []
        for path in flow.paths:
            route = self._route(flow, path, back=False)
            ends = (flow.sender, path.sender_link), (flow.receiver, path.receiver_link)
            found = self._passages(flow, path, route, *ends, back=False, first=self._hides(route))
            whole += (self._of_those_held(each, (flow.name, path.name), route) for each in found)
        return joined(whole)

    def _of_those_held(self, passages: Passages, own: tuple[str, str], route: Sequence[DirectedLink]) -> Passages:
        """Packets of a flow over a path, of which those wait that are among the first of all that may wait on its
        links: as many as the qdiscs there hold.
        """
        if not self._held or not passages.waiting.any():
            return passages
        holding = {hop for hop in route if self._held.get((hop.link, hop.direction))}
        packets = sum(self._held[hop.link, hop.direction] for hop in holding)
        among = {name: t_s for name, (way, t_s) in self._may_wait.items() if holding & {*way}}
        if own not in among:  # nothing is held
            return passages.holding(packets)
        order = np.argsort(np.concatenate([*among.values()]), kind="stable")
        names = np.repeat(np.arange(len(among)), [len(t_s) for t_s in among.values()])[order]
        # where more wait than are seen to, packets were overtaken: those that came to the links last wait
        held = names[-packets:] if self._hides(route) else names[:packets]
        return passages.holding(int((held == [*among].index(own)).sum()))

    @functools.cached_property
    def _may_wait(self) -> dict[tuple[str, str], tuple[Sequence[DirectedLink], Floats]]:
        """Of every flow and path, both ways, whose links hold packets at the end: its route, and when the packets came
        that may wait.
        """
        return self._those_that_wait(self._hides)

    @functools.cached_property
    def _seen_to_wait(self) -> dict[tuple[str, str], tuple[Sequence[DirectedLink], Floats]]:
        """The same, if of equal packets the later ones came."""
        return self._those_that_wait(lambda _: False)

    def _hides(self, hops: Sequence[DirectedLink]) -> bool:
        """True if links hold more packets at the end than are seen to wait: then an earlier one of equal ones came."""
        held = sum(self._held.get((hop.link, hop.direction), 0) for hop in hops)
        return held > 0 and held > sum(len(t_s) for way, t_s in self._seen_to_wait.values() if {*way} & {*hops})

    def _those_that_wait(
        self, first: Callable[[Sequence[DirectedLink]], bool]
    ) -> dict[tuple[str, str], tuple[Sequence[DirectedLink], Floats]]:
        found: dict[tuple[str, str], tuple[Sequence[DirectedLink], Floats]] = {}
        ways = ((flow, path, back) for flow in self._cell.flows for path in flow.paths for back in (False, True))
        for flow, path, back in ways:
            route = self._route(flow, path, back=back)
            if any(self._held.get((hop.link, hop.direction)) for hop in route):
                ends = (flow.sender, path.sender_link), (flow.receiver, path.receiver_link)
                here, there = reversed(ends) if back else ends
                for each in self._passages(flow, path, route, here, there, back=back, first=first(route)):
                    found[flow.name + (BACK if back else ""), path.name] = route, each.t_s[each.waiting]
        return found

    def of_link(self, direction: str) -> Passages:
        """The packets of all flows, both ways, that cross a link in this direction ("p1.forward")."""
        parts: list[Passages] = []
        ways = ((flow, path, back) for flow in self._cell.flows for path in flow.paths for back in (False, True))
        for flow, path, back in ways:
            for crossing in self._crossings(flow, path, back):
                if f"{crossing.hop.link}.{crossing.hop.direction}" == direction:
                    hops, ends = (crossing.hop,), (crossing.before, crossing.after)
                    parts += self._passages(flow, path, hops, *ends, back=back, first=self._hides(hops))
        link, _, side = direction.rpartition(".")
        whole = joined(parts)
        return whole.holding(self._held.get((link, side), 0)) if self._held else whole

    def _crossings(self, flow: Flow, path: FlowPath, back: bool) -> Iterable[Crossing]:
        return crossings(self._cell.links, flow.receiver if back else flow.sender, self._route(flow, path, back=back))

    def _route(self, flow: Flow, path: FlowPath, *, back: bool) -> tuple[DirectedLink, ...]:
        if back:
            return route_of(self._cell, flow.receiver, flow.sender, path.sender_link, path.back_link)
        return route_of(self._cell, flow.sender, flow.receiver, path.receiver_link)

    def _passages(
        self,
        flow: Flow,
        path: FlowPath,
        hops: Sequence[DirectedLink],
        before: tuple[str, str],
        after: tuple[str, str],
        *,
        back: bool,
        first: bool = False,
    ) -> Iterator[Passages]:
        near, far = (self._rows(end, flow, path, back) for end in (before, after))
        if near is None or far is None or not hops:
            return
        over_links = [self._shapes[each.link, each.direction] for each in hops]
        least_s = sum((least_delay_s(each, near["ip_bytes"]) for each in over_links), np.zeros(len(near)))
        least_ns = (least_s * 1e9).astype(np.int64) - len(hops) * GRAIN_NS
        hop = make_hop(
            "", "", "", "", near, far, span=(0, FOREVER_NS), t0_ns=self._t0_ns, least_ns=least_ns
        )  # fmt: skip
        nothing = np.zeros(len(hop.packet_s))
        idle_s = sum((delay_without_queue_s(each, hop.packet_s, hop.packet_bytes) for each in over_links), nothing)
        at_once_s = sum((sent_at_once_s(each, hop.packet_s, hop.packet_bytes) for each in over_links), nothing)
        took_s = hop.packet_delay_s
        overtaken_s = sum(overtaking_s(shape) for each in over_links for _, shape in each)
        if first:
            took_s = first_of_equal_ones(near["fingerprint"], hop.packet_s, took_s, overtaken_s)
        delay_s = took_s - idle_s
        # a token bucket that is full sends a packet in no time
        delay_s += np.clip(np.nan_to_num(-delay_s), 0.0, at_once_s)
        came = np.flatnonzero(~np.isnan(delay_s))
        last = int(came[-1]) if len(came) else -1
        behind = np.arange(len(delay_s)) > last  # several may have come at one instant
        if first:
            overtaken_s = sum(overtaking_s(shape, hashed=True) for each in over_links for _, shape in each)
        if last >= 0 and overtaken_s:
            behind |= hop.packet_s >= hop.packet_s[last] - overtaken_s
        yield Passages(
            t_s=hop.packet_s,
            delay_s=delay_s,
            ip_bytes=hop.packet_bytes,
            arrived_s=hop.packet_s + took_s,
            codepoint=self._codepoints(before, hop.packet_row),
            waiting=np.isnan(delay_s) & behind,
        )

    def _codepoints(self, end: tuple[str, str], rows: Ints) -> Ints:
        """Of these rows of the packets at a point."""
        point = self._points[end]
        if point is None or not self._two_queues:
            return np.zeros(len(rows), dtype=np.int64)
        codepoints: Ints = (point.capture.packets["tos"][rows] & ECN_MASK).astype(np.int64)
        return codepoints

    def _rows(self, end: tuple[str, str], flow: Flow, path: FlowPath, back: bool) -> Rows | None:
        """Rows of `identities` of a flow's packets over a path at one interface; None where it was not captured."""
        if end not in self._points:
            node, link = end
            file = capture_file(self._dir, node, link)
            tables = (
                "identities",
                *(("packets",) if self._two_queues else ()),
                *(("datagrams",) if self._ports else ()),
            )
            table = None if file is None else CapturePoint(node, (link,), read_captures([file], tables))
            self._points[end] = table
        point = self._points[end]
        if point is None:
            return None
        addresses = (
            self._layout.interface(flow.sender, path.sender_link).ip,
            self._layout.interface(flow.receiver, path.receiver_link).ip,
        )
        rows = point.capture.identities
        mine = point.between(rows, *(reversed(addresses) if back else addresses))
        over_udp = IP_PROTOCOLS[flow.protocol] == UDP
        own = [NONE] if over_udp else flow_rows(point, flow)  # datagrams are of no flow of captures
        mine &= np.isin(rows["flow"], np.fromiter(own, np.uint32))
        if over_udp and self._ports:
            mine &= self._is_own_datagram(point, rows, flow)
        found = rows[mine]
        return found[np.argsort(found["time_ns"], kind="stable")]

    def _is_own_datagram(self, point: CapturePoint, rows: Rows, flow: Flow) -> Bools:
        """Which of these rows are datagrams to the flow's port (of QUIC: or from it); of a program's UDP: to no port of
        another flow.
        """
        table = point.capture.datagrams
        if flow.protocol == "quic":
            ours = (table["destination_port"] == flow.port) | (table["source_port"] == flow.port)
            return np.isin(rows["packet"], table["packet"][ours])
        if flow.program is None:
            return np.isin(rows["packet"], table["packet"][table["destination_port"] == flow.port])
        return np.isin(rows["packet"], table["packet"][np.isin(table["destination_port"], [*self._ports])], invert=True)


def first_of_equal_ones(fingerprint: Ints, came_s: Floats, took_s: Floats, overtaken_s: float = 0.0) -> Floats:
    """The times that packets took where the links still hold some at the end: if one of the last that came (of those
    that one which waits may have been overtaken by) equals one that was sent before it and did not come, that one came,
    and the later one may wait.
    """
    found = took_s.copy()
    there = np.flatnonzero(~np.isnan(took_s))
    for last in there[came_s[there] >= came_s[there[-1]] - overtaken_s][::-1].tolist() if len(there) else ():
        missing = np.flatnonzero((fingerprint[:last] == fingerprint[last]) & np.isnan(found[:last]))
        if len(missing):
            found[missing[-1]] = came_s[last] + found[last] - came_s[missing[-1]]
            found[last] = np.nan
    return found


Shapes = Sequence[tuple[int, LinkImpairment]]
"""(From when in ns from T0, the shape) of a direction of a link, in the order of time; the first from 0."""


def shapes_over_time(cell: Cell) -> dict[tuple[str, str], Shapes]:
    """Of every direction (link, "forward" or "backward"), with what events and traces change."""
    shapes = {place: [(0, shape)] for place, shape in cell.shapes.items()}
    for event in cell.timeline:
        for side in event.directions:
            if (changed := event.side(side)) is not None:
                shapes[event.link, side].append((event.at_ns, changed))
    return dict(shapes)


def rate_bit_s(shapes: Shapes, from_ns: int, to_ns: int) -> float | None:
    """The mean rate of a direction over a time; None if it has none for a part of it."""
    ends = [at_ns for at_ns, _ in shapes[1:]] + [to_ns]
    bits = 0
    for (at_ns, shape), end_ns in zip(shapes, ends, strict=True):
        span_ns = min(end_ns, to_ns) - max(at_ns, from_ns)
        if span_ns > 0 and shape.rate_bit_s is None:
            return None
        bits += max(0, span_ns) * (shape.rate_bit_s or 0)
    return bits / (to_ns - from_ns)


def idle_delay_s(shape: LinkImpairment, ip_bytes: Ints) -> Floats:
    """The time that an idle link takes for packets of these sizes."""
    sending = np.zeros(len(ip_bytes))
    if shape.rate_bit_s is not None:
        sending = (ip_bytes + shape.header_bytes) * 8 / shape.rate_bit_s
    return shape.one_way_delay_ns / 1e9 + sending


def delay_without_queue_s(shapes: Shapes, came_s: Floats, ip_bytes: Ints) -> Floats:
    """The time that packets take over a link that is idle when they come."""
    number = np.searchsorted([at_ns / 1e9 for at_ns, _ in shapes], came_s, side="right") - 1
    delay_s = np.zeros(len(came_s))
    for each in np.unique(number):
        there = number == each
        delay_s[there] = idle_delay_s(shapes[max(0, int(each))][1], ip_bytes[there])
    return delay_s


def least_delay_s(shapes: Shapes, ip_bytes: Ints) -> Floats:
    """The time that packets of these sizes take over a direction at least, whenever they come."""
    times = []
    for _, shape in shapes:
        at_once = shape.token_bucket or shape.slots is not msgspec.UNSET
        sending = replaced(shape, rate_bit_s=None) if at_once else shape
        times.append(idle_delay_s(replaced(sending, one_way_delay_ns=delays_ns(shape)[0]), ip_bytes))
    return functools.reduce(np.minimum, times)


def sent_at_once_s(shapes: Shapes, came_s: Floats, ip_bytes: Ints) -> Floats:
    """The part of that time that a full token bucket saves: the sending time of each packet."""
    buckets = [(at_ns, shape if shape.token_bucket else LinkImpairment()) for at_ns, shape in shapes]
    without = [(at_ns, replaced(shape, one_way_delay_ns=0)) for at_ns, shape in buckets]
    return delay_without_queue_s(without, came_s, ip_bytes)


def overtaking_s(shape: LinkImpairment, *, hashed: bool = False) -> float:
    """The longest time by which a packet may come before one that entered a direction of a link earlier. hashed: by
    another hash than that of the packets of its connection, too.
    """
    least, most = delays_ns(shape)
    in_order = shape.keeps_order and not shape.reorder_ratio and not shape.packet_rules
    spread_s = 0.0 if in_order else (most - least) / 1e9
    if (two_queues(shape) or (hashed and several_queues(shape))) and shape.rate_bit_s:
        spread_s += (shape.queue_packets or 0) * LONGEST_PACKET_BYTES * 8 / shape.rate_bit_s
    return spread_s


def delays_ns(shape: LinkImpairment) -> tuple[int, int]:
    """The least and the greatest delay that a direction's delay line gives."""
    spread = shape.jitter_ns if shape.distribution == "uniform" else int(WIDEST_JITTERS * shape.jitter_ns)
    low, high = max(0, shape.one_way_delay_ns - spread), shape.one_way_delay_ns + spread
    if shape.reorder_ratio:
        low = 0
    for rule in shape.packet_rules:
        high += rule.delay_ns
    if isinstance(shape.slots, Slots):
        high += shape.slots.most_ns
    if isinstance(shape.ack_thinning, AckThinning):
        high += shape.ack_thinning.hold_ns
    return low, high


def several_queues(shape: LinkImpairment) -> bool:
    """True of a direction whose packets wait in queues that take turns. Those of a connection need not share one: Linux
    gives a reset, and what a timeout sends again, another hash.
    """
    return two_queues(shape) or (shape.aqm is not None and shape.aqm.kind in ("fq_codel", "cake"))


def two_queues(shape: LinkImpairment) -> bool:
    """True if a direction of a link has one queue for low latency and one for the rest."""
    return shape.aqm is not None and shape.aqm.kind == "dualpi2"


def _by_queue(shape: LinkImpairment, passages: Passages) -> dict[str, float | None]:
    """Queue delay of the packets of each of DualPI2's queues, as it tells them apart (sch_dualpi2.c:
    dualpi2_skb_classify).
    """
    metrics: dict[str, float | None] = {}
    mask = int(shape.aqm.settings["low_latency"]) if shape.aqm is not None and two_queues(shape) else 0
    low = (passages.codepoint & mask) > 0
    for name, mine in (("low_latency", low), ("classic", ~low)) if mask else ():
        known = passages.delay_s[mine & passages.came]
        metrics[f"{name}_queue_delay_mean_s"] = float(known.mean()) if len(known) else None
        metrics[f"{name}_queue_delay_p99_s"] = float(np.quantile(known, 0.99)) if len(known) else None
    return metrics


def link_metrics(cell: Cell, direction: str, passages: Passages) -> dict[str, float | None]:
    """The utilization of a direction of a link until the cell's end, and in its span, against the mean of its rate."""
    name, _, side = direction.rpartition(".")
    shapes = shapes_over_time(cell)[name, side]
    metrics = {"link_utilization_ratio": _utilization(shapes, passages, 0, cell.duration_ns)}
    if cell.measure and not isinstance(cell.measure.span_ns, msgspec.UnsetType):
        metrics["span_utilization_ratio"] = _utilization(shapes, passages, *cell.measure.span_ns)
    return metrics | _by_queue(shapes[0][1], passages)


def _utilization(shapes: Shapes, passages: Passages, from_ns: int, to_ns: int) -> float | None:
    """What came behind a link in (from, to], over what its rate carries in that time."""
    there = passages.arrived_s <= to_ns / 1e9  # False where it was lost
    if from_ns:
        there &= passages.arrived_s > from_ns / 1e9
    carried = float(passages.ip_bytes[there].sum()) * 8e9 / (to_ns - from_ns)
    rate = rate_bit_s(shapes, from_ns, to_ns)
    return carried / rate if rate else None
