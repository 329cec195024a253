"""Every transmission of a DATA chunk, and the acknowledgements that came back, for one direction of an association.

Everything is ordered by `Order`, the order of the capture, so that events at one instant stay in sequence.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from ...core.wire import DATA, I_DATA, SHUTDOWN
from ..arrays import (
    ascending_order,
    first_interval_covering,
    rank_in_run,
    run_begins,
    search_ascending,
    spread,
    unique_with_places,
)
from ..capture import Capture, columns_of, rows_of_flow
from ..native import UNKNOWN, Bools, Ints, Rows

# Columns that any question needs most of: taken together
USUAL = (
    *("time_ns", "tsn", "path", "packet", "user_bytes"),
    *("type", "flags", "direction", "is_retransmission", "on_other_path"),
)


class ChunkColumns:
    """Rows of the chunk table as columns. Each column is copied when it is first accessed; later queries on a
    contiguous column are several times faster than on rows of 56 bytes.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._taken: dict[str, Rows] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Rows:
        if name not in self._taken:
            names = USUAL if name in USUAL else (name,)
            self._taken |= columns_of(self.rows, {each: self.rows.dtype[each] for each in names})
        return self._taken[name]

    @functools.cached_property
    def is_data(self) -> Bools:
        """Of each chunk, whether it is DATA or I-DATA."""
        is_data: Bools = (self["type"] == DATA) | (self["type"] == I_DATA)
        return is_data

    def of_type(self, *kinds: int) -> Ints:
        """Indices of the chunks of these types."""
        chosen = self["type"] == kinds[0]
        for kind in kinds[1:]:
            chosen |= self["type"] == kind
        return np.flatnonzero(chosen)


NEVER = np.iinfo(np.int64).max
GAP_BLOCK, DUPLICATE = 0, 1
COLUMNS = ("tsn", "time_ns", "path", "user_bytes", "on_other_path")


class Order:
    """The order of an association's packets: that of the capture. If several interfaces were merged (as files, in one
    pcapng file, or by mergecap before), packets of one instant are in the order of the merge, which does not show what
    caused what; then packets that a host received come before those it sent. arrivals_first: the direction that is
    received at this capture point; None: not known, or one interface and path.
    """

    def __init__(self, table: ChunkColumns, arrivals_first: int | None) -> None:
        self._rank: Ints | None = None
        if arrivals_first is not None:
            self._packets, first = np.unique(table["packet"], return_index=True)
            rows = table.rows[first]
            order = np.lexsort((self._packets, rows["direction"] != arrivals_first, rows["time_ns"]))
            self._rank = np.empty(len(order), dtype=np.int64)
            self._rank[order] = np.arange(len(order))

    def __call__(self, packet: Rows) -> Ints:
        """The moment of each packet (by its number): a number that increases in this order."""
        if self._rank is None:
            return packet.astype(np.int64)
        return self._rank[np.searchsorted(self._packets, packet)]


@dataclasses.dataclass(frozen=True)
class Transmissions:
    """rows: columns of the DATA and I-DATA chunks with a known TSN, in order. tsns: the distinct TSNs, ascending.

    One value per row: moment, of its packet; unit, its index in `tsns`; nth, 0 for the first transmission; before and
    after, the row of the transmission before and after it of the same TSN, or -1.
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

    @functools.cached_property
    def repeated(self) -> Ints:
        """Indices of the rows that are retransmissions."""
        return np.flatnonzero(self.nth > 0)

    @functools.cached_property
    def new(self) -> Bools:
        """For each row: is it a first transmission?"""
        first: Bools = self.nth == 0
        return first

    @functools.cached_property
    def packets(self) -> Ints:
        """The first row of each packet."""
        return np.flatnonzero(run_begins(self.moment))

    @functools.cached_property
    def per_packet(self) -> Ints:
        """The number of rows of each packet."""
        return np.diff(self.packets, append=len(self))


def transmissions(table: ChunkColumns, direction: int, order: Order) -> Transmissions:
    """The transmissions among the chunks of one association."""
    places = np.flatnonzero(table.is_data & (table["direction"] == direction) & (table["tsn"] != UNKNOWN))
    moment = order(table["packet"][places])
    in_order = ascending_order(moment)
    rows = {name: table[name][places][in_order] for name in COLUMNS}
    rows |= {name: rows[name].astype(np.int64) for name in ("path", "user_bytes")}
    tsns, unit = unique_with_places(rows["tsn"])
    return Transmissions(rows, moment[in_order], tsns, unit, *_again(unit, len(tsns)))


def _again(unit: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """nth, before and after of Transmissions; only retransmitted units are sorted. count: number of units."""
    nth = np.zeros(len(unit), dtype=np.int64)
    before, after = (np.full(len(unit), -1, dtype=np.int64) for _ in range(2))
    if count == len(unit):
        return nth, before, after
    first = np.empty(count, dtype=np.int64)
    first[unit[::-1]] = np.arange(len(unit))[::-1]  # of equal places the last assignment holds
    repeats = np.flatnonzero(first[unit] != np.arange(len(unit)))
    rows = np.sort(np.concatenate([np.unique(first[unit[repeats]]), repeats]))
    rows = rows[np.argsort(unit[rows], kind="stable")]
    begins = run_begins(unit[rows])
    nth[rows] = rank_in_run(begins)
    again = np.flatnonzero(~begins)
    before[rows[again]] = rows[again - 1]
    after[rows[again - 1]] = rows[again]
    return nth, before, after


@dataclasses.dataclass(frozen=True)
class Acknowledgements:
    """The reports of the other side: SACKs, and SHUTDOWNs (which carry a cumulative TSN), in order.

    One value per report: moment, of its packet; cumulative, the highest cumulative TSN reported so far; moved, whether
    it rose; has_gaps; highest_reported, the last TSN of its last gap block (or its cumulative one); newest, the highest
    TSN that it was the first to acknowledge, or UNKNOWN; closed, whether it announces a window of zero. acked_by: for
    each distinct TSN, the first report that covers it, or the number of reports. duplicates: TSN and report of every
    TSN reported as duplicate.
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
    closed: Bools
    acked_by: Ints
    duplicate_tsn: Ints
    duplicate_by: Ints

    def moment_of(self, report: Ints) -> Ints:
        """Moments of reports; NEVER for none."""
        return np.append(self.moment, NEVER)[report]

    def time_of(self, report: Ints) -> Ints:
        """Times of reports; NEVER for none."""
        return np.append(self.time_ns, NEVER)[report]


