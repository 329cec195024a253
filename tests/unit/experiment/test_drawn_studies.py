"""The study fuzzer's parts: what it draws, what of the grammar it says, that its oracle tells wrong numbers."""

from __future__ import annotations

import struct
from collections import Counter

import netwarp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies.keys import NOT_SAID, every_key, keys_of
from studies.oracle.data import Seen, rows_of
from studies.oracle.judge import Judged, same
from studies.oracle.packets import ACK, FIN, SYN, TCP, Packet
from studies.oracle.queues import share
from studies.study import WANTED, WANTS_EVERY, drawn

STUDIES, PLANNED = 400, 40
"""Of 1,000 studies each key is in 20 (docs/trust.md); these draws take some 7 s of CPU."""


def test_every_key_of_the_grammar_is_said_but_those_that_are_named() -> None:
    """A new key of the grammar is drawn, or is named in NOT_SAID, and so in docs/trust.md."""
    keys: Counter[str] = Counter()
    plain = (number for number in range(STUDIES) if number % WANTS_EVERY != WANTS_EVERY - 1)
    for number in (*plain, *(WANTS_EVERY * turn + WANTS_EVERY - 1 for turn in range(len(WANTED)))):
        keys += keys_of(drawn(41, number).document)
    assert {key for key in every_key() if not keys[key]} <= NOT_SAID
    assert {key for key in NOT_SAID if keys[key]} == set()
    assert set(every_key()) > NOT_SAID


def test_few_drawn_studies_are_refused() -> None:
    refused = []
    for number in range(PLANNED):
        try:
            drawn(41, number).experiment.plan()
        except netwarp.SpecError as error:
            refused.append(str(error))
    assert len(refused) <= 0.1 * PLANNED, refused


def test_the_same_number_is_the_same_study() -> None:
    assert drawn(3, 7).document == drawn(3, 7).document != drawn(3, 8).document


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=30))
def test_intervals_are_a_set(pieces: list[tuple[int, int]]) -> None:
    seen, numbers = Seen(), set[int]()
    for start, length in pieces:
        fresh = set(range(start, start + length)) - numbers
        assert seen.add(start, start + length) == len(fresh)
        numbers |= fresh


def segment(seq: int, size: int, flags: int = ACK) -> Packet:
    packet = Packet(0, "10.0.0.1", "10.0.0.129", TCP, 40 + size, 0, struct.pack("Q", seq))
    packet.sport, packet.dport, packet.seq, packet.payload_bytes, packet.flags = 1, 2, seq % 2**32, size, flags
    return packet


def test_new_bytes_and_repeats_of_tcp() -> None:
    """Over the end of the sequence space; a segment that is new in part, a FIN sent twice, a keep-alive."""
    first = 2**32 - 50
    sent = [segment(first, 0, SYN), segment(first + 1, 100), segment(first + 101, 100), segment(first + 51, 100),
            segment(first + 151, 100), segment(first + 251, 0, FIN | ACK), segment(first + 251, 0, FIN | ACK),
            segment(first + 250, 0)]  # fmt: skip
    rows = rows_of(sent, "tcp")
    assert [row.new_bytes for row in rows] == [0, 100, 100, 0, 50, 0, 0, 0]
    assert [row.repeats for row in rows] == [False, False, False, True, True, False, True, False]


@pytest.mark.parametrize(("theirs", "ours", "metric", "equal"), [
    (1.0, 1, "packets", True), (1.0, 2, "packets", False), (None, 0, "packets", False), (None, None, "rtt_s", True),
    (0.1, 0.1 + 1e-9, "rtt_s", True), (0.1, 0.1 + 1e-8, "rtt_s", False), (1e9, 1e9 + 2, "goodput_bit_s", False),
])  # fmt: skip
def test_numbers_are_held_exactly(theirs: float | None, ours: float | None, metric: str, equal: bool) -> None:
    assert same(theirs, ours, metric) is equal
    judged = Judged()
    judged.hold("cell", "f", metric, theirs, ours)
    assert (judged.held, len(judged.differences)) == (1, 0 if equal else 1)


def test_percentiles_are_linear_between_neighbours() -> None:
    assert share([3.0, 1.0, 2.0], 0.5) == 2.0
    assert share([0.0, 1.0], 0.95) == pytest.approx(0.95)
    assert share([], 0.5) is None
