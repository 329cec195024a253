"""The bytes that a path can pass in a time: what its token buckets hold, its rates times that time, and what waited.

A link passes at most bucket + rate x time in any time (net/sched/sch_tbf.c; netem's own rate has no bucket). What is
counted behind later links passed the link earlier, by their delay and by what the first packet waited there. So the
packets that arrive after a first one passed each link of the route within the time of their arrivals, plus the longest
that the first one can have waited behind that link. The bound holds for each link, so the lowest one holds.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from ..captures.native import Ints
from ..core.link_types import AckThinning, LinkImpairment, Opportunities, Policer, Slots
from ..core.topology import DirectedLink
from ..core.types import Cell, Check, Flow, Path
from ..testbed.agent_steps import agents_of
from ..testbed.compile import LATE_NS
from ..testbed.rate_line import varies
from .observation import FlowObservation, Window
from .passages import Shapes, delays_ns, rate_bit_s, shapes_over_time
from .planned_paths import opportunities_bit_s, route_of

GRAIN_NS = 2_000
"""By how much a packet may be late at each link of a route on the virtual clock: reads of the clock and a timer."""
WALL_GRAIN_NS = 10_000_000
"""The same on the wall clock, as far as a cell may be late without being INVALID."""
CLOCKS_RATIO = 2e-4
"""By how much the clocks of two machines may differ in speed."""
GSO_BYTES = 65_536
"""The longest packet that TCP gives to a queue on its own host (GSO): it is cut into segments behind the queue."""
ROUNDING_NS = 1
"""The kernel cuts the sending time of a packet to whole ns."""
ALWAYS_NS = -(1 << 60)


@dataclasses.dataclass(frozen=True)
class Bound:
    """What one link lets pass in a time, in bytes at the layer of its rate: the sum of its parts."""

    link: str
    rate_bytes: float
    """In the time between the first and the last arrival."""
    bucket_bytes: float
    """What a token bucket may have saved up, and what begins anew with an event on the link."""
    waiting_bytes: float
    """In the time that the first packet may have waited behind the link."""
    grain_bytes: float
    """In the time by which the clocks may be wrong."""

    @property
    def bytes(self) -> float:
        """All of it."""
        return self.rate_bytes + self.bucket_bytes + self.waiting_bytes + self.grain_bytes

    def text(self) -> str:
        """The parts in words."""
        parts = (
            ("rate", self.rate_bytes), ("bucket", self.bucket_bytes), ("waited behind it", self.waiting_bytes),
            ("clock", self.grain_bytes),
        )  # fmt: skip
        return f"{self.link} passes at most {self.bytes:.0f} B: " + ", ".join(f"{name} {n:.0f} B" for name, n in parts)


@dataclasses.dataclass(frozen=True)
class Arrivals:
    """Packets at a receiver in the window, in the order of time. path: index of the flow's path of each."""

    t_ns: Ints
    ip_bytes: Ints
    path: Ints

    @classmethod
    def of_flow(cls, observation: FlowObservation) -> Arrivals:
        """Of a flow's window, from its first payload on."""
        data, first_ns = observation.arrived, observation.window.first_ns
        if data is None or first_ns is None:
            nothing: Ints = np.zeros(0, dtype=np.int64)
            return cls(nothing, nothing, nothing)
        mine = np.flatnonzero(data.t_ns >= first_ns)
        mine = mine[np.argsort(data.t_ns[mine], kind="stable")]
        return cls(data.t_ns[mine], data.ip_bytes[mine], data.path[mine])

    @classmethod
    def of_datagrams(cls, t_ns: Ints, ip_bytes: Ints, window: Window) -> Arrivals:
        """Of packets without a connection, all on the flow's first path."""
        mine = window.holds(t_ns)
        order = np.argsort(t_ns[mine], kind="stable")
        return cls(t_ns[mine][order], ip_bytes[mine][order], np.zeros(int(mine.sum()), dtype=np.int64))


