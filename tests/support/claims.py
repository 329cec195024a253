"""Specs with claims, judged by given numbers."""

from __future__ import annotations

from pathlib import Path

from netwarp.core.types import CellOutcome, Measurement, Outcome
from netwarp.plan import make_plan
from netwarp.plan.types import Plan
from netwarp.results import Judged, Results, judge

from support.specs import BASE, spec_of

FACTORS = """\
[factor.who]
levels = ["a", "b", "c"]
[factor.who.level.a.link.p1]
queue = "49 packets"
[factor.who.level.b.link.p1]
queue = "50 packets"
[factor.who.level.c.link.p1]
queue = "51 packets"
[factor.x]
levels = ["1 s", "2 s", "3 s"]
sets = "link.p1.one_way_delay"
"""
OVER = 'over = { x = ["1 s", "2 s", "3 s"] }\n'


def claim(kind: str, body: str, name: str = "C1") -> str:
    return f'[[claim]]\nid = "{name}"\ntext = "t"\nsource = "Table 1"\nkind = "{kind}"\nmetric = "packets"\n{body}\n'


def plan_of(tmp_path: Path, claims: str, repetitions: int = 1, more: str = "", **chosen: object) -> Plan:
    (tmp_path / "claims.toml").write_text(claims)
    spec = spec_of('expected = "claims.toml"\n' + BASE + more + FACTORS, tmp_path)
    return make_plan(spec, repetitions=repetitions, **chosen)  # type: ignore[arg-type]


def judged(
    plan: Plan, numbers: dict[str, list[list[float]]], failed: str = "", cpu_per_byte_s: float | None = None
) -> tuple[Judged, ...]:
    """numbers: who -> one list for each level of x -> one number for each repetition. cpu_per_byte_s: of every cell, as
    on the wall clock; None: virtual time.
    """
    outcomes: dict[str, CellOutcome] = {}
    values: list[Measurement] = []
    for cell in plan.cells:
        who, level = cell.factors["who"], ["1 s", "2 s", "3 s"].index(cell.factors["x"])
        bad = failed == f"{who} {cell.factors['x']}"
        outcomes[cell.id] = CellOutcome(Outcome.FAILED if bad else Outcome.COMPLETED, "broke" if bad else "", 1.0, 1.0)
        if who in numbers:
            values.append(Measurement(cell.id, "f", "packets", numbers[who][level][cell.repetition], "packets"))
        if cpu_per_byte_s is not None:
            values.append(Measurement(cell.id, "f", "sender_cpu_per_byte_s", cpu_per_byte_s, "s"))
    return judge(Results(plan, outcomes, values))


def rows(*values: float) -> list[list[float]]:
    return [[value] for value in values]
