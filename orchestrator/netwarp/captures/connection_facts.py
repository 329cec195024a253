"""The facts of connections, made by column: a capture may have hundreds of thousands of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.wire import SCTP
from .capture import Capture, FlowOrder, address_text, take_rows
from .native import Bools, Ints, Rows
from .stream import CapturedStream

COUNTS = (
    "packets", "ip_bytes", "data_packets", "payload_bytes", "new_bytes", "retransmitted_packets", "data_chunks",
    "retransmitted_chunks", "sacks", "heartbeats", "heartbeat_acks",
)  # fmt: skip
TCP_COUNTS, SCTP_COUNTS = COUNTS[:6], COUNTS
# Counts that need a DATA chunk's TSN
BY_TSN = {"new_bytes", "retransmitted_packets", "retransmitted_data_packets", "retransmitted_chunks"}


def facts_of_flows(stream: CapturedStream, used: FlowOrder, rows: Ints, numbers: Ints) -> list[dict[str, Any]]:
    """The keys of `flows[]` in docs/analyze.md up to `paths`, of several rows of the flow table. used: the order of
    flow_paths by flow; numbers: of the connections in the summary.
    """
    is_sctp = stream.capture.flows["protocol"][rows] == SCTP
    facts: list[dict[str, Any]] = [{}] * len(rows)
    for sctp in set(is_sctp.tolist()):
        of = np.flatnonzero(is_sctp == sctp)
        for place, its in zip(of.tolist(), _of_protocol(stream, used, rows[of], numbers[of], sctp), strict=True):
            facts[place] = its
    return facts


def _of_protocol(
    stream: CapturedStream, used: FlowOrder, rows: Ints, numbers: Ints, sctp: bool
) -> list[dict[str, Any]]:
    capture = stream.capture
    places, edges = used.places_of(rows)
    table, flows = take_rows(capture.flow_paths, places), take_rows(capture.flows, rows)
    addresses = _addresses(capture, np.concatenate([table["path"], flows["path"]]))
    counts = {name: table[name] for name in (SCTP_COUNTS if sctp else TCP_COUNTS)}
    sums = {name: _sums(column, edges) for name, column in counts.items()}
    paths = _dicts(
        {
            "addresses": [
                [addresses[path][side], addresses[path][1 - side]]
                for path, side in zip(table["path"].tolist(), table["path_direction"].tolist(), strict=True)
            ],
            **{name: column.tolist() for name, column in counts.items()},
        }
    )
    not_known = [None] * len(rows)
    two = [
        _dicts({
            **{name: column[:, d].tolist() for name, column in sums.items()},
            "retransmitted_data_packets": not_known, "goodput_bit_s": not_known,
        })
        for d in (0, 1)
    ]  # fmt: skip
    ends = [
        (_with_port(addresses[path][side], ports[0]), _with_port(addresses[path][1 - side], ports[1]))
        for path, side, ports in zip(
            flows["path"].tolist(), flows["path_direction"].tolist(), flows["port"].tolist(), strict=True
        )
    ]
    columns: dict[str, Any] = {
        "flow": numbers.tolist(),
        "protocol": ["sctp" if sctp else "tcp"] * len(rows),
        "from": [here for here, _ in ends],
        "to": [there for _, there in ends],
        "start_s": ((flows["first_ns"] - stream.t0_ns) / 1e9).tolist(),
        "duration_s": ((flows["last_ns"] - flows["first_ns"]) / 1e9).tolist(),
        "handshake_seen": flows["base_known"].all(axis=1).tolist(),
        "ended": flows["ended"].tolist(),
        "mptcp_subflow": flows["mptcp"].tolist(),
    }
    if not sctp:
        columns["mss_bytes"] = [[first or None, second or None] for first, second in flows["mss"].tolist()]
        columns["refused"] = were_refused(flows, sums["data_packets"]).tolist()
    columns["ip_bytes"] = sums["ip_bytes"].sum(axis=1).tolist()
    columns["directions"] = list(map(list, zip(*two, strict=True)))
    columns["paths"] = [paths[begin:end] for begin, end in itertools.pairwise(edges)]
    facts = _dicts(columns)
    for its, row in zip(facts, rows.tolist(), strict=True):
        packets = stream.flows.get(row)
        if packets:
            for direction, known in enumerate(its["directions"]):
                known["retransmitted_data_packets"] = int(packets.repeats[direction])
                known["goodput_bit_s"] = packets.goodput_bit_s(direction)
        if sctp:
            _forget_without_tsn(its)
    return facts


def _addresses(capture: Capture, paths: Ints) -> dict[int, tuple[str, str]]:
    """The addresses at both ends of each of these paths."""
    table, numbers = capture.paths, sorted(set(paths.tolist()))
    both = [table[end][numbers].tolist() for end in ("a", "b")]
    text = {sixteen: address_text(sixteen) for sixteen in {*both[0], *both[1]}}
    return {path: (text[a], text[b]) for path, a, b in zip(numbers, *both, strict=True)}


def _sums(column: Ints, edges: Sequence[int]) -> Ints:
    """Sums of the column between each two neighbouring edges."""
    total = np.concatenate([np.zeros((1, 2), dtype=np.int64), np.cumsum(column, axis=0, dtype=np.int64)])
    return np.diff(total[edges], axis=0)


def _dicts(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The rows of a table of columns. Column by column: a third of the time of making each row from its names."""
    empty: dict[str, Any] = dict.fromkeys(columns)
    rows = [empty.copy() for _ in next(iter(columns.values()))]
    for name, column in columns.items():
        for row, value in zip(rows, column, strict=True):
            row[name] = value
    return rows


def were_refused(flows: Rows, data_packets: Ints) -> Bools:
    """True if a SYN was answered by a reset. data_packets: by direction."""
    known, ended = flows["base_known"], flows["ended"]
    refused: Bools = known[:, 0] & ~known[:, 1] & ended[:, 1] & (data_packets == 0).all(axis=1)
    return refused


def _forget_without_tsn(facts: dict[str, Any]) -> None:
    """Sets what needs TSNs to None, in a direction of which the snaplen cut off the TSN of every DATA chunk. The first
    TSN that is known counts as new by definition.
    """
    for direction, counts in enumerate(facts["directions"]):
        if counts["data_chunks"] and counts["payload_bytes"] and not counts["new_bytes"]:
            counts |= dict.fromkeys(BY_TSN)
            for path in facts["paths"]:
                for name in BY_TSN & path.keys():
                    path[name][direction] = None


def _with_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
