"""How flows share while all of them run, and what becomes of the rest when the first one ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..flow_packets import FlowPackets
from ..metrics import Window, jain_index


@dataclasses.dataclass(frozen=True)
class Transfer:
    """A flow's arrivals at its receiver, and its window. view None: the receiver was not captured."""

    view: FlowPackets | None
    window: Window

    def bit_s(self, from_ns: int, to_ns: int) -> float | None:
        """Goodput in (from, to]; None without a span or a capture."""
        if self.view is None or to_ns <= from_ns:
            return None
        data = self.view.data
        counts = (data.t_ns > from_ns) & (data.t_ns <= to_ns)
        return float(data.new_bytes[counts].sum()) * 8e9 / (to_ns - from_ns)


def together(transfers: Mapping[str, Transfer]) -> tuple[dict[str, dict[str, float | None]], dict[str, float | None]]:
    """(metrics of each flow, metrics of the cell); {} of both below two flows.

    All run from the last of the first arrivals to the first end (a flow's end: of its window); the next end closes
    the span after it. Nothing where a flow never began, or one ended before another began.
    """
    if len(transfers) < 2:
        return {name: {} for name in transfers}, {}
    begins = [one.window.first_ns for one in transfers.values()]
    ends = {name: one.window.end_ns for name, one in transfers.items()}
    known = sorted(end for end in ends.values() if end is not None)
    begun = [begin for begin in begins if begin is not None]
    if len(begun) < len(transfers) or len(known) < len(transfers) or known[0] <= max(begun):
        return {name: {} for name in transfers}, {}
    since, first, second = max(begun), known[0], known[1]
    rates = {name: one.bit_s(since, first) for name, one in transfers.items()}
    total = sum(rate for rate in rates.values() if rate is not None)
    found: dict[str, dict[str, float | None]] = {}
    for name, one in transfers.items():
        rate, end = rates[name], ends[name]
        after = one.bit_s(first, second) if end is not None and end > first else None
        found[name] = {
            "goodput_all_run_bit_s": rate,
            "share_all_run_ratio": rate / total if rate is not None and total else None,
            "goodput_after_first_end_bit_s": after,
            "after_first_end_ratio": after / rate if after is not None and rate else None,
            "finish_place": float(1 + np.searchsorted(known, end)) if end is not None else None,
        }
    cell = {"jain_all_run_index": jain_index(list(rates.values())), "all_run_s": (first - since) / 1e9}
    return found, cell
