"""The metrics of flows that share a network (docs/metrics.md, Together)."""

from __future__ import annotations

TOGETHER_METRICS: dict[str, str] = {
    "goodput_all_run_bit_s": "bit/s",
    "share_all_run_ratio": "ratio",
    "goodput_after_first_end_bit_s": "bit/s",
    "after_first_end_ratio": "ratio",
    "finish_place": "place",
}
"""Metric of a flow -> unit. They are there for cells with two flows or more only."""
TOGETHER_CELL_METRICS: dict[str, str] = {"jain_all_run_index": "ratio", "all_run_s": "s"}
"""Metric of the whole cell -> unit."""
