"""The clock of a capture: whether it was set back, or its records are out of order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .capture import Capture
from .native import NONE, UNKNOWN, Ints

SET_BACK_NS = 50_000_000
"""As in source.c. A smaller step is one of records that waited in several buffers."""
MOST_STEPS = 8
TSN = "cumulative_tsn"
NEAR_NUMBERS = 1 << 27
"""Numbers further apart are of different connections of the same ports."""
COMPARED = 50
"""Packets before and after a step that are compared."""


def was_set_back(capture: Capture) -> bool:
    """Whether the records are in the order in which they passed although times go back: at each step the numbers of
    the connections (TCP's sequence numbers, TSNs) go on. In files that were put together in the wrong order they go
    back with the times. Where no numbers tell, files hold packets in the order in which they passed.
    """
    packets = capture.packets
    if not len(packets):
        return False
    votes = [vote for source in range(len(capture.files)) for vote in _votes(capture, source)]
    return len(votes) > 0 and sum(votes) >= 0


def _votes(capture: Capture, source: int) -> Iterator[int]:
    """For each step of a file: 0 if there were packets between the same addresses and ports before and after it; and
    for each direction between those 1, its numbers go on; -1, they go back.
    """
    rows = np.flatnonzero(capture.packets["source"] == source)
    steps = rows[np.flatnonzero(np.diff(capture.packets["time_ns"][rows]) < -SET_BACK_NS) + 1]
    if not 0 < len(steps) <= MOST_STEPS:
        return
    ends = _ends(capture)
    kinds = [_numbers(capture, *kind, ends) for kind in KINDS]
    for step in steps.tolist():
        before, after = (np.unique(ends[some][ends[some] >= 0]) for some in (rows[rows < step], rows[rows >= step]))
        if np.isin(after, before).any():
            yield 0
        for packet, key, raw in kinds:
            late = packet >= step
            for one in np.intersect1d(key[late], key[~late])[:COMPARED].tolist():
                mine = key == one
                yield _direction(raw[mine & ~late][-COMPARED:], raw[mine & late][:COMPARED])


KINDS = (("segments", "seq", False), ("segments", "ack", True), ("chunks", "tsn", False), ("sacks", TSN, True))
"""A table, a column with numbers of the wire, and whether they are the other end's."""


def _numbers(capture: Capture, table: str, column: str, others: bool, ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each row with such a number its packet, a number for its ends and direction, and the number of the wire."""
    rows = getattr(capture, table)
    rows = rows[(rows[column] != UNKNOWN) & (rows["flow"] != NONE)]
    flow, direction = rows["flow"].astype(np.int64), rows["direction"].astype(np.int64)
    packet = rows["packet"].astype(np.int64)
    base = capture.flows["base"][flow, 1 - direction if others else direction].astype(np.int64)
    way = direction ^ capture.flows["path_direction"][flow].astype(np.int64)
    return packet, ends[packet] * 2 + way, (base + rows[column]) % 2**32


def _ends(capture: Capture) -> Ints:
    """Of each packet a number for its connection's addresses and ports; -1: it is of none."""
    flows, flow = capture.flows, capture.packets["flow"].astype(np.int64)
    if not len(flows):
        return np.full(len(flow), -1, dtype=np.int64)
    ports = np.sort(flows["port"].astype(np.int64), axis=1)
    key = (flows["path"].astype(np.int64) << 32) + (ports[:, 0] << 16) + ports[:, 1]
    return np.where(flow == NONE, -1, key[np.minimum(flow, len(flows) - 1)])


def _direction(before: Ints, after: Ints) -> int:
    """Whether 32-bit numbers go on; 0: they are of another connection."""
    apart = (int(np.median(after)) - int(np.median(before)) + 2**31) % 2**32 - 2**31
    return int(np.sign(apart)) if abs(apart) < NEAR_NUMBERS else 0
