"""analyze_tcp on connections written by hand, also at the receiver, in the middle of the way, or of the connection."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures.tcp import RetransmissionCause, analyze_tcp
from support.captures import T, association, has, pcap, read, segment, timed
from support.tcp_story import MS, MSS, PEER, Story, whys


def test_handshake(tmp_path: Path) -> None:
    totals = Story().handshake(30, 10).flight(41, 1, 2).ack(80, 1 + 2 * MSS, echo=41).told(tmp_path).totals
    has(totals, mss_initiator_bytes=1460, window_shift_responder=7, sack_permitted=1)
    has(
        totals,
        timestamps=1,
        ecn=0,
        syn_s=0,
        syn_ack_after_s=pytest.approx(0.03),
        handshake_rtt_s=pytest.approx(0.04),
        capture_point_ratio=pytest.approx(0.25),
        pure_ack_packets=1,
    )


def test_a_record_of_several_segments_is_said_to_be_one(tmp_path: Path) -> None:
    """Segmentation offload: two records, one of them of three segments."""
    story = Story().handshake(30, 10).data(41, 1).data(42, 1 + MSS, 3 * MSS).ack(80, 1 + 4 * MSS, echo=41)
    totals = story.told(tmp_path).totals
    assert (totals["data_packets"], totals["offloaded_packets"]) == (2, 1)


def test_without_a_handshake_its_questions_have_no_answer(tmp_path: Path) -> None:
    totals = Story(stamps=False).data(0, 1).ack(10, 1 + MSS).told(tmp_path).totals
    for name in ("syn_s", "handshake_rtt_s", "sack_permitted", "ecn", "window_shift_initiator", "capture_point_ratio"):
        assert totals[name] is None
    has(totals, max_window_bytes=None, mss_initiator_bytes=None)


def test_round_trips_and_karn(tmp_path: Path) -> None:
    """Of three ACKs the second covers a segment sent twice: two samples by numbers, three by timestamps."""
    story = Story().handshake().data(40, 1).ack(80, 1 + MSS, echo=40)
    story.data(100, 1001).data(300, 1001).ack(345, 2001, echo=300)
    story.flight(400, 2001, 2).ack(450, 4001, echo=400)
    connection = story.told(tmp_path)
    # the SYN+ACK answers the SYN: a round trip too
    assert connection.directions[0].rtt.rtt_ns.tolist() == [40_000_000, 40_000_000, 50_000_000]
    assert connection.directions[0].rtt_timestamps.rtt_ns.tolist() == [40_000_000, 40_000_000, 45_000_000, 50_000_000]
    assert connection.totals["rtt_median_s"] == pytest.approx(0.04)


def test_a_filled_hole_gives_no_rtt_sample(tmp_path: Path) -> None:
    story = Story().handshake().flight(40, 1, 4)
    story.ack(80, 1, (1001, 2001)).ack(80, 1, (1001, 3001)).ack(80, 1, (1001, 4001)).data(80, 1).ack(120, 4001, echo=80)
    connection = story.told(tmp_path)
    assert connection.directions[0].rtt.rtt_ns.tolist() == [40_000_000]
    assert whys(connection) == [RetransmissionCause.FAST]


def test_fast_without_sack_needs_three_duplicates(tmp_path: Path) -> None:
    story = Story(sack=False).handshake().flight(40, 1, 5)
    for _ in range(4):  # the first one changes the SYN+ACK's window, so it is no duplicate
        story.ack(80, 1)
    story.data(80, 1).ack(120, 2001, echo=80).data(120, 2001)  # a partial acknowledgement: the next hole
    connection = story.told(tmp_path)
    assert whys(connection) == [RetransmissionCause.FAST, RetransmissionCause.FAST]
    assert connection.totals["duplicate_acks"] == 3
    two = Story(sack=False).handshake().flight(40, 1, 5).ack(80, 1).ack(80, 1).ack(80, 1).data(80, 1)
    assert whys(two.told(tmp_path)) == [RetransmissionCause.UNKNOWN]


def test_timeouts_back_off_and_what_follows_them(tmp_path: Path) -> None:
    story = Story().handshake().flight(40, 1, 3)
    story.data(300, 1).data(800, 1).data(1800, 1).ack(1840, 1001, echo=1800).data(1840, 1001).data(1840, 2001)
    story.ack(1880, 3001, echo=1840)
    connection = story.told(tmp_path)
    assert whys(connection) == [RetransmissionCause.TIMEOUT] * 3 + [RetransmissionCause.AFTER_TIMEOUT] * 2
    found = connection.directions[0].retransmissions
    assert found is not None
    assert found.series.tolist() == [1, 2, 3, 0, 0]
    assert found.waited_ns.tolist()[:3] == [260_000_000, 500_000_000, 1_000_000_000]
    has(connection.totals, longest_timeout_series=3, spurious_retransmitted_packets=0)
    waits = [event["waited_s"] for event in connection.events if event["what"] == "timeout"]
    assert waits == [0.26, 0.5, 1.0]


def test_a_tail_loss_probe_repeats_the_last_segment(tmp_path: Path) -> None:
    story = Story().handshake().flight(40, 1, 3).ack(80, 1001, echo=40).data(160, 2001).ack(200, 3001, echo=40)
    assert whys(story.told(tmp_path)) == [RetransmissionCause.TAIL_PROBE]


@pytest.mark.parametrize(
    ("second_ms", "why"), [(480, RetransmissionCause.TAIL_PROBE), (740, RetransmissionCause.TIMEOUT)]
)
def test_one_segment_outstanding(tmp_path: Path, second_ms: float, why: RetransmissionCause) -> None:
    """Sent at 40, again at 260: only a second wait of twice the first shows that this was a timeout already."""
    story = Story().handshake().data(40, 1).data(260, 1).data(second_ms, 1).ack(second_ms + 40, 1001, echo=second_ms)
    assert whys(story.told(tmp_path)) == [why, RetransmissionCause.TIMEOUT]


def test_spurious_by_dsack_and_by_timestamps(tmp_path: Path) -> None:
    story = Story().handshake().flight(40, 1, 2).data(300, 1)
    story.ack(310, 2001, echo=40).ack(340, 2001, (1, 1001), echo=40)
    totals = story.told(tmp_path).totals
    has(
        totals,
        spurious_by_timestamps_packets=1,
        spurious_by_dsack_packets=1,
        spurious_retransmitted_packets=1,
        dsacks=1,
    )
    none = Story(sack=False, stamps=False).handshake().data(40, 1).data(300, 1).ack(310, 1001).told(tmp_path).totals
    assert none["spurious_retransmitted_packets"] is none["spurious_by_dsack_packets"] is None


def test_a_dsack_of_what_was_sent_once_is_the_networks(tmp_path: Path) -> None:
    story = Story().handshake().flight(40, 1, 2).ack(80, 2001, echo=40).ack(81, 2001, (1, 1001), echo=40)
    totals = story.told(tmp_path).totals
    assert (totals["dsacks"], totals["spurious_retransmitted_packets"]) == (1, 0)


def test_the_last_retransmissions_are_the_spurious_ones(tmp_path: Path) -> None:
    """Sent three times, reported double once and again: the second and the third came for nothing."""
    for reports, wanted in ((1, [False, True]), (2, [True, True])):
        story = Story(stamps=False).handshake().flight(40, 1, 2).data(300, 1).data(800, 1)
        for k in range(reports):
            story.ack(840 + k, 2001, (1, 1001))
        found = story.told(tmp_path).directions[0].retransmissions
        assert found is not None
        assert found.by_dsack.tolist() == wanted


def test_a_dsack_within_the_second_block(tmp_path: Path) -> None:
    """RFC 2883 4: above the acknowledgement a duplicate is told by the block that holds it."""
    story = Story().handshake().flight(40, 1, 4).ack(80, 1, (2001, 3001)).data(81, 2001)
    story.ack(121, 1, (2001, 3001), (2001, 4001))
    connection = story.told(tmp_path)
    has(connection.totals, dsacks=1, sack_blocks=3)


def test_windows_probes_and_keep_alives(tmp_path: Path) -> None:
    story = Story().handshake().data(40, 1).ack(80, 1001, echo=40, window=0)
    story.data(300, 1000, 0).ack(340, 1001, window=0).data(700, 1001, 1).ack(740, 1001, window=0)
    story.ack(900, 1001, window=502).data(900, 1001).ack(940, 2001, echo=900)
    story.data(5000, 2000, 0).ack(5040, 2001)
    totals = story.told(tmp_path).totals
    has(
        totals,
        zero_window_packets=3,
        zero_windows=1,
        zero_window_s=pytest.approx(0.82),
        window_updates=1,
        zero_window_probes=2,
        keep_alives=1,
        max_window_bytes=502 * 128,
    )


def test_a_window_that_never_opens_lasts_to_the_end(tmp_path: Path) -> None:
    connection = Story().handshake().data(40, 1).ack(80, 1001, window=0).data(1080, 1000, 0).told(tmp_path)
    assert connection.totals["zero_window_s"] == pytest.approx(1.0)
    (event,) = (event for event in connection.events if event["what"] == "zero_window")
    assert event["for_s"] is None


def test_flight_and_rounds(tmp_path: Path) -> None:
    story = Story().handshake().flight(40, 1, 2).ack(80, 2001, echo=40).flight(80, 2001, 4)
    story.ack(120, 6001, echo=80).flight(120, 6001, 1).ack(160, 7001, echo=120)
    connection = story.told(tmp_path)
    has(connection.totals, initial_window_packets=2, initial_window_bytes=2 * MSS, max_flight_bytes=4 * MSS)
    assert connection.series["round_packets"][1].tolist() == [2, 4, 1]
    times, flight = connection.series["flight_bytes"]
    assert flight.tolist() == [1000, 2000, 0, 1000, 2000, 3000, 4000, 0, 1000, 0]
    assert times[-1] == pytest.approx(0.16)


def test_in_the_middle_of_a_connection(tmp_path: Path) -> None:
    """The first acknowledgement is of what was sent before the capture: no sample; no first flight either."""
    story = Story().data(0, 5001).ack(1, 5001, echo=0).ack(40, 6001, echo=0)
    connection = story.told(tmp_path)
    assert connection.directions[0].rtt.rtt_ns.tolist() == [40_000_000]
    assert connection.totals["initial_window_packets"] is None
    assert len(connection.series["round_packets"][0]) == 0


def test_options_cut_off_by_the_snaplen(tmp_path: Path) -> None:
    story = Story().handshake().flight(40, 1, 4).ack(80, 1, (1001, 2001)).data(80, 1)
    short = [(at, packet[:60], len(packet)) for at, packet in story.packets]
    totals = analyze_tcp(read(tmp_path, pcap(short)), 0).totals
    for name in ("sack_permitted", "timestamps", "window_shift_initiator", "max_window_bytes", "dsacks", "timeouts"):
        assert totals[name] is None
    assert totals["retransmitted_packets"] == 1
    headers = [(at, packet[:100], len(packet)) for at, packet in story.packets]
    whole = analyze_tcp(read(tmp_path, pcap(headers)), 0).totals
    assert whole == story.told(tmp_path).totals


def test_a_fin_is_no_byte_in_flight(tmp_path: Path) -> None:
    story = Story().handshake().data(40, 1, flags="FPA").ack(80, 1002, echo=40)
    connection = story.told(tmp_path)
    assert connection.totals["max_flight_bytes"] == MSS
    assert connection.series["flight_bytes"][1].tolist() == [MSS, 0]


def test_idle_gaps(tmp_path: Path) -> None:
    story = Story().handshake().data(40, 1).ack(80, 1001, echo=40).data(1079, 1001).ack(1120, 2001).data(4120, 2001)
    connection = story.told(tmp_path)
    assert (connection.totals["idle_gaps"], connection.totals["idle_s"]) == (1, 3.0)
    (event,) = (event for event in connection.events if event["what"] == "idle")
    assert (event["t_s"], event["for_s"]) == (pytest.approx(1.12), 3.0)


def test_arrivals_at_the_receiver(tmp_path: Path) -> None:
    """By timestamps: the second was sent before the third, the fourth after the fifth."""
    story = Story().handshake(0, 40).data(40, 1, stamp=20).data(41, 2001, stamp=22).data(42, 1001, stamp=21)
    story.data(43, 4001, stamp=24).data(90, 3001, stamp=70)
    totals = story.told(tmp_path).totals
    assert totals["capture_point_ratio"] == 1
    assert [totals[f"{kind}_packets"] for kind in ("out_of_order", "reordered", "repaired")] == [2, 1, 1]
    for name in ("initial_window_packets", "max_flight_bytes"):
        assert totals[name] is None
    assert [totals[name] for name in ("timeouts", "fast_retransmitted_packets")] == [0, 0]
    assert story.told(tmp_path, at=0).totals["out_of_order_packets"] is None


def test_without_timestamps_only_soon_is_known(tmp_path: Path) -> None:
    story = Story(stamps=False).handshake(0, 40).data(40, 1001).data(41, 1).data(50, 3001).data(95, 2001)
    totals = story.told(tmp_path).totals
    assert [totals[f"{kind}_packets"] for kind in ("out_of_order", "reordered", "repaired")] == [2, 1, 0]


def test_ecn_marks(tmp_path: Path) -> None:
    story = Story().handshake().data(40, 1, flags="ACE").data(41, 1001).ack(80, 2001, flags="AE")
    raw = [(at, packet) for at, packet in story.packets]
    marked = raw[3][1][:15] + bytes([3]) + raw[3][1][16:]
    ect = raw[4][1][:15] + bytes([2]) + raw[4][1][16:]
    story.packets[3:5] = [(raw[3][0], marked), (raw[4][0], ect)]
    totals = story.told(tmp_path).totals
    assert (totals["ce_packets"], totals["ect_packets"], totals["cwr_packets"]) == (1, 1, 1)


def test_both_directions_with_payload(tmp_path: Path) -> None:
    story = Story().handshake().data(40, 1).ack(80, 1001, echo=40)
    assert not any(name.startswith("reverse_") for name in story.told(tmp_path).totals)
    story.ack(81, 1001, echo=40, payload=10)
    totals = story.told(tmp_path).totals
    has(
        totals,
        data_direction=0,
        new_bytes=1000,
        reverse_new_bytes=10,
        reverse_out_of_order_packets=0,
        out_of_order_packets=None,
    )


def test_no_tcp(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no TCP"):
        analyze_tcp(read(tmp_path, pcap(timed(association()))), 0)


def test_without_the_blocks_table_classes_are_not_known(tmp_path: Path) -> None:
    story = Story().handshake().flight(40, 1, 4).ack(80, 1, (1001, 2001)).data(80, 1)
    connection = analyze_tcp(story.capture(tmp_path, tables=("segments",)), 0)
    assert connection.directions[0].retransmissions is None
    has(connection.totals, dsacks=None, retransmitted_packets=1)


def test_several_flows_are_kept_apart(tmp_path: Path) -> None:
    """The same connection under another port, interleaved: the same totals as alone."""
    story = Story().handshake().flight(40, 1, 4).ack(80, 1, (1001, 4001)).data(80, 1).ack(120, 4001, echo=80)
    alone = story.told(tmp_path).totals
    ports = {b"\x03\xe8\x00\x50": b"\x03\xe9\x00\x50", b"\x00\x50\x03\xe8": b"\x00\x50\x03\xe9"}
    other = []
    for at, packet in story.packets:
        other.append((at + 10, packet[:34] + ports[packet[34:38]] + packet[38:]))
    story.packets = sorted(story.packets + other, key=lambda item: item[0])
    capture = story.capture(tmp_path)
    assert len(capture.flows) == 2
    assert analyze_tcp(capture, 0).totals == alone
    assert analyze_tcp(capture, 1, t0_ns=int(capture.flows["first_ns"][1])).totals == alone


@pytest.mark.parametrize(("handshake", "at"), [((0, 100), 1), ((50, 50), None)])
def test_an_ack_that_waited_for_a_late_segment_gives_no_rtt_sample(
    handshake: tuple[int, int], at: int | None, tmp_path: Path
) -> None:
    """The hole is filled behind the segment whose last byte the ACK covers; it was never sent twice past this point."""
    story = Story(stamps=False).handshake(*handshake).data(110, 1).ack(111, 1001)
    story.data(112, 2001).ack(112, 1001, (2001, 3001)).data(113, 3001).ack(113, 1001, (2001, 4001))
    rtt = story.data(211, 1001).ack(211, 4001).told(tmp_path, at=at).directions[0].rtt.rtt_ns
    assert rtt.tolist() == [handshake[0] * MS, MS]


def test_a_byte_sent_again_is_no_keep_alive(tmp_path: Path) -> None:
    """A keep-alive has the same number, and leaves when nothing is outstanding."""
    story = Story().handshake().data(50, 1, 1).ack(90, 2, echo=50).data(100, 2, 1).data(340, 2, 1).data(780, 2, 1)
    connection = story.ack(820, 3, echo=780).data(9000, 2, 1).ack(9040, 3).told(tmp_path, at=0)
    has(connection.totals, retransmitted_packets=2, keep_alives=1)
    assert whys(connection) == [RetransmissionCause.TIMEOUT] * 2


def test_an_initial_window_that_was_lost_counts_once(tmp_path: Path) -> None:
    story = Story().handshake().flight(50, 1, 3).data(250, 2001).data(450, 1).ack(490, 1001, echo=450)
    totals = story.told(tmp_path, at=0).totals
    assert (totals["initial_window_packets"], totals["initial_window_bytes"]) == (3, 3 * MSS)


def test_behind_a_qdisc_that_spaces_segments_no_initial_window_is_seen(tmp_path: Path) -> None:
    """The answer to the first segment comes while the sender's others wait in its queue; without the queue, after."""
    for at, window in (((50, 110, 170, 230), None), ((50, 51, 52, 91), 3)):
        story = Story().handshake()
        for number, when in enumerate(at):
            story = story.data(when, 1 + number * MSS)
            if number in (0, 2):
                story = story.ack(when + 38, 1 + MSS, echo=at[0]) if (number == 0) == (window is None) else story
        totals = story.told(tmp_path, at=0).totals
        has(totals, initial_window_packets=window, initial_window_bytes=window and window * MSS)


def test_an_answer_within_a_millisecond_shows_no_initial_window(tmp_path: Path) -> None:
    """Between two namespaces the stack had sent 5 of its 10 segments when the first answer came, 30 us later."""
    story = Story().handshake().data(50, 1).data(50.001, 1 + MSS).ack(50.03, 1 + MSS, echo=50)
    for number in range(2, 10):
        story = story.data(50.03 + number / 1000, 1 + number * MSS)
    assert story.told(tmp_path, at=0).totals["initial_window_packets"] is None


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
