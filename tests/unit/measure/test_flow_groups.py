"""Completion times of a group of flows."""

from __future__ import annotations

from netwarp.measure.groups.flow_groups import group_metrics
from support.specs import cell_of

SPEC = """\
format = 1
name = "test"
duration = "10 s"
shape = { kind = "two-path" }
[default.link]
rate = "10 Mbit/s"
queue = "50 packets"
[flow.x]
from = "a"
to = "b"
paths = ["p1"]
protocol = "tcp"
"""


def test_percentiles_are_of_the_flows_and_a_flow_that_did_not_complete_is_the_last() -> None:
    cell = cell_of(SPEC + 'count = 20\nbytes = "10 kB"\n')
    times = {f"x{number}": {"completion_time_s": float(number), "goodput_bit_s": 1.0} for number in range(1, 21)}
    (group,) = group_metrics(cell, times).values()
    assert group["completion_time_mean_s"] == 10.5
    names = ("p50", "p90", "p95", "p99", "max")
    assert [group[f"completion_time_{name}_s"] for name in names] == [10, 18, 19, 20, 20]
    (group,) = group_metrics(cell, times | {"x3": {"completion_time_s": None, "goodput_bit_s": 1.0}}).values()
    assert [group[f"completion_time_{name}_s"] for name in names] == [11, 19, 20, None, None]
    assert (group["completed_flows"], group["completion_time_mean_s"], group["group_flows"]) == (19, None, 20)


def test_classes_are_groups_of_their_own() -> None:
    sizes_of = '{ exponential = "10 kB" }'
    text = SPEC + 'classes = { mice = "10 kB", elephants = "1 MB" }\n'
    text += f'arrivals = {{ process = "regular", rate = "2 /s", size = {sizes_of} }}\n'
    cell = cell_of(text)
    sizes = {flow.name: flow.total_bytes or 0 for flow in cell.flows}
    times = {name: {"completion_time_s": size / 1e6} for name, size in sizes.items()}
    groups = group_metrics(cell, times)
    assert list(groups) == ["x", "x.mice", "x.elephants"]
    assert groups["x.mice"]["completion_time_max_s"] == max(size for size in sizes.values() if size <= 10_000) / 1e6
    assert groups["x.mice"]["group_flows"] == sum(size <= 10_000 for size in sizes.values())


def test_flows_without_a_size_do_not_complete() -> None:
    cell = cell_of(SPEC + "count = 2\n")
    (group,) = group_metrics(
        cell, {name: {"goodput_bit_s": rate} for name, rate in (("x1", 1.0), ("x2", 3.0))}
    ).values()
    assert (group["completed_flows"], group["completion_time_p50_s"], group["group_jain_index"]) == (None, None, 0.8)
