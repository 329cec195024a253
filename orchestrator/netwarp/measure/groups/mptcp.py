"""Metrics of the subflows of an MPTCP flow: how many were opened, joined and lost, when, and which paths got none.
Definitions: docs/metrics.md, Subflows of MPTCP.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...captures.mptcp.subflows import Lifetime, addresses_announced
from ...core.metrics.catalogue import METRICS
from ...core.numbers import fixed
from ...store.derived import CellEvent
from ..flow_packets import FlowPackets
from ..observation import FlowObservation, mptcp_groups

NAMES = tuple(name for name, metric in METRICS.items() if metric.group == "mptcp")


def mptcp_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """From the sender's capture until the end of the window; {} for other protocols."""
    if observation.flow.protocol != "mptcp":
        return {}
    metrics: dict[str, float | None] = dict.fromkeys(NAMES)
    if observation.sender is None:
        return metrics
    subflows, first = observation.subflows, _first_subflows(observation.sender)
    joins = sorted(
        subflow.joined_ns for subflow in subflows if subflow.flow not in first and subflow.joined_ns is not None
    )
    losses = sorted(subflow.lost_ns for subflow in subflows if subflow.lost_ns is not None)
    metrics |= {
        "subflows_opened": float(sum(subflow.asked_ns is not None for subflow in subflows)),
        "subflows_joined": float(len(joins)),
        "subflows_lost": float(len(losses)),
        "paths_used": float(len(_paths_used(observation.sender, subflows))),
    }
    if (begun_ns := _begun_ns(subflows)) is not None:
        for name, times in (("first_join", joins[:1]), ("last_join", joins[-1:]), ("first_loss", losses[:1])):
            metrics[f"subflow_{name}_time_s"] = (times[0] - begun_ns) / 1e9 if times else None
    return metrics


def mptcp_events(observation: FlowObservation) -> list[CellEvent]:
    """Subflows joined and lost and unused paths, for the cell's page."""
    sender, flow, names, subflows = observation.sender, observation.flow, observation.path_names, observation.subflows
    if sender is None or flow.protocol != "mptcp":
        return []
    t0_ns, first = sender.t0_realtime_ns, _first_subflows(sender)
    events: list[CellEvent] = []

    def add(at_ns: int, kind: str, text: str) -> None:
        events.append(CellEvent((at_ns - t0_ns) / 1e9, flow.name, kind, text))

    for subflow in subflows:
        path = names[_path(sender, subflow)]
        if subflow.joined_ns is not None and subflow.flow not in first:
            add(subflow.joined_ns, "subflow_joined", f"subflow on {path} joined")
        if subflow.lost_ns is not None:
            add(subflow.lost_ns, "subflow_lost", f"subflow on {path} lost")
    used, begun_ns = _paths_used(sender, subflows), _begun_ns(subflows)
    unused = [path.name for number, path in enumerate(flow.paths) if number not in used]
    if unused and begun_ns is not None:
        count = len(flow.paths) - len(unused)
        text = f"{count} of {len(flow.paths)} paths used, no subflow on {' and '.join(unused)}"
        add(begun_ns, "paths_unused", "; ".join([text, *_reasons(observation, sender)]))
    return events


def _first_subflows(sender: FlowPackets) -> set[int]:
    """Rows of the flow table: the first subflow of each connection."""
    return {group.flows[0] for group in mptcp_groups(sender)}


def _begun_ns(subflows: Sequence[Lifetime]) -> int | None:
    return min((subflow.asked_ns for subflow in subflows if subflow.asked_ns is not None), default=None)


def _path(sender: FlowPackets, subflow: Lifetime) -> int:
    return sender.path_index[int(sender.point.capture.flows["path"][subflow.flow])]


def _paths_used(sender: FlowPackets, subflows: Sequence[Lifetime]) -> set[int]:
    return {_path(sender, subflow) for subflow in subflows if subflow.joined_ns is not None}


def _reasons(observation: FlowObservation, sender: FlowPackets) -> list[str]:
    """Sentences about a path that got no subflow, from the captures: an address that was announced in vain, a join
    without success.
    """
    reasons, receiver = [], observation.receiver
    if receiver is not None:
        heard = {
            address for group in mptcp_groups(sender) for address in addresses_announced(sender.point.capture, group)
        }
        for group in mptcp_groups(receiver):
            for address, at_ns in addresses_announced(receiver.point.capture, group).items():
                if address not in heard:
                    at_s = (at_ns - receiver.t0_realtime_ns) / 1e9
                    reasons.append(f"the ADD_ADDR of {address}, sent at {fixed(at_s, 6)} s, did not arrive")
    for subflow in observation.subflows:
        if subflow.asked_ns is not None and subflow.joined_ns is None:
            path = observation.path_names[_path(sender, subflow)]
            again = "once" if subflow.asked == 1 else f"{subflow.asked} times"
            reasons.append(f"MP_JOIN on {path} was asked for {again} and not completed")
    return reasons
