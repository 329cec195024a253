"""Lengths of the retransmission timers (T3) that ran out, as the capture at their sender shows them."""

from __future__ import annotations

import numpy as np

from ..inference import AT_ONCE_NS, MOST_EXPIRIES, Wait, estimated_rto_ns, one_a_round_trip
from .association import Association
from .transmissions import NEVER


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
    passed_at = reports.moment_of(np.searchsorted(reports.cumulative, sent.tsns))[sent.unit]
    ended_at = np.minimum(acked_at, np.where(sent.after < 0, NEVER, moment[sent.after]))
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
        first: int | None = int(here[0])
        if len(reported):
            last = int(acked_at[reported].max())
            waiting = here[(moment[here] < last) & (acked_at[here] > last)]
            after = here[moment[here] > last]
            if not len(waiting) and not len(after):
                continue
            first = None if len(waiting) else int(after[0])
            start_ns = int(reports.time_ns[np.searchsorted(reports.moment, last)])
        if first is not None:
            start_ns = int(times[first])
            # Of what was moved here a timer may run already: Linux counts bytes in flight, not what the wire shows, and
            # starts it for a fast retransmission that it then does not send.
            if sent.nth[first] > 0 and path[sent.before[first]] != left:
                earlier_here = np.flatnonzero(path[:first] == left)[-1:]
                start_ns = int(times[[*earlier_here, sent.before[first]]].min())
        heard = int(np.searchsorted(reports.moment, at)) - 1
        if heard >= 0 and at_ns - int(reports.time_ns[heard]) < AT_ONCE_NS:
            continue  # a report may have been the reason
        again_here = repeated[(path[repeated] == left) & (times[repeated] > start_ns) & (moment[repeated] < at)]
        # the first data after all before it had been acknowledged, or sent again elsewhere
        mine = np.flatnonzero((path == left) & (moment < at))
        anew = mine[np.append(True, np.maximum.accumulate(ended_at[mine])[:-1] < moment[mine[1:]])]
        # Linux starts it anew as the cumulative TSN passes what was acknowledged by a gap block before, too
        passed = passed_at[mine][passed_at[mine] < at]
        restarted_ns = int(reports.time_ns[np.searchsorted(reports.moment, passed.max())]) if len(passed) else start_ns
        missing = reports.time_ns[(reports.moment < at) & reports.has_gaps][-1:]  # and for a fast retransmission
        latest_ns = max(
            restarted_ns, *missing.tolist(), int(times[anew[-1]]), int(times[again_here].max(initial=start_ns))
        )
        least_ns = at_ns - max(start_ns, latest_ns)
        if at_ns - start_ns < int(samples.rtt_ns[samples.path == left].min(initial=at_ns - start_ns)):
            continue  # no timer is shorter than a round trip
        began_ns = start_ns if first is None else int(times[first])
        known = samples.time_ns[(samples.path == left) & (samples.time_ns <= began_ns)]
        answers = beats.answered_ns[ours & (beats.path == left) & (beats.answered_ns <= began_ns)]
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
    every = (rtts, rtts[::2], rtts[1::2], rtts[one_a_round_trip(times[order], rtts)])
    return max(estimated_rto_ns(some.tolist())[0] for some in every)
