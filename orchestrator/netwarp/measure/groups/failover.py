"""What a failover did, beside what theory.py expects of it. Every definition: docs/metrics.md, Failover.

From both captures; `notification_time_s`, `unreachable_time_s` and `state_changes` are what the sender's kernel told
its application.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...captures.native import UNKNOWN, Bools, Ints, Rows
from ...core.types import Cell, Flow
from ...core.units import QuantityError, parse_quantity
from ...core.wire import DATA, I_DATA
from ...store.ndjson import Record
from ..failover_inputs import settings_of, situation_of
from ..flow_packets import FlowPackets, sent_rows
from ..message_delays import NEVER, messages_of
from ..metrics import Moments, Window, first_ns
from ..models.sctp_failover_model import FailoverPrediction, Range, expected

REFILL_BYTES = 100_000
FAILED = ("POTENTIALLY_FAILED", "UNREACHABLE")
LATE = "late"
THEORY: dict[str, str] = {
    "first_retransmission_other_path_s": "first_retransmission",
    "first_new_data_other_path_s": "new_data",
    "notification_time_s": "notification",
    "unreachable_time_s": "unreachable",
    "outage_s": "outage",
    "return_time_s": "return",
}
"""Metric measured -> its name in theory_<name>_low_s, theory_<name>_high_s (expected) and <name>_as_theory (1 or 0)."""
PRIMARY = 0
"""Index of the flow's first path."""


def failover_metrics(
    cell: Cell,
    flow: Flow,
    sender: FlowPackets | None,
    receiver: FlowPackets | None,
    window: Window,
    moments: Moments,
    told: list[Record],
    t0_monotonic_ns: int,
    measured: Mapping[str, float | None],
) -> dict[str, float | None]:
    """Every metric of failover, measured and expected. measured: the flow's other metrics."""
    if flow.protocol != "sctp":
        return {}
    connected = _connected_ns(told, t0_monotonic_ns)
    found: dict[str, float | None] = {}
    if sender is not None:
        if flow.program is None:  # a program says nothing of what the kernel told it
            found |= _told(flow, sender, moments, told, t0_monotonic_ns)
        found["return_time_s"] = _return_time_s(sender, moments, window)
        if receiver is not None:
            found["refill_time_s"] = _refill_time_s(receiver, moments, window)
            found["spurious_retransmissions"] = _spurious(sender, receiver, window)
            found |= _lateness(cell, flow, sender, receiver, window, connected)
    situation = situation_of(cell, flow, connected)
    if situation is not None:
        theory = expected(settings_of(cell, flow), situation)
        if theory is not None:
            found |= theory_metrics(theory, dict(measured) | found, watched_s(moments, window, situation.inside))
    return found


def watched_s(moments: Moments, window: Window, inside: bool) -> dict[str, float]:
    """Metric -> for how long the window would still have shown it, s: after the fault, after the repair.

    Nothing where the path in use was not the primary that theory is about, or the flow has no end yet. inside: the
    sender's own interface went down, so that what it sends again may look new: its first copy died before the capture.
    """
    fault, end_ns = moments.fault, window.end_ns
    if fault is None or end_ns is None or moments.path_in_use != PRIMARY:
        return {}
    found = dict.fromkeys(THEORY, (end_ns - fault.from_ns) / 1e9)
    if inside:
        del found["first_retransmission_other_path_s"]
    if fault.to_ns is None:
        del found["return_time_s"]
    else:
        found["return_time_s"] = (end_ns - fault.to_ns) / 1e9
    return found


def _connected_ns(told: list[Record], t0_monotonic_ns: int) -> int | None:
    record = next((record for record in told if record.get("record") == "connected"), None)
    return None if record is None else int(record["t_ns"]) - t0_monotonic_ns


def _told(
    flow: Flow, sender: FlowPackets, moments: Moments, told: list[Record], t0_monotonic_ns: int
) -> dict[str, float | None]:
    """From the sender's notifications after the fault: of the path in use, and how many of any path."""
    fault = moments.fault
    if fault is None:
        return {}
    changes = [
        (int(record["t_ns"]) - t0_monotonic_ns - fault.from_ns, record)
        for record in told
        if record.get("record") == "notification" and record.get("type") == "PEER_ADDR_CHANGE"
    ]
    after = [(since_ns, record) for since_ns, record in changes if since_ns >= 0]
    found: dict[str, float | None] = {"state_changes": float(len(after))}
    for name, states in (("notification_time_s", FAILED), ("unreachable_time_s", FAILED[1:])):
        times = [
            since_ns / 1e9
            for since_ns, record in after
            if record.get("state") in states
            and sender.peers.get(str(record.get("address"))) == moments.path_in_use
            and moments.path_in_use is not None
        ]
        found[name] = min(times, default=None)
    return found


