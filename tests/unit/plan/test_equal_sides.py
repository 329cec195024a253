"""A claim whose sides are one cell by several names says nothing, whatever is measured: it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.plan import make_plan
from support.claims import FACTORS, OVER, claim
from support.specs import BASE, spec_of

ALIKE = """
[factor.called]
levels = ["this", "that"]
[factor.called.level]
this.title = "This"
that.title = "That"
"""
REFUSED = "all that it compares is one cell, by several names"


def plan(folder: Path, claims: str, **chosen: object) -> None:
    (folder / "claims.toml").write_text(claims)
    spec = spec_of('expected = "claims.toml"\n' + BASE + FACTORS + ALIKE, folder)
    make_plan(spec, **chosen)  # type: ignore[arg-type]


A_B = 'where = { who = "a", x = "1 s" }\na = { called = "this" }\nb = { called = "that" }\n'
OVER_NAMES = 'over = { called = ["this", "that"] }\na = { who = "a", x = "1 s" }\n'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("equal", A_B + "tolerance = 0.05\n"),
        ("greater", A_B),
        ("equal", A_B.replace(', x = "1 s"', "") + OVER + "tolerance = 0.05\n"),
        ("equal", A_B.replace('b = { called = "that" }', 'b = { called = "this" }') + "tolerance = 0.05\n"),
        ("constant", OVER_NAMES + "tolerance = 0.05\n"),
        ("increasing", OVER_NAMES + 'b = { who = "b", x = "1 s" }\n'),
    ],
)
def test_one_cell_by_several_names_is_refused(tmp_path: Path, kind: str, body: str) -> None:
    with pytest.raises(SpecError, match=REFUSED) as raised:
        plan(tmp_path, claim(kind, body))
    assert "first seen in the cell" not in str(raised.value)  # it is about the claim, not about the cell planned last


def test_so_is_a_condition(tmp_path: Path) -> None:
    body = 'where = { called = "this" }\na = { who = "a", x = "1 s" }\nb = { who = "a", x = "2 s" }\n'
    plan(tmp_path, claim("greater", body + 'also = { called = "that" }\n'))
    with pytest.raises(SpecError, match=f'claim "C1 x=2 s": {REFUSED}'):
        plan(tmp_path, claim("greater", body + 'also = { x = "2 s" }\n'))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("greater", 'where = { x = "1 s", called = "this" }\na = { who = "a" }\nb = { who = "b" }\n'),
        ("less", A_B + 'metric_b = "data_packets"\n'),
        ("value", 'a = { who = "a", x = "1 s", called = "this" }\nexpected = 1\ntolerance = 1\n'),
    ],
)
def test_other_cells_and_other_metrics_are_compared(tmp_path: Path, kind: str, body: str) -> None:
    plan(tmp_path, claim(kind, body))


def test_of_cells_that_are_not_planned_nothing_is_said(tmp_path: Path) -> None:
    plan(tmp_path, claim("greater", A_B), where=[("who", "b")])
