"""Time-sequence data of a connection (sent, sent again, acknowledged, allowed): as rows, and as series of one way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.wire import DATA, FIN, I_DATA, RST, SCTP, SYN
from .arrays import spread
from .capture import Capture, rows_of_flow
from .native import UNKNOWN, Floats, Ints, Rows

Row = tuple[float, int, str, int, int]
_Part = tuple[Ints, Ints, Ints, Ints, Ints]  # packets, times, directions, starts, ends


def time_sequence(capture: Capture, flow: int, start_ns: int) -> Iterator[Row]:
    """(seconds from start_ns, direction of the data, what, start, end) in the order of the capture.

    [start, end) are relative numbers: for TCP bytes, 0 is the SYN; for SCTP TSNs, 0 is the initial TSN. what: data,
    retransmission; syn, fin, rst (TCP); and, sent by the receiver of that direction's data: ack (start = end = the next
    number expected), sack (a range reported), window (TCP: end = the first number not allowed). The words of `what` are
    the last column of time_sequence.csv, which docs/analyze.md draws.
    """
    parts = _parts(capture, flow)
    names = np.repeat(list(parts), [len(part[0]) for part in parts.values()])
    packet, time_ns, direction, start, end = (np.concatenate(columns) for columns in zip(*parts.values(), strict=True))
    order = np.argsort(packet, kind="stable")
    times = ((time_ns[order] - start_ns) / 1e9).tolist()
    columns = (direction[order].tolist(), names[order].tolist(), start[order].tolist(), end[order].tolist())
    yield from zip(times, *columns, strict=True)


def progress_series(capture: Capture, flow: int, direction: int, start_ns: int) -> dict[str, tuple[Floats, Ints]]:
    """Name -> (seconds from start_ns, last number) of one direction's data: new, sent again, acknowledged. TCP: bytes,
    the first of the stream is 1; SCTP: TSNs, counted from the initial one.
    """
    parts, series = _parts(capture, flow), {}
    name = "tsn" if capture.flows["protocol"][flow] == SCTP else "sequence_bytes"
    for prefix, what in (("", "data"), ("retransmitted_", "retransmission"), ("acknowledged_", "ack")):
        _, time_ns, way, _, end = parts[what]
        mine = way == direction
        if mine.any():
            series[prefix + name] = ((time_ns[mine] - start_ns) / 1e9, end[mine] - 1)
    return series


def _parts(capture: Capture, flow: int) -> dict[str, _Part]:
    return _sctp(capture, flow) if capture.flows["protocol"][flow] == SCTP else _tcp(capture, flow)


def _part(rows: Rows, start: Ints, end: Ints, *, back: bool = False) -> _Part:
    """back: the rows are acknowledgements; they are listed under the direction of the data that they acknowledge."""
    direction = rows["direction"].astype(np.int64)
    return rows["packet"], rows["time_ns"], 1 - direction if back else direction, start, end


def _tcp(capture: Capture, flow: int) -> dict[str, _Part]:
    rows = rows_of_flow(capture, "segments", flow)
    parts = {}
    for what, flag in (("syn", SYN), ("fin", FIN), ("rst", RST)):
        control = rows[rows["flags"] & flag != 0]
        number = control["seq"] + (control["payload_bytes"] if what == "fin" else 0)
        parts[what] = _part(control, number, number + (what != "rst"))
    carries = rows[(rows["payload_bytes"] > 0) & (rows["flags"] & RST == 0)]
    begin = carries["seq"] + (carries["flags"] & SYN != 0)
    # a RST answers a segment that the connection does not know: its number acknowledges nothing
    acks = rows[(rows["ack"] != UNKNOWN) & (rows["flags"] & RST == 0)]
    windows = acks[acks["window_bytes"] != UNKNOWN]
    return {
        **parts,
        **_sent(carries, begin, begin + carries["payload_bytes"]),
        "ack": _part(acks, acks["ack"], acks["ack"], back=True),
        "sack": _reported(capture, acks, acks["sack_blocks"]),
        "window": _part(windows, windows["ack"], windows["ack"] + windows["window_bytes"], back=True),
    }


def _sctp(capture: Capture, flow: int) -> dict[str, _Part]:
    chunks = rows_of_flow(capture, "chunks", flow)
    data = chunks[((chunks["type"] == DATA) | (chunks["type"] == I_DATA)) & (chunks["tsn"] != UNKNOWN)]
    sacks = rows_of_flow(capture, "sacks", flow)
    sacks = sacks[sacks["cumulative_tsn"] != UNKNOWN]
    expected = sacks["cumulative_tsn"] + 1
    return {
        **_sent(data, data["tsn"], data["tsn"] + 1),
        "ack": _part(sacks, expected, expected, back=True),
        "sack": _reported(capture, sacks, sacks["gap_blocks"]),
    }


def _sent(rows: Rows, start: Ints, end: Ints) -> dict[str, _Part]:
    again = rows["is_retransmission"] != 0
    return {
        what: _part(rows[chosen], start[chosen], end[chosen])
        for what, chosen in (("data", ~again), ("retransmission", again))
    }


def _reported(capture: Capture, acks: Rows, counts: Ints) -> _Part:
    """The ranges of the blocks table that these acknowledgements report."""
    owner, place = spread(acks["first_block"], counts)
    blocks = capture.blocks[place]
    return _part(acks[owner], blocks["start"], blocks["end"], back=True)
