"""Both ends of a connection are closed: each by the captures of its own host. Packets written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.measure.groups.timers import unclosed_ends
from netwarp.store.app_records import Summary
from support.captures import ISN, T, chunk, sctp, segment
from support.observed import at_end, flow_of
from support.recorded_cell import derive, make_cell, make_directory, write
from support.sctp_story import Packet, at_receiver, handshake
from support.tcp_story import MS, PEER, Story

SHUTDOWN, SHUTDOWN_ACK, COMPLETE, ABORT = chunk(7, value=bytes(4)), chunk(8), chunk(14), chunk(6)
LAST_ACK = segment(ISN + 1002, ack=PEER + 2, window=502)


def unclosed(protocol: str, at_sender: list[Packet], at_receiver: list[Packet], tmp_path: Path) -> float:
    ends = (
        at_end(flow_of(protocol), tmp_path, packets, node)
        for node, packets in zip("ab", (at_sender, at_receiver), strict=True)
    )
    return unclosed_ends(*ends)


def closing() -> Story:
    """FIN, its ACK with the other FIN."""
    return Story().handshake().data(50, 1).ack(90, 1001).data(91, 1001, 0, flags="FA").ack(130, 1002, flags="FA")


def last_ack(story: Story, at_ms: float) -> Story:
    story._add(at_ms, LAST_ACK)
    return story


@pytest.mark.parametrize(
    ("heard", "fins", "ends"),
    [(True, 1, 0), (False, 1, 1), (False, 4, 1)],
    ids=["answered", "the last ACK lost", "and TIME-WAIT answers none of the FINs that come again"],
)
def test_a_fin_that_nobody_acknowledges(heard: bool, fins: int, ends: int, tmp_path: Path) -> None:
    """Every byte is there and both applications are content: no other promise sees it."""
    sent = last_ack(closing(), 130)
    for again in range(1, fins):
        sent.ack(130 + 300 * 2**again, 1002, flags="FA")
    received = [packet for packet in sent.packets if heard or packet[1] != LAST_ACK]
    assert unclosed("tcp", sent.packets, received, tmp_path) == ends


def test_time_wait_answers_in_the_end(tmp_path: Path) -> None:
    sent = last_ack(last_ack(closing(), 130).ack(730, 1002, flags="FA"), 730)
    received = [packet for packet in sent.packets if packet != (T + 130 * MS, LAST_ACK)]
    assert unclosed("tcp", sent.packets, received, tmp_path) == 0


def test_an_end_without_a_fin_is_open_and_a_reset_closes(tmp_path: Path) -> None:
    half = Story().handshake().data(50, 1).ack(90, 1001).data(91, 1001, 0, flags="FA").ack(130, 1002)
    (tmp_path / "half").mkdir()
    assert unclosed("tcp", half.packets, half.packets, tmp_path / "half") == 1
    half.ack(140, 1002, flags="RA")
    assert unclosed("tcp", half.packets, half.packets, tmp_path) == 0


@pytest.mark.parametrize(
    ("last", "arrives", "ends"),
    [
        ([(22, SHUTDOWN), (11, SHUTDOWN_ACK), (22, COMPLETE)], 3, 0),
        ([(22, SHUTDOWN), (11, SHUTDOWN_ACK), (22, COMPLETE)], 2, 1),
        ([(22, SHUTDOWN)], 1, 2),
        ([(22, SHUTDOWN), (22, ABORT)], 2, 0),
    ],
    ids=["three chunks", "no SHUTDOWN COMPLETE comes", "no SHUTDOWN ACK", "ABORT"],
)
def test_an_association(last: list[tuple[int, bytes]], arrives: int, ends: int, tmp_path: Path) -> None:
    packets = [(at * 100 * MS, sctp(tag, raw, back=tag == 11)) for at, (tag, raw) in enumerate(last, 5)]
    sent, received = handshake() + packets, at_receiver(*packets[:arrives])
    assert unclosed("sctp", *([(T + at, raw) for at, raw in side] for side in (sent, received)), tmp_path) == ends


@pytest.mark.parametrize(
    ("options", "reason", "counted"),
    [
        ({}, "stop", False),
        ({"close": "abort"}, "total", False),
        ({"close": "graceful"}, "stop", True),
        ({}, "gave_up", True),
        ({}, "peer_aborted", True),
    ],
)
def test_an_abort_that_was_asked_for_is_no_sign(
    options: dict[str, str], reason: str, counted: bool, tmp_path: Path
) -> None:
    cell = make_cell("tcp", flow={"sender_options": options})
    root = make_directory(cell, "tcp", tmp_path / "cell", reason="aborted", status=0)
    write(root / "apps" / "ftp.sender.ndjson", [Summary(t_ns=0, reason=reason, status=0)])
    metrics = derive(cell, root).metrics
    assert [metrics[name] is not None for name in ("aborts", "ends_disagree")] == [counted, counted]
    assert metrics["silence_s"] is not None, "the other promises have their values"
