"""The groups of the catalogue: each has a function, which computes metrics of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.metrics.catalogue import GROUPS, METRICS
from netwarp.measure import cell as cell_module
from netwarp.measure.groups import GROUP_FUNCTIONS, flow_metrics
from netwarp.measure.observation import FlowObservation
from support.recorded_cell import derive, make_cell, make_directory


def test_every_group_has_a_function() -> None:
    assert {*GROUP_FUNCTIONS, "flow_sharing", "aqm", "agents", "cpu"} == set(GROUPS)


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
