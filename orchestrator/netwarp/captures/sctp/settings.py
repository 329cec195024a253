"""Settings of an association's two ends, inferred from its packets.

Each is an interval that holds what the packets permit, with the packets that show it. Nothing is guessed: what the
capture does not bound is left open.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from ...core.numbers import percent
from ...core.units import counted
from ...core.wire import (
    COOKIE_ACK,
    COOKIE_ECHO,
    HEARTBEAT,
    HEARTBEAT_ACK,
    INIT,
    INIT_ACK,
    SACK,
)
from ..capture import Capture
from ..inference import (
    AT_ONCE_NS,
    GROWS,
    LATE,
    MS,
    TICK_NS,
    InferredSetting,
    Wait,
    floor_of,
    in_seconds,
    timer_bounds,
    timer_setting,
)
from ..native import Bools, Ints, Rows
from .association import Association
from .bursts import max_burst
from .t3_waits import asked_for_ns, t3_waits
from .transmissions import NEVER

SETTLED_RTO_NS = 1_000_000_000  # RTO.Min of RFC 9260 16
ENOUGH = 5
EQUAL = 0.02
MOST_SACK_DELAY_NS = 500 * MS  # RFC 9260 6.2: no SACK is put off for longer
ALONE_NS = 20 * MS  # After such a pause a packet meets no queue of its own connection
OPEN = (None, None)
LINUX = {
    "rto_initial": 3.0, "rto_min": 1.0, "rto_max": 60.0, "sack_delay": 0.2, "sack_frequency": 2.0,
    "heartbeat_interval": 30.0, "association_max_retrans": 10.0, "failover_threshold": 0.0, "init_attempts": 8.0,
    "init_max_timeout": 60.0, "max_burst": 4.0,
}  # fmt: skip
"""The kernel's own values, in s or a count (net/sctp/protocol.c, sctp_defaults_init(); the threshold is pf_retrans)."""


def infer_settings(capture: Capture, flow: int) -> list[InferredSetting]:
    """The settings of both ends that the capture of one point shows, end 0 first."""
    both = [Association(capture, flow, direction=direction) for direction in (0, 1)]
    result: list[InferredSetting] = []
    for end in (0, 1):
        mine, other = both[end], both[1 - end]
        waits = t3_waits(mine) if not mine.answers_unseen and mine.point != "receiver" else []
        if mine.point != "sender":  # a timer that follows another runs from one transmission to the next, seen anywhere
            waits = [wait for wait in waits if wait.doublings]
        result += _rto(mine, waits, end)
        result += _initiation(mine, end) if end == 0 else []
        result += _thresholds(mine, waits, end)
        result += _acknowledging(other, end)
        result += _heartbeat_interval(mine, waits, end)
        result += _initial_window(mine, end)
        result += max_burst(mine, end)
    return result


def _rto(association: Association, waits: Sequence[Wait], end: int) -> Iterator[InferredSetting]:
    first = [wait for wait in waits if wait.doublings == 0]
    measured = [wait for wait in first if wait.sampled]
    yield from floor_of(end, "T3", measured, lambda wait: (asked_for_ns(association, wait), 0.0))
    unmeasured = [wait for wait in first if not wait.sampled]
    if unmeasured and not _init_gaps(association, end):
        low, high = max(w.rto_ns[0] for w in unmeasured), min(w.rto_ns[1] for w in unmeasured)
        what = "T3 of a path without a round-trip sample (if the end takes none from the handshake: Linux does not)"
        yield timer_setting(end, "rto_initial", (low, high), what, unmeasured)
    capped = [
        later
        for earlier, later in _in_a_row(waits)
        if later.most_ns < 2 * earlier.rto_ns[0]
        and later.least_ns < GROWS * earlier.most_ns
        # elsewhere an expiry between two may have been lost before the capture: only equal ones are the longest
        and (association.point == "sender" or abs(later.most_ns - earlier.most_ns) < EQUAL * later.most_ns)
    ]
    if capped:
        low, high = max(wait.rto_ns[0] for wait in waits), min(wait.rto_ns[1] for wait in capped)
        yield timer_setting(end, "rto_max", (low, high), "T3 expired after less than twice the time before", capped)
    elif any(wait.doublings for wait in waits):
        longest = max(waits, key=lambda wait: wait.least_ns)
        yield timer_setting(end, "rto_max", (longest.rto_ns[0], None), "T3 expired as late as that", [longest])


