"""The tables of an association: by path, chunk type, stream, payload protocol, packet, message, outage, error cause."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.wire import HEARTBEAT_ACK, PAYLOAD_NAMES, SACK, cause_name, chunk_name
from ..capture import rows_of_flow
from ..native import Ints
from .association import Association
from .interval_search import run_lengths, unique_with_places
from .messages import Messages
from .transmissions import NEVER

Row = dict[str, Any]


def tables(association: Association, t0_ns: int) -> dict[str, list[Row]]:
    """docs/metrics.md, "SCTP"; directions: "data" from the data's sender, "back" from its receiver."""
    return {
        "paths": _paths(association),
        "chunks": _chunks(association),
        "streams": _by(association, "stream"),
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
