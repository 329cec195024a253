"""What changes mean: the sign of each metric, breaks first, nothing better about a flow that broke."""

from __future__ import annotations

import itertools

import pytest
from netwarp.core.metrics.catalogue import METRICS
from netwarp.results.compared_numbers import ComparedNumber
from netwarp.results.senses import OF_BREAKS, OF_COMPLETION, sense, senses
from netwarp.results.watched import ChangedCell, headline, rank, ranked


def number(metric: str, a: float | None, b: float | None, flow: str = "f") -> ComparedNumber:
    return ComparedNumber((("case", "x"),), flow, metric, METRICS[metric].unit, "changed", a, b, (1, 1))


@pytest.mark.parametrize("metric", [metric for metric in METRICS.values() if metric.name not in OF_BREAKS])
def test_a_change_and_its_reverse_are_opposites(metric: object) -> None:
    name = metric.name  # type: ignore[attr-defined]
    opposite = {"better": "worse", "worse": "better", "broke": "better", "": ""}
    for a, b in itertools.permutations((1.0, 2.0, None), 2):
        there, back = sense(number(name, a, b)), sense(number(name, b, a))
        assert opposite[there] == back or opposite[back] == there
        assert (there == "") == (METRICS[name].higher_is_better is None)
        if a is not None and b is not None and METRICS[name].higher_is_better is not None:
            assert there == ("better" if (b > a) == METRICS[name].higher_is_better else "worse")
    assert sense(number(name, 1.0, 1.0)) == ""


def test_what_has_a_sign_is_what_every_reader_means_by_better() -> None:
    assert METRICS["goodput_bit_s"].higher_is_better is True
    assert METRICS["queue_delay_p99_s"].higher_is_better is False
    for name in ("throughput_bit_s", "share_all_run_ratio", "cwnd_bytes", "finish_place", "theory_rto_low_s"):
        assert METRICS[name].higher_is_better is None
    assert all(METRICS[name].higher_is_better is False for name in (*OF_BREAKS, OF_COMPLETION))
    theories = [metric for name, metric in METRICS.items() if metric.captured_at == "model" and "as_theory" not in name]
    assert all(metric.higher_is_better is None for metric in theories)


DIED = [
    number("outage_s", 1200.0, 0.0012),
    number("goodput_bit_s", 20_900.0, 9_170_000.0),
    number("retransmitted_packets", 40.0, 0.0),
    number("queue_delay_mean_s", 0.5, 0.01, "other"),
    number("aborts", 0.0, 1.0),
    number("undelivered_bytes", 0.0, 2_400_000.0),
]


def test_a_flow_that_died_is_told_as_a_break_and_not_as_an_improvement() -> None:
    means = dict(zip(((each.flow, each.metric) for each in DIED), senses(DIED), strict=True))
    assert means == {
        ("f", "outage_s"): "", ("f", "goodput_bit_s"): "", ("f", "retransmitted_packets"): "",
        ("other", "queue_delay_mean_s"): "better", ("f", "aborts"): "broke", ("f", "undelivered_bytes"): "broke",
    }  # fmt: skip
    first = ranked(DIED)
    assert [each.metric for each in first[:2]] == ["undelivered_bytes", "aborts"]
    dead = ChangedCell("r", "watch", (), first, "", (None, None))
    moved = ChangedCell("r", "watch", (), ranked([number("goodput_bit_s", 1.0, 1e9)]), "", (None, None))
    assert sorted([moved, dead], key=rank) == [dead, moved]
    shown = headline(dead)
    assert shown is not None and shown.metric == "undelivered_bytes"


def test_what_vanished_stands_with_what_moved() -> None:
    gone, little, sure = number("setup_time_s", 0.04, None), number("packets", 100, 101), number("packets", 0, 5)
    assert ranked([sure, little, gone]) == (gone, little, sure)
    assert sense(number("completion_time_s", 3.0, None)) == "broke"
