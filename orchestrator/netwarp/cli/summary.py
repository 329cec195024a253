"""Prints the summary of a run: the answer and the grid of claims, or tables, and where the report is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core import invocation
from ..core.numbers import duration, speed, with_unit
from ..core.outputs import Answer
from ..core.types import Outcome
from ..core.units import counted
from ..engine.invalid_cells import InvalidCell
from ..engine.run_directory import Run
from ..plan.notes import notes
from ..plan.types import Plan
from ..present.answer_words import sentences
from ..present.claim_blocks import Statement, statements
from ..present.conclusions import (
    answer,
    broken_flows,
    claim_grid,
    key_numbers,
    verdict_words,
)
from ..present.result_tables import Grid, GridField, Number, make_grid
from ..present.run_data import metric_names, read_run
from ..present.run_summary import robustness
from ..present.style import VERDICTS
from ..results import Results
from ..results.answers import file_name
from ..results.identical_levels import identical_levels
from ..store.run_dir import RunDir, read_json
from ..store.tables import read_rows
from .output import make_table, plain_console

SHOWN_FAILURES = 10
SHOWN_SENTENCES = 4
NARROW = 12
"""Of a column of the grid, which leaves room for the claims."""


def print_summary(run: Run, named: AbstractSet[str] = frozenset()) -> None:
    """The answer, the grid of claims, what is wrong and where the report is. The last line is the run directory. named:
    cells that did not complete and whose reasons stderr has: they are not said twice.
    """
    plan, directory, results = run.plan, run.directory, run.results
    console = plain_console()
    virtual_s = sum(outcome.virtual_s or 0.0 for outcome in results.outcomes.values())
    console.print(f"\n{plan.title}", style="bold")
    for line in _broken(results):
        console.print(f"ended badly: {line}", style="bold")
    data = read_run(directory, plan, results.units)
    claims = statements(data)
    if claims:
        _print_claims(console, plan, claims, answer(plan, claims, data.system), report=run.page is not None)
    elif plan.tables:
        for table in plan.tables:
            if (grid := make_grid(data, table)) is not None:
                _print_table(console, plan, grid)
    else:
        completed = [cell for cell in results.by_cell.values() if results.completed(cell.cell_id)]
        measured = ((one.flow, one.metric, one.value) for cell in completed for one in cell)
        for line in key_numbers(len(completed), measured, data.metrics, data.plan.groups):
            console.print(line)
    for asked in plan.answers if plan.summary is None else ():
        rows = read_rows(directory.tables / f"{file_name(asked)}.csv")
        _print_answer(console, plan, asked, rows, where=" in the report" if run.page is not None else "")
    _print_identical(console, plan, directory, results)
    for line in (*_unused_paths(plan, results), *notes(plan, run.manifest.backend)):
        console.print(f"note: {line}")
    whole = "" if run.wall_s is None else f"; {duration(run.wall_s)} with tables and report"
    outcomes = ", ".join(f"{count} {name}" for name, count in run.outcomes.items())
    console.print(f"cells: {outcomes} ({speed(virtual_s, data.manifest.wall_s)}{whole})")
    wrong = [(cell_id, o) for cell_id, o in results.outcomes.items() if o.outcome is not Outcome.COMPLETED]
    failed = [(cell_id, outcome) for cell_id, outcome in wrong if cell_id not in named]
    for cell_id, outcome in failed[:SHOWN_FAILURES]:
        console.print(f"  {outcome.outcome} {cell_id}: {outcome.reason}")
    if len(failed) > SHOWN_FAILURES:
        console.print(f"  ... and {len(failed) - SHOWN_FAILURES} more: tables/cells.csv")
    if said := len(wrong) - len(failed):
        console.print(f"  {said} with the reason on stderr, as it ended, and in {directory.tables / 'cells.csv'}")
    total, captures = directory.sizes()
    console.print(f"size: {size_words(total, captures)}")
    if captures > total / 2:
        remove = invocation.command("clean", "--captures", directory.root)
        console.print(f"to keep the numbers without the captures: {remove}", soft_wrap=True)
    if run.page is not None:
        print(f"report: {run.page.resolve()}")
    print(directory.root)


def _broken(results: Results) -> tuple[str, ...]:
    """The flows that ended badly: no number says so by itself."""
    every = (one for cell in results.by_cell.values() if results.completed(cell.cell_id) for one in cell)
    return broken_flows((one.cell_id, one.flow, one.metric, one.value) for one in every)


def invalid_lines(run: Run, cells: Sequence[InvalidCell]) -> Iterator[str]:
    """The key numbers of INVALID cells, each under the reason why no table has them."""
    if not cells:
        yield "No cell is INVALID."
        return
    yield "INVALID cells: a self-check failed, and what it says may be wrong of any number. No other table has these."
    units = {each.metric: each.unit for cell in cells for each in cell.measurements}
    for cell in cells[:SHOWN_FAILURES]:
        yield f"  INVALID {cell.cell_id}: {cell.reason}"
        measured = ((one.flow, one.metric, one.value) for one in cell.measurements)
        for line in key_numbers(1, measured, metric_names(run.plan, units), {}):
            yield f"    (not to be relied on) {line}"
    yield f"all of their numbers: {run.directory.tables / 'invalid.csv'}"


def _print_answer(console: Console, plan: Plan, answer: Answer, rows: list[dict[str, str]], *, where: str) -> None:
    """The answer in words, as many sentences as fit; the table holds all of it."""
    words = sentences(plan, answer, rows)
    if not words:
        return
    console.print(f"\n{answer.title}", style="bold")
    for sentence in words[:SHOWN_SENTENCES]:
        console.print(f"- {sentence}")
    if len(words) > SHOWN_SENTENCES:
        more = len(words) - SHOWN_SENTENCES
        console.print(f"  ... and {more} more{where}; every choice: tables/{file_name(answer)}.csv")


def _print_claims(console: Console, plan: Plan, claims: Sequence[Statement], said: str, *, report: bool) -> None:
    """The answer in a sentence; what the paper says first, and what each source says of it."""
    console.print(said)
    grid = claim_grid(plan, claims)
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("")
    for name, title in grid.columns:
        shown.add_column(Text(title), style="bold" if name == "measured" else "", max_width=NARROW)
    for claim in grid.first:
        fields = [
            f"{VERDICTS[field.verdict][0] if field.verdict else ' '} {field.text}\n{field.note}".rstrip()
            for field in grid.row(claim)
        ]
        shown.add_row(Text(f"{claim.id} {claim.text}"), *map(Text, fields))
    console.print()
    console.print(shown)
    verdicts = Counter(claim.shown for claim in claims)
    where = "the report, and tables/claims.csv" if report else "tables/claims.csv"
    console.print(f"\n{counted(len(claims), 'claim')}: {verdict_words(verdicts)}; each with its number: {where}")
    if left_out := sum(claim.left_out for claim in claims):
        console.print(robustness(left_out))


def _print_table(console: Console, plan: Plan, grid: Grid) -> None:
    """Row factors down, column factors across; ours, and the first published number beside it in parentheses."""
    known = {source.name for source in plan.sources}
    place = next((number for number, (name, _, _) in enumerate(grid.sources) if name in known), None)
    published = "" if place is None else f" ({grid.source_heads[place]})"
    unit = "" if grid.unit in ("", *grid.title.lower().split()) else f", {grid.unit}"
    # a line of its own: rich would wrap a title at the table's width
    console.print(f"{grid.title}: measured{published}{unit}", style="bold")
    across = " ".join(grid.column_factors)
    numeric = (f">{' '.join(level for level in head if level) or grid.metric}" for head in grid.column_heads)
    shown = make_table("", *grid.row_factors, *numeric)
    for head, row in zip(grid.row_heads, grid.rows, strict=True):
        numbers = ("" if entry is None else _place_text(entry, place) for entry in row)
        shown.add_row(*(Text(level or "-") for level in head), *map(Text, numbers))
    if across:
        console.print(f"across: {across}")
    console.print(shown)
    measured = [
        entry.measured for row in grid.rows for entry in row if entry is not None and entry.measured is not None
    ]
    for line in _sureness(measured):
        console.print(line)
    if grid.missing:
        console.print(f"-: {grid.missing}")


def _place_text(place: GridField, published: int | None) -> str:
    ours = place.measured
    text = "-" if ours is None else f"{ours.text} \u00b1 {ours.half}" if ours.half else ours.text
    text += f" [{ours.share}]" if ours is not None and ours.share else ""
    theirs = None if published is None else place.references[published]
    return text if theirs is None else f"{text} ({theirs.text})"


def _sureness(measured: Sequence[Number]) -> Iterator[str]:
    """Sentences on how to read numbers that depend on the seed."""
    draws = sorted({number.n for number in measured if number.half})
    if draws:
        count = f"{draws[0]}" if len(draws) == 1 else f"{draws[0]} to {draws[-1]}"
        yield f"\u00b1 is the 95 % confidence interval of the mean of {count} draws (Student's t)"
    if any(number.share for number in measured):
        yield "[5 of 10]: only so many draws have a value; in the others it did not happen within the window"
    single = sum(number.n == 1 for number in measured)
    if single == len(measured) > 0:
        yield "one draw of something random each: no interval (--repetitions 5)"
    elif single:
        share = f"{single} of {len(measured)} numbers are"
        yield f"{share} one draw of something random each: no interval (--repetitions 5)"


def _print_identical(console: Console, plan: Plan, directory: RunDir, results: Results) -> None:
    """Prints the levels that changed no packet."""
    there = {
        cell_id: directory.cell(cell_id).packets
        for cell_id, outcome in results.outcomes.items()
        if outcome.outcome is Outcome.COMPLETED
    }
    digests = {cell_id: read_json(path, dict[str, str]) for cell_id, path in there.items() if path.exists()}
    for identical in identical_levels(plan, digests):
        console.print(f"note: {identical.sentence}")


def _unused_paths(plan: Plan, results: Results) -> Iterator[str]:
    """MPTCP flows without a subflow on some of their paths; no other number shows that."""
    paths = {(cell.id, flow.name): len(flow.paths) for cell in plan.cells for flow in cell.flows}
    with_unused: dict[str, list[str]] = {}
    several: Counter[str] = Counter()
    for row in (row for rows in results.by_cell.values() for row in rows):
        if row.metric == "paths_used" and paths.get((row.cell_id, row.flow), 0) > 1 and row.value is not None:
            several[row.flow] += 1
            if row.value < paths[row.cell_id, row.flow]:
                with_unused.setdefault(row.flow, []).append(row.cell_id)
    for flow, cells in with_unused.items():
        share = f"{len(cells)} of {counted(several[flow], 'cell')}"
        yield f'flow "{flow}" had no subflow on some of its paths in {share} (metric paths_used; the first: {cells[0]})'


def size_words(total: int, captures: int) -> str:
    """The space of a run on the disk: "8.803 MB, of it 756.8 kB captures"."""
    return f"{with_unit(total, 'bytes')}, of it {with_unit(captures, 'bytes') if captures else 'no'} captures"
