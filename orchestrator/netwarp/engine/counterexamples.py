"""counterexamples/<claim>/ of a run: the smallest schedule of packets with which a claim does not hold, as a spec that
replays it alone, its numbers and its captures.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from ..core.types import Cell, Outcome
from ..core.units import counted
from ..experiment import Spec
from ..plan.replay import replay_spec
from ..plan.schedules import ScheduledCell, scheduled_cells
from ..results import Results
from ..results.claims import violations
from ..store.packs import PackedPath
from ..store.run_dir import RunDir, write_atomic

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
    shutil.rmtree(run.counterexamples, ignore_errors=True)
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
            shutil.copytree(captures, directory / "capture")
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
