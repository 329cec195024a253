"""Limits of a TCP sender: against the kernel's account of the same connections, and where the cause is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netwarp.captures import summarise_points
from support.captures import DATA, has, recorded
from support.tcp_story import MSS, Story

LIMITS = DATA.parent / "limits"
FILES = sorted(LIMITS.glob("*.pcap.zst"))
POINTS = 0.05
UNDECIDED = {"v-pauses-5pct-receiver": 0.75}
"""Share that may be unknown: behind the losses a block whose last segment is full does not show its end."""
RATE = {"path-5m-cubic-sender": 0.7, "tbf-5m-deep-sender": 0.85}
"""Captures of a full link, and the least share that is the path's."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.partition(".")[0])
def test_shares_are_the_kernels(file: Path) -> None:
    """Idle, and limited by the receiver's window: within 5 points of TCP_INFO, or unknown, and little of that."""
    name = file.name.partition(".")[0]
    kernel = json.loads((LIMITS / "kernel.json").read_text())[name.rpartition("-")[0]]
    totals = summarise_points([[file]])[0].connections[0].totals
    time_s, unknown = totals["limits_s"], totals["unknown_limit_ratio"]
    for ours, theirs in (
        (totals["idle_ratio"], 1 - kernel["busy_time_s"] / time_s),
        (totals["receive_window_limited_ratio"], kernel["rwnd_limited_s"] / time_s),
    ):
        assert ours <= theirs + POINTS
        assert theirs <= ours + unknown + POINTS
    assert unknown < UNDECIDED.get(name, 0.15)
    assert totals["path_limited_ratio"] >= RATE.get(name, 0)
    shares = [value for key, value in totals.items() if key.endswith("_limited_ratio") and "reverse" not in key]
    assert sum(shares) + unknown == pytest.approx(1)


def test_the_captures_are_there() -> None:
    assert len(FILES) == 12


def test_what_limited_it_stands_first() -> None:
    (found,) = summarise_points([[LIMITS / "rcvbuf-20k-sender.pcap.zst"]])
    assert found.findings[0].startswith("10.9.1.1 > 10.9.1.3 was limited by the receiver's window (10.9.1.3) for 9")


def test_the_headline_is_nothing_unknown() -> None:
    (found,) = summarise_points([[LIMITS / "v-pauses-5pct-receiver.pcap.zst"]])
    assert found.findings[-1].startswith("what limited 10.0.0.1 > 10.0.1.129 is unknown for ")
    assert not any(" was limited by " in text for text in found.findings[:-1])


def slow_start(story: Story, rounds: int, rtt_ms: float = 40) -> None:
    """Bursts of 2, 4, 8 ... segments, each acknowledged a round trip later."""
    at, number, last = 41.0, 1, 2
    for _ in range(rounds):
        story.flight(at, number, last)
        number += last * MSS
        story.ack(at + rtt_ms, number, echo=at)
        at, last = at + rtt_ms + 0.1, 2 * last


def test_slow_start_is_the_congestion_window(tmp_path: Path) -> None:
    story = Story().handshake()
    slow_start(story, 5)
    totals = story.told(tmp_path).totals
    assert totals["limits_s"] == pytest.approx(0.2015, abs=1e-3)
    # PSH is never set, so more was to be sent; the last round has nothing after it
    has(
        totals,
        congestion_window_limited_ratio=pytest.approx(4 / 5, abs=0.01),
        unknown_limit_ratio=pytest.approx(1 / 5, abs=0.01),
    )


def test_a_timeout_is_a_loss(tmp_path: Path) -> None:
    """40 ms until the segment would have been answered, 260 ms more until it is sent again, 40 ms for its answer."""
    story = Story().handshake().data(41, 1, 500, flags="PA").data(341, 1, 500, flags="PA").ack(381, 501, echo=341)
    totals = story.told(tmp_path).totals
    assert totals["loss_limited_ratio"] == pytest.approx(0.34 / totals["limits_s"], abs=0.01)  # type: ignore[operator]


def test_messages_are_the_application(tmp_path: Path) -> None:
    """Short messages every 15 ms with three of them on the way, then one every 100 ms."""
    story = Story().handshake(40)
    events = [(50 + 15 * k, k) for k in range(60)] + [(950 + 100 * k, 60 + k) for k in range(10)]
    for at, k in events:
        story.data(at, 1 + 300 * k, 300, flags="PA")
        story.ack(at + 41, 301 + 300 * k, echo=at)
    story.packets.sort(key=lambda packet: packet[0])
    totals = story.told(tmp_path).totals
    assert totals["application_limited_ratio"] == pytest.approx(1, abs=0.05)
    assert totals["idle_ratio"] == pytest.approx(0.59 / totals["limits_s"], abs=0.03)  # type: ignore[operator]


def test_without_a_handshake_nothing_is_said(tmp_path: Path) -> None:
    story = Story()
    for k in range(60):
        story.data(20 * k, 1 + k * MSS).ack(20 * k + 10, 1 + (k + 1) * MSS, echo=20 * k)
    totals = story.told(tmp_path).totals
    has(totals, limits_s=None, idle_ratio=None, unknown_limit_ratio=None)


def test_a_capture_without_the_data_says_nothing(tmp_path: Path) -> None:
    """One direction only, as on one of two routers: what is acknowledged was never seen."""
    story = Story().handshake().data(41, 1)
    for k in range(1, 60):
        story.ack(60 + 20 * k, 1 + k * MSS)
    assert story.data(2000, 1 + 60 * MSS).told(tmp_path).totals["limits_s"] is None


def test_a_subflow_of_mptcp_has_no_window_of_its_own() -> None:
    """RFC 8684 3.3.1: the window is the connection's."""
    (found,) = summarise_points([recorded("mptcp", "a", ["p1", "p2"])])
    assert [connection.totals["limits_s"] for connection in found.connections] == [None, None]


def test_a_connection_within_one_instant_has_no_time_to_be_limited(tmp_path: Path) -> None:
    """As of a clock that stands still."""
    story = Story().handshake(0, 0).data(0, 1).ack(0, 1 + MSS)
    assert story.told(tmp_path).totals["limits_s"] is None
