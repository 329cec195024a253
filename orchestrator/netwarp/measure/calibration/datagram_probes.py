"""Defines the cells that calibrate links: datagrams that are echoed, bursts into queues, datagram pairs around events.

Every cell has two hosts a and b and one shaped link p1. A packet passes the delay line of a shaped direction first,
then its queue and rate. So a packet that meets an empty queue takes one_way_delay + bytes / rate, and a busy link
delivers packets exactly bytes / rate apart.

Random impairments are measured separately: bursts and events run on the profile without its jitter and losses, where
arithmetic gives the only right result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...core.link_types import Link, LinkImpairment, Opportunities
from ...core.numbers import given
from ...core.types import Action, CapturePoint, Cell, Event, Flow, Node, Program
from ...core.types import Path as FlowPath
from ...experiment import parse_spec
from ...plan import make_plan
from .datagrams import PROBE_BYTES, Probe, delays_of

US, MS, S = 10**3, 10**6, 10**9
PORTS = (7001, 7002)
START_NS = S
APART_NS = 100 * MS
"""Time between the starts of two programs; a start takes some microseconds."""
BRACKET_NS = 5 * US
MANY, FEW, MOST = 20_000, 5_000, 100_000
"""Datagrams where losses are counted, where they are not, and at most where what is counted is rare."""
COUNTED = 60
"""Expected number of losses, bursts or other events: with far fewer the bound would include zero."""
MOST_OCCURRENCES = 3
BRACKETED: tuple[Action, ...] = ("cut", "blackhole")
BESIDE = 20
"""Packets of a burst beyond what its queue holds."""
FAULT_NS, REPAIR_NS = 2 * S, 3 * S
GENERIC: dict[str, tuple[LinkImpairment, LinkImpairment]] = {
    **{
        f"rate {given(rate / 1e6)} Mbit/s, delay {given(delay / 1e6)} ms": 2
        * (LinkImpairment(one_way_delay_ns=delay, rate_bit_s=rate, queue_packets=1000),)
        for rate, delay in ((500_000, 200 * MS), (10_000_000, 50 * MS), (100_000_000, MS), (1_000_000_000, 0))
    },
    "delay 30 ms there, 7 ms back": (
        LinkImpairment(one_way_delay_ns=30 * MS, rate_bit_s=2_000_000, queue_packets=100),
        LinkImpairment(one_way_delay_ns=7 * MS),
    ),
    "rate of Ethernet frames": 2
    * (LinkImpairment(one_way_delay_ns=MS, rate_bit_s=5_000_000, queue_packets=100, layer="ethernet"),),
    **{
        f"loss {given(100 * loss)} %": (
            LinkImpairment(one_way_delay_ns=5 * MS, loss_ratio=loss),
            LinkImpairment(one_way_delay_ns=5 * MS),
        )
        for loss in (0.001, 0.01, 0.1)
    },
    **{
        f"queue of {queue} packets": (LinkImpairment(rate_bit_s=2_000_000, queue_packets=queue), LinkImpairment())
        for queue in (1, 20, 50)
    },
}
"""What every run's links are made of: there and back. Beside them: each kind of fault."""
FAULTS: dict[str, tuple[Event, ...]] = {
    **{
        f"fault {action}": (Event(FAULT_NS, "fault", action, "p1"), Event(REPAIR_NS, "fault", "repair", "p1"))
        for action in BRACKETED
    },
    "fault link": (Event(FAULT_NS, "fault", "link", "p1", end="p1.hop:b"),),
}
NETEM: dict[str, LinkImpairment] = {
    "jitter uniform": LinkImpairment(one_way_delay_ns=20 * MS, jitter_ns=5 * MS),
    "jitter normal": LinkImpairment(one_way_delay_ns=40 * MS, jitter_ns=5 * MS, distribution="normal"),
    "jitter pareto": LinkImpairment(one_way_delay_ns=20 * MS, jitter_ns=5 * MS, distribution="pareto"),
    "jitter paretonormal": LinkImpairment(one_way_delay_ns=20 * MS, jitter_ns=5 * MS, distribution="paretonormal"),
    "duplicate 2 %": LinkImpairment(one_way_delay_ns=5 * MS, duplicate_ratio=0.02),
    "corrupt 2 %": LinkImpairment(one_way_delay_ns=5 * MS, corrupt_ratio=0.02),
    "reorder 2 %": LinkImpairment(
        one_way_delay_ns=20 * MS, reorder_ratio=0.02, rate_bit_s=10_000_000, queue_packets=50
    ),
    "queue of 64 KiB": LinkImpairment(one_way_delay_ns=5 * MS, rate_bit_s=5_000_000, queue_bytes=65536),
    "queue of 64 KiB of frames": LinkImpairment(
        one_way_delay_ns=5 * MS, rate_bit_s=5_000_000, queue_bytes=65536, layer="ethernet"
    ),
    "queue of 20 packets": LinkImpairment(one_way_delay_ns=5 * MS, rate_bit_s=5_000_000, queue_packets=20),
}
"""Each of netem's options by itself, there; nothing happens on the way back."""
CHANGED_NS = {0: 5_000_000, 1120 * MS: 1_000_000, 1600 * MS: 8_000_000}
"""The rates of a link that changes, by the time from which each holds: a burst of full packets waits all the time."""
CHANGED_COUNT = 190
CHANGED = {
    "rate changes, queue in packets": LinkImpairment(one_way_delay_ns=5 * MS, queue_packets=250),
    "rate changes, queue in bytes": LinkImpairment(one_way_delay_ns=5 * MS, queue_bytes=300_000),
}


