"""Classes of retransmissions where the capture is not ideal: below the sender's queue, with timers of other kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures.tcp import RetransmissionCause
from support.captures import T, segment
from support.tcp_story import MS, MSS, PEER, Story, whys

UNKNOWN, FAST, TIMEOUT, AFTER_TIMEOUT = (
    RetransmissionCause.UNKNOWN,
    RetransmissionCause.FAST,
    RetransmissionCause.TIMEOUT,
    RetransmissionCause.AFTER_TIMEOUT,
)


def test_an_answer_behind_the_senders_own_queue_is_no_timeout(tmp_path: Path) -> None:
    """A round trip of 20 us below the qdisc; what is sent again leaves 2 ms after the SACKs that asked for it."""
    story = Story().handshake(0.02, 0.01)
    for k in range(5):
        story.data(1 + k / 10, 1 + k * MSS).ack(
            1.02 + k / 10, 1001, *([(2001, 1 + (k + 1) * MSS)] if k > 1 else []), echo=1
        )
    assert whys(story.data(3.2, 1001, stamp=1).ack(3.22, 5001, echo=1).told(tmp_path, at=0)) == [FAST]


@pytest.mark.parametrize(("made", "why"), [(101, FAST), (338, TIMEOUT)])
def test_a_queue_longer_than_the_shortest_rto(tmp_path: Path, made: float, why: RetransmissionCause) -> None:
    """Segments leave up to 240 ms after they were made, one each 2 ms; the 50th is lost. Sent again at 340: made when
    the first SACK had come, or, as its timestamp says, 240 ms later: no sender leaves a SACK unused for so long (the
    kernel counts a timeout there: tests/data/causes/g-fq-pacing-20mbit-1pct-recovery).
    """
    story = Story().handshake(0.02, 0.01).data(0.5, 1).ack(0.52, 1001, echo=0)
    for k in range(1, 169):
        left, stamp = 2 * k, max(1, 2 * k - 240)
        story.data(left, 1 + k * MSS, stamp=stamp, echo=stamp - 1)
        if k != 49:
            blocks = [(50 * MSS + 1, (k + 1) * MSS + 1)] if k > 49 else []
            story.ack(left + 0.02, 1 + min(k + 1, 49) * MSS, *blocks, echo=stamp)
    story.data(340, 1 + 49 * MSS, stamp=made, echo=made - 1).ack(340.1, 1 + 49 * MSS, (50 * MSS + 1, 169 * MSS + 1))
    story.data(341, 1 + 169 * MSS, stamp=341).ack(341.1, 1 + 170 * MSS, echo=341)
    assert whys(story.told(tmp_path, at=0)) == [why]


def test_a_timer_shorter_than_linuxs_must_be_shown(tmp_path: Path) -> None:
    """Of one wait of 100 ms nobody knows what it was; if the next ones are twice as long each, it was a timer's."""
    story = Story(sack=False).handshake(10).flight(40, 1, 3).data(140, 1)
    assert whys(story.told(tmp_path, at=0)) == [UNKNOWN]
    assert whys(story.data(340, 1).data(740, 1).told(tmp_path, at=0)) == [TIMEOUT] * 3


def test_a_retransmission_lost_after_a_timeout_begins_a_fast_recovery(tmp_path: Path) -> None:
    story = Story().handshake(1).flight(2, 1, 3).data(210, 1).ack(211, 1001, echo=210).data(211, 1001).data(211, 2001)
    story.data(211, 3001).ack(212, 2001, (3001, 4001), echo=211).data(213, 2001).ack(214, 4001, echo=213)
    assert whys(story.told(tmp_path, at=0)) == [TIMEOUT, AFTER_TIMEOUT, AFTER_TIMEOUT, FAST]


def test_a_spurious_timeout_in_a_fast_recovery_is_not_undone(tmp_path: Path) -> None:
    """Linux compares with the first retransmission's timestamp, and tries F-RTO outside recovery only."""
    story = Story().handshake(50).flight(100, 1, 2).flight(110, 2001, 2)
    story.ack(150, 1, (1001, 2001), echo=100).data(151, 1).data(160, 4001).ack(161, 1, (1001, 3001), echo=110)
    story.data(500, 1).ack(501, 3001, echo=160).data(502, 3001).data(503, 4001)
    assert whys(story.told(tmp_path, at=0)) == [FAST, TIMEOUT, AFTER_TIMEOUT, AFTER_TIMEOUT]


def test_what_a_timer_may_have_sent_again_while_reports_come_in_is_not_known(tmp_path: Path) -> None:
    """It was sent 250 ms after the last try, the evidence for a fast one being old, and new data follow at once."""
    story = Story().handshake(1).flight(2, 1, 4)
    for k in range(3):
        story.ack(3, 1, (1001, 2001 + k * MSS), echo=2)
    story.data(3, 1)
    for k in range(125):
        story.data(4 + 2 * k, 4001 + k * MSS).ack(4.9 + 2 * k, 1, (1001, 5001 + k * MSS), echo=2)
    story.data(254, 1).ack(255, 1, (1001, 129_001), echo=2).data(256, 129_001).ack(257, 130_001, echo=254)
    assert whys(story.told(tmp_path, at=0)) == [FAST, UNKNOWN]


