"""The tables of an association (by path, chunk type, stream, payload protocol, packet, message, outage, error cause),
and its events by time.
"""

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
    PAYLOAD_NAMES,
    SACK,
    cause_name,
    chunk_name,
)
from ..arrays import rank_in_run, run_begins, run_lengths, unique_with_places
from ..capture import rows_of_flow
from ..native import Ints
from .association import Association
from .messages import Messages
from .transmissions import NEVER

Row = dict[str, Any]


def tables(association: Association, t0_ns: int) -> dict[str, list[Row]]:
    """docs/metrics.md, "SCTP"; directions: "data" from the data's sender, "back" from its receiver."""
    return {
        "paths": _paths(association),
        "chunks": _chunks(association),
        "streams": _streams(association),
        "payloads": [row | {"name": PAYLOAD_NAMES.get(row["ppid"], "")} for row in _by(association, "ppid")],
        "bundling": _bundling(association),
        "fragmentation": _counts("fragments", association.messages.fragments, "messages"),
        "outages": [] if association.point == "receiver" else _outages(association, t0_ns),
        "causes": _causes(association, t0_ns),
    }


def _paths(association: Association) -> list[Row]:
    """By path and direction: packets, data new and again, SACKs, heartbeats; and its share of new data and of SACKs."""
    rows = []
    totals = rows_of_flow(association.capture, "flow_paths", association.flow)
    chunks = association.columns
    is_data = chunks.is_data
    all_new = is_data & ~chunks["is_retransmission"]
    is_sack, is_answer = (chunks["type"] == kind for kind in (SACK, HEARTBEAT_ACK))
    sent, again = association.sent, association.again
    beats, rtt = association.heartbeats, association.rtt
    for path in association.paths:
        (used,) = totals[totals["path"] == path]
        on_path = chunks["path"] == path
        for name, direction in (("data", association.direction), ("back", 1 - association.direction)):
            from_there = chunks["direction"] == direction
            here = on_path & from_there
            all_sacks = int((is_sack & from_there).sum())
            mine = (beats.path == path) & (beats.direction == direction)
            new = all_new & from_there
            sacks = int((here & is_sack).sum())
            row: Row = {
                "path": association.path_name(path),
                "direction": name,
                "packets": int(used["packets"][direction]),
                "ip_bytes": int(used["ip_bytes"][direction]),
                "new_data_chunks": int((here & new).sum()),
                "retransmitted_chunks": int((here & is_data & chunks["is_retransmission"]).sum()),
                "retransmitted_other_path_chunks": int((here & chunks["on_other_path"]).sum()),
                "user_bytes": int(chunks["user_bytes"][here & is_data].astype(np.int64).sum()),
                "new_data_ratio": _ratio(int((here & new).sum()), int(new.sum())),
                "sacks": sacks,
                "sack_ratio": _ratio(sacks, all_sacks),
                "heartbeats": int(mine.sum()),
                "heartbeats_unanswered": int((mine & ~beats.answered).sum()),
                "heartbeat_acks": int((here & is_answer).sum()),
            }
            if name == "data":
                from_here = again.from_path == path
                samples = rtt.rtt_ns[rtt.path == path]
                known = association.point != "receiver"
                whole = known and association.point != "middle"
                row |= {
                    "declared_lost_fast_chunks": int((from_here & again.fast).sum()) if known else None,
                    "declared_lost_timeout_chunks": int((from_here & again.timeout).sum()) if known else None,
                    "t3_expiries": int((again.from_path[again.expiries] == path).sum()) if known else None,
                    "spurious_retransmitted_chunks": int(
                        (again.spurious & (sent.rows["path"][again.row] == path)).sum()
                    ),
                    "rtt_samples": len(samples) if whole else None,
                    "rtt_mean_s": float(samples.mean()) / 1e9 if whole and len(samples) else None,
                }
            rows.append(row)
    return rows


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _chunks(association: Association) -> list[Row]:
    kinds, directions = association.columns["type"], association.columns["direction"]
    counts = [
        np.bincount(kinds[directions == d], minlength=256) for d in (association.direction, 1 - association.direction)
    ]
    return [
        {"type": kind, "name": chunk_name(kind), "data": int(counts[0][kind]), "back": int(counts[1][kind])}
        for kind in np.flatnonzero(counts[0] + counts[1]).tolist()
    ]


