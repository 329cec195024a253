"""`netwarp claims`: the claims of a spec, each judged by the numbers of its sources; nothing is run."""

from __future__ import annotations

import argparse

from rich.table import Table
from rich.text import Text

from ..core.numbers import plain
from ..core.units import counted
from ..engine.claim_sources import ClaimsBySources, claims_by_sources
from ..present.style import VERDICTS
from ..results.claims import Judged
from .summary import summary_console


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    claims = commands.add_parser("claims", help="judge a spec's claims by the numbers of its sources, without a run")
    claims.add_argument("spec", metavar="SPEC", help="a spec file, or a folder name under experiments/")
    claims.set_defaults(run=run_claims)


def run_claims(args: argparse.Namespace) -> int:
    """`netwarp claims`: a line a claim, then each source's refuted claims."""
    judged = claims_by_sources(args.spec)
    console = summary_console()
    shown = Table()
    for head in ("claim", "class", "test", "expected"):
        shown.add_column(head)
    for source in judged.sources:
        shown.add_column(Text(source.name), justify="right", no_wrap=True)
    for one in judged.claims:
        claim = one.claim.claim
        numbers = (Text(_number(one.sources.get(source.name))) for source in judged.sources)
        shown.add_row(claim.id, claim.claim_class, claim.kind, Text(_expected(one.claim)), *numbers)
    console.print(shown)
    for line in _counts(judged):
        console.print(line)
    return 0


def _number(judged: Judged | None) -> str:
    """The number with the sign of its verdict."""
    if judged is None or judged.measured is None:
        return "-"
    return f"{plain(judged.measured, 4)} {VERDICTS[judged.verdict][0]}"


def _expected(judged: Judged) -> str:
    """With its tolerance, where it is a number's."""
    tolerance = judged.claim.tolerance
    return (
        f"{judged.expected} ± {plain(tolerance, 4)}" if judged.expected[:1].isdigit() and tolerance else judged.expected
    )


def _counts(judged: ClaimsBySources) -> list[str]:
    lines = [counted(len(judged.claims), "claim")]
    for source in judged.sources:
        refuted = judged.refuted(source.name)
        lines.append(f"refuted by {source.title}: {len(refuted)}{_names(refuted)}")
    without = judged.without_number
    return [*lines, f"no number in any source: {len(without)}{_names(without)}"]


def _names(ids: list[str]) -> str:
    return f" ({', '.join(ids)})" if ids else ""
