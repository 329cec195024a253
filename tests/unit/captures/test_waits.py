"""Probes and waits of TCP that are no loss: keep-alives and window probes with and without a byte, Nagle's algorithm
beside delayed acknowledgements, pauses, full segments that vanish.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from netwarp.captures import FileSummary
from netwarp.captures.explanation import explain
from netwarp.captures.findings import _moves
from support.captures import summary
from support.tcp_story import MSS, Story


def found(tmp_path: Path, story: Story) -> FileSummary:
    return summary(tmp_path, story.packets)


def opened(segments: int = 5, **fields: bool) -> tuple[Story, float, int]:
    """A story with data that are acknowledged: it, the time, the next number."""
    story, at = Story(**fields).handshake(), 60.0
    for number in range(segments):
        story.data(at, 1 + number * MSS).ack(at + 40, 1 + (number + 1) * MSS)
        at += 50
    return story, at, 1 + segments * MSS


@pytest.mark.parametrize("stamps", [True, False])
@pytest.mark.parametrize("sack", [True, False])
@pytest.mark.parametrize("payload", [0, 1])
@pytest.mark.parametrize("answered", [True, False])
def test_keep_alives(tmp_path: Path, payload: int, answered: bool, stamps: bool, sack: bool) -> None:
    """RFC 9293 3.8.4: the number before the next one, with or without a byte."""
    story, at, following = opened(stamps=stamps, sack=sack)
    for number in range(6):
        at = 5000.0 * (number + 1)
        story.data(at, following - 1, payload)
        if answered:
            story.ack(at + 40, following)
    if answered:
        story.data(at + 3000, following).ack(at + 3040, following + MSS)
    else:
        story.data(at + 5000, following, 0, flags="RA")
    file = found(tmp_path, story)
    totals = file.connections[0].totals
    assert (totals["keep_alives"], totals["retransmitted_packets"]) == (6, 0)
    assert totals["new_bytes"] == following - 1 + (MSS if answered else 0)
    assert totals["acknowledged_unseen_bytes"] == 0
    if answered:
        assert file.findings == ()
    else:
        assert file.findings == (
            "6 keep-alives of 10.0.0.1:1000 got no answer from 5 s on, then it reset the connection",
        )
    (explained,) = explain([file], 1)
    assert not [moment for moment in explained.moments if "retransmission" in moment.text]


@pytest.mark.parametrize("stamps", [True, False])
@pytest.mark.parametrize("kind", ["before", "byte", "byte, taken at last"])
def test_probes_of_a_closed_window(tmp_path: Path, kind: str, stamps: bool) -> None:
    """RFC 9293 3.8.6.1: a byte of new data, or the number before. What the receiver takes is data, sent once."""
    story, at, following = opened(stamps=stamps)
    story.data(at, following).ack(at + 40, following + MSS, window=0)
    following, at = following + MSS, at + 40
    for number in range(5):
        at += 200 * 2**number
        if kind == "before":
            story.data(at, following - 1, 0)
        else:
            story.data(at, following, 1)
        taken = kind == "byte, taken at last" and number == 4
        if not taken:
            story.ack(at + 40, following, window=0)
    if kind == "byte, taken at last":
        story.ack(at + 40, following + 1)
        following += 1
    else:
        story.ack(at + 100, following)
    story.data(at + 101, following).ack(at + 141, following + MSS)
    file = found(tmp_path, story)
    totals = file.connections[0].totals
    assert (totals["zero_window_probes"], totals["retransmitted_packets"]) == (5, 0)
    assert (totals["new_bytes"], totals["acknowledged_unseen_bytes"]) == (following + MSS - 1, 0)
    assert (totals["timeouts"], totals["fast_retransmitted_packets"]) == (0, 0)
    assert sum(file.connections[0].directions[0][name] for name in ("new_bytes",)) == totals["new_bytes"]
    assert not [text for text in file.findings if "repeat" in text or "until a retransmission" in text]


@pytest.mark.parametrize("wait_ms", [1200, 3000, 20_000])
def test_a_late_repetition_of_the_last_segment_is_a_timeout(tmp_path: Path, wait_ms: int) -> None:
    """RFC 8985 7.2: a probe comes after two round trips and a delayed acknowledgement's time."""
    story, at, following = opened()
    story.data(at, following).data(at + wait_ms, following).ack(at + wait_ms + 40, following + MSS)
    totals = found(tmp_path, story).connections[0].totals
    assert (totals["tail_loss_probes"], totals["timeouts"]) == (0, 1)


def test_a_soon_repetition_of_the_last_segment_is_a_probe(tmp_path: Path) -> None:
    story, at, following = opened()
    story.data(at, following).data(at + 90, following).ack(at + 130, following + MSS)
    totals = found(tmp_path, story).connections[0].totals
    assert (totals["tail_loss_probes"], totals["timeouts"]) == (1, 0)


def small_messages(delay_ms: float, *, at_once: bool, answered: bool = False, times: int = 20) -> Story:
    """Two small segments a turn; the second goes with the acknowledgement of the first, or 3 ms after it."""
    story, at, following = Story(stamps=False).handshake(), 60.0, 1
    for turn in range(times):
        story.data(at, following, 100, flags="PA")
        story.ack(at + 40 + delay_ms, following + 100, payload=10 if answered and not turn else 0, flags="A")
        following += 100
        at += 40 + delay_ms + (0.01 if at_once else 3)
        story.data(at, following, 100, flags="PA")
        story.ack(at + 40, following + 100)
        following, at = following + 100, at + 200
    return story


