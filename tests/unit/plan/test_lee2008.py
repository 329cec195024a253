"""The plan of experiments/lee2008: pages, conditions, published numbers, and every claim of the paper."""

from __future__ import annotations

import pytest
from netwarp.engine.models import TABLE3
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.plan.types import Plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(load_spec("lee2008"))


def test_every_claim_of_the_paper_is_there(plan: Plan) -> None:
    assert {int(claim.id[1:].rstrip("bcde")) for claim in plan.claims} == set(range(1, 9))
    assert all(claim.sentence is not None or claim.claim_class == "own" for claim in plan.claims)


def test_table_3_is_run_in_its_nine_rows(plan: Plan) -> None:
    cells = [cell for cell in plan.cells if cell.factors["block"] != "-" and cell.repetition == 0]
    assert len(cells) == 9 * 2 * 2
    rows = set()
    for cell in cells:
        (link,), (flow,) = cell.links, cell.flows
        assert flow.receiver_options["object_bytes"] == ",".join(["13500"] * 5)
        rows.add((cell.factors["block"], link.forward.loss_ratio, link.forward.rate_bit_s, flow.paths[0].base_rtt_ns))
    assert rows == {(row.varied, row.loss, row.rate_bit_s, round(row.rtt_s * 1e9)) for row in TABLE3}


def test_published_csv_is_the_table_of_the_model(plan: Plan) -> None:
    printed = {
        (number.source, number.at["block"][0], number.at["protocol"][0], *(
            number.at[name][0] for name in ("loss", "rate", "rtt") if name in number.at
        )): number.value
        for number in plan.expected
        if number.metric == "response_time_s"
    }  # fmt: skip
    assert len(printed) == 36
    words = {"p": lambda row: f"{row.loss * 100:g} %", "rtt": lambda row: f"{row.rtt_s * 1000:.0f} ms",
             "mu": lambda row: {40e3: "40 kbit/s", 400e3: "400 kbit/s", 3e6: "3 Mbit/s"}[row.rate_bit_s]}  # fmt: skip
    for row in TABLE3:
        level = words[row.varied](row)
        for protocol in ("tcp", "sctp"):
            assert printed["paper", row.varied, protocol, level] == getattr(row, f"testbed_{protocol}_s")
            assert printed["paper_model", row.varied, protocol, level] == getattr(row, f"model_{protocol}_s")
