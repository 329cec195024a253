"""The plan of experiments/kim2002: every network and alternative of the paper, every claim, what the seed decides."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from netwarp.core.link_types import Link
from netwarp.core.types import Cell
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.plan.types import Plan

MS, MBIT = 10**6, 10**6


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(load_spec("kim2002"))


@pytest.fixture(scope="module")
def cells(plan: Plan) -> tuple[Cell, ...]:
    return plan.cells


def test_every_claim_of_the_paper_is_there(plan: Plan) -> None:
    numbers = {match[1] for claim in plan.claims if (match := re.match(r"C(\d+)", claim.id))}
    assert numbers == {str(number) for number in range(1, 27)}
    waiting = {claim.id for claim in plan.claims if claim.kind == "later"}
    assert not waiting


def test_random_cells_run_five_times_and_the_others_once(cells: tuple[Cell, ...]) -> None:
    often = Counter((cell.experiment, *cell.factors.values()) for cell in cells)
    for cell in cells:
        assert often[cell.experiment, *cell.factors.values()] == (5 if cell.random else 1)
        drawn = cell.factors["errors"] not in ("-", "none") or cell.factors["queueing"] in ("red", "pie")
        assert cell.random == drawn


@pytest.mark.parametrize(
    ("network", "reading", "rtt_ms"),
    [
        ("wired", "-", 200.2),
        ("mtcp", "-", 12),
        ("sat_sym", "590 ms round trip", 590),
        ("sat_sym", "one link", 1000),
        ("sat_sym", "two links", 2000),
        ("sat_asym", "one link", 400),
        ("sat_asym", "two links", 800),
    ],
)
def test_round_trips_are_those_of_the_paper(cells: tuple[Cell, ...], network: str, reading: str, rtt_ms: float) -> None:
    of_figure_6 = [cell for cell in cells if cell.experiment.startswith("window") and "deep" not in cell.experiment]
    mine = [cell for cell in of_figure_6 if (cell.factors["network"], cell.factors["reading"]) == (network, reading)]
    assert mine
    assert {cell.flows[0].paths[0].base_rtt_ns for cell in mine} == {round(rtt_ms * MS)}


def last_link(cell: Cell) -> Link:
    """The satellite's, or the wireless one."""
    return next(link for link in cell.links if link.name == "l2")


def test_figure_8_has_an_uplink_of_1_mbit_s_and_errors_towards_the_receiver(cells: tuple[Cell, ...]) -> None:
    mine = [cell for cell in cells if cell.experiment in ("errors", "errors_rates")]
    downlinks = {cell.experiment: set[int | None]() for cell in mine}
    for cell in mine:
        link = last_link(cell)
        assert link.backward.rate_bit_s == MBIT
        downlinks[cell.experiment].add(link.forward.rate_bit_s)
        assert link.backward.bit_error_ratio == link.backward.byte_error_ratio == 0
        wanted = {"of bits": link.forward.bit_error_ratio, "of bytes": link.forward.byte_error_ratio}
        level, _, unit = cell.factors["errors"].partition(" ")
        assert level == "none" or wanted[unit] == float(level)
    assert len({cell.factors["errors"] for cell in mine}) == 5
    assert downlinks == {"errors": {MBIT // 2, 2 * MBIT}, "errors_rates": {5 * MBIT, 10 * MBIT}}


def test_the_symmetric_satellite_has_equal_links_too(cells: tuple[Cell, ...]) -> None:
    mine = [last_link(cell) for cell in cells if cell.experiment == "errors_equal"]
    assert {(link.forward.rate_bit_s, link.backward.rate_bit_s) for link in mine} == {
        (rate, rate) for rate in (MBIT // 2, 2 * MBIT, 5 * MBIT, 10 * MBIT)
    }


@pytest.mark.parametrize("experiment", ["rates_itcp", "initial_rates_itcp"])
def test_figures_7_and_10_have_every_rate_and_delay_of_the_wireless_link(
    cells: tuple[Cell, ...], experiment: str
) -> None:
    """4.1.2: 9.6 and 384 kbit/s and 2 Mbit/s; 2 and 200 ms; the figures' 100 ms."""
    mine = [last_link(cell).forward for cell in cells if cell.experiment == experiment]
    assert {(link.rate_bit_s, link.one_way_delay_ns) for link in mine} == {
        (rate, delay * MS) for rate in (9600, 384_000, 2 * MBIT) for delay in (2, 100, 200)
    }
