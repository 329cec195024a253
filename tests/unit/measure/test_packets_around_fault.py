"""Packets around a fault: which heartbeat was answered, which data were lost; from packets by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from netwarp.core.wire import DATA, HEARTBEAT, HEARTBEAT_ACK, I_DATA
from netwarp.measure.observation import FlowObservation, Moments
from netwarp.measure.packets_around_fault import moments_ns, packets_around_fault
from netwarp.measure.planned_paths import Fault
from support.captures import ISN, T, association, chunk, data_chunk, sctp
from support.observed import flow_of, observed

MS = 1_000_000
Timed = tuple[int, bytes]
FAULT = Fault("fault", "cut", "p1", 50 * MS, 100 * MS)
MOMENTS = Moments(FAULT, path_in_use=0, hit=True)


def interleaved(tsn: int) -> bytes:
    return chunk(I_DATA, struct.pack("!IHHII", (ISN + tsn) % 2**32, 0, 0, tsn, 0) + b"d" * 100, 3)


def ends(tmp_path: Path, sent: list[Timed], came: list[Timed]) -> FlowObservation:
    """Times in ms from T0."""
    shake = [(T + n, raw) for n, raw in enumerate(association())]
    at_sender, at_receiver = (shake + [(T + at * MS, raw) for at, raw in packets] for packets in (sent, came))
    return observed(flow_of("sctp"), tmp_path, sender=at_sender, receiver=at_receiver, moments=MOMENTS)


def test_a_heartbeat_is_answered_by_what_repeats_it(tmp_path: Path) -> None:
    """Another heartbeat left before the answer to the first one came."""
    first, second = (chunk(HEARTBEAT, struct.pack("!HH", 1, 8) + word) for word in (b"one.", b"two."))
    answer = sctp(11, chunk(HEARTBEAT_ACK, first[4:]), back=True)
    sent = [(10, sctp(22, data_chunk(ISN))), (90, sctp(22, first)), (120, sctp(22, second)), (130, answer)]
    seen = ends(tmp_path, sent, sent)
    assert seen.sender is not None and seen.receiver is not None
    at = moments_ns(seen.flow, seen.sender, seen.receiver, MOMENTS)
    assert (at["heartbeat"], at["heartbeat_ack"]) == (90 * MS, 130 * MS)


@pytest.mark.parametrize("kind", [DATA, I_DATA])
def test_data_have_their_number_and_whether_they_were_lost(kind: int, tmp_path: Path) -> None:
    def part(tsn: int) -> bytes:
        return sctp(22, interleaved(tsn) if kind == I_DATA else data_chunk(ISN + tsn, ssn=tsn))

    sent = [(10 + tsn * 10, part(tsn)) for tsn in range(4)]
    observation = ends(tmp_path, sent, [(at + 5, raw) for at, raw in sent[:2]])
    rows = [row for row in packets_around_fault(observation) if row.node == "a" and row.number is not None]
    assert [(row.number, row.note) for row in rows if row.type in ("DATA", "I-DATA")] == [
        (0, ""), (1, ""), (2, "lost"), (3, "lost"),
    ]  # fmt: skip
