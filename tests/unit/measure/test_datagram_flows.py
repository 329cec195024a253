"""Losses of netwarp's own UDP."""

from __future__ import annotations

import numpy as np
import pytest
from netwarp.measure.datagram_flows import DatagramFlow, Datagrams
from netwarp.measure.groups.datagrams import datagram_flow_metrics, datagram_window
from netwarp.measure.timetable import NEVER
from support.observed import flow_of

MS = 1_000_000


@pytest.mark.parametrize(
    ("stop_ns", "total_bytes", "sent", "lost"), [(None, 1000, 10, 6), (95 * MS, None, 10, 6), (65 * MS, None, 7, 3)]
)
def test_what_is_sent_after_the_last_arrival_is_lost(
    stop_ns: int | None, total_bytes: int | None, sent: int, lost: int
) -> None:
    """Ten datagrams, one every 10 ms, of which the first four arrive 1 ms later; the flow ends by time or by bytes."""
    flow = flow_of("udp", stop_ns=stop_ns, total_bytes=total_bytes)
    t_ns, number = np.arange(10) * 10 * MS, np.arange(10)
    left = Datagrams(t_ns, number, np.full(10, 128), np.full(10, 100), np.zeros(10, dtype=np.int64))
    first = number < 4
    came = left.of(first)
    arrived_ns = np.where(first, t_ns + MS, NEVER)
    datagrams = DatagramFlow(left, came, arrived_ns, np.ones(10, dtype=np.bool_))
    metrics = datagram_flow_metrics(flow, datagrams, datagram_window(flow, datagrams))
    assert metrics["lost_datagrams"] == lost
    assert metrics["datagram_loss_ratio"] == pytest.approx(lost / sent)
    assert metrics["sent_not_ect_packets"] == sent
    assert metrics["data_packets"] == 4


@pytest.mark.parametrize(("lost", "complete"), [([], True), ([2], False), ([3], False)])
def test_a_flow_by_bytes_ends_with_its_last_new_datagram(lost: list[int], complete: bool) -> None:
    """Four datagrams, one every 10 ms, each 1 ms on its way; a copy of the first comes at 500 ms."""
    t_ns, number = np.arange(4) * 10 * MS, np.arange(4)
    left = Datagrams(t_ns, number, np.full(4, 128), np.full(4, 100), np.zeros(4, dtype=np.int64))
    there = ~np.isin(number, lost)
    arrived_ns = np.where(there, t_ns + MS, NEVER)
    copies = np.append(number[there], 0)
    came = Datagrams(np.append(arrived_ns[there], 500 * MS), copies, np.full(len(copies), 128),
                     np.full(len(copies), 100), np.zeros(len(copies), dtype=np.int64))  # fmt: skip
    flow = flow_of("udp", total_bytes=400)
    window = datagram_window(flow, DatagramFlow(left, came, arrived_ns, np.ones(4, dtype=np.bool_)))
    assert (window.first_ns, window.end_ns, window.complete) == (MS, int(arrived_ns[there][-1]), complete)
