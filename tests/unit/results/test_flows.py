"""Flows are a dimension of tables, figures, answers and claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.types import Measurement
from netwarp.plan import make_plan
from netwarp.plan.types import Plan
from netwarp.results import Results, judge
from netwarp.results.answers import answer_rows
from netwarp.results.rows import draw_rows, number_rows
from netwarp.results.verdicts import published
from support.results_kit import completed
from support.specs import BASE, problems_of, spec_of

STUDY = (
    BASE.replace(
        'name = "test"', 'name = "test"\nexpected = "claims.toml"\npublished = "published.csv"\nrepetitions = 2'
    )
    + """
[flow]
g = { like = "f", port = 5002 }
h = { like = "f", port = 5003, only = { load = "full" } }
[factor.load]
levels = ["none", "full"]
[table]
all = { metric = "outage_s", rows = ["flow"], columns = ["load"] }
two = { metric = "outage_s", flow = ["g", "f"], rows = ["load"], columns = ["flow"] }
[figure]
lines = { metric = "outage_s", x = "load", lines = ["flow"] }
boxes = { kind = "cdf", metric = "outage_s", lines = ["flow"], over = ["load"] }
[answer]
which = { metric = "outage_s", settings = ["flow"], given = ["load"], budgets = ["2 s"] }
"""
)
PUBLISHED = """\
source,metric,flow,load,value
paper,outage_s,g,none,9
paper,outage_s,g,full,9
paper,outage_s,f,none,3
"""
CLAIMS = """
[source.paper]
[[claim]]
id = "less"
text = "f suffers less than g"
source = "s"
kind = "less"
metric = "outage_s"
a = { flow = "f", load = "none" }
b = { flow = "g", load = "none" }
also = { load = "full" }
[[claim]]
id = "order"
text = "f, g, h in this order"
source = "s"
kind = "increasing"
metric = "outage_s"
a = { load = "full" }
over = { flow = ["f", "g", "h"] }
[[claim]]
id = "named"
text = "of g, as `flow` says"
source = "s"
kind = "value"
metric = "outage_s"
flow = "g"
a = { load = "none" }
expected = 2
tolerance = 0
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return planned(tmp_path)


def planned(folder: Path, claims: str = CLAIMS) -> Plan:
    (folder / "claims.toml").write_text(claims)
    (folder / "published.csv").write_text(PUBLISHED)
    return make_plan(spec_of(STUDY, folder))


def results(plan: Plan, **values: float) -> Results:
    """The outage of each flow, a tenth more with load; a flow without one has no such metric."""
    measured = [
        Measurement(cell.id, flow.name, "outage_s", values[flow.name] + (cell.factors["load"] == "full") / 10, "s")
        for cell in plan.cells
        for flow in cell.flows
        if flow.name in values
    ]
    return Results(plan, completed(plan), measured)


def test_a_table_has_a_row_for_each_flow_of_each_cell(plan: Plan) -> None:
    rows = number_rows(results(plan, f=1.0, g=2.0, h=3.0), plan.tables[0])
    assert rows.header[:3] == ("flow", "load", "value")
    assert [row[:3] for row in rows.rows] == [
        ("f", "none", 1.0), ("f", "full", 1.1), ("g", "none", 2.0), ("g", "full", 2.1), ("h", "full", 3.1),
    ]  # fmt: skip


def test_published_numbers_are_of_their_flow(plan: Plan) -> None:
    rows = number_rows(results(plan, f=1.0, g=2.0, h=3.0), plan.tables[0])
    paper = rows.header.index("paper")
    assert [row[paper] for row in rows.rows] == [3.0, None, 9.0, 9.0, None]
    numbers = published(plan)["paper"]
    assert numbers["less"].measured == pytest.approx(3 / 9 - 1)
    assert numbers["named"].measured == 9
    assert "less load=full" not in numbers, "the source has no number of f there"