def _in_a_row(waits: Sequence[Wait]) -> Iterator[tuple[Wait, Wait]]:
    """Two T3 expiries of one path without a round-trip sample between them."""
    for later in waits:
        if later.doublings:
            for earlier in waits:
                if (
                    earlier.path == later.path
                    and earlier.doublings == later.doublings - 1
                    and (0 < later.time_ns - earlier.time_ns <= later.most_ns + TICK_NS)
                ):
                    yield earlier, later


def _init_gaps(association: Association, end: int) -> list[int]:
    """Times between the INITs of an unanswered handshake."""
    if end or association.point not in ("sender", "unknown"):
        return []
    gaps: list[int] = np.diff(_unanswered_inits(association)["time_ns"].astype(np.int64)).tolist()
    return gaps


def _unanswered_inits(association: Association) -> Rows:
    """The INITs of the initiator before the first COOKIE ECHO. A later one answers an error, a cookie too old (RFC 9260
    5.2.6): no timer sent it.
    """
    chunks, columns = association.chunks, association.columns
    inits, echoes = columns.of_type(INIT), columns.of_type(COOKIE_ECHO)
    inits = inits[columns["direction"][inits] == 0]
    first: Rows = chunks[inits[inits < echoes[0]] if len(echoes) else inits]
    return first


def _initiation(association: Association, end: int) -> Iterator[InferredSetting]:
    """Of the end that asks: the first timer, its longest, and how often it asks again."""
    inits, columns = _unanswered_inits(association), association.columns
    times = inits["time_ns"].astype(np.int64)
    if not len(times):
        return
    gaps = _init_gaps(association, end)
    shown = tuple(times[:10].tolist())
    if gaps:
        low, high = in_seconds(timer_bounds(gaps[0], gaps[0]))
        yield InferredSetting(end, "rto_initial", low, high, "s", "an INIT without answer was sent again", shown[:2])
    # over several addresses of the peer the timer doubles when all have been asked (net/sctp: sctp_cmd_t1_timer_update)
    one_address = len(np.unique(inits["path"])) == 1
    for shorter, longer in itertools.pairwise(gaps[1:] if one_address else []):
        if longer < 2 * timer_bounds(shorter, shorter)[0]:
            low, high = in_seconds(timer_bounds(longer, longer))
            what = "an INIT's timer that was not twice as long as the one before it"
            yield InferredSetting(end, "init_max_timeout", low, high, "s", what, shown)
            break
    answered = bool(len(columns.of_type(INIT_ACK)))
    waited_ns = int(association.capture.packets["time_ns"].max()) - int(times[-1])
    again = len(times) - 1
    given_up = not answered and len(gaps) > 1 and waited_ns > 2 * gaps[-1] * LATE + TICK_NS
    if again:
        what = f"{counted(again, 'INIT was', 'INITs were')} sent again" + (", then none" if given_up else "")
        yield InferredSetting(end, "init_attempts", again, again if given_up else None, "", what, shown)


