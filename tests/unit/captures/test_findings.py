"""Findings in a capture, in words: each sentence where its packets are, and none where they are not."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from netwarp.captures import summarise_points
from netwarp.present.captures.lines import detail_lines
from support import sctp_story
from support.captures import (
    T,
    Timed,
    association,
    chunk,
    data_chunk,
    has,
    pcap,
    recorded,
    sack_chunk,
    sctp,
    segment,
    summary,
    timed,
)  # fmt: skip
from support.sctp_story import data, sack

MS = 1_000_000
ACK = {"ack": 5001, "window": 1000}


def handshake() -> list[bytes]:
    return [
        segment(1000, flags="S", window=1000),
        segment(5000, back=True, flags="SA", ack=1001, window=1000),
        segment(1001, **ACK),
    ]


def transfer(segments: int = 20, *, gap_at: int = -1, window: int = 1000) -> list[Timed]:
    """Segments that are acknowledged at once. gap_at: that one is lost, and sent again two seconds later."""
    packets = [(T + i * MS, packet) for i, packet in enumerate(handshake())]
    time = T + 10 * MS
    for i in range(segments):
        packets.append((time, segment(1001 + 100 * i, 100, **ACK)))
        if i == gap_at:
            time += 2000 * MS
            packets.append((time, segment(1001 + 100 * i, 100, **ACK)))
        packets.append((time + 5 * MS, segment(5001, back=True, ack=1101 + 100 * i, window=window)))
        time += 10 * MS
    return packets


def after(*packets: tuple[int, bytes]) -> list[Timed]:
    """Ten segments, and these packets: ms after the last acknowledgement."""
    begun = transfer(10)
    return [*begun, *((begun[-1][0] + at * MS, packet) for at, packet in packets)]


FIN = segment(2001, 100, **(ACK | {"flags": "FA"}))
QUIET = {
    "nothing": [],
    "a pause without a retransmission: the application may have had nothing to say": [
        (5000, segment(2001, 100, **ACK)),
        (5005, segment(5001, back=True, ack=2101, window=1000)),
    ],
    "a reset where all was acknowledged": [(20, segment(2001, flags="R"))],
    "a reset where both ends had sent FIN": [
        (1, FIN),
        (2, segment(5001, back=True, flags="FA", ack=2001)),
        (20, segment(2102, flags="R")),
    ],
}


@pytest.mark.parametrize("name", QUIET)
def test_nothing_stands_out(tmp_path: Path, name: str) -> None:
    """Neither a finding nor a note."""
    found = summary(tmp_path, after(*QUIET[name]))
    assert (found.findings, found.notes) == ((), ())


def test_a_silence_that_a_timeout_ended(tmp_path: Path) -> None:
    found = summary(tmp_path, transfer(gap_at=10)).findings
    assert found[0] == (
        "no data from 10.0.0.1:1000 for 2 s from 0.11 s on, until a retransmission (1 retransmission timeout in all)"
    )
    assert found[1] == "1 of 21 data packets (4.76 %) of 10.0.0.1:1000 repeats what it had sent before"


def test_a_silence_of_a_closed_window_is_the_receivers(tmp_path: Path) -> None:
    """The network lost nothing, though the segment after the closed window repeats one: no silence of its own."""
    packets = after(
        (1, segment(5001, back=True, ack=2001, window=0)),
        (2, segment(2001, 100, **ACK)),
        (3002, segment(5001, back=True, ack=2001, window=1000)),
        (3003, segment(2001, 100, **ACK)),
        (3004, segment(5001, back=True, ack=2101, window=1000)),
    )
    found = summary(tmp_path, packets).findings
    assert found[0].startswith("10.0.0.2:80 closed its receive window for 3 s (1 time, ")
    assert not [text for text in found if "no data" in text]


def test_a_closed_window_of_sctp_is_no_outage(tmp_path: Path) -> None:
    story: list[sctp_story.Packet] = [*sctp_story.handshake(), data(200, 0), data(201, 1), sack(301, 0, window=0)]
    for second in (1, 3, 7):
        story += [data(301 + 1000 * second, 1), sack(401 + 1000 * second, 0, window=0)]
    story += [sack(9000, 0), data(9001, 1), sack(9101, 1)]
    found = summary(tmp_path, [(T + at, packet) for at, packet in story])
    assert found.findings == (
        "10.1.0.2:80 closed its receive window for 8.7 s (1 time, 95.6 % of the connection): the sender had to wait "
        "(it asked 4 times)",
        "4 of 6 data packets (66.7 %) of 10.1.0.1:1000 repeat what it had sent before, 4 of them to probe the closed "
        "window",
    )
    assert found.connections[0].totals["outages"] == 0


def test_an_association_with_data_both_ways_says_both(tmp_path: Path) -> None:
    """Each end closes its window once; each sentence names the end."""

    def theirs(at_ms: int, tsn: int) -> sctp_story.Packet:
        return at_ms * MS, sctp(11, data_chunk(9000 + tsn, 50, ssn=tsn), back=True)

    def mine(at_ms: int, tsn: int, window: int) -> sctp_story.Packet:
        return at_ms * MS, sctp(22, sack_chunk(9000 + tsn, window=window))

    story = [
        *sctp_story.handshake(), data(200, 0), data(201, 1), sack(301, 1, window=0), sack(4301, 1), data(4302, 2),
        sack(4402, 2), theirs(4500, 0), mine(4501, 0, 0), theirs(5500, 1), mine(5501, 0, 0), mine(7501, 0, 9000),
        theirs(7600, 1), mine(7601, 1, 9000),
    ]  # fmt: skip
    found = summary(tmp_path, [(T + at, packet) for at, packet in story])
    closed = [text.split(" (")[0] for text in found.findings if "closed" in text]
    assert closed[0] == "10.1.0.2:80 closed its receive window for 4 s"
    assert closed[1] == "10.1.0.1:1000 closed its receive window for 3 s"
    connection = found.connections[0]
    assert connection.totals["reverse_retransmitted_chunks"] == 1
    (event,) = [event for event in connection.events if event.get("data_of")]
    assert (event["what"], event["data_of"], event["direction"]) == ("zero_window", "10.1.0.2:80", 0)
    lines = detail_lines(connection)
    assert ("seen from", "at 10.1.0.1, the data's sender") in lines
    place = lines.index(("also data from", "10.1.0.2:80"))
    assert lines[place + 1] == ("sent again", "1 probe of a zero window")
    assert [label for label, _ in lines[place + 2 :]] == ["zero windows"]


def test_a_closed_window_and_a_reset(tmp_path: Path) -> None:
    packets = after(
        (10, segment(5001, back=True, ack=2001, window=0)),
        (510, segment(5001, back=True, ack=2001, window=1000)),
        (511, segment(2001, 100, **ACK)),
        (520, segment(5001, back=True, flags="R")),
    )
    found = summary(tmp_path, packets).findings
    assert found[0].startswith("the connection was reset at 0.6")
    assert found[0].endswith(" s by 10.0.0.2:80, 100 bytes not acknowledged")
    assert any(text.startswith("10.0.0.2:80 closed its receive window for 500 ms (1 time, ") for text in found)


def test_a_sender_that_stops_by_a_reset(tmp_path: Path) -> None:
    packets = after((1, segment(2001, 100, **ACK)), (2, segment(2101, flags="R")))
    assert summary(tmp_path, packets).findings == (
        "10.0.0.1:1000 stopped by a reset at 0.107 s, 100 bytes not acknowledged",
    )


def test_repeated_handshakes(tmp_path: Path) -> None:
    syn = segment(1000, flags="S", window=1000)
    tcp = [(T - 3000 * MS, syn), (T - 2000 * MS, syn), *transfer(5)]
    assert summary(tmp_path, tcp).findings[0] == "the handshake took 3 SYNs: 2 got no answer"
    once = association()
    inits = [
        (T, once[0]),
        (T + 3000 * MS, once[0]),
        *((T + 3000 * MS + i * MS, one) for i, one in enumerate(once[1:], 1)),
    ]
    assert "the handshake took 2 INITs" in summary(tmp_path, inits).findings


def test_a_handshake_without_an_answer(tmp_path: Path) -> None:
    """What was never answered took no retransmission: it failed."""
    syn = segment(1000, flags="S", window=1000)
    assert summary(tmp_path, [(T, syn), (T + 1000 * MS, syn)]).findings == ("no answer to 2 SYNs is in the capture",)
    refused = [(T, syn), (T + MS, segment(0, back=True, flags="RA", ack=1001))]
    assert summary(tmp_path, refused).findings == ("the connection was refused at 0.001 s",)
    assert summary(tmp_path, timed(association()[:1])).findings == ("no answer to 1 INIT is in the capture",)


def test_the_largest_of_very_many_connections(tmp_path: Path) -> None:
    """It began last, after more handshakes in vain than there are series: those are one sentence."""
    syns = [(T + i, segment(1, flags="S").replace(b"\x03\xe8", (2000 + i).to_bytes(2, "big"))) for i in range(1100)]
    found = summary(tmp_path, syns + [(time + 10 * MS, packet) for time, packet in transfer(20, gap_at=10)])
    assert found.connections[0].directions[0]["goodput_bit_s"] is not None
    assert found.findings[0] == "1\u202f100 of 1\u202f101 connections have no answer in the capture"
    assert found.findings[1].startswith("flow 1: no data from 10.0.0.1:1000 for 2 s")
    assert "flow 1: 1 of 21 data packets (4.76 %)" in found.findings[2]


def test_syn_and_fin_are_no_data_packets(tmp_path: Path) -> None:
    fin = segment(3001, flags="FA", **ACK)
    packets = transfer(20)
    last = packets[-1][0]
    found = summary(tmp_path, [*packets, (last + MS, fin), (last + 400 * MS, fin)])
    forward = found.connections[0].directions[0]
    assert (forward["retransmitted_packets"], forward["retransmitted_data_packets"]) == (1, 0)
    assert not any("data packets" in text for text in found.findings)


def test_missing_data_that_was_acknowledged_is_the_first_finding(tmp_path: Path) -> None:
    """All that is said of retransmissions hangs on it."""
    whole = transfer(20, gap_at=10)
    assert summary(tmp_path, whole).connections[0].totals["acknowledged_unseen_bytes"] == 0
    some = summary(tmp_path, whole[:7] + whole[8:9] + whole[10:])  # two segments are missing, their ACKs are not
    assert some.connections[0].totals["acknowledged_unseen_bytes"] == 200
    assert some.findings[0].startswith("200 bytes were acknowledged that this capture does not hold")
    (alone,) = summarise_points([recorded("sctp", "a", ["p2"])])
    assert alone.findings[0].startswith("416 chunks were acknowledged that this capture does not hold")


def test_a_snaplen_that_cut_every_tsn_leaves_new_data_unknown(tmp_path: Path) -> None:
    packets = [*association(), *(sctp(22, data_chunk(2**32 - 500 + i)) for i in range(5))]
    whole = [(time, packet, len(packet)) for time, packet in timed(packets)]
    found = summary(tmp_path, pcap([(time, packet[:50], size) for time, packet, size in whole]))
    forward = found.connections[0].directions[0]
    has(forward, data_chunks=5, payload_bytes=500, new_bytes=None, retransmitted_packets=None, goodput_bit_s=None)
    assert found.connections[0].facts["paths"][0]["retransmitted_chunks"] == [None, 0]


def test_a_restart_names_the_connection_by_its_number(tmp_path: Path) -> None:
    """The later association is the larger one, so the number of the first is not its place in the capture."""
    once = [*association(), sctp(22, data_chunk(2**32 - 500)), sctp(11, sack_chunk(2**32 - 500), back=True)]
    again = association(tag=33, peer=44, tsn=5000)
    more = [sctp(44, data_chunk(5000 + i)) for i in range(5)]
    found = summary(tmp_path, timed([*once, *again, *more]))
    assert any(text.startswith("flow 1: restarts the association of flow 2 at ") for text in found.findings)
    (event,) = (event for event in found.connections[0].events if event["what"] == "restart")
    assert event["restart_of"] == 2


@pytest.mark.parametrize(("tag", "back", "by"), [(22, False, "10.1.0.1"), (11, True, "10.1.0.2")])
def test_an_abort_tells_its_cause_and_its_sender(tmp_path: Path, tag: int, back: bool, by: str) -> None:
    packets = [*association(), sctp(22, data_chunk(2**32 - 500)), sctp(11, sack_chunk(2**32 - 500), back=True)]
    abort = sctp(tag, chunk(6, b"\0\x0c\0\x08bye!"), back=back)
    found = summary(tmp_path, timed([*packets, abort])).findings
    assert found[0].startswith("the association was aborted at ")
    assert f" by {by}:" in found[0]
    assert "ser" in found[0].lower(), found  # user-initiated abort, RFC 9260 section 3.3.10.12


def test_the_recorded_failover() -> None:
    """New data moves to the other path, and the heartbeat into the dead one stays alone."""
    (found,) = summarise_points([recorded("sctp", "a", ["p1", "p2"])])
    assert found.findings[0].startswith("no data from 10.1.1.1:60965 for 1.01 s from 5.99")
    assert "1 T3 expiry" in found.findings[0]
    assert found.findings[1].startswith("new data moved from 10.1.1.1 > 10.1.2.1 to 10.2.1.1 > 10.2.2.1 at 7.2")
    assert "1 HEARTBEAT of 2 got no answer" in found.findings


def test_at_the_receiver_a_retransmission_is_no_move_of_new_data() -> None:
    """The sender moved at 7.2 s; what the other path brought before had been sent before."""
    (found,) = summarise_points([recorded("sctp", "b", ["p1", "p2"])])
    assert not any(text.startswith("new data moved") for text in found.findings)
    assert "data not seen before came on another path at 1.30125 s" in " ".join(found.findings)


def test_the_largest_connection_comes_first(tmp_path: Path) -> None:
    other = [(time + 1, packet.replace(b"\x0a\0\0\x01", b"\x0a\0\0\x07")) for time, packet in transfer(5, gap_at=2)]
    found = summary(tmp_path, sorted([*other, *transfer(20, gap_at=10)]))
    assert [text.split(":")[0] for text in found.findings if "no data" in text] == ["flow 1", "flow 2"]
    assert found.connections[0].ends[0] == "10.0.0.1:1000"


@pytest.mark.parametrize("name", ["tcp", "bundle"])
def test_every_sentence_has_a_number(name: str) -> None:
    for node in "ab":
        for one in summarise_points([recorded(name, node, ["p1"])]):
            assert all(any(letter.isdigit() for letter in text) for text in one.findings)


def test_findings_alike_of_many_connections_are_one_sentence(tmp_path: Path) -> None:
    """Twenty connections lose a segment; the fifth is silent for longest."""
    packets = []
    for flow in range(20):
        for number, (time, packet) in enumerate(transfer(gap_at=10)):
            ports = struct.pack("!HH", 2000 + flow, 80)
            ends = ports if packet[34:36] == b"\x03\xe8" else ports[2:] + ports[:2]
            late = 500 * MS if flow == 4 and number >= 24 else 0
            packets.append((time + late + flow * 1000, packet[:34] + ends + packet[38:]))
    found = summary(tmp_path, sorted(packets)).findings
    silent = [text for text in found if "no data" in text]
    assert len(silent) == 1
    assert silent[0].startswith("20 connections alike, at worst flow ")
    assert "no data from 10.0.0.1:2004 for 2.5 s" in silent[0]
    assert len(found) == 2
