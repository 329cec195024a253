"""Flows that share a network: while all run, and after the first one ends. Against sums by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from netwarp.measure.groups.flow_sharing import flow_sharing_metrics, span_metrics
from netwarp.measure.observation import FlowObservation, Window
from support.recorded_cell import make_cell

MS = 10**6
CELL = make_cell("tcp")


def transfer(first_ms: int, end_ms: int, step_ms: int, size: int) -> FlowObservation:
    """`size` new bytes every `step_ms` from the first arrival to the end."""
    t_ns = np.arange(first_ms, end_ms + 1, step_ms) * MS
    data = SimpleNamespace(t_ns=t_ns, new_bytes=np.full(len(t_ns), size), ip_bytes=np.full(len(t_ns), size))
    receiver: Any = SimpleNamespace(data=data)
    window = Window(first_ms * MS, int(t_ns[-1]), complete=True)
    return FlowObservation(CELL, CELL.flows[0], receiver=receiver, window=window)


def datagrams(first_ms: int, end_ms: int, step_ms: int, size: int) -> FlowObservation:
    """The same of netwarp's own UDP, each datagram twice."""
    t_ns = np.repeat(np.arange(first_ms, end_ms + 1, step_ms) * MS, 2)
    first = np.arange(len(t_ns)) % 2 == 0
    whole = np.full(len(t_ns), size)
    found: Any = SimpleNamespace(arrived=SimpleNamespace(t_ns=t_ns, first=first, payload_bytes=whole, ip_bytes=whole))
    return FlowObservation(CELL, CELL.flows[0], datagrams=found, window=Window(first_ms * MS, int(t_ns[-1]), True))


def test_datagrams_have_a_share_too() -> None:
    both = {"a": transfer(0, 1000, 10, 100), "b": datagrams(0, 1000, 10, 300)}
    found, cell = flow_sharing_metrics(both)
    assert found["b"]["share_all_run_ratio"] == pytest.approx(0.75)
    assert cell["jain_all_run_index"] == pytest.approx(0.8)
    of_span, of_cell = span_metrics(both, 0, 500 * MS)
    assert of_span["b"]["span_goodput_bit_s"] == pytest.approx(300 * 8 * 100)
    assert of_span["b"]["span_throughput_bit_s"] == pytest.approx(600 * 8 * 100)
    assert of_cell["span_jain_index"] == pytest.approx(0.8)


def test_shares_places_and_what_is_gained() -> None:
    flows = {
        "slow": transfer(0, 1000, 10, 100),
        "fast": transfer(100, 500, 10, 300),
        "last": transfer(50, 2000, 10, 100),
    }
    found, cell = flow_sharing_metrics(flows)
    # all run from 100 to 500 ms: 100, 300 and 100 B every 10 ms
    assert {name: one["goodput_all_run_bit_s"] for name, one in found.items()} == {
        "slow": 80_000, "fast": 240_000, "last": 80_000,
    }  # fmt: skip
    assert [found[name]["share_all_run_ratio"] for name in flows] == [0.2, 0.6, 0.2]
    assert [found[name]["finish_place"] for name in flows] == [2, 1, 3]
    assert cell["all_run_s"] == pytest.approx(0.4)
    assert cell["jain_all_run_index"] == pytest.approx(5**2 / (3 * (1 + 9 + 1)))
    assert found["fast"]["after_first_end_ratio"] is None
    assert found["slow"]["after_first_end_ratio"] == pytest.approx(1)  # nothing changed for it
    doubled = flow_sharing_metrics({"a": transfer(0, 500, 10, 100), "b": transfer(0, 400, 20, 100)})[0]
    assert doubled["a"]["goodput_after_first_end_bit_s"] == pytest.approx(80_000)


@pytest.mark.parametrize(
    "other", [FlowObservation(CELL, CELL.flows[0]), transfer(600, 700, 10, 1)], ids=["never began", "after the end"]
)
def test_flows_that_never_run_together_say_nothing(other: FlowObservation) -> None:
    assert flow_sharing_metrics({"a": transfer(0, 500, 10, 100), "b": other}) == ({"a": {}, "b": {}}, {})


def test_a_flow_alone_shares_with_no_other() -> None:
    assert flow_sharing_metrics({"a": transfer(0, 500, 10, 100)}) == ({"a": {}}, {})
