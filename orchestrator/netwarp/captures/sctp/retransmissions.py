"""Retransmissions of DATA chunks: fast, by timeout, or probes of a zero window; needed or spurious.

Fast: since its last transmission three reports marked the TSN as missing (RFC 9260 7.2.4: only reports that newly
acknowledge a higher TSN count, and in fast recovery those that move the cumulative TSN; once per TSN, step 6). Timeout:
all others, and those that a T3 expiry of their path had marked before the third report (6.3.3). Zero window probe: the
timer expired, but the receiver had answered that its window is closed: it discards what it has no room for, and the
sender asks again (6.1 A). The analysis needs the sender's capture: it cannot see reports that were lost before they
reached the capture point.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..native import UNKNOWN, Bools, Ints
from .interval_search import NextAbove, search_ascending
from .transmissions import NEVER, Acknowledgements, Transmissions

MISSES = 3


@dataclasses.dataclass(frozen=True)
class Retransmissions:
    """One value per retransmission, in the order of the capture. row: of Transmissions; from_path: path of the
    transmission before; third: the report that marked it as missing for the third time, or their count.

    expiries: indices in `row` of the first retransmission after each T3 expiry but those of probes. not_matched:
    reported duplicates that belong to no retransmission (the network duplicated the packet).
    """

    row: Ints
    from_path: Ints
    third: Ints
    fast: Bools
    probe: Bools
    unknown: Bools
    spurious: Bools
    expiries: Ints
    not_matched: int

    @property
    def timeout(self) -> Bools:
        """True if T3 expired and the receiver had not discarded the chunk."""
        return ~(self.fast | self.probe | self.unknown)


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
    expiry, by, marked = _expiries(sent, reports, row, np.where(at_first, count, third))
    # once fast, a TSN waits for the timer from then on; only now is it known which were marked by it before
    later = _later(sent, row, (third < count) & ~marked)
    if (later != at_first).any():
        expiry, by, marked = _expiries(sent, reports, row, np.where(later, count, third))
    if duplicates is None:
        tsn, after = reports.duplicate_tsn, reports.moment[reports.duplicate_by]
        key = sent.moment
    else:
        tsn, after = duplicates
        key = sent.rows["time_ns"]
    spurious, left = _spurious(sent, row, key, tsn, after)
    # what waited for the timer, and cannot have: its sender takes it for another chunk's retransmission by the timer
    fast = (third < count) & ~(later & (by >= 0)) & ~marked
    discarded = np.append(_discarded(sent, reports, row), False)
    probe = ~fast & (discarded[:-1] | discarded[by])  # or marked by a probe's expiry, and sent when the window opened
    return Retransmissions(
        row=row,
        from_path=sent.rows["path"][before],
        third=third,
        fast=fast,
        probe=probe,
        unknown=~probe & (third == count) & (by < 0),
        spurious=spurious,
        expiries=expiry[~probe[expiry]],
        not_matched=left,
    )


def _discarded(sent: Transmissions, reports: Acknowledgements, row: Ints) -> Bools:
    """For each: did the receiver discard the transmission before? The first report after it (but what was on its way by
    then: half a round trip), or the last one, announces a window of zero and covers nothing from this TSN on.
    """
    before, discarded = sent.before[row], np.zeros(len(row), dtype=np.bool_)
    since_ns = sent.rows["time_ns"][before] + _least_round_trip_ns(sent, reports) // 2
    first = np.searchsorted(reports.moment, sent.moment[before], side="right")
    last = np.searchsorted(reports.moment, sent.moment[row]) - 1
    if len(reports.moment):
        for answer in (np.maximum(first, np.searchsorted(reports.time_ns, since_ns)), last):
            there = np.clip(answer, 0, len(reports.moment) - 1)
            closed = reports.closed[there] & (reports.highest_reported[there] < sent.rows["tsn"][row])
            discarded |= closed & (first <= answer) & (answer <= last)
    return discarded


def _later(sent: Transmissions, row: Ints, fast: Bools) -> Bools:
    """For each: was an earlier retransmission of the same TSN fast?"""
    by_tsn = np.argsort(sent.unit[row], kind="stable")
    before: Ints = np.cumsum(fast[by_tsn]) - fast[by_tsn]
    unit = sent.unit[row][by_tsn]
    later = np.zeros(len(row), dtype=np.bool_)
    later[by_tsn] = before > before[np.searchsorted(unit, unit)]
    return later


def _third_miss(sent: Transmissions, reports: Acknowledgements, again: Ints) -> Ints:
    """The third report that marked each retransmission's TSN as missing since its last transmission; their count if
    there is none.

    A chunk that comes after higher TSNs and was not seen before was lost before the capture point, for example in the
    sender's own queue: it is a retransmission that may have begun a fast recovery.
    """
    highest = np.maximum.accumulate(sent.rows["tsn"])
    late = np.flatnonzero(sent.new & (sent.rows["tsn"] < highest))
    row = np.concatenate([again, late])
    tsn = sent.rows["tsn"][row]
    before = np.concatenate([sent.before[again], np.searchsorted(highest, sent.rows["tsn"][late], side="right")])
    since = np.searchsorted(reports.moment, sent.moment[before])
    until = np.minimum(np.searchsorted(reports.moment, sent.moment[row]), reports.acked_by[sent.unit[row]])
    # a report without gaps calls nothing missing
    reach = np.where(reports.has_gaps, reports.newest, UNKNOWN)
    third = _nth(reach, since, until, tsn)
    recovering = _recovery(reports, highest[row], third)
    if recovering.any():
        widened = recovering & reports.moved & reports.has_gaps
        third = _nth(np.where(widened, reports.highest_reported, reach), since, until, tsn)
    return third[: len(again)]


def _nth(reach: Ints, since: Ints, until: Ints, tsn: Ints) -> Ints:
    values = NextAbove(reach)
    place = since - 1
    for _ in range(MISSES):
        place = values.many(place + 1, tsn)
    return np.where(place < until, place, len(reach))


def _recovery(reports: Acknowledgements, highest: Ints, third: Ints) -> Bools:
    """Reports that arrived during fast recovery: from a third miss until everything sent by then is acknowledged
    cumulatively (7.2.4). third: the third miss of each retransmission (none: their count); highest: the highest TSN
    that passed the capture point until then.

    What passed before the retransmission had been sent before it: if the sender's own queue lies between, that is more
    than had passed when the report did.
    """
    inside = np.zeros(len(reports.moment), dtype=np.bool_)
    order = np.lexsort((highest, third))
    entered, first = np.unique(third[order], return_index=True)
    left = np.searchsorted(reports.cumulative, highest[order][first])
    place = 0
    while place < len(entered) and entered[place] < len(inside):  # once a recovery, not once a report
        inside[entered[place] + 1 : left[place]] = True
        place = max(int(np.searchsorted(entered, left[place])), place + 1)
    return inside


def _expiries(sent: Transmissions, reports: Acknowledgements, row: Ints, third: Ints) -> tuple[Ints, Ints, Bools]:
    """The first retransmission after each T3 expiry; for each retransmission that of the first expiry since it had been
    sent, or -1; and the retransmissions that an expiry had marked.

    An expiry marks everything that is outstanding on its path. The timer starts again when the cumulative TSN moves
    over a chunk of the path (6.3.2), and it runs for an RTO, which is no less than the smoothed round trip (6.3.1):
    what comes sooner after that is no expiry.
    """
    moment, before = sent.moment[row], sent.before[row]
    sent_at = sent.moment[before]
    path = sent.rows["path"][before]
    count = len(reports.moment)
    marked, by = np.zeros(len(row), dtype=np.bool_), np.full(len(row), -1)
    round_trip_ns = _least_round_trip_ns(sent, reports)
    last_sent = np.empty(len(sent.tsns), dtype=np.int64)
    last_sent[sent.unit] = np.arange(len(sent))  # of equal places the last assignment holds
    covered = search_ascending(reports.cumulative, sent.tsns)
    expiries: list[Ints] = []
    for path_number in np.unique(path).tolist():
        here = np.flatnonzero(path == path_number)
        certain = here[third[here] == count]
        if not len(certain):
            continue
        progress = np.unique(covered[(sent.rows["path"][last_sent] == path_number) & (covered < count)])
        before_it = np.searchsorted(reports.moment[progress], moment[certain]) - 1
        since = np.append(reports.time_ns[progress], -NEVER // 2)[before_it]
        possible = sent.rows["time_ns"][row[certain]] - since >= round_trip_ns
        # what was sent before an expiry was marked by it; the first that was sent later tells the next one
        later = NextAbove(sent_at[certain])
        firsts: list[int] = []
        place = 0
        while place < len(certain):  # once an expiry
            if not possible[place]:
                place += 1
                continue
            firsts.append(place)
            # what went out with it was not marked by it
            place = later.single(place + 1, int(moment[certain[place]]) - 1)
        if not firsts:
            continue
        first = certain[np.array(firsts)]
        number = np.searchsorted(moment[first], sent_at[here], side="right")  # the first expiry after it was sent
        there = number < len(first)
        number = np.minimum(number, len(first) - 1)
        there &= moment[first][number] <= moment[here]
        by[here] = np.where(there, first[number], -1)
        third_at = reports.moment_of(third[here])
        marked[here] = there & (moment[first][number] < np.minimum(third_at, NEVER))
        expiries.append(first)
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *expiries])), by, marked


def _least_round_trip_ns(sent: Transmissions, reports: Acknowledgements) -> int:
    """The shortest time from a chunk that was sent once to the report that covers it; 0 if there is none."""
    once = np.flatnonzero(sent.new & (sent.after < 0) & (reports.acked_by[sent.unit] < len(reports.moment)))
    took = reports.time_ns[reports.acked_by[sent.unit[once]]] - sent.rows["time_ns"][once]
    return int(took.min()) if len(took) else 0


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
