"""SCTP associations written by hand: which retransmission was made for which reason, outages, round trips, SACKs."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from netwarp.captures.sctp.transmissions import NEVER
from support.captures import ISN, T, association, chunk, has, sctp
from support.sctp_story import MS, Packet, analyze, at_receiver, data, handshake, sack

LOST = [
    *handshake(),
    *(data(200 + n, n) for n in range(6)),
    # 1 is lost: three reports newly acknowledge more behind it
    sack(300, 0),
    sack(302, 0, [(2, 2)]),
    sack(303, 0, [(2, 3)]),
    sack(304, 0, [(2, 4)]),
    data(304, 1, path=2),
    sack(305, 0, [(2, 5)]),
    sack(404, 5, path=2),
]


def test_a_fast_retransmission(tmp_path: Path) -> None:
    analysis = analyze(tmp_path, LOST)
    has(analysis, point="sender", ended="open", from_="10.1.0.1:1000", to="10.1.0.2:80")
    has(
        analysis.totals,
        data_chunks=7,
        new_data_chunks=6,
        user_bytes=700,
        new_user_bytes=600,
        acknowledged_chunks=6,
        retransmitted_chunks=1,
        retransmitted_other_path_chunks=1,
        fast_retransmitted_chunks=1,
        timeout_retransmitted_chunks=0,
        spurious_retransmitted_chunks=0,
        t3_expiries=0,
        outages=0,
        sacks=6,
        sacks_with_gaps=4,
        gap_blocks=4,
        paths=2,
        path_changes=0,
        outstanding_max_bytes=600,
        hol_blocking_mean_s=None,
    )


@pytest.mark.parametrize(("count", "fast"), [(2, 0), (3, 1)])
def test_two_reports_are_not_enough(count: int, fast: int, tmp_path: Path) -> None:
    """A third that newly acknowledges nothing above the missing TSN does not count (RFC 9260 7.2.4)."""
    reports = [sack(302 + n, 0, [(2, 2 + n)]) for n in range(count)]
    packets = [*LOST[:11], *reports, *(reports[-1] for _ in range(9)), data(1305, 1), sack(1405, 5)]
    totals = analyze(tmp_path, packets).totals
    assert (totals["fast_retransmitted_chunks"], totals["timeout_retransmitted_chunks"]) == (fast, 1 - fast)


def test_in_fast_recovery_a_moving_cumulative_tsn_counts_too(tmp_path: Path) -> None:
    """1 and 3 are lost; the reports that would call 3 missing are about 1: only recovery's rule makes three of them."""
    packets = [
        *handshake(),
        *(data(200 + n, n) for n in range(12)),
        sack(300, 0),
        *(sack(302 + n, 0, [(2, 2 + n)]) for n in range(1)),
        sack(304, 0, [(2, 2), (4, 4)]),
        sack(305, 0, [(2, 2), (4, 5)]),  # third for 1, second for 3
        data(305, 1),
        sack(405, 2, [(4, 5)]),  # newly acknowledges 1 and 2 only
        data(405, 3),
        sack(505, 11),
    ]
    totals = analyze(tmp_path, packets).totals
    assert (totals["fast_retransmitted_chunks"], totals["timeout_retransmitted_chunks"]) == (2, 0)


OUTAGE = [
    *handshake(),
    *(data(200 + n, n) for n in range(3)),
    sack(300, 0),
    *(data(310 + n, 3 + n) for n in range(3)),  # 1 to 5 never arrive
    data(1400, 1, path=2),  # T3
    sack(1500, 1, path=2),
    data(1500, 2, 3, path=2),
    sack(1600, 3, path=2),
    data(1600, 4, 5, path=2),
    data(1601, 6, path=2),
    sack(1701, 6, path=2),
    data(3000, 7),
    sack(3100, 7),
]