def receivers(story: Story, rtt_ms: float, lost: set[int]) -> Story:
    """The story as the receiver sees it: without the packets `lost`, data half a round trip later, ACKs earlier."""
    packets = [
        (at + round((-1 if packet[26:30] == b"\x0a\0\0\2" else 1) * rtt_ms * MS / 2), packet)
        for place, (at, packet) in enumerate(story.packets) if place not in lost
    ]  # fmt: skip
    return Story(packets=sorted(packets, key=lambda item: item[0]))


def test_at_the_receiver_timestamps_tell_what_the_sender_knew(tmp_path: Path) -> None:
    """Of five segments the third is lost, and sent again at the third SACK; of the next two the first, sent again
    300 ms later, when no ACK had come for long.
    """
    story = Story().handshake(40)
    for k in range(5):
        story.data(41 + k, 1 + k * MSS)
    story.ack(82, 2001, echo=42)
    for k in (3, 4):
        story.ack(81 + k, 2001, (3001, 1 + (k + 1) * MSS), echo=42)
    story.data(86, 2001).ack(126, 5001, echo=86).data(127, 5001).data(128, 6001)
    story.ack(168, 5001, (6001, 7001), echo=86).data(169, 5001).data(460, 5001).ack(500, 7001, echo=460)
    lost = {place for place, (at, _) in enumerate(story.packets) if at - T in (43 * MS, 127 * MS, 169 * MS)}
    assert whys(receivers(story, 40, lost).told(tmp_path, at=1)) == [FAST, TIMEOUT]


@pytest.mark.parametrize(("numbered", "late", "again"), [(True, 1, 1), (False, 0, 0)])
def test_without_timestamps_the_ipv4_identification_tells_late_segments(
    tmp_path: Path, numbered: bool, late: int, again: int
) -> None:
    """Of 14 segments the third is lost and sent again, and the sixth comes 45 ms late, which is more than the round
    trip: by the identification alone, if the sender counts its packets there.
    """
    story = Story(stamps=False, numbered=numbered).handshake(40)
    for k in range(14):
        story.data(41 + k, 1 + k * MSS)
    story.data(88, 2001)
    lost = next(place for place, (at, _) in enumerate(story.packets) if at - T == 43 * MS)
    place = next(place for place, (at, _) in enumerate(story.packets) if at - T == 46 * MS)
    story.packets[place] = (story.packets[place][0] + 45 * MS, story.packets[place][1])
    totals = receivers(story, 40, {lost}).told(tmp_path, at=1).totals
    assert (totals["out_of_order_packets"], totals["reordered_packets"], totals["repaired_packets"]) == (2, late, again)


def test_a_packet_that_the_network_doubled_is_no_tail_probe(tmp_path: Path) -> None:
    story = Story().handshake(40).data(41, 1).ack(81, 1001, echo=41).data(82, 1001).data(83, 2001)
    story.ack(123, 3001, echo=83).data(130, 3001).ack(170, 4001, echo=130)
    at, packet = story.packets[-2]
    seen = receivers(story, 40, set())
    seen.packets.append((at + 20 * MS + 3 * MS, packet))
    seen.packets.sort(key=lambda item: item[0])
    assert whys(seen.told(tmp_path, at=1)) == [UNKNOWN]


def test_what_the_senders_own_queue_dropped_was_sent_again(tmp_path: Path) -> None:
    """The first transmission is in no capture below the queue."""
    story = Story().handshake(1)
    for k in (0, 2, 3, 4):
        story.data(2 + k / 10, 1 + k * MSS)
    for k in (2, 3, 4):
        story.ack(3 + k / 10, 1001, (2001, 1 + (k + 1) * MSS), echo=2)
    assert whys(story.data(4, 1001).ack(5, 5001, echo=4).told(tmp_path, at=0)) == [FAST]


def test_a_fast_answer_of_a_near_host_is_no_reordering(tmp_path: Path) -> None:
    """The SYN took 60 us, a segment takes 20: what comes 30 us after the gap appeared may be an answer to it."""
    story = Story().handshake(0.03, 0.03).data(1, 1).ack(1.001, 1001, echo=1)
    story.data(1.1, 2001).ack(1.101, 1001, (2001, 3001), echo=1).data(1.13, 1001).ack(1.131, 3001, echo=1)
    assert story.told(tmp_path, at=1).totals["reordered_packets"] == 0


def test_resets_that_answer_each_segment_are_no_copies(tmp_path: Path) -> None:
    """They are equal, and without an identification of their own (Linux: 0)."""
    story = Story().handshake(1).flight(2, 1, 4)
    reset = bytearray(segment(PEER + 1, back=True, flags="R"))
    reset[18:20] = b"\0\0"
    story.packets += [(T + 3 * MS + k * 10_000, bytes(reset)) for k in range(4)]
    assert story.capture(tmp_path).sources["copies"].sum() == 0
