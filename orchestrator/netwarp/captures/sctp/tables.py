"""An association in rows: by path, chunk type, stream, payload protocol, packet, message, outage, error cause."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.wire import HEARTBEAT_ACK, PAYLOAD_NAMES, SACK, cause_name, chunk_name
from ..native import Ints
from .association import Association
from .interval_search import distinct, run_lengths
from .messages import Messages
from .transmissions import NEVER

Row = dict[str, Any]


def tables(found: Association, t0_ns: int) -> dict[str, list[Row]]:
    """docs/metrics.md, "SCTP"; directions: "data" from the data's sender, "back" from its receiver."""
    return {
        "paths": _paths(found),
        "chunks": _chunks(found),
        "streams": _by(found, "stream"),
        "payloads": [row | {"name": PAYLOAD_NAMES.get(row["ppid"], "")} for row in _by(found, "ppid")],
        "bundling": _bundling(found),
        "fragmentation": _counts("fragments", found.messages.fragments, "messages"),
        "outages": [] if found.point == "receiver" else _outages(found, t0_ns),
        "causes": _causes(found, t0_ns),
    }


def _paths(found: Association) -> list[Row]:
    """By path and direction: packets, data new and again, SACKs, heartbeats; and its share of new data and of SACKs."""
    rows = []
    totals = found.capture.flow_paths[found.capture.flow_paths["flow"] == found.flow]
    chunks = found.columns
    is_data = chunks.is_data
    all_new = is_data & ~chunks["is_retransmission"]
    is_sack, is_answer = (chunks["type"] == kind for kind in (SACK, HEARTBEAT_ACK))
    sent, again = found.sent, found.again
    beats, rtt = found.heartbeats, found.rtt
    for path in found.paths:
        (used,) = totals[totals["path"] == path]
        on_path = chunks["path"] == path
        for name, direction in (("data", found.direction), ("back", 1 - found.direction)):
            from_there = chunks["direction"] == direction
            here = on_path & from_there
            all_sacks = int((is_sack & from_there).sum())
            mine = (beats.path == path) & (beats.direction == direction)
            new = all_new & from_there
            sacks = int((here & is_sack).sum())
            row: Row = {
                "path": found.path_name(path),
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
                row |= {
                    "declared_lost_fast_chunks": int((from_here & again.fast).sum()),
                    "declared_lost_timeout_chunks": int((from_here & ~again.fast).sum()),
                    "t3_expiries": int((again.from_path[again.expiries] == path).sum()),
                    "spurious_retransmitted_chunks": int(
                        (again.spurious & (sent.rows["path"][again.row] == path)).sum()
                    ),
                    "rtt_samples": len(samples),
                    "rtt_mean_s": float(samples.mean()) / 1e9 if len(samples) else None,
                }
            rows.append(row)
    return rows


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _chunks(found: Association) -> list[Row]:
    kinds, directions = found.columns["type"], found.columns["direction"]
    counts = [np.bincount(kinds[directions == d], minlength=256) for d in (found.direction, 1 - found.direction)]
    return [
        {"type": kind, "name": chunk_name(kind), "data": int(counts[0][kind]), "back": int(counts[1][kind])}
        for kind in np.flatnonzero(counts[0] + counts[1]).tolist()
    ]


def _by(found: Association, column: str) -> list[Row]:
    """By stream, or by payload protocol: messages, their bytes, and how long they waited for others."""
    told = found.messages
    values, place = distinct(getattr(told, column))
    count = len(values)

    def total(weights: Ints) -> list[int]:
        return [int(value) for value in np.bincount(place, weights=weights, minlength=count)]

    blind = [None] * count
    means = [blind if found.point == "sender" else _means(place, told, count, as_one=one) for one in (False, True)]
    columns = {
        column: values.tolist(),
        "messages": np.bincount(place, minlength=count).tolist(),
        "unordered_messages": np.bincount(place[told.unordered], minlength=count).tolist(),
        "chunks": total(told.fragments),
        "new_user_bytes": total(told.payload_bytes),
        "hol_blocking_mean_s": means[0],
        "hol_blocking_one_stream_mean_s": means[1],
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _means(place: Ints, told: Messages, count: int, *, as_one: bool) -> list[float | None]:
    kept, waits = (told.delivered_as_one, told.waits_as_one_ns) if as_one else (told.delivered, told.waits_ns)
    number = np.bincount(place[kept], minlength=count)
    total = np.bincount(place[kept], weights=waits, minlength=count)
    return [float(t) / n / 1e9 if n else None for t, n in zip(total.tolist(), number.tolist(), strict=True)]


def _bundling(found: Association) -> list[Row]:
    """How many packets carried how many chunks (all kinds), and how many DATA chunks, in each direction."""
    rows: list[Row] = []
    chunks = found.columns
    for name, direction in (("data", found.direction), ("back", 1 - found.direction)):
        here = chunks["direction"] == direction
        for what, mine in (("chunks", here), ("data chunks", here & chunks.is_data)):
            per_packet = run_lengths(chunks["packet"][mine])
            rows += [{"direction": name, "what": what} | row for row in _counts("per_packet", per_packet, "packets")]
    return rows


def _counts(name: str, values: Ints, of: str) -> list[Row]:
    levels, place = distinct(values)
    counts = np.bincount(place, minlength=len(levels))
    return [{name: level, of: count} for level, count in zip(levels.tolist(), counts.tolist(), strict=True)]


def _outages(found: Association, t0_ns: int) -> list[Row]:
    rows = []
    out = found.outages
    for i, since in enumerate(out.from_ns.tolist()):
        rows.append(
            {
                "t_s": (since - t0_ns) / 1e9,
                "path": found.path_name(int(out.path[i])),
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


def _causes(found: Association, t0_ns: int) -> list[Row]:
    rows = found.capture.causes[found.capture.causes["flow"] == found.flow]
    return [
        {
            "t_s": (int(row["time_ns"]) - t0_ns) / 1e9,
            "chunk": chunk_name(int(row["type"])),
            "direction": "data" if row["direction"] == found.direction else "back",
            "code": int(row["code"]),
            "cause": cause_name(int(row["code"])),
            "length": int(row["length"]),
            "path": found.path_name(int(row["path"])),
        }
        for row in rows
    ]