def _thresholds(association: Association, waits: Sequence[Wait], end: int) -> Iterator[InferredSetting]:
    """How many expiries in a row an end bears before new data takes another path, and before it gives up."""
    if not waits:
        return
    if association.point != "sender":
        run = max((wait.doublings or 0) for wait in waits) + 1
        what = f"it bore {counted(run, 'expiry', 'expiries')} of T3 in a row"
        shown = tuple(wait.time_ns for wait in waits[:10])
        yield InferredSetting(end, "association_max_retrans", run, None, "", what, shown)
        return
    reports, sent = association.reports, association.sent
    advances = reports.time_ns[np.isin(np.arange(len(reports.moment)), reports.acked_by)]
    beats = association.heartbeats
    ours = beats.direction == association.direction
    heard = np.sort(np.concatenate([advances, beats.answered_ns[ours & beats.answered]]))
    asked = np.sort(beats.time_ns[ours & ~beats.answered])
    times, path = sent.rows["time_ns"], sent.rows["path"]
    new = np.flatnonzero(sent.new)
    borne: list[int] = []
    moved: list[tuple[int, int, int]] = []
    for number, wait in enumerate(waits):
        until_ns = min((later.time_ns for later in waits[number + 1 :] if later.path == wait.path), default=NEVER)
        fresh = new[(times[new] >= wait.time_ns) & (times[new] < until_ns)]
        if not len(fresh) or _heard_on(association, wait.path, wait.time_ns, int(times[fresh[0]])):
            continue
        run, earliest = 1, wait.time_ns
        for earlier in reversed(waits[:number]):
            if earlier.path == wait.path:
                if _heard_on(association, wait.path, earlier.time_ns, wait.time_ns):
                    break
                run, earliest = run + 1, earlier.time_ns
        silent = ours & (beats.path == wait.path) & ~beats.answered & (beats.time_ns < wait.time_ns)
        others = int((silent & (beats.time_ns > earliest - wait.most_ns)).sum())
        if path[fresh[0]] == wait.path:
            borne.append(run)
        else:
            moved.append((run - 1, run - 1 + others, wait.time_ns))
    if len(association.paths) > 1 and moved:
        least, most = max(min(each[0] for each in moved), max(borne, default=0)), min(each[1] for each in moved)
        what = f"new data took another path after {counted(least + 1, 'expiry', 'expiries')} of T3"
        if least > most:
            what = "new data took another path after different numbers of expiries"
        low, high = (least, most) if least <= most else OPEN
        times_ns = tuple(each[2] for each in moved[:10])
        yield InferredSetting(end, "failover_threshold", low, high, "", what, times_ns)
    elif len(association.paths) > 1 and borne:
        what = f"new data stayed on its path after {counted(max(borne), 'expiry', 'expiries')} of T3"
        yield InferredSetting(end, "failover_threshold", max(borne), None, "", what)
    yield from _given_up(association, waits, heard, asked, end)


def _heard_on(association: Association, path: int, since_ns: int, until_ns: int) -> bool:
    """Whether anything that was sent on a path in an interval was acknowledged within it: its error count is 0 then."""
    sent, reports, beats = association.sent, association.reports, association.heartbeats
    by = reports.time_of(reports.acked_by)[sent.unit]
    last = sent.after < 0
    data = (sent.rows["path"] == path) & last & (sent.rows["time_ns"] >= since_ns) & (by < until_ns)
    answers = (beats.path == path) & (beats.direction == association.direction)
    answers &= (beats.answered_ns > since_ns) & (beats.answered_ns < until_ns)
    return bool(data.any() or answers.any())


def _given_up(
    association: Association, waits: Sequence[Wait], heard: Ints, asked: Ints, end: int
) -> Iterator[InferredSetting]:
    """association_max_retrans: errors in a row over all paths."""
    edges = np.concatenate([[-1], heard, [NEVER]])
    times = np.array([wait.time_ns for wait in waits], dtype=np.int64)
    of = np.searchsorted(edges, times, side="right")
    counts = np.bincount(of)
    most = int(counts.max())
    rows = association.aborts(asked_for=False)
    aborts = rows["time_ns"][rows["direction"] == end].astype(np.int64)
    last = times[of == of[-1]]
    silent = int((asked > edges[of[-1] - 1]).sum())
    ended = aborts[aborts > last[-1]]
    if len(ended) and not ((heard > last[-1]) & (heard < ended[0])).any() and len(last) > 1:
        what = f"it aborted after {counted(len(last), 'expiry', 'expiries')} of T3 in a row, at the next one"
        shown = (*last[-9:].tolist(), int(ended[0]))
        if ended[0] - last[-1] > (last[-1] - last[-2]) / LATE:
            yield InferredSetting(end, "association_max_retrans", len(last), len(last) + silent, "", what, shown)
            return
    what = f"it bore {counted(most, 'expiry', 'expiries')} of T3 in a row"
    if most > 1:
        yield InferredSetting(end, "association_max_retrans", most, None, "", what, tuple(last[-10:].tolist()))


