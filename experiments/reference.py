"""Reference results of a paper's experiment: keeps those of a run, and writes the numbers of its README from them.

    .venv/bin/python experiments/reference.py RUN...      keep each run in results/reference/NAME and write the README
    .venv/bin/python experiments/reference.py             write every README again from what is kept

Kept are the run as a bundle (plan, tables, hashes of its captures: `netwarp archive verify
results/reference/NAME/run.tar.xz` runs its cells again), its claims, its figures as SVG, and what it was made with.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tarfile
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netwarp.core.numbers import fixed, readable
from netwarp.core.outputs import Claim
from netwarp.core.types import from_json
from netwarp.engine.bundles import bundle
from netwarp.engine.run_directory import open_run
from netwarp.experiment import Spec, load_spec
from netwarp.plan.types import Outputs
from netwarp.present.conclusions import CLASSES, verdict_words
from netwarp.present.style import verdict_shown

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
BEGIN = "<!-- numbers: experiments/reference.py writes what follows from results/reference -->"
END = "<!-- end of the numbers -->"
KEPT = "results/reference/{}/run.tar.xz"
WIDTH = 158
TABLES = {
    "kim2002": ("later", "later_errors", "later_ecn", "later_snoop", "handovers_recovery"),
    "lee2008": ("table3_loss", "table3_rate", "table3_rtt", "readings", "ways", "ways_objects", "ways_wait",
                "ways_timeouts", "far", "today", "today_objects", "today_wait", "repairs", "repairs_sctp",
                "needless_sctp"),
}  # fmt: skip
"""Tables of a run that its README shows, besides its claims."""
OF_ITS_OWN_UNIT = ("value", "every", "difference", "elasticity")
WHOLE = ["only base", "only robustness"]
"""The part of a run of base and robustness together."""
MOST_TURNS = 3
"""Of the conditions with another verdict that are named."""
RULE = (
    "kind", "metric", "metric_b", "a", "b", "over", "levels", "of", "expected", "tolerance", "word", "clock",
)  # fmt: skip
"""Fields of a claim that decide what is measured, and what it is held against."""
Row = dict[str, str]


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


def _write(path: Path, place: Path) -> None:
    """Write what is kept of a run."""
    run = open_run(path)
    (place / "figures").mkdir(parents=True)
    bundle(path, place / "run.tar.xz")
    shutil.copy(path / "tables" / "claims.csv", place / "claims.csv")
    for figure in sorted((path / "report" / "figures").glob("*.svg")):
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
    rows = _rows(place / "claims.csv")
    spec = load_spec(ROOT / "experiments" / name)
    claims = claims_of(spec.claims, kept_claims(name))
    own = [row for row in rows if not row["condition"]]
    columns = columns_of(spec, f"Linux {made['kernel']}")
    changed = f", with {' and '.join(made['sets'])}" if made["sets"] else ""
    part = "" if made["part"] in (["only base"], WHOLE) else "".join(f" --{text}" for text in made["part"])
    both = f" and `netwarp run {name} --only robustness`" if made["part"] == WHOLE else ""
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in made["outcomes"].items())
    lines = [
        *_wrapped(
            f"`netwarp run {name}{part}`{both}{changed}: {made['cells']} cells ({outcomes}), Linux {made['kernel']}"
            f" (guest kernel, sha256 {made['kernel_sha256'][:12]}), seed {made['seed']}."
        ),
        "",
    ]

    def said(row: Row) -> list[str]:
        claim = claims[row["claim"]]
        found = [f"{columns[name]} {number(row, name, claim)}" for name in columns if row.get(name)]
        words = ": ".join(part for part in (claim.text.rstrip("."), ", ".join(found)) if part)
        turns = _turns(row, rows) + _run_lengths(claim, rows)
        return _wrapped(f"- **{row['claim']}** {words}: **{verdict_shown(row['verdict'])}**{turns}")

    first = [row for row in ordered(own, spec) if row["claim"] in spec.headline]
    lines += ["What the paper says first (the number that each rule hangs on; in brackets its 95 % interval):", ""]
    lines += [line for row in first for line in said(row)]
    lines += ["", "All of it:", "", *_counts(own), ""]
    if (place / "figures" / f"{made['key_figure']}.svg").exists():
        lines += [f"![key figure](../../results/reference/{name}/figures/{made['key_figure']}.svg)", ""]
    lines += ["Causes, each judged by cells without it:", ""]
    lines += [line for row in own if row["class"] == "cause" and row not in first for line in said(row)]
    lines += ["", "The other conclusions:", ""]
    lines += _others([row for row in own if row["class"] == "conclusion" and row not in first], rows)
    lines.append("")
    for table in TABLES.get(name, ()):
        if not (place / "tables" / f"{table}.csv").exists():
            continue
        lines += [*_table(place / "tables" / f"{table}.csv", table, spec), ""]
    lines += [
        *_wrapped(
            "Every claim with its numbers: "
            f"`netwarp compare claims {name} {KEPT.format(name)}`, and claims.csv beside it."
        ),
    ]
    return "\n".join(lines).rstrip()


def kept_claims(name: str) -> tuple[Claim, ...]:
    """The claims that a reference was run with; none where nothing is kept."""
    kept = REFERENCE / name / "run.tar.xz"
    if not kept.exists():
        return ()
    with tarfile.open(kept, "r:xz") as archive:
        member = archive.extractfile("outputs.json")
        assert member is not None
        return from_json(member.read(), Outputs).claims


def claims_of(today: Sequence[Claim], of_the_run: Sequence[Claim]) -> dict[str, Claim]:
    """Id -> the claim that the numbers of a run were measured for: in today's words, but where its rule is another
    today, as it was.
    """
    claims = {claim.id: claim for claim in today if not claim.condition}
    for claim in of_the_run:
        if not claim.condition and _rule(claim) != _rule(claims.get(claim.id)):
            claims[claim.id] = claim
    return claims


def columns_of(spec: Spec, measured: str) -> dict[str, str]:
    """Column of claims.csv -> its title: the sources, what was measured, and the columns of a run."""
    titles = {source.name: source.title for source in spec.sources} | {"measured": measured}
    return titles | {column.name: column.title for column in spec.columns}


def _rule(claim: Claim | None) -> list[Any]:
    return [getattr(claim, key, None) for key in RULE]


def _others(rows: list[Row], every: list[Row]) -> list[str]:
    """A line a verdict with the claims that have it, and where one turns."""
    lines = []
    for verdict in dict.fromkeys(row["verdict"] for row in rows):
        names = [f"{row['claim']}{_turns(row, every)}" for row in rows if row["verdict"] == verdict]
        lines += _wrapped(f"- {verdict_shown(verdict)}: {', '.join(names)}")
    return lines


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
        for source in beside:
            if row[source] and (not key[1:] or key[1:] == tuple(title(side, rows[0][side]) for side in sides[1:])):
                said = sources.get(source, spec.metrics[source].title if source in spec.metrics else source)
                line = others.setdefault((key[0], said, *[""] * (len(key) - 2)), {})
                line[row[across]] = readable(float(row[source]))
    unit = rows[0]["unit"] if rows[0]["unit"] != "ratio" else ""
    shown = next(table for table in spec.tables if table.name == name)
    lines = [*_wrapped(shown.title + (f" ({unit})" if unit else "") + ":"), ""]
    lines.append(f"| {' | '.join([*sides, *(title(across, level) for level in levels)])} |")
    lines.append(f"| {' | '.join(['---'] * (len(sides) + len(levels)))} |")
    for key, numbers_of in [*found.items(), *((key, line) for key, line in others.items() if len(key) > 1)]:
        lines.append(f"| {' | '.join([*key, *(numbers_of.get(level, '') for level in levels)])} |")
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
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def ordered(rows: list[Row], spec: Spec) -> list[Row]:
    """The headline first."""
    first = spec.headline
    return sorted(rows, key=lambda row: first.index(row["claim"]) if row["claim"] in first else len(first))


def _counts(rows: list[Row]) -> list[str]:
    """A line for each class: how many claims, and their verdicts."""
    lines = []
    for name, (single, several) in CLASSES.items():
        verdicts = Counter(row["verdict"] for row in rows if row["class"] == name)
        total = sum(verdicts.values())
        if total:
            lines.append(f"- {total} {single if total == 1 else several}: {verdict_words(verdicts)}")
    return lines


def number(row: Row, column: str, claim: Claim) -> str:
    """A number as the report has it, its interval (of what was measured), and the rule's verdict as a sign."""
    text = row.get(column) or ""
    if not text:
        return "-"
    relative = claim.kind not in OF_ITS_OWN_UNIT
    interval = ""
    if column == "measured" and row["ci95_low"] and row["ci95_high"]:
        interval = f" [{_shown(row['ci95_low'], relative)}, {_shown(row['ci95_high'], relative)}]"
    sign = {"holds": " ✓", "does not hold": " ✗"}.get(row.get(f"{column}_verdict") or "", " ?")
    return f"{_shown(text, relative)}{interval}{sign}"