def _by(association: Association, column: str) -> list[Row]:
    """By stream, or by payload protocol: messages, their bytes, and how long they waited for others."""
    messages = association.messages
    values, place = unique_with_places(getattr(messages, column))
    count = len(values)

    def total(weights: Ints) -> list[int]:
        return [int(value) for value in np.bincount(place, weights=weights, minlength=count)]

    blind = [None] * count
    means = [
        blind if association.point == "sender" else _means(place, messages, count, as_one=as_one)
        for as_one in (False, True)
    ]
    columns = {
        column: values.tolist(),
        "messages": np.bincount(place, minlength=count).tolist(),
        "unordered_messages": np.bincount(place[messages.unordered], minlength=count).tolist(),
        "chunks": total(messages.fragments),
        "new_user_bytes": total(messages.payload_bytes),
        "hol_blocking_mean_s": means[0],
        "hol_blocking_one_stream_mean_s": means[1],
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _streams(association: Association) -> list[Row]:
    """By stream, with what was sent again and the longest delay."""
    chunks = association.columns
    again = chunks.is_data & (chunks["direction"] == association.direction) & chunks["is_retransmission"]
    repeated = np.bincount(chunks["stream"][again], minlength=1 << 16)
    messages, longest = association.messages, np.zeros(1 << 16, dtype=np.int64)
    np.maximum.at(longest, messages.stream[messages.delivered], messages.waits_ns)
    blind = association.point == "sender"
    return [
        {"direction": "data", **row, "retransmitted_chunks": int(repeated[row["stream"]]),
         "hol_blocking_max_s": None if blind or row["hol_blocking_mean_s"] is None
         else int(longest[row["stream"]]) / 1e9}
        for row in _by(association, "stream")
    ]  # fmt: skip


def _means(place: Ints, messages: Messages, count: int, *, as_one: bool) -> list[float | None]:
    kept, waits = (
        (messages.delivered_as_one, messages.waits_as_one_ns) if as_one else (messages.delivered, messages.waits_ns)
    )
    number = np.bincount(place[kept], minlength=count)
    total = np.bincount(place[kept], weights=waits, minlength=count)
    return [float(t) / n / 1e9 if n else None for t, n in zip(total.tolist(), number.tolist(), strict=True)]


def _bundling(association: Association) -> list[Row]:
    """Number of packets by their number of chunks (all kinds), and by their number of DATA chunks, in each
    direction.
    """
    rows: list[Row] = []
    chunks = association.columns
    for name, direction in (("data", association.direction), ("back", 1 - association.direction)):
        here = chunks["direction"] == direction
        for what, mine in (("chunks", here), ("data chunks", here & chunks.is_data)):
            per_packet = run_lengths(chunks["packet"][mine])
            rows += [{"direction": name, "what": what} | row for row in _counts("per_packet", per_packet, "packets")]
    return rows


def _counts(name: str, values: Ints, of: str) -> list[Row]:
    levels, place = unique_with_places(values)
    counts = np.bincount(place, minlength=len(levels))
    return [{name: level, of: count} for level, count in zip(levels.tolist(), counts.tolist(), strict=True)]


def _outages(association: Association, t0_ns: int) -> list[Row]:
    rows = []
    out = association.outages
    for i, since in enumerate(out.from_ns.tolist()):
        rows.append(
            {
                "t_s": (since - t0_ns) / 1e9,
                "path": association.path_name(int(out.path[i])),
                "duration_s": _after(int(out.to_ns[i]), since),
                "t3_expiries": int(out.expiries[i]),
                "first_retransmission_other_path_s": _after(int(out.retransmission_ns[i]), since),
                "first_new_data_other_path_s": _after(int(out.new_data_ns[i]), since),
                "return_s": _after(int(out.return_ns[i]), since),
            }
        )
    return rows


def _after(moment: int, since: int) -> float | None:
    return None if moment == NEVER else (moment - since) / 1e9


def _causes(association: Association, t0_ns: int) -> list[Row]:
    rows = rows_of_flow(association.capture, "causes", association.flow)
    return [
        {
            "t_s": (int(row["time_ns"]) - t0_ns) / 1e9,
            "chunk": chunk_name(int(row["type"])),
            "direction": "data" if row["direction"] == association.direction else "back",
            "code": int(row["code"]),
            "cause": cause_name(int(row["code"])),
            "length": int(row["length"]),
            "path": association.path_name(int(row["path"])),
        }
        for row in rows
    ]


OF_THE_STREAM = (DATA, I_DATA, SACK, HEARTBEAT, HEARTBEAT_ACK, FORWARD_TSN, I_FORWARD_TSN)
MOST = 500  # Events of one kind that are listed; the rest is told by its count

Event = dict[str, Any]


def events(association: Association, t0_ns: int) -> list[Event]:
    """Handshakes, ends, errors, resets, address changes; restart; path changes of new data; outages; T3 expiries;
    unanswered heartbeats. Each is {t_s, what, path}, with further members by kind.
    """
    result = [*_control(association, t0_ns), *of_the_data(association, t0_ns)]
    beats = association.heartbeats
    silent = beats.unanswered
    for end in (0, 1):
        if association.row["heard"][1 - end] and not (association.columns["direction"] == 1 - end).any():
            silent &= beats.direction != end  # its answers are not in the capture
    for place in np.flatnonzero(silent)[:MOST].tolist():
        what = "unanswered HEARTBEAT"
        result.append(_event(association, int(beats.time_ns[place]), t0_ns, what, int(beats.path[place])))
    return sorted(result, key=lambda event: event["t_s"])


def of_the_data(association: Association, t0_ns: int) -> list[Event]:
    """The events that belong to the data of one direction: its path changes, zero windows, outages and T3 expiries."""
    result = _path_changes(association, t0_ns)
    for begin, end, path in zip(*(column[:MOST].tolist() for column in association.zero_windows), strict=True):
        more = {"direction": 1 - association.direction, "for_s": (end - begin) / 1e9}
        result.append(_event(association, begin, t0_ns, "zero_window", path, **more))
    if association.point != "receiver" and not association.answers_unseen:
        result += [*_outage_events(association, t0_ns), *_expiries(association, t0_ns)]
    return result


def _event(association: Association, time_ns: int, t0_ns: int, what: str, path: int, **more: Any) -> Event:
    return {"t_s": (time_ns - t0_ns) / 1e9, "what": what, "path": association.path_name(path), **more}


def _control(association: Association, t0_ns: int) -> list[Event]:
    """Every chunk that is neither data nor its acknowledgement; with error causes where it carries any."""
    of_the_stream = np.isin(np.arange(256), OF_THE_STREAM)
    rows = association.chunks[~of_the_stream[association.columns["type"]]]
    # the first MOST of each kind
    order = np.argsort(rows["type"], kind="stable")
    rows = rows[np.sort(order[rank_in_run(run_begins(rows["type"][order])) < MOST])]
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


def _outage_events(association: Association, t0_ns: int) -> list[Event]:
    out = association.outages
    result = []
    for place in range(min(len(out.from_ns), MOST)):
        path, since, to = int(out.path[place]), int(out.from_ns[place]), int(out.to_ns[place])
        length = None if to == NEVER else (to - since) / 1e9
        result.append(
            _event(
                association,
                since,
                t0_ns,
                "outage begins",
                path,
                duration_s=length,
                t3_expiries=int(out.expiries[place]),
            )
        )
        first = int(out.retransmission_ns[place])
        if first < NEVER:
            what, other = "first retransmission on another path", int(out.other_path[place])
            result.append(_event(association, first, t0_ns, what, other, after_s=(first - since) / 1e9))
    return result