def _return_time_s(sender: FlowPackets, moments: Moments, window: Window) -> float | None:
    """From the repair to the first new data on the path in use before the fault, where new data had left it."""
    fault, moved = moments.fault, moments.first_new_sent_other_path_ns
    if fault is None or fault.to_ns is None or moved is None:
        return None
    data = sender.data.until(window.end_ns)
    begun = max(fault.to_ns, moved)
    back = first_ns(data.t_ns, (data.path == moments.path_in_use) & (data.new_bytes > 0) & (data.t_ns > begun))
    return None if back is None else (back - fault.to_ns) / 1e9


def _refill_time_s(receiver: FlowPackets, moments: Moments, window: Window) -> float | None:
    """From the fault to the arrival of the first REFILL_BYTES of new payload on other paths than the one in use."""
    fault = moments.fault
    if fault is None or moments.path_in_use is None:
        return None
    data = receiver.data.until(window.end_ns)
    elsewhere = (data.t_ns >= fault.from_ns) & (data.path != moments.path_in_use)
    arrived = np.cumsum(data.new_bytes * elsewhere)
    return None if (at := first_ns(data.t_ns, arrived >= REFILL_BYTES)) is None else (at - fault.from_ns) / 1e9


def _data(view: FlowPackets) -> Rows:
    chunks: Rows = sent_rows(view, view.point.capture.chunks)
    keep = np.isin(chunks["type"], (DATA, I_DATA)) & (chunks["tsn"] != UNKNOWN)
    found: Rows = chunks[keep]
    return found


def _spurious(sender: FlowPackets, receiver: FlowPackets, window: Window) -> float | None:
    """Chunks sent again although they had arrived. Both captures number TSNs from the INIT's."""
    if len(sender.data_direction) != 1 or len(receiver.data_direction) != 1:
        return None
    sent, arrived = _data(sender), _data(receiver)
    first = arrived[~arrived["is_retransmission"]]
    first = first[np.argsort(first["tsn"], kind="stable")]
    again = sent[sent["is_retransmission"]]
    if window.end_ns is not None:
        again = again[again["time_ns"] - sender.t0_realtime_ns <= window.end_ns]
    if not len(first) or not len(again):
        return 0.0
    place: Ints = np.minimum(np.searchsorted(first["tsn"], again["tsn"]), len(first) - 1)
    there: Bools = first["tsn"][place] == again["tsn"]
    return float((there & (first["time_ns"][place] < again["time_ns"])).sum())


def _lateness(
    cell: Cell, flow: Flow, sender: FlowPackets, receiver: FlowPackets, window: Window, connected_ns: int | None
) -> dict[str, float | None]:
    messages = messages_of(flow, sender, receiver, connected_ns)
    if messages is None or window.end_ns is None:
        return {}
    delays = messages.delays_s()
    found: dict[str, float | None] = {
        "undelivered_messages": float((messages.delivered_ns == NEVER).sum()),
        "longest_message_delay_s": float(delays.max()) if len(delays) else None,
    }
    try:
        limit = parse_quantity(cell.parameters[LATE], "time")
    except (KeyError, QuantityError):
        return found
    return found | {"late_messages": float(messages.late(int(limit.value), window.end_ns))}


def theory_metrics(
    theory: FailoverPrediction, measured: Mapping[str, float | None], watched: Mapping[str, float]
) -> dict[str, float | None]:
    """The expected ranges, and for each: 1 where what is measured lies in it, else 0.

    What never happened is 0 too where its range had ended while it was watched for (s).
    """
    ranges: dict[str, Range | None] = {name: getattr(theory, f"{name}_s") for name in THEORY.values()}
    found: dict[str, float | None] = {
        "theory_timeouts": float(theory.timeouts),
        "theory_rto_low_s": theory.rto_s.low,
        "theory_rto_high_s": theory.rto_s.high,
    }
    for metric, name in THEORY.items():
        wanted, value = ranges[name], measured.get(metric)
        found[f"theory_{name}_low_s"] = None if wanted is None else wanted.low
        found[f"theory_{name}_high_s"] = None if wanted is None else wanted.high
        as_theory = None
        if wanted is not None and value is not None:
            as_theory = float(wanted.holds(value))
        elif wanted is not None and _over_s(theory, name, wanted) < watched.get(metric, 0.0):
            as_theory = 0.0
        found[f"{name}_as_theory"] = as_theory
    return found


def _over_s(theory: FailoverPrediction, name: str, wanted: Range) -> float:
    """When it must have happened, after the fault. An outage is a length: its gap may begin with a later timeout."""
    if name != "outage":
        return wanted.high
    return math.inf if theory.new_data_s is None else max(wanted.high, theory.new_data_s.high)
