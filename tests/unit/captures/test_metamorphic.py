"""The metamorphic tests' part in CI: a few captures through every change, and the judge itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from metamorphic import CHANGES, Change, Told, compare, run, template

DATA = Path(__file__).resolve().parents[2] / "data"
CAPTURES = (
    "captures/osmo-a-p1", "captures/sctptestcut-a-p1", "cases/2-two-paths-pf1", "cases/capture-lost-records",
    "cases/keepalive-unanswered", "cases/nagle-delayed-ack", "cases/simultaneous-open", "cases/three-syns",
    "cases/zero-window-one-byte-probes",
)  # fmt: skip


def test_nothing_becomes_false() -> None:
    results, refused = run([DATA / f"{name}.pcap.zst" for name in CAPTURES])
    assert not refused
    said = {name: [text for _, out in outcomes for text in out.false] for name, outcomes in results.items()}
    assert {name: texts for name, texts in said.items() if texts} == {}
    kept = sum(out.kept for outcomes in results.values() for _, out in outcomes)
    gone = sum(out.gone for outcomes in results.values() for _, out in outcomes)
    assert kept > 5 * gone  # to say nothing is no way out
    for name, outcomes in results.items():
        part = next(each.part for each in CHANGES if each.name == name)
        assert part or not sum(out.unknown for _, out in outcomes), name


WHOLE = Told(("2 of 40 packets were lost (5 %)",), {"timeouts": 2}, {("a", "rto_min"): (0.2, 0.3)})


@pytest.mark.parametrize(
    ("changed", "part", "false"),
    [
        (WHOLE, False, 0),
        (Told(("1 of 20 packets were lost (5 %)",), {"timeouts": None}, {}), True, 0),
        (Told(("nobody answered",), {"timeouts": 2}, {}), True, 1),
        (Told((), {"timeouts": 2}, {("a", "rto_min"): (0.4, 0.5)}), True, 1),
        (Told((), {"timeouts": 2}, {("a", "rto_min"): (0.1, 0.25)}), True, 0),
        (Told(WHOLE.sentences, {"timeouts": 3}, WHOLE.settings), False, 1),
        (Told((), WHOLE.totals, WHOLE.settings), False, 1),
    ],
)
def test_the_judge(changed: Told, part: bool, false: int) -> None:
    how = Change("some", lambda frames: None, part=part)
    key = ("tcp", "a", "b")
    assert len(compare({key: WHOLE}, {key: changed}, how).false) == false


def test_a_connection_that_is_gone() -> None:
    key = ("tcp", "a", "b")
    assert compare({key: WHOLE}, {}, Change("some", lambda frames: None)).false
    assert not compare({key: WHOLE}, {}, Change("some", lambda frames: None, part=True)).false


def test_templates() -> None:
    assert template("2 T3 expiries") == template("1 T3 expiry")
    assert template("no data for 5 s from 3 s on") == template("no data for 600 ms from 1.5 s on")
