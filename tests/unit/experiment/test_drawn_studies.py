"""The study fuzzer's parts: what it draws, what of the grammar it says, that its oracle tells wrong numbers."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import netwarp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies.keys import NOT_SAID, every_key, keys_of
from studies.oracle.data import Seen, rows_of
from studies.oracle.delays import Piece, delivered, in_order, percentile
from studies.oracle.judge import Judged, same
from studies.oracle.packets import ACK, DATA, FIN, SYN, TCP, Chunk, Packet
from studies.oracle.queues import share
from studies.run_study import smaller
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


def test_a_study_that_shows_something_wrong_is_made_small() -> None:
    """What is left shows it, and no part of it can be left out."""
    document = {"format": 1, "name": "s", "duration": "1 s", "captures": "all",
                "link": {"p1": {"rate": "1 Mbit/s", "jitter": "1 ms"}, "p2": {"rate": "2 Mbit/s"}},
                "flow": {"f": {"bytes": "1 kB", "late": "1 s"}}}  # fmt: skip

    def shows(candidate: dict[str, Any]) -> bool:
        return "jitter" in candidate.get("link", {}).get("p1", {}) and "f" in candidate.get("flow", {})

    least = {"format": 1, "name": "s", "duration": "1 s", "link": {"p1": {"jitter": "1 ms"}}}
    assert smaller(document, lambda each: shows(each | {"flow": {"f": {}}})) == least
    assert smaller(document, lambda _: False) == document
    assert smaller(document, shows, seconds=-1) == document


def test_segments_wait_for_what_is_before_them() -> None:
    came = [Piece(1, 0, 100, 100), Piece(2, 200, 300, 100), Piece(5, 100, 200, 100), Piece(6, 400, 500, 100)]
    assert [(piece.begin, at) for piece, at in in_order(came)] == [(0, 1), (100, 5), (200, 5)]


def chunk_of(t: int, tsn: int, stream: int, ssn: int, flags: int = 3) -> Piece:
    value = struct.pack(">IHHI", tsn, stream, ssn, 0)
    return Piece(t, tsn, tsn + 1, 1, Chunk(DATA, flags, value, tsn, stream, 1))


def test_messages_wait_in_their_stream_alone() -> None:
    """TSN 1 comes late, 5 never; 3 and 4 are one message, 6 is unordered."""
    came = [chunk_of(1, 0, 0, 0), chunk_of(2, 2, 1, 0), chunk_of(3, 3, 0, 2, 2), chunk_of(9, 1, 0, 1),
            chunk_of(4, 4, 0, 2, 1), chunk_of(5, 6, 0, 0, 7), chunk_of(7, 7, 1, 2), chunk_of(8, 8, 0, 3)]  # fmt: skip
    got = {parts[0].begin: (len(parts), at) for parts, at in delivered(came)}
    assert got == {0: (1, 1), 1: (1, 9), 2: (1, 2), 3: (2, 9), 6: (1, 5), 8: (1, 9)}


def test_what_has_waited_longer_counts_as_longer_than_all() -> None:
    delays = [int(each * 1e9) for each in (1, 2, 3, 4)]
    assert percentile(delays, [], 0.5) == 2
    assert percentile(delays, [10**10] * 3, 0.5) == 4
    assert percentile(delays, [10**10] * 9, 0.5) is None
    assert percentile(delays, [10**6], 0.5) == 2
    assert percentile([], [10**10], 0.5) is None
