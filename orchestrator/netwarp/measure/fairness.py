"""Shares of flows over windows of time: Jain's index and its course, and how soon the shares are fair after a join.

Flows that have a size (short ones that come and go beside others) are left out, unless every flow has one.

A flow runs in a window if its first payload arrived by the window's beginning and it ends (its stop, or the arrival of
its last byte) at the window's end at the earliest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from ..captures.native import Bools, Floats, Ints
from ..core.types import Measure
from .groups.flow_sharing import jain_index
from .observation import FlowObservation, goodput_known

STEPS = 10
"""Steps of a window in which it is moved along to find when shares become fair."""


@dataclasses.dataclass(frozen=True)
class Course:
    """The new payload of one flow at its receiver; with a flow of QUIC in the cell its IP bytes. t_ns: ascending, from
    T0; bytes_to: of all up to each packet.
    """

    name: str
    from_ns: int
    to_ns: int
    t_ns: Ints
    bytes_to: Floats

    def bytes_before(self, at_ns: Ints) -> Floats:
        """The bytes that arrived before these instants."""
        return np.concatenate([[0.0], self.bytes_to])[np.searchsorted(self.t_ns, at_ns, side="left")]


def courses(flows: Mapping[str, FlowObservation]) -> list[Course]:
    """Of the flows that began and were captured, and are after a share: those without a size, if there are any."""
    found = []
    goodput = goodput_known(flows.values())
    sharing = {name: flow for name, flow in flows.items() if flow.receiver is not None}  # UDP takes no share
    without_size = {name for name, flow in sharing.items() if flow.flow.total_bytes is None}
    for name, flow in flows.items():
        if flow.receiver is None or flow.window.first_ns is None or (without_size and name not in without_size):
            continue
        data = flow.receiver.data
        end = flow.cell.duration_ns if flow.window.end_ns is None else flow.window.end_ns
        order = np.argsort(data.t_ns, kind="stable")
        amounts = np.cumsum((data.new_bytes if goodput else data.ip_bytes)[order], dtype=np.float64)
        found.append(Course(name, flow.window.first_ns, end, data.t_ns[order], amounts))
    return found


@dataclasses.dataclass(frozen=True)
class Windows:
    """Windows of one length from T0 on. from_s: their beginnings; rate_bit_s: of each flow, a number a window: its
    goodput, or, with a flow of QUIC in the cell, its throughput. running: of each flow, whether it runs in it.
    """

    from_s: Floats
    rate_bit_s: dict[str, Floats]
    running: dict[str, Bools]

    def jain(self) -> list[float | None]:
        """Jain's index of the flows that run in each window; None below two."""
        return [
            jain_index([float(self.rate_bit_s[name][number]) for name, runs in self.running.items() if runs[number]])
            for number in range(len(self.from_s))
        ]

    def count(self) -> list[int]:
        """How many flows run in each window."""
        return [sum(int(runs[number]) for runs in self.running.values()) for number in range(len(self.from_s))]


def windows_of(flows: Sequence[Course], length_ns: int, duration_ns: int) -> Windows:
    """The windows that lie in the cell's duration."""
    edges = np.arange(0, duration_ns + 1, length_ns, dtype=np.int64)
    rates = {flow.name: np.diff(flow.bytes_before(edges)) * 8e9 / length_ns for flow in flows}
    running = {flow.name: (edges[:-1] >= flow.from_ns) & (edges[1:] <= flow.to_ns) for flow in flows}
    return Windows(edges[:-1] / 1e9, rates, running)


def convergence_times(flows: Sequence[Course], asked: Measure) -> dict[str, float | None]:
    """Of each flow the time in s from its first arrival to the first instant from which on, for `fair_hold_ns`, in
    every window the goodput of every flow that runs is within `fair_ratio` of the mean over these flows. None: no other
    flow runs, or another one comes or goes before.

    After D. Bansal, H. Balakrishnan, S. Floyd, S. Shenker: Dynamic Behavior of Slowly-Responsive Congestion Control
    Algorithms (SIGCOMM 2001): the delta-fair convergence time (RFC 5166 2.3), for any number of flows.
    """
    changes = np.unique([edge for flow in flows for edge in (flow.from_ns, flow.to_ns)])
    times: dict[str, float | None] = {}
    for flow in flows:
        after = changes[changes > flow.from_ns]
        others = [each for each in flows if each.from_ns <= flow.from_ns < each.to_ns]
        until = int(after[0]) if len(after) else flow.from_ns
        times[flow.name] = _converged_s(others, flow.from_ns, until, asked) if len(others) > 1 else None
    return times


def _converged_s(flows: Sequence[Course], from_ns: int, until_ns: int, asked: Measure) -> float | None:
    step = max(1, asked.window_ns // STEPS)
    grid = np.arange(from_ns, until_ns + 1, step, dtype=np.int64)
    if len(grid) <= STEPS:
        return None
    passed = np.array([flow.bytes_before(grid) for flow in flows])
    amounts = passed[:, STEPS:] - passed[:, :-STEPS]
    fair = amounts.mean(axis=0)
    good = (np.abs(amounts - fair) <= asked.fair_ratio * fair).all(axis=0) & (fair > 0)
    needed = max(1, (asked.fair_hold_ns - asked.window_ns) // step + 1)
    if len(good) < needed:
        return None
    long = np.convolve(good.astype(np.int64), np.ones(needed, dtype=np.int64), "valid") == needed
    first = np.flatnonzero(long)
    return float(grid[first[0]] - from_ns) / 1e9 if len(first) else None
