"""Delays of messages: of a schedule only where the wire tells which message is which; delivered in stream order."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from netwarp.core.types import OptionValue
from netwarp.core.wire import FIRST, I_DATA, LAST, UNORDERED
from netwarp.measure.datagram_flows import DatagramFlow, Datagrams
from netwarp.measure.delivery import SentMessages, datagram_messages, messages_of
from netwarp.measure.timetable import NEVER, Timetable
from support.captures import ISN, T, association, chunk, data_chunk, sctp
from support.observed import at_end, flow_of

MS = 1_000_000
STEP_NS, DELAY_NS = 100 * MS, 20 * MS
WHOLE = FIRST | LAST
Timed = tuple[float, bytes]
"""When it is sent, ms from T0, and a chunk."""


def forward_tsn(tsn: int) -> bytes:
    """A FORWARD TSN up to a TSN; no stream skips a message by it."""
    return chunk(192, struct.pack("!I", (ISN + tsn) % 2**32))


def interleaved(tsn: int, mid: int) -> bytes:
    return chunk(I_DATA, struct.pack("!IHHII", (ISN + tsn) % 2**32, 0, 0, mid, 0) + b"d" * 100, WHOLE)


def found(
    tmp_path: Path, sent: list[Timed], lost: tuple[int, ...] = (), late: dict[int, float] | None = None,
    **options: OptionValue,
) -> SentMessages:  # fmt: skip
    """The messages of a flow. lost: places in `sent` that never arrive; late: place -> ms of its arrival; all others
    arrive DELAY_NS later.
    """
    flow = flow_of("sctp", stop_ns=10**9, sender_options={"interval_ns": STEP_NS, **options})
    handshake = [(T - 10 + n, packet) for n, packet in enumerate(association())]
    came = [
        ((late or {}).get(place, at_ms + DELAY_NS / MS), part)
        for place, (at_ms, part) in enumerate(sent)
        if place not in lost
    ]
    sender, receiver = (
        at_end(flow, tmp_path, handshake + [(T + round(at_ms * MS), sctp(22, part)) for at_ms, part in packets], node)
        for node, packets in (("a", sent), ("b", sorted(came)))
    )
    messages = messages_of(flow, sender, receiver, Timetable(flow, 0))
    assert messages is not None
    return messages


def scheduled(numbers: list[tuple[int, int]], stream: int = 0) -> list[Timed]:
    """Chunks (number of the message of the schedule, flags) with TSNs in this order; message n leaves at n STEP_NS."""
    ssn, chunks = -1, []
    for tsn, (number, flags) in enumerate(numbers):
        ssn += bool(flags & FIRST)
        chunks.append((number * STEP_NS / MS, data_chunk(ISN + tsn, ssn=ssn, stream=stream, flags=flags)))
    return chunks


def whole(numbers: list[int]) -> list[Timed]:
    """Messages of one chunk each."""
    return scheduled([(number, WHOLE) for number in numbers])


def test_every_message_has_the_due_time_of_its_number(tmp_path: Path) -> None:
    messages = found(tmp_path, whole(list(range(10))), scheduler="rr")
    assert messages.delays_s() == pytest.approx([DELAY_NS / 1e9] * 10)
    assert messages.late(DELAY_NS - 1, 10**18) == 10
    assert messages.late(DELAY_NS, 10**18) == 0


def test_messages_that_were_given_up_unsent_leave_the_numbers_unknown(tmp_path: Path) -> None:
    numbers = [n for n in range(100) if not 20 <= n < 80]
    messages = found(tmp_path, whole(numbers), lifetime_ns=500_000_000)
    assert messages.delays_s() is None
    assert messages.late(200_000_000, 10**18) is None
    assert len(messages.delivered_ns) == 40


def test_a_scheduler_of_several_streams_leaves_the_numbers_unknown(tmp_path: Path) -> None:
    assert found(tmp_path, whole([0, 1]), scheduler="prio", streams=2).delays_s() is None
    assert found(tmp_path, whole([0, 1]), scheduler="fcfs", streams=2).delays_s() == pytest.approx([0.02, 0.02])


def test_a_message_whose_last_fragment_was_given_up_still_counts(tmp_path: Path) -> None:
    parts = scheduled([(0, FIRST), (0, LAST), (1, FIRST), (2, FIRST), (2, LAST)])
    sent = [*parts, (210, forward_tsn(2))]
    messages = found(tmp_path, sent, max_retransmissions=1)
    assert messages.delays_s() == pytest.approx([0.02, 0.03])
    assert (messages.delivered_ns == NEVER).tolist() == [False, True, False]


@pytest.mark.parametrize(("released_ms", "delays"), [(None, [0.02]), (450.0, [0.02, 0.27, 0.17])])
def test_a_message_waits_for_one_of_its_stream_that_does_not_come(
    released_ms: float | None, delays: list[float], tmp_path: Path
) -> None:
    """Until its sender gives that up (RFC 3758 3.6); the application cannot read it before (RFC 9260 6.6)."""
    sent = whole([0, 1, 2, 3]) + ([(released_ms, forward_tsn(1))] if released_ms else [])
    messages = found(tmp_path, sent, lost=(1,))
    assert messages.delays_s() == pytest.approx(delays)
    assert (messages.delivered_ns == NEVER).sum() == 4 - len(delays)


def test_a_message_of_another_stream_or_an_unordered_one_does_not_wait(tmp_path: Path) -> None:
    sent = [(0, data_chunk(ISN, ssn=0)), (100, data_chunk(ISN + 1, stream=1, ssn=0))]
    sent.append((200, data_chunk(ISN + 2, flags=WHOLE | UNORDERED)))
    assert found(tmp_path, sent, lost=(0,)).delays_s() == pytest.approx([0.02, 0.02])


def test_interleaved_messages(tmp_path: Path) -> None:
    sent = [(n * STEP_NS / MS, interleaved(n, n)) for n in range(3)]
    assert found(tmp_path, sent, late={1: 240.0}).delays_s() == pytest.approx([0.02, 0.14, 0.04])


def test_what_comes_after_the_abort_is_not_delivered(tmp_path: Path) -> None:
    sent = [*whole([0, 1]), (105, chunk(6))]
    assert (found(tmp_path, sent, late={1: 130.0}).delivered_ns == NEVER).tolist() == [False, True]


def test_a_datagram_that_the_host_could_not_send_was_due_and_did_not_arrive() -> None:
    """Of five that were due every 100 ms the second and third were not sent."""
    flow = flow_of("udp", stop_ns=10**9, sender_options={"interval_ns": STEP_NS})
    number = np.array([0, 3, 4])
    nothing = np.zeros(3, dtype=np.int64)
    sent = Datagrams(number * STEP_NS, number, nothing, nothing, nothing)
    datagrams = DatagramFlow(sent, sent, sent.t_ns + DELAY_NS, np.ones(3, dtype=np.bool_))
    messages = datagram_messages(datagrams, Timetable(flow, 0))
    assert messages.due_ns is not None
    assert messages.due_ns.tolist() == [n * STEP_NS for n in range(5)]
    assert messages.delivered_ns.tolist() == [DELAY_NS, NEVER, NEVER, 3 * STEP_NS + DELAY_NS, 4 * STEP_NS + DELAY_NS]
    assert messages.late(STEP_NS, 10**9) == 2


def test_no_message_is_due_as_its_flow_stops() -> None:
    """Of ten a second, from 0 s on, the eleventh would be."""
    flow = flow_of("udp", stop_ns=10**9, sender_options={"interval_ns": STEP_NS})
    due = Timetable(flow, 0).due_by(10**9)
    assert due is not None
    assert due.tolist() == [n * STEP_NS for n in range(10)]
    by_bytes = Timetable(flow_of("udp", total_bytes=10_000, sender_options={"interval_ns": STEP_NS}), 0).due_by(10**9)
    assert by_bytes is not None
    assert by_bytes.tolist() == [n * STEP_NS for n in range(11)]


@pytest.mark.parametrize(("total", "burst", "ends"), [
    (250, "100", [100, 200, 250]), (200, "100", [100, 200]), (None, "100", [100, 200, 300]), (2, "1000", [2]),
    (170, "60,40", [60, 100, 160, 170]),
])  # fmt: skip
def test_the_total_cuts_the_last_message_short(total: int | None, burst: str, ends: list[int]) -> None:
    """Else it would never be delivered: no byte of its rest is ever sent."""
    flow = flow_of("tcp", total_bytes=total, sender_options={"interval_ns": STEP_NS, "burst_bytes": burst})
    assert Timetable(flow, 0).ends(total or 250).tolist() == ends
