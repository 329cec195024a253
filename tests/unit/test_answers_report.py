"""The report has the answers, the first open, the rest on demand."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from test_answers import answered, study, usual

from orchestrator.report.answers import answer_words
from orchestrator.report.page import environment


def test_the_page_has_every_sentence(tmp_path: Path) -> None:
    plan = study()
    rows, words = answered(plan, usual(plan))
    header = list(rows[0])
    lines = [",".join(header), *(",".join(f'"{row[key]}"' for key in header) for row in rows)]
    (tmp_path / "answer-budget.csv").write_text("\n".join(lines) + "\n")
    data = cast(Any, SimpleNamespace(plan=plan, run=SimpleNamespace(tables=tmp_path)))
    (answer,) = answer_words(data)
    assert [f"{condition}: {text}" for condition, text in (*answer.first, *answer.more)] == words
    longer = dataclasses.replace(answer, more=(("RTT 1 s", "<none>"),))
    page = environment().get_template("answers.html.j2").render(answers=[longer])
    assert page.count("<dt>") == len(words) + 1 and "&lt;none&gt;" in page
    assert re.search(r"<details>\s*<summary>1 more</summary>", page)
    assert 'href="../tables/answer-budget.csv"' in page
