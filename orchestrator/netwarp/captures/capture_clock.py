"""The clock of a capture: whether it was set back, or its records are out of order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .capture import Capture
from .native import NONE, UNKNOWN, Ints

SET_BACK_NS = 50_000_000
"""As in source.c. A smaller step is one of records that waited in several buffers."""
MOST_STEPS = 8
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
    """For each step of a file: 0 if there were packets between the same addresses before and after it; and for each
    direction of a connection across it 1, its numbers go on; -1, they go back.
    """
    rows = np.flatnonzero(capture.packets["source"] == source)
    steps = rows[np.flatnonzero(np.diff(capture.packets["time_ns"][rows]) < -SET_BACK_NS) + 1]
    if len(steps) > MOST_STEPS:
        return
    kinds = ((capture.segments, "seq"), (capture.segments, "ack"), (capture.chunks, "tsn"), (capture.sacks, TSN))
    path = capture.packets["path"].astype(np.int64)
    for step in steps.tolist():
        before, after = (np.unique(path[some][path[some] != NONE]) for some in (rows[rows < step], rows[rows >= step]))
        if np.isin(after, before).any():
            yield 0
        for table, column in kinds:
            packet, number = table["packet"].astype(np.int64), table[column]
            mine = (number != UNKNOWN) & (table["flow"] != NONE)
            key = table["flow"].astype(np.int64) * 2 + table["direction"]
            for one in np.unique(key[mine & (packet == step)]).tolist() or np.unique(key[mine])[:COMPARED].tolist():
                of = mine & (key == one)
                earlier, later = number[of & (packet < step)][-COMPARED:], number[of & (packet >= step)][:COMPARED]
                yield _direction(earlier, later)


TSN = "cumulative_tsn"


def _direction(before: Ints, after: Ints) -> int:
    if not len(before) or not len(after):
        return 0
    return int(np.sign(int(np.median(after)) - int(np.median(before))))