class CellCapacity:
    """What the paths of a cell can pass. late_ns: how late the sandbox woke at most; None: on the virtual clock."""

    def __init__(self, cell: Cell, late_ns: int | None) -> None:
        self.cell, self.late_ns = cell, late_ns
        self.mtu = {link.name: link.mtu_bytes for link in cell.links}
        self.shapes: dict[tuple[str, str], Shapes] = {
            where: [(ALWAYS_NS, every[0][1]), *every[1:]] for where, every in shapes_over_time(cell).items()
        }

    def checks(self, flow: Flow, arrivals: Arrivals) -> list[Check]:
        """Checks that no path passed more bytes than its links can."""
        checks = []
        for number, path in enumerate(flow.paths):
            mine = arrivals.path == number
            t_ns, ip_bytes = arrivals.t_ns[mine], arrivals.ip_bytes[mine]
            bounds = self.bounds(flow, path, t_ns, ip_bytes) if len(t_ns) > 1 else []
            if not bounds:
                continue
            counted, bound = max(bounds, key=lambda each: each[0] - each[1].bytes)
            span_s = int(t_ns[-1] - t_ns[0]) / 1e9
            name = f"utilization {flow.name}" + (f" {path.name}" if len(flow.paths) > 1 else "")
            detail = f"{counted} B in {span_s:.9f} s after the first packet; {bound.text()}"
            checks.append(Check(name, counted <= bound.bytes, detail))
        return checks

    def bounds(self, flow: Flow, path: Path, t_ns: Ints, ip_bytes: Ints) -> list[tuple[int, Bound]]:
        """(bytes that came after the first packet, the bound of them) for each link of a path that bounds anything."""
        route = route_of(self.cell, flow.sender, flow.receiver, path.receiver_link)
        count = len(t_ns) - 1
        most = _Window(self, int(t_ns[0]), int(t_ns[-1]), count)
        found = []
        for place in range(_first_after_agents(self.cell, route, flow), len(route)):
            hop, behind = route[place], route[place + 1 :]
            shape = self.shapes[hop.link, hop.direction][0][1]
            header = shape.header_bytes
            counted = int(ip_bytes[1:].sum()) + header * count
            at_once = GSO_BYTES if self._proxied(flow, route[:place]) else 0
            if (bound := most.of_rate(hop, behind, int(ip_bytes[0]) + header, at_once)) is not None:
                found.append((counted, bound))
            if isinstance(shape.policer, Policer) and (bound := most.of_policer(hop, route[place:], shape.policer)):
                found.append((counted, bound))
            if isinstance(shape.opportunities, Opportunities):
                more = (shape.opportunities.overhead_bytes - header) * count
                bound = most.of_opportunities(hop, behind, shape.opportunities)
                found += [] if bound is None else [(counted + more, bound)]
        return found

    def _proxied(self, flow: Flow, before: Sequence[DirectedLink]) -> bool:
        """True if the node behind these links sends packets of its own TCP."""
        node, links = flow.sender, {link.name: link for link in self.cell.links}
        for hop in before:
            node = links[hop.link].b if hop.direction == "forward" else links[hop.link].a
        agent = agents_of(self.cell).get(node)
        return agent is not None and agent.kind == "itcp-proxy"

    def of(self, hop: DirectedLink) -> list[LinkImpairment]:
        """What a direction of a link does to packets, at any time."""
        return [shape for _, shape in self.shapes[hop.link, hop.direction]]

    @functools.cached_property
    def routes(self) -> set[tuple[tuple[DirectedLink, ...], bool]]:
        """The routes of all flows, both ways, each with whether its flow has others."""
        return {
            (route, len(flow.paths) > 1)
            for flow in self.cell.flows
            for path in flow.paths
            for route in (
                route_of(self.cell, flow.sender, flow.receiver, path.receiver_link),
                route_of(self.cell, flow.receiver, flow.sender, path.sender_link, path.back_link),
            )
        }

    def comes_by(self, hop: DirectedLink, later: DirectedLink) -> bool:
        """True if all that crosses a later link crossed this one before."""
        if any(event.action in ("link", "address") for event in self.cell.timeline):
            return False  # routes change
        return all(
            later not in route or (not several and hop in route[: route.index(later)]) for route, several in self.routes
        )


def _first_after_agents(cell: Cell, route: Sequence[DirectedLink], flow: Flow) -> int:
    """The place in a route of the first link behind every agent: an agent sends packets of its own again."""
    agents = {*agents_of(cell)}
    links = {link.name: link for link in cell.links}
    node, first = flow.sender, 0
    for place, hop in enumerate(route):
        if node in agents:
            first = place
        node = links[hop.link].b if hop.direction == "forward" else links[hop.link].a
    return first