def _shown(text: str, relative: bool) -> str:
    value = float(text)
    return f"{fixed(100 * value, 1 if abs(value) >= 0.01 or not value else 3)} %" if relative else readable(value)


def _turns(row: Row, rows: list[Row]) -> str:
    """In how many of its conditions a claim holds, and those with another verdict, where they were run."""
    tests = [other for other in rows if other["claim"] == row["claim"]]
    judged = [other for other in tests if other["verdict"] in ("holds", "does not hold", "inconclusive")]
    if len(judged) < 2:
        return ""
    held = sum(other["verdict"] == "holds" for other in judged)
    turned = [
        other["condition"] for other in judged[1:] if other["verdict"] not in (judged[0]["verdict"], "inconclusive")
    ]
    more = [f"and {len(turned) - MOST_TURNS} more"] if turned[MOST_TURNS:] else []
    where = f"; turns with {'; '.join([*turned[:MOST_TURNS], *more])}" if turned else ""
    return f" (holds in {held} of {len(judged)} conditions{where})"


def _run_lengths(claim: Claim, rows: list[Row]) -> str:
    """The run lengths for which a claim holds, where it was tested over several."""
    lengths = claim.a[0].get("run_length", ()) if len(claim.a) == 1 else ()
    own = lengths[0] if lengths else None
    tested = [row for row in rows if row["claim"] == claim.id]
    verdicts: dict[str, str] = {str(own): tested[0]["verdict"]}
    for row in tested[1:]:
        factor, _, level = row["condition"].partition("=")
        if factor == "run_length" and "=" not in level:
            verdicts[level] = row["verdict"]
    if own is None or len(verdicts) < 3:
        return ""
    held = [
        level for level in sorted(verdicts, key=lambda level: float(level.split()[0])) if verdicts[level] == "holds"
    ]
    return f"; for run lengths of {', '.join(held) or 'none'}"


def write_readme(name: str) -> None:
    """Put the numbers into experiments/NAME/README.md, where it has a place for them."""
    path = ROOT / "experiments" / name / "README.md"
    if BEGIN not in path.read_text():
        return
    before, rest = path.read_text().split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n{numbers(name)}\n{END}{after}")


if __name__ == "__main__":
    for run_dir in sys.argv[1:]:
        keep(Path(run_dir))
    for kept in sorted(REFERENCE.iterdir()):
        write_readme(kept.name)
