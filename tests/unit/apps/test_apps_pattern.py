"""The payload's pattern and its accounting, in C under ASan and UBSan, against a second writing in Python."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from support.apps_kit import Check, flow_pattern, pattern, with_token

STREAMS = st.integers(0, 65535)
MESSAGES = st.one_of(st.integers(0, 300), st.integers(0, 2**40))
OFFSETS = st.one_of(st.integers(0, 600), st.integers(0, 2**24 - 2000))


@pytest.fixture(scope="module")
def check() -> Iterator[Check]:
    """One traffic-test-driver for the module."""
    program = Check()
    yield program
    program.close()


@given(STREAMS, MESSAGES, OFFSETS, st.integers(0, 1500))
def test_the_pattern_is_what_the_formats_say(check: Check, stream: int, message: int, offset: int, length: int) -> None:
    assert check.fill(stream, message, offset, length) == pattern(stream, message, offset, length)


@given(
    st.one_of(st.integers(0, 5000), st.integers(2**24 - 600, 2**24 + 600), st.integers(0, 2**50)), st.integers(1, 1500)
)
def test_a_byte_stream_counts_blocks_from_its_start(check: Check, position: int, length: int) -> None:
    assert bytes.fromhex(check.ask("fill-flow", position, length)) == flow_pattern(position, length)


@given(STREAMS, MESSAGES, OFFSETS, st.integers(1, 1500), st.data())
def test_every_wrong_byte_is_seen(
    check: Check, stream: int, message: int, offset: int, length: int, data: st.DataObject
) -> None:
    right = bytearray(pattern(stream, message, offset, length))
    places = data.draw(st.sets(st.integers(0, length - 1), max_size=5))
    for place in places:
        right[place] ^= data.draw(st.integers(1, 255))
    answer = check.numbers("check", stream, message, offset, bytes(right))
    assert answer[0] == len(places)
    assert not places or answer[1] == min(places)


@given(STREAMS, st.integers(0, 2**30), st.integers(0, 60000), st.integers(256, 1500), st.integers(1, 1500))
def test_shifted_payload_is_never_taken_for_right(
    check: Check, stream: int, message: int, offset: int, length: int, shift: int
) -> None:
    moved = pattern(stream, message, offset + shift, length)
    assert check.numbers("check", stream, message, offset, moved)[0] > 0


@given(st.integers(0, 2**40), st.integers(-100, 100), st.integers(1, 600))
def test_messages_tell_their_number(check: Check, expected: int, jump: int, length: int) -> None:
    number = max(0, expected + jump)
    assert check.numbers("number", expected, pattern(5, number, 0, length)) == [number]


def test_a_damaged_number_does_not_become_a_jump(check: Check) -> None:
    short = bytearray(pattern(0, 7, 0, 200))
    short[3] = 0x40
    assert check.numbers("number", 7, bytes(short)) == [7]
    long = bytearray(pattern(0, 7, 0, 600))
    long[0] = 99
    assert check.numbers("number", 7, bytes(long)) == [7]
    assert check.numbers("message", 0, 1, bytes(long))[:2] == [1, 0]
    check.summary()


def test_a_corrupt_byte_is_reported_with_its_position(check: Check) -> None:
    wrong = bytearray(pattern(2, 0, 0, 1452))
    wrong[700] ^= 0xFF
    wrong[1400] ^= 1
    assert check.ask("message", 2, 1, bytes(wrong)) == f"1 2 0 700 2 {700 % 256} {(700 % 256) ^ 0xFF}"
    assert check.ask("bytes", b"\x01") == "1 0 0 0 1 0 1"
    found = check.summary()
    assert found["corrupt_bytes"] == 3
    assert [entry["corrupt_bytes"] for entry in found["streams"]] == [1, 2]


def test_one_byte_messages_are_counted(check: Check) -> None:
    for number in range(700):
        if number not in (300, 301):
            assert check.ask("message", 0, 1, pattern(0, number, 0, 1)) == "0"
    assert check.ask("message", 0, 1, pattern(0, 650, 0, 1)) == "0"
    found = check.summary()
    assert (found["unique_bytes"], found["gap_bytes"], found["duplicate_bytes"]) == (698, 2, 1)


def test_an_abandoned_message_is_a_gap(check: Check) -> None:
    check.ask("message", 1, 1, pattern(1, 0, 0, 900))
    check.ask("message", 1, 0, pattern(1, 1, 0, 500))
    assert check.ask("abandon", 1) == "0"
    check.ask("message", 1, 1, pattern(1, 2, 0, 900))
    check.ask("message", 1, 0, pattern(1, 3, 0, 333))
    found = check.summary()
    assert (found["unique_bytes"], found["gap_bytes"], found["incomplete_bytes"]) == (1800, 900, 333)
    assert found["corrupt_bytes"] == 0


@given(st.integers(1, 40), st.integers(1, 700), st.integers(0, 2**32))
@settings(max_examples=60)
def test_accounting_of_any_order_with_losses_and_repeats(check: Check, count: int, length: int, seed: int) -> None:
    """Random losses, repeats and swaps on three streams, in pieces, against sets in Python."""
    draw = random.Random(seed)
    sent = [(number % 3, number // 3) for number in range(count)]
    arrived = [item for item in sent if draw.random() > 0.2]
    arrived += [item for item in arrived if draw.random() < 0.2]
    for _ in range(draw.randrange(5)):
        if len(arrived) > 1:
            place = draw.randrange(len(arrived) - 1)
            arrived[place], arrived[place + 1] = arrived[place + 1], arrived[place]
    seen: dict[int, set[int]] = {}
    late = repeats = 0
    for stream, number in arrived:
        cut = draw.randrange(length)
        if cut:
            assert check.ask("message", stream, 0, pattern(stream, number, 0, cut)) == "0"
        assert check.ask("message", stream, 1, pattern(stream, number, cut, length - cut)) == "0"
        known = seen.setdefault(stream, set())
        repeats += number in known
        late += number not in known and bool(known) and number < max(known)
        known.add(number)
    missing = sum(max(known) + 1 - len(known) for known in seen.values())
    found = check.summary()
    assert found["unique_bytes"] == length * sum(map(len, seen.values()))
    assert found["duplicate_bytes"] == length * repeats
    assert found["gap_bytes"] == length * missing
    assert found["out_of_order"] == late
    assert found["corrupt_bytes"] == found["incomplete_bytes"] == 0
    assert found["messages"] == len(arrived)
    assert [entry["stream"] for entry in found["streams"]] == sorted(seen)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.binary(max_size=600)), max_size=30))
def test_any_bytes_at_all_are_accounted_without_harm(check: Check, pieces: list[tuple[int, bool, bytes]]) -> None:
    """Fuzz: garbage of any shape keeps the sums; ASan and UBSan watch."""
    for stream, end, payload in pieces:
        check.ask("message", stream, int(end), payload)
    found = check.summary()
    arrived = sum(len(payload) for _, _, payload in pieces)
    assert found["unique_bytes"] + found["duplicate_bytes"] + found["incomplete_bytes"] == arrived
    assert found["corrupt_bytes"] <= arrived


TOKENS = st.integers(1, 2**63 - 1)


@given(TOKENS, STREAMS, MESSAGES, OFFSETS, st.integers(1, 1500), st.integers(-100, 100))
def test_a_token_is_in_every_byte(
    check: Check, token: int, stream: int, message: int, offset: int, length: int, jump: int
) -> None:
    right = with_token(pattern(stream, message, offset, length), token, offset)
    first = with_token(pattern(stream, message, 0, length), token)
    check.ask("token", token)
    try:
        assert check.fill(stream, message, offset, length) == right
        assert check.numbers("check", stream, message, offset, right)[0] == 0
        assert check.numbers("number", max(0, message + jump), first) == [message]
        wrong, place = check.numbers("check", stream, message, offset, pattern(stream, message, offset, length))
    finally:
        check.ask("token", 0)
    key = token.to_bytes(8, "little")
    differing = [at for at in range(length) if key[(offset + at) % 8]]
    assert (wrong, place) == (len(differing), differing[0] if differing else 0)


def test_payload_compresses_to_next_to_nothing(check: Check) -> None:
    """Full-size packets are to cost their headers: under 2 % of the payload at the level captures get."""
    stream = b"".join(check.fill(0, number, 0, 1452) for number in range(1000))
    assert len(zstandard.ZstdCompressor(level=3).compress(stream)) < len(stream) / 50