def test_a_timeout_with_failover_and_return(tmp_path: Path) -> None:
    analysis = analyze(tmp_path, OUTAGE)
    has(
        analysis.totals,
        timeout_retransmitted_chunks=5,
        fast_retransmitted_chunks=0,
        t3_expiries=1,
        outages=1,
        path_changes=2,
        outage_longest_s=pytest.approx(1.2),
        progress_gap_longest_s=pytest.approx(1.2),
    )
    (outage,) = analysis.tables["outages"]
    assert outage == {
        "t_s": pytest.approx(0.3),
        "path": "10.1.0.1>10.1.0.2",
        "duration_s": pytest.approx(1.2),
        "t3_expiries": 1,
        "first_retransmission_other_path_s": pytest.approx(1.1),
        "first_new_data_other_path_s": pytest.approx(1.301),
        "return_s": pytest.approx(2.7),
    }
    events = [(event["t_s"], event["what"], event["path"][:6]) for event in analysis.events[4:]]
    assert events == [
        (pytest.approx(0.3), "outage begins", "10.1.0"),
        (pytest.approx(1.4), "first retransmission on another path", "10.2.0"),
        (pytest.approx(1.4), "T3 expiry", "10.1.0"),
        (pytest.approx(1.601), "new data on another path", "10.2.0"),
        (pytest.approx(3.0), "new data returns to its first path", "10.1.0"),
    ]
    first, back, second, _ = analysis.tables["paths"]
    assert (first["new_data_chunks"], first["declared_lost_timeout_chunks"], first["t3_expiries"]) == (7, 5, 1)
    assert (second["new_data_chunks"], second["retransmitted_other_path_chunks"]) == (1, 5)
    assert (back["sacks"], back["sack_ratio"]) == (2, pytest.approx(2 / 5))
    assert first["new_data_ratio"] == pytest.approx(7 / 8)


def test_a_silence_without_anything_outstanding_is_no_outage(tmp_path: Path) -> None:
    packets = [*handshake(), data(200, 0), sack(300, 0), data(9000, 1), sack(9100, 1)]
    totals = analyze(tmp_path, packets).totals
    has(totals, outages=0, progress_gap_longest_s=pytest.approx(0.1))


def test_an_outage_that_lasts_to_the_end(tmp_path: Path) -> None:
    analysis = analyze(tmp_path, [*handshake(), data(200, 0), data(1200, 0), data(3200, 0)])
    (outage,) = analysis.tables["outages"]
    assert (outage["duration_s"], outage["t3_expiries"]) == (None, 2)
    has(analysis.totals, outage_longest_s=None, progress_gap_longest_s=pytest.approx(3.0))


def test_a_chunk_that_t3_marked_is_no_fast_retransmission(tmp_path: Path) -> None:
    """2 waits for room behind 1; the three reports above it come after the expiry that marked it (6.3.3)."""
    packets = [
        *handshake(),
        *(data(200 + n, n) for n in range(7)),
        sack(300, 0),
        data(1310, 1),
        sack(1410, 1, [(3, 3)]),
        sack(1411, 1, [(3, 4)]),
        sack(1412, 1, [(3, 5)]),
        sack(1413, 1, [(3, 6)]),
        data(1413, 2),
        sack(1513, 6),
    ]
    totals = analyze(tmp_path, packets).totals
    has(totals, fast_retransmitted_chunks=0, timeout_retransmitted_chunks=2, t3_expiries=1)


def test_in_recovery_is_what_waited_in_the_senders_queue_too(tmp_path: Path) -> None:
    """6 to 9 leave the sender's queue after the third report about 1, and before its retransmission: the sender had
    sent them when it entered recovery, so the report that moves the cumulative TSN is the third about 7.
    """
    packets = [
        *handshake(),
        *(data(200 + n, n) for n in range(6)),
        sack(300, 0),
        *(sack(302 + n, 0, [(2, 2 + n)]) for n in range(4)),
        *(data(305 + n, n) for n in range(6, 10)),
        data(315, 1),
        sack(405, 0, [(2, 6)]),
        sack(407, 0, [(2, 6), (8, 8)]),
        sack(408, 0, [(2, 6), (8, 9)]),
        sack(415, 6, [(8, 9)]),
        data(416, 7),
        sack(516, 9),
    ]
    totals = analyze(tmp_path, packets).totals
    assert (totals["fast_retransmitted_chunks"], totals["t3_expiries"], totals["retransmitted_chunks"]) == (2, 0, 2)


