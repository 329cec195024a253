"""The failover model of SCTP: ranges of time that the settings alone allow. A pure function; no capture is looked at.

What the standards say (RFC 9260: 6.3.1 RTO, 6.3.2 T3-rtx, 6.3.3 back-off, 6.4.1 retransmission to another address,
8.2 path failure, 8.3 heartbeats; RFC 7829 section 3: potentially failed), as Linux does it (net/sctp):

- T3 runs from the last SACK that moved anything, or from the first packet sent on an idle path
  (outqueue.c:sctp_check_transmitted, transport.c:sctp_transport_reset_t3_rtx). What timed out is sent again on the
  other path at once, under every setting, if that path is ACTIVE (outqueue.c:sctp_retransmit).
- New data moves when the path's state does: POTENTIALLY FAILED once its error count is above pf_retrans and below
  path_max_retrans (with pf_enable), INACTIVE once it is above path_max_retrans; each timeout doubles the RTO up to
  rto_max (sm_sideeffect.c:sctp_do_8_2_transport_strike).
- A timer never fires early, and late by at most one slot of the timer wheel (timer_wheel.py), from 63 ms on at most
  8/63 of its length.
- Heartbeats of a path that is potentially failed or unconfirmed leave every RTO/2 + rand(RTO), others that much after
  the heartbeat interval (transport.c:sctp_transport_timeout, sctp_transport_reset_hb_timer); from the second
  unanswered one on each counts as a timeout.
- Nagle's algorithm (without SCTP_NODELAY) holds a message that fills no packet, alone or with those that wait before
  it, while anything is in flight on any path, unless it is bundled with something that is sent anyway
  (output.c:sctp_packet_can_append_data). What is sent again is in flight, and new data waits for it.
- No new data leaves before all that timed out was sent again (outqueue.c:sctp_outq_flush_rtx): one packet with the
  timeout, the rest with the next message or SACK, as the other path's window permits.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from ...core.timer_wheel import HZ, slot_s
from .failover_inputs import FailoverConditions, FailoverSettings

JIFFY_S = 1 / HZ
"""The tick is the guest kernel's; of a kernel with another one (netns) nothing is said."""
HEARTBEAT_MIN_S = 0.2
FIRST_WINDOW_PACKETS = 3
FIRST_WINDOW_BYTES = 4380
MOST_STRIKES = 64
DATA_BYTES = 20
"""A DATA chunk's header and the most padding."""


