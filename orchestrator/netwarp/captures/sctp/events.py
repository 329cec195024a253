"""The events of an association, sorted by time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.wire import (
    DATA,
    FORWARD_TSN,
    HEARTBEAT,
    HEARTBEAT_ACK,
    I_DATA,
    I_FORWARD_TSN,
    SACK,
    cause_name,
    chunk_name,
)
from ..capture import rows_of_flow
from .association import Association
from .transmissions import NEVER

OF_THE_STREAM = (DATA, I_DATA, SACK, HEARTBEAT, HEARTBEAT_ACK, FORWARD_TSN, I_FORWARD_TSN)
MOST = 500  # Events of one kind that are listed; the rest is told by its count

Event = dict[str, Any]


def events(association: Association, t0_ns: int) -> list[Event]:
    """Handshakes, ends, errors, resets, address changes; restart; path changes of new data; outages; T3 expiries;
    unanswered heartbeats. Each is {t_s, what, path}, with further members by kind.
    """
    result = [*_control(association, t0_ns), *of_the_data(association, t0_ns)]
    beats = association.heartbeats
    for place in np.flatnonzero(~beats.answered)[:MOST].tolist():
        what = "unanswered HEARTBEAT"
        result.append(_event(association, int(beats.time_ns[place]), t0_ns, what, int(beats.path[place])))
    return sorted(result, key=lambda event: event["t_s"])


def of_the_data(association: Association, t0_ns: int) -> list[Event]:
    """The events that belong to the data of one direction: its path changes, zero windows, outages and T3 expiries."""
    result = _path_changes(association, t0_ns)
    for begin, end, path in zip(*(column[:MOST].tolist() for column in association.zero_windows), strict=True):
        more = {"direction": 1 - association.direction, "for_s": (end - begin) / 1e9}
        result.append(_event(association, begin, t0_ns, "zero_window", path, **more))
    if association.point != "receiver":
        result += [*_outages(association, t0_ns), *_expiries(association, t0_ns)]
    return result


def _event(association: Association, time_ns: int, t0_ns: int, what: str, path: int, **more: Any) -> Event:
    return {"t_s": (time_ns - t0_ns) / 1e9, "what": what, "path": association.path_name(path), **more}


def _control(association: Association, t0_ns: int) -> list[Event]:
    """Every chunk that is neither data nor its acknowledgement; with error causes where it carries any."""
    of_the_stream = np.isin(np.arange(256), OF_THE_STREAM)
    rows = association.chunks[~of_the_stream[association.columns["type"]]]
    if len(rows):  # the first MOST of each kind
        order = np.argsort(rows["type"], kind="stable")
        begins = np.concatenate([[True], np.diff(rows["type"][order].astype(np.int64)) != 0])
        place = np.arange(len(order))
        keep = place - np.maximum.accumulate(np.where(begins, place, 0)) < MOST
        rows = rows[np.sort(order[keep])]
    causes = rows_of_flow(association.capture, "causes", association.flow)
    causes_of: dict[tuple[int, int], list[str]] = {}
    for cause in causes:
        causes_of.setdefault((int(cause["packet"]), int(cause["type"])), []).append(cause_name(int(cause["code"])))
    result = []
    for row in rows:
        direction = "data" if row["direction"] == association.direction else "back"
        more: Event = {"direction": direction}
        if names := causes_of.get((int(row["packet"]), int(row["type"]))):
            more["causes"] = names
        what = chunk_name(int(row["type"]))
        result.append(_event(association, int(row["time_ns"]), t0_ns, what, int(row["path"]), **more))
    if result and int(association.row["restart_of"]) < len(association.capture.flows):
        result.append({**result[0], "what": "restart", "restart_of": int(association.row["restart_of"])})
    return result


def _path_changes(association: Association, t0_ns: int) -> list[Event]:
    """The times at which new data changes its path."""
    new = association.sent.new
    path, time = association.sent.rows["path"][new], association.sent.rows["time_ns"][new]
    result = []
    for place in (np.flatnonzero(np.diff(path) != 0) + 1)[:MOST].tolist():
        back = path[place] == path[0]
        before = association.path_name(int(path[place - 1]))
        what = "new data returns to its first path" if back else "new data on another path"
        result.append(_event(association, int(time[place]), t0_ns, what, int(path[place]), before=before))
    return result


def _expiries(association: Association, t0_ns: int) -> list[Event]:
    """T3 expiries, at the first retransmission after each; on the path that was left."""
    again = association.again
    at = association.sent.rows["time_ns"][again.row[again.expiries]]
    return [
        _event(association, time, t0_ns, "T3 expiry", path)
        for time, path in zip(at[:MOST].tolist(), again.from_path[again.expiries][:MOST].tolist(), strict=True)
    ]


def _outages(association: Association, t0_ns: int) -> list[Event]:
    out = association.outages
    result = []
    for place in range(min(len(out.from_ns), MOST)):
        path, since, to = int(out.path[place]), int(out.from_ns[place]), int(out.to_ns[place])
        length = None if to == NEVER else (to - since) / 1e9
        result.append(_event(association, since, t0_ns, "outage begins", path, duration_s=length))
        first = int(out.retransmission_ns[place])
        if first < NEVER:
            what, other = "first retransmission on another path", int(out.other_path[place])
            result.append(_event(association, first, t0_ns, what, other, after_s=(first - since) / 1e9))
    return result
