"""The subflows of a cell's MPTCP flow: how many were opened, joined and lost, when, and which paths got none."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...captures.mptcp.lifetimes import Lifetime, addresses_told, lifetimes
from ...captures.mptcp.subflows import Group, groups
from ...core.metrics.catalogue import METRICS
from ...core.numbers import fixed
from ...core.types import Flow
from ..flow_packets import FlowPackets
from ..metrics import Window


@dataclasses.dataclass(frozen=True)
class Subflows:
    """metrics: the group's. events: joined, lost and unused paths, for the cell's page."""

    metrics: dict[str, float | None]
    events: list[dict[str, Any]]


def subflows_of(
    flow: Flow, sender: FlowPackets | None, receiver: FlowPackets | None, window: Window, names: list[str]
) -> Subflows | None:
    """What the sender's capture tells until the window's end; None for a flow that is no MPTCP. names: of the paths,
    by index.
    """
    if flow.protocol != "mptcp":
        return None
    metrics: dict[str, float | None] = dict.fromkeys(
        name for name, metric in METRICS.items() if metric.group == "mptcp"
    )
    if sender is None:
        return Subflows(metrics, [])
    t0_ns = sender.t0_realtime_ns
    end_ns = None if window.end_ns is None else t0_ns + window.end_ns
    mine = _groups(sender)
    found = [one for group in mine for one in lifetimes(sender.point.capture, group, end_ns)]
    opened = [one for one in found if one.asked_ns is not None]
    joined = [one for one in found if one.joined_ns is not None]
    begun = {group.flows[0] for group in mine}
    begun_ns = min((one.asked_ns for one in opened if one.asked_ns is not None), default=None)
    joins = sorted(one.joined_ns for one in joined if one.flow not in begun and one.joined_ns is not None)
    losses = sorted(one.lost_ns for one in found if one.lost_ns is not None)
    used = {_path(sender, one) for one in joined}
    metrics |= {
        "subflows_opened": float(len(opened)),
        "subflows_joined": float(len(joins)),
        "subflows_lost": float(len(losses)),
        "paths_used": float(len(used)),
    }
    if begun_ns is not None:
        for name, times in (("first_join", joins[:1]), ("last_join", joins[-1:]), ("first_loss", losses[:1])):
            metrics[f"subflow_{name}_time_s"] = (times[0] - begun_ns) / 1e9 if times else None
    events: list[dict[str, Any]] = []
    for one in found:
        path = names[_path(sender, one)]
        for at_ns, what in ((one.joined_ns, "joined"), (one.lost_ns, "lost")):
            if at_ns is not None and not (what == "joined" and one.flow in begun):
                text = f"subflow on {path} {what}"
                events.append(_event(flow, at_ns - t0_ns, f"subflow_{what}", text))
    unused = [number for number in range(len(flow.paths)) if number not in used]
    if unused and begun_ns is not None:
        missing = " and ".join(flow.paths[number].name for number in unused)
        text = f"{len(flow.paths) - len(unused)} of {len(flow.paths)} paths used, no subflow on {missing}"
        why = _why(sender, receiver, mine, [one for one in opened if one.joined_ns is None], names)
        events.append(_event(flow, begun_ns - t0_ns, "paths_unused", "; ".join([text, *why])))
    return Subflows(metrics, events)


def _groups(view: FlowPackets) -> list[Group]:
    return [group for group in groups(view.point.capture) if group.flows[0] in view.data_direction]


def _path(view: FlowPackets, one: Lifetime) -> int:
    return view.path_index[int(view.point.capture.flows["path"][one.flow])]


def _why(
    sender: FlowPackets, receiver: FlowPackets | None, mine: list[Group], failed: list[Lifetime], names: list[str]
) -> list[str]:
    """What the captures show of a path that got no subflow: an address that was told in vain, a join in vain."""
    found = []
    if receiver is not None:
        heard = {address for group in mine for address in addresses_told(sender.point.capture, group)}
        for group in _groups(receiver):
            for address, at_ns in addresses_told(receiver.point.capture, group).items():
                if address not in heard:
                    at_s = (at_ns - receiver.t0_realtime_ns) / 1e9
                    found.append(f"the ADD_ADDR of {address}, sent at {fixed(at_s, 6)} s, did not arrive")
    for one in failed:
        again = "once" if one.asked == 1 else f"{one.asked} times"
        found.append(f"MP_JOIN on {names[_path(sender, one)]} was asked for {again} and not completed")
    return found


def _event(flow: Flow, t_ns: int, kind: str, text: str) -> dict[str, Any]:
    return {"t_s": t_ns / 1e9, "flow": flow.name, "kind": kind, "text": text}
