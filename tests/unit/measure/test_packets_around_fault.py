"""Packets around a fault: which heartbeat was answered, which data were lost; from packets by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from netwarp.core.types import Flow
from netwarp.core.types import Path as FlowPath
from netwarp.core.wire import DATA, HEARTBEAT, HEARTBEAT_ACK, I_DATA
from netwarp.measure.capture_point import CapturePoint
from netwarp.measure.flow_packets import FlowPackets, packets_at_both_ends
from netwarp.measure.observation import FlowObservation, Moments
from netwarp.measure.packets_around_fault import moments_ns, packets_around_fault
from netwarp.measure.planned_paths import Fault
from support.captures import ISN, T, association, chunk, data_chunk, pcap, read, sctp
from support.recorded_cell import make_cell

MS = 1_000_000
Timed = tuple[int, bytes]
FAULT = Fault("fault", "cut", "p1", 50 * MS, 100 * MS)
MOMENTS = Moments(FAULT, path_in_use=0, hit=True)


def interleaved(tsn: int) -> bytes:
    return chunk(I_DATA, struct.pack("!IHHII", (ISN + tsn) % 2**32, 0, 0, tsn, 0) + b"d" * 100, 3)


def ends(tmp_path: Path, sent: list[Timed], came: list[Timed]) -> tuple[Flow, FlowPackets, FlowPackets]:
    """Times in ms from T0."""
    way = FlowPath(name="p1", sender_link="p1", receiver_link="p1", bottleneck_bit_s=None, base_rtt_ns=0)
    flow = Flow(
        name="f", protocol="sctp", sender="a", receiver="b", paths=(way,), port=80, start_ns=0, stop_ns=None,
        total_bytes=None, message_bytes=100,
    )  # fmt: skip
    points = []
    for name, packets in (("a", sent), ("b", came)):
        (tmp_path / name).mkdir()
        timed = [(T + n, raw) for n, raw in enumerate(association())] + [(T + at * MS, raw) for at, raw in packets]
        points.append(CapturePoint(name, ("p1",), read(tmp_path / name, pcap(timed))))
    sender, receiver, _ = packets_at_both_ends(flow, points[0], points[1], T)
    assert sender is not None and receiver is not None
    return flow, sender, receiver


def test_a_heartbeat_is_answered_by_what_repeats_it(tmp_path: Path) -> None:
    """Another heartbeat left before the answer to the first one came."""
    first, second = (chunk(HEARTBEAT, struct.pack("!HH", 1, 8) + word) for word in (b"one.", b"two."))
    answer = sctp(11, chunk(HEARTBEAT_ACK, first[4:]), back=True)
    sent = [(10, sctp(22, data_chunk(ISN))), (90, sctp(22, first)), (120, sctp(22, second)), (130, answer)]
    at = moments_ns(*ends(tmp_path, sent, sent), MOMENTS)
    assert (at["heartbeat"], at["heartbeat_ack"]) == (90 * MS, 130 * MS)


@pytest.mark.parametrize("kind", [DATA, I_DATA])
def test_data_have_their_number_and_whether_they_were_lost(kind: int, tmp_path: Path) -> None:
    def part(tsn: int) -> bytes:
        return sctp(22, interleaved(tsn) if kind == I_DATA else data_chunk(ISN + tsn, ssn=tsn))

    sent = [(10 + tsn * 10, part(tsn)) for tsn in range(4)]
    flow, sender, receiver = ends(tmp_path, sent, [(at + 5, raw) for at, raw in sent[:2]])
    observation = FlowObservation(make_cell("sctp"), flow, sender, receiver, ("p1",), moments=MOMENTS)
    rows = [row for row in packets_around_fault(observation) if row.node == "a" and row.number is not None]
    assert [(row.number, row.note) for row in rows if row.type in ("DATA", "I-DATA")] == [
        (0, ""), (1, ""), (2, "lost"), (3, "lost"),
    ]  # fmt: skip
