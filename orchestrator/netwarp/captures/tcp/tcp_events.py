"""The events of a TCP connection, sorted by time: {t_s, what, direction, ...}."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.wire import FIN, RST, SYN
from .bytes_in_flight import idle_gaps
from .columns import DirectionColumns
from .direction import Direction
from .retransmission import RetransmissionCause

MOST = 200  # Events per kind and direction; of further ones only the number is given
NAMES = {
    RetransmissionCause.FAST: "fast_retransmission",
    RetransmissionCause.TIMEOUT: "timeout",
    RetransmissionCause.TAIL_PROBE: "tail_loss_probe",
    RetransmissionCause.UNKNOWN: "retransmission",
}


def tcp_events(directions: tuple[Direction, Direction], t0_ns: int) -> list[dict[str, Any]]:
    """Handshake, ends, the first retransmission of each recovery, zero windows; sorted by time, at most 200 of a kind
    and direction.
    """
    events: list[dict[str, Any]] = []
    for d, direction in enumerate(directions):
        events += _control(direction, d, t0_ns) + _retransmissions(direction, d, t0_ns) + _windows(direction, d, t0_ns)
    for begin, length in zip(*idle_gaps(directions[0].data, directions[1].data), strict=True):
        events.append(
            {"t_s": (int(begin) - t0_ns) / 1e9, "what": "idle", "direction": None, "for_s": int(length) / 1e9}
        )
    return sorted(events, key=lambda event: float(event["t_s"]))


def _control(direction: Direction, d: int, t0_ns: int) -> list[dict[str, Any]]:
    flags = direction.data.flags
    events = []
    for bit, name in ((SYN, "syn"), (FIN, "fin"), (RST, "rst")):
        for place in np.flatnonzero(flags & bit)[:MOST].tolist():
            t_s = (int(direction.data.time_ns[place]) - t0_ns) / 1e9
            again = bool(direction.data.is_retransmission[place])
            event: dict[str, Any] = {"t_s": t_s, "what": name, "direction": d, "again": again}
            if bit == RST:
                row, sides = int(direction.data.row[place]), (direction.data, direction.acks)
                event["unacknowledged_bytes"] = [_outstanding(*ends, row) for ends in (sides, sides[::-1])]
            events.append(event)
    return events


def _outstanding(sent: DirectionColumns, heard: DirectionColumns, row: int) -> int:
    """Payload in bytes that one end had sent before a segment and the other had not acknowledged."""
    since, until = np.searchsorted(heard.row, row), np.searchsorted(sent.row, row)
    una = max(1, int(heard.highest_ack[since - 1])) if since else 1
    return max(0, min(int(sent.highest_end[until - 1]), sent.data_end) - una) if until else 0


def _retransmissions(direction: Direction, d: int, t0_ns: int) -> list[dict[str, Any]]:
    all_of = direction.retransmissions
    if all_of is None:
        return []
    events = []
    beyond = direction.data.highest_end[all_of.segment]
    una = direction.data.seq[all_of.segment]
    # a fast recovery begins where nothing sent before the last one is still missing
    reach = (
        np.concatenate([[0], np.maximum.accumulate(np.where(all_of.cause == RetransmissionCause.FAST, beyond, 0))[:-1]])
        if len(beyond)
        else beyond
    )
    for cause, name in NAMES.items():
        chosen = all_of.cause == cause
        if cause == RetransmissionCause.FAST:
            chosen &= una >= reach
        for row in np.flatnonzero(chosen)[:MOST].tolist():
            event = {
                "t_s": (int(direction.data.time_ns[all_of.segment[row]]) - t0_ns) / 1e9,
                "what": name,
                "direction": d,
                "seq": int(direction.data.seq[all_of.segment[row]]),
                "waited_s": int(all_of.waited_ns[row]) / 1e9,
                "spurious": bool(all_of.spurious[row]),
            }
            if cause == RetransmissionCause.TIMEOUT:
                event["series"] = int(all_of.series[row])
            events.append(event)
    return events


def _windows(direction: Direction, d: int, t0_ns: int) -> list[dict[str, Any]]:
    windows = direction.windows
    return [
        {
            "t_s": (begin - t0_ns) / 1e9,
            "what": "zero_window",
            "direction": 1 - d,
            "for_s": None if end < 0 else (end - begin) / 1e9,
        }
        for begin, end in zip(windows.span_begin_ns[:MOST].tolist(), windows.span_end_ns[:MOST].tolist(), strict=True)
    ]
