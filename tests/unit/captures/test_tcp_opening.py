"""How TCP connections begin (RFC 9293 3.5, 3.10.7; RFC 5961 4): openings drawn from a model of the two ends, each with
segments of another connection put between. What was acknowledged is the truth; none of the rest may become a number.
"""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
from netwarp.captures.explanation import explain
from support.captures import T, Timed, pcap, read, segment, summary

MS = 1_000_000
CASES = Path(__file__).resolve().parents[2] / "data" / "cases"
Option = tuple[str, object]


@dataclasses.dataclass
class Opening:
    """Packets of a connection as its initiator's host sees them, and the truth about it."""

    draw: random.Random
    packets: list[Timed] = dataclasses.field(default_factory=list)
    now_ms: float = 0
    stray: int = 0
    syns: int = 0

    def __post_init__(self) -> None:
        self.isn, self.peer, self.other = (self.draw.randrange(2**32) for _ in range(3))
        self.shifts = (self.draw.randrange(1, 14), self.draw.randrange(1, 14))
        self.stamps = self.draw.random() < 0.5
        self.mss = (self.draw.choice([1460, 1400, 536]), self.draw.choice([1460, 1440]))
        self.round_trip_ms = self.draw.choice([3, 20, 90])

    def add(self, packet: bytes, after_ms: float = 0.05) -> None:
        self.now_ms += after_ms
        self.packets.append((T + round(self.now_ms * MS), packet))

    def options(self, end: int, echo: int = 0, *, all_of_them: bool = True) -> list[Option]:
        found: list[Option] = [("MSS", self.mss[end])]
        if not all_of_them:
            return found
        found += [("SAckOK", b""), ("NOP", None), ("WScale", self.shifts[end])]
        return found + ([("Timestamp", (1000 + int(self.now_ms), echo))] if self.stamps else [])

    def syn(self, *, all_of_them: bool = True) -> None:
        self.syns += 1
        self.echo = 1000 + int(self.now_ms)
        options = self.options(0, all_of_them=all_of_them)
        self.add(segment(self.isn, flags="S", options=options, window=64240))

    def syn_ack(self, number: int | None = None) -> None:
        number = self.peer if number is None else number
        self.stray += number != self.peer
        options = self.options(1, self.echo)
        packet = segment(number, back=True, flags="SA", ack=self.isn + 1, options=options, window=65535)
        self.add(packet, self.round_trip_ms)

    def challenge_ack(self) -> None:
        """An ACK of an older connection, and the reset that it is answered with (RFC 5961 4, RFC 9293 3.10.7.3)."""
        self.stray += 2
        old = (self.isn - self.draw.randrange(2**24, 2**31)) % 2**32
        self.add(segment(self.other, back=True, ack=old, window=500), self.round_trip_ms)
        self.add(segment(old, flags="R"))

    def wait(self) -> None:
        self.now_ms += 1000

    def established(self) -> None:
        self.add(segment(self.isn + 1, ack=self.peer + 1, window=502))

    def data(self, count: int = 20) -> None:
        self.add(segment(self.isn + 1, 200, ack=self.peer + 1, window=502))
        self.add(segment(self.peer + 1, back=True, ack=self.isn + 201, window=500), self.round_trip_ms)
        for k in range(count):
            self.add(segment(self.peer + 1 + 500 * k, 500, back=True, ack=self.isn + 201, window=500), 1)
            self.add(segment(self.isn + 201, ack=self.peer + 501 + 500 * k, window=502))


def lost_syns(opening: Opening) -> None:
    for _ in range(opening.draw.randrange(1, 4)):
        opening.syn()
        opening.wait()
    opening.syn()
    opening.syn_ack()


def an_old_connection(opening: Opening) -> None:
    for _ in range(opening.draw.randrange(1, 3)):
        opening.syn()
        opening.challenge_ack()
        opening.wait()
    opening.syn()
    opening.syn_ack()


def another_syn_ack(opening: Opening) -> None:
    """One that was not acknowledged: before the right one, after it, or both."""
    opening.syn()
    if opening.draw.random() < 0.7:
        opening.syn_ack(opening.other)
        opening.wait()
        opening.syn()
        opening.syn_ack()
        if opening.draw.random() < 0.5:
            opening.syn_ack((opening.other + 2**30) % 2**32)
    else:
        opening.syn_ack()
        opening.syn_ack(opening.other)


def without_options(opening: Opening) -> None:
    opening.stamps = True
    opening.syn()
    opening.wait()
    echo = opening.echo
    opening.syn(all_of_them=False)
    opening.echo = echo
    opening.syn_ack()


def as_usual(opening: Opening) -> None:
    opening.syn()
    opening.syn_ack()


KINDS = (as_usual, lost_syns, an_old_connection, another_syn_ack, without_options)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", range(6))
def test_the_state_is_what_was_acknowledged(tmp_path: Path, kind: object, seed: int) -> None:
    opening = Opening(random.Random(f"{kind.__name__} {seed}"))  # type: ignore[attr-defined]
    kind(opening)  # type: ignore[operator]
    opening.established()
    opening.data()
    found = summary(tmp_path, opening.packets)
    (connection,) = found.connections
    totals = connection.totals
    assert connection.facts["handshake_seen"]
    assert connection.facts["ended"] == [False, False]
    assert connection.facts["mss_bytes"] == list(opening.mss)
    assert (totals["window_shift_initiator"], totals["window_shift_responder"]) == opening.shifts
    assert totals["acknowledged_unseen_bytes"] == totals["reverse_acknowledged_unseen_bytes"] == 0
    assert (totals["new_bytes"], totals["reverse_new_bytes"]) == (10_000, 200)
    assert totals["stray_packets"] == opening.stray
    assert totals["syn_packets"] == opening.syns
    assert (totals["max_flight_bytes"] or 0) <= 500
    assert totals["max_window_bytes"] == 502 << opening.shifts[0]
    assert not totals["out_of_order_packets"]
    assert totals["retransmitted_packets"] == 0
    told = " | ".join(found.findings)
    assert ("SYNs" in told) == (opening.syns > 1)
    assert "not hold" not in told and "refused" not in told and "reset" not in told
    (explained,) = explain([found], 1)
    assert not [moment for moment in explained.moments if "reset" in moment.text or "no answer" in moment.text]
    if kind is lost_syns:
        assert f"the handshake took {opening.syns} SYNs: {opening.syns - 1} got no answer" in found.findings


