"""The time-sequence graph of a connection as rows: what was sent, sent again, acknowledged, and allowed, over time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.wire import DATA, FIN, I_DATA, RST, SCTP, SYN
from .capture import Capture, rows_of_flow
from .native import UNKNOWN, Bools, Ints, Rows

Row = tuple[float, int, str, int, int]
_Part = tuple[str, Ints, Ints, Ints, Ints, Ints]  # what, packets, times, directions, starts, ends


def time_sequence(capture: Capture, flow: int, start_ns: int) -> Iterator[Row]:
    """(seconds from start_ns, direction of the data, what, start, end) in the order of the capture.

    [start, end) are relative numbers: for TCP bytes, 0 is the SYN; for SCTP TSNs, 0 is the initial TSN. what: data,
    retransmission; syn, fin, rst (TCP); and, sent by the receiver of that direction's data: ack (start = end = the next
    number expected), sack (a range reported), window (TCP: end = the first number not allowed). The words of `what` are
    the last column of time_sequence.csv, which docs/analyze.md draws.
    """
    parts = _sctp(capture, flow) if capture.flows["protocol"][flow] == SCTP else _tcp(capture, flow)
    parts = [part for part in parts if len(part[1])]
    if not parts:
        return
    names = np.repeat([part[0] for part in parts], [len(part[1]) for part in parts])
    packet, time_ns, direction, start, end = (np.concatenate([part[at] for part in parts]) for at in range(1, 6))
    order = np.argsort(packet, kind="stable")
    times = ((time_ns[order] - start_ns) / 1e9).tolist()
    columns = (direction[order].tolist(), names[order].tolist(), start[order].tolist(), end[order].tolist())
    yield from zip(times, *columns, strict=True)


def _part(what: str, rows: Rows, start: Ints, end: Ints, *, back: bool = False) -> _Part:
    """back: the rows are acknowledgements; they are listed under the direction of the data that they acknowledge."""
    direction = rows["direction"].astype(np.int64)
    return what, rows["packet"], rows["time_ns"], 1 - direction if back else direction, start, end


def _tcp(capture: Capture, flow: int) -> list[_Part]:
    rows = rows_of_flow(capture, "segments", flow)
    parts = []
    for what, flag in (("syn", SYN), ("fin", FIN), ("rst", RST)):
        control = rows[rows["flags"] & flag != 0]
        number = control["seq"] + (control["payload_bytes"] if what == "fin" else 0)
        parts.append(_part(what, control, number, number + (what != "rst")))
    carries = rows[(rows["payload_bytes"] > 0) & (rows["flags"] & RST == 0)]
    begin = carries["seq"] + (carries["flags"] & SYN != 0)
    parts += _sent(carries, carries["is_retransmission"].astype(np.bool_), begin, begin + carries["payload_bytes"])
    # a RST answers a segment that the connection does not know: its number acknowledges nothing
    acks = rows[(rows["ack"] != UNKNOWN) & (rows["flags"] & RST == 0)]
    parts.append(_part("ack", acks, acks["ack"], acks["ack"], back=True))
    parts.append(_reported(capture, acks, acks["first_block"], acks["sack_blocks"]))
    windows = acks[acks["window_bytes"] != UNKNOWN]
    parts.append(_part("window", windows, windows["ack"], windows["ack"] + windows["window_bytes"], back=True))
    return parts


def _sctp(capture: Capture, flow: int) -> list[_Part]:
    chunks = rows_of_flow(capture, "chunks", flow)
    data = chunks[((chunks["type"] == DATA) | (chunks["type"] == I_DATA)) & (chunks["tsn"] != UNKNOWN)]
    sacks = rows_of_flow(capture, "sacks", flow)
    sacks = sacks[sacks["cumulative_tsn"] != UNKNOWN]
    expected = sacks["cumulative_tsn"] + 1
    return [
        *_sent(data, data["is_retransmission"].astype(np.bool_), data["tsn"], data["tsn"] + 1),
        _part("ack", sacks, expected, expected, back=True),
        _reported(capture, sacks, sacks["first_block"], sacks["gap_blocks"]),
    ]


def _sent(rows: Rows, again: Bools, start: Ints, end: Ints) -> list[_Part]:
    return [
        _part(what, rows[chosen], start[chosen], end[chosen])
        for what, chosen in (("data", ~again), ("retransmission", again))
    ]


def _reported(capture: Capture, acks: Rows, first: Ints, counts: Ints) -> _Part:
    """The ranges of the blocks table that these acknowledgements report."""
    many = np.where(counts > 0, counts, 0).astype(np.int64)
    begin = np.cumsum(many) - many
    blocks = capture.blocks[np.arange(many.sum()) - np.repeat(begin, many) + np.repeat(first.astype(np.int64), many)]
    return _part("sack", np.repeat(acks, many), blocks["start"], blocks["end"], back=True)
