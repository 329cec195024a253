"""A cell keeps its id on the way through JSON: plan.json, cell.json and the directory's name must agree."""

from __future__ import annotations

import msgspec
from cells import two_path_cell

from orchestrator.model import Cell, cell_from_json, to_json


def test_id_survives_json_whatever_the_factors_are_called() -> None:
    cell = two_path_cell(factors={"zeta": "10 s", "alpha": "tcp", "middle": "-"})
    assert cell.id.startswith("10s_tcp_r0_")
    assert cell_from_json(to_json(cell)).id == cell.id
    readable = msgspec.json.format(msgspec.json.encode(cell), indent=2)
    assert msgspec.json.decode(readable, type=Cell).id == cell.id


def test_id_follows_everything_a_cell_says() -> None:
    cell = two_path_cell()
    assert msgspec.structs.replace(cell, seed=cell.seed + 1).id != cell.id
    assert msgspec.structs.replace(cell, duration_ns=cell.duration_ns + 1).id != cell.id
