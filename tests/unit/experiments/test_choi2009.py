"""What choi2009's README says of the paper's simulator, counted again from published.csv."""

from __future__ import annotations

import csv
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "experiments" / "choi2009"
VARIED = ("printed_rtt", "bandwidth", "sim_time", "variant", "outage")
MULTI_FAILOVER = ("", "scripted_switch")
"""The paper's failover; "" for a protocol that has one path."""


def test_the_utilizations_that_ns2_gives_again_are_as_many_as_the_readme_says() -> None:
    rows = list(csv.DictReader((FOLDER / "published.csv").read_text().splitlines()))
    printed = [row for row in rows if row["source"] == "paper" and row["metric"] == "paper_utilisation"]
    simulated: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        where = (row["source"], row["metric"], row["reading"])
        if where == ("ns2_29", "paper_utilisation", "one_way_delay") and row["failover"] in MULTI_FAILOVER:
            simulated.setdefault(tuple(row[factor] for factor in VARIED), set()).add(row["value"])

    def equal(*rules: str) -> int:
        return sum(
            any(
                Decimal(value).quantize(Decimal("0.001"), rule) == Decimal(row["value"])
                for value in simulated[tuple(row[factor] for factor in VARIED)]
                for rule in rules
            )
            for row in printed
        )

    said = (
        f"{equal(ROUND_HALF_UP)} of its {len(printed)} printed utilizations come out to three decimals,"
        f" {equal(ROUND_HALF_UP, ROUND_HALF_DOWN)} where a half may be rounded either way"
    )
    assert said in (FOLDER / "README.md").read_text()
