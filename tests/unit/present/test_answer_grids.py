"""The report has every answer: a grid of verdicts, the reasons, and the words, from a run's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from netwarp.present.answer_words import SIGNS, answer_words
from netwarp.present.html import environment
from netwarp.present.run_data import read_run
from netwarp.results import Results, write_tables
from netwarp.store.plan_file import write_plan
from netwarp.store.run_dir import RunDir, write_json
from support.answers import answered, study, usual
from support.report_kit import MANIFEST
from support.results_kit import completed

Shown = tuple[dict[str, Any], list[dict[str, str]], list[str]]


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    """The answer as the report reads it, the rows of its table, and the sentences of the terminal."""
    plan, run = study(), RunDir(tmp_path)
    measurements = usual(plan)
    rows, words = answered(plan, measurements)
    write_plan(run, plan)
    write_json(run.manifest, MANIFEST | {"spec": plan.name, "seed": plan.seed, "repetitions": plan.repetitions})
    write_tables(Results(plan, completed(plan), measurements), run.tables)
    (answer,) = answer_words(read_run(run))
    return answer, rows, words


def test_every_choice_has_its_verdict_and_every_sentence_is_there(shown: Shown) -> None:
    answer, rows, words = shown
    assert [f"{condition}: {text}" for condition, text in answer["sentences"]] == words
    found = {
        (condition, choice["setting"], budget): verdict[0]
        for condition, choices in answer["conditions"]
        for choice in choices
        for budget, verdict in zip(answer["budgets"], choice["verdicts"], strict=True)
    }
    assert len(found) == len(rows)
    assert sorted(found.values()) == sorted(row["verdict"] for row in rows)
    assert {sign for sign, _, _ in answer["signs"]} == {SIGNS[row["verdict"]][0] for row in rows}


def test_the_page_has_them_and_escapes(shown: Shown) -> None:
    answer, rows, _ = shown
    longer = answer | {"sentences": [*answer["sentences"], ("RTT 1 s", "<none>")]}
    page = environment().get_template("answers.html.j2").render(answers=[longer])
    assert "&lt;none&gt;" in page and "<none>" not in page
    assert page.count('class="badge') >= len(rows)
    assert 'href="../tables/answer-budget.csv"' in page
