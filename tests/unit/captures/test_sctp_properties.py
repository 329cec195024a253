"""The vectorised parts of SCTP's analysis against plain loops, and what must not matter."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.captures import Capture, read_captures
from netwarp.captures.arrays import (
    NextAbove,
    first_interval_covering,
    search_ascending,
    unique_with_places,
)
from netwarp.captures.capture import ROW_TABLES
from netwarp.captures.native import UNKNOWN
from netwarp.captures.sctp import Association, analyze_sctp
from netwarp.captures.sctp.messages import messages
from netwarp.captures.sctp.retransmissions import _expiries, _least_round_trip_ns, _third_miss
from netwarp.captures.sctp.timing import outstanding
from support.capture_bytes import assert_same_tables, read_bytes, records, shifted_sctp
from support.captures import T, data_chunk, init_chunk, pcap, read, recorded, sack_chunk, sctp

FEW = settings(max_examples=60)
INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 40)), max_size=30)


@FEW
@given(INTERVALS)
def test_first_covering_agrees_with_a_loop(drawn: list[tuple[int, int]]) -> None:
    pairs = [(low, min(low + width, 45)) for low, width in drawn]
    low, high = (np.array([pair[end] for pair in pairs], dtype=np.int64) for end in (0, 1))
    wanted = [next((i for i, (a, b) in enumerate(pairs) if a <= place < b), len(pairs)) for place in range(45)]
    assert first_interval_covering(low, high, 45).tolist() == wanted


@FEW
@given(
    st.lists(st.integers(-9, 9), max_size=40),
    st.lists(st.tuples(st.integers(0, 45), st.integers(-10, 10)), max_size=20),
)
def test_next_above_agrees_with_a_loop(values: list[int], queries: list[tuple[int, int]]) -> None:
    count = len(values)
    start, threshold = (np.array([query[end] for query in queries], dtype=np.int64) for end in (0, 1))
    wanted = [next((i for i in range(a, count) if values[i] > t), count) for a, t in queries]
    asked = NextAbove(np.array(values, dtype=np.int64))
    assert asked.many(start, threshold).tolist() == wanted
    assert [asked.single(a, t) for a, t in queries] == wanted


NUMBERS = st.lists(st.integers(-9, 60), max_size=40)


@FEW
@given(NUMBERS, NUMBERS, st.sampled_from([1, 1000]))
def test_counting_agrees_with_sorting(drawn: list[int], others: list[int], spread: int) -> None:
    values, thresholds = (np.array(one, dtype=np.int64) * spread for one in (drawn, sorted(others)))
    found, place = unique_with_places(values)
    assert found.tolist() == sorted(set(values.tolist()))
    assert found[place].tolist() == values.tolist()
    values.sort()
    assert search_ascending(thresholds, values).tolist() == np.searchsorted(thresholds, values).tolist()
    assert (
        search_ascending(thresholds, values, "right").tolist() == np.searchsorted(thresholds, values, "right").tolist()
    )


SENT = st.lists(
    st.one_of(
        st.tuples(st.just("data"), st.integers(0, 14), st.integers(1, 2)),
        st.tuples(
            st.just("sack"), st.integers(-1, 14), st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), max_size=3)
        ),
    ),
    max_size=60,
)


def built(drawn: list[Any], base: int) -> Capture:
    """Any data and any SACKs (true or not), 1 ms apart, of an association that begins at `base`."""
    packets = [(T, sctp(0, init_chunk(11, base))), (T, sctp(11, init_chunk(22, 7, ack=True), back=True))]
    for number, (kind, tsn, more) in enumerate(drawn):
        at = T + (number + 1) * 1_000_000
        if kind == "data":
            packets.append((at, sctp(22, data_chunk(base + tsn, 100, ssn=tsn), path=more)))
        else:
            gaps = [(1 + first, 1 + first + width) for first, width in more]
            packets.append((at, sctp(11, sack_chunk(base + tsn, gaps), back=True)))
    with tempfile.TemporaryDirectory() as directory:
        return read(Path(directory), pcap(packets))


def _ascending(gaps: list[tuple[int, int]]) -> bool:
    """Whether gap blocks are in order and apart, as a receiver writes them (RFC 9260 3.3.4)."""
    return all(low > one + width + 1 for (one, width), (low, _) in itertools.pairwise(gaps))


@FEW
@given(SENT)
def test_acknowledgements_and_outstanding_agree_with_a_loop(drawn: list[Any]) -> None:
    found = Association(built(drawn, 5), 0, direction=0)
    first: dict[int, int] = {}
    report = 0
    reported: list[set[int]] = []
    known = {tsn for kind, tsn, _ in drawn if kind == "data"}
    for kind, tsn, more in drawn:
        if kind == "sack":
            covered = set(range(-20, tsn + 1))
            for low, width in more:
                covered |= set(range(tsn + 1 + low, tsn + 2 + low + width))
            reported.append(covered)
            for one in covered & known:
                first.setdefault(one, report)
            report += 1
    assert found.reports.acked_by.tolist() == [first.get(tsn, report) for tsn in sorted(known)]
    # a sender drops a report with an older cumulative TSN, and takes back what the next one does not acknowledge
    newest, before, cumulative = [], set[int](), -2
    for (_, tsn, _), covered in zip((one for one in drawn if one[0] == "sack"), reported, strict=True):
        newest.append(UNKNOWN if tsn < cumulative else max(covered - before, default=UNKNOWN))
        if tsn >= cumulative:
            cumulative, before = tsn, covered
    if all(_ascending(more) for kind, _, more in drawn if kind == "sack"):
        assert found.reports.newest.tolist() == newest
    # outstanding, packet by packet
    held: dict[int, int] = {}
    acked: set[int] = set()
    levels = [(0, 0)]
    report = 0
    for number, (kind, tsn, path) in enumerate(drawn):
        if kind == "data" and tsn not in acked:
            held[tsn] = path
        elif kind == "sack":
            acked |= {one for one, by in first.items() if by == report}
            report += 1
            held = {one: where for one, where in held.items() if one not in acked}
        levels.append((number + 1, 100 * len(held)))
    if any(first[tsn] < n for tsn, n in _sends(drawn) if tsn in first):
        return  # acknowledged before it was sent: no such thing happens, and what it means is open
    steps = outstanding(found.sent, found.reports)
    times = ((steps.time_ns - T) // 1_000_000).tolist()
    for number, value in levels:
        place = np.searchsorted(times, number, side="right") - 1
        assert (steps.value_bytes[place] if place >= 0 else 0) == value


def _sends(drawn: list[Any]) -> list[tuple[int, int]]:
    """TSN and how many SACKs came before, of the first transmission of each."""
    found: dict[int, int] = {}
    report = 0
    for kind, tsn, _ in drawn:
        if kind == "sack":
            report += 1
        else:
            found.setdefault(tsn, report)
    return list(found.items())


@FEW
@given(SENT)
def test_retransmissions_agree_with_a_sender_that_counts(drawn: list[Any]) -> None:
    """The third miss of each transmission, counted SACK by SACK as 7.2.4 says (without recovery's rule)."""
    found = Association(built(drawn, 2**32 - 6), 0, direction=0)
    acked: set[int] = set()
    misses: dict[int, int] = {}
    wanted: list[bool] = []
    known = {tsn for kind, tsn, _ in drawn if kind == "data"}
    for kind, tsn, more in drawn:
        if kind == "data":
            if tsn in misses:
                wanted.append(misses[tsn] >= 3)
            misses[tsn] = 0
            continue
        covered = set(range(tsn + 1))
        for low, width in more:
            covered |= set(range(tsn + 1 + low, tsn + 2 + low + width))
        new = (covered & known) - acked
        acked |= new
        for one in misses:
            if more and new and max(new) > one and one not in acked:
                misses[one] += 1
    again = found.again
    certain = np.array(wanted, dtype=np.bool_)
    assert len(again.row) == len(certain)
    # recovery's rule only adds, and what an expiry marked only takes away
    third = again.fast | ~certain
    assert (third | _marked(found)).all()
    if not again.fast.any():
        assert not (certain & ~_marked(found)).any()
    # once a TSN is fast
    assert np.bincount(found.sent.unit[again.row[again.fast]]).max(initial=0) <= 1


def _marked(found: Association) -> Any:
    sent, reports, row = found.sent, found.reports, found.again.row
    before = sent.before[row]
    third = _third_miss(sent, reports, row, before)
    waited, until = third == len(reports.moment), reports.moment_of(third)
    return _expiries(sent, reports, row, before, waited, until, _least_round_trip_ns(sent, reports))[1]


CHUNKS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.booleans()), min_size=1, max_size=12)


