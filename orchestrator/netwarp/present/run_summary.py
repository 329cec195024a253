"""The summary at the top of the report (the question, the answer, the grid of claims) and its section of counts. Every
number in it is counted from the run.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.numbers import fixed
from ..core.units import counted, counted_of, listed
from ..plan.make import BASE, ROBUSTNESS
from ..plan.notes import notes
from ..store.conclusion import tables_digest
from .claim_blocks import Statement
from .conclusions import answer, broken_flows, claim_grid, counts, distances, key_numbers, verdict_words
from .result_tables import Grid, difference
from .run_data import CellResult, RunData
from .style import OUTCOMES, VERDICTS

COMPLETED = "COMPLETED"
SHOWN_METRICS = 5
Checks = tuple[int, int]
"""Self-checks of all cells: how many were done, how many failed."""


def summarise(data: RunData, grids: Sequence[Grid], claims: Sequence[Statement], checks: Checks) -> dict[str, Any]:
    """What summary.html.j2 (the answer first) and counts.html.j2 say. counts: (name, symbol, CSS class, count)."""
    outcomes = Counter(result.outcome for result in data.cells)
    verdicts = Counter(claim.shown for claim in claims)
    limits = [f"{note[:1].upper()}{note[1:]}." for note in notes(data.plan, data.manifest.backend)]
    question, *parts = _question(data) or ("",)
    if data.conclusion is not None and not data.plan.description:
        question = ""  # what is varied does not lead to what the command concluded
    ended_badly = () if data.conclusion is not None else _broken(data)  # a command that concluded has judged them
    return {
        "question": question,
        "answer": first_sentence(data, claims, grids),
        "first_grid": first_grid(data, claims, grids),
        "grid": claim_grid(data.plan, claims),
        "conclusion": data.conclusion,
        "warnings": (*ended_badly, *_cells(data.cells), *_part(data), *_too_few(data, claims), *_older(data)),
        "trust": _trust(data, checks),
        "columns": _columns(data, claims),
        "counted": (*_claims(data, claims), *filter(None, [distances(claims)]), *_comparisons(data, grids)),
        "confidence": (_randomness(data), _self_checks(checks), _calibration(data), *limits),
        "parts": parts,
        "outcomes": [(name, *OUTCOMES.get(name, ("?", "unsure")), count) for name, count in outcomes.most_common()],
        "verdicts": [(name, *VERDICTS[name], verdicts[name]) for name in VERDICTS if verdicts[name]],
        "virtual_s": sum(result.virtual_s or 0.0 for result in data.cells),
        "wall_s": data.manifest.wall_s,
    }


def first_sentence(data: RunData, claims: Sequence[Statement], grids: Sequence[Grid]) -> str:
    """What the report begins with: what a command concluded from the run, else the answer of its claims, else the
    comparison that its first table makes, else its key numbers.
    """
    if data.conclusion is not None:
        return data.conclusion.answer
    grid = first_grid(data, claims, grids)
    compared = compared_rows(grid) if grid is not None else ""
    return answer(data.plan, claims, data.system) or compared or " ".join(_key(data))


def first_grid(data: RunData, claims: Sequence[Statement], grids: Sequence[Grid]) -> Grid | None:
    """The table that stands in the summary: the first of a run that nothing else is said of."""
    return grids[0] if grids and not claims and data.conclusion is None else None


SHOWN_COLUMNS = 4


def compared_rows(grid: Grid) -> str:
    """A table of two rows in a sentence: "Goodput of sctp against tcp: +0.2 % at 1 Mbit/s, −1.6 % at 5 Mbit/s."; "" of
    another table, or of numbers that are uncertain.
    """
    fields = [field for row in grid.rows for field in row]
    values = [field.measured if field is not None else None for field in fields]
    if len(grid.rows) != 2 or len(grid.row_factors) != 1 or any(value is None or value.sure for value in values):
        return ""
    exact = [float(value.exact) for value in values if value is not None]
    first, second = exact[: len(exact) // 2], exact[len(exact) // 2 :]
    found = [difference(new, old) for old, new in zip(first, second, strict=True)]
    heads = [" ".join(level for level in head if level) for head in grid.column_heads]
    said = [(one, f" at {head}" if head else "") for one, head in zip(found, heads, strict=True) if one is not None]
    if len(said) > SHOWN_COLUMNS:
        ordered = sorted(said, key=lambda pair: pair[0].ratio or 0.0)
        low, high = (f"{one.text}{at}" for one, at in (ordered[0], ordered[-1]))
        words = f"from {low} to {high}"
    else:
        words = ", ".join(f"{one.text}{at}" for one, at in said)
    (old,), (new,) = grid.row_heads
    return f"{grid.metric[:1].upper()}{grid.metric[1:]} of {new} against {old}: {words}."


def _older(data: RunData) -> tuple[str, ...]:
    """A sentence where the tables are no longer those that the conclusion was drawn from."""
    if data.conclusion is None or data.conclusion.tables == tables_digest(data.run):
        return ()
    return (
        f"The tables were made again since netwarp {data.conclusion.command} ended, and are not the same: what it "
        "concluded is of the earlier ones.",
    )


def _question(data: RunData) -> tuple[str, ...]:
    plan = data.plan
    run = {result.cell.experiment for result in data.cells}
    parts = [plan.description] if plan.description else []
    for experiment in plan.experiments:
        if experiment.name in run:
            factors = ", ".join(data.plan.factor_title(factor) for factor in experiment.factors)
            varied = f" (varied: {factors})" if factors else ""
            parts.append(
                f"{experiment.title}{varied}." if experiment.title else f"Varied: {factors}." if factors else ""
            )
    return tuple(part for part in parts if part)


def _columns(data: RunData, claims: Sequence[Statement]) -> tuple[str, ...]:
    """How many conclusions hold by what is measured alone, here and under the levels of each column."""
    sentences = []
    for column in data.plan.columns:
        pairs = []
        for claim in claims:
            verdicts = {value.name: value.verdict for value in claim.own.values}
            if claim.claim_class == "conclusion" and column.name in verdicts:
                pairs.append((verdicts["measured"], verdicts[column.name]))
        if pairs:
            here, there = (sum(pair[at] == "holds" for pair in pairs) for at in (0, 1))
            sentences.append(
                f"Judged by what is measured alone, {here} of {counted(len(pairs), 'conclusion')} hold on"
                f" {data.system}, and {there} on {column.title}."
            )
    return tuple(sentences)


def _part(data: RunData) -> tuple[str, ...]:
    """Sentences about --where, --only and --set."""
    sentences = []
    filters, both = data.plan.filters, (f"only {BASE}", f"only {ROBUSTNESS}")
    if set(both) <= set(filters):  # merged from these it is whole
        filters = tuple(one for one in filters if one not in both)
    if filters == (f"only {BASE}",):
        sentences.append(
            "Every table and figure is of this run. Conditions that the source does not state are not part of it: "
            f"--only {ROBUSTNESS} runs them."
        )
    elif filters:
        sentences.append(f"This run covers a part of the experiment: {'; '.join(_in_words(data, filters))}.")
    if changed := data.manifest.sets:
        sentences.append(f"The command line changed the spec (titles may not show it): {', '.join(changed)}.")
    return tuple(sentences)


def _too_few(data: RunData, claims: Sequence[Statement]) -> tuple[str, ...]:
    """A sentence about claims that wait for more repetitions."""
    waiting = sum(
        claim.own.verdict == "inconclusive" and claim.own.why.startswith("one repetition") for claim in claims
    )
    return (f"One repetition cannot decide {counted(waiting, 'claim')}; --repetitions 5 can.",) if waiting else ()


def _in_words(data: RunData, filters: Sequence[str]) -> Iterator[str]:
    """--only and --where with titles: "outages and rtts only", "stack: today"."""
    only = [one.removeprefix("only ") for one in filters if one.startswith("only ")]
    if only:
        yield f"{listed(only)} only"
    chosen: dict[str, list[str]] = {}
    for one in filters:
        factor, is_level, level = one.partition("=")
        if is_level:
            chosen.setdefault(factor, []).append(data.plan.level_title(factor, level))
        elif not one.startswith("only "):
            yield one
    for factor, levels in chosen.items():
        yield f"{data.plan.factor_title(factor)}: {', '.join(levels)}"


def _broken(data: RunData) -> tuple[str, ...]:
    """The flows that ended badly, which no number says by itself."""
    done = [result.id for result in data.cells if result.outcome == COMPLETED]
    every = ((cell_id, *one) for cell_id in done for one in data.measured.get(cell_id, ()))
    return tuple(f"Ended badly: {line}." for line in broken_flows(every))


def _key(data: RunData) -> Iterator[str]:
    """The key numbers of a run without claims."""
    done = [result.id for result in data.cells if result.outcome == COMPLETED]
    measured = (one for cell_id in done for one in data.measured.get(cell_id, ()))
    for sentence in key_numbers(len(done), measured, data.metrics, data.plan.groups):
        yield f"{sentence[:1].upper()}{sentence[1:]}."


def _cells(cells: Sequence[CellResult]) -> tuple[str, ...]:
    """Cells that did not complete; that all did stands in the line on trust."""
    counts = Counter(result.outcome for result in cells)
    done = counts.pop(COMPLETED, 0)
    if not counts:
        return ()
    others = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return (f"{counted_of(done, len(cells), 'cell')} completed; {others}: their numbers are missing below.",)


def _claims(data: RunData, claims: Sequence[Statement]) -> tuple[str, ...]:
    """Claims counted by class and verdict; the tests under other conditions, which are in no other sum."""
    others = Counter(test.verdict for claim in claims for test in claim.others)
    under = f"Of {counted(sum(others.values()), 'test')} of them under other conditions, {verdict_words(others)}."
    left_out = sum(claim.left_out for claim in claims)
    return (*counts(claims, data.system), *([under] if others else []), *([robustness(left_out)] if left_out else []))


def robustness(conditions: int) -> str:
    """A sentence about the conditions that a run of the base leaves out."""
    return (
        f"{counted(conditions, 'more test')} of them under conditions that the source does not state belong to"
        " another run (--only robustness)."
    )


def _comparisons(data: RunData, grids: Sequence[Grid]) -> tuple[str, ...]:
    """For each source the median and the largest relative difference over all tables, and the place of the largest."""
    sentences = []
    for source in data.plan.sources:
        differences: list[tuple[float, str, str]] = []
        for grid in grids:
            names = [name for name, _, _ in grid.sources]
            if source.name not in names:
                continue
            column = names.index(source.name)
            for head, row in zip(grid.row_heads, grid.rows, strict=True):
                for top, field in zip(grid.column_heads, row, strict=True):
                    difference = field.differences[column] if field else None
                    if difference is not None and difference.ratio is not None:
                        where = ", ".join(title for title in (*head, *top) if title)
                        differences.append(
                            (difference.ratio, difference.text, f"{grid.title.partition(':')[0]}: {where}")
                        )
        if differences:
            worst = max(differences, key=lambda entry: abs(entry[0]))
            median = statistics.median(abs(ratio) for ratio, _, _ in differences) * 100
            sentences.append(
                f"{counted(len(differences), 'number')} compared with {data.source_title(source.name)}: the median"
                f" difference is {fixed(median, 1)} %, the largest {worst[1]} ({worst[2]})."
            )
    return tuple(sentences)


def _randomness(data: RunData) -> str:
    """The random cells by the plan, and the measurements that differ between repetitions."""
    drawn = sum(result.cell.random for result in data.cells)
    repetitions = data.plan.repetitions
    share = "Every cell" if drawn == len(data.cells) else f"{drawn} of {counted(len(data.cells), 'cell')}"
    depends = "depend" if 1 != drawn != len(data.cells) else "depends"
    planned = f"{share} {depends} on the seed" if drawn else "No cell is known to depend on the seed"
    if repetitions == 1:
        if not drawn:
            return (
                f"{planned}, and there is one repetition: the run does not show whether another seed changes a number."
            )
        return f"{planned}, and there is one repetition: no interval can be given (--repetitions 5)."
    first = sum(not result.cell.repetition for result in data.cells)
    most = "" if len(data.cells) == first * repetitions else "up to "
    seeds = f"{most}{counted(repetitions, 'repetition')} (seeds {data.plan.seed} to {data.plan.seed + repetitions - 1})"
    differing, compared = _differing(data)
    if not compared:
        return f"{planned}: {seeds}, of which no two completed with a number to compare."
    if not differing:
        return (
            f"{planned}. None of the {counted(compared, 'measurement')} differs between {seeds}; no interval applies."
        )
    metrics = Counter(metric for metric, _ in differing)
    titles = {name: metric.title for name, metric in data.metrics.items()}
    named = ", ".join(f"{titles.get(metric, metric)} ({count})" for metric, count in metrics.most_common(SHOWN_METRICS))
    more = f" and {len(metrics) - SHOWN_METRICS} more" if len(metrics) > SHOWN_METRICS else ""
    return (
        f"{planned}. Of {counted(compared, 'measurement')}, {counted(len(differing), 'differs', 'differ')}"
        f" between {seeds}: {named}{more};"
        " \u00b1 is the 95 % confidence interval of the mean (Student's t)."
    )


def _differing(data: RunData) -> tuple[list[tuple[str, str]], int]:
    """(metric, flow) of each measurement that differs between completed repetitions; how many have two or more."""
    seen: dict[tuple[tuple[tuple[str, str], ...], str, str], list[float | None]] = {}
    for result in data.cells:
        if result.outcome == COMPLETED:
            combination = tuple(sorted(result.cell.factors.items()))
            for flow, metric, value in data.measured.get(result.id, ()):
                seen.setdefault((combination, flow, metric), []).append(value)
    compared = {key: values for key, values in seen.items() if len(values) > 1}
    return [(metric, flow) for (_, flow, metric), values in compared.items() if len(set(values)) > 1], len(compared)


def _trust(data: RunData, checks: Checks) -> str:
    """One line: the share of the run on which the answer is based."""
    done = sum(result.outcome == COMPLETED for result in data.cells)
    checked, bad = checks
    failed = f", {bad} failed" if bad else " passed"
    seeds = data.plan.repetitions
    condition = f"one condition, up to {seeds} seeds a condition" if seeds > 1 else "one condition with one seed"
    return (
        f"Measured on the real kernel of {data.system}: {counted_of(done, len(data.cells), 'cell')} completed (each one"
        f" run of {condition}); {counted(checked, 'self-check')}{failed}."
    )


def _self_checks(checks: Checks) -> str:
    done, failed = checks
    if not done:
        return "No self-checks are stored with this run."
    passed = "all passed" if not failed else f"{failed} failed, in cells that are therefore not COMPLETED"
    return (
        f"{counted(done, 'self-check')} (link shaping, sysctls and offloads read back, capture drops, payload"
        f" sums, event times): {passed}."
    )


def _calibration(data: RunData) -> str:
    if data.calibration is None:
        return "No calibration is stored with this run; make calibrate measures this machine's testbed."
    measured = counted(len(data.calibration.rows), "measured quantity", "measured quantities")
    return f"Calibration: {data.calibration.passed} of {measured} within their bounds."
