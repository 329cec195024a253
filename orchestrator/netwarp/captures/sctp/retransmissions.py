"""Retransmissions of DATA chunks: fast or by timeout, needed or spurious.

Fast: since its last transmission three reports marked the TSN as missing (RFC 9260 7.2.4: only reports that newly
acknowledge a higher TSN count, and in fast recovery those that move the cumulative TSN; once per TSN, step 6). Timeout:
all others, and those that a T3 expiry of their path had marked before the third report (6.3.3). The analysis needs the
sender's capture: it cannot see reports that were lost before they reached the capture point.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..native import UNKNOWN, Bools, Ints
from .interval_search import NextAbove
from .transmissions import NEVER, Acknowledgements, Transmissions

MISSES = 3


@dataclasses.dataclass(frozen=True)
class Retransmissions:
    """One value per retransmission, in the order of the capture. row: of Transmissions; from_path: path of the
    transmission before; third: the report that marked it as missing for the third time, or their count.

    expiries: indices in `row` of the first retransmission after each T3 expiry. not_matched: reported duplicates that
    belong to no retransmission (the network duplicated the packet).
    """

    row: Ints
    from_path: Ints
    third: Ints
    fast: Bools
    spurious: Bools
    expiries: Ints
    not_matched: int


def retransmissions(
    sent: Transmissions, reports: Acknowledgements, duplicates: tuple[Ints, Ints] | None = None
) -> Retransmissions:
    """Classify the retransmissions. duplicates: TSN and time (ns) of every copy that arrived beside the first one, from
    the receiver's capture; without it the duplicates that the receiver's reports show are used (at most as many as
    reached this capture point).
    """
    row = sent.repeated
    before = sent.before[row]
    third = _third_miss(sent, reports, row)
    count = len(reports.moment)
    at_first = _later(sent, row, third < count)
    expiry, marked = _expiries(sent, reports, row, np.where(at_first, count, third))
    # once fast, a TSN waits for the timer from then on; only now is it known which were marked by it before
    later = _later(sent, row, (third < count) & ~marked)
    if (later != at_first).any():
        expiry, marked = _expiries(sent, reports, row, np.where(later, count, third))
    if duplicates is None:
        tsn, after = reports.duplicate_tsn, reports.moment[reports.duplicate_by]
        key = sent.moment
    else:
        tsn, after = duplicates
        key = sent.rows["time_ns"]
    spurious, left = _spurious(sent, row, key, tsn, after)
    return Retransmissions(
        row=row,
        from_path=sent.rows["path"][before],
        third=third,
        fast=(third < count) & ~later & ~marked,
        spurious=spurious,
        expiries=expiry,
        not_matched=left,
    )


def _later(sent: Transmissions, row: Ints, fast: Bools) -> Bools:
    """For each: was an earlier retransmission of the same TSN fast?"""
    by_tsn = np.argsort(sent.unit[row], kind="stable")
    before: Ints = np.cumsum(fast[by_tsn]) - fast[by_tsn]
    unit = sent.unit[row][by_tsn]
    later = np.zeros(len(row), dtype=np.bool_)
    later[by_tsn] = before > before[np.searchsorted(unit, unit)]
    return later


def _third_miss(sent: Transmissions, reports: Acknowledgements, row: Ints) -> Ints:
    """The third report that marked each retransmission's TSN as missing since its last transmission; their count if
    there is none.
    """
    count = len(reports.moment)
    tsn = sent.rows["tsn"][row]
    since = np.searchsorted(reports.moment, sent.moment[sent.before[row]])
    until = np.minimum(np.searchsorted(reports.moment, sent.moment[row]), reports.acked_by[sent.unit[row]])
    # a report without gaps calls nothing missing
    reach = np.where(reports.has_gaps, reports.newest, UNKNOWN)
    third = _nth(reach, since, until, tsn)
    recovering = _recovery(sent, reports, np.unique(third[third < count]))
    if recovering.any():
        widened = recovering & reports.moved & reports.has_gaps
        third = _nth(np.where(widened, reports.highest_reported, reach), since, until, tsn)
    return third


def _nth(reach: Ints, since: Ints, until: Ints, tsn: Ints) -> Ints:
    values = NextAbove(reach)
    place = since - 1
    for _ in range(MISSES):
        place = values.many(place + 1, tsn)
    return np.where(place < until, place, len(reach))


def _recovery(sent: Transmissions, reports: Acknowledgements, entered: Ints) -> Bools:
    """Reports that arrived during fast recovery: from a third miss until everything sent by then is acknowledged
    cumulatively (7.2.4). entered: reports that were a third miss.
    """
    inside = np.zeros(len(reports.moment), dtype=np.bool_)
    if not len(entered):
        return inside
    highest = np.maximum.accumulate(sent.rows["tsn"])
    by_then = np.maximum(np.searchsorted(sent.moment, reports.moment[entered]) - 1, 0)
    left = np.searchsorted(reports.cumulative, highest[by_then])
    place = 0
    while place < len(entered):  # once a recovery, not once a report
        inside[entered[place] + 1 : left[place]] = True
        place = max(int(np.searchsorted(entered, left[place])), place + 1)
    return inside


def _expiries(sent: Transmissions, reports: Acknowledgements, row: Ints, third: Ints) -> tuple[Ints, Bools]:
    """The first retransmission after each T3 expiry, and the retransmissions that an expiry had marked.

    An expiry marks everything that had been outstanding on its path for a whole RTO: what was sent up to the last start
    of the timer, which is when the cumulative TSN last moved, or the first transmission (6.3.2, 6.3.3).
    """
    moment, before = sent.moment[row], sent.before[row]
    sent_at = sent.moment[before]
    path = sent.rows["path"][before]
    count = len(reports.moment)
    marked = np.zeros(len(row), dtype=np.bool_)
    progress = reports.moment[reports.moved]
    expiries: list[Ints] = []
    for path_number in np.unique(path).tolist():
        here = np.flatnonzero(path == path_number)
        certain = here[third[here] == count]
        if not len(certain):
            continue
        # what was sent before an expiry was marked by it; the first that was sent later tells the next one
        later = NextAbove(sent_at[certain])
        firsts = []
        place = 0
        while place < len(certain):  # once an expiry
            firsts.append(place)
            # what went out with it was not marked by it
            place = later.single(place + 1, int(moment[certain[place]]) - 1)
        first = certain[np.array(firsts)]
        last_progress = np.append(progress, -1)[np.searchsorted(progress, moment[first]) - 1]
        started = np.maximum(sent_at[first], last_progress)
        number = np.searchsorted(moment[first], sent_at[here], side="right")  # the first expiry after it was sent
        there = number < len(first)
        number = np.minimum(number, len(first) - 1)
        third_at = reports.moment_of(third[here])
        marked[here] = (
            there
            & (moment[first][number] < np.minimum(third_at, NEVER))
            & (sent_at[here] <= started[number])
            & (moment[first][number] <= moment[here])
        )
        expiries.append(first)
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *expiries])), marked


def _spurious(sent: Transmissions, row: Ints, key: Ints, tsn: Ints, after: Ints) -> tuple[Bools, int]:
    """Assigns each duplicate to the last retransmission of its TSN before it that no later duplicate has taken.

    key: by transmission, in the same order in which `after` gives the time each duplicate was known.
    """
    spurious = np.zeros(len(row), dtype=np.bool_)
    unit = np.searchsorted(sent.tsns, tsn)
    known = (unit < len(sent.tsns)) & (np.append(sent.tsns, 0)[np.minimum(unit, len(sent.tsns))] == tsn)
    missed = int((~known).sum())
    unit, after = unit[known], after[known]
    if not len(unit) or not len(row):
        return spurious, missed + len(unit)
    order = np.lexsort((after, unit))
    unit, after = unit[order], after[order]
    mine = np.argsort(sent.unit[row], kind="stable")  # by TSN, then in the order of the capture
    units, keys = sent.unit[row][mine], key[row][mine]
    # one sorted axis of (TSN, when): the place of the last retransmission that precedes each duplicate
    both = np.lexsort(
        (
            np.concatenate([np.zeros(len(units)), np.ones(len(unit))]),
            np.concatenate([keys, after]),
            np.concatenate([units, unit]),
        )
    )
    is_sent = both < len(units)
    last = np.empty(len(unit), dtype=np.int64)
    last[both[~is_sent] - len(units)] = (np.cumsum(is_sent) - 1)[~is_sent]
    # two duplicates never share one: what a later one has is not free for an earlier one
    number = np.arange(len(unit))
    group = np.searchsorted(units, unit)  # place of the TSN's first retransmission
    step = len(units) + len(unit) + 1
    free = np.minimum.accumulate((last - number + unit * step)[::-1])[::-1] + number - unit * step
    matched = (free >= group) & (free < len(units)) & (units[np.clip(free, 0, len(units) - 1)] == unit)
    spurious[mine[free[matched]]] = True
    return spurious, missed + int((~matched).sum())