@FEW
@given(CHUNKS, st.randoms(use_true_random=False), st.integers(0, 4))
def test_delivery_agrees_with_a_receiver(sent: list[tuple[int, int, bool]], random: Any, lost: int) -> None:
    """Messages of one to four fragments, three streams, some unordered; any order of arrival, some never arrive."""
    tsn, chunks = 0, []
    whole: dict[int, tuple[int, int | None, set[int]]] = {}
    numbers = [0, 0, 0]
    for number, (stream, fragments, unordered) in enumerate(sent):
        for part in range(fragments):
            flags = 4 * unordered | 2 * (part == 0) | (part == fragments - 1)
            chunks.append((tsn, stream, 0 if unordered else numbers[stream], flags, number))
            tsn += 1
        whole[number] = (stream, None if unordered else numbers[stream], set(range(tsn - fragments, tsn)))
        numbers[stream] += not unordered
    random.shuffle(chunks)
    chunks = chunks[: max(1, len(chunks) - lost)]
    packets = [(T, sctp(0, init_chunk(11, 9))), (T, sctp(11, init_chunk(22, 7, ack=True), back=True))]
    for at, (tsn, stream, ssn, flags, _) in enumerate(chunks):
        packets.append((T + at + 1, sctp(22, data_chunk(9 + tsn, 10, stream=stream, ssn=ssn, flags=flags))))
    found = messages(read_bytes(pcap(packets)).chunks)
    here: set[int] = set()
    due = [0, 0, 0]
    done: dict[int, int] = {}
    as_one: dict[int, int] = {}
    for at, (tsn, *_) in enumerate(chunks):
        here.add(tsn)
        moved = True
        while moved:
            moved = False
            for number, (stream, order, parts) in whole.items():
                if number not in done and parts <= here and order in (None, due[stream]):
                    done[number], moved = at + 1, True
                    due[stream] += order is not None
        for number in range(len(whole)):
            if number not in as_one and whole[number][2] <= here and all(n in as_one for n in range(number)):
                as_one[number] = at + 1
    owner = {min(parts): number for number, (_, _, parts) in whole.items()}
    mine = {
        owner[tsn]: t - T
        for tsn, t, ok in zip(found.tsn.tolist(), found.delivery_ns.tolist(), found.delivered, strict=True)
        if ok
    }
    assert mine == done
    one = {
        owner[tsn]: t - T
        for tsn, t, ok in zip(found.tsn.tolist(), found.one_stream_ns.tolist(), found.delivered_as_one, strict=True)
        if ok
    }
    assert one == as_one


