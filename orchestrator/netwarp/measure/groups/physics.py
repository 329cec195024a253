"""Metrics for testing known laws: throughput under loss, waiting times and drops of a queue, back-off of the RTO.
Definitions: docs/metrics.md, Laws of physics.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ...captures.native import Ints
from ...core.types import Cell, Flow
from ..flow_packets import FlowPackets
from ..models.failover_inputs import failover_settings
from ..models.link_queue import departures, passage_of, waiting
from ..models.throughput_models import RANDOM_OVER_PERIODIC, mathis_packets_s, pftk_packets_s, sawtooth_packets_s
from ..models.timer_ranges import TCP_RTO_MAX_S, backoff_of
from ..observation import FlowObservation
from ..sent_data import Sending, sending_of
from .retransmission import retransmission_metrics

TCP_RTO_MIN_S = 0.2
"""Linux, include/net/tcp.h: TCP_RTO_MIN; an RTO is SRTT and at least that (tcp_input.c:tcp_rtt_estimator)."""
WARM_UP_EVENTS = 3
"""Loss events to skip: slow start overshoots, and each loss event halves the excess."""
FEWEST_CYCLES = 5


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
    metrics: dict[str, float | None] = {"loss_events": float(len(events))}
    steady = steady_of(sending, events)
    if steady is None or rtt_s is None:
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
    waited = passage.waited_ns
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
    waits = np.array(backoff.waits_s)
    ratios = waits[1:] / waits[:-1]
    return {
        "backoff_timeouts": float(len(waits) + 1),
        "backoff_ratio_min": float(ratios.min()),
        "backoff_ratio_max": float(ratios.max()),
        "backoff_outside": float(backoff.outside),
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