@pytest.mark.parametrize("delay_ms", [30, 40, 200])
def test_nagle_beside_delayed_acknowledgements(tmp_path: Path, delay_ms: float) -> None:
    file = found(tmp_path, small_messages(delay_ms, at_once=True))
    assert file.connections[0].totals["nagle_waits"] == 20
    (told,) = [text for text in file.findings if "Nagle" in text]
    assert (
        f"20 small segments of 10.0.0.1:1000 waited for an acknowledgement that 10.0.0.2:80 put off by {delay_ms} ms"
        in told
    )


@pytest.mark.parametrize(("delay_ms", "at_once"), [(40, False), (0, True), (3, True), (900, True)])
def test_no_nagle(tmp_path: Path, delay_ms: float, at_once: bool) -> None:
    """The data come later than the acknowledgement, or it was not put off, or for longer than any is."""
    assert not [text for text in found(tmp_path, small_messages(delay_ms, at_once=at_once)).findings if "Nagle" in text]


@pytest.mark.parametrize("flags", ["FA", "F"])
@pytest.mark.parametrize("before", [0, 3])
def test_a_fin_that_nobody_acknowledges_is_no_large_segment(tmp_path: Path, flags: str, before: int) -> None:
    story, at, following = Story().handshake(), 60.0, 1
    for _ in range(before):
        story.data(at, following).ack(at + 40, following + MSS)
        following, at = following + MSS, at + 50
    for number in range(6):
        story.data(at, following, 0, flags=flags)
        at += 250 * 2**number
    file = found(tmp_path, story)
    assert file.connections[0].totals["timeouts"] == 5
    assert not [text for text in file.findings if "black hole" in text and "none of" in text]


def full_segments_lost(*, small_pass: bool, before: int, draw: random.Random) -> Story:
    """Full segments vanish from some time on; small ones pass, or there are none."""
    story, at, following = Story().handshake(), 60.0, 1
    for _ in range(before):
        story.data(at, following).ack(at + 40, following + MSS)
        following, at = following + MSS, at + 50
    story.flight(at, following, 4)
    if small_pass:
        story.data(at + 1, following + 4 * MSS, 80, flags="PA")
        story.ack(at + 41, following, (following + 4 * MSS, following + 4 * MSS + 80))
    wait = 250 + draw.randrange(50)
    for number in range(6):
        at += wait * 2**number
        story.data(at, following)
    return story


@pytest.mark.parametrize("seed", range(3))
def test_a_black_hole_at_the_begin(tmp_path: Path, seed: int) -> None:
    file = found(tmp_path, full_segments_lost(small_pass=False, before=0, draw=random.Random(seed)))
    (told,) = [text for text in file.findings if "path-MTU black hole" in text]
    assert told.startswith("none of 10 packets of 10.0.0.1:1000 with 1000 B of data and more was acknowledged")
    assert "while its handshake passed" in told


@pytest.mark.parametrize("seed", range(3))
def test_a_black_hole_amid_a_connection(tmp_path: Path, seed: int) -> None:
    file = found(tmp_path, full_segments_lost(small_pass=True, before=10, draw=random.Random(seed)))
    (told,) = [text for text in file.findings if "path-MTU black hole" in text]
    assert "while smaller ones with up to 80 B passed" in told


def test_an_outage_is_no_black_hole(tmp_path: Path) -> None:
    """Nothing passes any more, of whatever size."""
    file = found(tmp_path, full_segments_lost(small_pass=False, before=10, draw=random.Random(0)))
    assert not [text for text in file.findings if "black hole" in text]


def test_pauses_are_whose_they_are(tmp_path: Path) -> None:
    """One of the sender, one of the other end; one in which data were outstanding is none."""
    story, at, following = opened()
    story.data(at + 3000, following).ack(at + 3040, following + MSS)
    story.ack(at + 8000, following + MSS, payload=50).data(at + 8001, following + MSS, 0)
    story.data(at + 8100, following + MSS)
    story.data(at + 10_100, following + MSS).ack(at + 10_140, following + 2 * MSS)
    (explained,) = explain([found(tmp_path, story)], 1)
    texts = [moment.text for moment in explained.moments if "has nothing to send until then" in moment.text]
    assert texts == [
        "no data for 3.05 s, all is acknowledged: 10.0.0.1:1000 has nothing to send until then",
        "no data for 5 s, all is acknowledged: 10.0.0.2:80 has nothing to send until then",
    ]


class Rows:
    """Of an MPTCP connection its subflows alone."""

    def __init__(self, *spans: tuple[float, float]) -> None:
        self.tables = {
            "subflows": [
                {"subflow": f"10.{n}.1.1:1>10.{n}.2.1:2", "first_new_data_s": begin, "last_new_data_s": end}
                for n, (begin, end) in enumerate(spans, 1)
            ]
        }


def test_where_new_data_moved() -> None:
    moved = list(_moves(Rows((0.0, 5.0), (7.5, 20.0)), "MPTCP"))  # type: ignore[arg-type]
    assert moved == ["MPTCP: new data moved from 10.1.1.1:1 > 10.1.2.1:2 to 10.2.1.1:1 > 10.2.2.1:2 at 7.5 s"]
    alone = list(_moves(Rows((0.0, 5.0), (1.0, 20.0)), "MPTCP"))  # type: ignore[arg-type]
    assert alone == ["MPTCP: from 5 s on new data went on 10.2.1.1:1 > 10.2.2.1:2 without 10.1.1.1:1 > 10.1.2.1:2"]
    assert not list(_moves(Rows((0.0, 19.9), (1.0, 20.0)), "MPTCP"))  # type: ignore[arg-type]
