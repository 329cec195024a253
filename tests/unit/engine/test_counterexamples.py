"""counterexamples/ of a run with schedules of packets, and what such a run cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import netwarp
import pytest
from netwarp.core.errors import SpecError
from netwarp.core.types import CellOutcome, Measurement, Outcome
from netwarp.engine.cell_tasks import Keep
from netwarp.engine.cluster_files import analyser_here
from netwarp.engine.later_outputs import texts_of
from netwarp.engine.packet_schedules import write_counterexamples
from netwarp.engine.run_again import agree_backends
from netwarp.experiment import Spec, load_spec
from netwarp.plan import make_plan
from netwarp.plan.schedules import with_cells
from netwarp.results import Results
from netwarp.store.plan_file import keep_texts, write_plan
from netwarp.store.run_dir import RunDir
from support.report_kit import MANIFEST, put
from support.results_kit import DONE
from support.specs import BASE

LONG = "a" * 60
CLAIM = """
[[claim]]
id = "ID"
text = "No more than that."
source = "here"
kind = "every"
metric = "packets"
a = { schedule = "*" }
expected = 5
tolerance = 5
"""
SPEC = 'expected = "claims.toml"\n' + BASE + "[factor.schedule]\ndrops = { first = 3 }\n"


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    names = (f"{LONG}1", f"{LONG}2", "not-completed")
    claims = "".join(CLAIM.replace("ID", name) for name in names)
    (tmp_path / "claims.toml").write_text('[source.own]\ntitle = "own"\n' + claims)
    (tmp_path / "spec.toml").write_text(SPEC)
    return load_spec(tmp_path / "spec.toml")


def run_of(spec: Spec, place: Path, value: float, failed: str = "") -> tuple[RunDir, Results]:
    """A run with captures, in which every schedule has this value."""
    plan = make_plan(spec)
    (cell,) = plan.cells
    more = [msgspec.structs.replace(cell, factors={"schedule": level}) for level in ("SYN", "DATA 1")]
    plan = with_cells(plan, [cell, *more])
    run = RunDir(place)
    write_plan(run, plan)
    of_this = {"spec": plan.name, "spec_path": str(spec.path), "seed": plan.seed, "repetitions": 1}
    put(run.manifest, MANIFEST | of_this)
    keep_texts(run, texts_of(spec))
    outcomes, values = {}, []
    for cell in plan.cells:
        bad = cell.factors["schedule"] == failed
        outcomes[cell.id] = CellOutcome(Outcome.FAILED, "why", 1.0, 1.0) if bad else DONE
        values.append(Measurement(cell.id, "f", "packets", value, "packets"))
        directory = run.cell(cell.id)
        put(directory.cell, cell)
        put(directory.outcome, outcomes[cell.id])
        put(directory.measurements, [values[-1]])
        put(directory.checks, [])
        put(directory.capture / "a.pcap", b"packets")
    return run, Results(plan, outcomes, values)


def test_every_claim_has_a_directory_of_its_own(spec: Spec, tmp_path: Path) -> None:
    run, results = run_of(spec, tmp_path / "run", 11.0, failed="DATA 1")
    found = write_counterexamples(spec, results, run)
    names = [LONG, f"{LONG}-2", "not-completed-2", "not-completed"]
    assert [one.name for one in found] == names
    assert sorted(path.name for path in run.counterexamples.iterdir()) == sorted(names)
    for name in names:
        assert (run.counterexamples / name / "capture/a.pcap").read_bytes() == b"packets"
    said = [(run.counterexamples / name / "about.txt").read_text().partition(":")[0] for name in names]
    assert said == [f"{LONG}1", f"{LONG}2", "not-completed", "FAILED"]


@pytest.mark.parametrize("value", [5.0, 11.0])
def test_analysing_again_puts_new_ones_in_place_of_old_ones(spec: Spec, tmp_path: Path, value: float) -> None:
    run, _ = run_of(spec, tmp_path / "run", value)
    put(run.counterexamples / "old/about.txt", b"of other numbers")
    netwarp.analyze(run.root)
    assert not (run.counterexamples / "old").exists()
    assert (run.counterexamples / LONG / "spec.toml").exists() == (value > 10)
    assert run.counterexamples.exists() == (value > 10)


def test_without_the_kept_spec_the_old_ones_go(spec: Spec, tmp_path: Path) -> None:
    run, _ = run_of(spec, tmp_path / "run", 11.0)
    put(run.counterexamples / "old/about.txt", b"of other numbers")
    (run.spec / spec.path.name).unlink()
    netwarp.analyze(run.root)
    assert not run.counterexamples.exists()


def test_back_ends_are_not_compared_over_schedules(spec: Spec, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"the levels of schedule follow .* --where schedule=none compares"):
        agree_backends(spec, ("virtual", "guest"), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("keep", ["tables", "captures"])
def test_a_cluster_keeps_what_schedules_grow_from(spec: Spec, tmp_path: Path, keep: Keep) -> None:
    with pytest.raises(SpecError, match=f"--keep {keep} with --executor dask: schedules of packets grow from captures"):
        netwarp.run(spec, executor="dask", keep=keep, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_manifest_names_the_analyser_of_the_numbers(spec: Spec, tmp_path: Path) -> None:
    """That of now, or both where cells without raw files keep numbers of another."""
    run, _ = run_of(spec, tmp_path / "run", 5.0)
    put(run.manifest, json.loads(run.manifest.read_text()) | {"software": {"netwarp": "another"}})
    done = netwarp.analyze(run.root)
    assert done.run.manifest.software == analyser_here()
    (other,) = done.run.manifest.other_programs
    assert done.not_analyzed and other.startswith(f"{len(done.not_analyzed)} cells of ") and "netwarp" in other
