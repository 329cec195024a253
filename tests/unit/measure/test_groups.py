"""The groups of the catalogue: each function computes its own metrics, and takes only those computed before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.metrics.catalogue import GROUPS, METRICS
from netwarp.measure import cell as cell_module
from netwarp.measure.groups import GROUP_FUNCTIONS, flow_metrics, needs_of
from netwarp.measure.observation import FlowObservation
from support.recorded_cell import derive, make_cell, make_directory


def test_every_group_has_a_function_that_takes_metrics_of_groups_before_it() -> None:
    assert {*GROUP_FUNCTIONS, "flow_sharing", "aqm", "agents", "cpu"} == set(GROUPS)
    order = list(GROUP_FUNCTIONS)
    for group, function in GROUP_FUNCTIONS.items():
        assert {METRICS[name].group for name in needs_of(function)} <= set(order[: order.index(group)])


@pytest.mark.parametrize("name", ["tcp", "sctp", "mptcp"])
def test_a_group_returns_metrics_of_its_own(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[FlowObservation] = []

    def observed(observation: FlowObservation) -> dict[str, float | None]:
        seen.append(observation)
        return flow_metrics(observation)

    monkeypatch.setattr(cell_module, "flow_metrics", observed)
    cell = make_cell(name)
    metrics = derive(cell, make_directory(cell, name, tmp_path / name)).metrics
    for group, function in GROUP_FUNCTIONS.items():
        own = function(seen[0], **{need: metrics[need] for need in needs_of(function)})
        assert {METRICS[metric].group for metric in own} <= {group}