def test_what_comes_within_a_round_trip_of_progress_is_no_expiry(tmp_path: Path) -> None:
    """An RTO is no less than the round trip (RFC 9260 6.3.1). Two reports are no reason either: unknown."""
    lost = [*LOST[:10], sack(302, 0, [(2, 2)]), sack(303, 0, [(2, 3)])]
    for at, unknown in ((390, 1), (1390, 0)):
        totals = analyze(tmp_path, [*lost, data(at, 1), sack(at + 100, 5)]).totals
        has(
            totals,
            unknown_retransmitted_chunks=unknown,
            t3_expiries=1 - unknown,
            timeout_retransmitted_chunks=1 - unknown,
        )


def test_probes_of_a_zero_window_are_no_timeouts(tmp_path: Path) -> None:
    """The receiver stops reading: what it has no room for comes again at each expiry, and it discards it each time."""
    packets = [
        *handshake(), data(200, 0), data(201, 1), sack(301, 0, window=0),
        data(1301, 1), sack(1401, 0, window=0), data(3301, 1), sack(3401, 0, window=0),
        sack(9000, 0), data(9001, 1), sack(9101, 1),
    ]  # fmt: skip
    analysis = analyze(tmp_path, packets)
    has(
        analysis.totals,
        probe_retransmitted_chunks=3,
        zero_window_probes=3,
        timeout_retransmitted_chunks=0,
        t3_expiries=0,
        outages=0,
        zero_windows=1,
        zero_window_packets=3,
        zero_window_s=pytest.approx(8.699),
        receive_window_limited_ratio=pytest.approx(8.699 / 9.101),
        loss_limited_ratio=0,
    )
    (event,) = [event for event in analysis.events if event["what"] == "zero_window"]
    assert (event["t_s"], event["for_s"]) == pytest.approx((0.301, 8.699))
    # without an answer it is not known that the receiver was there
    silent = [packet for packet in packets if packet[0] not in (1401 * MS, 3401 * MS, 9000 * MS)]
    totals = analyze(tmp_path, silent).totals
    assert (totals["zero_window_probes"], totals["t3_expiries"], totals["outages"]) == (1, 2, 1)


def test_what_limited_the_sender(tmp_path: Path) -> None:
    """Nothing to send for 4 s, then a chunk that is lost for 1.1 s; the time of the first round trips is unknown."""
    packets = [*handshake(), data(200, 0), sack(300, 0), data(4300, 1), data(5300, 1), sack(5400, 1)]
    totals = analyze(tmp_path, packets).totals
    assert totals["limits_s"] == pytest.approx(5.4)
    assert totals["application_limited_ratio"] == pytest.approx(4.2 / 5.4)  # with the 0.2 s before the first
    has(
        totals,
        loss_limited_ratio=pytest.approx(1.1 / 5.4),
        receive_window_limited_ratio=0,
        unknown_limit_ratio=pytest.approx(0.1 / 5.4),
    )
    assert analyze(tmp_path, [p for p in packets if p != data(200, 0)]).totals["unknown_limit_ratio"] is None


def test_at_the_receiver_it_is_not_said_what_limited_the_sender(tmp_path: Path) -> None:
    packets = at_receiver(data(200, 0), sack(201, 0), data(4300, 1), sack(4301, 1))
    assert analyze(tmp_path, packets).totals["limits_s"] is None


