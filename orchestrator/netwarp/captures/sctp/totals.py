"""The totals of an association, and its series over time."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ...core.wire import ABORT, ASCONF, ASCONF_ACK, ERROR, RE_CONFIG
from ..arrays import ascending_order
from ..capture import AT_REST_NS, UNSEEN, rows_of_flow
from ..native import Floats, Ints, Rows
from ..time_spans import by
from .association import Association
from .timing import Outages
from .transmissions import NEVER

Totals = dict[str, float | int | None]
Series = dict[str, tuple[Floats, Floats]]
ROUND_TRIPS = ("rtt_samples", "rtt_min_s", "rtt_mean_s", "rtt_max_s", "heartbeat_rtt_mean_s")
# Shares of limits_s: what limited the data's sender
LIMITED = ("application_limited_ratio", "receive_window_limited_ratio", "loss_limited_ratio", "unknown_limit_ratio")
REPEATED = (
    "fast_retransmitted_chunks", "timeout_retransmitted_chunks", "unknown_retransmitted_chunks",
    "probe_retransmitted_chunks", "zero_window_probes", "t3_expiries",
)  # fmt: skip
CLOSED = ("zero_window_packets", "zero_windows", "zero_window_s")
# Totals that only the sender's capture can show: None in the receiver's
AT_SENDER = (
    "t3_expiries", "outages", "outage_longest_s", "progress_gap_longest_s", "outstanding_max_bytes", "limits_s",
    *LIMITED, *ROUND_TRIPS,
)  # fmt: skip
# Totals that only the receiver's capture can show: None in the sender's
AT_RECEIVER = (
    "hol_blocking_mean_s", "hol_blocking_max_s", "hol_blocking_one_stream_mean_s", "hol_blocking_one_stream_max_s",
    "sack_delay_mean_s", "sack_delay_max_s",
)  # fmt: skip


def totals(association: Association) -> Totals:
    """The totals of docs/metrics.md, "SCTP". Numbers that this capture point cannot show are None and are not
    computed.
    """
    points = {"sender": AT_RECEIVER, "receiver": AT_SENDER, "middle": (*AT_RECEIVER, *ROUND_TRIPS)}
    blind = points.get(association.point, ())
    if _unseen(association) > UNSEEN * len(association.sent):  # what is missing here may have come by another path
        blind = (*blind, *(name for name in AT_RECEIVER if name.startswith("hol_")))
    if association.answers_unseen:
        blind = (*blind, *AT_SENDER, *REPEATED, "heartbeats_unanswered", "inferred_retransmitted_chunks")
    return {name: None if name in blind else value() for name, value in _all(association).items()}


def _all(association: Association) -> dict[str, Callable[[], float | int | None]]:
    sent, again, messages, sacks = association.sent, association.again, association.messages, _sacks(association)
    chunks, user = association.columns, association.sent.rows["user_bytes"]
    back = chunks["direction"][chunks.is_data] != association.direction
    beats = association.heartbeats
    mine = beats.direction == association.direction

    def delays() -> Ints:
        return association.sacks.delay_ns[association.sacks.delay_ns >= 0]

    return {
        "data_chunks": lambda: len(sent),
        "new_data_chunks": lambda: int(sent.new.sum()),
        "user_bytes": lambda: int(user.sum()),
        "new_user_bytes": lambda: int(user.sum()) - int(user[sent.repeated].sum()),
        "acknowledged_chunks": lambda: int((association.reports.acked_by < len(association.reports.moment)).sum()),
        "acknowledged_unseen_chunks": lambda: _unseen(association),
        "data_chunks_other_direction": lambda: int(back.sum()),
        "unknown_tsn_chunks": lambda: int((~back).sum()) - len(sent),
        "retransmitted_chunks": lambda: len(sent.repeated),
        "inferred_retransmitted_chunks": lambda: int(again.inferred.sum()),
        "retransmitted_other_path_chunks": lambda: int(sent.rows["on_other_path"][again.row].sum()),
        **{name: functools.partial(_of, repeated, association, name) for name in REPEATED},
        **{name: functools.partial(_of, zero_windows, association, name) for name in CLOSED},
        "spurious_retransmitted_chunks": lambda: int(again.spurious.sum()),
        "network_duplicate_chunks": lambda: again.not_matched,
        "messages": lambda: len(messages.tsn),
        "complete_messages": lambda: int(messages.complete.sum()),
        "fragments_per_message_mean": lambda: _mean(messages.fragments),
        "fragments_per_message_max": lambda: _max(messages.fragments),
        "data_chunks_per_packet_mean": lambda: _mean(sent.per_packet),
        "data_chunks_per_packet_max": lambda: _max(sent.per_packet),
        "hol_blocking_mean_s": lambda: _mean(messages.waits_ns, 1e9),
        "hol_blocking_max_s": lambda: _max(messages.waits_ns, 1e9),
        "hol_blocking_one_stream_mean_s": lambda: _mean(messages.waits_as_one_ns, 1e9),
        "hol_blocking_one_stream_max_s": lambda: _max(messages.waits_as_one_ns, 1e9),
        "abandoned_chunks": lambda: _abandoned(association),
        "sacks": lambda: len(sacks),
        "gap_blocks": lambda: int(sacks["gap_blocks"].sum()),
        "sacks_with_gaps": lambda: int((sacks["gap_blocks"] > 0).sum()),
        "duplicate_tsns_reported": lambda: int(sacks["duplicate_tsns"].sum()),
        "incomplete_sacks": lambda: int(sacks["incomplete"].sum()),
        "data_packets_per_sack_mean": lambda: _mean(association.sacks.data_packets),
        "sack_delay_mean_s": lambda: _mean(delays(), 1e9),
        "sack_delay_max_s": lambda: _max(delays(), 1e9),
        "rtt_samples": lambda: len(association.rtt.rtt_ns),
        "rtt_min_s": lambda: None if not len(association.rtt.rtt_ns) else float(association.rtt.rtt_ns.min()) / 1e9,
        "rtt_mean_s": lambda: _mean(association.rtt.rtt_ns, 1e9),
        "rtt_max_s": lambda: _max(association.rtt.rtt_ns, 1e9),
        "heartbeats": lambda: int(mine.sum()),
        "heartbeats_unanswered": lambda: int((mine & beats.unanswered).sum()),
        "heartbeat_rtt_mean_s": lambda: _mean((beats.answered_ns - beats.time_ns)[mine & beats.answered], 1e9),
        "outstanding_max_bytes": lambda: _max(association.outstanding.value_bytes),
        "limits_s": lambda: _lasted_ns(association) / 1e9,
        **{name: functools.partial(_limited, association, name) for name in LIMITED},
        "paths": lambda: len(association.paths),
        "path_changes": lambda: int(np.count_nonzero(np.diff(sent.rows["path"][sent.new]))),
        "outages": lambda: len(association.outages.from_ns),
        "outage_longest_s": lambda: _longest_s(association.outages),
        "progress_gap_longest_s": lambda: association.outages.longest_gap_ns / 1e9,
        "aborts": lambda: len(chunks.of_type(ABORT)),
        "errors": lambda: len(chunks.of_type(ERROR)),
        "asconf_chunks": lambda: len(chunks.of_type(ASCONF, ASCONF_ACK)),
        "re_config_chunks": lambda: len(chunks.of_type(RE_CONFIG)),
    }


def repeated(association: Association, until_ns: int | None = None) -> dict[str, float]:
    """What the data's sender sent again, by its cause (REPEATED)."""
    sent, again = association.sent, association.again
    times = sent.rows["time_ns"][again.row]
    counts = by(times, until_ns)
    probes = again.row[again.probe & counts]
    kinds = (again.fast, again.timeout, again.unknown, again.probe)
    expiries = int(counts[again.expiries].sum())
    return dict(
        zip(REPEATED, (*(int((kind & counts).sum()) for kind in kinds), len(np.unique(sent.moment[probes])), expiries),
            strict=True)
    )  # fmt: skip


