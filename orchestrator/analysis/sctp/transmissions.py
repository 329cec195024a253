"""Every transmission of a DATA chunk, and the acknowledgements that came back: one direction of an association.

All order is that of `Order`: of the capture, so that what happens at one instant stays in sequence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..capture import Capture
from ..native import UNKNOWN, Bools, Ints, Rows
from .cover import ascending, distinct, first_covering
from .names import DATA, I_DATA, SHUTDOWN

NEVER = np.iinfo(np.int64).max
GAP_BLOCK, DUPLICATE = 0, 1
COLUMNS = ("tsn", "time_ns", "path", "user_bytes", "on_other_path")


class Order:
    """The order of an association's packets: that of the capture. Where several files were merged, packets of one
    instant stand in the order of the files, which says nothing of causes: then what a host received comes before what
    it sent. arrivals_first: the direction that is received at this capture point; None: not known, or one file.
    """

    def __init__(self, chunks: Rows, arrivals_first: int | None) -> None:
        self._packets, first = np.unique(chunks["packet"], return_index=True)
        self._rank: Ints | None = None
        if arrivals_first is not None:
            rows = chunks[first]
            order = np.lexsort((self._packets, rows["direction"] != arrivals_first, rows["time_ns"]))
            self._rank = np.empty(len(order), dtype=np.int64)
            self._rank[order] = np.arange(len(order))

    def __call__(self, packet: Rows) -> Ints:
        """The moment of each packet (its number): a number that grows with the order."""
        if self._rank is None:
            return packet.astype(np.int64)
        return self._rank[np.searchsorted(self._packets, packet)]


@dataclasses.dataclass(frozen=True)
class Transmissions:
    """rows: columns of the DATA and I-DATA chunks of known TSN, in order. tsns: the distinct TSNs, ascending.

    By row: moment, of its packet; unit, its place in `tsns`; nth, 0 for the first transmission; before and after, the
    row of the transmission before and after of the same TSN, or -1.
    """

    rows: Mapping[str, Ints]
    moment: Ints
    tsns: Ints
    unit: Ints
    nth: Ints
    before: Ints
    after: Ints

    def __len__(self) -> int:
        return len(self.moment)

    @property
    def repeated(self) -> Ints:
        """Rows that are retransmissions."""
        return np.flatnonzero(self.nth > 0)


def transmissions(chunks: Rows, direction: int, order: Order) -> Transmissions:
    """chunks: of one association."""
    is_data = (chunks["type"] == DATA) | (chunks["type"] == I_DATA)
    places = np.flatnonzero(is_data & (chunks["direction"] == direction) & (chunks["tsn"] != UNKNOWN))
    moment = order(chunks["packet"][places])
    in_order = ascending(moment)
    rows = {name: chunks[name][places[in_order]] for name in COLUMNS}
    rows |= {name: rows[name].astype(np.int64) for name in ("path", "user_bytes")}
    moment = moment[in_order]
    tsns, unit = distinct(rows["tsn"])
    by_tsn = ascending(unit)
    begins = np.concatenate([[True], np.diff(unit[by_tsn]) != 0])[: len(by_tsn)]
    place = np.arange(len(by_tsn))
    nth, before, after = (np.full(len(by_tsn), -1, dtype=np.int64) for _ in range(3))
    nth[by_tsn] = place - np.maximum.accumulate(np.where(begins, place, 0))
    again = np.flatnonzero(~begins)
    before[by_tsn[again]] = by_tsn[again - 1]
    after[by_tsn[again - 1]] = by_tsn[again]
    return Transmissions(rows, moment, tsns, unit, nth, before, after)


@dataclasses.dataclass(frozen=True)
class Acknowledgements:
    """What the other side reported: SACKs, and SHUTDOWNs (which tell a cumulative TSN), in order.

    By report: moment, of its packet; cumulative, the highest cumulative TSN told so far; moved, whether it rose;
    has_gaps; highest_reported, its last gap's last TSN (or its cumulative one); newest, the highest TSN it acknowledged
    first, or UNKNOWN.
    acked_by: by distinct TSN, the first report that covers it, or the number of reports. duplicates: TSN and report of
    every TSN reported as duplicate.
    """

    moment: Ints
    time_ns: Ints
    path: Ints
    is_sack: Bools
    cumulative: Ints
    moved: Bools
    has_gaps: Bools
    highest_reported: Ints
    newest: Ints
    acked_by: Ints
    duplicate_tsn: Ints
    duplicate_by: Ints

    def moment_of(self, report: Ints) -> Ints:
        """Moments of reports; NEVER where there is none."""
        return np.append(self.moment, NEVER)[report]

    def time_of(self, report: Ints) -> Ints:
        """Times of reports; NEVER where there is none."""
        return np.append(self.time_ns, NEVER)[report]


def acknowledgements(
    capture: Capture, chunks: Rows, flow: int, direction: int, tsns: Ints, in_order: Order
) -> Acknowledgements:
    """Reports about the data of `direction`; they travel against it. chunks: of the association; tsns: ascending."""
    sacks = capture.sacks[(capture.sacks["flow"] == flow) & (capture.sacks["direction"] != direction)]
    last = chunks[(chunks["type"] == SHUTDOWN) & (chunks["direction"] != direction) & (chunks["tsn"] != UNKNOWN)]
    moment = in_order(np.concatenate([sacks["packet"], last["packet"]]))
    order = np.argsort(moment, kind="stable")
    told = np.concatenate([sacks["cumulative_tsn"], last["tsn"]])[order]
    count = len(order)
    cumulative = np.maximum.accumulate(told) if count else told
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    # the blocks of each SACK: gap blocks, then duplicate TSNs
    sizes = sacks["gap_blocks"].astype(np.int64) + sacks["duplicate_tsns"]
    owner = np.repeat(np.arange(len(sacks)), sizes)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    blocks = capture.blocks[sacks["first_block"].astype(np.int64)[owner] + offset]
    report = place[: len(sacks)][owner]
    by_report = np.argsort(report, kind="stable")
    blocks, report = blocks[by_report], report[by_report]
    gap, again = blocks["kind"] == GAP_BLOCK, blocks["kind"] == DUPLICATE
    has_gaps = np.zeros(count, dtype=np.bool_)
    has_gaps[report[gap]] = True
    highest = told.copy()
    np.maximum.at(highest, report[gap], blocks["end"][gap] - 1)
    low, high = (np.searchsorted(tsns, blocks[edge][gap]) for edge in ("start", "end"))
    by_gap = np.append(report[gap], count)[first_covering(low, high, len(tsns))]
    acked_by = np.minimum(np.searchsorted(cumulative, tsns), by_gap)
    newest = np.full(count + 1, UNKNOWN, dtype=np.int64)
    newest[acked_by] = tsns  # ascending: the highest is written last
    return Acknowledgements(
        moment=moment[order],
        time_ns=np.concatenate([sacks["time_ns"], last["time_ns"]])[order],
        path=np.concatenate([sacks["path"], last["path"]])[order].astype(np.int64),
        is_sack=order < len(sacks),
        cumulative=cumulative,
        moved=np.concatenate([np.ones(min(count, 1), dtype=np.bool_), np.diff(cumulative) > 0]),
        has_gaps=has_gaps,
        highest_reported=highest,
        newest=newest[:-1],
        acked_by=acked_by,
        duplicate_tsn=blocks["start"][again],
        duplicate_by=report[again],
    )
