"""Changes that must not change the result of analyze_tcp: other connections beside it, wrapping numbers. And no valid
packets in whatever order may stop it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.captures import read_captures
from netwarp.captures.tcp import analyze_tcp
from support.captures import DATA, has, pcap, read, recorded
from support.tcp_story import MS, Story

QUICK = settings(max_examples=40)
NUMBERS = st.integers(-3, 12).map(lambda number: number * 500 + 1)
BLOCKS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3)
ACT = st.one_of(
    st.tuples(st.just("data"), NUMBERS, st.integers(0, 2000), st.sampled_from(["A", "PA", "FA", "R", "S", "ACE"])),
    st.tuples(st.just("ack"), NUMBERS, BLOCKS, st.sampled_from([0, 100, 502]), st.integers(0, 40), st.integers(0, 900)),
)


def told(acts: list[tuple[object, ...]], waits: list[int], *, sack: bool, stamps: bool, isn: int, open_: bool) -> Story:
    story = Story(sack=sack, stamps=stamps, isn=isn)
    if open_:
        story.handshake()
    at = 50.0
    for act, wait in zip(acts, waits, strict=False):
        at += wait
        if act[0] == "data":
            story.data(at, act[1], act[2], flags=act[3])  # type: ignore[arg-type]
        else:
            story.ack(at, act[1], *act[2], window=act[3], payload=act[4], echo=act[5])  # type: ignore[misc, arg-type]
    return story


@QUICK
@given(
    st.lists(ACT, min_size=1, max_size=40),
    st.lists(st.integers(0, 1500), min_size=40, max_size=40),
    st.booleans(), st.booleans(), st.booleans(), st.sampled_from([None, 0, 1]),
)  # fmt: skip
def test_any_packets_are_analysed_and_moving_the_numbers_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    acts: list[tuple[object, ...]], waits: list[int], sack: bool, stamps: bool, open_: bool, at: int | None,
) -> None:  # fmt: skip
    tmp_path = tmp_path_factory.mktemp("any")
    answers = []
    for isn in (1000, 2**32 - 2000):
        story = told(acts, waits, sack=sack, stamps=stamps, isn=isn, open_=open_)
        capture = story.capture(tmp_path)
        found = []
        for flow in range(len(capture.flows)):
            one = analyze_tcp(capture, flow, at=at)
            counts = [value for value in one.totals.values() if value is not None]
            assert all(np.isfinite(counts))
            assert all(value >= 0 for value in counts if isinstance(value, int))
            assert all(len(times) == len(values) for times, values in one.series.values())
            assert all(np.isfinite(values).all() for _, values in one.series.values())
            times = capture.segments["time_ns"][(capture.segments["flow"] == flow) & ~capture.segments["stray"]]
            gaps = np.diff(times)
            has(one.totals, idle_gaps=(gaps >= 10**9).sum(), idle_s=gaps[gaps >= 10**9].sum() / 1e9)
            again = one.directions[0].retransmissions
            if again is not None:
                data = one.directions[0].data
                late = (data.end[1:] <= data.highest_end[:-1]).sum()
                assert len(again.cause) <= data.is_retransmission.sum() + late
            found.append((one.totals, one.events, {name: values.tolist() for name, (_, values) in one.series.items()}))
        answers.append(found)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_connection_alone_and_beside_others(tmp_path: Path, node: str) -> None:
    """A recorded connection beside a told one: both as if each were alone."""
    (file,) = recorded("tcp", node, ["p1"])
    alone = read_captures([file])
    story = Story().handshake().flight(40, 1, 4).ack(80, 1, (1001, 4001)).data(80, 1).ack(120, 4001, echo=80)
    other = tmp_path / "other.pcap"
    start = int(alone.sources["first_ns"][0])
    first = story.packets[0][0]
    other.write_bytes(pcap([(at - first + start + MS, packet) for at, packet in story.packets]))
    both = read_captures([file, other])
    assert len(both.flows) == len(alone.flows) + 1
    wanted = analyze_tcp(alone, 0)
    assert analyze_tcp(both, 0).totals == wanted.totals
    assert analyze_tcp(both, 0).events == wanted.events
    told_alone = analyze_tcp(read(tmp_path, other.read_bytes()), 0).totals
    assert analyze_tcp(both, 1, t0_ns=start + MS).totals == told_alone


def test_a_recorded_connection_of_the_two_ends() -> None:
    """What one end cannot know the other can: nothing is 0 that is not known."""
    ends = [analyze_tcp(read_captures(recorded("tcp", node, ["p1"])), 0).totals for node in "ab"]
    assert (DATA / "tcp.settings").exists()
    assert [end["capture_point_ratio"] for end in ends] == pytest.approx([0, 1], abs=0.05)
    assert ends[0]["out_of_order_packets"] is ends[1]["max_flight_bytes"] is None
    assert ends[0]["new_bytes"] >= ends[1]["new_bytes"] > 0  # type: ignore[operator]
    assert ends[0]["rtt_min_s"] > 10 * ends[1]["rtt_min_s"]  # type: ignore[operator]