@dataclasses.dataclass(frozen=True)
class Answers:
    """SACKs that say nothing but that new data came, one value each: number of packets, times since the first and the
    last of them, all on one path; alone: none met a queue of the connection's own before the capture's far side.
    """

    time_ns: Ints
    path: Ints
    packets: Ints
    since_first_ns: Ints
    since_last_ns: Ints
    alone: Bools

    def of(self, chosen: Bools) -> Answers:
        """Some of them."""
        return Answers(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))


def _answers(association: Association, end: int) -> Answers | None:
    sent, reports = association.sent, association.reports
    count = len(reports.moment)
    lone = np.flatnonzero(sent.new & (sent.after < 0))
    by = reports.acked_by[sent.unit[lone]]
    lone, by = lone[by < count], by[by < count]
    if count < 2 or not len(lone):
        return None
    packets = np.unique(np.stack([by, sent.moment[lone]]), axis=1)
    number = np.bincount(packets[0], minlength=count)
    first_ns, last_ns = np.full(count, NEVER), np.zeros(count, dtype=np.int64)
    lowest, highest = np.full(count, NEVER), np.full(count, -1, dtype=np.int64)
    np.minimum.at(first_ns, by, sent.rows["time_ns"][lone])
    np.maximum.at(last_ns, by, sent.rows["time_ns"][lone])
    np.minimum.at(lowest, by, sent.rows["path"][lone])
    np.maximum.at(highest, by, sent.rows["path"][lone])
    plain = reports.is_sack & (number > 0) & ~reports.has_gaps & ~_with_others(association, end)
    plain &= (lowest == highest) & (reports.path == lowest) & (reports.time_ns >= last_ns)
    alone = np.ones(count, dtype=np.bool_)
    if association.point != "receiver":  # what follows closely may have waited in a queue
        begins = np.sort(sent.rows["time_ns"])
        alone = first_ns - begins[np.maximum(np.searchsorted(begins, first_ns) - 1, 0)] > ALONE_NS
    again = reports.acked_by[sent.unit[sent.repeated]]
    plain[again[again < count]] = False
    plain[1:] &= ~reports.has_gaps[:-1]
    plain[reports.duplicate_by] = False
    plain[0] = False  # the first data is acknowledged at once
    since_first_ns, since_last_ns = reports.time_ns - first_ns, reports.time_ns - last_ns
    every = Answers(reports.time_ns, reports.path, number, since_first_ns, since_last_ns, alone)
    return every.of(plain)


