"""Messages that a sender gives up: what its kernel's peer hands to the application is what the captures say."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.core.link_types import LinkImpairment
from netwarp.measure.capture_point import HOST_TABLES, CapturePoint
from netwarp.measure.delivery import delivered, messages_of
from netwarp.measure.flow_packets import packets_at_both_ends
from netwarp.measure.timetable import NEVER, Timetable
from support.apps_lab import MS, Options, S, make_cell, run
from support.cell_init_kit import T0

LOSSY = LinkImpairment(one_way_delay_ns=20 * MS, rate_bit_s=2_000_000, queue_packets=100, loss_ratio=0.08)


@pytest.mark.parametrize("message_bytes", [400, 9000])
@pytest.mark.parametrize("limit", [{"max_retransmissions": 0}, {"lifetime_ns": 300 * MS}])
def test_what_is_delivered_is_what_the_application_read(
    kernel: Path, tmp_path: Path, limit: Options, message_bytes: int
) -> None:
    """Messages of one chunk and of seven, on two streams, with losses. Of seven, Linux sends the four that fit
    the first window, and, without a retransmission, gives up the others before they have a TSN.
    """
    cell = make_cell(
        "sctp", shape=LOSSY, stop_ns=20 * S, duration_ns=30 * S, message_bytes=message_bytes,
        sender={"interval_ns": 50 * MS, "streams": 2, **limit},
    )  # fmt: skip
    done = run(kernel, tmp_path, cell).well()
    (flow,) = cell.flows
    points = [
        CapturePoint(node, ("p1",), read_captures([tmp_path / "capture" / f"{node}-p1.pcap"], HOST_TABLES))
        for node in "ab"
    ]
    sender, receiver, _ = packets_at_both_ends(flow, points[0], points[1], T0)
    assert sender is not None and receiver is not None
    found = delivered(receiver, "sctp")
    assert len(found.payload_bytes) == done.got["messages"]
    assert found.payload_bytes.sum() == done.got["unique_bytes"]
    messages = messages_of(flow, sender, receiver, Timetable(flow, None))
    assert messages is not None
    assert (messages.delivered_ns != NEVER).sum() == done.got["messages"]
    assert (messages.delivered_ns == NEVER).sum() > 3, "nothing was given up"
