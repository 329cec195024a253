"""The plan of experiments/min2013: repetitions, losses, and every claim of the paper."""

from __future__ import annotations

from collections import Counter

import pytest
from netwarp.core.types import Cell
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.plan.types import Plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(load_spec("min2013"))


@pytest.fixture(scope="module")
def cells(plan: Plan) -> tuple[Cell, ...]:
    return plan.cells


def test_random_cells_run_five_times_and_the_others_once(cells: tuple[Cell, ...]) -> None:
    often = Counter(tuple(cell.factors.values()) for cell in cells)
    assert set(often.values()) == {1, 3, 5}
    assert {cell.factors["access"] for cell in cells if often[tuple(cell.factors.values())] == 1} == {"wired"}
    assert {cell.factors["internet"] for cell in cells if often[tuple(cell.factors.values())] == 3} == {
        "5 Mbit/s", "10 Mbit/s", "20 Mbit/s", "50 Mbit/s",
    }  # fmt: skip
    assert not any(cell.random for cell in cells if cell.factors["access"] == "wired")
    assert all(flow.total_bytes == 100_000_000 for cell in cells for flow in cell.flows)


def test_every_claim_of_the_paper_is_there(plan: Plan) -> None:
    numbers = {int(claim.id[1:].rstrip("bcdt")) for claim in plan.claims}
    assert numbers == set(range(1, 21))


def test_loss_is_in_the_directions_it_says(cells: tuple[Cell, ...]) -> None:
    for cell in cells:
        internet = next(link for link in cell.links if link.name == "internet")
        wanted = float(cell.factors["loss"].split()[0]) / 100
        assert internet.forward.loss_ratio == wanted
        assert internet.backward.loss_ratio == (0 if cell.factors["lost"] == "data only" else wanted)


def test_features_switched_off_belong_to_the_protocol(cells: tuple[Cell, ...]) -> None:
    found = {(cell.factors["protocol"], cell.factors["features"]) for cell in cells}
    assert found == {
        ("tcp", "as today"),
        ("tcp", "without RACK and TLP"),
        ("tcp", "without SACK"),
        ("sctp", "as today"),
        ("sctp", "without PF"),
        ("sctp", "without bundling"),
    }


def test_without_a_loss_that_is_set_the_base_loses_nothing() -> None:
    base = make_plan(load_spec("min2013"), only="base").cells
    quiet = [cell for cell in base if cell.factors["loss"] == "0 %" and cell.factors["bit_errors"] == "-"]
    assert {cell.factors["access"] for cell in quiet} == {"wired", "wifi"}
    for cell in quiet:
        shapes = [shape for link in cell.links for shape in (link.forward, link.backward)]
        assert not any(shape.loss_ratio or (shape.burst_loss and shape.burst_loss.p_ratio) for shape in shapes)


def test_base_and_robustness_are_everything_and_share_no_cell(cells: tuple[Cell, ...]) -> None:
    parts = [{cell.id for cell in make_plan(load_spec("min2013"), only=part).cells} for part in ("base", "robustness")]
    assert not parts[0] & parts[1]
    assert parts[0] | parts[1] == {cell.id for cell in cells}


def test_a_tenth_of_the_file_by_one_setting() -> None:
    plan = make_plan(load_spec("min2013", sets={"transfer": "10 MB"}), only="streams-wired")
    assert {flow.total_bytes for cell in plan.cells for flow in cell.flows} == {10_000_000}
