"""Spurious retransmissions: shown to be unnecessary by timestamps (Eifel, RFC 3522) or by DSACK (RFC 2883)."""

from __future__ import annotations

import numpy as np

from ..native import Bools, Ints
from .ack_information import Reports
from .columns import TIMESTAMP, DirectionColumns

DSACK_SPAN = 1024
"""At most this many retransmissions per duplicate ACK: bounds the work that a hostile capture can cause."""


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
    if not len(segment) or not len(reports.dsack_segment):
        return spurious
    seq = data.seq[segment]
    order = np.argsort(seq, kind="stable")
    low = np.searchsorted(seq[order], reports.dsack_start)
    high = np.minimum(np.searchsorted(seq[order], reports.dsack_end), low + DSACK_SPAN)
    counts = np.maximum(high - low, 0)
    report = np.repeat(np.arange(len(counts)), counts)
    begin = np.cumsum(counts) - counts
    chosen = order[np.arange(len(report)) - np.repeat(begin, counts) + np.repeat(low, counts)]
    earlier = data.row[segment[chosen]] < acks.row[reports.dsack_segment[report]]
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
