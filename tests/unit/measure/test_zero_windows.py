"""zero_window_packets: the receiver's packets that announce a window of 0, at the receiver, in the flow's window."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.measure.groups.window_growth import window_growth_metrics
from netwarp.measure.observation import Window
from support.captures import T
from support.observed import flow_of, observed
from support.sctp_story import at_receiver, data, sack
from support.tcp_story import Story

TCP = (
    Story().handshake().data(50, 1).ack(60, 1001, window=0).data(70, 1001, 1)
    .ack(80, 1001, window=0).ack(300, 1001).data(310, 1001).ack(320, 2001, window=0)
)  # fmt: skip
SCTP = at_receiver(
    data(150, 0), sack(160, 0, window=0), data(170, 1), sack(180, 0, window=0), sack(300, 0), sack(320, 1, window=0)
)


@pytest.mark.parametrize(("end_ms", "packets"), [(None, 3), (200, 2), (70, 1), (55, 0)])
def test_tcp(end_ms: int | None, packets: int, tmp_path: Path) -> None:
    window = Window(0, None if end_ms is None else end_ms * 1_000_000)
    observation = observed(flow_of("tcp"), tmp_path, receiver=TCP.packets, window=window)
    assert window_growth_metrics(observation)["zero_window_packets"] == packets


@pytest.mark.parametrize(("end_ms", "packets"), [(None, 3), (200, 2), (100, 0)])
def test_sctp(end_ms: int | None, packets: int, tmp_path: Path) -> None:
    window = Window(0, None if end_ms is None else end_ms * 1_000_000)
    timed = [(T + at, packet) for at, packet in SCTP]
    observation = observed(flow_of("sctp"), tmp_path, receiver=timed, window=window)
    assert window_growth_metrics(observation)["zero_window_packets"] == packets


def test_without_the_receivers_capture_there_is_no_value(tmp_path: Path) -> None:
    observation = observed(flow_of("tcp"), tmp_path, sender=TCP.packets)
    assert window_growth_metrics(observation)["zero_window_packets"] is None
