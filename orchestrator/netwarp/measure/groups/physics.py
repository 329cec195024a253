"""Metrics for testing known laws: throughput under loss, waiting times and drops of a queue, back-off of the RTO.
Definitions: docs/metrics.md, Laws of physics.

A queue of fixed rate is computed packet by packet by Lindley's recursion (D. V. Lindley: The theory of queues with a
single server, 1952): the sending of a packet begins when it arrives or when the packet before it has been sent,
whichever is later. So the arrival times alone give every departure. Timeouts in a row are each twice as long as the one
before (RFC 6298 5.5, RFC 9260 6.3.3 E2).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ...captures.capture import take_rows
from ...captures.hop_joins import NOWHERE, match_packets
from ...captures.native import Bools, Floats, Ints, Rows
from ...core.link_types import LinkImpairment
from ...core.timer_wheel import slot_s
from ...core.types import Cell, Flow
from ..delivery import aborted_ns
from ..flow_packets import FlowPackets
from ..models.failover_inputs import failover_settings
from ..models.sctp_failover_model import Range, fires
from ..models.throughput_models import RANDOM_OVER_PERIODIC, mathis_packets_s, pftk_packets_s, sawtooth_packets_s
from ..models.window_epochs import curve_metrics
from ..observation import FlowObservation
from ..sent_data import Sending, sending_of
from .retransmission import retransmission_metrics

TCP_RTO_MIN_S = 0.2
"""Linux, include/net/tcp.h: TCP_RTO_MIN; an RTO is SRTT and at least that (tcp_input.c:tcp_rtt_estimator)."""
WARM_UP_EVENTS = 3
"""Loss events to skip: slow start overshoots, and each loss event halves the excess."""
FEWEST_CYCLES = 5
INSTANT_NS = 2_000
"""Times closer than this are one instant: what two clock reads and a timer make of it."""
TCP_RTO_MAX_S = 120.0
"""Linux, include/net/tcp.h: TCP_RTO_MAX."""


def physics_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Metrics of loss and back-off from the sender's capture, of a queue from both captures; {} if the flow is not one
    connection.
    """
    cell, flow, sender, fault = observation.cell, observation.flow, observation.sender, observation.moments.fault
    sending = None if sender is None else sending_of(flow, sender, observation.window.end_ns)
    if sender is None or sending is None or not len(sending.packet):
        return {}
    metrics = _under_loss(observation, sending)
    if observation.receiver is not None:
        metrics |= _in_queue(cell, flow, sender, observation.receiver)
    if fault is not None:
        metrics |= _backed_off(cell, flow, sending, fault.from_ns, fault.to_ns)
    return metrics


def _under_loss(observation: FlowObservation, sending: Sending) -> dict[str, float | None]:
    events, measured = sending.loss_events(), observation.once(retransmission_metrics)
    rtt_s, timeout_s = measured.get("rtt_mean_s"), measured.get("first_timeout_s")
    metrics: dict[str, float | None] = {"loss_events": float(len(events)), **curve_metrics(sending, events)}
    steady = steady_of(sending, events)
    if steady is None or rtt_s is None or steady.event_ratio >= 1:  # the models have no time without a loss then
        return metrics
    outstanding = observation.outstanding
    packet = float(np.median(sending.payload_bytes))
    limit = outstanding.window_bytes / packet if outstanding is not None and outstanding.window_bytes else float("inf")
    p, bits = steady.event_ratio, packet * 8
    wait_s = timeout_s if timeout_s is not None else _least_timeout_s(observation.cell, observation.flow, rtt_s)
    return metrics | {
        "loss_event_ratio": p,
        "steady_s": steady.seconds,
        "steady_sent_bit_s": steady.sent_bit_s,
        "mathis_bit_s": bits * mathis_packets_s(p, rtt_s),
        "mathis_random_bit_s": bits * mathis_packets_s(p, rtt_s) * RANDOM_OVER_PERIODIC,
        "sawtooth_bit_s": bits * sawtooth_packets_s(p, rtt_s),
        "pftk_bit_s": bits * pftk_packets_s(p, rtt_s, wait_s, limit, 1),
        "pftk_delayed_bit_s": bits * pftk_packets_s(p, rtt_s, wait_s, limit, 2),
    }


def _least_timeout_s(cell: Cell, flow: Flow, rtt_s: float) -> float:
    """The smallest RTO that a steady round-trip time gives; used if no timeout was seen."""
    if flow.protocol == "sctp":
        return max(failover_settings(cell, flow).rto_min_s, rtt_s)
    return rtt_s + TCP_RTO_MIN_S


