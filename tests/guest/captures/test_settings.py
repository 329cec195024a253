"""Inferred settings against those that random cells were given (a small part of benchmarks/blind_settings.py)."""

from pathlib import Path

import blind_settings
import netwarp
import pytest


@pytest.mark.parametrize(("protocol", "cells", "seed"), [("sctp", 12, 7), ("tcp", 8, 7)])
def test_inferred_intervals_hold_what_was_drawn(protocol: str, cells: int, seed: int, tmp_path: Path) -> None:
    run = netwarp.run(blind_settings.spec(cells, seed, protocol), out=tmp_path / "run", jobs=2)
    assert run.outcomes == {"COMPLETED": cells}
    tight = 0
    for cell in run.plan.cells:
        drawn = blind_settings.truth(cell)
        for host, each in blind_settings.inferred(run.path / "cells" / cell.id):
            value = drawn.get((each.end, each.name))
            if value is not None:
                assert blind_settings.holds(each, value), (cell.id, host, each, value)
                tight += blind_settings.is_tight(each)
    assert tight >= cells
