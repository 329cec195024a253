"""The groups of the catalogue: each has a function, which computes metrics of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from netwarp.core.metrics.catalogue import GROUPS, METRICS
from netwarp.measure import cell as cell_module
from netwarp.measure.groups import GROUP_FUNCTIONS, flow_metrics
from netwarp.measure.groups.traffic import datagram_metrics
from netwarp.measure.observation import FlowObservation, Window
from support.recorded_cell import derive, make_cell, make_directory


def test_every_group_has_a_function() -> None:
    others = {"flow_sharing", "flow_groups", "queues", "aqm", "agents", "cpu", "datagrams", "quic"}
    assert {*GROUP_FUNCTIONS, *others} == set(GROUPS)


@pytest.mark.parametrize("name", ["tcp", "sctp", "mptcp"])
def test_a_group_returns_metrics_of_its_own(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[FlowObservation] = []

    def observed(observation: FlowObservation) -> dict[str, float | None]:
        seen.append(observation)
        return flow_metrics(observation)

    monkeypatch.setattr(cell_module, "flow_metrics", observed)
    cell = make_cell(name)
    derive(cell, make_directory(cell, name, tmp_path / name))
    for group, function in GROUP_FUNCTIONS.items():
        assert {METRICS[metric].group for metric in function(seen[0])} <= {group}


@pytest.mark.parametrize("packets", [1, 3])
def test_one_datagram_has_no_rate(packets: int) -> None:
    """A rate is of what comes after the first packet."""
    cell = make_cell("tcp")
    t_ns = np.arange(packets) * 1_000_000
    found = datagram_metrics(cell, cell.flows[0], t_ns, np.full(packets, 100), Window(0, 1_000_000_000))
    assert found["packets"] == packets
    assert found.get("throughput_bit_s") == (None if packets == 1 else pytest.approx(1600))