def test_spurious_by_the_receivers_report(tmp_path: Path) -> None:
    packets = [*handshake(), data(200, 0, 1), data(1300, 0, 1), sack(1390, 1), sack(1400, 1, again=[0])]
    totals = analyze(tmp_path, packets).totals
    has(
        totals,
        retransmitted_chunks=2,
        spurious_retransmitted_chunks=1,
        duplicate_tsns_reported=1,
        network_duplicate_chunks=0,
    )


def test_each_reported_duplicate_makes_one_retransmission_spurious(tmp_path: Path) -> None:
    """Two reports of one TSN that was sent again twice, reported at once; a third is the network's."""
    head = [*handshake(), data(200, 0), data(1200, 0), data(3200, 0)]
    for again, spurious, network in (([0], 1, 0), ([0, 0], 2, 0), ([0, 0, 0], 2, 1), ([7], 0, 1)):
        totals = analyze(tmp_path, [*head, sack(3300, 0, again=again)]).totals
        assert (totals["spurious_retransmitted_chunks"], totals["network_duplicate_chunks"]) == (spurious, network)


def test_a_duplicate_before_the_second_retransmission_is_not_its(tmp_path: Path) -> None:
    packets = [*handshake(), data(200, 0), data(1200, 0), sack(1300, -1, again=[0]), data(3200, 0), sack(3300, 0)]
    again = analyze(tmp_path, packets).again
    assert again.spurious.tolist() == [True, False]


def test_what_only_a_sender_sees_is_in_no_table_of_the_receiver(tmp_path: Path) -> None:
    packets = at_receiver(data(150, 0), sack(150, 0), data(160, 1), data(1160, 1), sack(1160, 1))
    analysis = analyze(tmp_path, packets)
    assert analysis.point == "receiver"
    row = analysis.tables["paths"][0]
    names = ("rtt_samples", "rtt_mean_s", "t3_expiries", "declared_lost_fast_chunks", "declared_lost_timeout_chunks")
    assert [row[name] for name in names] == [None] * 5
    assert row["retransmitted_chunks"] == 1


def test_a_capture_between_both_ends_is_in_the_middle(tmp_path: Path) -> None:
    times = zip((0, 50, 100, 150), association(), strict=True)
    packets = [*((at * MS, packet) for at, packet in times), data(200, 0), sack(250, 0)]
    analysis = analyze(tmp_path, packets)
    assert (analysis.point, analysis.totals["rtt_mean_s"]) == ("middle", None)


def test_rtt_follows_karn(tmp_path: Path) -> None:
    """One sample a SACK and path, from the last chunk sent there; what was ever sent twice gives none."""
    packets = [
        *handshake(), data(200, 0), data(210, 1), data(215, 2, path=2), sack(310, 2), data(400, 3), data(1400, 3),
        sack(1401, 3),
    ]  # fmt: skip
    rtt = analyze(tmp_path, packets).rtt
    has(rtt, rtt_ns=[100 * MS, 95 * MS], path=[0, 1])


def test_a_chunk_that_was_given_up_gives_no_rtt(tmp_path: Path) -> None:
    """The SACK answers the FORWARD TSN; one that came before it does give a sample."""
    forward = 700 * MS, sctp(22, chunk(192, struct.pack("!I", (ISN + 1) % 2**32)))
    found = analyze(tmp_path, [*handshake(), data(300, 0), sack(350, 0), data(400, 1), forward, sack(750, 1)])
    assert found.rtt.rtt_ns.tolist() == [50 * MS]
    assert found.totals["abandoned_chunks"] == 1
    answered = [*handshake(), data(400, 1), sack(460, -1, [(1, 1)]), forward, sack(750, 1)]
    assert analyze(tmp_path, answered).rtt.rtt_ns.tolist() == [60 * MS]