def _in_queue(cell: Cell, flow: Flow, sender: FlowPackets, receiver: FlowPackets) -> dict[str, float | None]:
    through = passage_of(cell, flow, sender, receiver)
    if through is None:
        return {}
    passage, shape = through
    must = departures(passage.came_ns[passage.let_in], passage.sending_ns[passage.let_in])
    waited = passage.left_ns - passage.sending_ns[passage.let_in] - passage.came_ns[passage.let_in]
    metrics: dict[str, float | None] = {
        "queue_wait_mean_s": float(waited.mean()) / 1e9,
        "queue_wait_max_s": float(waited.max()) / 1e9,
        "queue_error_s": float(np.abs(passage.left_ns - must).max()) / 1e9,
    }
    if shape.queue_packets is not None:
        least, most = waiting(passage, must)
        wrong = np.where(passage.let_in, least >= shape.queue_packets, most < shape.queue_packets)
        metrics["queue_drops"] = float((~passage.let_in).sum())
        metrics["queue_drop_errors"] = float(wrong.sum())
        metrics["queue_ties"] = float(((least < shape.queue_packets) & (most >= shape.queue_packets)).sum())
    return metrics


def _backed_off(cell: Cell, flow: Flow, sending: Sending, from_ns: int, to_ns: int | None) -> dict[str, float | None]:
    longest_s = failover_settings(cell, flow).rto_max_s if flow.protocol == "sctp" else TCP_RTO_MAX_S
    backoff = backoff_of(sending, from_ns, to_ns, longest_s)
    if backoff is None:
        return {}
    waits, outside = backoff
    ratios = waits[1:] / waits[:-1]
    return {
        "backoff_timeouts": float(len(waits) + 1),
        "backoff_ratio_min": float(ratios.min()),
        "backoff_ratio_max": float(ratios.max()),
        "backoff_outside": float(outside),
    }


@dataclasses.dataclass(frozen=True)
class Steady:
    """Whole cycles between loss events, without the first ones. sent_bit_s: payload, retransmissions included."""

    seconds: float
    sent_bit_s: float
    event_ratio: float


def steady_of(sending: Sending, events: Ints) -> Steady | None:
    """None if fewer than FEWEST_CYCLES cycles follow the first WARM_UP_EVENTS loss events."""
    if len(events) < WARM_UP_EVENTS + FEWEST_CYCLES + 1:
        return None
    begin, end = int(events[WARM_UP_EVENTS]), int(events[-1])
    seconds = (int(sending.sent_ns[end]) - int(sending.sent_ns[begin])) / 1e9
    return Steady(
        seconds=seconds,
        sent_bit_s=float(sending.payload_bytes[begin:end].sum()) * 8 / seconds,
        event_ratio=(len(events) - 1 - WARM_UP_EVENTS) / (end - begin),
    )


@dataclasses.dataclass(frozen=True)
class Passage:
    """The packets that arrived at a queue, in order; ns. left_ns: for the accepted packets, when their last bit had
    left.
    """

    came_ns: Ints
    let_in: Bools
    left_ns: Ints
    sending_ns: Ints


def departures(came_ns: Ints, sending_ns: Ints) -> Ints:
    """Lindley: left[n] = max(came[n], left[n-1]) + sending[n]."""
    through = np.cumsum(sending_ns)
    return through + np.maximum.accumulate(came_ns - (through - sending_ns))


def waiting(passage: Passage, left_ns: Ints) -> tuple[Ints, Ints]:
    """The number of packets waiting when each packet arrives, not counting the one being sent: (at least, at most). The
    two differ if a packet leaves at that very instant, since captures do not show which came first. left_ns: of the
    accepted packets.
    """
    before: Ints = np.cumsum(passage.let_in) - passage.let_in
    least, most = (
        np.maximum(before - np.searchsorted(left_ns, passage.came_ns + off, side="right") - 1, 0)
        for off in (INSTANT_NS, -INSTANT_NS)
    )
    return least, most


