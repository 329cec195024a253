"""Holds every number of a cell that the oracle knows against its own: exactly for counts, to a nanosecond for times."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cell import CellFiles
from .counters import of_checksums, of_hosts, of_sockets
from .delays import delay_numbers
from .flows import FlowSeen, Numbers, flow_numbers, own, reversed_json, seen_flow
from .links import PLACES, held, in_windows, link_numbers, lost_numbers, managed, over_link, waiting_of_flow
from .queues import Passage, flow_passages, idle_of, lowest_mean, passage_numbers, passages, told_apart
from .shared import all_run, groups, jain, span

Json = dict[str, Any]
UNKNOWN = -1.0
"""A capacity that the oracle does not compute: that of delivery opportunities."""
GRAIN_S = 2e-9
"""Times are whole nanoseconds; two of them in floating point may be this far apart."""
RELATIVE = 1e-9


@dataclass(frozen=True)
class Difference:
    """A number of a cell that the oracle has otherwise."""

    cell_id: str
    flow: str
    metric: str
    theirs: float | None
    ours: float | None

    def __str__(self) -> str:
        return f"{self.cell_id}: {self.flow or 'the cell'}: {self.metric} is {self.theirs}, by the oracle {self.ours}"


@dataclass
class Judged:
    """What came of a cell: how many numbers were held, those that differ, flows that could not be judged."""

    held: int = 0
    by_metric: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    counters: int = 0
    windows: dict[tuple[str, str, str], list[float | None]] = field(default_factory=dict)
    """What tables/windows.csv has."""

    def hold_windows(self, cell_id: str, subject: str, series: str, ours: Sequence[float | None]) -> None:
        """Compare the windows of one series, rounded as the table rounds."""
        if not ours:  # a cell that is shorter than a window
            return
        theirs = self.windows.get((cell_id, subject, series))
        if theirs is None or len(theirs) != len(ours):
            found = None if theirs is None else float(len(theirs))
            self.differences.append(Difference(cell_id, subject, f"{series} (windows)", found, float(len(ours))))
            return
        grain = 0.51 * 10.0 ** -PLACES[series]
        for number, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            self.held += 1
            self.by_metric[f"{series} (windows)"] = self.by_metric.get(f"{series} (windows)", 0) + 1
            if (one is None) != (other is None) or (
                one is not None and other is not None
                and not math.isclose(one, other, rel_tol=RELATIVE, abs_tol=grain + GRAIN_S * series.endswith("_s"))
            ):  # fmt: skip
                name = f"{series} (windows)"
                self.differences.append(Difference(cell_id, f"{subject} window {number}", name, one, other))

    def hold(self, cell_id: str, flow: str, metric: str, theirs: float | None, ours: float | None) -> None:
        """Compare one number."""
        self.held += 1
        self.by_metric[metric] = self.by_metric.get(metric, 0) + 1
        if not same(theirs, ours, metric):
            self.differences.append(Difference(cell_id, flow, metric, theirs, ours))


def same(theirs: float | None, ours: float | None, metric: str) -> bool:
    """True if two numbers are one."""
    if theirs is None or ours is None:
        return theirs is None and ours is None
    absolute = GRAIN_S if metric.endswith("_s") else 0.0
    return math.isclose(theirs, ours, rel_tol=RELATIVE, abs_tol=absolute)


def table_of(run: Path) -> dict[tuple[str, str, str], float | None]:
    """tables/measurements.csv: (cell, flow, metric) -> value."""
    with (run / "tables" / "measurements.csv").open(newline="") as file:
        return {
            (row["cell_id"], row["flow"], row["metric"]): float(row["value"]) if row["value"] else None
            for row in csv.DictReader(file)
        }


def windows_of(run: Path) -> dict[tuple[str, str, str], list[float | None]]:
    """tables/windows.csv: (cell, flow or direction, series) -> a value a window."""
    found: dict[tuple[str, str, str], list[float | None]] = {}
    path = run / "tables" / "windows.csv"
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                key = (row["cell_id"], row["flow"], row["series"])
                found.setdefault(key, []).append(float(row["value"]) if row["value"] else None)
    return found


def judge_run(run: Path) -> Judged:
    """Every completed cell of a run."""
    judged = Judged(windows=windows_of(run))
    table = table_of(run)
    for directory in sorted((run / "cells").iterdir()):
        if (directory / "cell.json").exists() and any(key[0] == directory.name for key in table):
            judge_cell(CellFiles(directory), table, judged)
    return judged


def judge_cell(files: CellFiles, table: dict[tuple[str, str, str], float | None], judged: Judged) -> None:
    """One cell, against the rows of it in a table."""
    cell_id = files.directory.name
    for flow, metric, ours in expected(files, judged):
        if (cell_id, flow, metric) in table:
            judged.hold(cell_id, flow, metric, table[cell_id, flow, metric], ours)
        elif ours is not None:
            judged.differences.append(Difference(cell_id, flow, f"{metric} (no row)", None, ours))


def expected(files: CellFiles, judged: Judged) -> Iterator[tuple[str, str, float | None]]:
    """Every number of a cell that the oracle knows: (flow, metric, value)."""
    cell_id = files.directory.name
    seen = {flow["name"]: seen_flow(files, flow) for flow in files.cell["flows"]
            if flow["protocol"] in ("tcp", "sctp", "mptcp", "udp") and own(flow)}  # fmt: skip
    back = {turned["name"]: seen_flow(files, turned) for flow in files.cell["flows"]
            if (turned := reversed_json(flow)) is not None and own(flow)}  # fmt: skip
    judged.unjudged += [f"{cell_id} {each.name}: {each.unjudged}" for each in (*seen.values(), *back.values())
                        if each.unjudged]  # fmt: skip
    numbers: dict[str, Numbers] = {}
    for name, each in (seen | back).items():
        if not each.unjudged:
            numbers[name] = flow_numbers(files, each, capacity(files, each)) | delay_numbers(files, each)
    whole = len(seen) == len(files.cell["flows"]) and not any(each.unjudged for each in seen.values())
    of_cell: Numbers = {}
    measure = files.cell.get("measure")
    if whole:
        _side_by_side(files, list(seen.values()), numbers, of_cell)
    over: dict[str, list[Passage]] = {}
    kept = None if _moved(files) else held(files)
    for name, each in seen.items():
        if measure and not each.unjudged and not _copies(files):
            passed = flow_passages(files, each)
            waiting = waiting_of_flow(files, each, kept)
            numbers[name] |= lost_numbers(passed, waiting)
            if waiting == 0 or told_apart(passed):
                numbers[name] |= passage_numbers(passed)
                over[name] = passed
    for name, found in numbers.items():
        yield from ((name, metric, value) for metric, value in found.items())
    if whole:
        yield from ((name, metric, value) for name, found in groups(files.cell["flows"], numbers).items()
                    for metric, value in found.items())  # fmt: skip
        yield from (("", metric, value) for metric, value in of_cell.items())
        yield from (("", metric, value) for metric, value in managed(files))
    if whole and measure and not _copies(files):
        links = {}
        for name in measure.get("links") or ():
            link, _, side = name.rpartition(".")
            passed = over_link(files, list(seen.values()), (link, side))
            if passed is not None:
                waiting = None if kept is None else kept[link, side]
                found = link_numbers(files, (link, side), passed, waiting)
                if waiting == 0 or told_apart(passed):
                    found |= passage_numbers(passed)
                    links[link, side] = passed
                yield from ((name, metric, value) for metric, value in found.items())
        exact = {name for name in over if waiting_of_flow(files, seen[name], kept) == 0}
        exact |= {".".join(hop) for hop in links if kept is not None and not kept[hop]}
        if kept is None:
            exact = set()
        for (subject, series), values in in_windows(files, list(seen.values()), over, links, exact).items():
            judged.hold_windows(cell_id, subject, series, values)
    for name, theirs, ours in (*of_hosts(files, list(seen.values())), *of_checksums(files),
                               *(row for each in seen.values() for row in of_sockets(files, each))):  # fmt: skip
        judged.counters += 1
        if theirs != ours:
            judged.differences.append(Difference(cell_id, "kernel", name, theirs, ours))


def _side_by_side(files: CellFiles, flows: Sequence[FlowSeen], numbers: dict[str, Numbers], of_cell: Numbers) -> None:
    shared, more = all_run(flows)
    of_cell |= more
    goodputs = [numbers[flow.name].get("goodput_bit_s") for flow in flows]
    of_cell["jain_index"] = None if None in goodputs else jain([rate for rate in goodputs if rate is not None])
    measure = files.cell.get("measure")
    for name, found in shared.items():
        numbers[name] |= found
    if measure and measure.get("span_ns"):
        of_span, more = span(flows, *measure["span_ns"])
        of_cell |= more
        for name, found in of_span.items():
            numbers[name] |= found


def _moved(files: CellFiles) -> bool:
    """True if packets may be neither behind a path nor in its qdiscs, though they are not lost: agents keep some."""
    return any(node.get("agent") for node in files.cell["nodes"])


def _copies(files: CellFiles) -> bool:
    """True if links change packets or copy them: then no mark tells one from another."""
    sides = [shape for name in files.links for side in ("forward", "backward") for _, shape in files.shapes(name, side)]
    return files.corrupting or any(
        side.get("duplicate_ratio") or any(rule["action"] == "duplicate" for rule in side.get("packet_rules", ()))
        or side.get("opportunities") or side.get("slots")
        for side in sides
    )  # fmt: skip


def capacity(files: CellFiles, seen: FlowSeen) -> float | None:
    """The sum of the bottlenecks of a flow's paths, the mean of each rate over the window; None: one is unlimited."""
    if seen.first is None or seen.end is None or seen.end <= seen.first:
        return None
    total = 0.0
    for route in files.routes(seen.flow):
        if any(shape.get("opportunities") for hop in route for _, shape in files.shapes(*hop)):
            return UNKNOWN
        mean = lowest_mean(files, route, seen.first, seen.end)
        if mean is None:
            return None
        total += mean
    return total


__all__ = ["Difference", "Judged", "idle_of", "json", "judge_run", "passages"]