def zero_windows(association: Association, until_ns: int | None = None) -> dict[str, float]:
    """The receiver's SACKs that announce a window of 0, spells of them, and their time (CLOSED)."""
    reports = association.reports
    begin_ns, end_ns, _ = association.zero_windows
    begun = by(begin_ns, until_ns)
    lasted = (end_ns if until_ns is None else np.minimum(end_ns, until_ns)) - begin_ns
    packets = int((reports.closed & by(reports.time_ns, until_ns)).sum())
    return dict(zip(CLOSED, (packets, int(begun.sum()), int(lasted[begun].sum()) / 1e9), strict=True))


def _of(function: Callable[[Association], dict[str, float]], association: Association, name: str) -> float:
    return function(association)[name]


def _lasted_ns(association: Association) -> int:
    return int(association.row["last_ns"] - association.row["first_ns"])


def _limited(association: Association, name: str) -> float | None:
    """The share of one of LIMITED: nothing outstanding; no progress until T3 expired; a window of zero, also while one
    of these holds; else unknown (the congestion window and the path's rate are not told apart).
    """
    level, outage, lasted = association.outstanding, association.outages, _lasted_ns(association)
    if not lasted or _unseen(association) > UNSEEN * len(association.sent):
        return None
    first, last = (int(association.row[name]) for name in ("first_ns", "last_ns"))
    empty = np.append(True, level.value_bytes == 0)
    edge = np.concatenate([[first], level.time_ns, [last]])
    rest = empty & (np.diff(edge) >= AT_REST_NS)
    spells = (
        (edge[:-1][rest], edge[1:][rest]),
        association.zero_windows[:2],
        (outage.from_ns, np.minimum(outage.to_ns, last)),
    )
    bounds = np.unique(
        np.clip(np.concatenate([times for spell in spells for times in (*spell, [first, last])]), first, last)
    )
    took = np.diff(bounds) / lasted
    holds = [
        np.searchsorted(np.sort(begin), bounds[:-1], "right") > np.searchsorted(np.sort(end), bounds[:-1], "right")
        for begin, end in spells
    ]
    idle, closed, lost = holds
    shares = [float(took[where].sum()) for where in (idle & ~closed, closed, lost & ~closed & ~idle)]
    return dict(zip(LIMITED, (*shares, 1 - sum(shares)), strict=True))[name]


