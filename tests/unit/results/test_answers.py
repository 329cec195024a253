"""Answers in words: the worst value decides, what is missing is not hidden, every number in a sentence is measured."""

from __future__ import annotations

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.types import CellOutcome, Measurement, Outcome
from netwarp.plan import make_plan
from netwarp.present.answer_words import sentences
from netwarp.results import Results
from netwarp.results.answers import answer_rows, value_words
from support.answers import STUDY, answered, measure, study, usual
from support.results_kit import completed, text_rows
from support.specs import spec_of


def test_each_choice_has_a_verdict_from_its_worst_value() -> None:
    plan = study()
    assert {cell.repetition for cell in plan.cells} == {0, 1} and plan.repetitions == 2
    rows, words = answered(plan, usual(plan))
    found = {(row["rtt"], row["budget"], row["knob"]): row for row in rows}
    assert len(found) == len(rows) == 2 * 2 * 3
    assert found["10 ms", "500 ms", "low"]["verdict"] == "does it"
    assert float(found["10 ms", "500 ms", "low"]["worst"]) == pytest.approx(0.4)
    assert found["10 ms", "500 ms", "low"]["cells"] == "2"
    assert found["50 ms", "500 ms", "low"]["verdict"] == "does it, at a cost"
    assert found["50 ms", "500 ms", "low"]["because"] == "12 were sent for nothing"
    assert found["10 ms", "500 ms", "mid"]["verdict"] == "looks tempting, does not"
    assert found["10 ms", "2 s", "mid"]["verdict"] == "does it"
    high = found["10 ms", "2 s", "high"]
    assert high["because"] == "it takes 3 timeouts, 3 of them"
    assert words[0] == (
        "RTT 10 ms, budget 500 ms: low (at most 400 ms) suffices. Looks sufficient, but fails: "
        "mid (at most 1.1 s), because the outage of 1.1 s is above the budget; high (at most 5.1 s), because "
        "it takes 3 timeouts, 3 of them."
    )
    assert words[2].startswith(
        "RTT 50 ms, budget 500 ms: Nothing measured suffices without a cost. Suffices at a cost: low"
    )


def test_an_endless_outage_is_worst_and_missing_cells_are_named() -> None:
    plan = study()
    numbers = [
        Measurement(one.cell_id, one.flow, one.metric, None, "s")
        if one.metric == "outage_s" and one.cell_id == plan.cells[0].id
        else one
        for one in usual(plan)
    ]
    rows, words = answered(plan, numbers, failed="mid")
    low = next(row for row in rows if row["knob"] == "low" and row["rtt"] == "10 ms")
    assert (low["verdict"], low["worst"], low["without_value"]) == ("looks tempting, does not", "", "1")
    assert "low (not over at the end of 1 of 2 cells)" in words[0]
    assert "Not measured: mid (did not run)." in words[0]


def test_the_reason_of_an_incomplete_cell_is_given() -> None:
    plan = study()
    lost = next(cell for cell in plan.cells if cell.factors["knob"] == "low" and cell.factors["rtt"] == "10 ms")
    outcomes = completed(plan) | {lost.id: CellOutcome(Outcome.FAILED, "the sender broke", 1.0, 1.0)}
    (answer,) = plan.answers
    numbers = [one for one in usual(plan) if one.cell_id != lost.id]
    rows = text_rows(answer_rows(Results(plan, outcomes, numbers), answer))
    low = next(row for row in rows if row["knob"] == "low" and row["rtt"] == "10 ms")
    assert low["verdict"] == "not measured"
    assert low["because"] == "1 of 2 cells did not run to their end (FAILED: the sender broke)"
    words = sentences(plan, answer, rows)
    assert (
        "Not measured: low (at most 400 ms where it ran), because 1 of 2 cells did not run to their end (" in words[0]
    )


