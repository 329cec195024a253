"""Delays of messages of a schedule: only where the wire tells which message of the schedule one is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from netwarp.core.types import OptionValue
from netwarp.measure.message_delays import FIRST, LAST, Messages, messages_of

CHUNK = [
    ("type", "u1"), ("is_retransmission", "?"), ("tsn", "i8"), ("flags", "u1"), ("time_ns", "i8"), ("stream", "u2"),
]  # fmt: skip
STEP_NS, DELAY_NS = 100_000_000, 20_000_000
Sent = list[tuple[int, int]]
"""The number of the message of the schedule, and the flags, of each chunk; TSNs in this order."""


def messages(sent: Sent, **options: OptionValue) -> Messages:
    """Message n is due and sent at n * STEP_NS, and arrives DELAY_NS later."""

    def seen(after_ns: int) -> Any:
        rows = [(0, False, tsn, flags, n * STEP_NS + after_ns, 0) for tsn, (n, flags) in enumerate(sent)]
        return SimpleNamespace(sent_chunks=np.array(rows, dtype=CHUNK), t0_realtime_ns=0, data_direction={0: 0})

    flow: Any = SimpleNamespace(protocol="sctp", sender_options={"interval_ns": STEP_NS, **options}, start_ns=0)
    found = messages_of(flow, seen(0), seen(DELAY_NS), 0)
    assert found is not None
    return found


def whole(numbers: list[int]) -> Sent:
    """Messages of one chunk each."""
    return [(number, FIRST | LAST) for number in numbers]


def test_every_message_has_the_due_time_of_its_number() -> None:
    found = messages(whole(list(range(10))), scheduler="rr")
    assert found.delays_s() == pytest.approx(np.full(10, DELAY_NS / 1e9))
    assert found.late(DELAY_NS - 1, 10**18) == 10
    assert found.late(DELAY_NS, 10**18) == 0


def test_messages_that_were_given_up_unsent_leave_the_numbers_unknown() -> None:
    found = messages(whole([n for n in range(100) if not 20 <= n < 80]), lifetime_ns=500_000_000)
    assert found.delays_s() is None
    assert found.late(200_000_000, 10**18) is None
    assert len(found.delivered_ns) == 40


def test_a_scheduler_of_several_streams_leaves_the_numbers_unknown() -> None:
    assert messages(whole([1, 0]), scheduler="prio", streams=2).delays_s() is None
    assert messages(whole([0, 1]), scheduler="fcfs", streams=2).delays_s() == pytest.approx([0.02, 0.02])


def test_a_message_whose_last_fragment_was_given_up_still_counts() -> None:
    sent = [(0, FIRST), (0, LAST), (1, FIRST), (2, FIRST), (2, LAST)]
    assert messages(sent, max_retransmissions=1).delays_s() == pytest.approx([0.02, 0.02])
