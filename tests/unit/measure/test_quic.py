"""Flows of QUIC at their two ends: which datagrams are theirs, handshake, window, spin bit, connection ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from netwarp.captures import read_captures
from netwarp.captures.quic import spin_round_trips_s
from netwarp.core.types import Cell
from netwarp.measure.capture_point import CapturePoint
from netwarp.measure.groups.quic import quic_metrics
from netwarp.measure.observation import Window
from netwarp.measure.quic_packets import QuicPackets, quic_packets, quic_window
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw
from support.captures import ether, pcap
from support.specs import cell_of, replaced

MS = 10**6
SERVER, CLIENT = b"server-id", b"client"
T0 = 1_000_000 * MS


@pytest.fixture(scope="module")
def cell() -> Cell:
    return cell_of(replaced('protocol = "tcp"', 'protocol = "quic"\nbytes = "1 MB"'))


def long_header(first: int, to: bytes, by: bytes, size: int = 40) -> bytes:
    token = b"\0" if first == 0xC0 else b""
    return (
        bytes([first])
        + b"\0\0\0\1"
        + bytes([len(to)])
        + to
        + bytes([len(by)])
        + by
        + token
        + bytes([size])
        + bytes(size)
    )


def short(to: bytes, *, spin: bool = False) -> bytes:
    return bytes([0x60 if spin else 0x40]) + to + bytes(30)


class Story:
    """Datagrams between the flow's server (its sender, 10.0.0.1) and its client."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes]] = []

    def sends(self, at_ms: float, payload: bytes, *, server: bool, port: int = 5001) -> Story:
        ends, ports = ("10.0.0.1", "10.0.0.129"), (port, 40_000)
        way = 1 if server else -1
        (source, destination), (sport, dport) = ends[::way], ports[::way]
        packet = IP(src=source, dst=destination) / UDP(sport=sport, dport=dport) / Raw(payload)
        self.frames.append((T0 + round(at_ms * MS), ether(packet)))
        return self

    def at(self, cell: Cell, tmp_path: Path) -> QuicPackets:
        path = tmp_path / "a-p1.pcap"
        path.write_bytes(pcap(self.frames))
        point = CapturePoint("a", ("p1",), read_captures([path], ("packets", "datagrams", "quic")))
        found = quic_packets(cell, cell.flows[0], point, T0)
        assert found is not None
        return found


def handshake() -> Story:
    """Seen by the client: Initial, the server's answer with early 1-RTT data 40 ms later, its own 1-RTT 1 ms later."""
    answer = long_header(0xC0, CLIENT, SERVER) + long_header(0xE0, CLIENT, SERVER) + short(CLIENT)
    story = Story().sends(0, long_header(0xC0, b"a random id", CLIENT), server=False).sends(40, answer, server=True)
    return story.sends(41, long_header(0xE0, SERVER, CLIENT) + short(SERVER), server=False)


def test_the_handshake_ends_when_1_rtt_packets_went_both_ways(cell: Cell, tmp_path: Path) -> None:
    packets = handshake().at(cell, tmp_path)
    metrics = quic_metrics(cell.flows[0], packets, packets, Window())
    assert metrics["setup_time_s"] == pytest.approx(0.041)
    assert (metrics["quic_packets"], metrics["connection_ids"], metrics["retry_packets"]) == (3, 1, 0)
    assert metrics["packets_both_ways"] == 3
    assert metrics["transfer_time_s"] is None, "the window is not complete"
    whole = quic_metrics(cell.flows[0], packets, packets, Window(40 * MS, 40 * MS, complete=True))
    assert whole["transfer_time_s"] == pytest.approx(0.040)


def test_without_1_rtt_packets_one_way_there_was_no_handshake(cell: Cell, tmp_path: Path) -> None:
    packets = Story().sends(0, long_header(0xC0, b"a random id", CLIENT), server=False).at(cell, tmp_path)
    assert quic_metrics(cell.flows[0], packets, packets, Window())["setup_time_s"] is None


def test_only_datagrams_of_the_flows_port_are_its_own(cell: Cell, tmp_path: Path) -> None:
    packets = handshake().sends(50, short(CLIENT), server=True, port=5002).at(cell, tmp_path)
    assert (len(packets.datagrams.data.t_ns), len(packets.datagrams.back.t_ns)) == (1, 2)
    assert packets.datagrams.data.t_ns.tolist() == [40 * MS]


def test_a_new_connection_id_is_counted(cell: Cell, tmp_path: Path) -> None:
    story = handshake().sends(60, short(CLIENT), server=True).sends(61, short(b"second"), server=True)
    packets = story.at(cell, tmp_path)
    assert quic_metrics(cell.flows[0], packets, packets, Window())["connection_ids"] == 2


def spinning(cell: Cell, tmp_path: Path, bits: list[bool], every_ms: float) -> np.ndarray:
    story = handshake()
    for number, spin in enumerate(bits):
        story.sends(100 + number * every_ms, short(CLIENT, spin=spin), server=True)
    return spin_round_trips_s(story.at(cell, tmp_path).sent, 0.04)


def test_the_spin_bits_edges_are_round_trips(cell: Cell, tmp_path: Path) -> None:
    trips = spinning(cell, tmp_path, [number // 5 % 2 == 1 for number in range(30)], 9)
    assert trips.tolist() == pytest.approx([0.045] * 4)


@pytest.mark.parametrize("bits", [[False] * 30, [True] * 30, [number % 3 == 0 for number in range(30)]])
def test_a_bit_that_does_not_spin_tells_nothing(cell: Cell, tmp_path: Path, bits: list[bool]) -> None:
    assert len(spinning(cell, tmp_path, bits, 1)) == 0


def test_the_window_ends_at_the_last_datagram_before_the_connecting_program_did(cell: Cell) -> None:
    flow, arrived = cell.flows[0], np.array([10, 20, 30, 40]) * MS
    assert quic_window(flow, arrived, (31 * MS, True)) == Window(10 * MS, 30 * MS, True)
    assert quic_window(flow, arrived, (31 * MS, False)) == Window(10 * MS, 30 * MS, False)
    assert quic_window(flow, arrived, None) == Window(10 * MS, flow.stop_ns, False)
    assert quic_window(flow, arrived[:0], (31 * MS, True)) == Window(None, flow.stop_ns, False)
