"""A sender's bytes in flight, first flight and rounds, and idle times, from a capture at the sender.

Sequence numbers are relative: the SYN is 0, the first byte of payload 1. measure/sent_data.py has the same for a
flow of an experiment, of SCTP and MPTCP too.
"""

from __future__ import annotations

import numpy as np

from ..native import UNKNOWN, Ints
from .columns import DirectionColumns

ROUNDS = 64  # Number of rounds examined: slow start ends long before
# The initial RTO, 1 s (RFC 6298 2.1): after this long idle a sender may restart in slow start (RFC 5681 4.1)
IDLE_NS = 1_000_000_000


def in_flight(data: DirectionColumns, acks: DirectionColumns) -> tuple[Ints, Ints]:
    """(time ns, bytes) at each change of the bytes sent but not yet covered by the cumulative acknowledgement
    (FlightSize, RFC 5681 2). Ranges that SACK reported still count; SYN and FIN do not count as bytes.
    """
    count = len(data) + len(acks)
    sent, una, time_ns = np.full(count, 1), np.full(count, 1), np.empty(count, dtype=np.int64)
    time_ns[data.row], time_ns[acks.row] = data.time_ns, acks.time_ns
    sent[data.row], una[acks.row] = data.highest_end, acks.highest_ack
    sent, una = (np.clip(np.maximum.accumulate(numbers), 1, data.data_end) for numbers in (sent, una))
    flight = sent - una
    changes = np.diff(flight, prepend=0) != 0
    return time_ns[changes], np.maximum(0, flight[changes])


def idle_gaps(data: DirectionColumns, acks: DirectionColumns) -> tuple[Ints, Ints]:
    """(begin, length) in ns of every interval of at least IDLE_NS in which neither end sent anything."""
    begin, length = [], []
    for end, other_end in ((data, acks), (acks, data)):
        if not len(end):
            continue
        # an idle interval ends with a segment whose sender had been silent for IDLE_NS: only these few are examined
        late = np.flatnonzero(np.diff(end.time_ns) >= IDLE_NS) + 1
        late = np.concatenate([[0], late]) if end.row[0] > 0 else late
        own = np.where(late > 0, end.time_ns[late - 1], UNKNOWN)
        heard = end.before[late]
        theirs = np.where(heard > 0, other_end.time_ns[heard - 1], UNKNOWN) if len(other_end) else own
        since = np.maximum(own, theirs)
        idle = end.time_ns[late] - since >= IDLE_NS
        begin.append(since[idle])
        length.append((end.time_ns[late] - since)[idle])
    begins, lengths = (np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64) for parts in (begin, length))
    order = np.argsort(begins, kind="stable")
    return begins[order], lengths[order]


PAUSE = 2  # The wait for an answer is longer than this many times the longest spacing within a flight
# A busy stack may not have sent its whole window when an answer comes so soon (between namespaces: after 30 us)
STILL_SENDING_NS = 1_000_000
PROBED = 1.5  # Round trips without an answer, after which a sender may probe


def first_flight(data: DirectionColumns, acks: DirectionColumns) -> tuple[int, int] | None:
    """(segments, bytes) of payload sent before the first answer to any of it arrives (an acknowledgement or a SACK
    block): the initial window (RFC 5681 3.1), if the sender had that much to send. What is sent again because no answer
    comes is not counted twice.

    None: no payload; or the end of the flight is not seen. It is seen if the sender paused for the answer, longer than
    between the segments before it. Behind a qdisc that spaces them the answer to the first comes while the others are
    still on their way to the capture point. Nor is it seen if the answer came within STILL_SENDING_NS.
    """
    carries = data.carries
    if not len(carries):
        return None
    first = carries[0]
    answers = np.flatnonzero(
        ((acks.highest_ack > data.seq[first]) | (acks.sack_blocks > 0)) & (acks.row > data.row[first])
    )
    until = acks.row[answers[0]] if len(answers) else len(data) + len(acks)
    flight = carries[(data.row[carries] < until) & (data.new_bytes[carries] > 0)]
    if len(data.syns) and len(acks.syns):  # what follows later is a tail loss probe (RFC 8985 7.3)
        round_trip_ns = int(acks.time_ns[acks.syns[0]] - data.time_ns[data.syns[0]])
        longest_ns = max(PROBED * abs(round_trip_ns), STILL_SENDING_NS)
        flight = flight[data.time_ns[flight] - data.time_ns[first] <= longest_ns]
    following = carries[data.row[carries] > until]
    if len(answers) and len(flight) and len(following):
        answer_ns, times = int(acks.time_ns[answers[0]]), data.time_ns[flight]
        # a single segment shows no spacing: then what follows must come at the answer
        spaced_ns = np.diff(times).max() if len(flight) > 1 else data.time_ns[following[0]] - answer_ns
        if answer_ns - int(times[-1]) <= PAUSE * spaced_ns or answer_ns - int(times[0]) < STILL_SENDING_NS:
            return None
    return len(flight), int(data.new_bytes[flight].sum())


def rounds(data: DirectionColumns, acks: DirectionColumns) -> tuple[Ints, Ints, Ints]:
    """(time ns, segments, bytes) of each round. A round is what is sent until its first segment is acknowledged, about
    one round trip. Ends before the first retransmission; at most ROUNDS. Empty if the SYN was not captured: the first
    segments seen may not be the first ones sent.
    """
    carries = data.carries if len(data.syns) else data.carries[:0]
    again = np.flatnonzero(data.is_retransmission[carries])
    if len(again):
        carries = carries[: again[0]]
    row = data.row[carries]
    edges = [0]
    while edges[-1] < len(carries) and len(edges) <= ROUNDS:
        answer = int(np.searchsorted(acks.highest_ack, data.seq[carries[edges[-1]]], side="right"))
        if answer == len(acks):
            edges.append(len(carries))
        else:
            edges.append(max(edges[-1] + 1, int(np.searchsorted(row, acks.row[answer]))))
    if len(again) and edges[-1] == len(carries):
        edges.pop()  # a retransmission interrupted the last round
    edge = np.array(edges, dtype=np.int64)
    total = np.concatenate([[0], np.cumsum(data.payload_bytes[carries])])
    return data.time_ns[carries[edge[:-1]]], np.diff(edge), np.diff(total[edge])
