"""Judges links by TCP, from the captures at host a (before the hop) and at host b (after it).

A packet passes the delay line of a shaped direction first, then its queue and rate. So a packet that meets an empty
queue takes one_way_delay + bytes / rate, and a busy link delivers packets exactly bytes / rate apart.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ...captures.capture import Capture, read_captures
from ...captures.native import Rows
from ...core.errors import CaptureError
from ...core.numbers import fixed
from ...core.types import LinkImpairment
from ...core.wire import ACK, SYN
from ...store.calibration import Row
from .tcp_probes import BRACKET_NS, FAULT_NS, FIRST_PORT, REPAIR_NS, Probe

TIME_BOUND_S = 10e-6
RATE_BOUND_RATIO = 1e-3
SIGMAS = 4.0
SLACK_S = 2e-6
ETHERNET_HEADER_BYTES = 14
FAULT_PORTS, REPAIR_PORTS = (FIRST_PORT, FIRST_PORT + 1), (FIRST_PORT + 2, FIRST_PORT + 3)


def judge(probe: Probe, cell_dir: Path, t0_realtime_ns: int) -> list[Row]:
    """Judge one finished probe. Raises CaptureError if a capture holds nothing to judge."""
    near, far = (_read(cell_dir, node) for node in ("a", "b"))
    rows: list[Row] = []
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


def _rtt(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[Row]:
    """The handshake: SYN out to SYN-ACK in, at the sender."""
    link = probe.cell.links[0]
    syn, answer = _syn(near, False), _syn(near, True)
    configured = (link.forward.one_way_delay_ns + link.backward.one_way_delay_ns) / 1e9
    configured += _sending(link.forward, int(syn["ip_bytes"])) + _sending(link.backward, int(answer["ip_bytes"]))
    measured = (int(answer["time_ns"]) - int(syn["time_ns"])) / 1e9
    return [Row.of(probe.name, "RTT", configured, measured, TIME_BOUND_S, "s")]


def _one_way_delay(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[Row]:
    """SYN at a to SYN at b, SYN-ACK at b to SYN-ACK at a."""
    link = probe.cell.links[0]
    rows = []
    for name, shape, answer in (("there", link.forward, False), ("back", link.backward, True)):
        at_a, at_b = _syn(near, answer), _syn(far, answer)
        configured = shape.one_way_delay_ns / 1e9 + _sending(shape, int(at_a["ip_bytes"]))
        measured = abs(int(at_b["time_ns"]) - int(at_a["time_ns"])) / 1e9
        rows.append(Row.of(probe.name, f"one-way delay {name}", configured, measured, TIME_BOUND_S, "s"))
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


def _rate(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[Row]:
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
        Row.of(
            probe.name,
            f"rate ({shape.layer})",
            shape.rate_bit_s,
            measured,
            RATE_BOUND_RATIO * shape.rate_bit_s,
            "bit/s",
        )
    ]


def _mtu(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[Row]:
    """The largest IP packet is exactly the MTU: full-size segments, and nothing above."""
    largest = max(int(near.packets["ip_bytes"].max()), int(far.packets["ip_bytes"].max()))
    return [Row.of(probe.name, "largest packet", probe.cell.links[0].mtu_bytes, largest, 0, "byte")]


def _loss(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[Row]:
    """Packets of the sender seen at a and not at b; the bound is 4 standard deviations of a binomial around the
    configured ratio.
    """
    ratio = probe.cell.links[0].forward.loss_ratio
    sent = int(near.paths["packets"][0][0])
    arrived = int(far.paths["packets"][0][0])
    bound = SIGMAS * (ratio * (1 - ratio) / sent) ** 0.5
    return [Row.of(probe.name, f"loss over {sent} packets", ratio, (sent - arrived) / sent, bound, "ratio")]


def _queue(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[Row]:
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
        Row.of(
            probe.name, "fewest packets waiting when one was dropped", limit, float(when_dropped.min()), 0, "packets"
        ),
        Row.of(probe.name, "most packets ever waiting", limit, float(waiting.max()), 0, "packets"),
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
    probe: Probe, near: Capture, far: Capture, t0_ns: int, what: str, at_ns: int, ports: tuple[int, int], passes: int
) -> list[Row]:
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
    return [Row.of(probe.name, quantity, 0, farther, TIME_BOUND_S, "s")]


def _syns(capture: Capture, port: int) -> Rows:
    segments = capture.segments
    to_port = capture.flows["port"][segments["flow"]][:, 1] == port
    rows: Rows = segments[to_port & ((segments["flags"] & (SYN | ACK)) == SYN)]
    return rows


def _fault(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[Row]:
    return _edge(probe, near, far, t0_ns, "fault", FAULT_NS, FAULT_PORTS, passes=0)


def _last_arrival(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[Row]:
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
    return [Row.of(probe.name, "last packet before the fault", middle_s, measured_s, half_s + SLACK_S, "s")]


def _repair(probe: Probe, near: Capture, far: Capture, t0_ns: int) -> list[Row]:
    return _edge(probe, near, far, t0_ns, "repair", REPAIR_NS, REPAIR_PORTS, passes=1)


QUANTITIES: dict[str, Callable[[Probe, Capture, Capture, int], list[Row]]] = {
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