def acknowledgements(
    capture: Capture, chunks: ChunkColumns, flow: int, direction: int, tsns: Ints, in_order: Order
) -> Acknowledgements:
    """Reports about the data of `direction`; they travel in the other direction. chunks: of the association; tsns:
    ascending.
    """
    sacks = rows_of_flow(capture, "sacks", flow)
    sacks = sacks[sacks["direction"] != direction]
    last = chunks.rows[chunks.of_type(SHUTDOWN)]
    last = last[(last["direction"] != direction) & (last["tsn"] != UNKNOWN)]
    moment = in_order(np.concatenate([sacks["packet"], last["packet"]]))
    order = np.argsort(moment, kind="stable")
    reported = np.concatenate([sacks["cumulative_tsn"], last["tsn"]])[order]
    count = len(order)
    cumulative = np.maximum.accumulate(reported) if count else reported
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    # the blocks of each SACK: gap blocks, then duplicate TSNs
    sizes = sacks["gap_blocks"].astype(np.int64) + sacks["duplicate_tsns"]
    owner, places = spread(sacks["first_block"], sizes)
    blocks = capture.blocks[places]
    report = place[: len(sacks)][owner]
    by_report = np.argsort(report, kind="stable")
    blocks, report = blocks[by_report], report[by_report]
    gap, twice = blocks["kind"] == GAP_BLOCK, blocks["kind"] == DUPLICATE
    has_gaps = np.zeros(count, dtype=np.bool_)
    has_gaps[report[gap]] = True
    highest = reported.copy()
    np.maximum.at(highest, report[gap], blocks["end"][gap] - 1)
    low, high = (np.searchsorted(tsns, blocks[edge][gap]) for edge in ("start", "end"))
    by_gap = np.append(report[gap], count)[first_interval_covering(low, high, len(tsns))]
    acked_by = np.minimum(search_ascending(cumulative, tsns), by_gap)
    newest = np.full(count + 1, UNKNOWN, dtype=np.int64)
    newest[acked_by] = tsns  # ascending: the highest is written last
    newest = newest[:-1]
    whole = np.concatenate([sacks["incomplete"] == 0, np.ones(len(last), dtype=np.bool_)])[order]
    again = _newly_acknowledged(cumulative, reported == cumulative, whole, report[gap], blocks[gap])
    newest = np.where(reported == cumulative, np.maximum(newest, again), UNKNOWN)
    return Acknowledgements(
        moment=moment[order],
        time_ns=np.concatenate([sacks["time_ns"], last["time_ns"]])[order],
        path=np.concatenate([sacks["path"], last["path"]])[order].astype(np.int64),
        is_sack=order < len(sacks),
        cumulative=cumulative,
        moved=np.concatenate([np.ones(min(count, 1), dtype=np.bool_), np.diff(cumulative) > 0]),
        has_gaps=has_gaps,
        highest_reported=highest,
        newest=newest,
        closed=np.concatenate([sacks["a_rwnd_bytes"] == 0, np.zeros(len(last), dtype=np.bool_)])[order],
        acked_by=acked_by,
        duplicate_tsn=blocks["start"][twice],
        duplicate_by=report[twice],
    )


def _newly_acknowledged(cumulative: Ints, kept: Bools, whole: Bools, report: Ints, gaps: Rows) -> Ints:
    """For each report the highest TSN that it acknowledges and the one before did not, or UNKNOWN. A sender drops a
    report with an older cumulative TSN (RFC 9260 6.2.1 D i; not in `kept`); from one that only came late it takes back
    what a gap block had acknowledged (D iii), and the next report acknowledges that anew.

    whole: reports of which every block was captured; report, gaps: the gap blocks, in the order of their reports.
    """
    newest = np.full(len(cumulative), UNKNOWN, dtype=np.int64)
    number = np.cumsum(kept) - 1
    mine = np.flatnonzero(kept)
    if not len(mine):
        return newest
    use = kept[report]
    low = int(cumulative.min()) - 1  # every report covers what is up to its cumulative TSN: its first block
    owner = np.concatenate([np.arange(len(mine)), number[report[use]]])
    start = np.concatenate([np.full(len(mine), low), gaps["start"][use]])
    end = np.concatenate([cumulative[mine], gaps["end"][use] - 1])
    in_order = np.lexsort((start, owner))
    owner, start, end = owner[in_order], start[in_order], end[in_order]
    span = int(end.max()) - low + 2
    there = np.searchsorted(owner * span + start - low, (owner - 1) * span + end - low, side="right") - 1
    covered = (owner > 0) & (end[there] >= end)  # by a block of the report before: what lies below that is new
    top = np.where(covered, start[there] - 1, end)
    before = np.append(low, cumulative[mine])[owner]
    new = (top >= start) & (top > before) & whole[mine[owner]] & whole[mine[np.maximum(owner - 1, 0)]]
    np.maximum.at(newest, mine[owner[new]], top[new])
    return newest
