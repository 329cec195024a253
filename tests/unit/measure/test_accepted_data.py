"""Data that arrives and that the receiver's kernel does not take, as the receiver's capture shows it."""

from __future__ import annotations

from pathlib import Path

from netwarp.measure.delivery import delivered
from support.observed import at_end, flow_of
from support.tcp_story import MSS, Story


def deliverable(story: Story, place: Path) -> int:
    """Payload that the application could read, by the receiver's capture."""
    return int(delivered(at_end(flow_of("tcp"), place, story.packets, "b"), "tcp").payload_bytes.sum())


def begun() -> Story:
    """Two segments, acknowledged; the next byte is 2 * MSS + 1."""
    return Story().handshake().data(50, 1).data(51, 1 + MSS).ack(52, 1 + 2 * MSS)


def test_data_after_the_last_acknowledgement_counts_as_delivered(tmp_path: Path) -> None:
    """A delayed acknowledgement that the end of the connection overtook."""
    assert deliverable(begun().data(60, 1 + 2 * MSS).data(70, 1 + 3 * MSS, 0, flags="RA"), tmp_path) == 3 * MSS


def test_paws_drops_a_segment_that_never_comes_again(tmp_path: Path) -> None:
    """It arrives in order, and the answer still asks for it; what comes behind it is SACKed, and never delivered."""
    story = begun().data(60, 1 + 2 * MSS, stamp=40).ack(60.001, 1 + 2 * MSS)
    story.data(61, 1 + 3 * MSS).ack(61.001, 1 + 2 * MSS, (1 + 3 * MSS, 1 + 4 * MSS))
    assert deliverable(story.data(70, 1 + 4 * MSS, 0, flags="RA"), tmp_path) == 2 * MSS


def test_paws_drops_a_segment_that_comes_again(tmp_path: Path) -> None:
    """Whether its acknowledgement is there or overtaken."""
    for acknowledged in (True, False):
        story = begun().data(60, 1 + 2 * MSS, stamp=40).ack(60.001, 1 + 2 * MSS).data(65, 1 + 2 * MSS)
        if acknowledged:
            story.ack(65.001, 1 + 3 * MSS)
        assert deliverable(story, tmp_path) == 3 * MSS


def test_a_reset_at_the_edge_of_what_is_sacked(tmp_path: Path) -> None:
    """The segment that fills the hole comes to no connection: neither it nor what waited for it is read, whether the
    kernel's answer is in the capture or not."""
    story = begun().data(61, 1 + 3 * MSS).ack(61.001, 1 + 2 * MSS, (1 + 3 * MSS, 1 + 4 * MSS))
    story.data(62, 1 + 4 * MSS, 0, flags="RA").data(63, 1 + 2 * MSS)
    unanswered = deliverable(story, tmp_path)
    story.ack(63.001, 0, flags="R")
    assert (unanswered, deliverable(story, tmp_path)) == (2 * MSS, 2 * MSS)


def test_a_reset_that_is_not_taken_ends_nothing(tmp_path: Path) -> None:
    """RFC 5961 3.2: a challenge acknowledgement, and the late segment is read."""
    story = begun().data(62, 1 + 3 * MSS, 0, flags="RA").ack(62.001, 1 + 2 * MSS)
    assert deliverable(story.data(63, 1 + 2 * MSS), tmp_path) == 3 * MSS