def _acknowledging(association: Association, end: int) -> Iterator[InferredSetting]:
    """Of the data's receiver: how long it puts a SACK off, and after how many packets it does not. association: of the
    other end's data.
    """
    answers = _answers(association, end)
    if answers is None:
        return
    delays: list[tuple[float, float]] = []
    late_ns: list[int] = []
    prompt: list[int] = []
    prompt_ns: list[int] = []
    clear = True
    for path in sorted(set(answers.path.tolist())):
        mine = answers.of(answers.path == path)
        round_trip = _round_trip(association, end, path, int(mine.since_last_ns.min()))
        if round_trip is None:
            continue
        near, far = round_trip
        margin = max(far - near, AT_ONCE_NS)
        busy = max(_busy_ns(mine.of(mine.alone), far + margin) - far, 0)
        waited = mine.since_last_ns > far + max(margin, busy) + 3 * MS
        late = mine.of(waited & mine.alone & (mine.packets == 1))
        if len(late.path) < 2 and association.point == "receiver":
            late = mine.of(waited & mine.alone)
        order = np.argsort(late.since_last_ns, kind="stable")
        if len(order) >= (ENOUGH if busy > margin + 3 * MS else 2):
            typical, above = (int(order[len(order) * fifths // 5]) for fifths in (1, 4))
            least_ns, _ = timer_bounds(float(late.since_last_ns[typical] - far), 0)
            if late.since_last_ns[above] > LATE * late.since_last_ns[typical] + 2 * margin + TICK_NS:
                continue  # no timer: a queue, perhaps
            if least_ns > MOST_SACK_DELAY_NS:
                continue  # a queue, filled by the sender itself
            differ = int(late.since_last_ns[above] - late.since_last_ns[typical]) if far > near else 0
            delays.append((least_ns, float(late.since_first_ns[typical] - near + differ + TICK_NS)))
            late_ns += late.time_ns[:10].tolist()
        at_once = mine.of(~waited)
        prompt += at_once.packets.tolist()
        prompt_ns += at_once.time_ns.tolist()
        clear &= far - near < AT_ONCE_NS
    if delays:
        low, high = in_seconds((max(each[0] for each in delays), min(each[1] for each in delays)))
        if low is not None and high is not None and low <= high:
            what = f"{counted(len(late_ns), 'SACK was', 'SACKs were')} sent late"
            yield InferredSetting(end, "sack_delay", low, high, "s", what, tuple(late_ns[:10]))
    if len(prompt) < 3:
        return
    usual = int(np.bincount(prompt).argmax())
    share = prompt.count(usual) / len(prompt)
    what = f"{counted(len(prompt), 'SACK')} at once, {percent(share, 2)} of them for {counted(usual, 'packet')}"
    if share >= 0.8 and (usual > 1 or (clear and not delays)):
        yield InferredSetting(end, "sack_frequency", usual, usual, "", what, tuple(prompt_ns[:10]))


def _busy_ns(answers: Answers, at_once_ns: int) -> int:
    """How long the end took at most for SACKs of as many packets as it waits for; 0 where it puts those off."""
    usual = int(np.bincount(answers.packets).argmax()) if len(answers.packets) else 0
    taken_ns = answers.since_last_ns[answers.packets == usual]
    return int(taken_ns.max()) if usual > 1 and np.quantile(taken_ns, 0.2) <= at_once_ns else 0


def _with_others(association: Association, end: int) -> Bools:
    """Of each report: whether its packet carries anything else, which may have sent it."""
    columns, reports = association.columns, association.reports
    others = (columns["direction"] == end) & (columns["type"] != SACK)
    moments = association.order(columns["packet"][others])
    return np.isin(reports.moment, moments)


def _round_trip(association: Association, end: int, path: int, least_ns: int) -> tuple[int, int] | None:
    """The shortest and the longest time from the capture point to an end and back on a path, by what an end answers at
    once: its part of the handshake, and heartbeats; None if there was neither. least_ns: the shortest of other answers.
    At that end itself the paths do not differ.
    """
    beats = association.heartbeats
    here = association.point == "receiver"
    answers = (beats.direction != end) & beats.answered & (here | (beats.path == path))
    known = (beats.answered_ns - beats.time_ns)[answers].tolist()
    chunks, columns = association.chunks, association.columns
    pairs = ((INIT_ACK, COOKIE_ECHO),) if end == 0 else ((INIT, INIT_ACK), (COOKIE_ECHO, COOKIE_ACK))
    for asked, answered in pairs:
        asks, replies = (chunks[columns.of_type(kind)] for kind in (asked, answered))
        if len(asks) == len(replies) == 1 and (here or (asks["path"][0], replies["path"][0]) == (path, path)):
            known.append(int(replies["time_ns"][0]) - int(asks["time_ns"][0]))
    return (max(min([least_ns, *known]), 0), max(known)) if known else None


def _heartbeat_interval(association: Association, waits: Sequence[Wait], end: int) -> Iterator[InferredSetting]:
    """The pause of an idle path is the interval and the path's RTO, varied by half of it (RFC 9260 8.3)."""
    beats, columns = association.heartbeats, association.columns
    quiet = (columns["type"] == HEARTBEAT) | (columns["type"] == HEARTBEAT_ACK)
    busy = (columns["direction"] == end) & ~quiet
    gaps: list[int] = []
    times: list[int] = []
    elsewhere = association.point != "sender"  # one that was lost before the capture point would double the pause
    first_path = int(association.chunks["path"][0])
    for path in association.paths:
        mine = np.flatnonzero((beats.direction == end) & (beats.path == path))
        others = columns["time_ns"][busy & (columns["path"] == path)]
        errors = [wait.time_ns for wait in waits if wait.path == path]
        for one, two in zip(mine[:-1].tolist(), mine[1:].tolist(), strict=True):
            begin, finish = int(beats.time_ns[one]), int(beats.time_ns[two])
            answered = beats.answered_ns[one] < finish
            since = begin - (finish - begin)  # what failed a little before may still shorten the pause
            failed = any(since < error < finish for error in errors)
            busy_then = ((others >= since) & (others <= finish)).any()
            earlier = (beats.time_ns[mine] < begin) & (beats.time_ns[mine] > since)
            settled = beats.answered[mine][earlier].all() and (path == first_path or earlier.any() or one != mine[0])
            if settled and answered and not failed and not busy_then:
                gaps.append(finish - begin)
                times.append(finish)
    if not gaps:
        return
    if elsewhere:
        what = f"{counted(len(gaps), 'pause', 'pauses')} between heartbeats of an idle path, as seen from the capture"
        most_s = (min(gaps) + TICK_NS) / 1e9
        yield InferredSetting(end, "heartbeat_interval", None, most_s, "s", what, tuple(times[:10]))
        return
    spread = max(gaps) - min(gaps)
    if len(gaps) >= ENOUGH:
        longest, what = (spread + TICK_NS) / _least_share(len(gaps)), "the path's RTO by how much they differ"
    else:
        longest, what = SETTLED_RTO_NS, "the path's RTO taken as at most 1 s (RFC 9260 16)"
        if first := [wait.most_ns for wait in waits if wait.doublings == 0]:
            longest, what = max(first), "the path's RTO as that of T3 expiries"
    from_s, to_s = in_seconds((timer_bounds(max(gaps), 0)[0] - 1.5 * longest, min(gaps) + TICK_NS))
    what = f"{counted(len(gaps), 'pause', 'pauses')} between heartbeats of an idle path; {what}"
    yield InferredSetting(end, "heartbeat_interval", from_s, to_s, "s", what, tuple(times[:10]))


def _least_share(count: int) -> float:
    """The share of an interval by which the extremes of `count` uniform draws differ at least, with 98 % probability:
    the range R of n draws has P(R <= x) = n x^(n-1) - (n-1) x^n.
    """
    shares = np.linspace(0, 1, 1001)
    return float(shares[np.searchsorted(count * shares ** (count - 1) - (count - 1) * shares**count, 0.02)])


def _initial_window(association: Association, end: int) -> Iterator[InferredSetting]:
    """User bytes sent before the first acknowledgement came."""
    sent, reports = association.sent, association.reports
    if association.point != "sender" or not len(sent) or not reports.is_sack.any():
        return
    first = int(reports.moment[reports.is_sack][0])
    before, after = sent.moment < first, sent.moment > first
    if not before.any() or sent.nth[before].any():
        return
    size = int(sent.rows["user_bytes"][before].sum())
    last_ns, sack_ns = int(sent.rows["time_ns"][before][-1]), int(reports.time_ns[reports.is_sack][0])
    follows = sent.rows["time_ns"][after]
    waited = len(follows) > 1 and follows[1] - sack_ns < AT_ONCE_NS and sack_ns - last_ns > 5 * MS
    largest = int(sent.rows["user_bytes"][before].max())
    what = f"{counted(size, 'byte', 'bytes')} before the first SACK"
    what += ", and more as soon as it came" if waited else "; there may have been no more to send"
    times = (int(sent.rows["time_ns"][before][0]), last_ns, sack_ns)
    yield InferredSetting(end, "initial_window", size, size + largest if waited else None, "B", what, times)