def test_flows_that_have_the_metric_are_shown(plan: Plan) -> None:
    assert {row[0] for row in number_rows(results(plan, f=1.0, h=3.0), plan.tables[0]).rows} == {"f", "h"}
    assert {row[0] for row in number_rows(results(plan), plan.tables[0]).rows} == {"f", "g", "h"}, "nothing ran: all"


def test_flow_chooses(plan: Plan) -> None:
    rows = number_rows(results(plan, f=1.0, g=2.0, h=3.0), plan.tables[1])
    assert [row[:3] for row in rows.rows] == [
        ("none", "f", 1.0), ("none", "g", 2.0), ("full", "f", 1.1), ("full", "g", 2.1),
    ]  # fmt: skip


def test_figures_have_flows_as_lines(plan: Plan) -> None:
    measured = results(plan, f=1.0, g=2.0, h=3.0)
    assert number_rows(measured, plan.figures[0]).header[:2] == ("flow", "load")
    boxes = draw_rows(measured, plan.figures[1])
    assert [(row[0], row[1], row[4]) for row in boxes.rows if row[0] == "h"] == [("h", "full", 3.1)] * 2


def test_an_answer_chooses_a_flow(plan: Plan) -> None:
    rows = answer_rows(results(plan, f=1.0, g=2.0, h=3.0), plan.answers[0])
    chosen = {(row[0], row[2]): row[3] for row in rows.rows}
    assert chosen == {
        ("none", "f"): "does it", ("none", "g"): "does it",
        ("full", "f"): "does it", ("full", "g"): "does not", ("full", "h"): "does not",
    }  # fmt: skip


def test_claims_compare_flows(plan: Plan) -> None:
    judged = {one.claim.name: one for one in judge(results(plan, f=1.0, g=2.0, h=3.0))}
    assert judged["less"].verdict == "holds"
    assert judged["less"].measured == -0.5
    assert judged["less load=full"].measured == pytest.approx(1.1 / 2.1 - 1)
    assert judged["order"].verdict == "holds"
    assert judged["named"].verdict == "holds"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ('[table.t]\nmetric = "outage_s"\nrows = ["load"]\n', 'table.t: of which flow? name one: f, g, h'),
        ('[table.t]\nmetric = "outage_s"\nrows = ["load"]\nflow = ["f", "g"]\n', "flow: names 2 flows"),
        ('[table.t]\nmetric = "outage_s"\nrows = ["flw"]\n', 'rows[0]: unknown factor "flw", did you mean "flow"?'),
        ('[table.t]\nmetric = "jain_index"\nrows = ["flow", "load"]\n', "jain_index is a metric of the whole cell"),
        ('[table.t]\nmetric = "outage_s"\nrows = ["flow"]\nwhere = { flow = "f" }\n', "where.flow: this chooses cells"),
        ('[table.t]\nmetric = "outage_s"\nrows = ["flow"]\n', "would mix 2 cells, which differ in load"),
        ('[table.t]\naround = ["fault"]\nflow = ["f", "g"]\n', "a table of events is of one flow"),
    ],
)  # fmt: skip
def test_mistakes_are_named(spec: str, said: str) -> None:
    text = STUDY.replace('expected = "claims.toml"\npublished = "published.csv"\n', "")
    problems = problems_of(text.replace("[table]\n", spec + "[table]\n"))
    assert any(said in problem and "spec.toml:" in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('{ flow = "f", load = "none" }', '{ flow = "ff", load = "none" }', 'claim[0].a.flow: there is no flow "ff"'),
        ('{ flow = "f", load = "none" }', '{ flow = ["f", "g"], load = "none" }', "names 2 flows; it must name one"),
        ('{ flow = "f", load = "none" }', '{ load = "none" }', "claim[0]: of which flow? name one: f, g, h"),
        ('flow = "g"\na', 'flow = "gg"\na', 'there is no flow "gg"'),
    ],
)
def test_mistakes_in_claims_are_named(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in CLAIMS
    with pytest.raises(SpecError) as caught:
        planned(tmp_path, CLAIMS.replace(old, new))
    assert said in str(caught.value)
