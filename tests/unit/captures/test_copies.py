"""Captures that hold each packet several times tell the story of those that hold it once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from netwarp.captures import FileSummary, summarise_points
from netwarp.captures.explanation import explain
from support import sctp_story
from support.captures import T, association, chunk, pcap, sctp, segment, timed
from support.sctp_story import data, sack
from support.tcp_story import MSS, Story
from transformations import Frames, copies, read_frames, to_ipv6, with_number

LATER_MS = 1


def tcp(stamps: bool) -> bytes:
    """A transfer with a loss, duplicate ACKs in a row at one instant, and a timeout."""
    story = Story(stamps=stamps, sack=False).handshake()
    for number in range(40):
        story.flight(60 + 50 * number, 1 + 2 * number * MSS, 2).ack(100 + 50 * number, 1 + (2 * number + 2) * MSS)
    story.flight(2200, 1 + 80 * MSS, 6)
    for _ in range(4):  # equal: they say how many segments came
        story.ack(2240 + 0.5 * _, 1 + 80 * MSS)
    story.data(2242, 1 + 80 * MSS).ack(2281, 1 + 86 * MSS)
    story.data(2300, 1 + 86 * MSS).data(2600, 1 + 86 * MSS).ack(2640, 1 + 87 * MSS)
    return pcap(story.packets)


def one_sctp() -> bytes:
    """An association with an outage and HEARTBEATs."""
    packets = [*sctp_story.handshake()]
    for number in range(20):
        packets += [data(300 + 100 * number, number), sack(400 + 100 * number, number)]
    packets += [data(2500, 20), data(3500, 20), data(5500, 20), sack(5600, 20)]
    for number in range(3):
        at = 6000 + 1000 * number
        packets.append((at * sctp_story.MS, sctp(22, chunk(4, b"beat%d" % number))))
        packets.append(((at + 100) * sctp_story.MS, sctp(11, chunk(5, b"beat%d" % number), back=True)))
    return pcap([(T + at, packet) for at, packet in packets])


STORIES = {"tcp": tcp(True), "tcp without timestamps": tcp(False), "sctp": one_sctp()}
NUMBERS = {"numbered": None, "0": 0, "IPv6": -1}


def frames(tmp_path: Path, story: str, number: str) -> Frames:
    file = tmp_path / "story.pcap"
    file.write_bytes(STORIES[story])
    of = read_frames(file)
    return to_ipv6(of) if number == "IPv6" else with_number(of, NUMBERS[number])


def told(tmp_path: Path, of: Frames) -> tuple[Any, ...]:
    """Everything that is said of its connections."""
    file = tmp_path / "told.pcap"
    file.write_bytes(of.pcap())
    (found,) = summarise_points([[file]])
    explained = explain([found], 5)
    return (
        found.findings,
        [connection.as_json() for connection in found.connections],
        [(one.moments, one.network, one.settings) for one in explained],
    )


@pytest.mark.parametrize("jitter_ns", [0, 400_000])
@pytest.mark.parametrize("times", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("story", STORIES)
def test_copies_change_nothing(tmp_path: Path, story: str, number: str, times: int, jitter_ns: int) -> None:
    once = frames(tmp_path, story, number)
    assert told(tmp_path, copies(once, times, jitter_ns)) == told(tmp_path, once)


@pytest.mark.parametrize("times", [2, 3, 6])
def test_a_single_packet(tmp_path: Path, times: int) -> None:
    """One INIT, so often within some 20 us: no timer sent it again."""
    file = tmp_path / "init.pcap"
    file.write_bytes(pcap(timed(association()[:1])))
    once = read_frames(file)
    assert told(tmp_path, copies(once, times, 0)) == told(tmp_path, once)
    assert told(tmp_path, once)[0] == ("no answer to 1 INIT is in the capture",)


def test_equal_acknowledgements_of_a_host_are_none(tmp_path: Path) -> None:
    """Without copies of anything else, equal acknowledgements in a row are the host's own."""
    story = Story(stamps=False, sack=False).handshake().flight(60, 1, 30)
    for number in range(25):
        story.ack(100 + number * 0.02, 1)
    story.data(102, 1).ack(142, 1 + 30 * MSS)
    file = tmp_path / "one.pcap"
    file.write_bytes(pcap(story.packets))
    for number in NUMBERS:
        changed = tmp_path / "changed.pcap"
        of = to_ipv6(read_frames(file)) if number == "IPv6" else with_number(read_frames(file), NUMBERS[number])
        changed.write_bytes(of.pcap())
        (found,) = summarise_points([[changed]])
        assert (found.facts["copies"], found.connections[0].totals["duplicate_acks"]) == (
            0,
            24,
        )  # the first has another window than the SYN+ACK


@pytest.mark.parametrize("times", [2, 3, 5])
def test_a_connection_of_a_single_acknowledgement(tmp_path: Path, times: int) -> None:
    """Nothing of it tells how often packets are captured: those of others do."""
    story = Story(stamps=False).handshake().data(50, 1).ack(90, 1 + MSS)
    alone = segment(77, back=True, ack=99).replace(bytes([10, 0, 0, 2]), bytes([10, 0, 0, 9]))
    file = tmp_path / "alone.pcap"
    file.write_bytes(pcap([*story.packets, (T + 95 * 1_000_000, alone)]))
    once = to_ipv6(read_frames(file))
    assert told(tmp_path, copies(once, times, 0)) == told(tmp_path, once)


def of_dup_v6() -> FileSummary:
    (found,) = summarise_points([[Path(__file__).resolve().parents[2] / "data" / "cases" / "dup-v6-3.pcap.zst"]])
    return found


def test_the_case_of_three_copies() -> None:
    found = of_dup_v6()
    assert found.facts["copies"] == 610
    assert not [text for text in found.findings if "repeat" in text or "SYN" in text]
    assert found.connections[0].totals["retransmitted_packets"] == 0


def test_a_hundred_draws(tmp_path: Path) -> None:
    """Copies before and after a router: the hop limit falls, the delay grows to 30 ms."""
    once = frames(tmp_path, "tcp", "IPv6")
    draw = random.Random(9)
    twice = list(once.frames)
    for frame in once.frames:
        routed = frame.data[:21] + bytes([frame.data[21] - 1]) + frame.data[22:]
        twice.append(type(frame)(frame.time_ns + draw.randrange(100_000, 30_000_000), routed, frame.length))
    again = once.of(sorted(twice, key=lambda frame: frame.time_ns))
    first, second = told(tmp_path, once), told(tmp_path, again)
    assert second[1][0]["totals"]["retransmitted_packets"] == first[1][0]["totals"]["retransmitted_packets"]
    assert second[0] == first[0]
