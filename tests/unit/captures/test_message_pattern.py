"""When messages were due that the transport held back: by the pattern of the others."""

import random

import pytest
from netwarp.captures.sctp.message_pattern import due_times

MS = 1_000_000


@pytest.mark.parametrize(("each", "interval_ms"), [(1, 200), (3, 700), (8, 2000)])
@pytest.mark.parametrize("begin_ms", [0, 600, 1_700_000_000_000])
def test_messages_that_an_outage_held_back_were_due_by_the_pattern(each: int, interval_ms: int, begin_ms: int) -> None:
    due = [(begin_ms + interval_ms * (number // each)) * MS for number in range(40 * each)]
    free_ms = 12 * interval_ms + 130
    sent = [max(at, free_ms * MS) if 5 * interval_ms < at / MS - begin_ms <= 12 * interval_ms else at for at in due]
    found = due_times(sent, [after > at for at, after in zip(due, sent, strict=True)])
    assert found is not None and found.tolist() == due


def test_the_second_of_a_burst_that_waits_for_each_acknowledgement_was_due_with_the_first() -> None:
    due = [700 * MS * (number // 3) for number in range(60)]
    sent = [at + (number % 3 > 0) * 110 * MS for number, at in enumerate(due)]
    found = due_times(sent, [number % 3 > 0 for number in range(60)])
    assert found is not None and found.tolist() == due


def test_random_gaps_and_few_messages_have_no_pattern() -> None:
    random_ = random.Random(1)
    times = sorted(random_.randrange(30_000 * MS) for _ in range(200))
    assert due_times(times, [False] * 200) is None
    assert due_times([0, 200 * MS, 400 * MS], [False] * 3) is None
    five = [1_700_000_000_000 * MS + 200 * MS * number for number in range(5)]
    assert due_times(five, [False] * 5) is not None
    assert due_times(five[:4], [False] * 4) is None
    assert due_times([], []) is None


def test_no_message_was_due_after_it_was_sent() -> None:
    """One that came between the others ends the pattern."""
    times = sorted([200 * MS * number for number in range(50)] + [4_730 * MS])
    assert due_times(times, [False] * 51) is None
