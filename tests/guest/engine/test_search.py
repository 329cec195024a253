"""A search on real guests: reproducible whatever the number of processes, resumable, and its point can be replayed."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import netwarp
import pytest
from netwarp.core.errors import SpecError
from netwarp.engine.search import SearchResult, search
from netwarp.store.run_dir import RunDir
from support.chain_kit import factor, two_paths, written

METRIC = "goodput_bit_s"


def spec_in(place: Path) -> Path:
    """A box of 5 x 4 points, each a TCP and an SCTP cell."""
    factors = factor("rate", [f"{number} Mbit/s" for number in range(1, 6)]) + factor(
        "delay", ["10 ms", "20 ms", "40 ms", "80 ms"]
    )
    text = two_paths(factors, duration="2 s").replace('"2 Mbit/s"', '"{rate}"').replace('"20 ms"', '"{delay}"', 1)
    return written(place / "box.toml", text)


def searched(spec: Path, out: Path, **options: object) -> SearchResult:
    return search(
        spec, METRIC, largest=False, over=["rate", "delay"], out=out, backend="virtual", report=False, **options
    )  # type: ignore[arg-type]


def test_a_search_is_reproducible_goes_on_and_can_be_replayed(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    first = searched(spec, tmp_path / "a", points=8, jobs=1)
    second = searched(spec, tmp_path / "b", points=16, jobs=2)
    assert len(first.searched.tried) == 8
    assert first.searched.tried == second.searched.tried[:8], "whatever the number of processes"
    more = searched(spec, tmp_path / "a", points=16, jobs=2, resume=True)
    assert more.searched == second.searched
    record = tmp_path / "a/search/search.json"
    assert record.read_bytes() == (tmp_path / "b/search/search.json").read_bytes()
    fewer = searched(spec, tmp_path / "a", points=8, jobs=2, resume=True)
    assert fewer.searched == second.searched, "it keeps what it had"

    number, best = more.searched.ranked[0]
    assert best.value == min(each.value for each in more.searched.tried if each.value is not None)
    assert more.searched.tried[number - 1] == best
    measured = {str(row["cell_id"]): row["value"] for row in more.run.metric(METRIC)}
    assert best.value == min(float(str(measured[name])) for name in best.cells), "the worst of a point's cells"
    assert len(more.run.plan.cells) == 32
    near, of = more.neighbours
    assert 0 <= near <= of <= 4

    assert more.spec is not None
    again = netwarp.run(more.spec, out=tmp_path / "again", report=False)
    (cell,) = again.plan.cells
    before = next(each for each in more.run.plan.cells if each.factors == cell.factors)
    assert measured[before.id] == best.value, "of the point's cells the worst"
    digests = [RunDir(run.path).cell(each.id).packets for run, each in ((again, cell), (more.run, before))]
    assert digests[0].read_bytes() == digests[1].read_bytes()

    with pytest.raises(SpecError, match=r"holds a search for the smallest goodput_bit_s .*not for the largest"):
        search(spec, METRIC, over=["rate", "delay"], points=8, out=tmp_path / "a", backend="virtual", resume=True)
    record.write_text(record.read_text().replace(version("optuna"), "1.0.0"))
    with pytest.raises(SpecError, match=r"\(Optuna 1\.0\.0\) in 20 points, not for .*\(Optuna \d"):
        searched(spec, tmp_path / "a", points=16, resume=True)
