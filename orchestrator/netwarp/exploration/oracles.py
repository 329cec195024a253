"""Oracles: faults of a kernel that a cell of an exploration shows, whatever its schedule does.

Faults and losses may make a connection fail: that is no finding. What must hold is said here: the kernel says nothing
bad, leaves nothing behind, comes to an end, and delivers what it says it has delivered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.types import BACK, CellOutcome, Outcome
from ..store.console import splats_in
from .changes import Change, FaultChange, PacketChange, SettingChange
from .counters import Kept

HUNG = re.compile(r"stall|did not end|virtual deadline|was killed after|hung", re.IGNORECASE)
LOST = re.compile(r"timed out|reset|aborted|broken pipe|closed|not connected|unreachable", re.IGNORECASE)
"""What a program says when its connection was given up. What it says of its settings is no finding."""
OF_THE_BENCH = ("guest memory", "timeline", "start of ", "read-backs", "capture/", "spinning")
"""The beginnings of checks that say something of the cell's circumstances, not of the protocol."""
THRESHOLDS = re.compile(r"_retrans$|_retransmits$|^init_|retries|cookie_life|^reconnect$|overflow|linear|^loss$|^stop$")
"""Settings that make a connection give up sooner, by their names."""
RECOVERY = re.compile(r"tcp_(early_retrans|recovery|sack|frto|thin_linear_timeouts|syncookies|fastopen)$|^congestion$")
OF_MPTCP = "reinjection_wait_s"
"""A metric that flows of MPTCP alone have: a subflow may wait because its data went to another one."""
LOSES = re.compile(r"^(loss|jitter|queue|mtu|duplicate|corrupt)$")
MODELLED = (
    "first_retransmission_as_theory", "new_data_as_theory", "notification_as_theory", "unreachable_as_theory",
    "outage_as_theory",
)  # fmt: skip
"""Metrics that are 0 where the kernel moves data, or tells of a path, at another time than the failover model says."""
GIVES_UP = ("lifetime", "max_retransmissions", "stop")
"""Settings by which a sender does not send all."""
FEW_LOSSES, MANY_LOSSES = 2, 6
"""With more than so many a timeout that doubles from 1 s on reaches a program's deadline of 200 s by itself."""
CLOSED_WITHIN_NS = 600_000_000_000
"""As cell-init waits (apps/cell-init/sandbox.c, CLOSING_NS)."""
OBJECTS = ("assoc", "transport", "chunk", "datamsg", "bind_addr", "keys", "ssnmap")
"""Of SCTP, as sctp_dbg_objcnt calls them. Sockets and endpoints are not among them: each namespace has its own."""
SLABS = re.compile(r"skbuff_|sctp_chunk|^TCP|^MPTCP|^SCTP|request_sock_|mptcp")
SLACK_OBJECTS, SLACK_PACKETS = 3, 64
"""So many more objects of a cache, or heads of packets, are no leak: netlink and timers hold some at any moment, and
each CPU keeps 64 heads (net/core/skbuff.c, NAPI_SKB_CACHE_SIZE).
"""


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with a cell. kind: a word; text: a sentence; mark: equal where it is the same thing again."""

    kind: str
    text: str
    mark: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a cell left: how it ended, its console, what its kernel holds, its metrics (flow, name) -> value.

    in_time: its flows were over before its duration was. A slow one is cut off, and what it lacks says nothing.
    """

    outcome: CellOutcome
    console: str
    kept: Kept | None
    values: Mapping[tuple[str, str], float]
    in_time: bool = True


def wrongs(seen: Seen, root: Seen, changes: Sequence[Change]) -> Iterator[Wrong]:
    """Everything that is wrong with a cell. root: the cell without changes. changes: with what is given of the root."""
    said = list(_splats(seen))
    yield from said
    if not said:  # a splat is the reason of the end, too
        yield from _ending(seen, changes)
    yield from _left(seen, root)
    if seen.in_time:
        yield from _delivery(seen, changes)