@dataclass(frozen=True, slots=True)
class Budget:
    """The amount to send. longest_ns: the longest cell on the wall clock."""

    many: int = MANY
    few: int = FEW
    longest_ns: int | None = None

    def datagrams(self, count: int, interval_ns: int) -> int:
        """As many datagrams as the time permits."""
        return count if self.longest_ns is None else max(50, min(count, self.longest_ns // interval_ns))


ON_THE_WALL_CLOCK = Budget(longest_ns=8 * S)


def generic_probes(program: Path, seed: int = 1) -> tuple[Probe, ...]:
    """Rates, delays, losses, queues and faults, each by itself. The seed only affects losses."""
    probes: list[Probe] = []
    for name, shapes in GENERIC.items():
        probes += _probes(name, Link("p1", "a", "b", *shapes), (), program, Budget(few=200), seed)
    link = Link("p1", "a", "b", LinkImpairment(), LinkImpairment())
    probes += [Probe(name, _around(name, link, events, program, seed), ("events",)) for name, events in FAULTS.items()]
    return tuple(probes)


def over_ipv6(probe: Probe) -> Probe:
    """The same probe on a link of IPv6: packets of the same bytes, headers and all."""
    links = tuple(msgspec.structs.replace(link, family="ipv6") for link in probe.cell.links)
    flows = tuple(
        msgspec.structs.replace(
            flow, program=msgspec.structs.replace(flow.program, receiver=(*flow.program.receiver, "{to}"))
        )
        for flow in probe.cell.flows
        if flow.program is not None
    )
    cell = msgspec.structs.replace(probe.cell, links=links, flows=flows)
    return Probe(f"IPv6: {probe.name}", cell, probe.quantities)


def read_link(keys: str, seed: int = 1) -> tuple[Link, tuple[Event, ...]]:
    """The link that the planner makes of these keys of a spec, and its own events in 100 s. Raises SpecError."""
    text = (
        'format = 1\nname = "calibration"\nduration = "100 s"\n[node.a]\n[node.b]\n'
        '[flow.f]\nfrom = "a"\nto = "b"\nprotocol = "tcp"\npaths = ["p1"]\nbytes = "1 MB"\n'
        f'[link.p1]\nbetween = ["a", "b"]\n{keys}\n'
    )
    cell = make_plan(parse_spec(text.encode(), Path("calibration.toml"), sets={}), seed=seed).cells[0]
    return cell.links[0], cell.timeline


def profile_probes(profile: str, program: Path, budget: Budget, seed: int = 1) -> tuple[Probe, ...]:
    """Every cell of a profile; none of one with delivery opportunities, which buckets.py measures."""
    link, _ = read_link(f'profile = "{profile}"', seed)
    if any(isinstance(shape.opportunities, Opportunities) for shape in (link.forward, link.backward)):
        return ()
    return _probes(profile, *read_link(f'profile = "{profile}"', seed), program, budget, seed)


def netem_probes(program: Path, budget: Budget, seed: int = 1) -> tuple[Probe, ...]:
    """The cells that measure each of netem's options separately."""
    probes: list[Probe] = []
    for name, shape in NETEM.items():
        link = Link("p1", "a", "b", shape, LinkImpairment(one_way_delay_ns=MS))
        probes += _probes(f"netem: {name}", link, (), program, budget, seed)
    for name, shape in CHANGED.items():
        first, *later = [msgspec.structs.replace(shape, rate_bit_s=rate) for rate in CHANGED_NS.values()]
        link = Link("p1", "a", "b", first, LinkImpairment(one_way_delay_ns=MS))
        events = tuple(
            Event(at_ns, f"rate{number}", "change", "p1", ("forward",), forward=new)
            for number, (at_ns, new) in enumerate(zip(list(CHANGED_NS)[1:], later, strict=True))
        )
        send = send_words(PORTS[0], (link.mtu_bytes,), CHANGED_COUNT, 0, START_NS, 2 * S)
        flows = (sending_flow("burst", "a", "b", PORTS[0], program, send, "sink", 3 * S),)
        cell = probe_cell(f"netem: {name}", link, flows, 3 * S, seed, events)
        probes.append(Probe(f"netem: {name}", cell, ("changes",)))
    return tuple(probes)


def _probes(
    name: str, link: Link, events: tuple[Event, ...], program: Path, budget: Budget, seed: int
) -> tuple[Probe, ...]:
    probes = [Probe(name, _echoes(name, link, program, budget, seed), ("echoes",))]
    if any(shape.rate_bit_s is not None for shape in (link.forward, link.backward)):
        probes.append(Probe(name, _bursts(name, link, program, seed), ("bursts",)))
    if events and budget.longest_ns is None:  # they take a minute: on the wall clock too much of it
        probes.append(Probe(name, _around(name, link, events, program, seed), ("events",)))
    return tuple(probes)


def calm(shape: LinkImpairment) -> LinkImpairment:
    """The impairment without its random parts."""
    return msgspec.structs.replace(
        shape, jitter_ns=0, jitter_correlation_ratio=0.0, distribution="uniform", loss_ratio=0.0,
        loss_correlation_ratio=0.0, burst_loss=None, duplicate_ratio=0.0, corrupt_ratio=0.0, reorder_ratio=0.0,
    )  # fmt: skip


def sending_ns(shape: LinkImpairment, ip_bytes: int) -> int:
    """The time to send a packet at the rate of its direction, at the layer that the rate counts; rounded up."""
    if shape.rate_bit_s is None:
        return 0
    return -(-8 * 10**9 * (ip_bytes + shape.header_bytes) // shape.rate_bit_s)


def _echoes(name: str, link: Link, program: Path, budget: Budget, seed: int) -> Cell:
    """Datagrams so far apart that none queues behind another; each is echoed at once."""
    shapes = (link.forward, link.backward)
    apart = sum(round(delays_of(shape).width_s * 1e9) + 2 * sending_ns(shape, PROBE_BYTES) for shape in shapes) + MS
    rarest = min((ratio for shape in shapes for ratio in _drawn(shape)), default=None)
    most = budget.few if rarest is None else min(MOST, max(budget.many, round(COUNTED / rarest)))
    count = budget.datagrams(most, apart)
    rtt = sum(round(delays_of(shape).values_s[-1] * 1e9) for shape in shapes)
    if link.forward.reorder_ratio:  # some must be under way to be overtaken
        # and no two of the way may come out at one instant: then one would wait for the other
        apart = link.forward.one_way_delay_ns // 10 + link.forward.one_way_delay_ns // 190
    last = START_NS + count * apart
    send = send_words(PORTS[0], (PROBE_BYTES,), count, apart, START_NS, last + rtt + S)
    flows = (sending_flow("echoes", "a", "b", PORTS[0], program, send, "echo", last + rtt + S),)
    return probe_cell(f"{name} echoes", link, flows, last + rtt + S, seed)


def _drawn(shape: LinkImpairment) -> list[float]:
    """The ratios of all random impairments except delays; for bursts of losses, how often one begins."""
    ratios = [shape.loss_ratio, shape.duplicate_ratio, shape.corrupt_ratio, shape.reorder_ratio]
    if shape.burst_loss is not None:
        p, r = shape.burst_loss.p_ratio, shape.burst_loss.r_ratio
        ratios.append(p * r / (p + r))
    return [ratio for ratio in ratios if ratio]


def _bursts(name: str, link: Link, program: Path, seed: int) -> Cell:
    """A burst of full packets in each direction, more than its queue holds, so that the queue fills at once."""
    quiet = msgspec.structs.replace(link, forward=calm(link.forward), backward=calm(link.backward))
    flows: list[Flow] = []
    end = 0
    for port, (sender, receiver, shape) in zip(
        PORTS, (("a", "b", quiet.forward), ("b", "a", quiet.backward)), strict=True
    ):
        if shape.rate_bit_s is None:
            continue
        sizes = (link.mtu_bytes,) if shape.queue_bytes is None else (link.mtu_bytes, 700, 300)
        mean = sum(sizes) // len(sizes)
        queue = shape.queue_packets if shape.queue_bytes is None else shape.queue_bytes // mean
        # sending costs time on some clocks: what leaves the queue meanwhile is sent again
        count = (queue or 0) * 5 // 4 + BESIDE
        until = START_NS + (count + 10) * sending_ns(shape, link.mtu_bytes) + shape.one_way_delay_ns + S
        send = send_words(port, sizes, count, 0, START_NS, until)
        flows.append(
            sending_flow(f"burst-{sender}", sender, receiver, port, program, send, "sink", until, len(flows) * APART_NS)
        )
        end = max(end, until)
    return probe_cell(f"{name} bursts", quiet, tuple(flows), end, seed)


def _around(name: str, link: Link, events: tuple[Event, ...], program: Path, seed: int) -> Cell:
    """Datagrams every 20 ms, and 5 us before and after each of the first events."""
    quiet = msgspec.structs.replace(link, forward=calm(link.forward), backward=calm(link.backward))
    chosen = [event for event in events if _rank(event, events) < MOST_OCCURRENCES]
    timeline = tuple(
        msgspec.structs.replace(
            event,
            forward=None if event.forward is None else calm(event.forward),
            backward=None if event.backward is None else calm(event.backward),
        )
        for event in chosen
    )
    moments = sorted({event.at_ns + side for event in chosen for side in (-BRACKET_NS, BRACKET_NS)})
    end = max(event.at_ns for event in chosen) + 5 * S
    apart = 20 * MS
    send = send_words(PORTS[0], (PROBE_BYTES,), (end - START_NS) // apart, apart, START_NS, end + S, moments)
    flows = (sending_flow("around", "a", "b", PORTS[0], program, send, "sink", end + S),)
    return probe_cell(f"{name} events", quiet, flows, end + 2 * S, seed, timeline)


def _rank(event: Event, events: Iterable[Event]) -> int:
    """The number of equal events before this one."""
    return sum(
        other.name == event.name and other.action == event.action and other.at_ns < event.at_ns for other in events
    )


def send_words(
    port: int,
    sizes: tuple[int, ...],
    count: int,
    apart_ns: int,
    start_ns: int,
    until_ns: int,
    at_ns: Iterable[int] = (),
) -> tuple[str, ...]:
    """Arguments of `probe send` after the address."""
    words = [str(port), ",".join(map(str, sizes)), *map(str, (count, apart_ns, start_ns, until_ns))]
    listed = ",".join(map(str, at_ns))
    return (*words, listed) if listed else tuple(words)


def sending_flow(
    name: str,
    sender: str,
    receiver: str,
    port: int,
    program: Path,
    send: tuple[str, ...],
    role: str,
    stop_ns: int,
    spawned_ns: int = 0,
) -> Flow:
    """A flow of the datagrams of `probe send`. role: `echo` or `sink`. spawned_ns: when the program starts."""
    path = FlowPath(name="p1", sender_link="p1", receiver_link="p1", bottleneck_bit_s=None, base_rtt_ns=0)
    own = Program(
        sender=(str(program), "send", "{to}", *send), receiver=(str(program), role, str(port)), ready="listening"
    )
    return Flow(name, "udp", sender, receiver, (path,), port, spawned_ns, stop_ns, None, 0, program=own)


def probe_cell(
    name: str,
    link: Link,
    flows: tuple[Flow, ...],
    duration_ns: int,
    seed: int,
    timeline: tuple[Event, ...] = (),
    *,
    sysctls: Mapping[str, str] | None = None,
    random: bool = True,
) -> Cell:
    """A cell of one link between hosts a and b, both captured. sysctls: of both."""
    return Cell(
        spec="calibration",
        experiment="calibration",
        factors={"probe": name},
        repetition=0,
        seed=seed,
        duration_ns=duration_ns,
        nodes=tuple(Node(node, "host", dict(sysctls or {})) for node in "ab"),
        links=(link,),
        flows=flows,
        timeline=timeline,
        captures=tuple(CapturePoint(node, "p1") for node in "ab"),
        random=random,
    )
