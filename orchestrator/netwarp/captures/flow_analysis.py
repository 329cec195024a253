"""Runs the analyser of a flow's protocol, and computes series of the data's progress over time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.wire import DATA, I_DATA, SCTP
from .capture import Capture, rows_of_flow
from .native import UNKNOWN, Floats, Ints, Rows

Series = tuple[Floats, Floats | Ints]


@dataclasses.dataclass(frozen=True)
class FlowAnalysis:
    """The result of the protocol's analyser for a connection. series: a function that computes the series from the rows
    when called, since they are as large as the rows and few reports show them.
    """

    totals: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    series: Callable[[], dict[str, Series]]


def analyze_flow(capture: Capture, flow: int, start_ns: int) -> FlowAnalysis:
    """Analyse a connection whose rows are in memory; times count from start_ns."""
    if capture.flows["protocol"][flow] == SCTP:
        return _sctp(capture, flow, start_ns)
    return _tcp(capture, flow, start_ns)


def _tcp(capture: Capture, flow: int, start_ns: int) -> FlowAnalysis:
    from .tcp import analyze_tcp

    def series() -> dict[str, Series]:
        again = analyze_tcp(capture, flow, t0_ns=start_ns)
        return progress_series(capture, flow, again.data_direction, start_ns) | again.series

    connection = analyze_tcp(capture, flow, t0_ns=start_ns)
    return FlowAnalysis(connection.totals, connection.events, {}, series)


def _sctp(capture: Capture, flow: int, start_ns: int) -> FlowAnalysis:
    from .sctp import analyze_sctp  # here, as TCP's: a capture that has none need not wait for its import
    from .sctp.events import of_the_data

    def series() -> dict[str, Series]:
        again = analyze_sctp(capture, flow, t0_ns=start_ns)
        return progress_series(capture, flow, again.direction, start_ns) | again.series

    association = analyze_sctp(capture, flow, t0_ns=start_ns)
    about = {"data_direction": association.direction, "point": association.point, "ending": association.ended}
    totals, events = about | association.totals, association.events
    if totals["data_chunks_other_direction"]:
        other = analyze_sctp(capture, flow, direction=1 - association.direction, t0_ns=start_ns)
        totals |= {f"reverse_{name}": value for name, value in other.totals.items()}
        events = [*events, *({**event, "data_of": other.from_} for event in of_the_data(other.parts, start_ns))]
        events.sort(key=lambda event: float(event["t_s"]))
    return FlowAnalysis(totals, events, association.tables, series)


def progress_series(capture: Capture, flow: int, direction: int, start_ns: int) -> dict[str, Series]:
    """The progress of one direction's data. TCP: sequence number of the last byte of each segment, of each
    retransmission, and the highest acknowledged one (the first byte of the stream is 1). SCTP: TSNs, counted from the
    initial one. Times in s from `start_ns`.
    """
    if capture.flows["protocol"][flow] == SCTP:
        chunks = rows_of_flow(capture, "chunks", flow)
        chunks = chunks[chunks["tsn"] != UNKNOWN]
        mine = chunks[(chunks["direction"] == direction) & ((chunks["type"] == DATA) | (chunks["type"] == I_DATA))]
        sacks = rows_of_flow(capture, "sacks", flow)
        back = sacks[(sacks["direction"] != direction) & (sacks["cumulative_tsn"] != UNKNOWN)]
        return _named("tsn", mine, mine["tsn"], back["time_ns"], back["cumulative_tsn"], start_ns)
    rows = rows_of_flow(capture, "segments", flow)
    mine = rows[(rows["direction"] == direction) & (rows["payload_bytes"] > 0)]
    back = rows[(rows["direction"] != direction) & (rows["ack"] != UNKNOWN)]
    last = mine["seq"] + mine["payload_bytes"] - 1
    return _named("sequence_bytes", mine, last, back["time_ns"], back["ack"] - 1, start_ns)


def _named(name: str, sent: Rows, number: Ints, ack_ns: Ints, acked: Ints, start_ns: int) -> dict[str, Series]:
    again = sent["is_retransmission"].astype(np.bool_)
    times = (sent["time_ns"] - start_ns) / 1e9
    series = {
        name: (times[~again], number[~again]),
        f"retransmitted_{name}": (times[again], number[again]),
        f"acknowledged_{name}": ((ack_ns - start_ns) / 1e9, acked),
    }
    return {key: pair for key, pair in series.items() if len(pair[0])}
