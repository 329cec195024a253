"""The connections of a capture's summary: TCP, SCTP, and the MPTCP connections whose subflows are among them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from ..core.wire import SCTP
from .capture import Capture, FlowOrder, take_rows
from .flow_analysis import analyze_flow
from .native import Bools, Ints
from .stream import FlowSeries, Stream

COUNTS = (
    "packets", "ip_bytes", "data_packets", "payload_bytes", "new_bytes", "retransmitted_packets", "data_chunks",
    "retransmitted_chunks", "sacks", "heartbeats", "heartbeat_acks",
)  # fmt: skip
TCP_COUNTS, SCTP_COUNTS = COUNTS[:6], COUNTS
FLOW_COLUMNS = (
    "protocol", "path", "path_direction", "port", "first_ns", "last_ns", "base_known", "ended", "mptcp", "mss",
)  # fmt: skip
TOGETHER = 1024
"""Number of connections computed from the tables in one step."""
BY_TSN = {"new_bytes", "retransmitted_packets", "retransmitted_data_packets", "retransmitted_chunks"}
"""Counts that need a DATA chunk's TSN."""
Series = tuple[Any, Any]
"""Times (s from the file's first packet) and values: arrays of one length."""


@dataclasses.dataclass(frozen=True)
class Connection:
    """A TCP connection or SCTP association of a capture's summary.

    number: rank by size within the file, from 1. `ends`: address and port of the initiator (if unknown, of the first
    sender) and of the other end; direction 0 is from ends[0]. directions: counts and goodput of each direction; paths:
    the same per address pair. totals, events, tables (rows): results of the protocol's own analyser (docs/metrics.md).
    make_series: computes `series`.
    """

    number: int
    row: int
    protocol: str
    ends: tuple[str, str]
    facts: dict[str, Any]
    directions: tuple[dict[str, Any], dict[str, Any]]
    paths: tuple[dict[str, Any], ...]
    totals: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    silences: tuple[tuple[int, float, float, bool], ...]
    """(direction, begin in s, length in s, whether a retransmission ended it) of the longest pauses in data."""
    make_series: Callable[[], Mapping[str, Series]] = dataclasses.field(repr=False, compare=False)

    @functools.cached_property
    def series(self) -> Mapping[str, Series]:
        """Series of the packets and of the protocol's own analyser."""
        return self.make_series()

    @property
    def name(self) -> str:
        """Both ends, as text."""
        return f"{self.ends[0]} > {self.ends[1]}"

    @property
    def ip_bytes(self) -> int:
        """IP bytes of both directions."""
        return int(sum(counts["ip_bytes"] for counts in self.directions))

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md, without the series (--csv and --html write those)."""
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


class Connections(Sequence[Connection]):
    """The connections of a capture point, the largest first. Each is computed when it is first accessed. Only the
    `detailed` largest, whose packets are analysed, are kept in memory: 300,000 of them would take a gigabyte.
    """

    def __init__(self, stream: Stream, detailed: int, only: int | None = None) -> None:
        """only: number of the only connection to analyse."""
        capture = stream.capture
        self.stream, self.detailed = stream, detailed if stream.whole else 0
        self._used = FlowOrder(capture.flow_paths["flow"], len(capture.flows))
        size = self._by_flow("ip_bytes")
        self.rows = np.argsort(-size, kind="stable")
        self.numbers = np.empty(len(size), dtype=np.int64)
        self.numbers[self.rows] = np.arange(1, len(size) + 1)
        """By row of the flow table: the connection's number."""
        self._kept: dict[int, Connection] = {}
        self._before = 0
        if only is not None:
            self.rows, self._before = self.rows[only - 1 : only], only - 1
            self.detailed = min(self.detailed, 1)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Connection: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Connection, ...]: ...
    def __getitem__(self, place: int | slice) -> Connection | tuple[Connection, ...]:
        places = range(len(self))[place]
        return self._make([places])[0] if isinstance(places, int) else tuple(self.at(places))

    def __iter__(self) -> Iterator[Connection]:
        return self.at(range(len(self)))

    def at(self, places: Sequence[int]) -> Iterator[Connection]:
        """The connections at these places."""
        for begin in range(0, len(places), TOGETHER):
            yield from self._make(places[begin : begin + TOGETHER])

    def unanswered(self) -> Bools:
        """For each place, whether one end alone sent packets and no data: an unanswered handshake, or part of one."""
        data, packets = (self._by_flow(name, axis=0) for name in ("data_packets", "packets"))
        lonely: Bools = ((packets == 0).any(axis=1) & (data == 0).all(axis=1))[self.rows]
        return lonely

    def refused(self) -> tuple[Bools, dict[str, list[int]]]:
        """The ports that refused connections (SYN answered by a reset), by address."""
        flows, data = self.stream.capture.flows, self._by_flow("data_packets", axis=0)
        known, ended = flows["base_known"], flows["ended"]
        refused = known[:, 0] & ~known[:, 1] & ended[:, 1] & (data == 0).all(axis=1) & (flows["protocol"] != SCTP)
        rows = np.flatnonzero(refused)
        ends = flows["path"][rows].astype(np.int64) * 2 + (1 - flows["path_direction"][rows])
        ports: dict[str, list[int]] = {}
        for end in sorted(set(ends.tolist())):  # np.unique imports masked arrays (10 ms)
            address = self.stream.capture.address(end // 2, end % 2)
            ports.setdefault(address, []).extend(flows["port"][rows[ends == end], 1].tolist())
        by_place: Bools = refused[self.rows]
        return by_place, ports

    def worth_a_look(self) -> Bools:
        """For each place, whether the connection was analysed in detail or had a retransmission."""
        return (np.arange(len(self)) < self.detailed) | (self._by_flow("retransmitted_packets")[self.rows] > 0)

    def _by_flow(self, name: str, axis: int | None = 1) -> Ints:
        """Sums of a column of flow_paths per flow, of both directions together or (axis 0) per direction."""
        column = self.stream.capture.flow_paths[name].astype(np.int64)
        column = column.sum(axis=1) if axis else column
        total = np.zeros((len(self._used.edges) - 1, *column.shape[1:]), dtype=np.int64)
        np.add.at(total, self.stream.capture.flow_paths["flow"], column)
        return total

    def _make(self, places: Sequence[int]) -> list[Connection]:
        new = [place for place in places if place not in self._kept]
        made = dict(zip(new, self._make_new(new), strict=True)) if new else {}
        self._kept |= {place: connection for place, connection in made.items() if place < self.detailed}
        return [made.get(place) or self._kept[place] for place in places]

    def _make_new(self, places: Sequence[int]) -> Iterator[Connection]:
        """Computes several connections at once, taking the columns of all of them from the tables in one step."""
        capture = self.stream.capture
        rows = self.rows[np.array(places, dtype=np.int64)]
        used, edges = self._used.places_of(rows)
        table, facts = take_rows(capture.flow_paths, used), take_rows(capture.flows, rows)
        columns = [table[name] for name in COUNTS]
        sums = [_sums(column, edges) for column in columns]
        forward, back = (list(zip(*(column[:, d].tolist() for column in sums), strict=True)) for d in (0, 1))
        counts = list(zip(*(column.tolist() for column in columns), strict=True))
        flows = {name: facts[name].tolist() for name in FLOW_COLUMNS}
        addresses = self._addresses(np.concatenate([table["path"], facts["path"]]))
        ends = [
            (addresses[path][side], addresses[path][1 - side])
            for path, side in zip(table["path"].tolist(), table["path_direction"].tolist(), strict=True)
        ]
        for at, (place, row) in enumerate(zip(places, rows.tolist(), strict=True)):
            names = SCTP_COUNTS if flows["protocol"][at] == SCTP else TCP_COUNTS
            paths = tuple(
                {"addresses": list(ends[number]), **dict(zip(names, counts[number], strict=False))}
                for number in range(edges[at], edges[at + 1])
            )
            flow = {name: column[at] for name, column in flows.items()}
            totals = [dict(zip(names, by_flow[at], strict=False)) for by_flow in (forward, back)]
            yield self._connection(place, row, flow, addresses[flow["path"]], paths, totals)

    def _connection(
        self,
        place: int,
        row: int,
        flow: dict[str, Any],
        addresses: tuple[str, str],
        paths: tuple[dict[str, Any], ...],
        directions: list[dict[str, Any]],
    ) -> Connection:
        stream, packets = self.stream, self.stream.flows.get(row)
        sctp = flow["protocol"] == SCTP
        end = flow["path_direction"]
        for direction, totals in enumerate(directions):
            totals["retransmitted_data_packets"] = int(packets.repeats[direction]) if packets else None
            totals["goodput_bit_s"] = packets.goodput_bit_s(direction) if packets else None
        for direction in (0, 1):
            if _no_tsn(directions[direction]):
                directions[direction] |= dict.fromkeys(BY_TSN)
                for path in paths:
                    for name in BY_TSN & path.keys():
                        path[name][direction] = None
        facts = {
            "start_s": (flow["first_ns"] - stream.t0_ns) / 1e9,
            "duration_s": (flow["last_ns"] - flow["first_ns"]) / 1e9,
            "handshake_seen": all(flow["base_known"]),
            "ended": flow["ended"],
            "mptcp_subflow": flow["mptcp"],
        }
        if not sctp:
            facts["mss_bytes"] = [value or None for value in flow["mss"]]
            facts["refused"] = _refused(flow["base_known"], flow["ended"], [d["data_packets"] for d in directions])
        analysis = analyze_flow(stream.capture, row, stream.t0_ns) if place < self.detailed else None
        return Connection(
            number=place + 1 + self._before,
            row=row,
            protocol="sctp" if sctp else "tcp",
            ends=(_with_port(addresses[end], flow["port"][0]), _with_port(addresses[1 - end], flow["port"][1])),
            facts=facts,
            directions=(directions[0], directions[1]),
            paths=paths,
            totals=analysis.totals if analysis else {},
            events=self._numbered(analysis.events) if analysis else (),
            tables=analysis.tables if analysis else {},
            silences=tuple((d, *silence) for d in (0, 1) for silence in packets.silences[d]) if packets else (),
            make_series=lambda: {
                **(_series(stream, packets) if packets else {}),
                **(analysis.series() if analysis else {}),
            },
        )

    def _addresses(self, paths: Ints) -> dict[int, tuple[str, str]]:
        """The addresses at both ends of each of these paths."""
        capture, numbers = self.stream.capture, set(paths.tolist())
        return {path: (capture.address(path, 0), capture.address(path, 1)) for path in numbers}

    def _numbered(self, events: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """The events with other connections named by their number here instead of their row in the capture."""
        return tuple(
            event
            if event.get("restart_of") is None
            else {**event, "restart_of": int(self.numbers[event["restart_of"]])}
            for event in events
        )


def _sums(column: Ints, edges: Sequence[int]) -> Ints:
    """Sums of the column between each two neighbouring edges."""
    total = np.concatenate([np.zeros((1, 2), dtype=np.int64), np.cumsum(column, axis=0, dtype=np.int64)])
    return np.diff(total[edges], axis=0)


def _refused(base_known: Sequence[bool], ended: Sequence[bool], data_packets: Sequence[int]) -> bool:
    """Whether a SYN was answered by a reset."""
    return base_known[0] and not base_known[1] and ended[1] and not any(data_packets)


def _no_tsn(counts: Mapping[str, Any]) -> bool:
    """Whether the snaplen cut off the TSN of every DATA chunk. The first TSN that is known counts as new by
    definition.
    """
    return bool(counts.get("data_chunks") and counts["payload_bytes"] and not counts["new_bytes"])


def _with_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


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
    """An MPTCP connection. number: rank by size; flows: numbers of its subflows in the summary; complete: False if the
    handshake is not in the capture, so that not all subflows could be assigned to it.
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


def multipath_of(capture: Capture, numbers: Sequence[int], start_ns: int) -> tuple[Multipath, ...]:
    """The MPTCP connections of a capture whose rows are in memory, the largest first; times from start_ns. numbers:
    number of each connection by its row in the flow table.
    """
    if not capture.flows["mptcp"].any():
        return ()
    from .mptcp import analyze_mptcp  # here: few captures have any

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