def passage_of(
    cell: Cell, flow: Flow, sender: FlowPackets, receiver: FlowPackets
) -> tuple[Passage, LinkImpairment] | None:
    """The flow's packets through the queue of its one link, towards the receiver; times at the queue.

    None if no queue is computed for the flow (`lone_queue`).
    """
    if (shape := lone_queue(cell, flow)) is None or shape.rate_bit_s is None:
        return None
    sent, arrived = _towards_receiver(sender), _towards_receiver(receiver)
    arrival = match_packets(sent, arrived).place
    # behind the last one that arrived, what did not may have been on its way when the captures ended
    end = int(np.flatnonzero(arrival != NOWHERE).max(initial=-1)) + 1
    sent, arrival = sent[:end], arrival[:end]
    let_in = arrival != NOWHERE
    if not end:
        return None
    bytes_sent = sent["ip_bytes"].astype(np.int64) + shape.header_bytes
    passage = Passage(
        came_ns=sent["time_ns"] + shape.one_way_delay_ns,
        let_in=let_in,
        left_ns=arrived["time_ns"][arrival[let_in]],
        sending_ns=bytes_sent * 1_000_000_000 // (shape.rate_bit_s // 8),
    )
    return passage, shape


def lone_queue(cell: Cell, flow: Flow) -> LinkImpairment | None:
    """The queue that a flow has alone, towards its receiver, if its packets' times there are all known: nothing but the
    rate, the queue and a constant delay acts on them. None: loss, jitter, faults, several links, other flows.
    """
    links = {link.name: link for link in cell.links}
    path = flow.paths[0]
    if len(flow.paths) > 1 or path.sender_link != path.receiver_link or len(cell.flows) > 1 or cell.timeline:
        return None
    link = links[path.sender_link]
    shape = link.forward if link.a == flow.sender else link.backward
    plain = LinkImpairment(
        one_way_delay_ns=shape.one_way_delay_ns,
        rate_bit_s=shape.rate_bit_s,
        queue_packets=shape.queue_packets,
        layer=shape.layer,
    )
    return None if shape != plain or shape.rate_bit_s is None or flow.program is not None else shape


def _towards_receiver(packets: FlowPackets) -> Rows:
    """Rows of `identities` of the flow's packets from its sender."""
    rows = packets.point.capture.identities
    mine = np.zeros(len(rows), dtype=np.bool_)
    for row, sends in packets.data_direction.items():
        table = packets.point.capture.flows[row]
        path, towards = int(table["path"]), int(table["path_direction"]) ^ sends
        alive = rows["time_ns"] <= aborted_ns(packets, row)  # ABORTs behind it cannot be told apart
        mine |= (rows["path"] == path) & (rows["path_direction"] == towards) & alive
    return take_rows(rows, np.flatnonzero(mine)[np.argsort(rows["time_ns"][mine], kind="stable")])


def backoff_of(sending: Sending, since_ns: int, until_ns: int | None, longest_s: float) -> tuple[Floats, int] | None:
    """Measures the retransmissions of the first unacknowledged byte (TSN) from `since_ns` on, until an acknowledgement
    for new data arrives or until `until_ns`. longest_s: RTO.Max.

    The waits in s, and how many of them are outside the range that follows from the first by doubling. None: there are
    fewer than two waits.
    """
    heard = sending.ack_ns < since_ns
    una = int(sending.acked[heard].max(initial=0))
    news = sending.ack_ns[(sending.ack_ns >= since_ns) & (sending.acked > una)]
    end_ns = min(
        int(news.min(initial=np.iinfo(np.int64).max)), np.iinfo(np.int64).max if until_ns is None else until_ns
    )
    mine = sending.again & (sending.begin == una) & (sending.sent_ns >= since_ns) & (sending.sent_ns < end_ns)
    times: Ints = sending.sent_ns[mine]
    if len(times) < 3:
        return None
    waits: Floats = np.diff(times) / 1e9
    allowed = allowed_waits(float(waits[0]), len(waits), longest_s)
    return waits, sum(not range_.holds(wait) for wait, range_ in zip(waits.tolist(), allowed, strict=True))


def allowed_waits(first_s: float, count: int, longest_s: float) -> tuple[Range, ...]:
    """The range of each of `count` consecutive waits, of which the first took `first_s`.

    The first timer was set for a time between first_s minus one slot of the timer wheel and first_s. Each later timer
    is twice as long, up to longest_s, and late by at most one slot.
    """
    timer = Range(first_s - slot_s(first_s), first_s)
    later = (
        fires(Range(min(timer.low * 2**number, longest_s), min(timer.high * 2**number, longest_s)))
        for number in range(1, count)
    )
    return (Range(first_s, first_s), *later)