@dataclasses.dataclass(frozen=True)
class _Window:
    """The time from the first arrival to the last of some packets of a flow."""

    of_cell: CellCapacity
    from_ns: int
    to_ns: int
    count: int

    def of_rate(
        self, hop: DirectedLink, behind: Sequence[DirectedLink], first_bytes: int, at_once: int = 0
    ) -> Bound | None:
        """Of a link's rate; None if it has none all the time. at_once: bytes that pass it as one packet."""
        every = self.of_cell.of(hop)
        if any(shape.rate_bit_s is None for shape in every):
            return None
        packet = self.of_cell.mtu[hop.link] + every[0].header_bytes
        bucket = max(self._bucket_bytes(shape, every, packet) for shape in every)
        overtaken = any(_overtake(self.of_cell.of(each)) for each in behind)
        # the bucket has paid for the first packet
        rest = bucket if overtaken else max(0.0, bucket - first_bytes)
        rest += packet if overtaken and not bucket else 0.0
        rest += at_once
        return self._bound(hop, behind, rest, max(bucket, packet), None)

    def of_policer(self, hop: DirectedLink, behind: Sequence[DirectedLink], policer: Policer) -> Bound | None:
        """Of a link's policer, behind which the link itself comes."""
        return self._bound(hop, behind, policer.burst_bytes, 0.0, policer.rate_bit_s)

    def of_opportunities(
        self, hop: DirectedLink, behind: Sequence[DirectedLink], traced: Opportunities
    ) -> Bound | None:
        """Of delivery opportunities; what the first packet left of its own may be used, too."""
        slack_ns = self._slack_ns(hop, behind, 0.0)
        if slack_ns is None:
            return None
        grain = self._grain_ns(behind)
        least, _ = self._delays_ns(behind)
        begin, end = self.from_ns - least, self.to_ns - least

        def served(from_ns: int, to_ns: int) -> float:
            return opportunities_bit_s(traced, from_ns, to_ns) * (to_ns - from_ns) / 8e9

        rate = served(begin, end)
        waited = served(begin - slack_ns, end) - rate
        clock = served(begin - slack_ns - grain, end + grain) - rate - waited
        times = self._copies(behind)
        return Bound(hop.link, rate * times, traced.bytes * times, waited * times, clock * times)

    def _bound(
        self, hop: DirectedLink, behind: Sequence[DirectedLink], rest: float, anew: float, rate: int | None
    ) -> Bound | None:
        """rest: what the bucket may hold behind the first packet. anew: what an event on the link brings. rate: a
        constant one in place of the link's.
        """
        slack_ns = self._slack_ns(hop, behind, rest)
        if slack_ns is None:
            return None
        least, _ = self._delays_ns(behind)
        grain = self._grain_ns(behind) + ROUNDING_NS * self.count
        begin, end = self.from_ns - least, self.to_ns - least
        of_rate = self._carried(hop, begin, end, rate)
        waited = self._carried(hop, begin - slack_ns, end, rate)
        all_in = self._carried(hop, begin - slack_ns - grain, end + grain, rate)
        if of_rate is None or waited is None or all_in is None:
            return None
        events = [
            event for event in self.of_cell.cell.timeline
            if event.link == hop.link and begin - slack_ns - grain <= event.at_ns <= end + grain
        ]  # fmt: skip
        times = self._copies(behind)
        return Bound(
            link=hop.link,
            rate_bytes=of_rate * times,
            bucket_bytes=(rest + anew * len(events)) * times,
            waiting_bytes=(waited - of_rate) * times,
            grain_bytes=(all_in - waited) * times,
        )

    def _carried(self, hop: DirectedLink, from_ns: int, to_ns: int, rate: int | None) -> float | None:
        if to_ns <= from_ns:
            return 0.0
        mean = rate if rate is not None else rate_bit_s(self.of_cell.shapes[hop.link, hop.direction], from_ns, to_ns)
        return None if mean is None else mean * (to_ns - from_ns) / 8e9

    def _bucket_bytes(self, shape: LinkImpairment, every: Sequence[LinkImpairment], packet: int) -> float:
        """What a link may send at once: its bucket, with a packet that begins while there is room in it."""
        if shape.aqm is not None and shape.aqm.kind == "cake":
            return 2.0 * packet  # one that is sent, and one that begins as its time has come
        if isinstance(shape.slots, Slots):  # what the rate gave while a slot was waited for leaves at one instant
            return 2.0 * packet + shape.slots.most_ns * float(shape.rate_bit_s or 0) / 8e9
        if varies(every):
            credit_ns = LATE_NS[self.of_cell.late_ns is not None]
            return packet + credit_ns * float(shape.rate_bit_s or 0) / 8e9
        if isinstance(shape.burst_bytes, int):
            return float(shape.burst_bytes)
        return float(packet) if shape.token_bucket else 0.0

    def _grain_ns(self, behind: Sequence[DirectedLink]) -> int:
        grain = GRAIN_NS * (1 + len(behind))
        if self.of_cell.late_ns is not None:
            grain += max(WALL_GRAIN_NS, self.of_cell.late_ns) + int(CLOCKS_RATIO * (self.to_ns - self.from_ns))
        return grain

    def _delays_ns(self, behind: Sequence[DirectedLink]) -> tuple[int, int]:
        """The least and the greatest delay of links, without queues and sending times."""
        both = [[delays_ns(shape) for shape in self.of_cell.of(hop)] for hop in behind]
        return sum(min(low for low, _ in each) for each in both), sum(max(high for _, high in each) for each in both)

    def _slack_ns(self, hop: DirectedLink, behind: Sequence[DirectedLink], bucket: float) -> int | None:
        """The longest that a packet takes over the links behind one, more than their least delay; None: no limit."""
        least, most = self._delays_ns(behind)
        sending = waiting = 0.0
        rates = []
        for each in behind:
            every = self.of_cell.of(each)
            if any(isinstance(shape.opportunities, Opportunities) for shape in every):
                return None
            there = [shape.rate_bit_s for shape in every if shape.rate_bit_s is not None]
            if not there:
                continue
            slowest, packet = min(there), self.of_cell.mtu[each.link] + max(shape.header_bytes for shape in every)
            rates.append(slowest)
            sending += 8e9 * packet / slowest
            waiting += 8e9 * max(_queue_bytes(shape, packet) for shape in every) / slowest
        own = [shape.rate_bit_s for shape in self.of_cell.of(hop) if shape.rate_bit_s is not None]
        if rates and own and min(rates) >= max(own) and all(self.of_cell.comes_by(hop, each) for each in behind):
            # what comes over the link alone waits behind it only for what the link sends at once
            at_once = bucket + max(own) * (most - least) / 8e9
            waiting = min(waiting, 8e9 * at_once / min(rates))
        return round(most - least + sending + waiting)

    def _copies(self, behind: Sequence[DirectedLink]) -> float:
        """By how much later links make more bytes of what they get: twice by duplication, headers by fragments."""
        times = 1.0
        longest = max(self.of_cell.mtu.values())
        shrunk = [event.mtu_bytes for event in self.of_cell.cell.timeline if isinstance(event.mtu_bytes, int)]
        for each in behind:
            doubled = any(
                shape.duplicate_ratio or any(rule.action == "duplicate" for rule in shape.packet_rules)
                for shape in self.of_cell.of(each)
            )
            times *= 2.0 if doubled else 1.0
            mtu = min([self.of_cell.mtu[each.link], *shrunk])
            times *= 1.0 + (20.0 / (mtu - 27) if mtu < longest else 0.0)
        return times


def _overtake(shapes: Sequence[LinkImpairment]) -> bool:
    """True if packets of a direction may leave in another order than they came, at any time or where it changes."""
    return any(map(_overtakes, shapes)) or len({shape.one_way_delay_ns for shape in shapes}) > 1


def _overtakes(shape: LinkImpairment) -> bool:
    """True if such a direction lets a packet overtake another."""
    by_delay = (shape.jitter_ns and not shape.keeps_order) or shape.reorder_ratio
    by_rule = any(rule.action == "delay" for rule in shape.packet_rules) or isinstance(shape.ack_thinning, AckThinning)
    by_queue = shape.aqm is not None and shape.aqm.kind in ("fq_codel", "cake", "dualpi2")
    return bool(by_delay) or by_rule or by_queue


def _queue_bytes(shape: LinkImpairment, packet: int) -> float:
    """The most that waits in a direction's queue, without the packet that is sent."""
    if shape.queue_bytes is not None:
        return float(shape.queue_bytes)
    return float((shape.queue_packets or 0) * packet)