@pytest.mark.parametrize("seed", range(4))
def test_a_stray_syn_ends_no_connection(tmp_path: Path, seed: int) -> None:
    """A SYN of another number amid a connection; what follows goes on with the connection that it is of."""
    opening = Opening(random.Random(seed))
    as_usual(opening)
    opening.established()
    opening.data(10)
    stray = segment(opening.other, flags="S", window=1000)
    opening.packets.insert(10 + 2 * seed, (opening.packets[10 + 2 * seed][0], stray))
    found = summary(tmp_path, opening.packets)
    assert len(found.connections) == 2
    assert found.connections[0].totals["new_bytes"] == 5000
    assert found.connections[0].totals["acknowledged_unseen_bytes"] == 0
    assert found.connections[1].directions[0]["packets"] == 1


def test_an_old_connections_late_packets_are_its_own(tmp_path: Path) -> None:
    """The first connection ends; the ports are used again; the first one's last segment comes late."""
    first, second = Opening(random.Random(1)), Opening(random.Random(2))
    for opening in (first, second):
        as_usual(opening)
        opening.established()
    first.data(5)
    first.add(segment(first.peer + 2501, back=True, flags="FA", ack=first.isn + 201))
    second.now_ms = 0
    second.packets = [(at + 5_000 * MS, packet) for at, packet in second.packets]
    late = segment(first.peer + 2001, 500, back=True, ack=first.isn + 201, window=500)
    second.packets.append((second.packets[-1][0] + MS, late))
    second.now_ms = 5_500
    second.data(3)
    found = summary(tmp_path, [*first.packets, *second.packets])
    assert [c.totals["new_bytes"] for c in found.connections] == [2500, 1500]
    assert [c.totals["retransmitted_packets"] for c in found.connections] == [1, 0]


def test_simultaneous_open(tmp_path: Path) -> None:
    """RFC 9293 3.5: nothing is sent again."""
    opening = Opening(random.Random(3))
    opening.syn()
    opening.add(segment(opening.peer, back=True, flags="S", options=opening.options(1), window=64240), 1)
    opening.add(segment(opening.isn, flags="SA", ack=opening.peer + 1, options=opening.options(0), window=64240), 19)
    opening.add(segment(opening.peer, back=True, flags="SA", ack=opening.isn + 1, options=opening.options(1)), 1)
    opening.data(5)
    found = summary(tmp_path, opening.packets)
    assert found.findings == ()
    totals = found.connections[0].totals
    assert (totals["simultaneous_open"], totals["syn_retransmitted_packets"], totals["syn_packets"]) == (1, 0, 1)
    (explained,) = explain([found], 1)
    assert explained.moments[0].text == "10.0.0.1:1000 connects, and 10.0.0.2:80 to it at the same time"
    assert not [known for known in explained.settings if known.name == "syn_timeout"]


@pytest.mark.parametrize("seed", range(4))
def test_one_direction_alone(tmp_path: Path, seed: int) -> None:
    """What the other end did is unknown: no sentence says that it did not."""
    opening = Opening(random.Random(seed))
    lost_syns(opening)
    opening.established()
    opening.data()
    opening.add(segment(opening.isn + 201, flags="RA", ack=opening.peer + 10_001))
    ours = [(at, packet) for at, packet in opening.packets if packet[26:30] == bytes([10, 0, 0, 1])]
    theirs = [(at, packet) for at, packet in opening.packets if packet[26:30] == bytes([10, 0, 0, 2])]
    for packets, unseen in ((ours, "10.0.0.2:80"), (theirs, "10.0.0.1:1000")):
        found = summary(tmp_path, packets)
        told = f"no packet of {unseen} is in this capture: what it received and answered is unknown"
        assert found.findings == (told,)
        totals = found.connections[0].totals
        for name in ("timeouts", "limits_s", "initial_window_packets", "max_flight_bytes"):
            assert totals[name] is None
        (explained,) = explain([found], 1)
        assert not [known for known in explained.settings if known.name == "initial_window"]


@pytest.mark.parametrize("away", [2**31 - 7, 2**30 - 1, 2**28, 2**25, -(2**26)])
def test_a_reset_far_from_the_window_is_none(tmp_path: Path, away: int) -> None:
    """RFC 5961 3: it must be exactly the next number expected; a blind one is not."""
    opening = Opening(random.Random(5))
    as_usual(opening)
    opening.established()
    opening.data(5)
    opening.add(segment((opening.peer + away) % 2**32, back=True, flags="R"))
    opening.data(0)
    found = summary(tmp_path, opening.packets)
    assert found.connections[0].facts["ended"] == [False, False]
    assert found.connections[0].totals["stray_packets"] == 1


def test_segments_of_a_stray_keep_their_numbers(tmp_path: Path) -> None:
    """The rows say which segments are stray."""
    opening = Opening(random.Random(8))
    an_old_connection(opening)
    opening.established()
    opening.data(1)
    rows = read(tmp_path, pcap(opening.packets)).segments
    assert rows["stray"].sum() == opening.stray
    assert rows["seq"][~rows["stray"]].max() == 201