def test_heartbeats_find_their_answers(tmp_path: Path) -> None:
    def beat(at_ms: int, info: bytes, path: int, *, answer: bool = False, back: bool = False) -> Packet:
        value = struct.pack("!HH", 1, 4 + len(info)) + info
        return at_ms * MS, sctp(11 if back else 22, chunk(5 if answer else 4, value), path=path, back=back)

    packets = [
        *handshake(),
        beat(300, b"one-", 1),
        beat(310, b"two-", 2),
        beat(315, b"peer", 2, back=True),
        beat(316, b"peer", 2, answer=True),
        beat(390, b"two-", 2, answer=True, back=True),
        beat(1300, b"lost", 1),
        beat(1420, b"one-", 1, answer=True, back=True),
        beat(1500, b"what", 1, answer=True, back=True),
        data(4000, 0),  # so late that the lost one would have been answered
    ]
    analysis = analyze(tmp_path, packets)
    beats = analysis.heartbeats
    answered = [None if at == NEVER else (at - T) // MS for at in beats.answered_ns.tolist()]
    assert answered == [1420, 390, 316, None]
    assert (beats.path.tolist(), beats.direction.tolist()) == ([0, 1, 1, 0], [0, 0, 1, 0])
    has(analysis.totals, heartbeats=3, heartbeats_unanswered=1, heartbeat_rtt_mean_s=pytest.approx((1.12 + 0.08) / 2))
    (unanswered,) = (event for event in analysis.events if event["what"] == "unanswered HEARTBEAT")
    assert unanswered["t_s"] == pytest.approx(1.3)
    assert analysis.series["heartbeat_rtt_s[10.2.0.1>10.2.0.2]"][1].tolist() == pytest.approx([0.08, 0.001])


def test_outstanding_bytes_move_with_a_chunk(tmp_path: Path) -> None:
    series = analyze(tmp_path, OUTAGE).series

    def steps(name: str) -> list[tuple[int, int]]:
        times, values = series[name]
        return [(round(t * 1000), int(v)) for t, v in zip(times, values, strict=True)]

    assert steps("outstanding_bytes")[:8] == [
        (200, 100), (201, 200), (202, 300), (300, 200), (310, 300), (311, 400), (312, 500), (1500, 400),
    ]  # fmt: skip
    assert steps("outstanding_bytes[10.1.0.1>10.1.0.2]")[6:] == [
        (312, 500), (1400, 400), (1500, 200), (1600, 0), (3000, 100), (3100, 0),
    ]  # fmt: skip
    assert steps("outstanding_bytes[10.2.0.1>10.2.0.2]") == [
        (1400, 100), (1500, 0), (1500, 200), (1600, 0), (1600, 200), (1601, 300), (1701, 0),
    ]  # fmt: skip


def test_sack_delay_where_it_is_given(tmp_path: Path) -> None:
    """Every second packet at once, the last one when the timer fires (RFC 9260 6.2)."""
    packets = at_receiver(
        data(200, 0), sack(200, 0), data(201, 1), data(202, 2), sack(202, 2), data(203, 3), sack(403, 3)
    )
    timing = analyze(tmp_path, packets).sacks
    has(timing, data_packets=[1, 2, 1], delay_ns=[0, 1 * MS, 200 * MS])


def test_data_acknowledged_and_never_seen(tmp_path: Path) -> None:
    """One interface of two: the other one's data is known by its acknowledgements alone."""
    whole = [*handshake(), data(200, 0, 1), data(201, 2, 3, path=2), data(202, 4), sack(300, 4)]
    assert analyze(tmp_path, whole).totals["acknowledged_unseen_chunks"] == 0
    assert analyze(tmp_path, whole[:5] + whole[6:]).totals["acknowledged_unseen_chunks"] == 2
    assert analyze(tmp_path, whole[4:5] + whole[6:]).totals["acknowledged_unseen_chunks"] == 2


def test_acknowledgements_of_data_that_were_not_captured(tmp_path: Path) -> None:
    """Away from the sender, too, an association without DATA is analysed."""
    totals = analyze(tmp_path, at_receiver(sack(200, 0))).totals
    assert (totals["data_chunks"], totals["sacks"], totals["retransmitted_chunks"]) == (0, 1, 0)
