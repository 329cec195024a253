"""experiments/recovery: what is kept of each kernel, the table of its README, and what differs."""

from __future__ import annotations

import golden
import pytest
from netwarp.engine.planning import load_experiment
from support.checkout import ROOT

NAME = "recovery"


def test_the_table_is_that_of_the_kernels() -> None:
    """`.venv/bin/python experiments/golden.py` writes it again."""
    there = (ROOT / "experiments" / NAME / "README.md").read_text().split(golden.BEGIN)[1].split(golden.END)[0].strip()
    assert there == golden.table(NAME)


def test_every_difference_is_explained_and_nothing_else() -> None:
    found = {name for each in golden.kernels(NAME) for name, row in each["claims"].items() if row["verdict"] != "holds"}
    assert found == golden.differences(NAME).keys()


@pytest.mark.parametrize("kept", golden.kernels(NAME), ids=lambda kept: kept["release"])
def test_what_is_kept_is_of_the_claims_of_today(kept: golden.Kept) -> None:
    """Each of them was judged, and none of the past stands there."""
    claims = {claim.id for claim in load_experiment("recovery").claims}
    assert {name.partition(" ")[0] for name in kept["claims"]} == claims
    assert all(row["verdict"] in ("holds", "does not hold") for row in kept["claims"].values())


def test_another_capture_and_an_unknown_cell_are_named() -> None:
    kept = golden.kernels(NAME)[0]
    cells = list(kept["captures"])[:2]
    did = {**kept, "captures": {cells[0]: kept["captures"][cells[0]], cells[1]: "0" * 16, "other_r0": "1" * 16}}
    assert golden.differing(did) == [cells[1], "other_r0"]
    assert golden.differing({**did, "kernel_sha256": "0" * 64}) is None
