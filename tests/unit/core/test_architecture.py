"""docs/architecture.md's table of rooms against import-linter's layers and the packages there are."""

from __future__ import annotations

import re
import tomllib

from support.checkout import ROOT


def test_the_table_of_rooms_is_the_linters_and_the_trees() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = re.findall(r"^\| `(\w+)` \|", text[text.index("| room,") : text.index("## The parts of the report")], re.M)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert rooms == layers
    packages = {path.parent.name for path in (ROOT / "orchestrator" / "netwarp").glob("*/__init__.py")}
    assert packages == set(rooms)