def test_choices_that_are_alike_are_said_together() -> None:
    text = STUDY.replace('settings = ["knob"]', 'settings = ["knob", "rtt"]').replace('given = ["rtt"]\n', "")
    plan = study(text)
    _, words = answered(plan, usual(plan))
    assert words[0].startswith(
        "budget 500 ms: knob low, RTT 10 ms (at most 400 ms) suffices. Suffices at a cost: knob low, RTT 50"
    )
    assert (
        "Looks sufficient, but fails: knob mid, RTT 10 ms/50 ms (at most 1.1 s), because the outage of 1.1 s"
        in words[0]
    )
    _, words = answered(plan, measure(plan, outage_s=lambda levels, number: 3.0 + (levels["knob"] == "high")))
    assert "because (here of knob low/mid, RTT 10 ms/50 ms)" not in words[0]
    assert "because (here of knob low, RTT 10 ms) the outage of 3 s is above the budget" in words[0]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('settings = ["knob"]', 'settings = ["nob"]', 'unknown factor "nob"'),
        ('budgets = ["500 ms", "2 s"]', 'budgets = ["500"]', "500"),
        ('budgets = ["500 ms", "2 s"]', 'budgets = ["500 kB"]', "500 kB"),
        ('metric = "outage_s"\nsettings', 'metric = "theory_timeouts"\nsettings', "a budget needs a metric in one of"),
        ("{theory_timeouts} timeouts", "{theory_timeout} timeouts", 'unknown metric "theory_timeout"'),
        ("above = 1", 'above = "1"', "must be a number"),
        ('given = ["rtt"]', 'given = ["knob"]', "both"),
        ('where = { load = "thin" }', 'where = { load = "thin", knob = "-" }', "no cell fits its `where`"),
    ],
)
def test_mistakes_are_named(old: str, new: str, says: str) -> None:
    assert old in STUDY
    with pytest.raises(SpecError, match=says.replace("{", r"\{")):
        study(STUDY.replace(old, new))


def test_repetitions_of_an_experiment_give_way_to_the_command_line() -> None:
    spec = spec_of(STUDY)
    assert make_plan(spec, repetitions=1).repetitions == 1
    assert len(make_plan(spec).cells) == 24


def test_numbers_as_sentences_have_them() -> None:
    assert [
        value_words(0.2584, "s"),
        value_words(1.0571, "s"),
        value_words(65.698, "s"),
        value_words(12.0, "chunks"),
        value_words(16384.0, "bytes"),
    ] == ["258 ms", "1.06 s", "65.7 s", "12", "16.4 kB"]


def test_cells_that_did_not_run_to_their_end_keep_no_budget() -> None:
    """What is left of a choice can refuse a budget; it cannot keep one, whatever the missing cells would have said."""
    plan = study()
    outcomes = {
        cell.id: CellOutcome(Outcome.FAILED if cell.repetition == 1 else Outcome.COMPLETED, "", 1.0, 1.0)
        for cell in plan.cells
    }
    measurements = measure(plan, outage_s=lambda factors, _: 0.1 if factors["knob"] == "low" else 5.0)
    (answer,) = plan.answers
    rows = text_rows(answer_rows(Results(plan, outcomes, measurements), answer))
    verdicts = {(row["knob"], row["verdict"], row["because"]) for row in rows if row["budget"] == "500 ms"}
    assert ("low", "not measured", "1 of 2 cells did not run to their end") in verdicts
    assert {verdict for knob, verdict, _ in verdicts if knob != "low"} <= {"does not", "looks tempting, does not"}
    assert not any(row["verdict"].startswith("does it") for row in rows)


def test_a_reason_is_no_time_longer_than_what_it_explains() -> None:
    """The first retransmission on the other path came after the outage had ended: it does not explain the outage."""
    text = STUDY.replace(
        "because = [", 'because = [{ metric = "first_retransmission_other_path_s", text = "late" },', 1
    )
    plan = study(text)

    def because(first_retransmission_s: float) -> str:
        numbers = [
            Measurement(one.cell_id, one.flow, one.metric, first_retransmission_s, one.unit)
            if one.metric == "first_retransmission_other_path_s"
            else one
            for one in usual(plan)
        ]
        (row,) = (
            row
            for row in answered(plan, numbers)[0]
            if (row["rtt"], row["budget"], row["knob"]) == ("10 ms", "500 ms", "mid")
        )
        assert row["worst"] == "1.1"
        return row["because"]

    assert because(12.8) == "the outage of 1.1 s is above the budget"
    assert because(1.05) == "late"
