"""Reference results of an experiment: keeps those of a run, and writes the numbers of its README from them.

    .venv/bin/python experiments/reference.py RUN...      keep each run in results/reference/NAME and write the texts
    .venv/bin/python experiments/reference.py             write every README and docs/verdicts.md from what is kept

    .venv/bin/python experiments/reference.py --judge RUN...   the same of runs whose cells come from what is kept

RUN is run.tar.xz unpacked, where claims alone have changed. Where a few cells are new, it is put together by `netwarp
archive merge --spec NAME --no-report --out RUN UNPACKED NEW...`, which ends before the tables over time, whose series
no bundle has; --judge writes the others, and takes those from the bundle.
"""

from __future__ import annotations

import csv
import functools
import json
import re
import shutil
import sys
import tarfile
import textwrap
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from netwarp.core.frozen import from_json
from netwarp.core.numbers import fixed, readable
from netwarp.core.outputs import Claim
from netwarp.core.units import counted
from netwarp.engine.bundles import bundle
from netwarp.engine.later_outputs import later_outputs, texts_of
from netwarp.engine.run_directory import collect, open_run
from netwarp.experiment import Spec, load_spec
from netwarp.plan.types import Outputs
from netwarp.present.claim_blocks import Statement, statements_of
from netwarp.present.conclusions import CLASSES, ClaimGrid, answer, claim_grid, filled, sentences, verdict_words
from netwarp.present.style import IN_PART, VERDICTS, verdict_shown
from netwarp.results.write import write_tables
from netwarp.store.plan_file import keep_texts, write_outputs

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
BEGIN = "<!-- numbers: experiments/reference.py writes what follows (results/reference, claims.toml, answer.md) -->"
END = "<!-- end of the numbers -->"
KEPT = "results/reference/{}/run.tar.xz"
WIDTH = 158
TABLES = {
    "coexist": ("goodput", "waits-own", "loss", "fair", "ten", "rows"),
    "quic": ("rates", "losses", "delays", "setup", "completion"),
    "kim2002": ("later", "later_errors", "later_ecn", "later_snoop", "handovers_recovery"),
    "lee2008": ("table3_loss", "table3_rate", "table3_rtt", "readings", "ways", "ways_objects", "ways_wait",
                "ways_timeouts", "far", "today", "today_objects", "today_wait", "repairs", "repairs_sctp",
                "needless_sctp"),
}  # fmt: skip
"""Tables of a run that its README shows, besides its claims."""
SENTENCES = ("holds", IN_PART, "does not hold")
"""Verdicts on sentences that docs/verdicts.md has a row for; the others are undecided, or not tested."""
OF_THEN = "era"
"""The column of a paper with the settings of its time."""
MOST_COLUMNS = 6
"""Of a table: one with more stands in parts, below each other."""
IN_EACH_FIELD = ("rows",)
"""Of these, those that have what stands beside a number in brackets behind it."""
ANSWER = "answer.md"
SIGNS = (
    "✓ as claimed, ✗ not, ≈ undecided{}; in the paper's column: by its own numbers. Of several comparisons the one that"
    " speaks most against the claim; a lead or a difference is of the first named over the second."
)
OWN_SIGNS = (
    "✓ as claimed, ✗ not, ≈ undecided{}. Of several comparisons the one that speaks most against the claim; a lead or a"
    " difference is of the first named over the second."
)
WHOLE = ["only base", "only robustness"]
"""The part of a run of base and robustness together."""
RULE = (
    "kind", "metric", "metric_b", "a", "b", "over", "levels", "of", "expected", "tolerance", "word", "clock",
)  # fmt: skip
"""Fields of a claim that decide what is measured, and what it is held against."""
Row = dict[str, str]
NO_LEVEL = "-"
"""A factor's level where it does not apply: a selector for the usual level takes it too."""


