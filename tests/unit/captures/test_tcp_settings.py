"""Timers of TCP's ends, inferred from packets put together by hand and from recorded captures of Linux."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.captures.inference import InferredSetting
from netwarp.captures.tcp.settings import infer_tcp_settings
from netwarp.core.wire import TCP
from support.captures import DATA
from support.tcp_story import MSS, Story

LINUX = {"rto_min": (0.2, 0.2), "rto_max": (120, 120), "ack_delay": (0.04, 0.2), "ack_frequency": (2, 2)}
RECORDED = sorted(
    file for name in ("causes", "limits", "captures") for file in (DATA.parent / name).rglob("*.pcap.zst")
)
PAST_QUICK = 130
"""Rounds after which acknowledgements that are quick since the connection is new are over."""


def inferred(story: Story, tmp_path: Path) -> dict[tuple[int, str], InferredSetting]:
    return {(each.end, each.name): each for each in infer_tcp_settings(story.capture(tmp_path), 0)}


def bounds(setting: InferredSetting) -> tuple[float | None, float | None]:
    return setting.low, setting.high


def measured() -> Story:
    """Twenty round trips of 40 ms, the last one at 2 s."""
    story = Story().handshake(40)
    for k in range(20):
        story.data(100 * (k + 1), 1 + k * MSS).ack(100 * (k + 1) + 40, 1 + (k + 1) * MSS, echo=100 * (k + 1))
    return story


LOST = 1 + 20 * MSS


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_no_recorded_capture_of_linux_gives_a_wrong_value(file: Path) -> None:
    capture = read_captures([file])
    for flow in range(len(capture.flows)):
        if capture.flows[flow]["protocol"] == TCP:
            for each in infer_tcp_settings(capture, flow):
                least, most = LINUX.get(each.name, (each.low, each.high))
                assert each.low is None or most is None or each.low <= most, each
                assert each.high is None or least is None or each.high >= least, each


def test_a_timeout_after_a_tail_probe_shows_the_floor(tmp_path: Path) -> None:
    """Linux: the probe after two round trips and the floor, the timeout an RTO of 240 ms later."""
    story = measured().data(2500, LOST).data(2700, LOST).data(2940, LOST).data(3420, LOST)
    floor = inferred(story.ack(3460, LOST + MSS, echo=3420), tmp_path)[0, "rto_min"]
    assert floor.low is not None and floor.high is not None
    assert 0.14 < floor.low <= 0.2 <= floor.high <= 0.25


def test_a_tail_probe_alone_shows_nothing(tmp_path: Path) -> None:
    story = measured().data(2500, LOST).data(2780, LOST).ack(2820, LOST + MSS, echo=2780)
    assert (0, "rto_min") not in inferred(story, tmp_path)


def test_a_timer_as_long_as_the_round_trips_ask_for_is_no_floor(tmp_path: Path) -> None:
    """After a handshake of 300 ms the RTO is 900 ms (RFC 6298 2.2)."""
    story = Story(sack=False).handshake(300).data(400, 1).data(1300, 1).data(3100, 1)
    floor = inferred(story, tmp_path)[0, "rto_min"]
    assert floor.low is None and floor.high is not None and 0.9 <= floor.high < 0.92


def test_a_timer_still_doubled_is_no_floor(tmp_path: Path) -> None:
    """Without timestamps what was sent again gives no round trip, so the next timer is as long as the last (Karn)."""
    story = Story(stamps=False, sack=False).handshake(40)
    for k in range(20):
        story.data(100 * (k + 1), 1 + k * MSS).ack(100 * (k + 1) + 40, 1 + (k + 1) * MSS)
    story.data(2500, LOST).data(2740, LOST).data(3220, LOST).ack(3260, LOST + MSS)
    story.data(3300, LOST + MSS).data(4260, LOST + MSS).ack(4300, LOST + 2 * MSS)
    floor = inferred(story, tmp_path)[0, "rto_min"]
    assert floor.low is not None and floor.low <= 0.2 and floor.high is not None and floor.high <= 0.25


def test_linear_timeouts_are_not_taken_for_doubled_ones(tmp_path: Path) -> None:
    """Linux with tcp_thin_linear_timeouts: the first timers of a thin stream are of one length."""
    story = measured().data(2500, LOST).data(2700, LOST)
    for k in range(4):
        story.data(2940 + 240 * k, LOST)
    found = inferred(story, tmp_path)
    assert (0, "rto_max") not in found
    floor = found.get((0, "rto_min"))
    assert floor is None or floor.high is None or floor.high >= 0.2


def test_three_timers_of_one_length_after_doubling_show_the_longest(tmp_path: Path) -> None:
    story = measured().data(2500, LOST).data(2700, LOST)
    at, timer = 2700, 240
    for _ in range(8):
        at, timer = at + timer, min(2 * timer, 2000)
        story.data(at, LOST)
    longest = inferred(story, tmp_path)[0, "rto_max"]
    assert longest.low is not None and longest.high is not None
    assert 1.7 < longest.low <= 2 <= longest.high < 2.02


def at_the_receiver(delays_ms: list[float]) -> Story:
    """Single segments, a second apart, each acknowledged so long after it came."""
    story = Story().handshake(0, 40)
    for k, delay in enumerate(delays_ms):
        at = 1000.0 * (k + 1)
        story.data(at, 1 + k * MSS).ack(at + delay, 1 + (k + 1) * MSS, echo=at)
    return story


def test_the_delay_of_acknowledgements_at_their_sender(tmp_path: Path) -> None:
    delay = inferred(at_the_receiver([0.1] * 3 + [40, 41, 43, 40.5, 42, 40, 43]), tmp_path)[1, "ack_delay"]
    assert delay.low is not None and delay.high is not None
    assert 0.025 < delay.low <= 0.04 <= delay.high < 0.055


@pytest.mark.parametrize("delays", [[40, 41], [5, 20, 60, 120, 190, 9, 33], [700] * 6, [0.1] * 30])
def test_what_is_no_delay_of_acknowledgements(tmp_path: Path, delays: list[float]) -> None:
    """Too few; those of a slow application; longer than RFC 9293 allows; none at all."""
    assert (1, "ack_delay") not in inferred(at_the_receiver(delays), tmp_path)


@pytest.mark.parametrize("every", [2, 3])
def test_how_many_segments_an_acknowledgement_is_for(tmp_path: Path, every: int) -> None:
    """More than two are merged ones."""
    story = Story().handshake(0, 40)
    number = 1
    for k in range(PAST_QUICK):
        at = 5.0 * (k + 1)
        story.flight(at, number, every)
        number += every * MSS
        story.ack(at + 0.02, number, echo=at)
    found = inferred(story, tmp_path)
    assert [bounds(found[key]) for key in [(1, "ack_frequency")] if key in found] == (
        [(every, every)] if every < 3 else []
    )


def test_at_the_datas_sender_a_queue_may_be_the_delay(tmp_path: Path) -> None:
    story = Story().handshake(10)
    for k in range(20):
        at = 1000.0 * (k + 1)
        story.data(at, 1 + k * MSS).ack(at + 50, 1 + (k + 1) * MSS, echo=at)
    assert (1, "ack_delay") not in inferred(story, tmp_path)