@dataclasses.dataclass(frozen=True)
class Range:
    """A closed interval of durations in seconds: `low` and `high` themselves are allowed."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def holds(self, value: float, slack: float = 1e-6) -> bool:
        """True if a measured value lies in it."""
        return self.low - slack <= value <= self.high + slack


def fires(duration: Range) -> Range:
    """The times at which a timer set for that long goes off: never early, late by at most its slot of the wheel."""
    return Range(duration.low, duration.high + slot_s(duration.high))


def rto(settings: FailoverSettings, conditions: FailoverConditions) -> Range:
    """RTO in force on the primary at the fault (RFC 9260 6.3.1: SRTT + 4 RTTVAR within RTO.Min and RTO.Max).

    An RTT sample is at least the base RTT. A saturated flow's samples also hold its time in queues; those of a flow
    with pauses also hold the delay of the receiver's SACK. RTTVAR is at most the sum of three: the spread of the
    samples; half of the first sample, times 3/4 for each later sample (beta = 1/4); and what remains of the step from a
    first sample without delayed SACK to the later ones (SRTT follows with alpha = 1/8, RTTVAR with beta). One sample is
    taken per RTT.
    """
    first = shortest = conditions.rtt_s
    longest = pause = conditions.rtt_s + conditions.queue_s
    if conditions.interval_s is not None:
        delayed = fires(Range(settings.sack_delay_s, settings.sack_delay_s))
        longest += delayed.high
        pause = max(longest, conditions.interval_s)
        if conditions.alone and conditions.interval_s > (longest if conditions.nagle else delayed.high):
            shortest += delayed.low  # the very first DATA chunk is acknowledged at once: `first` stays
    samples = max(0, math.floor(conditions.up_s / pause) - 1)
    if samples == 0:
        # no sample yet: RTO.Initial; after one sample R: SRTT = R, RTTVAR = R/2, so 3 R
        return _clamped(settings, Range(settings.rto_min_s, max(settings.rto_initial_s, 3 * longest)))
    jump = 2 * (shortest - first) * (0.875**samples - 0.75**samples)
    deviation = longest / 2 * 0.75**samples + jump + (longest - shortest) + JIFFY_S
    lowest = shortest - (shortest - first) * 0.875**samples
    return _clamped(settings, Range(lowest + 4 * JIFFY_S, longest + 4 * deviation))


def _clamped(settings: FailoverSettings, value: Range) -> Range:
    return Range(*(min(max(end, settings.rto_min_s), settings.rto_max_s) for end in (value.low, value.high)))


def backed_off(settings: FailoverSettings, first: Range, timeout: int) -> Range:
    """The RTO of the nth consecutive timeout (1: the first), doubled each time up to rto_max (RFC 9260 6.3.3 E2)."""
    factor = 2 ** min(timeout - 1, 40)  # a float cannot hold 2 to the power of an error threshold of 65535
    return Range(*(min(end * factor, settings.rto_max_s) for end in (first.low, first.high)))


@dataclasses.dataclass(frozen=True)
class FailoverPrediction:
    """Ranges in seconds after the fault (return_s: after the repair); None: it does not happen, or nothing can be said.

    timeouts: number of timeouts until new data moves to the other path. state: the state of the failed path then.
    """

    timeouts: int
    state: Literal["POTENTIALLY_FAILED", "INACTIVE"]
    rto_s: Range
    first_retransmission_s: Range
    notification_s: Range | None
    new_data_s: Range | None
    outage_s: Range | None
    unreachable_s: Range | None
    return_s: Range | None


def timeouts_needed(settings: FailoverSettings) -> tuple[int, Literal["POTENTIALLY_FAILED", "INACTIVE"]]:
    """Number of consecutive timeouts that take the primary out of use, and its state then.

    The potentially failed state needs an error count above pf_retrans and below path_max_retrans. With path_max_retrans
    = 1 no count satisfies both, and one timeout more is needed than with the default of 5.
    """
    if settings.pf_enable and settings.pf_retrans + 1 < settings.path_max_retrans:
        return settings.pf_retrans + 1, "POTENTIALLY_FAILED"
    return settings.path_max_retrans + 1, "INACTIVE"


def times_out_without_fault(settings: FailoverSettings, conditions: FailoverConditions) -> bool:
    """True if T3 expires without any fault because the RTO is below the RTT plus the delayed SACK.

    Single messages: the first sample, of a SACK sent at once, makes the RTO 3 RTT (RFC 9260 6.3.1 C2). Retransmitted
    data gives no sample (Karn's rule, C5), and heartbeats of a path that has become potentially failed give samples
    without the SACK's delay.
    """
    shortest = min(max(settings.rto_min_s, 3 * conditions.rtt_s), settings.rto_max_s)
    delayed = fires(Range(settings.sack_delay_s, settings.sack_delay_s)).high if settings.sack_delay_s else 0.0
    return shortest < conditions.rtt_s + (delayed if conditions.alone or conditions.nagle else 0)


def predict_failover(settings: FailoverSettings, conditions: FailoverConditions) -> FailoverPrediction | None:
    """The prediction for a failure of the primary path.

    None if nothing can be predicted, because timeouts without any fault take the path out of use and back again all the
    time.
    """
    if times_out_without_fault(settings, conditions):
        return None
    timeouts, state = timeouts_needed(settings)
    first = rto(settings, conditions)
    pauses = _pauses(settings, conditions, first, timeouts)
    strikes = _strikes(settings, conditions, first, pauses)
    begun, done = strikes[0], strikes[-1]
    ready = None if settings.connectx else _confirmed(settings.rto_initial_s, conditions)
    answers = _confirmed(settings.peer_rto_initial_s, conditions)
    drained = _drain(settings, conditions)
    moved = _until_new_data(settings, conditions, drained, pauses)
    new_data = done + moved
    if ready is not None and ready.high > begun.low:
        begun = _delayed(settings, conditions, first, begun, ready)
        new_data = Range(max(done.low, ready.low), max(new_data.high, begun.high + drained.high + moved.high))
    beats = math.isfinite(settings.heartbeat_interval_s)
    gap = _outage(settings, conditions, first, strikes, pauses, begun)
    other = conditions.rtt_other_s + conditions.queue_s
    if answers.high > begun.low:
        unanswered = _delayed(settings, conditions, first, begun, answers).high + other
        new_data = Range(new_data.low, max(new_data.high, unanswered))
        gap = None if gap is None else Range(gap.low, max(gap.high, unanswered + (conditions.interval_s or 0)))
    unreachable = _unreachable(settings, first, done) if beats else None
    if first.low < other + settings.sack_delay_s:
        # what is sent again alone times out on the other path too, before its delayed SACK, and goes back and forth:
        # the gap lasts until new data moves, and timeouts beside the heartbeats count
        gap = None if gap is None else Range(gap.low, max(gap.high, new_data.high + other))
        further = (
            backed_off(settings, first, timeout).low for timeout in range(timeouts + 1, settings.path_max_retrans + 2)
        )
        unreachable = (
            None if unreachable is None else Range(min(unreachable.low, done.low + sum(further)), unreachable.high)
        )
    prediction = FailoverPrediction(
        timeouts=timeouts,
        state=state,
        rto_s=first,
        first_retransmission_s=begun,
        notification_s=done,
        new_data_s=None if conditions.inside else new_data,
        outage_s=gap,
        unreachable_s=done if state == "INACTIVE" else unreachable,
        return_s=_return(settings, conditions, first, done, timeouts, state) if beats else None,
    )
    if conditions.nagle and conditions.interval_s is not None:
        # how long Nagle's algorithm holds new data is not known where the SACK of what was sent again may be lost, or
        # where the other path's own timer may expire before it
        lost = any(known is not None and known.high > strikes[0].low for known in (ready, answers))
        expires = first.low < other + settings.sack_delay_s
        if lost or (expires and max(pause.high for pause in pauses) > conditions.interval_s):
            prediction = dataclasses.replace(
                prediction,
                notification_s=done if timeouts == 1 else None,
                new_data_s=None,
                outage_s=None,
                unreachable_s=None,
                return_s=None,
            )
    return prediction


def _strikes(
    settings: FailoverSettings, conditions: FailoverConditions, first: Range, pauses: list[Range]
) -> list[Range]:
    """The time of each timeout, after the fault."""
    strikes = [_first_timeout(settings, conditions, first)]
    for number in range(2, len(pauses) + 1):
        wait = fires(backed_off(settings, first, number))
        # a heartbeat on a path that has been idle for its interval may count as a timeout before T3 does
        early = min(wait.low, settings.heartbeat_interval_s + wait.low / 2)
        # T3 runs from the next packet sent on this path
        strikes.append(strikes[-1] + pauses[number - 2] + Range(early, wait.high))
    return strikes


def _pauses(settings: FailoverSettings, conditions: FailoverConditions, first: Range, timeouts: int) -> list[Range]:
    """From each timeout until new data is sent: a saturated flow has to send its losses again first, the others wait
    for a message, and for what holds it.
    """
    if conditions.interval_s is None:
        return [_drain(settings, conditions), *[Range(0, 0)] * (timeouts - 1)]
    answered = _answered(settings, conditions, conditions.rtt_other_s)
    # what is unacknowledged at the first timeout fell due in this time before it
    since_s = fires(first).high + conditions.rtt_s + conditions.queue_s
    if conditions.nagle:
        since_s += _answered(settings, conditions, conditions.rtt_s)
    pauses: list[Range] = []
    for number in range(1, timeouts + 1):
        if number > 1:
            since_s += pauses[-1].high + fires(backed_off(settings, first, number)).high
        held = _held(conditions, conditions.interval_s, answered, since_s, begun=number == 1)
        pauses.append(Range(0, max(conditions.interval_s, held)))
    return pauses


def _answered(settings: FailoverSettings, conditions: FailoverConditions, rtt_s: float) -> float:
    """The longest time from a packet to its SACK."""
    return rtt_s + conditions.queue_s + fires(Range(0, settings.sack_delay_s)).high


def _held(conditions: FailoverConditions, interval_s: float, answered: float, since_s: float, *, begun: bool) -> float:
    """How long after a timeout a message may wait for what is sent again: of Nagle's algorithm until all of it has been
    acknowledged, otherwise only if it is more than a window. since_s: for how long messages fell due. begun: the
    timeout is the first; before the others the path's window is one packet (transport.c:sctp_transport_lower_cwnd).
    """
    times = math.floor(since_s / interval_s) + 1
    lost = times * sum(conditions.sizes)
    if times * sum(size + DATA_BYTES for size in conditions.sizes) <= conditions.packet_bytes:
        return answered if conditions.nagle else 0.0
    if not begun:
        lost = min(lost, conditions.packet_bytes + max(conditions.sizes))
    if lost < FIRST_WINDOW_BYTES and not conditions.nagle:
        return 0.0
    # one packet leaves with the timeout, the rest of a window with the next message, each further one with a SACK
    return min(interval_s, answered) + math.ceil(lost / FIRST_WINDOW_BYTES) * answered


def _first_timeout(settings: FailoverSettings, conditions: FailoverConditions, first: Range) -> Range:
    """T3 counts from the last SACK that moved anything, or from the first packet on an idle path."""
    late_sack = fires(Range(0, settings.sack_delay_s)).high
    tail = 0.0
    if conditions.tail == "backward":
        tail = conditions.rtt_s
    elif conditions.tail == "round trip":
        tail = conditions.rtt_s + conditions.queue_s + late_sack
    longest = conditions.rtt_s + conditions.queue_s
    if conditions.interval_s is None:
        return _not_before(fires(first) + Range(-longest, tail))
    answered = longest + late_sack
    start = Range(-answered, max(conditions.interval_s, tail))
    if conditions.next_send_s is not None:
        since = conditions.interval_s - conditions.next_send_s
        # a message that Nagle's algorithm held may have been sent at any time
        held = conditions.nagle and conditions.interval_s < answered
        oldest = answered if held else since + (answered - since) // conditions.interval_s * conditions.interval_s
        start = Range(-oldest if since <= answered else conditions.next_send_s, max(conditions.next_send_s, tail))
    return _not_before(fires(first) + start)


def _not_before(value: Range) -> Range:
    """The range without negative times: what the fault causes does not happen before it."""
    return Range(max(0.0, value.low), value.high)


def _drain(settings: FailoverSettings, conditions: FailoverConditions) -> Range:
    """From the first retransmission on the other path until all that was lost has been sent again there.

    One packet leaves with the timeout (RFC 9260 6.3.3 E3); the receiver may delay its SACK; then the first window an
    RTT, which need not grow: 4380 bytes are not full with three packets of 1452 (RFC 9260 7.2.1: only a window in full
    use grows; net/sctp/transport.c:sctp_transport_raise_cwnd).
    """
    if conditions.interval_s is not None:
        return Range(0, 0)
    rounds = 1 + math.ceil((conditions.window_packets - 1) / FIRST_WINDOW_PACKETS)
    late_sack = fires(Range(0, settings.sack_delay_s)).high
    return Range(0, rounds * (conditions.rtt_other_s + conditions.queue_s + late_sack))


def _until_new_data(
    settings: FailoverSettings, conditions: FailoverConditions, drained: Range, pauses: list[Range]
) -> Range:
    """From the change of state to the first data never sent before."""
    if conditions.interval_s is not None:
        return pauses[-1]
    held = _answered(settings, conditions, conditions.rtt_other_s) if conditions.nagle else 0.0
    return Range(0, (drained.high if len(pauses) == 1 else drained.high / 2) + held)


def _confirmed(rto_initial_s: float, conditions: FailoverConditions) -> Range:
    """The time at which an address learned from the INIT or INIT ACK is confirmed by its first heartbeat (RFC 9260
    5.4), after the fault. connectx spares the caller's kernel that, never the peer's: until its own heartbeat on the
    other path is answered, its SACKs leave on the path that is dead (net/sctp/outqueue.c:sctp_outq_select_transport).
    """
    timer = fires(Range(rto_initial_s * 0.5, rto_initial_s * 1.5))
    return timer + Range(conditions.rtt_other_s - conditions.up_s, conditions.rtt_other_s - conditions.up_s + JIFFY_S)


def _delayed(
    settings: FailoverSettings, conditions: FailoverConditions, first: Range, begun: Range, ready: Range
) -> Range:
    """First retransmission on a path that was not confirmed yet: with the first timeout after it is."""
    low, number = begun.low, 1
    while low < ready.high and number < MOST_STRIKES:
        number += 1
        low += backed_off(settings, first, number).low
    wait = fires(backed_off(settings, first, number)).high + (conditions.interval_s or 0)
    return Range(max(begun.low, ready.low), max(begun.high, ready.high + wait))


def _outage(
    settings: FailoverSettings,
    conditions: FailoverConditions,
    first: Range,
    strikes: list[Range],
    pauses: list[Range],
    begun: Range,
) -> Range | None:
    """The longest gap between arrivals of new payload: until the first retransmission, or between later timeouts."""
    if not conditions.forward or conditions.inside:
        return None
    other = conditions.rtt_other_s + conditions.queue_s
    longest = conditions.rtt_s + conditions.queue_s
    if conditions.interval_s is None:
        gap = _not_before(Range(begun.low - longest, begun.high + other + longest))
    else:
        before = _between_messages(settings, conditions, conditions.rtt_s)
        gap = Range(min(first.low, begun.low), max(begun.high + other + before, other + pauses[-1].high))
        if conditions.nagle:
            # the only packet in flight may have arrived, so that only its SACK died: what is sent again is old then,
            # and what Nagle's algorithm held dies on the path still in use
            new = strikes[1] if len(strikes) > 1 else strikes[0] + pauses[0]
            gap = Range(gap.low, max(gap.high, new.high + other + before))
    for number in range(2, len(pauses) + 1):
        wait = fires(backed_off(settings, first, number))
        late = fires(Range(0, settings.sack_delay_s)).high
        extra = other + late
        if conditions.interval_s is not None:
            extra = pauses[number - 2].high + (conditions.queue_s if conditions.nagle else 0.0)
        early = min(wait.low, settings.heartbeat_interval_s + wait.low / 2)
        gap = Range(max(gap.low, early), max(gap.high, wait.high + extra))
    if conditions.interval_s is None and len(pauses) > 1 and conditions.queue_s < conditions.rtt_s / 2:
        # all of a window may have arrived, so that only its SACKs died: what is sent again is old then, and the new
        # data that its SACK lets out dies on the path still in use
        again = fires(backed_off(settings, first, 2))
        gap = Range(gap.low, max(gap.high, begun.high + longest + 2 * other + again.high))
    return gap


def _between_messages(settings: FailoverSettings, conditions: FailoverConditions, rtt_s: float) -> float:
    """The longest time between two new messages sent on a path that works."""
    if conditions.interval_s is None:
        return 0.0
    return max(conditions.interval_s, _answered(settings, conditions, rtt_s) if conditions.nagle else 0.0)


def _heartbeats(settings: FailoverSettings, current: Range, idle: bool) -> Range:
    """Time until the next heartbeat. idle: on a path whose heartbeats leave at the heartbeat interval."""
    interval = settings.heartbeat_interval_s if idle else 0.0
    shortest, longest = (max(interval + rto_s / 2, HEARTBEAT_MIN_S) for rto_s in (current.low, current.high))
    return fires(Range(shortest, longest + current.high))


def _unreachable(settings: FailoverSettings, first: Range, failed: Range) -> Range:
    """Time from potentially failed to INACTIVE by unanswered heartbeats: the first one starts the count, and each later
    one is a timeout that doubles the RTO.
    """
    timeouts, _ = timeouts_needed(settings)
    at = failed + _heartbeats(settings, backed_off(settings, first, timeouts), idle=False)
    for number in range(timeouts + 1, settings.path_max_retrans + 2):
        at = at + _heartbeats(settings, backed_off(settings, first, number), idle=False)
    # a path whose first heartbeat was still unanswered at the fault has one to wait for less
    return at


def _return(
    settings: FailoverSettings,
    conditions: FailoverConditions,
    first: Range,
    failed: Range,
    timeouts: int,
    state: Literal["POTENTIALLY_FAILED", "INACTIVE"],
) -> Range | None:
    """Time from the repair until new data is back on the primary: the next heartbeat that is answered restores the
    path.
    """
    if conditions.length_s is None or timeouts > settings.ps_retrans:
        return None
    if conditions.length_s < failed.high:
        return None
    # the fastest heartbeats back off the furthest by the repair; the next one may just have been missed. A path that
    # T3 declared inactive has one due by its interval, maybe at once, and its RTO is doubled further if an earlier one
    # is unanswered; one that heartbeats declared inactive goes on with their count.
    idle = state == "INACTIVE"
    low, number = failed.low, timeouts + (2 if idle else 0)
    while True:
        idle = idle or number > settings.path_max_retrans + 1
        beat = _heartbeats(settings, backed_off(settings, first, number), idle=idle)
        low += beat.low
        if low >= conditions.length_s or beat.low <= 0:
            break
        number += 1
    wait = beat.high
    longest = conditions.rtt_s + conditions.queue_s + _between_messages(settings, conditions, conditions.rtt_other_s)
    return Range(conditions.rtt_s, wait + longest + conditions.rtt_other_s + conditions.queue_s)
