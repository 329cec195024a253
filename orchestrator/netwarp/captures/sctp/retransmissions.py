"""Retransmissions of DATA chunks: fast, by timeout, or probes of a zero window; needed or spurious.

Fast: since its last transmission three reports marked the TSN as missing (RFC 9260 7.2.4: only reports that newly
acknowledge a higher TSN count, and in fast recovery those that move the cumulative TSN; once per TSN, step 6). Timeout:
all others, and those that a T3 expiry of their path had marked before the third report (6.3.3). Zero window probe: the
timer expired, but the receiver had answered that its window is closed: it discards what it has no room for, and the
sender asks again (6.1 A).

Away from the sender the same rules hold for what the sender had heard: each report by the round trip between the
capture point and the sender later than it passed here. What was lost on the way is not seen there. So a chunk that
comes late enough to be an answer to its gap is a retransmission too (inferred), and where an earlier retransmission may
have been lost, the time since the sender had reason to send tells a timer, or nothing does.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..arrays import NextAbove, latest, search_ascending
from ..capture import CLEAR_NS
from ..native import UNKNOWN, Bools, Ints
from .transmissions import NEVER, Acknowledgements, Transmissions

MISSES = 3
# RTO.Min of RFC 9260 16, 1 s, less what the way may have shortened: what a capture away from the sender needs to see of
# silence before it tells a timer
SHORTEST_RTO_NS = 900_000_000
SHORTEST_TIMER_NS = 20_000_000  # No timer is set to less where the clock ticks at 100 Hz
OVERDUE = 1.5  # Shortest round trips within which no T3 expires


@dataclasses.dataclass(frozen=True)
class SentAgain:
    """One value per retransmission, in the order of the capture. row: of Transmissions; from_path: path of the
    transmission before; third: the report that marked it as missing for the third time, or their count.

    inferred: the transmission before was lost before the capture point. expiries: indices in `row` of the first
    retransmission after each T3 expiry but those of probes. not_matched: reported duplicates that belong to no
    retransmission (the network duplicated the packet).
    """

    row: Ints
    from_path: Ints
    third: Ints
    fast: Bools
    probe: Bools
    unknown: Bools
    spurious: Bools
    inferred: Bools
    expiries: Ints
    not_matched: int

    @property
    def timeout(self) -> Bools:
        """True if T3 expired and the receiver had not discarded the chunk."""
        return ~(self.fast | self.probe | self.unknown)


def retransmissions(sent: Transmissions, reports: Acknowledgements, near_ns: int | None) -> SentAgain:
    """Classify the retransmissions; those are spurious of which the receiver reported duplicates (at most as many as
    reached this capture point). near_ns: time from the capture point to the sender and back; None: at the sender.
    """
    row, before = sent.repeated, sent.before[sent.repeated]
    if near_ns is not None:
        near_ns = _reaction_ns(sent, reports, near_ns)
        row, before = _with_inferred(sent, reports, near_ns)
    spurious, left = _spurious(sent, reports, row)
    inferred = sent.nth[row] == 0
    if near_ns is not None:
        sent, reports = _as_heard(sent, reports, near_ns)
    third, count = _third_miss(sent, reports, row, before), len(reports.moment)
    shortest_ns, unclear = _least_round_trip_ns(sent, reports), np.zeros(len(row), dtype=np.bool_)
    if near_ns is not None:
        shortest_ns = max(SHORTEST_RTO_NS, near_ns)
        prompt, took_ns = _prompt(sent, reports, row, third, near_ns)
        unclear = (third < count) & ~prompt & (took_ns < shortest_ns)
        third = np.where(prompt, third, count)

    def expiries(later: Bools) -> tuple[Ints, Ints, Bools]:
        no_miss = later | (third == count)
        # away from the sender a chunk with three misses that comes behind an expiry was sent and lost before it
        until = np.where(no_miss | (near_ns is not None), NEVER, reports.moment_of(third))
        return _expiries(sent, reports, row, before, no_miss & ~unclear, until, shortest_ns)

    at_first = _later(sent, row, third < count)
    expiry, by, marked = expiries(at_first)
    # once fast, a TSN waits for the timer from then on; only now is it known which were marked by it before
    later = _later(sent, row, (third < count) & ~marked)
    if (later != at_first).any():
        expiry, by, marked = expiries(later)
    # what waited for the timer, and cannot have: its sender takes it for another chunk's retransmission by the timer
    fast = (third < count) & ~(later & (by >= 0)) & ~marked
    discarded = np.append(_discarded(sent, reports, row, before), False)
    probe = ~fast & (discarded[:-1] | discarded[by])  # or marked by a probe's expiry, and sent when the window opened
    return SentAgain(
        row=row,
        from_path=sent.rows["path"][before],
        third=third,
        fast=fast,
        probe=probe,
        unknown=~probe & (third == count) & (by < 0),
        spurious=spurious,
        inferred=inferred,
        expiries=expiry[~probe[expiry]],
        not_matched=left,
    )


def _sent_again(sent: Transmissions, near_ns: int) -> tuple[Ints, Ints]:
    """The rows of retransmissions, and for each the row of the transmission before. What followed that one stands for
    it if it came late, or never: then the chunk fills a gap, no sooner than an answer to the gap can come.
    """
    late, beyond = _late(sent)
    before = sent.before.copy()
    before[late] = beyond
    copy = sent.after[late]
    before[copy[copy >= 0]] = beyond[copy >= 0]
    answers = sent.rows["time_ns"][late] - sent.rows["time_ns"][beyond] >= near_ns
    row = np.sort(np.concatenate([sent.repeated, late[answers]]))
    return row, before[row]


def _with_inferred(sent: Transmissions, reports: Acknowledgements, near_ns: int) -> tuple[Ints, Ints]:
    """The same, but for chunks that came late and then again, promptly: the first was the original."""
    row, before = _sent_again(sent, near_ns)
    heard = _as_heard(sent, reports, near_ns)
    prompt = np.zeros(len(sent) + 1, dtype=np.bool_)
    prompt[row], _ = _prompt(*heard, row, _third_miss(*heard, row, before), near_ns)
    stays = (sent.nth[row] > 0) | ~prompt[sent.after[row]]
    return row[stays], before[stays]


def _reaction_ns(sent: Transmissions, reports: Acknowledgements, near_ns: int) -> int:
    """The shortest time from a third miss to its chunk, if that is shorter than near_ns: a handshake takes longer, but
    not twice as long where the way is most of it.
    """
    least_ns = near_ns // 2 if near_ns >= CLEAR_NS else 0
    row, before = _sent_again(sent, least_ns)
    third = _third_miss(sent, reports, row, before)
    took_ns = sent.rows["time_ns"][row] - reports.time_of(third)
    return int(took_ns[took_ns >= least_ns].min(initial=near_ns))


def _late(sent: Transmissions) -> tuple[Ints, Ints]:
    """Chunks that come after higher TSNs and were not seen before, and the first row with a higher TSN."""
    highest = np.maximum.accumulate(sent.rows["tsn"])
    late = np.flatnonzero(sent.new & (sent.rows["tsn"] < highest))
    return late, np.searchsorted(highest, sent.rows["tsn"][late], side="right")


def _as_heard(sent: Transmissions, reports: Acknowledgements, near_ns: int) -> tuple[Transmissions, Acknowledgements]:
    """The same with the moments and times at which the sender heard the reports, as if it had sent when its chunks
    passed here.
    """
    time_ns = np.maximum.accumulate(reports.time_ns) + near_ns
    following = np.searchsorted(np.maximum.accumulate(sent.rows["time_ns"]), time_ns)
    moment = 2 * np.append(sent.moment, sent.moment[-1:] + 1)
    heard = moment[following] - 1 if len(sent) else 2 * reports.moment
    return dataclasses.replace(sent, moment=moment[:-1]), dataclasses.replace(reports, moment=heard, time_ns=time_ns)


def _prompt(sent: Transmissions, reports: Acknowledgements, row: Ints, third: Ints, near_ns: int) -> tuple[Bools, Ints]:
    """For each: does it come so soon after its third miss, or after progress since, that no timer can have sent it? And
    the time since then. An RTO is well over the round trip, and over what queues usually add to it. Where more follows
    than a timer sends, and behind a prompt one with a lower TSN, the wait may be longer, but less than half the
    shortest RTO seen.
    """
    time_ns, tsn = sent.rows["time_ns"], sent.rows["tsn"][row]
    moved = np.flatnonzero(reports.moved)
    last = np.searchsorted(reports.moment[moved], sent.moment[row]) - 1
    progress_ns = np.where(last >= 0, np.append(reports.time_ns[moved], 0)[last], time_ns[0] if len(sent) else 0)
    there = third < len(reports.moment)
    took_ns = time_ns[row] - np.maximum(np.append(reports.time_ns, 0)[third], progress_ns)
    soon_ns = max(SHORTEST_TIMER_NS, OVERDUE * _least_round_trip_ns(sent, reports))
    waited_ns = (time_ns[row] - progress_ns)[~there]
    limit_ns = min(SHORTEST_RTO_NS, int(waited_ns[waited_ns > soon_ns].min(initial=SHORTEST_RTO_NS))) // 2
    usual_ns = 3 * int(np.median(took_ns[there])) if there.any() else 0
    following = np.searchsorted(sent.moment, sent.moment[row], side="right")
    followed = np.append(time_ns, NEVER)[following] - time_ns[row] < near_ns
    prompt = there & (took_ns <= np.maximum(soon_ns, np.where(followed, limit_ns, min(limit_ns, usual_ns))))
    chained = there & (np.diff(tsn, prepend=NEVER) > 0) & (np.diff(time_ns[row], prepend=0) <= soon_ns)
    return prompt | (chained & (latest(prompt) >= latest(~chained))), took_ns


def _discarded(sent: Transmissions, reports: Acknowledgements, row: Ints, before: Ints) -> Bools:
    """For each: did the receiver discard the transmission before? The first report after it (but what was on its way by
    then: half a round trip), or the last one, announces a window of zero and covers nothing from this TSN on.
    """
    discarded = np.zeros(len(row), dtype=np.bool_)
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


def _third_miss(sent: Transmissions, reports: Acknowledgements, again: Ints, again_before: Ints) -> Ints:
    """The third report that marked each retransmission's TSN as missing since its last transmission; their count if
    there is none.

    A chunk that comes after higher TSNs and was not seen before was lost before the capture point, for example in the
    sender's own queue: it is a retransmission that may have begun a fast recovery.
    """
    highest = np.maximum.accumulate(sent.rows["tsn"])
    late, beyond = _late(sent)
    row = np.concatenate([again, late])
    tsn = sent.rows["tsn"][row]
    before = np.concatenate([again_before, beyond])
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


def _expiries(
    sent: Transmissions,
    reports: Acknowledgements,
    row: Ints,
    before: Ints,
    waited: Bools,
    until: Ints,
    shortest_ns: int,
) -> tuple[Ints, Ints, Bools]:
    """The first retransmission after each T3 expiry; for each retransmission that of the first expiry since it had been
    sent, or -1; and the retransmissions that an expiry had marked before the moment `until`. waited: those that had to
    wait for the timer.

    An expiry marks everything that is outstanding on its path. The timer starts again when the cumulative TSN moves
    over a chunk of the path (6.3.2), and it runs for an RTO, which is no less than the smoothed round trip (6.3.1):
    what comes sooner after that than shortest_ns is no expiry.
    """
    moment = sent.moment[row]
    sent_at = sent.moment[before]
    path = sent.rows["path"][before]
    count = len(reports.moment)
    marked, by = np.zeros(len(row), dtype=np.bool_), np.full(len(row), -1)
    last_sent = np.empty(len(sent.tsns), dtype=np.int64)
    last_sent[sent.unit] = np.arange(len(sent))  # of equal places the last assignment holds
    covered = search_ascending(reports.cumulative, sent.tsns)
    expiries: list[Ints] = []
    for path_number in np.unique(path).tolist():
        here = np.flatnonzero(path == path_number)
        certain = here[waited[here]]
        if not len(certain):
            continue
        progress = np.unique(covered[(sent.rows["path"][last_sent] == path_number) & (covered < count)])
        before_it = np.searchsorted(reports.moment[progress], moment[certain]) - 1
        since = np.append(reports.time_ns[progress], -NEVER // 2)[before_it]
        possible = sent.rows["time_ns"][row[certain]] - since >= shortest_ns
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
        marked[here] = there & (moment[first][number] < until[here])
        expiries.append(first)
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *expiries])), by, marked


def _least_round_trip_ns(sent: Transmissions, reports: Acknowledgements) -> int:
    """The shortest time from a chunk that was sent once to the report that covers it; 0 if there is none."""
    once = np.flatnonzero(sent.new & (sent.after < 0) & (reports.acked_by[sent.unit] < len(reports.moment)))
    took = reports.time_ns[reports.acked_by[sent.unit[once]]] - sent.rows["time_ns"][once]
    return int(took.min()) if len(took) else 0


def _spurious(sent: Transmissions, reports: Acknowledgements, row: Ints) -> tuple[Bools, int]:
    """Assigns each reported duplicate to the last retransmission of its TSN before it that no later one has taken."""
    tsn, after = reports.duplicate_tsn, reports.moment[reports.duplicate_by]
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
    units, keys = sent.unit[row][mine], sent.moment[row][mine]
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