def keep(path: Path) -> str:
    """Keep a run as the reference of its experiment, in place of that before; its name."""
    name: str = open_run(path).plan.name
    place, new, old = (REFERENCE / f"{before}{name}" for before in ("", ".new-", ".old-"))
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)
    try:
        _write(path, new)
        if place.exists():
            place.rename(old)
        new.rename(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    return name


def judge(path: Path) -> None:
    """Write the tables of a run by today's claims; most of its cells, or all, come from the bundle that is kept."""
    run = open_run(path)
    later = later_outputs(run.plan, run.manifest, run.plan.name)
    names = [figure.name for figure in later.plan.time_series] + [table.name for table in later.plan.event_tables]
    over_time = {f"tables/{name}.csv" for name in names}
    (path / "tables").mkdir(exist_ok=True)
    with tarfile.open(REFERENCE / run.plan.name / "run.tar.xz", "r:xz") as archive:
        for entry in archive:
            if entry.name in over_time:
                (path / entry.name).write_bytes(archive.extractfile(entry).read())  # type: ignore[union-attr]
    write_tables(collect(later.plan, run.directory), path / "tables")
    keep_texts(run.directory, texts_of(later.spec))
    write_outputs(run.directory, later.plan)


def _write(path: Path, place: Path) -> None:
    """Write what is kept of a run."""
    run = open_run(path)
    (place / "figures").mkdir(parents=True)
    bundle(path, place / "run.tar.xz")
    shutil.copy(path / "tables" / "claims.csv", place / "claims.csv")
    drawn = path / "report" / "figures"
    # a bundle that is judged again has no report: what it draws has not changed
    for figure in sorted((drawn if drawn.exists() else REFERENCE / run.plan.name / "figures").glob("*.svg")):
        shutil.copy(figure, place / "figures" / figure.name)
    for table in TABLES.get(run.plan.name, ()):
        (place / "tables").mkdir(exist_ok=True)
        if (path / "tables" / f"{table}.csv").exists():  # a part of an experiment has a part of its tables
            shutil.copy(path / "tables" / f"{table}.csv", place / "tables" / f"{table}.csv")
    made = {
        "kernel": run.manifest.kernel_release,
        "kernel_sha256": run.manifest.kernel_sha256,
        "seed": run.plan.seed,
        "cells": len(run.plan.cells),
        "part": list(run.plan.filters),
        "sets": list(run.manifest.sets),
        "outcomes": dict(Counter(row["outcome"] for row in _rows(path / "tables" / "cells.csv"))),
        "key_figure": run.plan.key_figure,
    }
    (place / "made.json").write_text(json.dumps(made, indent=1) + "\n")


def _rows(path: Path) -> list[Row]:
    return list(csv.DictReader(path.read_text().splitlines()))


def numbers(name: str) -> str:
    """The generated part of an experiment's README."""
    place = REFERENCE / name
    made = json.loads((place / "made.json").read_text())
    spec = load_spec(ROOT / "experiments" / name)
    plan, claims, system = kept(name)
    grid = claim_grid(plan, claims)
    lines = [*_wrapped(answer(plan, claims, system)), ""]
    if (longer := spec.folder / ANSWER).exists():
        lines += [line for item in _items(filled(longer.read_text(), claims)) for line in [*_wrapped(item), ""]]
    if (place / "figures" / f"{made['key_figure']}.svg").exists():
        lines += [f"![key figure](../../results/reference/{name}/figures/{made['key_figure']}.svg)", ""]
    said, signs = ("The paper says", SIGNS) if _has_paper(plan) else ("What is said of it", OWN_SIGNS)
    lines += [*_grid(grid, grid.first, said), "", *_wrapped(signs.format(_qualified(grid))), ""]
    if grid.causes:
        lines += [*_grid(grid, grid.causes, "Because, it says"), ""]
    lines += [
        "All of it:",
        "",
        *(part for line in _counts(claims) for part in _wrapped(line)),
        "",
        f"The other {'conclusions, and under which conditions they hold' if _has_paper(plan) else 'claims'}:",
        "",
    ]
    lines += [*_others(grid.rest), ""]
    for table in TABLES.get(name, ()):
        if (place / "tables" / f"{table}.csv").exists():
            lines += [*_table(place / "tables" / f"{table}.csv", table, spec), ""]
    changed = f", with {' and '.join(made['sets'])}" if made["sets"] else ""
    part = "" if made["part"] in (["only base"], WHOLE) else "".join(f" --{text}" for text in made["part"])
    both = f" and `netwarp run {name} --only robustness`" if made["part"] == WHOLE else ""
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in made["outcomes"].items())
    lines += _wrapped(
        f"Measured by `netwarp run {name}{part}`{both}{changed}: {made['cells']} cells ({outcomes}), Linux"
        f" {made['kernel']} (guest kernel, sha256 {made['kernel_sha256'][:12]}), seed {made['seed']}. Every claim with"
        f" its numbers: `netwarp compare claims {name} {KEPT.format(name)}`, and claims.csv beside it."
    )
    return "\n".join(lines).rstrip()


