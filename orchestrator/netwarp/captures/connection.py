"""The connections of a capture's summary: TCP, SCTP, and the MPTCP connections whose subflows are among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.wire import SCTP
from .capture import Capture
from .native import Rows
from .stream import FlowSeries, Stream

COUNTS = (
    "packets", "ip_bytes", "data_packets", "payload_bytes", "new_bytes", "retransmitted_packets", "data_chunks",
    "retransmitted_chunks", "sacks", "heartbeats", "heartbeat_acks",
)  # fmt: skip
SCTP_ONLY = COUNTS[6:]
BY_TSN = {"new_bytes", "retransmitted_packets", "retransmitted_data_packets", "retransmitted_chunks"}
"""Counts that take a DATA chunk's TSN."""
Series = tuple[Any, Any]
"""Times (s from the file's first packet) and values: arrays of one length."""


@dataclasses.dataclass(frozen=True)
class Connection:
    """number: in the order of size within the file, from 1. `ends`: address and port of the initiator (or who was seen
    first) and of the other; direction 0 is from ends[0]. directions: counts and goodput of each; paths: the same by
    address pair. totals, series, events, tables (rows): of the protocol's own analyser (docs/metrics.md), and
    series of packets.
    """

    number: int
    row: int
    protocol: str
    ends: tuple[str, str]
    facts: dict[str, Any]
    directions: tuple[dict[str, Any], dict[str, Any]]
    paths: tuple[dict[str, Any], ...]
    totals: Mapping[str, Any]
    series: Mapping[str, Series]
    events: tuple[Mapping[str, Any], ...]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    silences: tuple[tuple[int, float, float, bool], ...]
    """(direction, begin in s, length in s, whether a retransmission ended it) of the longest pauses in data."""

    @property
    def name(self) -> str:
        """Who with whom."""
        return f"{self.ends[0]} > {self.ends[1]}"

    @property
    def ip_bytes(self) -> int:
        """Of both directions."""
        return int(sum(counts["ip_bytes"] for counts in self.directions))

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md; series are left to --csv and --html."""
        return {
            "flow": self.number,
            "protocol": self.protocol,
            "from": self.ends[0],
            "to": self.ends[1],
            **self.facts,
            "ip_bytes": self.ip_bytes,
            "directions": list(self.directions),
            "paths": list(self.paths),
            "totals": dict(self.totals),
            "events": [dict(event) for event in self.events],
            "tables": dict(self.tables),
        }


def make_connection(stream: Stream, row: int, number: int, used: Rows, analysis: Mapping[str, Any]) -> Connection:
    """used: the flow's rows of flow_paths. analysis: `totals`, `series` and `events` of its protocol's analyser, empty
    without one.
    """
    capture, packets = stream.capture, stream.flows.get(row)
    flow = capture.flows[row]
    protocol = "sctp" if flow["protocol"] == SCTP else "tcp"
    end = int(flow["path_direction"])
    ends = [_with_port(capture.address(int(flow["path"]), side), int(flow["port"][at])) for at, side in
            enumerate((end, 1 - end))]  # fmt: skip
    span_s = int(flow["last_ns"] - flow["first_ns"]) / 1e9
    counts = [name for name in COUNTS if protocol == "sctp" or name not in SCTP_ONLY]
    directions = []
    for direction in (0, 1):
        totals: dict[str, Any] = {name: int(used[name][:, direction].sum()) for name in counts}
        totals["retransmitted_data_packets"] = int(packets.repeats[direction]) if packets else None
        totals["goodput_bit_s"] = packets.goodput_bit_s(direction) if packets else None
        if _no_tsn(totals):
            totals |= dict.fromkeys(BY_TSN)
        directions.append(totals)
    unknown = [direction for direction in (0, 1) if directions[direction]["new_bytes"] is None]
    facts = {
        "start_s": int(flow["first_ns"] - stream.t0_ns) / 1e9,
        "duration_s": span_s,
        "handshake_seen": bool(flow["base_known"].all()),
        "ended": [bool(value) for value in flow["ended"]],
        "mptcp_subflow": bool(flow["mptcp"]),
    }
    if protocol == "tcp":
        facts["mss_bytes"] = [int(value) or None for value in flow["mss"]]
    return Connection(
        number=number,
        row=row,
        protocol=protocol,
        ends=(ends[0], ends[1]),
        facts=facts,
        directions=(directions[0], directions[1]),
        paths=tuple(_path(capture, path, counts, unknown) for path in used),
        totals=analysis.get("totals", {}),
        series={**(_series(stream, packets) if packets else {}), **analysis.get("series", {})},
        events=tuple(analysis.get("events", ())),
        tables=analysis.get("tables", {}),
        silences=tuple((d, *silence) for d in (0, 1) for silence in packets.silences[d]) if packets else (),
    )


def _no_tsn(counts: Mapping[str, Any]) -> bool:
    """Whether the snaplen cut off the TSN of every DATA chunk: the first one known is new, by definition."""
    return bool(counts.get("data_chunks") and counts["payload_bytes"] and not counts["new_bytes"])


def _with_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _path(capture: Capture, used: Rows, counts: list[str], unknown: list[int]) -> dict[str, Any]:
    """unknown: directions none of whose TSNs was captured."""
    side = int(used["path_direction"])
    path: dict[str, Any] = {name: used[name].tolist() for name in counts}
    for direction in (0, 1):
        if direction in unknown:
            for name in BY_TSN & path.keys():
                path[name][direction] = None
    return {"addresses": [capture.address(int(used["path"]), end) for end in (side, 1 - side)], **path}


def _series(stream: Stream, flow: FlowSeries) -> dict[str, Series]:
    times, width_s = stream.times_s(), stream.bin_ns / 1e9
    series: dict[str, Series] = {}
    for direction, way in enumerate(("forward", "back")):
        if flow.new_bytes[direction].any():
            series[f"goodput_{way}_bit_s"] = (times, stream.rate_bit_s(flow.new_bytes[direction]))
            series[f"progress_{way}_bytes"] = (times + width_s, np.cumsum(flow.new_bytes[direction])[: len(times)])
        if flow.retransmitted[direction].any():
            series[f"retransmitted_{way}_packets"] = (times, flow.retransmitted[direction][: len(times)])
    return series


@dataclasses.dataclass(frozen=True)
class Multipath:
    """One MPTCP connection. number: in the order of size, from 1; flows: numbers of its subflows in the summary;
    complete: False where the handshake, and so what belongs together, is not in the capture.
    """

    number: int
    flows: tuple[int, ...]
    complete: bool
    version: int
    direction: int
    totals: Mapping[str, Any]
    series: Mapping[str, Series]
    events: Sequence[Mapping[str, Any]]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "series"}
        return {"connection": values.pop("number"), **values}


def multipath_of(capture: Capture, connections: Sequence[Connection], start_ns: int) -> tuple[Multipath, ...]:
    """Those of a capture whose rows are in memory, the largest first; times from start_ns."""
    if not any(connection.facts["mptcp_subflow"] for connection in connections):
        return ()
    from .mptcp import analyze_mptcp  # here: few captures have any

    numbers = {connection.row: connection.number for connection in connections}
    analyses = sorted(
        analyze_mptcp(capture, t0_ns=start_ns), key=lambda analysis: -(analysis.totals["payload_bytes"] or 0)
    )
    return tuple(
        Multipath(
            number=number,
            flows=tuple(numbers[row] for row in analysis.flows),
            complete=analysis.complete,
            version=analysis.version,
            direction=analysis.direction,
            totals=analysis.totals,
            series=analysis.series,
            events=analysis.events,
            # the row of the flow table says nothing outside: the number of the flow in the summary does
            tables={
                name: [row | {"flow": numbers[row["flow"]]} if "flow" in row else row for row in rows]
                for name, rows in analysis.tables.items()
            },
        )
        for number, analysis in enumerate(analyses, 1)
    )
