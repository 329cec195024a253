"""Flows of several connections: equal numbers (sequence numbers, TSNs) of different connections are different data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from netwarp.core.types import Flow
from netwarp.core.wire import TCP
from netwarp.measure.flow_packets import FlowPackets
from netwarp.measure.groups.recovery import undelivered
from netwarp.measure.groups.timers import timer_metrics
from netwarp.measure.observation import FlowObservation
from netwarp.measure.planned_paths import Fault
from netwarp.measure.sent_data import arrival_of_first_sent_since
from scapy.layers.inet import IP
from scapy.layers.inet import TCP as Segment
from support.captures import ISN, T, Timed, chunk, data_chunk, ether, init_chunk, sctp
from support.observed import at_end, flow_of
from support.recorded_cell import make_cell

MS = 1_000_000
PEER = 7000


def segment(port: int, number: int, payload: int = 0, flags: str = "A") -> bytes:
    """From a connection's initiator, at 10.1.0.1, first byte `number`."""
    tcp = Segment(sport=port, dport=80, seq=(ISN + port + number) % 2**32, ack=PEER, flags=flags)
    return ether(IP(src="10.1.0.1", dst="10.1.0.2") / tcp / (b"x" * payload))


def ends(flow: Flow, tmp_path: Path, sent: list[Timed], came: list[Timed]) -> tuple[FlowPackets, FlowPackets]:
    sender, receiver = (
        at_end(flow, tmp_path, [(T + at_ns, raw) for at_ns, raw in packets], node)
        for node, packets in (("a", sent), ("b", came))
    )
    assert len(sender.data_direction) == len(receiver.data_direction) == 2
    return sender, receiver


SYNS: list[Timed] = [(0, segment(1000, 0, flags="S")), (1, segment(1001, 0, flags="S"))]
FAULT = Fault("fault", "cut", "p1", 80 * MS, 500 * MS)


@pytest.mark.parametrize("first", [0, 1])
def test_what_one_connection_delivered_the_other_did_not(first: int, tmp_path: Path) -> None:
    """Both send their first bytes; those of one are lost. The captures see the connections in either order."""
    flow = flow_of("tcp")
    sent = [*SYNS, (10 * MS, segment(1000, 1, 1000)), (70 * MS, segment(1001, 1, 1000))]
    came = [*((at, raw) for at, (_, raw) in enumerate(SYNS[:: -1 if first else 1])), (30 * MS, segment(1000, 1, 1000))]
    sender, receiver = ends(flow, tmp_path, sent, came)
    assert undelivered(flow, sender, receiver, 0, FAULT) == 1


def test_a_packet_was_sent_when_its_own_connection_sent_it(tmp_path: Path) -> None:
    """The other connection sends bytes of the same numbers after the fault, before the first one's arrive."""
    flow = flow_of("tcp")
    sent = [*SYNS, (70 * MS, segment(1000, 1, 1000)), (90 * MS, segment(1001, 1, 1000))]
    came = [*SYNS, (100 * MS, segment(1000, 1, 1000)), (120 * MS, segment(1001, 1, 1000))]
    sender, receiver = ends(flow, tmp_path, sent, came)
    assert receiver.point.capture.flows["protocol"].tolist() == [TCP] * 2
    data = receiver.data.payload_bytes > 0
    assert arrival_of_first_sent_since(sender, receiver, "tcp", np.asarray(data), FAULT.from_ns) == 120 * MS


def test_the_first_data_of_a_second_association_repeat_nothing(tmp_path: Path) -> None:
    flow = flow_of("sctp")
    packets: list[Timed] = []
    for at_ms, tag, peer, port in ((0, 11, 22, 1000), (5000, 33, 44, 1001)):
        ports = (port, 80)
        handshake = [
            sctp(0, init_chunk(tag, ISN), ports=ports),
            sctp(tag, init_chunk(peer, 9000, ack=True), back=True, ports=ports),
            sctp(peer, chunk(10, b"cookie"), ports=ports),
            sctp(tag, chunk(11), back=True, ports=ports),
        ]
        data = [sctp(peer, data_chunk(ISN + tsn, ssn=tsn), ports=ports) for tsn in (0, 1, 1)]
        packets += [((at_ms + n) * MS, raw) for n, raw in enumerate([*handshake, *data])]
    sender, receiver = ends(flow, tmp_path, packets, packets)
    metrics = timer_metrics(FlowObservation(make_cell("sctp"), flow, sender, receiver))
    assert metrics["data_repeat_wait_s"] == pytest.approx(0.001)


def test_an_ack_of_one_connection_answers_no_data_of_the_other(tmp_path: Path) -> None:
    flow = flow_of("tcp")
    ack = ether(IP(src="10.1.0.2", dst="10.1.0.1") / Segment(sport=80, dport=1001, seq=PEER, ack=1, flags="A"))
    late = ether(IP(src="10.1.0.2", dst="10.1.0.1") / Segment(sport=80, dport=1000, seq=PEER, ack=1, flags="A"))
    data = [(10 * MS, segment(1000, 1, 1000)), (11 * MS, segment(1001, 1, 1000))]
    packets = [*SYNS, *data, (12 * MS, ack), (50 * MS, late)]
    sender, receiver = ends(flow, tmp_path, packets, packets)
    metrics = timer_metrics(FlowObservation(make_cell("tcp"), flow, sender, receiver))
    assert metrics["acknowledgement_wait_s"] == pytest.approx(0.04)