def kept(name: str) -> tuple[Outputs, tuple[Statement, ...], str]:
    """What a reference was run with, in today's words; its claims; the system that was measured."""
    made = json.loads((REFERENCE / name / "made.json").read_text())
    spec = load_spec(ROOT / "experiments" / name)
    outputs, details = _kept_files(name)
    today = claims_of(spec.claims, outputs.claims)
    plan = replace(
        outputs,
        claims=tuple(claim if claim.condition else today[claim.id] for claim in outputs.claims),
        headline=spec.headline,
        summary=spec.summary,
    )
    system = f"Linux {'.'.join(made['kernel'].split('.')[:2])}"
    return plan, statements_of(plan, _rows(REFERENCE / name / "claims.csv"), details, system), system


@functools.cache
def _kept_files(name: str) -> tuple[Outputs, list[Row]]:
    """The outputs of a reference's bundle, and the rows of its claim_details.csv."""
    with tarfile.open(REFERENCE / name / "run.tar.xz", "r:xz") as archive:
        found = {
            member.name: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
            if member.name in ("outputs.json", "tables/claim_details.csv")
        }
    details = found.get("tables/claim_details.csv", b"").decode().splitlines()
    return from_json(found["outputs.json"], Outputs), list(csv.DictReader(details))


def claims_of(today: Sequence[Claim], of_the_run: Sequence[Claim]) -> dict[str, Claim]:
    """Id -> the claim that the numbers of a run were measured for: in today's words, but where its rule is another
    today, as it was.
    """
    claims = {claim.id: claim for claim in today if not claim.condition}
    known = {factor for claim in of_the_run for side in (*claim.a, *claim.b) for factor in side}
    for claim in of_the_run:
        if not claim.condition and _rule(claim, known) != _rule(claims.get(claim.id), known):
            claims[claim.id] = claim
    return claims


def _rule(claim: Claim | None, known: Collection[str]) -> list[Any]:
    """What decides what a claim measures. A factor that the run did not know is at its usual level there."""
    rule = {key: getattr(claim, key, None) for key in RULE}
    for key in ("a", "b"):
        rule[key] = [
            {factor: levels for factor, levels in side.items() if factor in known or NO_LEVEL not in levels}
            for side in rule[key] or ()
        ]
    return list(rule.values())


def _items(text: str) -> list[str]:
    """The paragraphs and items of a list of a text in Markdown, each on one line."""
    parts = re.split(r"\n\s*\n|\n(?=- )", text.strip())
    return [" ".join(part.split()) for part in parts]


def _grid(grid: ClaimGrid, claims: Sequence[Statement], title: str) -> list[str]:
    """An item a claim: its words, and sign and number of each source. A table would have lines of any length."""
    lines = [f"{title}:", ""]
    for claim in claims:
        said = []
        for (name, head), field in zip(grid.columns, grid.row(claim), strict=True):
            sign = VERDICTS[field.verdict][0] if field.verdict else ""
            words = " ".join(filter(None, [head, sign, field.text, f"({field.note})" if field.note else ""]))
            if field.text:
                said.append(f"**{words}**" if name == "measured" else words)
        lines += _wrapped(f"- **{claim.id}** {claim.text.rstrip('.')}: {'; '.join(said)}")
    return lines


def _qualified(grid: ClaimGrid) -> str:
    return "".join(f", {VERDICTS[name][0]} {meaning}" for name, meaning in grid.qualified)


def _others(claims: Sequence[Statement]) -> list[str]:
    """A line a verdict with the claims that have it, and where one turns."""
    lines = []
    for verdict in dict.fromkeys(claim.shown for claim in claims):
        names = [_turning(claim) for claim in claims if claim.shown == verdict]
        lines += _wrapped(f"- {verdict_shown(verdict)}: {', '.join(names)}")
    return lines


