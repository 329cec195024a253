"""What happened on a connection, as a list to read: {t_s, what, ...}."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.wire import FIN, RST, SYN
from .bytes_in_flight import idle_gaps
from .direction import Direction
from .retransmission import Why

MOST = 200
"""Events of one kind and direction; more are told by their number alone."""
NAMES = {
    Why.FAST: "fast_retransmission",
    Why.TIMEOUT: "timeout",
    Why.TAIL_PROBE: "tail_loss_probe",
    Why.UNKNOWN: "retransmission",
}


def happenings_of(directions: tuple[Direction, Direction], t0_ns: int) -> list[dict[str, Any]]:
    """Handshake, ends, retransmissions that begin something (not each of a recovery), zero windows; by time, at most
    200 of a kind and direction.
    """
    found: list[dict[str, Any]] = []
    for d, one in enumerate(directions):
        found += _control(one, d, t0_ns) + _retransmissions(one, d, t0_ns) + _windows(one, d, t0_ns)
    for begin, length in zip(*idle_gaps(directions[0].data, directions[1].data), strict=True):
        found.append({"t_s": (int(begin) - t0_ns) / 1e9, "what": "idle", "direction": None, "for_s": int(length) / 1e9})
    return sorted(found, key=lambda event: float(event["t_s"]))


def _control(one: Direction, d: int, t0_ns: int) -> list[dict[str, Any]]:
    flags = one.data.flags
    found = []
    for bit, name in ((SYN, "syn"), (FIN, "fin"), (RST, "rst")):
        for place in np.flatnonzero(flags & bit)[:MOST].tolist():
            t_s = (int(one.data.time_ns[place]) - t0_ns) / 1e9
            found.append({"t_s": t_s, "what": name, "direction": d, "again": bool(one.data.is_retransmission[place])})
    return found


def _retransmissions(one: Direction, d: int, t0_ns: int) -> list[dict[str, Any]]:
    all_of = one.retransmissions
    if all_of is None:
        return []
    found = []
    beyond = one.data.highest_end[all_of.segment]
    una = one.data.seq[all_of.segment]
    # a fast recovery begins where nothing sent before the last one is still missing
    reach = (
        np.concatenate([[0], np.maximum.accumulate(np.where(all_of.why == Why.FAST, beyond, 0))[:-1]])
        if len(beyond)
        else beyond
    )
    for why, name in NAMES.items():
        chosen = all_of.why == why
        if why == Why.FAST:
            chosen &= una >= reach
        for row in np.flatnonzero(chosen)[:MOST].tolist():
            event = {
                "t_s": (int(one.data.time_ns[all_of.segment[row]]) - t0_ns) / 1e9,
                "what": name,
                "direction": d,
                "seq": int(one.data.seq[all_of.segment[row]]),
                "waited_s": int(all_of.waited_ns[row]) / 1e9,
                "spurious": bool(all_of.spurious[row]),
            }
            if why == Why.TIMEOUT:
                event["series"] = int(all_of.series[row])
            found.append(event)
    return found


def _windows(one: Direction, d: int, t0_ns: int) -> list[dict[str, Any]]:
    windows = one.windows
    return [
        {
            "t_s": (begin - t0_ns) / 1e9,
            "what": "zero_window",
            "direction": 1 - d,
            "for_s": None if end < 0 else (end - begin) / 1e9,
        }
        for begin, end in zip(windows.span_begin_ns[:MOST].tolist(), windows.span_end_ns[:MOST].tolist(), strict=True)
    ]
