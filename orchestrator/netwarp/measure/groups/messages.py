"""Metrics of the delays of a flow's messages: from the instant at which one was due to its delivery. Definitions:
docs/metrics.md, Messages.
"""

from __future__ import annotations

import numpy as np
from msgspec import UNSET

from ...captures.native import Ints
from ...core.units import QuantityError, parse_quantity
from ..delivery import SentMessages
from ..observation import FlowObservation, end_ns
from ..timetable import NEVER

LATE = "late"
"""The parameter of a spec that is the bound of flows without a `late` of their own."""
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def message_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Percentiles of delays, the mean, and the number and share of late messages; {} if the messages are not known."""
    if observation.flow.program is not None:
        return {}
    messages, until_ns = observation.messages, end_ns(observation)
    names = [f"message_delay_{name}_s" for name in SHARES]
    every = ("messages", "message_delay_mean_s", *names, "late_messages", "late_messages_ratio")
    metrics: dict[str, float | None] = dict.fromkeys(every)
    limit_ns = bound_ns(observation)
    if messages is None or messages.due_ns is None:
        return metrics
    due_ns, done_ns = _with_unsent(observation, messages.due_ns, messages.delivered_ns, until_ns)
    known = due_ns <= until_ns
    due_ns, done_ns = due_ns[known], done_ns[known]
    there = done_ns <= until_ns
    delays = np.sort(done_ns[there] - due_ns[there])
    waits = until_ns - due_ns[~there]
    metrics["messages"] = float(len(due_ns))
    metrics["message_delay_mean_s"] = float(delays.mean()) / 1e9 if len(delays) else None
    for name, share in zip(names, SHARES.values(), strict=True):
        metrics[name] = percentile_s(delays, waits, share)
    if limit_ns is not None:
        late = SentMessages(due_ns, done_ns).late(limit_ns, until_ns) or 0
        metrics["late_messages"] = float(late)
        metrics["late_messages_ratio"] = late / len(due_ns) if len(due_ns) else None
    return metrics


def bound_ns(observation: FlowObservation) -> int | None:
    """The delay from which on a message is late: of the flow, else of the spec; None: neither says one."""
    if observation.flow.late_ns is not UNSET:
        return observation.flow.late_ns
    try:
        return int(parse_quantity(observation.cell.parameters[LATE], "time").value)
    except (KeyError, QuantityError):
        return None


def percentile_s(delays: Ints, waits: Ints, share: float) -> float | None:
    """The delay (one of the values) that a share of the messages has at most; None if that is not known.

    delays: of those that were delivered, sorted. waits: how long the others had waited when the time was over. One that
    had waited longer than the percentile of those delivered counts as longer than all; one due shortly before the end
    says nothing, and does not count.
    """
    if not len(delays):
        return None
    among = delays[max(0, int(np.ceil(share * len(delays))) - 1)]
    count = len(delays) + int((waits > among).sum())
    place = max(0, int(np.ceil(share * count)) - 1)
    return float(delays[place]) / 1e9 if place < len(delays) else None


def _with_unsent(observation: FlowObservation, due_ns: Ints, delivered_ns: Ints, until_ns: int) -> tuple[Ints, Ints]:
    """Also the messages that were due by the end and of which nothing had left the sender."""
    due_by = observation.timetable.due_by(until_ns)
    if due_by is None or len(due_by) <= len(due_ns):
        return due_ns, delivered_ns
    unsent = due_by[len(due_ns) :]
    return np.concatenate([due_ns, unsent]), np.concatenate([delivered_ns, np.full(len(unsent), NEVER)])
