"""The time until a sender repairs what it can know to be lost, failures without a reason: from packets by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from netwarp.measure.flow_packets import FlowPackets
from netwarp.measure.groups.timers import repair_metrics
from netwarp.measure.observation import FlowObservation
from netwarp.store.app_records import Notification
from support import mptcp_packets as mp
from support.captures import T, chunk, sctp
from support.observed import at_sender
from support.recorded_cell import make_cell
from support.sctp_story import Packet, data, handshake, sack
from support.tcp_story import Story

MS = 1_000_000
DATA_ACK_64 = 0x03


def observed(protocol: str, packets: list[tuple[int, bytes]], tmp_path: Path, **more: object) -> FlowObservation:
    """A flow of two paths, captured at its sender; times count from T."""
    flow, sender, _ = at_sender(protocol, packets, tmp_path)
    return FlowObservation(make_cell("tcp"), flow, sender, **more)  # type: ignore[arg-type]


def of(observation: FlowObservation) -> dict[str, float | None]:
    assert isinstance(observation.sender, FlowPackets)
    return repair_metrics(observation, observation.sender)


def overtaken(story: Story, tmp_path: Path) -> float | None:
    return of(observed("tcp", story.packets, tmp_path))["overtaken_wait_s"]


def test_a_segment_that_was_overtaken_is_waited_for(tmp_path: Path) -> None:
    """From the first SACK of something sent after it."""
    story = Story().handshake().flight(50, 1, 4).ack(100, 1, (1001, 2001)).ack(104, 1, (1001, 3001))
    assert overtaken(story.data(116, 1).ack(160, 4001), tmp_path) == pytest.approx(0.016)


def test_a_segment_that_was_late_was_not_lost(tmp_path: Path) -> None:
    story = Story().handshake().flight(50, 1, 4).ack(100, 1, (1001, 2001)).ack(101, 4001)
    assert overtaken(story.data(300, 1), tmp_path) == 0


def test_a_repetition_is_not_overtaken_by_what_was_sent_before_it(tmp_path: Path) -> None:
    """The SACKs that come after the repetition are of the flight before; the next timeout repeats it again."""
    story = Story().handshake().flight(50, 1, 4).ack(100, 1, (1001, 2001)).data(101, 1).ack(102, 1, (1001, 4001))
    assert overtaken(story.data(500, 1), tmp_path) == pytest.approx(0.001)


def test_nothing_lost_is_nothing_to_wait_for(tmp_path: Path) -> None:
    assert overtaken(Story().handshake().flight(50, 1, 4).ack(100, 4001), tmp_path) == 0


# ----------------------------------------------------------------------------------------------------------- MPTCP
def two_subflows() -> list[tuple[int, bytes]]:
    """Opened and joined; 100 bytes on each subflow, of which those on the second are acknowledged."""
    packets = [(n * MS, raw) for n, raw in enumerate([*mp.opened(), *mp.joined()])]
    packets += [(100 * MS, mp.sent(0, 1, 1)), (110 * MS, mp.sent(100, 1, 2))]
    packets += [(150 * MS, mp.segment(1, path=2, back=True))]
    return [(T + at, raw) for at, raw in with_ack(packets, 101)]


def with_ack(packets: list[tuple[int, bytes]], number: int) -> list[tuple[int, bytes]]:
    """The last packet acknowledges up to this number of its subflow."""
    at, raw = packets[-1]
    return [*packets[:-1], (at, raw[:42] + struct.pack("!I", number) + raw[46:])]


def reinjected(packets: list[tuple[int, bytes]], tmp_path: Path) -> float | None:
    return of(observed("mptcp", packets, tmp_path))["reinjection_wait_s"]


def test_data_of_a_subflow_that_timed_out_go_to_the_other(tmp_path: Path) -> None:
    packets = [*two_subflows(), (T + 356 * MS, mp.sent(0, 1, 1)), (T + 363 * MS, mp.sent(0, 101, 2))]
    assert reinjected(packets, tmp_path) == pytest.approx(0.007)


def test_an_acknowledgement_of_the_connection_ends_the_wait(tmp_path: Path) -> None:
    number = struct.pack("!BQ", DATA_ACK_64, (mp.first_number(mp.KEYS[0]) + 1 + 200) % 2**64)
    packets = [*two_subflows(), (T + 356 * MS, mp.sent(0, 1, 1))]
    packets += [(T + 400 * MS, mp.segment(1, 0, mp.option(2, number), back=True))]
    packets += [(T + 500 * MS, mp.sent(0, 101, 2))]
    assert reinjected(packets, tmp_path) == pytest.approx(0.044)


def test_a_subflow_that_waits_itself_is_not_idle(tmp_path: Path) -> None:
    packets = [*two_subflows(), (T + 200 * MS, mp.sent(200, 101, 2)), (T + 356 * MS, mp.sent(0, 1, 1))]
    assert reinjected([*packets, (T + 900 * MS, mp.sent(0, 201, 2))], tmp_path) == 0


def test_a_fast_retransmission_is_no_timeout(tmp_path: Path) -> None:
    packets = [*two_subflows(), (T + 170 * MS, mp.sent(0, 1, 1)), (T + 400 * MS, mp.sent(0, 101, 2))]
    assert reinjected(packets, tmp_path) == 0


# ------------------------------------------------------------------------------------------------------------ SCTP
def heartbeat(at_ms: float, name: bytes, path: int = 2) -> Packet:
    return round(at_ms * MS), sctp(22, chunk(4, chunk(1, name)), path=path)


def answer(at_ms: float, name: bytes, path: int = 2) -> Packet:
    return round(at_ms * MS), sctp(11, chunk(5, chunk(1, name)), path=path, back=True)


def failures(packets: list[Packet], at_ms: float, tmp_path: Path, state: str = "POTENTIALLY_FAILED") -> float | None:
    """Of an association on two paths whose sender is told at a time that the second one changed."""
    record = Notification(round(at_ms * MS), "PEER_ADDR_CHANGE", 0, "10.2.0.2", state)
    story = [(T + at, raw) for at, raw in [*handshake(), *packets]]
    return of(observed("sctp", story, tmp_path, sender_records=[record]))["unfounded_path_failures"]


def test_a_path_fails_for_something_that_was_unanswered_for_a_timeout(tmp_path: Path) -> None:
    beat = heartbeat(300, b"one")
    assert failures([beat], 1300, tmp_path) == 0
    assert failures([beat], 1300, tmp_path, "AVAILABLE") == 0
    assert failures([beat], 300, tmp_path) == 1, "it was only just sent"
    assert failures([beat, answer(350, b"one")], 1300, tmp_path) == 1, "it was answered"
    assert failures([beat, answer(350, b"two")], 1300, tmp_path) == 0, "another one was answered"
    done = [data(210, 0, path=2), sack(250, 0)]
    assert failures([*done, heartbeat(300, b"one", path=1)], 1300, tmp_path) == 1, "it was sent to the other path"


def test_data_without_a_sack_are_a_reason(tmp_path: Path) -> None:
    sent = [data(300, 0, path=2), data(310, 1, path=2), heartbeat(320, b"one"), answer(350, b"one")]
    assert failures(sent, 1350, tmp_path) == 0
    assert failures([*sent, sack(400, 1)], 1350, tmp_path) == 1
    assert failures([*sent, sack(400, -1, [(1, 1)])], 1350, tmp_path) == 0
    assert failures([*sent, sack(400, 0, [(1, 1)])], 1350, tmp_path) == 1


def test_shutdowns_are_counted(tmp_path: Path) -> None:
    bye = sctp(22, chunk(7, b"\0\0\0\0"))
    story = [(T + at, raw) for at, raw in [*handshake(), (500 * MS, bye), (1500 * MS, bye)]]
    assert of(observed("sctp", story, tmp_path))["shutdowns"] == 2
