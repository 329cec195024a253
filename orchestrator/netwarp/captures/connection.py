"""The connections of a capture's summary: TCP, SCTP, and the MPTCP connections whose subflows are among them. Facts are
made by column: a capture may have hundreds of thousands of connections.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..core.wire import SCTP
from .capture import Capture, FlowOrder, address_text, take_rows
from .icmp import icmp_events
from .native import Bools, Ints, Rows
from .stream import CapturedStream, FlowBins
from .time_sequence import progress_series

if TYPE_CHECKING:
    from .mptcp import MptcpConnection

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
    unseen = flows["heard"].astype(bool) & (sums["packets"] == 0)
    columns["unseen_end"] = [1 if second else 0 if first else None for first, second in unseen.tolist()]
    if not sctp:
        columns["mss_bytes"] = [[first or None, second or None] for first, second in flows["mss"].tolist()]
        columns["refused"] = were_refused(flows, sums["data_packets"]).tolist()
    columns["ip_bytes"] = sums["ip_bytes"].sum(axis=1).tolist()
    columns["directions"] = list(map(list, zip(*two, strict=True)))
    columns["paths"] = [paths[begin:end] for begin, end in itertools.pairwise(edges)]
    facts = _dicts(columns)
    for its, row in zip(facts, rows.tolist(), strict=True):
        if packets := stream.flows.get(row):
            for direction, known in enumerate(its["directions"]):
                known["retransmitted_data_packets"] = int(packets.repeats[direction])
                known["goodput_bit_s"] = packets.goodput_bit_s(direction)
        if sctp:
            _forget_without_tsn(its)
    return facts


def _addresses(capture: Capture, paths: Ints) -> dict[int, tuple[str, str]]:
    table, numbers = capture.paths, sorted(set(paths.tolist()))
    both = [table[end][numbers].tolist() for end in ("a", "b")]
    text = {sixteen: address_text(sixteen) for sixteen in {*both[0], *both[1]}}
    return {path: (text[a], text[b]) for path, a, b in zip(numbers, *both, strict=True)}


def _sums(column: Ints, edges: Sequence[int]) -> Ints:
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


TOGETHER = 1024  # Number of connections computed from the tables in one step
Series = tuple[Any, Any]  # Times (s from the file's first packet) and values: arrays of one length


@dataclasses.dataclass(frozen=True)
class Connection:
    """A TCP connection or SCTP association of a capture's summary.

    facts: the keys of `flows[]` in docs/analyze.md up to `paths`. row: its row in the flow table. capture_s: when the
    capture ends, s from its first packet. totals, events,
    tables (rows): results of the protocol's own analyser (docs/metrics.md). make_series: computes `series`.
    """

    facts: dict[str, Any]
    row: int
    capture_s: float
    totals: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    # (direction, begin in s, length in s, whether a retransmission ended it) of the longest pauses in data
    silences: tuple[tuple[int, float, float, bool], ...]
    make_series: Callable[[], Mapping[str, Series]] = dataclasses.field(repr=False, compare=False)

    @functools.cached_property
    def series(self) -> Mapping[str, Series]:
        """Series of the packets and of the protocol's own analyser."""
        return self.make_series()

    @property
    def number(self) -> int:
        """Rank by size within the file, from 1."""
        return int(self.facts["flow"])

    @property
    def protocol(self) -> str:
        """`tcp` or `sctp`."""
        return str(self.facts["protocol"])

    @property
    def ends(self) -> tuple[str, str]:
        """Address and port of the initiator (if unknown, of the first sender) and of the other end; direction 0 is from
        ends[0].
        """
        return self.facts["from"], self.facts["to"]

    @property
    def directions(self) -> Sequence[dict[str, Any]]:
        """Counts and goodput of each direction."""
        return list(self.facts["directions"])

    @property
    def name(self) -> str:
        """Both ends, as text."""
        return f"{self.ends[0]} > {self.ends[1]}"

    @property
    def ip_bytes(self) -> int:
        """IP bytes of both directions."""
        return int(self.facts["ip_bytes"])

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md, without the series (--csv and --html write those)."""
        return {
            **self.facts,
            "totals": dict(self.totals),
            "events": [dict(event) for event in self.events],
            "tables": dict(self.tables),
        }


class Connections(Sequence[Connection]):
    """The connections of a capture point, the largest first. Each is computed when it is first accessed. Only the
    `detailed` largest, whose packets are analysed, are kept in memory: 300,000 of them would take a gigabyte.
    """

    def __init__(self, stream: CapturedStream, detailed: int, only: int | None = None) -> None:
        """only: number of the only connection to analyse."""
        capture = stream.capture
        self.stream, self.detailed = stream, detailed if stream.whole else 0
        self._used = FlowOrder(capture.flow_paths["flow"], len(capture.flows))
        size = self._by_flow("ip_bytes")
        self.rows = np.argsort(-size, kind="stable")
        self.numbers = np.empty(len(size), dtype=np.int64)
        self.numbers[self.rows] = np.arange(1, len(size) + 1)  # By row of the flow table: the connection's number
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

    def in_depth(self) -> Iterator[Connection]:
        """Those whose packets are analysed."""
        return self.at(range(min(self.detailed, len(self))))

    def with_series(self) -> Iterator[Connection]:
        """Those with series."""
        has = np.isin(self.rows, list(self.stream.flows)) | (np.arange(len(self)) < self.detailed)
        return self.at(np.flatnonzero(has).tolist())

    def first_of_each_protocol(self) -> Iterator[Connection]:
        """The largest connection of each protocol, the largest of them first."""
        protocols = self.stream.capture.flows["protocol"][self.rows].tolist()
        return self.at(sorted(protocols.index(protocol) for protocol in set(protocols)))

    def as_json(self) -> Iterator[dict[str, Any]]:
        """Each connection as the keys of docs/analyze.md."""
        for connection in self.in_depth():
            yield connection.as_json()
        for begin in range(self.detailed, len(self), TOGETHER):
            for facts in self._facts(range(len(self))[begin : begin + TOGETHER]):
                facts |= {"totals": {}, "events": [], "tables": {}}
                yield facts

    def unanswered(self) -> Bools:
        """For each place, whether one end alone sent packets and no data: an unanswered handshake, or part of one."""
        data, packets = (self._by_flow(name, axis=0) for name in ("data_packets", "packets"))
        heard = self.stream.capture.flows["heard"].astype(bool)
        lonely: Bools = ((packets == 0) & ~heard).any(axis=1) & (data == 0).all(axis=1)
        lonely = lonely[self.rows]
        return lonely

    def refused(self) -> tuple[Bools, dict[str, list[int]]]:
        """The ports that refused connections (SYN answered by a reset), by address."""
        flows, data = self.stream.capture.flows, self._by_flow("data_packets", axis=0)
        refused = were_refused(flows, data) & (flows["protocol"] != SCTP)
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
        made = {place: self._connection(place, facts) for place, facts in zip(new, self._facts(new), strict=True)}
        self._kept |= {place: connection for place, connection in made.items() if place < self.detailed}
        return [made.get(place) or self._kept[place] for place in places]

    def _connection(self, place: int, facts: dict[str, Any]) -> Connection:
        stream, row = self.stream, int(self.rows[place])
        packets = stream.flows.get(row)
        facts_found, totals, events, tables, series = (
            _analysis(stream.capture, row, stream.t0_ns) if place < self.detailed else ({}, {}, (), {}, dict)
        )
        facts |= facts_found
        if place < self.detailed and len(errors := icmp_events(stream.capture, row, stream.t0_ns)):
            totals = {**totals, "icmp_errors": len(errors)}
            events = sorted([*events, *errors], key=lambda event: float(event["t_s"]))
        return Connection(
            capture_s=stream.duration_s,
            facts=facts,
            row=row,
            totals=totals,
            # other connections by their number here instead of their row in the capture
            events=[
                event | {"restart_of": int(self.numbers[event["restart_of"]])} if "restart_of" in event else event
                for event in events
            ],
            tables=tables,
            silences=tuple((d, *silence) for d in (0, 1) for silence in packets.silences[d]) if packets else (),
            make_series=lambda: (_series(stream, packets) if packets else {}) | series(),
        )

    def _facts(self, places: Sequence[int]) -> list[dict[str, Any]]:
        at = np.array(places, dtype=np.int64)
        return facts_of_flows(self.stream, self._used, self.rows[at], at + 1 + self._before)


def _analysis(
    capture: Capture, flow: int, start_ns: int
) -> tuple[
    Mapping[str, Any], Mapping[str, Any], Sequence[dict[str, Any]], Mapping[str, Any], Callable[[], dict[str, Series]]
]:
    """Facts that the tables of totals do not show; totals, events, tables of the protocol's analyser, and a function
    that makes the series from the rows: they are as large as the rows, and few reports show them. A capture without a
    protocol does not wait for its import.
    """
    if capture.flows["protocol"][flow] != SCTP:
        from .tcp import analyze_tcp

        connection = analyze_tcp(capture, flow, t0_ns=start_ns)
        way = connection.data_direction
        return (
            {"unseen_end": connection.unseen_end},  # strays aside
            connection.totals,
            connection.events,
            {},
            lambda: progress_series(capture, flow, way, start_ns) | analyze_tcp(capture, flow, t0_ns=start_ns).series,
        )
    from .sctp import analyze_sctp
    from .sctp.opening import opening_of
    from .sctp.tables import of_the_data

    association = analyze_sctp(capture, flow, t0_ns=start_ns)
    way, totals, events = association.direction, association.totals, association.events
    tables = association.tables
    if totals["data_chunks_other_direction"]:
        other = analyze_sctp(capture, flow, direction=1 - way, t0_ns=start_ns)
        totals |= {f"reverse_{name}": value for name, value in other.totals.items()}
        back = [row | {"direction": "back"} for row in other.tables["streams"]]
        tables = tables | {"streams": [*tables["streams"], *back]}
        events = events + [event | {"data_of": other.from_} for event in of_the_data(other, start_ns)]
        events.sort(key=lambda event: float(event["t_s"]))
    about = {"data_direction": way, "point": association.point, "ending": association.ended}
    about |= opening_of(association, start_ns)
    return (
        {},
        about | totals,
        events,
        tables,
        lambda: progress_series(capture, flow, way, start_ns) | analyze_sctp(capture, flow, t0_ns=start_ns).series,
    )


def _series(stream: CapturedStream, flow: FlowBins) -> dict[str, Series]:
    times, width_s = stream.times_s(), stream.bin_ns / 1e9
    series: dict[str, Series] = {}
    for direction, way in enumerate(("forward", "back")):
        if flow.new_bytes[direction].any():
            series[f"goodput_{way}_bit_s"] = (times, stream.rate_bit_s(flow.new_bytes[direction]))
            series[f"progress_{way}_bytes"] = (times + width_s, np.cumsum(flow.new_bytes[direction])[: len(times)])
        if flow.retransmitted[direction].any():
            series[f"retransmitted_{way}_packets"] = (times, flow.retransmitted[direction][: len(times)])
    return series


def multipath_of(capture: Capture, numbers: Sequence[int], start_ns: int) -> tuple[MptcpConnection, ...]:
    """The MPTCP connections of a capture whose rows are in memory, the largest first; times from start_ns. Flows are
    named by `numbers`, by row of the flow table: the row says nothing outside.
    """
    if not capture.flows["mptcp"].any():
        return ()
    from .mptcp import analyze_mptcp  # here: few captures have any

    analyses = analyze_mptcp(capture, t0_ns=start_ns)
    return tuple(
        dataclasses.replace(
            analysis,
            number=number,
            flows=tuple(numbers[row] for row in analysis.flows),
            tables={
                name: [row | {"flow": numbers[row["flow"]]} for row in rows] for name, rows in analysis.tables.items()
            },
        )
        for number, analysis in enumerate(sorted(analyses, key=lambda each: -(each.totals["payload_bytes"] or 0)), 1)
    )