def _turning(claim: Statement) -> str:
    """ "C9 (4 of 6; not with failover: RFC 4960)"."""
    if not claim.held:
        return claim.id
    where = f"; {'not' if claim.own.verdict == 'holds' else 'it does'} with {claim.turned}" if claim.turned else ""
    return f"{claim.id} ({claim.held}{where})"


def _table(path: Path, name: str, spec: Spec) -> list[str]:
    """A table of the run: the mean and half of its 95 % interval; below it what stands beside it in the run."""
    rows = _rows(path)
    heads = list(rows[0])
    factors, beside = heads[: heads.index("value")], heads[heads.index("note") + 1 :]
    *sides, across = factors
    levels = list(dict.fromkeys(row[across] for row in rows))
    sources = {source.name: source.title for source in spec.sources}

    def title(of: str, level: str) -> str:
        known = spec.factors[of].level(level) if of in spec.factors else None
        return level if known is None else known.title

    found: dict[tuple[str, ...], dict[str, str]] = {}
    others: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        key = tuple(title(side, row[side]) for side in sides)
        found.setdefault(key, {})[row[across]] = _with_interval(row)
        if name in IN_EACH_FIELD and (known := [readable(float(row[source])) for source in beside if row[source]]):
            found[key][row[across]] += f" ({', '.join(known)})"
            continue
        for source in beside:
            if row[source] and (not key[1:] or key[1:] == tuple(title(side, rows[0][side]) for side in sides[1:])):
                said = sources.get(source, spec.metrics[source].title if source in spec.metrics else source)
                line = others.setdefault((key[0], said, *[""] * (len(key) - 2)), {})
                line[row[across]] = readable(float(row[source]))
    unit = rows[0]["unit"] if rows[0]["unit"] != "ratio" else ""
    shown = next(table for table in spec.tables if table.name == name)
    lines = [*_wrapped(shown.title + (f" ({unit})" if unit else "") + ":"), ""]
    shown_rows = [*found.items(), *((key, line) for key, line in others.items() if len(key) > 1)]
    for begin in range(0, len(levels), MOST_COLUMNS):
        some = levels[begin : begin + MOST_COLUMNS]
        lines += [""] if begin else []
        lines.append(f"| {' | '.join([*sides, *(title(across, level) for level in some)])} |")
        lines.append(f"| {' | '.join(['---'] * (len(sides) + len(some)))} |")
        for key, numbers_of in shown_rows:
            lines.append(f"| {' | '.join([*key, *(numbers_of.get(level, '') for level in some)])} |")
    return lines


def _with_interval(row: Row) -> str:
    if not row["value"]:
        return "-"
    value = float(row["value"])
    if not row["ci95_low"] or not value:
        return readable(value)
    half = (float(row["ci95_high"]) - float(row["ci95_low"])) / 2
    return f"{readable(value)} ± {fixed(100 * half / abs(value), 1)} %"


def _wrapped(text: str) -> list[str]:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _counts(claims: Sequence[Statement]) -> list[str]:
    """A line for the paper's sentences, one for each class: how many claims, and their verdicts; and of those that were
    amended after a run both verdicts, where they differ.
    """
    said = sentences(claims)
    lines = [
        f"- {counted(sum(said.values()), 'sentence of the paper', 'sentences of the paper')}: {verdict_words(said)}"
    ]
    lines = lines if said else []
    for name, words in CLASSES.items():
        verdicts = Counter(claim.shown for claim in claims if claim.claim_class == name)
        if verdicts:
            lines.append(f"- {counted(sum(verdicts.values()), *words)}: {verdict_words(verdicts)}")
    amended = [claim for claim in claims if claim.first]
    turned = [claim for claim in amended if claim.first != claim.measured_verdict]
    if amended:
        both = [
            f"{claim.id} ({verdict_shown(claim.first)}, now {verdict_shown(claim.measured_verdict)})"
            for claim in turned
        ]
        alike = f"{len(amended) - len(turned)} of {len(amended)} amended claims have the first rule's verdict"
        lines.append(f"- {alike}{'; by it and now' if both else ''}{': ' if both else ''}{', '.join(both)}")
    return lines