@pytest.mark.parametrize(("name", "links"), [("sctp", ["p1", "p2"]), ("bundle", ["p1"])])
@pytest.mark.parametrize("node", ["a", "b"])
@settings(max_examples=4)
@given(forward=st.integers(0, 2**32 - 1), backward=st.integers(0, 2**32 - 1))
def test_shifting_tsns_through_the_wrap_changes_nothing(
    name: str, links: list[str], node: str, forward: int, backward: int
) -> None:
    files = recorded(name, node, links)
    base = read_captures(files)
    # the wrap lies in the middle of the transfer, wherever the draw puts it
    forward = (2**32 - int(base.flows["base"][0][0]) - forward % 800) % 2**32
    moved = read_bytes(
        *(
            pcap([(time, shifted_sctp(frame, forward, backward), length) for time, frame, length in records(file)])
            for file in files
        )
    )
    assert moved.flows["base"][0].tolist() != base.flows["base"][0].tolist()
    assert_same_tables(base, moved, ("paths", "flow_paths", *ROW_TABLES), {"initial_tsn"})
    one, other = analyze_sctp(base, 0), analyze_sctp(moved, 0)
    for name in ("direction", "from_", "to", "point", "ended", "restart_of", "totals", "events", "tables"):
        assert getattr(one, name) == getattr(other, name)
    for key, (times, values) in one.series.items():
        assert np.array_equal(times, other.series[key][0])
        assert np.array_equal(values, other.series[key][1])
