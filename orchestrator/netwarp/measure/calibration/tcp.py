"""Calibrates links by TCP, from the captures at host a (before the hop) and at host b (after it).

Every cell has two hosts a and b and one shaped link p1, and runs in virtual time: a few milliseconds of wall time per
cell. A packet passes the delay line of a shaped direction first, then its queue and rate. So a packet that meets an
empty queue takes one_way_delay + bytes / rate, and a busy link delivers packets exactly bytes / rate apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...captures.capture import Capture, read_captures
from ...captures.native import Rows
from ...core.errors import CaptureError
from ...core.numbers import fixed, given
from ...core.types import Action, CapturePoint, Cell, Event, Flow, Link, LinkImpairment, Node
from ...core.types import Path as FlowPath
from ...core.wire import ACK, ETHERNET_HEADER_BYTES, SYN
from ...store.probe_rows import ProbeRow

MS = 1_000_000
S = 1_000_000_000
BRACKET_NS = 5_000
"""The time between an event and the connections that start before and after it."""
FAULT_NS, REPAIR_NS = 2 * S, 3 * S
FIRST_PORT = 7001
DENSE_BIT_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Probe:
    """A cell and the names of the quantities judged from its captures."""

    name: str
    cell: Cell
    quantities: tuple[str, ...]


def probes(seed: int = 1) -> tuple[Probe, ...]:
    """Every probe. The seed only affects losses."""
    cells: list[Probe] = []
    for rate, delay, duration in (
        (500_000, 200 * MS, 20 * S),
        (10_000_000, 50 * MS, 5 * S),
        (100_000_000, MS, S),
        (1_000_000_000, 0, S // 20),
    ):
        shape = LinkImpairment(one_way_delay_ns=delay, rate_bit_s=rate, queue_packets=1000)
        cells.append(_bulk(f"rate {given(rate / 1e6)} Mbit/s, delay {given(delay / 1e6)} ms", shape, duration, seed))
    asymmetric = (
        LinkImpairment(one_way_delay_ns=30 * MS, rate_bit_s=2_000_000, queue_packets=100),
        LinkImpairment(one_way_delay_ns=7 * MS),
    )
    cells.append(_bulk("delay 30 ms there, 7 ms back", asymmetric[0], 5 * S, seed, backward=asymmetric[1]))
    cells.append(
        _bulk(
            "rate of Ethernet frames",
            LinkImpairment(one_way_delay_ns=MS, rate_bit_s=5_000_000, queue_packets=100, layer="ethernet"),
            5 * S,
            seed,
        )
    )
    for loss in (0.001, 0.01, 0.1):
        lossy = LinkImpairment(one_way_delay_ns=5 * MS, loss_ratio=loss)
        duration = 200 * S if loss > 0.05 else 20 * S
        back = LinkImpairment(one_way_delay_ns=5 * MS, rate_bit_s=20_000_000, queue_packets=1000)
        cell = _cell(f"loss {given(loss)}", lossy, back, duration, seed, (_flow("bulk", 0, duration),), randomness=True)
        cells.append(Probe(f"loss {given(100 * loss)} %", cell, ("loss", "mtu")))
    for queue in (1, 20, 50):
        short = LinkImpairment(rate_bit_s=2_000_000, queue_packets=queue)
        cell = _cell(f"queue {queue}", short, LinkImpairment(), 5 * S, seed, (_flow("bulk", 0, 5 * S),))
        cells.append(Probe(f"queue of {queue} packets", cell, ("queue", "rate", "mtu")))
    actions: tuple[Action, ...] = ("cut", "blackhole")
    for action in actions:
        cells.append(Probe(f"fault {action}", _bracketed(action, seed), ("fault", "repair")))
    cells.append(Probe("fault link", _interrupted(seed), ("last_arrival",)))
    return tuple(cells)


def _bulk(
    name: str, forward: LinkImpairment, duration_ns: int, seed: int, *, backward: LinkImpairment | None = None
) -> Probe:
    back = forward if backward is None else backward
    cell = _cell(name, forward, back, duration_ns, seed, (_flow("bulk", 0, duration_ns),))
    return Probe(name, cell, ("rtt", "one_way_delay", "rate", "mtu"))


def _flow(
    name: str, start_ns: int, stop_ns: int | None, port: int = FIRST_PORT, total_bytes: int | None = None
) -> Flow:
    path = FlowPath(name="p1", sender_link="p1", receiver_link="p1", bottleneck_bit_s=None, base_rtt_ns=0)
    return Flow(name, "tcp", "a", "b", (path,), port, start_ns, stop_ns, total_bytes, 1460)


def _bracketed(action: Action, seed: int) -> Cell:
    """Connections begin 5 us before and after the fault, and before and after the repair: of each pair exactly one
    succeeds.
    """
    flows = tuple(
        _flow(f"{edge}-{side}", at + offset, None, FIRST_PORT + number, total_bytes=1460)
        for number, (edge, at, side, offset) in enumerate(
            (edge, at, side, offset)
            for edge, at in (("fault", FAULT_NS), ("repair", REPAIR_NS))
            for side, offset in (("before", -BRACKET_NS), ("after", BRACKET_NS))
        )
    )
    timeline = (Event(FAULT_NS, "fault", action, "p1"), Event(REPAIR_NS, "fault", "repair", "p1"))
    return _cell(f"fault {action}", LinkImpairment(), LinkImpairment(), 10 * S, seed, flows, timeline=timeline)


def _interrupted(seed: int) -> Cell:
    """An interface goes down under a busy link of 1 Gbit/s: the last packet passes at most one packet's sending time
    before.

    A connection that begins after a `link` fault is refused by ICMP at once, so this fault cannot be bracketed by two
    SYNs.
    """
    shape = LinkImpairment(rate_bit_s=DENSE_BIT_S, queue_packets=1000)
    flow = _flow("bulk", FAULT_NS - 20 * MS, FAULT_NS + 10 * MS)
    timeline = (
        Event(FAULT_NS, "fault", "link", "p1", end="p1.hop:b"),
        Event(REPAIR_NS, "fault", "repair", "p1"),
    )
    return _cell("fault link", shape, shape, 5 * S, seed, (flow,), timeline=timeline)


def _cell(
    name: str,
    forward: LinkImpairment,
    backward: LinkImpairment,
    duration_ns: int,
    seed: int,
    flows: tuple[Flow, ...],
    *,
    timeline: tuple[Event, ...] = (),
    randomness: bool = False,
) -> Cell:
    link = Link("p1", "a", "b", forward, backward)
    sysctls = {"net.ipv4.tcp_timestamps": "0"}
    return probe_cell(name, link, flows, duration_ns, seed, timeline, sysctls=sysctls, random=randomness)


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


TIME_BOUND_S = 10e-6
RATE_BOUND_RATIO = 1e-3
SIGMAS = 4.0
SLACK_S = 2e-6
FAULT_PORTS, REPAIR_PORTS = (FIRST_PORT, FIRST_PORT + 1), (FIRST_PORT + 2, FIRST_PORT + 3)


def judge(probe: Probe, cell_dir: Path, t0_realtime_ns: int) -> list[ProbeRow]:
    """Judge one finished probe. Raises CaptureError if a capture holds nothing to judge."""
    near, far = (_read(cell_dir, node) for node in ("a", "b"))
    rows: list[ProbeRow] = []
    for quantity in probe.quantities:
        rows += QUANTITIES[quantity](probe, near, far, t0_realtime_ns)
    return rows


def _read(cell_dir: Path, node: str) -> Capture:
    return read_captures([cell_dir / "capture" / f"{node}-p1.pcap.zst"], ("packets", "segments"))


def _sending(shape: LinkImpairment, ip_bytes: int) -> float:
    """Seconds a packet takes at the rate of its direction, at the layer the rate counts."""
    if shape.rate_bit_s is None:
        return 0.0
    extra = ETHERNET_HEADER_BYTES if shape.layer == "ethernet" else 0
    return 8 * (ip_bytes + extra) / shape.rate_bit_s


def _first(rows: Rows, what: str) -> Rows:
    if not len(rows):
        raise CaptureError(f"calibration: {what} is not in the capture")
    row: Rows = rows[0]
    return row


def _syn(capture: Capture, answer: bool) -> Rows:
    flags = capture.segments["flags"] & (SYN | ACK)
    return _first(capture.segments[flags == (SYN | ACK if answer else SYN)], "a SYN-ACK" if answer else "a SYN")


def _rtt(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[ProbeRow]:
    """The handshake: SYN out to SYN-ACK in, at the sender."""
    link = probe.cell.links[0]
    syn, answer = _syn(near, False), _syn(near, True)
    configured = (link.forward.one_way_delay_ns + link.backward.one_way_delay_ns) / 1e9
    configured += _sending(link.forward, int(syn["ip_bytes"])) + _sending(link.backward, int(answer["ip_bytes"]))
    measured = (int(answer["time_ns"]) - int(syn["time_ns"])) / 1e9
    return [ProbeRow.of(probe.name, "RTT", configured, measured, TIME_BOUND_S, "s")]


def _one_way_delay(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[ProbeRow]:
    """SYN at a to SYN at b, SYN-ACK at b to SYN-ACK at a."""
    link = probe.cell.links[0]
    rows = []
    for name, shape, answer in (("there", link.forward, False), ("back", link.backward, True)):
        at_a, at_b = _syn(near, answer), _syn(far, answer)
        configured = shape.one_way_delay_ns / 1e9 + _sending(shape, int(at_a["ip_bytes"]))
        measured = abs(int(at_b["time_ns"]) - int(at_a["time_ns"])) / 1e9
        rows.append(ProbeRow.of(probe.name, f"one-way delay {name}", configured, measured, TIME_BOUND_S, "s"))
    return rows


def _data(capture: Capture) -> Rows:
    """Data segments of the sender, in order."""
    segments = capture.segments
    rows: Rows = segments[(segments["payload_bytes"] > 0) & (segments["direction"] == 0)]
    return rows


def _outgoing(capture: Capture) -> Rows:
    """Every segment of the sender, in order."""
    rows: Rows = capture.segments[capture.segments["direction"] == 0]
    return rows


def _rate(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[ProbeRow]:
    """Bytes that arrive in (first, last] of the second half of the data, divided by that time: the queue is never empty
    then.
    """
    shape = probe.cell.links[0].forward
    data = _data(far)
    data = data[len(data) // 2 :]
    if len(data) < 10 or shape.rate_bit_s is None:
        raise CaptureError(f"calibration: {probe.name}: {len(data)} packets are too few to measure a rate")
    extra = ETHERNET_HEADER_BYTES if shape.layer == "ethernet" else 0
    bits = 8 * (int(data["ip_bytes"][1:].sum()) + extra * (len(data) - 1))
    measured = bits / ((int(data["time_ns"][-1]) - int(data["time_ns"][0])) / 1e9)
    return [
        ProbeRow.of(
            probe.name,
            f"rate ({shape.layer})",
            shape.rate_bit_s,
            measured,
            RATE_BOUND_RATIO * shape.rate_bit_s,
            "bit/s",
        )
    ]


def _mtu(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[ProbeRow]:
    """The largest IP packet is exactly the MTU: full-size segments, and nothing above."""
    largest = max(int(near.packets["ip_bytes"].max()), int(far.packets["ip_bytes"].max()))
    return [ProbeRow.of(probe.name, "largest packet", probe.cell.links[0].mtu_bytes, largest, 0, "byte")]


def _loss(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[ProbeRow]:
    """Packets of the sender seen at a and not at b; the bound is 4 standard deviations of a binomial around the
    configured ratio.
    """
    ratio = probe.cell.links[0].forward.loss_ratio
    sent = int(near.paths["packets"][0][0])
    arrived = int(far.paths["packets"][0][0])
    bound = SIGMAS * (ratio * (1 - ratio) / sent) ** 0.5
    return [ProbeRow.of(probe.name, f"loss over {sent} packets", ratio, (sent - arrived) / sent, bound, "ratio")]


def _queue(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[ProbeRow]:
    """Number of packets waiting in the hop just before each arrival: at most the limit, and exactly the limit where a
    packet is dropped.

    This probe has no delay line, so the packets in the hop are those accepted at a that have not arrived at b. A packet
    that never arrives was dropped on entry, when the queue held `queue_packets` and one more was being sent.
    """
    limit = probe.cell.links[0].forward.queue_packets
    if limit is None:
        raise CaptureError(f"calibration: {probe.name} has no queue")
    sent, arrived = _outgoing(near), _outgoing(far)
    accepted = _accepted(sent, arrived, probe.cell.links[0].forward)
    # what was sent at the very end may still have been queued when the capture ended
    full_queue_ns = 1e9 * (limit + 2) * _sending(probe.cell.links[0].forward, probe.cell.links[0].mtu_bytes)
    judged = sent["time_ns"] < arrived["time_ns"][-1] - full_queue_ns
    dropped = np.flatnonzero(~accepted & judged)
    if not len(dropped):
        raise CaptureError(f"calibration: {probe.name}: the queue never overflowed ({len(sent)} packets)")
    inside_before = np.cumsum(accepted) - accepted
    gone = np.searchsorted(arrived["time_ns"], sent["time_ns"], side="right")
    waiting = inside_before - gone - 1
    when_dropped = waiting[dropped]
    return [
        ProbeRow.of(
            probe.name, "fewest packets waiting when one was dropped", limit, float(when_dropped.min()), 0, "packets"
        ),
        ProbeRow.of(probe.name, "most packets ever waiting", limit, float(waiting.max()), 0, "packets"),
    ]


def _accepted(sent: Rows, arrived: Rows, shape: LinkImpairment) -> Rows:
    """The sent segments that arrived. If a segment was sent several times, an arrival belongs to the latest sending
    that is possible: at least its own sending time before.
    """
    sendings: dict[tuple[int, int, int], list[int]] = {}
    for index, key in enumerate(_keys(sent)):
        sendings.setdefault(key, []).append(index)
    accepted = np.zeros(len(sent), dtype=bool)
    times = sent["time_ns"]
    for key, time_ns, ip_bytes in zip(
        _keys(arrived), arrived["time_ns"].tolist(), arrived["ip_bytes"].tolist(), strict=True
    ):
        latest = time_ns - 1e9 * _sending(shape, ip_bytes) + 1e9 * SLACK_S
        possible = [index for index in sendings.get(key, []) if times[index] <= latest and not accepted[index]]
        if not possible:
            raise CaptureError("calibration: a segment arrived that was never sent")
        accepted[possible[-1]] = True
    return accepted


def _keys(rows: Rows) -> list[tuple[int, int, int]]:
    """The identity of a segment: sequence number, payload, flags."""
    return list(zip(rows["seq"].tolist(), rows["payload_bytes"].tolist(), rows["flags"].tolist(), strict=True))


def _edge(
    probe: Probe,
    near: Capture,
    far: Capture,
    t0_ns: int,
    what: str,
    at_ns: int,
    ports: tuple[int, int],
    passes: int,
) -> list[ProbeRow]:
    """Bounds the time of an event by two SYNs around it, of which exactly one arrives (`passes`: which). The event lies
    between the two, so it is off by at most the larger of their distances from its configured time. If the other SYN
    arrives, or both, or none, there is no measured value.
    """
    from_event: list[float] = []
    for port in ports:
        syn = _first(_syns(near, port), f"the SYN to port {port}")
        from_event.append((int(syn["time_ns"]) - t0_ns - at_ns) / 1e9)
    # a refused SYN is sent again later: what counts is whether the first one arrived within the bracket
    horizon = t0_ns + at_ns + 100 * BRACKET_NS
    through = [bool((_syns(far, port)["time_ns"] < horizon).any()) for port in ports]
    expected = [index == passes for index in range(2)]
    farther = max(abs(distance) for distance in from_event) if through == expected else None
    quantity = (
        f"{what} between SYNs {fixed(-from_event[0] * 1e6, 1)} us before and {fixed(from_event[1] * 1e6, 1)} us after"
    )
    return [ProbeRow.of(probe.name, quantity, 0, farther, TIME_BOUND_S, "s")]


def _syns(capture: Capture, port: int) -> Rows:
    segments = capture.segments
    to_port = capture.flows["port"][segments["flow"]][:, 1] == port
    rows: Rows = segments[to_port & ((segments["flags"] & (SYN | ACK)) == SYN)]
    return rows


def _fault(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[ProbeRow]:
    return _edge(probe, near, far, t0_ns, "fault", FAULT_NS, FAULT_PORTS, passes=0)


def _last_arrival(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[ProbeRow]:
    """The last packet that passed a busy link before the fault.

    It arrives before the fault by less than the sending time of one packet: the configured value is the middle of that
    interval, and half of it is the bound.
    """
    times = _data(far)["time_ns"] - t0_ns
    before = times[times < REPAIR_NS]
    if not len(before):
        raise CaptureError(f"calibration: {probe.name}: no packet arrived before the fault")
    half_s = _sending(probe.cell.links[0].forward, probe.cell.links[0].mtu_bytes) / 2
    middle_s, measured_s = FAULT_NS / 1e9 - half_s, float(before[-1]) / 1e9
    return [ProbeRow.of(probe.name, "last packet before the fault", middle_s, measured_s, half_s + SLACK_S, "s")]


def _repair(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[ProbeRow]:
    return _edge(probe, near, far, t0_ns, "repair", REPAIR_NS, REPAIR_PORTS, passes=1)


QUANTITIES: dict[str, Callable[[Probe, Capture, Capture, int], list[ProbeRow]]] = {
    "rtt": _rtt,
    "one_way_delay": _one_way_delay,
    "rate": _rate,
    "mtu": _mtu,
    "loss": _loss,
    "queue": _queue,
    "fault": _fault,
    "repair": _repair,
    "last_arrival": _last_arrival,
}
