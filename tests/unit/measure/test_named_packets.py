"""Packets by their names, from packets written by hand: TCP, SCTP on two paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import CaptureError
from netwarp.core.metrics.expressions import evaluate
from netwarp.measure.named_packets import NamedPackets
from support.captures import T, chunk, sctp
from support.observed import at_sender
from support.sctp_story import Packet, data, handshake, sack
from support.tcp_story import Story


def named(protocol: str, packets: list[tuple[int, bytes]], tmp_path: Path) -> NamedPackets:
    """The packets of a flow of two paths, captured at its sender; times count from T."""
    _, sender, names = at_sender(protocol, packets, tmp_path)
    return NamedPackets(protocol, sender, names)


def tcp(tmp_path: Path) -> NamedPackets:
    """Four segments, the first lost and sent again twice; the third SACK is a duplicate SACK."""
    story = Story().handshake().flight(50, 1, 4)
    story.ack(100, 1, (1001, 2001)).ack(104, 1, (1001, 4001)).data(105, 1).data(150, 1)
    story.ack(155, 4001).ack(160, 4001, (1, 1001)).data(170, 4001)
    return named("tcp", story.packets, tmp_path)


@pytest.mark.parametrize(
    ("name", "at_s"),
    [
        ("SYN", 0),
        ("SYN 2", None),
        ("< SYN ACK", 0.04),
        ("DATA", 0.05),
        ("DATA 4", 0.05),
        ("DATA 5", 0.17),
        ("DATA 6", None),
        ("DATA 1 again", 0.105),
        ("DATA 1 again 2", 0.15),
        ("DATA 1 again 3", None),
        ("DATA 2 again", None),
        ("DATA again 2", 0.15),
        ("< ACK 1", 0.1),
        ("< SACK 2", 0.104),
        ("< DSACK", 0.16),
        ("< ACK of DATA 1", 0.155),
        ("< SACK of DATA 2", 0.1),
        ("< SACK of DATA 4", 0.104),
        ("< ACK of DATA 5", None),
        ("DATA 1 on p1", 0.05),
        ("DATA 1 again on p2", None),
        ("DATA 1 on p9", None),
        ("HEARTBEAT", None),
    ],
)
def test_a_packet_of_tcp(name: str, at_s: float | None, tmp_path: Path) -> None:
    assert tcp(tmp_path).at(name) == (None if at_s is None else pytest.approx(at_s))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('count("DATA")', 5),
        ('count("DATA again")', 2),
        ('count("< ACK")', 4),
        ('count("DATA", "DATA 1")', 4),  # those of one time are in the order of the capture
        ('count("DATA", "DATA 1", "DATA 3")', 1),
        ('count("DATA again", "< ACK 2", "DATA 5")', 2),
        ('count("DATA again", "DATA 5", "< ACK 2")', 0),
        ('count("DATA", "DATA 9")', None),
        ('count("DATA", "DATA 1", "DATA 9")', None),
        ('at("DATA 1 again") - at("< SACK 2")', 0.001),
        ('2 * count("DATA again") + max(at("SYN"), 1)', 5),
        ('at("DATA 9") + 1', None),
    ],
)
def test_expressions_of_packets(expression: str, value: float | None, tmp_path: Path) -> None:
    found = evaluate("mine", expression, {}, tcp(tmp_path))
    assert found == (None if value is None else pytest.approx(value))


def test_chunks_and_paths_of_sctp(tmp_path: Path) -> None:
    """A packet is of every kind that it has a chunk of; what is sent again goes over the other path."""
    packets: list[Packet] = [
        *handshake(),
        data(300, 0),
        data(301, 1, 2),
        sack(400, -1, [(1, 2)]),
        (402_000_000, sctp(22, chunk(4, b"\0\1\0\x08abcd"), path=2)),
        data(450, 0, path=2),
        sack(550, 2, path=2),
    ]
    found = named("sctp", [(T + at, raw) for at, raw in packets], tmp_path)
    assert found.at("DATA 2") == pytest.approx(0.301)
    assert found.at("DATA 1 again on p2") == found.at("DATA again 1") == pytest.approx(0.45)
    assert found.at("DATA 1 again on p1") is None
    assert found.at("< SACK of DATA 2") == pytest.approx(0.4)
    assert found.at("< SACK of DATA 1") == found.at("< SACK 1 on p2") == pytest.approx(0.55)
    assert found.at("HEARTBEAT 1 on p2") == pytest.approx(0.402)
    assert found.at("INIT") == 0 and found.at("< COOKIE ACK") == pytest.approx(0.2)
    assert found.count("< SACK") == 2 and found.count("< SACK on p1") == 1


def test_without_captures_it_says_so() -> None:
    with pytest.raises(CaptureError, match="it names packets, which are in the captures alone: netwarp analyze"):
        evaluate("mine", 'at("SYN")', {})
