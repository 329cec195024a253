"""A promise of TCP senders: a tail that is lost is probed for before its retransmission timer expires (RFC 8985 7)."""

from __future__ import annotations

import numpy as np

from ...captures.tcp.direction import Direction
from ...captures.tcp.retransmission import RetransmissionCause
from ..flow_packets import FlowPackets, tcp_directions

FLIGHT = 2
"""Of one segment alone a probe may wait for a delayed acknowledgement, which is as long as a timeout."""
SOON = 1.5
"""What left later than so many round trips after the first of a flight may have been a probe itself."""
PROBE_ROUND_TRIPS, MARGIN_NS = 2, 20_000_000
"""When a probe is due: after two smoothed round trips (RFC 8985 7.2), and the timer wheel's steps."""


def unprobed_timeouts(sender: FlowPackets) -> int | None:
    """The definition: docs/metrics.md, `unprobed_timeouts`. None: without SACK, or where nobody saw the handshake."""
    directions = [each for each in tcp_directions(sender) if each.sack and each.retransmissions is not None]
    return sum(_unprobed(each) for each in directions) if directions else None


def _unprobed(direction: Direction) -> int:
    again = direction.retransmissions
    assert again is not None
    first = again.segment[(again.cause == RetransmissionCause.TIMEOUT) & (again.series == 1)]
    return sum(_was_due(direction, int(segment)) for segment in first)


def _was_due(direction: Direction, segment: int) -> bool:
    """True if the sender was in its open state when it fell silent, with a flight whose probe was due before this."""
    data, acks, reports = direction.data, direction.acks, direction.reports
    una, heard = int(data.seq[segment]), int(data.before[segment])
    if not heard or reports.highest_sack[heard - 1] > una or int(acks.highest_ack[heard - 1]) != una:
        return False  # something above is known to have arrived: RACK's and not the probe's
    repeated = np.flatnonzero(data.is_retransmission[:segment])
    if len(repeated) and data.highest_end[repeated[-1]] > una:
        return False  # still recovering
    flight = data.carries[(data.carries < segment) & (data.seq[data.carries] >= una)]
    if len(flight) < FLIGHT:
        return False
    begin_ns = max(int(acks.time_ns[heard - 1]), int(data.time_ns[segment - 1]))
    round_trip_ns = int(direction.rtt.rtt_ns[direction.rtt.time_ns <= begin_ns].max(initial=0))
    spread_ns = int(data.time_ns[flight[-1]] - data.time_ns[flight[0]])
    waited_ns = int(data.time_ns[segment]) - begin_ns
    return (
        round_trip_ns > 0
        and spread_ns < SOON * round_trip_ns
        and waited_ns > PROBE_ROUND_TRIPS * round_trip_ns + MARGIN_NS
        and int(acks.window[heard - 1]) > 0
    )
