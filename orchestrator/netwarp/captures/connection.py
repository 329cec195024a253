"""The connections of a capture's summary: TCP, SCTP, and the MPTCP connections whose subflows are among them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from ..core.wire import SCTP
from .capture import Capture, FlowOrder
from .connection_facts import facts_of_flows, were_refused
from .flow_analysis import analyze_flow
from .native import Bools, Ints
from .stream import CapturedStream, FlowBins

TOGETHER = 1024  # Number of connections computed from the tables in one step
Series = tuple[Any, Any]  # Times (s from the file's first packet) and values: arrays of one length


@dataclasses.dataclass(frozen=True)
class Connection:
    """A TCP connection or SCTP association of a capture's summary.

    facts: the keys of `flows[]` in docs/analyze.md up to `paths`. row: its row in the flow table. totals, events,
    tables (rows): results of the protocol's own analyser (docs/metrics.md). make_series: computes `series`.
    """

    facts: dict[str, Any]
    row: int
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
        directions: list[dict[str, Any]] = self.facts["directions"]
        return directions

    @property
    def paths(self) -> Sequence[dict[str, Any]]:
        """The counts per address pair."""
        paths: list[dict[str, Any]] = self.facts["paths"]
        return paths

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
        lonely: Bools = ((packets == 0).any(axis=1) & (data == 0).all(axis=1))[self.rows]
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
        analysis = analyze_flow(stream.capture, row, stream.t0_ns) if place < self.detailed else None
        return Connection(
            facts=facts,
            row=row,
            totals=analysis.totals if analysis else {},
            events=self._numbered(analysis.events) if analysis else (),
            tables=analysis.tables if analysis else {},
            silences=tuple((d, *silence) for d in (0, 1) for silence in packets.silences[d]) if packets else (),
            make_series=lambda: {
                **(_series(stream, packets) if packets else {}),
                **(analysis.series() if analysis else {}),
            },
        )

    def _facts(self, places: Sequence[int]) -> list[dict[str, Any]]:
        at = np.array(places, dtype=np.int64)
        return facts_of_flows(self.stream, self._used, self.rows[at], at + 1 + self._before)

    def _numbered(self, events: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """The events with other connections named by their number here instead of their row in the capture."""
        return tuple(
            event
            if event.get("restart_of") is None
            else {**event, "restart_of": int(self.numbers[event["restart_of"]])}
            for event in events
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
