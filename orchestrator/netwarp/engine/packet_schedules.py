"""Schedules of packets: grows the plan of a run by them, and writes the smallest with which a claim does not hold.

running.py grows the plan after each round of cells; it and analysis.py have the counterexamples written.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..core.errors import SpecError
from ..core.names import MOST_CELLS
from ..core.schedule_levels import PacketPosition
from ..core.types import Cell, Outcome
from ..core.units import counted
from ..experiment import Spec
from ..plan.replay import replay_spec
from ..plan.schedules import ScheduledCell, children, directions_of, scheduled_cells, with_cells
from ..plan.types import Plan
from ..results import Results
from ..results.claims import violations
from ..store import compressed
from ..store.packs import PackedPath
from ..store.run_dir import RunDir, read_json, write_atomic
from .cell_tasks import keep_positions
from .events import Notice, Progress


def to_expand(plan: Plan) -> frozenset[str]:
    """Ids of the cells below which there may be further schedules."""
    return frozenset(each.cell.id for each in scheduled_cells(plan) if each.size < each.schedule.together)


def grown(plan: Plan, run: RunDir, tried: Collection[str], progress: Progress) -> Plan:
    """The plan with the schedules that follow from its cells. tried: ids of cells whose schedules it has already.

    Below a cell that did not complete nothing is added, and nothing below one whose captures equal those of another of
    its combination. Raises SpecError if there would be too many.
    """
    first: dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], str] = {}
    new: list[Cell] = []
    equal = failed = 0
    for each in sorted(scheduled_cells(plan), key=lambda scheduled: scheduled.size):
        name = each.cell.id
        if each.size >= each.schedule.together:
            continue
        directory = run.cell(name)
        if directory.read_outcome().outcome is not Outcome.COMPLETED:
            failed += name not in tried
            continue
        digests = tuple(sorted(read_json(directory.packets, dict[str, str]).items()))
        if first.setdefault((each.combination, digests), name) != name:
            equal += name not in tried
            continue
        if name not in tried:
            new += children(each, _positions(each, run))
    if len(plan.cells) + len(new) > MOST_CELLS:
        raise SpecError(
            f"{len(plan.cells) + len(new)} cells with all schedules of packets, at most {MOST_CELLS}: lower `first` or "
            "`together` of the schedule"
        )
    skipped = [
        text
        for number, text in (
            (equal, "whose packets are those of another cell"),
            (failed, "that did not complete"),
        )
        if number
        for text in [f"nothing below {counted(number, 'cell')} {text}"]
    ]
    if new:
        progress(Notice("; ".join([f"{counted(len(new), 'schedule')} of packets more, from what ran", *skipped])))
    return with_cells(plan, [*plan.cells, *new])


def _positions(each: ScheduledCell, run: RunDir) -> list[PacketPosition]:
    """The packets of the schedule's directions, in the order of sending."""
    directory = run.cell(each.cell.id)
    there = compressed.exists(directory.positions)
    every = read_json(directory.positions, list[PacketPosition]) if there else keep_positions(directory)
    wanted = {(link.name, side) for link, side in directions_of(each.schedule, each.cell)}
    return [position for position in every if (position.link, position.direction) in wanted]


ENDED = "not-completed"
"""Directory of the smallest schedule whose cell did not complete."""
MOST_LETTERS = 60
"""Of a claim's name in the name of its directory."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest of the schedules with which something does not hold. name: of its directory."""

    name: str
    cell: Cell
    level: str
    text: str


def write_counterexamples(spec: Spec, results: Results, run: RunDir) -> list[Counterexample]:
    """Write a directory for each claim about every schedule that does not hold, and one for cells that did not
    complete. Removes those of an earlier call.
    """
    run.counterexamples.remove_tree(ignore_errors=True)
    written = list(_counterexamples(results))
    for each in written:
        directory = run.counterexamples / each.name
        write_atomic(
            directory / "spec.toml",
            replay_spec(spec, each.cell, f"{each.name}: {each.level}").encode(),
        )
        write_atomic(directory / "about.txt", each.text.encode())
        captures = run.cell(results.name(each.cell)).capture
        if not isinstance(captures, PackedPath) and captures.is_dir():
            captures.copy_tree(directory / "capture")
    return written


def _counterexamples(results: Results) -> Iterator[Counterexample]:
    by_cell = {id(each.cell): each for each in scheduled_cells(results.plan)}
    taken = {ENDED}
    for claim in results.plan.claims:
        if claim.kind == "every" and claim.of_schedules:
            missed = [(by_cell[id(cell)], value) for cell, value in violations(claim, results) if id(cell) in by_cell]
            if missed:
                each, value = min(missed, key=lambda pair: pair[0].size)
                lines = [
                    f"{claim.id}: {claim.text}",
                    f"{claim.metric} is {value!r}; {claim.expected!r} within {claim.tolerance!r} was claimed.",
                    f"{counted(len(missed), 'schedule')} did not keep it; this is the smallest.",
                ]
                yield _counterexample(_name(claim.name, taken), each, lines, results)
    ended = [
        (each, outcome)
        for each in by_cell.values()
        if (outcome := results.outcomes.get(results.name(each.cell))) is not None
        and outcome.outcome is not Outcome.COMPLETED
    ]
    if ended:
        each, outcome = min(ended, key=lambda pair: pair[0].size)
        lines = [
            f"{outcome.outcome}: {outcome.reason}",
            f"{counted(len(ended), 'schedule')} did not complete; this is the smallest.",
        ]
        yield _counterexample(ENDED, each, lines, results)


def _counterexample(name: str, each: ScheduledCell, lines: list[str], results: Results) -> Counterexample:
    level = each.cell.factors[each.factor]
    others = ", ".join(f"{factor}={text}" for factor, text in each.cell.factors.items() if text != "-")
    lines += [f"Levels: {others}", f"Cell: {results.name(each.cell)}", "Replay it: netwarp run spec.toml"]
    return Counterexample(name, each.cell, level, "\n".join(lines) + "\n")


def _name(claim: str, taken: set[str]) -> str:
    """The name of a claim's directory, which no other has: with a number if its letters are those of another's. Adds
    it to `taken`.
    """
    first = re.sub(r"[^A-Za-z0-9._-]+", "-", claim).strip("-.")[:MOST_LETTERS] or "claim"
    numbered = (f"{first}-{number}" for number in itertools.count(2))
    name = next(candidate for candidate in itertools.chain([first], numbered) if candidate not in taken)
    taken.add(name)
    return name
