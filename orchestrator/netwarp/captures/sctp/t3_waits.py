"""Lengths of the retransmission timers (T3) that ran out, as the capture at their sender shows them.

A kernel's timer is late, never early, by up to one tick and an eighth of its length (Linux' timer wheel). One that
counts ticks, as usrsctp's, is early by up to a tick.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ...core.timer_wheel import LATENESS_RATIO
from ..native import Ints
from .association import Association

MS = 1_000_000
LATE = 1 + LATENESS_RATIO
TICK_NS = 10 * MS  # At 100 Hz, the slowest clock in use
AT_ONCE_NS = 900_000  # An answer that took less than the shortest timer (1 ms) was not put off
MOST_EXPIRIES = 1000


@dataclasses.dataclass(frozen=True)
class Wait:
    """A T3 timer that ran out: between `least_ns` and `most_ns` long as seen. doublings: how often it had run out since
    the last round-trip sample of its path; None: not known. sampled: there was one.
    """

    time_ns: int
    path: int
    least_ns: int
    most_ns: int
    doublings: int | None
    sampled: bool

    @property
    def rto_ns(self) -> tuple[float, float]:
        """The RTO that the timer was set to."""
        return timer_bounds(self.least_ns, self.most_ns)


def timer_bounds(least_ns: float, most_ns: float) -> tuple[float, float]:
    """What a timer was set to that ran for so long."""
    return max((least_ns - TICK_NS) / LATE, 0.0), float(most_ns + TICK_NS)


def t3_waits(association: Association) -> list[Wait]:
    """How long each T3 timer that ran out had run, in the sender's capture. It starts with the first data of an idle
    path, and anew with each report that moves the cumulative TSN over data of the path (RFC 9260 6.3.2).
    """
    sent, reports, again = association.sent, association.reports, association.again
    times, path, moment = sent.rows["time_ns"], sent.rows["path"], sent.moment
    acked_at = reports.moment_of(reports.acked_by)[sent.unit]
    # what was sent again on another path before it was acknowledged does not move this path's timer
    moved = np.append(reports.moved, False)[reports.acked_by[sent.unit]]
    moved &= (sent.after < 0) | (moment[sent.after] > acked_at)
    samples, beats = association.rtt, association.heartbeats
    ours = beats.direction == association.direction
    result: list[Wait] = []
    expired: dict[int, list[int]] = {}  # by path: the moments
    repeated = sent.repeated
    for place in again.expiries[:MOST_EXPIRIES].tolist():
        row, left = int(again.row[place]), int(again.from_path[place])
        at, at_ns = int(moment[row]), int(times[row])
        before = expired.setdefault(left, [])
        since = before[-1] if before else -1
        here = np.flatnonzero((path == left) & (moment >= since) & (moment < at))
        before.append(at)
        if not len(here):
            continue
        reported = here[(acked_at[here] < at) & (acked_at[here] > since) & moved[here]]
        start_ns = int(times[here[0]])
        if len(reported):
            last = int(acked_at[reported].max())
            waiting = here[(moment[here] < last) & (acked_at[here] > last)]
            after = here[moment[here] > last]
            if len(waiting):
                start_ns = int(reports.time_ns[np.searchsorted(reports.moment, last)])
            elif len(after):
                start_ns = int(times[after[0]])
            else:
                continue
        heard = int(np.searchsorted(reports.moment, at)) - 1
        if heard >= 0 and at_ns - int(reports.time_ns[heard]) < AT_ONCE_NS:
            continue  # a report may have been the reason
        again_here = repeated[(path[repeated] == left) & (times[repeated] > start_ns) & (moment[repeated] < at)]
        least_ns = at_ns - (int(times[again_here[-1]]) if len(again_here) else start_ns)
        if at_ns - start_ns < int(samples.rtt_ns[samples.path == left].min(initial=at_ns - start_ns)):
            continue  # no timer is shorter than a round trip
        known = samples.time_ns[(samples.path == left) & (samples.time_ns <= start_ns)]
        answers = beats.answered_ns[ours & (beats.path == left) & (beats.answered_ns <= start_ns)]
        sample_ns = max(int(known.max(initial=-1)), int(answers.max(initial=-1)))
        asked = ours & (beats.path == left) & (beats.time_ns >= sample_ns) & (beats.time_ns < at_ns)
        silent = asked & (beats.answered_ns > at_ns)
        earlier = sum(1 for wait in result if wait.path == left and wait.time_ns > sample_ns)
        told = sum(1 for wait in result if wait.path == left)
        unclear = bool(silent.any()) or len(before) - 1 > told
        result.append(
            Wait(at_ns, left, least_ns, at_ns - start_ns, None if unclear else earlier, sampled=sample_ns >= 0)
        )
    return result


def asked_for_ns(association: Association, wait: Wait) -> float:
    """The largest RTO that the round trips before ask for, by RFC 9260 6.3.1 without floor, whichever of them the
    sender took.
    """
    samples, beats = association.rtt, association.heartbeats
    mine = (samples.path == wait.path) & (samples.time_ns <= wait.time_ns)
    times, rtts = samples.time_ns[mine], samples.rtt_ns[mine]
    ours = (beats.direction == association.direction) & (beats.path == wait.path) & (beats.answered_ns <= wait.time_ns)
    times = np.concatenate([times, beats.answered_ns[ours]])
    order = np.argsort(times, kind="stable")
    rtts = np.concatenate([rtts, (beats.answered_ns - beats.time_ns)[ours]])[order]
    largest = 0.0
    for some in (rtts, rtts[::2], rtts[1::2], rtts[_one_a_round_trip(times[order], rtts)]):
        smooth = variation = 0.0
        for number, rtt in enumerate(some[-200:].tolist()):
            if number:
                variation += (abs(smooth - rtt) - variation) / 4
                smooth += (rtt - smooth) / 8
            else:
                smooth, variation = rtt, rtt / 2
        largest = max(largest, smooth + 4 * variation)
    return largest


def _one_a_round_trip(times: Ints, rtts: Ints) -> list[int]:
    """The samples of a sender that measures one packet at a time (RFC 9260 6.3.1 C4). With a queue that grows they vary
    far more than all of them do, and ask for a longer timer.
    """
    taken: list[int] = []
    heard_ns = 0
    for place, (time_ns, rtt_ns) in enumerate(zip(times.tolist(), rtts.tolist(), strict=True)):
        if time_ns - rtt_ns >= heard_ns:
            taken.append(place)
            heard_ns = time_ns
    return taken
