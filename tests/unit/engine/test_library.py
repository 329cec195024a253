"""`import netwarp`: cheap, typed, every public name there; tables as rows of text and numbers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import netwarp
import pytest
from support.report_kit import small_run

HEAVY = ("numpy", "polars", "matplotlib", "plotly", "rich", "pyroute2", "argparse", "msgspec")


def test_importing_it_imports_nothing_heavy() -> None:
    code = f"import netwarp, sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", netwarp.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(netwarp, name)
    assert name == "__version__" or name in ("Event", "Progress") or value.__doc__


def test_another_name_is_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = netwarp.colour


def test_the_package_is_typed() -> None:
    assert (Path(netwarp.__file__).parent / "py.typed").exists()


def test_tables_as_rows(tmp_path: Path) -> None:
    run = netwarp.open_run(small_run(tmp_path / "run").root)
    assert {"cells", "measurements", "claims", "outages"} <= set(run.tables)
    first = run.table("measurements")[0]
    assert isinstance(first["value"], float) and isinstance(first["metric"], str)
    cells = run.table("cells")
    assert {type(row["repetition"]) for row in cells} == {int}
    assert {type(row["outage"]) for row in cells} == {str}, "a level is text, as the spec writes it"
    assert None in {row["virtual_s"] for row in cells}, "a cell that was not run"
    tcp = next(row for row in run.table("outages") if row["variant"] == "tcp" and row["outage"] == "0 s")
    assert tcp["paper"] == 0.97, "a source's column is of numbers"
    with pytest.raises(netwarp.StoreError, match=r"there is: .*measurements"):
        run.table("nothing")


def test_a_metric_as_rows_with_the_levels_of_its_cells(tmp_path: Path) -> None:
    run = netwarp.open_run(small_run(tmp_path / "run").root)
    rows = run.metric("goodput_bit_s")
    assert {row["metric"] for row in rows} == {"goodput_bit_s"} and len(rows) == 10
    assert {row["outage"] for row in rows} >= {"0 s"} and {row["outcome"] for row in rows} == {"COMPLETED"}
    with pytest.raises(netwarp.SpecError, match=r"no cell has the metric 'nothing'; there is: .*goodput_bit_s"):
        run.metric("nothing")
    with pytest.raises(
        netwarp.SpecError, match=r"no cell has the metric 'goodput_bits', did you mean \"goodput_bit_s\"\?"
    ):
        run.metric("goodput_bits")


def test_a_run_that_is_partly_there(tmp_path: Path) -> None:
    run = netwarp.open_run(small_run(tmp_path / "run").root)
    assert run.outcomes == {"COMPLETED": 10, "FAILED": 1}
    assert not run.complete and run.kept == 10
    assert run.verdicts["not tested"] >= 1
    assert run.page is None


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(netwarp.StoreError, match=r"plan\.json"):
        netwarp.open_run(tmp_path)


def test_levels_are_a_mapping_or_pairs() -> None:
    pairs = netwarp.plan_experiment("choi2009", where=[("outage", "0 s"), ("outage", "10 s"), ("variant", "tcp")])
    named = netwarp.plan_experiment("choi2009", where={"outage": ["0 s", "10 s"], "variant": "tcp"})
    assert named == pairs and {cell.factors["outage"] for cell in named.cells} == {"0 s", "10 s"}


def test_names_are_listed_before_they_are_imported() -> None:
    assert {"run", "load_run", "open_run", "__version__"} <= set(dir(netwarp))


def test_a_run_is_shown_in_short(tmp_path: Path) -> None:
    run = netwarp.open_run(small_run(tmp_path / "run").root)
    assert repr(run) == f"<Run {run.plan.name!r} of 12 cells in {str(run.path)!r}>"


@pytest.mark.parametrize("function", [netwarp.plan_experiment, netwarp.load_experiment, netwarp.run])
def test_an_experiment_that_is_no_spec_is_refused(function: Callable[[object], object]) -> None:
    with pytest.raises(netwarp.SpecError, match=r"an experiment is a spec's file, .* not a list"):
        function(["mine.toml"])


def test_a_level_that_is_no_text_is_refused() -> None:
    with pytest.raises(netwarp.SpecError, match=r'where: outage=5: a level is text.*where=\{"outage": "5 s"\}'):
        netwarp.plan_experiment("choi2009", where={"outage": 5})  # type: ignore[dict-item]
