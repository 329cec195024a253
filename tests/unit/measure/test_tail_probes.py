"""Timeouts before which a tail loss probe was due: from segments by hand."""

from __future__ import annotations

from pathlib import Path

from netwarp.measure.groups.tail_probes import unprobed_timeouts
from support.observed import at_sender
from support.tcp_story import Story


def count(story: Story, tmp_path: Path) -> int | None:
    _, sender, _ = at_sender("tcp", story.packets, tmp_path)
    return unprobed_timeouts(sender)


def begun(**more: bool) -> Story:
    """Two segments that are acknowledged after 50 ms, at 100 ms."""
    return Story(**more).handshake().flight(50, 1, 2).ack(100, 2001)


def test_a_timeout_of_a_whole_flight_comes_after_a_probe(tmp_path: Path) -> None:
    """Round trips of 50 ms: a probe was due at 200 ms."""
    assert count(begun().flight(100, 2001, 3).data(370, 2001).ack(420, 5001), tmp_path) == 1


def test_with_a_probe_it_is_as_it_should_be(tmp_path: Path) -> None:
    probed = begun().flight(100, 2001, 3).data(205, 4001).data(470, 2001).ack(520, 5001)
    assert count(probed, tmp_path) == 0


def test_one_segment_alone_may_wait_for_a_timeout(tmp_path: Path) -> None:
    assert count(begun().data(100, 2001).data(370, 2001).ack(420, 3001), tmp_path) == 0


def test_what_was_reported_is_repaired_otherwise(tmp_path: Path) -> None:
    assert (
        count(begun().flight(100, 2001, 3).ack(150, 2001, (3001, 4001)).data(450, 2001).ack(500, 5001), tmp_path) == 0
    )


def test_in_recovery_there_is_no_probe(tmp_path: Path) -> None:
    """A timeout, and another one before what was sent before it is acknowledged."""
    story = begun().flight(100, 2001, 3).data(205, 4001).data(470, 2001).ack(520, 3001)
    assert count(story.data(900, 3001).ack(950, 5001), tmp_path) == 0


def test_without_sack_nothing_is_said(tmp_path: Path) -> None:
    assert count(begun(sack=False).flight(100, 2001, 3).data(370, 2001).ack(420, 5001), tmp_path) is None
