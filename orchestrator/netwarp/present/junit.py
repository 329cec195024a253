"""Outcomes of cells and verdicts of claims as JUnit XML, the form in which CI services show tests."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..core.outside_text import one_line, visible
from ..core.types import CellOutcome, Outcome
from ..plan.types import Plan
from ..store.run_dir import write_atomic
from .style import verdict_shown

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HOLDS, FAILS = "holds", "does not hold"


def write_junit(
    path: Path, plan: Plan, outcomes: Mapping[str, CellOutcome], claims: Iterable[Mapping[str, str]]
) -> None:
    """Write the file, completely or not at all. A cell that this machine cannot run, and a claim without a decision,
    are skipped tests. Raises StoreError.
    """
    root = ElementTree.Element("testsuites", name=plan.name)
    cells = ElementTree.SubElement(root, "testsuite", name=f"{plan.name}: cells")
    for cell in plan.cells:
        case = _case(cells, f"{plan.name}.{cell.experiment}", cell.id)
        outcome = outcomes.get(cell.id)
        if outcome is None:
            _add(case, "skipped", "was not run", "")
            continue
        case.set("time", f"{outcome.wall_s:.3f}")
        if outcome.outcome is Outcome.UNSUPPORTED:
            _add(case, "skipped", f"{outcome.outcome}: {outcome.reason}", "")
        elif outcome.outcome is not Outcome.COMPLETED:
            _add(case, "failure", f"{outcome.outcome}: {outcome.reason}", "\n".join(outcome.console_tail))
    of_claims = ElementTree.SubElement(root, "testsuite", name=f"{plan.name}: claims")
    for row in claims:
        case = _case(of_claims, f"{plan.name}.claims", " ".join(filter(None, (row["claim"], row["condition"]))))
        if row["verdict"] != HOLDS:
            against = f"measured {row['measured'] or '-'}, claimed {row['expected']} {row['unit']}".rstrip()
            said = f"{verdict_shown(row['verdict'])}: {against}"
            _add(case, "failure" if row["verdict"] == FAILS else "skipped", said, row["source"])
    for suite in (cells, of_claims):
        cases = list(suite)
        suite.set("tests", str(len(cases)))
        for kind in ("failure", "skipped"):
            suite.set(
                f"{kind}s".replace("skippeds", "skipped"), str(sum(case.find(kind) is not None for case in cases))
            )
    ElementTree.indent(root)
    write_atomic(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _case(suite: ElementTree.Element, of: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_text(of), name=_text(name))


def _add(case: ElementTree.Element, kind: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, kind, message=_text(one_line(message))).text = _text(text)


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", visible(text))
