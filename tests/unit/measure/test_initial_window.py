"""initial_window_packets: what leaves before any data are acknowledged, whichever."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.measure.sent_data import outstanding_of
from support.captures import T
from support.observed import at_end, flow_of
from support.sctp_story import data, handshake, sack
from support.tcp_story import Story

FIRST_LOST = Story().handshake().flight(50, 1, 3).ack(90, 1, (1001, 2001)).data(90, 3001).ack(91, 1, (1001, 3001))
NONE_LOST = Story().handshake().flight(50, 1, 3).ack(90, 1001).flight(90, 3001, 2).ack(91, 3001)
SCTP_FIRST_LOST = [data(250, 0), data(250, 1), data(250, 2), sack(350, -1, [(1, 1)]), data(350, 3), data(700, 0)]


def initial_packets(protocol: str, packets: list[tuple[int, bytes]], tmp_path: Path) -> int | None:
    flow = flow_of(protocol)
    outstanding = outstanding_of(flow, at_end(flow, tmp_path, packets, "a"))
    assert outstanding is not None
    return outstanding.initial_packets


@pytest.mark.parametrize("story", [FIRST_LOST, NONE_LOST])
def test_tcp(story: Story, tmp_path: Path) -> None:
    assert initial_packets("tcp", story.packets, tmp_path) == 3


@pytest.mark.parametrize(
    "packets",
    [[*SCTP_FIRST_LOST, sack(800, 3)], [data(250, 0), data(250, 1), data(250, 2), sack(350, 0), data(350, 3)]],
)
def test_sctp(packets: list[tuple[int, bytes]], tmp_path: Path) -> None:
    timed = [(T + at, raw) for at, raw in [*handshake(), *packets]]
    assert initial_packets("sctp", timed, tmp_path) == 3


def test_unanswered_data_tell_no_window(tmp_path: Path) -> None:
    assert initial_packets("tcp", Story().handshake().flight(50, 1, 3).ack(90, 1).packets, tmp_path) is None
