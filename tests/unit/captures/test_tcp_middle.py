"""analyze_tcp on captures taken at the receiver, in the middle of the way, or from the middle of a connection on."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures.tcp import RetransmissionCause, TcpConnection, analyze_tcp
from support.captures import T, pcap, read, segment
from support.tcp_story import MS, MSS, PEER, Story


def told(story: Story, tmp_path: Path, **options: object) -> TcpConnection:
    return analyze_tcp(story.capture(tmp_path), 0, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("handshake", "at"), [((0, 100), 1), ((50, 50), None)])
def test_an_ack_that_waited_for_a_late_segment_gives_no_rtt_sample(
    handshake: tuple[int, int], at: int | None, tmp_path: Path
) -> None:
    """The hole is filled behind the segment whose last byte the ACK covers; it was never sent twice past this point."""
    story = Story(stamps=False).handshake(*handshake).data(110, 1).ack(111, 1001)
    story.data(112, 2001).ack(112, 1001, (2001, 3001)).data(113, 3001).ack(113, 1001, (2001, 4001))
    rtt = told(story.data(211, 1001).ack(211, 4001), tmp_path, at=at).directions[0].rtt.rtt_ns
    assert rtt.tolist() == [handshake[0] * MS, MS]


def test_a_byte_sent_again_is_no_keep_alive(tmp_path: Path) -> None:
    """A keep-alive has the same number, and leaves when nothing is outstanding."""
    story = Story().handshake().data(50, 1, 1).ack(90, 2, echo=50).data(100, 2, 1).data(340, 2, 1).data(780, 2, 1)
    connection = told(story.ack(820, 3, echo=780).data(9000, 2, 1).ack(9040, 3), tmp_path, at=0)
    assert connection.totals["retransmitted_packets"] == 3
    assert connection.totals["keep_alives"] == 1
    found = connection.directions[0].retransmissions
    assert found is not None
    assert found.cause.tolist() == [RetransmissionCause.TIMEOUT] * 2


def test_an_initial_window_that_was_lost_counts_once(tmp_path: Path) -> None:
    story = Story().handshake().flight(50, 1, 3).data(250, 2001).data(450, 1).ack(490, 1001, echo=450)
    totals = told(story, tmp_path, at=0).totals
    assert (totals["initial_window_packets"], totals["initial_window_bytes"]) == (3, 3 * MSS)


def test_behind_a_qdisc_that_spaces_segments_no_initial_window_is_seen(tmp_path: Path) -> None:
    """The answer to the first segment comes while the sender's others wait in its queue; without the queue, after."""
    for at, window in (((50, 110, 170, 230), None), ((50, 51, 52, 91), 3)):
        story = Story().handshake()
        for number, when in enumerate(at):
            story = story.data(when, 1 + number * MSS)
            if number in (0, 2):
                story = story.ack(when + 38, 1 + MSS, echo=at[0]) if (number == 0) == (window is None) else story
        totals = told(story, tmp_path, at=0).totals
        assert totals["initial_window_packets"] == window
        assert totals["initial_window_bytes"] == (window and window * MSS)


def test_an_answer_within_a_millisecond_shows_no_initial_window(tmp_path: Path) -> None:
    """Between two namespaces the stack had sent 5 of its 10 segments when the first answer came, 30 us later."""
    story = Story().handshake().data(50, 1).data(50.001, 1 + MSS).ack(50.03, 1 + MSS, echo=50)
    for number in range(2, 10):
        story = story.data(50.03 + number / 1000, 1 + number * MSS)
    assert told(story, tmp_path, at=0).totals["initial_window_packets"] is None


@pytest.mark.parametrize(("empty", "unseen"), [(999, 0), (1000, 0), (900, 100)])
def test_a_capture_that_begins_with_a_keep_alive_lacks_nothing(empty: int, unseen: int, tmp_path: Path) -> None:
    """Its number is one below the first byte; what lies between a number seen and the data is what is missing."""
    packets = [
        segment(empty, ack=PEER),
        segment(PEER, back=True, ack=min(empty + 1, 1000)),
        segment(1000, 100, ack=PEER),
        segment(PEER, back=True, ack=1100),
    ]
    if unseen:
        packets[1] = segment(PEER, back=True, ack=empty)
    capture = read(tmp_path, pcap([(T + n * MS, packet) for n, packet in enumerate(packets)]))
    assert analyze_tcp(capture, 0).totals["acknowledged_unseen_bytes"] == unseen


def test_a_last_packet_that_begins_a_bin_has_no_rate_of_its_own(tmp_path: Path) -> None:
    """1000 bytes a ms, in bins of 2 ms: 201 packets, the last at a bin's first instant."""
    story = Story(stamps=False).handshake(0, 10)
    for number in range(201):
        story.data(20 + number, 1 + number * MSS)
    connection = analyze_tcp(story.capture(tmp_path), 0)
    times, rates = connection.series["goodput_bit_s"]
    assert rates[10:].tolist() == [8e6] * 100 + [4e6]
    assert times[-1] == pytest.approx(0.22)