def of_papers() -> list[str]:
    """The experiments whose claims are those of a paper."""
    return sorted(path.name for path in REFERENCE.iterdir() if _has_paper(_kept_files(path.name)[0]))


def _has_paper(plan: Outputs) -> bool:
    return any(source.kind == "paper" for source in plan.sources)


def verdicts_page() -> str:
    """The generated part of docs/verdicts.md: the conclusions of every paper counted, and its answer."""
    columns: list[list[str]] = []
    answers: list[str] = []
    for name in of_papers():
        plan, claims, system = kept(name)
        own = [claim for claim in claims if claim.claim_class == "conclusion"]
        said = sentences(claims)
        counts = Counter(claim.shown for claim in own)
        then = [value.verdict for claim in own for value in claim.own.values if value.name == OF_THEN]
        shown = [str(counts[verdict] or "") for verdict in VERDICTS]
        in_words = [str(said[verdict] or "") for verdict in SENTENCES]
        columns.append(
            [
                name,
                "---",
                str(sum(said.values())),
                *in_words,
                str(len(own)),
                *shown,
                f"{then.count('holds')} of {len(then)}",
            ]
        )
        answers += _wrapped(f"- **{name}**. {answer(plan, claims, system)}")
    of_sentences = [f"of them {verdict_shown(verdict)}" for verdict in SENTENCES]
    heads = [
        "",
        "---",
        "sentences that conclude",
        *of_sentences,
        "conclusions (tests of them)",
        *map(verdict_shown, VERDICTS),
        "hold with the settings of then",
    ]
    rows = [f"| {' | '.join(row)} |" for row in zip(heads, *columns, strict=True)]
    return "\n".join([*rows, "", *answers])


_NUMBER = r"[+−-]?\d[\d.,]*"
RESULT = re.compile(rf"(?<![\w.,-]){_NUMBER}(?:(?:,| to| and| or)\s+{_NUMBER})*\s?%|(?<![\w.])\d[\d.]*\s+times\b")
"""A text that looks like a measured number: a share, or a multiple."""


def typed(name: str) -> list[str]:
    """Numbers that stand in an experiment's prose as if they were results: not rendered from its claims, and neither a
    level of it nor what its claims' texts and sentences say.
    """
    spec = load_spec(ROOT / "experiments" / name)
    known = [text for factor in spec.factors.values() for level in factor.levels for text in (level.name, level.title)]
    known += [text for claim in spec.claims if claim.sentence for text in (claim.text, claim.sentence.en)]
    known += [f"{word.source} {100 * word.tolerance:g} %" for word in spec.words]
    given = {found for text in known for found in re.findall(r"\d[\d.]*", text)}
    before, after = _around((spec.folder / "README.md").read_text())
    longer = spec.folder / ANSWER
    texts = [before, after, longer.read_text() if longer.exists() else "", spec.summary.text if spec.summary else ""]
    return [
        match[0]
        for text in texts
        for match in RESULT.finditer(re.sub(r"\{[^{}]*\}", "X", text))
        if match[0][0] in "+−-" or not set(re.findall(r"\d[\d.]*", match[0])) <= given
    ]


def _around(text: str) -> tuple[str, str]:
    """What stands before and behind the generated part of a text; all of one without such a part stands before."""
    before, begin, rest = text.partition(BEGIN)
    return before, rest.partition(END)[2] if begin else ""


def write(path: Path, generated: str) -> None:
    """Put what is generated into a page, where it has a place for it."""
    text = path.read_text()
    if BEGIN in text:
        before, after = _around(text)
        path.write_text(f"{before}{BEGIN}\n{generated}\n{END}{after}")


if __name__ == "__main__":
    anew = sys.argv[1:2] == ["--judge"]
    for run_dir in map(Path, sys.argv[2 if anew else 1 :]):
        if anew:
            judge(run_dir)
        keep(run_dir)
    for reference in sorted(REFERENCE.iterdir()):
        write(ROOT / "experiments" / reference.name / "README.md", numbers(reference.name))
    write(ROOT / "docs" / "verdicts.md", verdicts_page())
