"""`netwarp compare claims`: a spec's claims, each judged by the numbers of its sources and of a run; nothing is run."""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rich.text import Text

from ..core.errors import SpecError
from ..core.numbers import plain
from ..core.units import counted
from ..engine.bundles import opened
from ..engine.claim_sources import ClaimsBySources, claims_by_sources
from ..engine.run_directory import open_run
from ..present.conclusions import CLASSES, verdict_words
from ..present.style import VERDICTS, verdict_shown
from ..results.claims import Judged
from ..store.tables import read_rows
from .output import make_table, plain_console


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    claims = commands.add_parser(
        "compare claims",
        help="judge a spec's claims by the numbers of its sources, beside those of a run; nothing is run",
        example="netwarp compare claims choi2009 results/choi2009/latest",
    )
    claims.add_argument("spec", metavar="SPEC", help="a spec file, or a folder name under experiments/")
    claims.add_argument(
        "run_dir", nargs="?", type=Path, metavar="RUN", help="a run or a bundle of it: its numbers, today and era-like"
    )
    claims.set_defaults(run=run_claims)


def run_claims(args: argparse.Namespace) -> int:
    """Print a line a claim, the counts by class, each source's refuted claims, and what was amended."""
    judged = claims_by_sources(args.spec)
    console = plain_console()
    rows, columns = _of_a_run(args.run_dir, judged.name)
    numeric = [f">{head}" for head in (*(source.name for source in judged.sources), *columns.values())]
    shown = make_table("", "claim", "class", "test", "expected", *numeric, *(["verdict"] if rows else []))
    for decided in judged.claims:
        claim = decided.claim.claim
        numbers = [_number(decided.sources.get(source.name)) for source in judged.sources]
        row = rows.get(claim.id, {})
        numbers += [_of_row(row, name) for name in columns]
        verdict = [Text(verdict_shown(row.get("verdict", "-")))] if rows else []
        shown.add_row(
            claim.id, claim.claim_class, claim.kind, Text(_expected(decided.claim)), *map(Text, numbers), *verdict
        )
    console.print(shown)
    for line in (*_counts(judged), *_classes(list(rows.values())), *_amended(judged)):
        console.print(line)
    return 0


def _of_a_run(path: Path | None, name: str) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Claim -> its row of a run's claims.csv, and the columns of numbers there with their heads. name: of the spec."""
    if path is None:
        return {}, {}
    with opened(path) as place:
        run = open_run(place)
        if run.plan.name != name:  # claims of other specs may have the same ids
            raise SpecError(f"{path}: is a run of {run.plan.name}, not of {name}")
        rows = {row["claim"]: row for row in read_rows(run.directory.tables / "claims.csv") if not row["condition"]}
        return rows, {"measured": "Linux"} | {column.name: column.name for column in run.plan.columns}


def _of_row(row: Mapping[str, str], column: str) -> str:
    """A number of claims.csv with the sign of its verdict."""
    with contextlib.suppress(KeyError, ValueError):
        return f"{plain(float(row[column]), 4)} {VERDICTS[row[f'{column}_verdict']][0]}"
    return "-"


def _classes(rows: list[dict[str, str]]) -> list[str]:
    """A line a class: its verdicts in the run."""
    lines = []
    for name, words in CLASSES.items():
        verdicts = Counter(row["verdict"] for row in rows if row["class"] == name)
        if verdicts:
            lines.append(f"{counted(sum(verdicts.values()), *words)}: {verdict_words(verdicts)}")
    return lines


def _amended(judged: ClaimsBySources) -> list[str]:
    """Each change of a claim after a run, with its date and reason; claims changed alike together."""
    why: dict[tuple[str, str], list[str]] = {}
    for decided in judged.claims:
        for amendment in decided.claim.claim.amendments:
            why.setdefault((amendment.date, amendment.reason), []).append(decided.claim.claim.id)
    return [f"amended {date}: {', '.join(ids)}: {reason}" for (date, reason), ids in sorted(why.items())]


def _number(judged: Judged | None) -> str:
    """The number with the sign of its verdict."""
    if judged is None or judged.measured is None:
        return "-"
    return f"{plain(judged.measured, 4)} {VERDICTS[judged.verdict][0]}"


def _expected(judged: Judged) -> str:
    """With its tolerance, where it is a number's."""
    tolerance = judged.claim.tolerance
    number = judged.expected[:1].isdigit() or judged.expected.startswith("-")
    return f"{judged.expected} ± {plain(tolerance, 4)}" if number and tolerance else judged.expected


def _counts(judged: ClaimsBySources) -> list[str]:
    lines = [counted(len(judged.claims), "claim")]
    for source in judged.sources:
        refuted = judged.refuted(source.name)
        lines.append(f"do not hold by the numbers of {source.title}: {len(refuted)}{_names(refuted)}")
    without = judged.without_number
    return [*lines, f"no number in any source: {len(without)}{_names(without)}"]


def _names(ids: list[str]) -> str:
    return f" ({', '.join(ids)})" if ids else ""
