"""The metrics of a cell's flow that known physics is tested by. Definitions: docs/metrics.md, Physics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...core.metrics.catalogue import METRICS
from ...core.types import Cell, Flow
from ..failover_inputs import settings_of
from ..flow_packets import FlowPackets
from ..groups.window_growth import outstanding_of
from ..metrics import Moments, Window
from ..models.throughput_models import RANDOM_OVER_PERIODIC, mathis_packets_s, pftk_packets_s, sawtooth_packets_s
from .backoff import TCP_RTO_MAX_S, backoff_of
from .queue import departures, passage_of, waiting
from .sending import Sending, sending_of, steady_of

TCP_RTO_MIN_S = 0.2
"""Linux, include/net/tcp.h: TCP_RTO_MIN; an RTO is SRTT and at least that (tcp_input.c:tcp_rtt_estimator)."""


def physics_metrics(
    cell: Cell,
    flow: Flow,
    sender: FlowPackets | None,
    receiver: FlowPackets | None,
    window: Window,
    moments: Moments,
    known: Mapping[str, float | None],
) -> dict[str, float | None]:
    """Every metric of the group; None where there is nothing to measure. known: rtt_mean_s, first_timeout_s."""
    found = {name: known.get(name) for name in METRICS if METRICS[name].flows == "connection"}
    if sender is None:
        return found
    sending = sending_of(flow, sender, window.end_ns)
    if sending is None or not len(sending.packet):
        return found
    found |= _under_loss(cell, flow, sender, sending, known)
    if receiver is not None:
        found |= _in_queue(cell, flow, sender, receiver)
    if moments.fault is not None:
        found |= _backed_off(cell, flow, sending, moments.fault.from_ns, moments.fault.to_ns)
    return found


def _under_loss(
    cell: Cell, flow: Flow, sender: FlowPackets, sending: Sending, known: Mapping[str, float | None]
) -> dict[str, float | None]:
    events = sending.loss_events()
    rtt_s, timeout_s = known.get("rtt_mean_s"), known.get("first_timeout_s")
    found: dict[str, float | None] = {"loss_events": float(len(events))}
    steady = steady_of(sending, events)
    if steady is None or rtt_s is None:
        return found
    flight = outstanding_of(flow, sender)
    packet = float(np.median(sending.payload_bytes))
    limit = flight.window_bytes / packet if flight is not None and flight.window_bytes else float("inf")
    p, bits = steady.event_ratio, packet * 8
    wait_s = timeout_s if timeout_s is not None else _least_timeout_s(cell, flow, rtt_s)
    return found | {
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
    """Where no timeout was seen: what a steady round trip makes of the RTO."""
    if flow.protocol == "sctp":
        return max(settings_of(cell, flow).rto_min_s, rtt_s)
    return rtt_s + TCP_RTO_MIN_S


def _in_queue(cell: Cell, flow: Flow, sender: FlowPackets, receiver: FlowPackets) -> dict[str, float | None]:
    known = passage_of(cell, flow, sender, receiver)
    if known is None:
        return {}
    passage, shape = known
    must = departures(passage.came_ns[passage.let_in], passage.sending_ns[passage.let_in])
    waited = passage.waited_ns
    found: dict[str, float | None] = {
        "queue_wait_mean_s": float(waited.mean()) / 1e9,
        "queue_wait_max_s": float(waited.max()) / 1e9,
        "queue_error_s": float(np.abs(passage.left_ns - must).max()) / 1e9,
    }
    if shape.queue_packets is not None:
        least, most = waiting(passage, must)
        wrong = np.where(passage.let_in, least >= shape.queue_packets, most < shape.queue_packets)
        found["queue_drops"] = float((~passage.let_in).sum())
        found["queue_drop_errors"] = float(wrong.sum())
        found["queue_ties"] = float(((least < shape.queue_packets) & (most >= shape.queue_packets)).sum())
    return found


def _backed_off(cell: Cell, flow: Flow, sending: Sending, from_ns: int, to_ns: int | None) -> dict[str, float | None]:
    longest_s = settings_of(cell, flow).rto_max_s if flow.protocol == "sctp" else TCP_RTO_MAX_S
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