def _splats(seen: Seen) -> Iterator[Wrong]:
    if found := splats_in(seen.console):  # what follows the first is of the same
        text = found[0].line
        yield Wrong("splat", text, re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\b\d+\b", "N", text))


def _ending(seen: Seen, changes: Sequence[Change]) -> Iterator[Wrong]:
    outcome, reason = seen.outcome.outcome, seen.outcome.reason
    mark = re.sub(r"\d[\d.]*", "N", reason)
    backs_off = _lost(changes) > MANY_LOSSES or ("no new payload" in reason and _may_drop(changes))
    if outcome is Outcome.TIMED_OUT or (outcome is Outcome.FAILED and HUNG.search(reason) and not backs_off):
        yield Wrong("hang", reason or "it did not end", mark)
    elif outcome is Outcome.FAILED and mild(changes) and LOST.search(reason):
        yield Wrong("gave up", f"after few losses: {reason}", mark)
    elif outcome is Outcome.FAILED and "without an end record" in reason:
        yield Wrong("crash", reason, mark)
    elif outcome is Outcome.INVALID and seen.in_time and not (reason.startswith(OF_THE_BENCH) or _may_drop(changes)):
        yield Wrong("invalid", reason, mark)


def _left(seen: Seen, root: Seen) -> Iterator[Wrong]:
    if seen.kept is None or root.kept is None:
        return
    now, before = seen.kept.texts, root.kept.texts
    if int(now.get("waited_ns", "0")) >= CLOSED_WITHIN_NS:
        yield Wrong("never closed", "an association or socket was still there 600 s after its programs", "")
        return
    counts, usual = _numbers(now.get("sctp", "")), _numbers(before.get("sctp", ""))
    for name in OBJECTS:
        if counts.get(name, 0) > usual.get(name, 0):
            more = counts[name] - usual.get(name, 0)
            yield Wrong("leak", f"SCTP still has {more} {name} more than without the schedule", name)
    counts, usual = _numbers(now.get("slabs", "")), _numbers(before.get("slabs", ""))
    for name, count in counts.items():
        slack = SLACK_PACKETS if name.startswith("skbuff_") else SLACK_OBJECTS
        if SLABS.search(name) and count > usual.get(name, 0) + slack:
            more = count - usual.get(name, 0)
            yield Wrong("leak", f"slab cache {name} has {more} objects more than without the schedule", name)


def _numbers(text: str) -> dict[str, int]:
    """ "name: 3" or "name 3", a line each."""
    pairs = re.findall(r"^(\S+?):?\s+(-?\d+)\s*$", text, re.MULTILINE)
    return {name: int(number) for name, number in pairs}


def _delivery(seen: Seen, changes: Sequence[Change]) -> Iterator[Wrong]:
    """By the analyser's metrics, which say nothing of cells that did not complete."""
    for (flow, metric), value in seen.values.items():
        if flow.endswith(BACK):  # SCTP has no half-closed state: the sender's close ends that direction
            continue
        if metric in MODELLED and not value and _modelled(changes):
            yield Wrong("promise", f"flow {flow}: the failover model says another time: {metric} is 0", metric)
        if not value:
            continue
        aborted = bool(seen.values.get((flow, "aborts"), 0.0))
        text = f"flow {flow}: {metric} is {value:g}"
        if metric == "undelivered_bytes" and not aborted and not _may_drop(changes):
            yield Wrong("payload", f"{text}, and no end aborted", metric)
        elif (
            metric in ("data_on_failed_path_packets", "window_excess_bytes")
            or (metric == "unreported_chunks" and _all_seen(changes))
            or (metric == "unprobed_timeouts" and (flow, OF_MPTCP) not in seen.values and _recovers(changes))
            or (metric == "unfounded_path_failures" and _all_seen(changes) and not _may_drop(changes))
        ):
            yield Wrong("promise", text, metric)
        elif metric == "ends_disagree" and not aborted and mild(changes) and (flow, "objects") not in seen.values:
            yield Wrong("promise", f"{text}, and no end aborted", metric)
        elif metric == "aborts" and mild(changes) and not _again(changes):
            yield Wrong("promise", f"{text} after few losses", metric)


def _again(changes: Sequence[Change]) -> bool:
    """True if packets come twice or late: one that comes when its end is closed is answered by a reset or an ABORT."""
    return any(
        change.action != "drop"
        if isinstance(change, PacketChange)
        else isinstance(change, SettingChange) and change.path[-1] in ("jitter", "duplicate")
        for change in changes
    )


def _all_seen(changes: Sequence[Change]) -> bool:
    """True if what a host sends is captured: not where its interface is down, or has lost its address."""
    return not any(
        isinstance(each, FaultChange) and each.table["action"] not in ("cut", "blackhole") for each in changes
    )


def _modelled(changes: Sequence[Change]) -> bool:
    """True if the model of docs/failover.md has all of it: one link that is cut, and no other loss or fault."""
    faults = [change.table for change in changes if isinstance(change, FaultChange)]
    others = [change for change in changes if not isinstance(change, FaultChange)]
    return [fault["action"] for fault in faults] == ["cut"] and all(
        isinstance(change, SettingChange) and not (change.path[0] == "link" and LOSES.search(change.path[-1]))
        for change in others
    )


def _recovers(changes: Sequence[Change]) -> bool:
    """True if hosts recover as by default, and what they send is captured."""
    told = any(isinstance(change, SettingChange) and RECOVERY.search(change.path[-1]) for change in changes)
    return _all_seen(changes) and not told


def _may_drop(changes: Sequence[Change]) -> bool:
    """True if the schedule lets the sender give messages up (PR-SCTP), or ends a program."""
    return any(
        isinstance(change, SettingChange) and (change.path[-1] in GIVES_UP or change.value == "abort")
        for change in changes
    ) or any("restart" in change.text for change in changes)


def _lost(changes: Sequence[Change]) -> int:
    return sum(isinstance(change, PacketChange) and change.action == "drop" for change in changes)


def mild(changes: Sequence[Change]) -> bool:
    """True if a schedule is no reason to give a connection up: few packets lost, no fault, no lower threshold."""
    others = [change for change in changes if not isinstance(change, PacketChange)]
    lower = any(
        not isinstance(each, SettingChange) or THRESHOLDS.search(each.path[-1]) or each.value == "abort"
        for each in others
    )
    late = any(isinstance(change, PacketChange) and change.delay_ns >= 1_000_000_000 for change in changes)
    return _lost(changes) <= FEW_LOSSES and not lower and not late
