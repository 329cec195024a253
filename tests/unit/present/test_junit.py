"""The JUnit file of a run, read back by an XML parser."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from netwarp.core.types import CellOutcome, Outcome
from netwarp.present.junit import write_junit
from netwarp.store.plan_file import read_plan
from netwarp.store.tables import read_rows
from support.report_kit import small_run
from support.specs import BASE, plan_of


def kinds(suite: ElementTree.Element) -> Counter[str]:
    return Counter(case[0].tag if len(case) else "passed" for case in suite)


def test_cells_and_claims_of_a_run(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    plan = read_plan(run)
    outcomes = {cell_id: run.cell(cell_id).read_outcome() for cell_id in run.finished()}
    claims = read_rows(run.tables / "claims.csv")
    write_junit(tmp_path / "j.xml", plan, outcomes, claims)
    cells, of_claims = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert kinds(cells) == {"passed": 10, "failure": 1, "skipped": 1}
    assert (cells.get("tests"), cells.get("failures"), cells.get("skipped")) == ("12", "1", "1")
    (failure,) = cells.iter("failure")
    assert failure.get("message") == "FAILED: the guest hung at T0 + 40 s"
    assert [case.get("name") for case in cells] == [cell.id for cell in plan.cells]
    verdicts = Counter(row["verdict"] for row in claims)
    assert len(verdicts) > 1
    assert kinds(of_claims) == {
        kind: count
        for kind, count in (
            ("passed", verdicts.pop("holds", 0)), ("failure", verdicts.pop("does not hold", 0)),
            ("skipped", verdicts.total()),
        )
        if count
    }  # fmt: skip


def test_whatever_a_console_says_is_xml(tmp_path: Path) -> None:
    plan = plan_of(BASE)
    odd = "".join(map(chr, range(32))) + "]]></testcase>&\"'\ud800\ufffe\U0001f600"
    outcome = CellOutcome(Outcome.UNSUPPORTED, odd, None, 0.25, console_tail=(odd,))
    write_junit(tmp_path / "j.xml", plan, {plan.cells[0].id: outcome}, [])
    (case,) = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert case[0].tag == "skipped" and "]]></testcase>&\"'" in (case[0].get("message") or "")
    assert case.get("time") == "0.250"
