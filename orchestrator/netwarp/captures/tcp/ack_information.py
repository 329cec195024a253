"""Information carried by acknowledgements: duplicate ACKs, SACK and DSACK ranges, zero windows, probes, and which
retransmissions were spurious (by timestamps: Eifel, RFC 3522; by DSACK: RFC 2883).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ...core.wire import ACK, FIN, RST, SYN
from ..arrays import before, spread
from ..native import UNKNOWN, Bools, Ints, Rows
from .columns import TIMESTAMP, DirectionColumns, before_each, direction_columns

CONTROL = SYN | FIN | RST
# At most this many retransmissions per duplicate ACK: bounds the work that a hostile capture can cause
DSACK_SPAN = 1024


@dataclasses.dataclass(frozen=True)
class Reports:
    """The acknowledgements of one end. duplicate: RFC 5681 2; duplicates: number since the last one that advanced, this
    one included; highest_sack: highest number reported by then; newest: a segment, start, end of what the first block
    reports, which holds what arrived last (RFC 2018 4); dsack: likewise of duplicates (RFC 2883 4).
    """

    duplicate: Bools
    duplicates: Ints
    highest_sack: Ints
    newest: tuple[Ints, Ints, Ints]
    dsack: tuple[Ints, Ints, Ints]


def reports_of(acks: DirectionColumns, data: DirectionColumns, blocks: Rows) -> Reports:
    """acks: segments of the end that acknowledges; data: of the other end; blocks: table of the capture."""
    duplicate = duplicate_acks(acks, data)
    counted = np.cumsum(duplicate)
    since: Ints = counted - np.maximum.accumulate(np.where(acks.advances, counted - duplicate, 0))
    highest = np.full(len(acks), UNKNOWN)
    none = np.zeros(0, dtype=np.int64)
    newest = dsacks = (none, none, none)
    if len(blocks) and acks.sack_blocks.any():
        with_blocks = np.flatnonzero(acks.sack_blocks)
        counts = acks.sack_blocks[with_blocks].astype(np.int64)
        begin = np.cumsum(counts) - counts
        _, place = spread(acks.first_block[with_blocks], counts)
        start, end = blocks["start"][place], blocks["end"][place]
        highest[with_blocks] = np.maximum.reduceat(end, begin)
        is_dsack = _dsacks(acks.ack[with_blocks], start, end, begin, counts)
        newest, dsacks = ((with_blocks[of], start[begin[of]], end[begin[of]]) for of in (~is_dsack, is_dsack))
    return Reports(duplicate, since, np.maximum.accumulate(highest), newest, dsacks)


def _dsacks(ack: Ints, start: Ints, end: Ints, begin: Ints, counts: Ints) -> Bools:
    """A first block that lies below the acknowledgement or within the second block is a DSACK (RFC 2883 4)."""
    low, high, second = start[begin], end[begin], np.minimum(begin + 1, len(start) - 1)
    within = (counts > 1) & (start[second] <= low) & (high <= end[second])
    is_dsack: Bools = ((high <= ack) | within) & (low < high)
    return is_dsack


def duplicate_acks(acks: DirectionColumns, data: DirectionColumns) -> Bools:
    """Duplicate ACKs by RFC 5681 2: no data, no SYN or FIN, the highest acknowledgement again, the window unchanged,
    data outstanding.
    """
    same = (acks.ack == before(acks.highest_ack, UNKNOWN)) & (acks.window == before(acks.window, -1))
    plain = (acks.payload_bytes == 0) & (acks.flags & (CONTROL | ACK) == ACK)
    duplicate: Bools = same & plain & (before_each(data.highest_end, acks, UNKNOWN) > acks.ack)
    return duplicate


@dataclasses.dataclass(frozen=True)
class Windows:
    """The announced window of one end. zero: announces zero; update: same acknowledgement, no data, another window;
    spans: from the first zero window to the next non-zero one, ns; the last is open (-1) if the capture ends before.
    """

    zero: Bools
    update: Bools
    span_begin_ns: Ints
    span_end_ns: Ints


def windows_of(acks: DirectionColumns) -> Windows:
    """Zero windows and window updates (RFC 9293 3.8.6). The window of a FIN is ignored: some stacks write 0 there."""
    counts = acks.flags & CONTROL == 0
    zero = (acks.window == 0) & counts
    update = counts & (acks.payload_bytes == 0)
    update &= acks.ack == before(acks.highest_ack, UNKNOWN)
    update &= acks.window != np.concatenate([acks.window[:1], acks.window[:-1]])
    announcing = np.flatnonzero(counts)
    state = zero[announcing]
    opens, closes = announcing[state & ~before(state, False)], announcing[~state & before(state, False)]
    ends = np.full(len(opens), -1, dtype=np.int64)
    ends[: len(closes)] = acks.time_ns[closes]
    return Windows(zero, update, acks.time_ns[opens], ends)


def probes_of(data: DirectionColumns, acks: DirectionColumns, zero: Bools) -> tuple[Bools, Bools]:
    """Segments that only ask for an answer: (zero-window probes, RFC 9293 3.8.6.1; keep-alives, RFC 9293 3.8.4).

    Both carry at most one byte, at or below what was already acknowledged or must not be sent yet. A keep-alive has the
    number before SND.NXT while nothing is outstanding (else a byte there is sent again); a probe, while the other end's
    window is zero, the one before SND.UNA or the first byte of new data.
    """
    small = (data.payload_bytes <= 1) & (data.flags & (CONTROL | ACK) == ACK)
    sent = before(data.highest_sent, UNKNOWN)
    shut = before_each(zero, data, 0)
    una = before_each(acks.highest_ack, data, UNKNOWN)
    behind = small & (data.seq == sent - 1) & ((sent > 1) | data.probe) & (una >= sent)
    probe = small & shut & ((data.seq == una - 1) | ((data.seq == una) & (data.payload_bytes == 1)))
    return probe, behind & ~probe & ~shut


def probe_rows(rows: Rows) -> Bools:
    """The same of segments of several connections, as a mask over these rows; stray ones are none."""
    found = np.zeros(len(rows), dtype=np.bool_)
    for flow in np.unique(rows["flow"]).tolist():
        mine = np.flatnonzero((rows["flow"] == flow) & ~rows["stray"])
        sides = direction_columns(rows[mine])
        for side, other in (sides, sides[::-1]):
            probe, alive = probes_of(side, other, windows_of(other).zero)
            found[mine[side.row[probe | alive]]] = True
    return found


def spurious_by_timestamps(data: DirectionColumns, acks: DirectionColumns, segment: Ints, una: Ints) -> Bools:
    """Eifel detection (RFC 3522 3.2): the retransmission was spurious if the first acknowledgement that covers the data
    resent at SND.UNA echoes a timestamp older than the retransmission's, since then the original had arrived.
    """
    spurious = np.zeros(len(segment), dtype=np.bool_)
    if not len(acks) or not len(segment):
        return spurious
    place = np.searchsorted(acks.highest_ack, una, side="right")  # the first that advances beyond una
    there = (place < len(acks)) & (data.seq[segment] == una) & (data.options[segment] & TIMESTAMP != 0)
    place = np.minimum(place, len(acks) - 1)
    there &= acks.options[place] & TIMESTAMP != 0
    age = (acks.ts_ecr[place] - data.ts_val[segment]).view(np.int32)
    spurious[there] = age[there] < 0
    return spurious


def spurious_by_dsack(data: DirectionColumns, acks: DirectionColumns, reports: Reports, segment: Ints) -> Bools:
    """As many retransmissions of a number are spurious as duplicates of it were reported: the last ones before each
    report. (If the network duplicated a packet, the number was sent once and nothing is spurious.)
    """
    spurious = np.zeros(len(segment), dtype=np.bool_)
    by, starts, ends = reports.dsack
    if not len(segment) or not len(by):
        return spurious
    seq = data.seq[segment]
    order = np.argsort(seq, kind="stable")
    low = np.searchsorted(seq[order], starts)
    high = np.minimum(np.searchsorted(seq[order], ends), low + DSACK_SPAN)
    report, place = spread(low, np.maximum(high - low, 0))
    chosen = order[place]
    earlier = data.row[segment[chosen]] < acks.row[by[report]]
    report, chosen = report[earlier], chosen[earlier]
    if not len(chosen):
        return spurious
    # of one number within one report: the last sent only; a second report of it takes the one before
    keys = np.lexsort((chosen, seq[chosen], report))
    report, chosen = report[keys], chosen[keys]
    last = np.concatenate([(report[1:] != report[:-1]) | (seq[chosen][1:] != seq[chosen][:-1]), [True]])
    taken, times = np.unique(chosen[last], return_counts=True)
    spurious[taken] = True
    for extra in taken[times > 1]:  # rare: the same range reported again while no newer retransmission was sent
        same = np.flatnonzero((seq == seq[extra]) & (np.arange(len(seq)) < extra))
        spurious[same[len(same) - min(len(same), int(times[taken == extra][0]) - 1) :]] = True
    return spurious