def _unseen(association: Association) -> int:
    """TSNs that were acknowledged cumulatively and never captured: the capture lacks a path, or lost packets."""
    tsns, acknowledged = association.sent.tsns, association.reports.cumulative
    if not len(tsns) or not len(acknowledged):
        return 0
    first = 0 if association.row["base_known"][association.direction] else int(tsns[0])
    there = np.searchsorted(tsns, acknowledged[-1], side="right") - np.searchsorted(tsns, first)
    return max(0, int(acknowledged[-1]) - first + 1 - int(there))


def _abandoned(association: Association) -> int:
    """TSNs that FORWARD TSN skipped and that were not acknowledged before: abandoned (RFC 3758 3.2)."""
    given_up, reports = association.given_up, association.reports
    return int(((given_up < NEVER) & (reports.moment_of(reports.acked_by) > given_up)).sum())


def _sacks(association: Association) -> Rows:
    sacks = rows_of_flow(association.capture, "sacks", association.flow)
    mine: Rows = sacks[sacks["direction"] != association.direction]
    return mine


def _longest_s(outages: Outages) -> float | int | None:
    """The longest outage that ended within the capture."""
    return _max((outages.to_ns - outages.from_ns)[outages.to_ns < NEVER], 1e9)


def _mean(values: Ints, scale: float = 1.0) -> float | None:
    return float(values.mean()) / scale if len(values) else None


def _max(values: Ints, scale: float = 1.0) -> float | int | None:
    if not len(values):
        return None
    return int(values.max()) if scale == 1.0 else float(values.max()) / scale


def series(association: Association, t0_ns: int) -> Series:
    """rtt_s and heartbeat_rtt_s: samples by path; outstanding_bytes: a step function, in all and by path;
    retransmitted_chunks: number so far; hol_blocking_s, hol_blocking_one_stream_s: by message, at its delivery.
    """

    def seconds(time_ns: Ints) -> Floats:
        return (time_ns - t0_ns) / 1e9

    points = {
        "sender": ("hol_",),
        "receiver": ("rtt_", "heartbeat_", "outstanding_"),
        "middle": ("hol_", "rtt_", "heartbeat_"),
    }
    blind = points.get(association.point, ())
    result: Series = {}
    beats = association.heartbeats
    level = association.outstanding
    result["outstanding_bytes"] = seconds(level.time_ns), level.value_bytes.astype(np.float64)
    for path in association.paths:
        name = association.path_name(path)
        mine = association.rtt.path == path
        result[f"rtt_s[{name}]"] = seconds(association.rtt.time_ns[mine]), association.rtt.rtt_ns[mine] / 1e9
        level = association.outstanding_on(path)
        result[f"outstanding_bytes[{name}]"] = seconds(level.time_ns), level.value_bytes.astype(np.float64)
        mine = (beats.path == path) & beats.answered
        rtt = (beats.answered_ns - beats.time_ns)[mine] / 1e9
        result[f"heartbeat_rtt_s[{name}]"] = seconds(beats.answered_ns[mine]), rtt
    time = association.sent.rows["time_ns"][association.sent.repeated]
    result["retransmitted_chunks"] = seconds(time), np.arange(1, len(time) + 1, dtype=np.float64)
    messages = association.messages
    for name, columns in (
        ("hol_blocking_s", ("waits_ns", "delivery_ns", "delivered")),
        ("hol_blocking_one_stream_s", ("waits_as_one_ns", "one_stream_ns", "delivered_as_one")),
    ):
        if name.startswith(blind):
            continue
        waits, at, kept = (getattr(messages, column) for column in columns)
        order = ascending_order(at[kept])
        result[name] = seconds(at[kept][order]), waits[order] / 1e9
    return {name: pair for name, pair in result.items() if len(pair[0]) and not name.startswith(blind)}
