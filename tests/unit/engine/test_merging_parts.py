"""The base of an experiment and its robustness, run apart, as one run."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import netwarp
import pytest
from msgspec import UnsetType
from netwarp.core.errors import CaptureError, SpecError
from netwarp.core.types import GuestKernel
from netwarp.engine.later_outputs import texts_of
from netwarp.engine.merging import take_cells
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.plan.shards import shard_of
from netwarp.store.digests import check_digests, write_digests
from netwarp.store.manifest import identity_of
from netwarp.store.plan_file import keep_texts, write_plan
from netwarp.store.run_dir import RunDir
from support.report_kit import MANIFEST, put, spec_text, write_run
from support.specs import BASE

NOT_STATED = 'unstated = "how SCTP fails over"\nusual = "default"\n'
CLAIM = """
[[claim]]
id = "C1"
text = "Two paths beat one."
source = "section 4"
kind = "greater"
metric = "goodput_bit_s"
a = { outage = "10 s", variant = "multi", failover = "default" }
b = { outage = "10 s", variant = "tcp" }
also = [{ failover = "rfc4960" }]
"""


def unbuilt(name: str) -> GuestKernel:
    return GuestKernel(name, "")


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    folder = tmp_path / "spec"
    folder.mkdir()
    text = spec_text().replace("EXPECTED", 'expected = "claims.toml"')
    (folder / "spec.toml").write_text(text.replace("[factor.failover]\n", f"[factor.failover]\n{NOT_STATED}"))
    (folder / "claims.toml").write_text(CLAIM)
    return folder / "spec.toml"


def part(spec: Path, name: str, place: Path, builds: Callable[[str], GuestKernel] = unbuilt) -> RunDir:
    loaded = load_spec(spec)
    run = write_run(place, make_plan(loaded, only=(name,), builds=builds))
    words = ["run", str(spec), "--only", name]
    of_this = {"spec": "made-up", "spec_path": str(spec), "seed": 1, "repetitions": 1, "arguments": words}
    put(run.manifest, MANIFEST | of_this)
    keep_texts(run, texts_of(loaded))
    return run


def changed(run: RunDir, **fields: object) -> None:
    """Write fields of the manifest."""
    put(run.manifest, json.loads(run.manifest.read_text()) | fields)


def test_parts_of_unlike_analysers_are_refused(spec: Path, tmp_path: Path) -> None:
    base, rest = (part(spec, name, tmp_path / name) for name in ("base", "robustness"))
    same = {"netwarp": "1", "numpy": "2.0"}
    changed(base, software=same | {"libnetwarp_analyzer.so": "a"})
    changed(rest, software=same | {"libnetwarp_analyzer.so": "b"})
    with pytest.raises(SpecError, match=r"cannot stand beside those of .*: libnetwarp_analyzer\.so differ"):
        netwarp.merge_runs([base.root, rest.root], out=tmp_path / "whole", report=False)
    assert not (tmp_path / "whole").exists()
    changed(rest, software=same | {"libnetwarp_analyzer.so": "a"})
    assert netwarp.merge_runs([base.root, rest.root], out=tmp_path / "whole", report=False).manifest.software


def test_claims_that_need_both_are_judged(spec: Path, tmp_path: Path) -> None:
    runs = [part(spec, name, tmp_path / name) for name in ("robustness", "base")]
    alone = {row["condition"]: row["verdict"] for row in netwarp.open_run(runs[0].root).table("claims")}
    assert alone == {"": "not tested", "failover=rfc4960": "not tested"}
    whole = netwarp.merge_runs([run.root for run in runs], out=tmp_path / "whole", report=False)
    assert [cell.id for cell in whole.plan.cells] == [
        cell.id for cell in make_plan(load_spec(spec), only=("base", "robustness")).cells
    ]
    leads = {row["condition"]: float(str(row["measured"])) for row in whole.table("claims")}
    assert leads[""] > 0 > leads["failover=rfc4960"]
    assert whole.manifest.arguments[-4:] == ("--only", "base", "--only", "robustness")
    assert whole.manifest.arguments.count("--only") == 2


def test_parts_with_kernels_of_their_own(spec: Path, tmp_path: Path) -> None:
    """Its cells have the builds that the parts ran on, which are not looked for again."""
    spec.write_text(spec.read_text().replace('name = "made-up"', 'name = "made-up"\nkernel = "6.1"'))
    builds = {"6.1": GuestKernel("6.1.192", "a" * 64)}
    runs = [part(spec, name, tmp_path / name, builds.__getitem__) for name in ("robustness", "base")]
    whole = netwarp.merge_runs([run.root for run in runs], out=tmp_path / "whole", report=False)
    assert {cell.kernel for cell in whole.plan.cells} == set(builds.values())
    assert len(whole.plan.cells) == sum(len(netwarp.open_run(run.root).plan.cells) for run in runs)


def test_after_a_change_only_the_new_cells_have_to_be_run(spec: Path, tmp_path: Path) -> None:
    """Cells of runs of an earlier state of the spec, and of other builds, are taken where they are the same cells."""
    runs = [part(spec, name, tmp_path / name) for name in ("robustness", "base")]
    spec.write_text(spec.read_text().replace('levels = ["0 s", "5 s", "10 s", "20 s"]', 'levels = ["10 s", "12 s"]'))
    later = make_plan(load_spec(spec), only=("base", "robustness"))
    had = {cell.id for run in runs for cell in netwarp.open_run(run.root).plan.cells}
    new = [cell for cell in later.cells if cell.id not in had]
    assert 0 < len(new) < len(later.cells)
    with pytest.raises(SpecError, match=f"{len(new)} of its {len(later.cells)} cells are in none of the runs"):
        take_cells(spec, [run.root for run in runs], out=tmp_path / "whole", report=False)
    third = part(spec, "base", tmp_path / "new")
    changed(runs[0], software={"netwarp": "1"})
    changed(third, programs={"bin/sender": "b" * 64}, software={"netwarp": "2"})
    fourth = part(spec, "robustness", tmp_path / "newer")
    places = [run.root for run in (*runs, third, fourth)]
    whole = take_cells(spec, places, out=tmp_path / "whole", report=False)
    assert [cell.id for cell in whole.plan.cells] == [cell.id for cell in later.cells]
    assert whole.manifest.arguments == ("run", str(spec), "--only", "base", "--only", "robustness")
    (other,) = whole.manifest.other_programs
    assert other.startswith("new of ") and other.endswith("bin/sender, netwarp")
    assert whole.complete


def test_of_optional_experiments_the_whole_has_those_that_were_run(spec: Path, tmp_path: Path) -> None:
    before, _, after = spec.read_text().partition("[experiment.")
    name = after.partition("]")[0]
    rest = "".join(
        f'\n[experiment.{each}]\nfactors = ["variant"]\nfixed = {{ outage = "{outage}" }}\noptional = true\n'
        for each, outage in (("asked", "5 s"), ("not-asked", "20 s"))
    )
    plain = before.replace(NOT_STATED, "")
    spec.write_text(f'{plain}\n[experiment.{name}]\nfactors = ["variant"]\nfixed = {{ outage = "10 s" }}\n{rest}')
    (spec.parent / "claims.toml").write_text("")
    runs = [part(spec, each, tmp_path / each) for each in ("base", "asked")]
    whole = take_cells(spec, [run.root for run in runs], out=tmp_path / "whole", report=False)
    assert whole.manifest.arguments[-4:] == ("--only", "base", "--only", "asked")
    assert {cell.experiment for cell in whole.plan.cells} == {name, "asked"}


def test_runs_that_grow_as_they_run_are_refused_with_the_reason(tmp_path: Path) -> None:
    text = BASE + '[factor.schedule]\ndrops = { of = ["p1.forward"], first = 2 }\n'
    (tmp_path / "spec.toml").write_text(text)
    run = RunDir(tmp_path / "run")
    run.root.mkdir()
    write_plan(run, make_plan(load_spec(tmp_path / "spec.toml")))
    put(run.manifest, MANIFEST | {"spec": "test", "spec_path": str(tmp_path / "spec.toml")})
    for merge in (netwarp.merge_runs, partial(take_cells, tmp_path / "spec.toml")):
        with pytest.raises(SpecError, match="a schedule of packets makes its plan grow as it runs"):
            merge([run.root], out=tmp_path / "whole", report=False)


def test_parts_of_unlike_specs_are_refused(spec: Path, tmp_path: Path) -> None:
    base = part(spec, "base", tmp_path / "base")
    spec.write_text(spec.read_text().replace('"500 kbit/s"', '"400 kbit/s"'))
    other = part(spec, "robustness", tmp_path / "robustness")
    with pytest.raises(SpecError, match="both parts must be of one spec"):
        netwarp.merge_runs([base.root, other.root], out=tmp_path / "whole", report=False)
    twice = part(spec, "base", tmp_path / "again")
    with pytest.raises(SpecError, match="merge wants runs made with --shard, or one of --only base"):
        netwarp.merge_runs([base.root, twice.root], out=tmp_path / "other", report=False)
    assert not (tmp_path / "whole").exists() and not (tmp_path / "other").exists()


def whole_run(spec: Path, place: Path, repetitions: int = 1, failed: tuple[int, ...] = ()) -> RunDir:
    loaded = load_spec(spec)
    run = write_run(place, make_plan(loaded, repetitions=repetitions), failed=failed)
    put(run.manifest, MANIFEST | {"spec": "made-up", "spec_path": str(spec), "seed": 1, "repetitions": repetitions})
    keep_texts(run, texts_of(loaded))
    return run


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    (tmp_path / "plain.toml").write_text(spec_text().replace("EXPECTED", ""))
    return tmp_path / "plain.toml"


def test_repetitions_are_not_dropped_silently(plain: Path, tmp_path: Path) -> None:
    run = whole_run(plain, tmp_path / "run", repetitions=3)
    with pytest.raises(SpecError, match="the runs have 3 repetitions, it asks for 1: write repetitions into it"):
        take_cells(plain, [run.root], out=tmp_path / "whole", report=False)
    assert not (tmp_path / "whole").exists()
    plain.write_text("repetitions = 3\n" + plain.read_text())
    whole = take_cells(plain, [run.root], out=tmp_path / "whole", report=False)
    assert len(whole.plan.cells) == len(netwarp.open_run(run.root).plan.cells)
    assert whole.manifest.repetitions == whole.plan.repetitions == 3


def test_a_cell_that_failed_is_taken_from_a_later_run(plain: Path, tmp_path: Path) -> None:
    first = whole_run(plain, tmp_path / "first", failed=(0, 1))
    second = whole_run(plain, tmp_path / "second", failed=(1, 2))
    whole = take_cells(plain, [first.root, second.root], out=tmp_path / "whole", report=False)
    assert whole.outcomes == {"COMPLETED": len(whole.plan.cells) - 1, "FAILED": 1}


def test_a_formula_of_packets_is_kept_and_a_new_one_is_refused_without_a_trace(plain: Path, tmp_path: Path) -> None:
    """Packets are not read again; formulas behind those that stay are computed."""
    text, place = plain.read_text(), tmp_path / "whole"
    probe = """probe_s = { title = "t", unit = "s", value = 'at("DATA 2")' }\n"""
    plain.write_text(f"{text}\n[metric]\n{probe}")
    run = whole_run(plain, tmp_path / "run")
    for cell in netwarp.open_run(run.root).plan.cells:
        file = run.cell(cell.id).measurements
        row = {"cell_id": cell.id, "flow": cell.flows[0].name, "metric": "probe_s", "value": 1.5, "unit": "s"}
        put(file, [*json.loads(file.read_text()), row])
    twice = 'twice_s = { title = "t", unit = "s", value = "2 * probe_s" }\n'
    plain.write_text(f"{text}\n[metric]\n{probe}{twice}")
    whole = take_cells(plain, [run.root], out=place, report=False)
    found = {(row["metric"], row["value"]) for row in whole.table("measurements") if "_s" in str(row["metric"])}
    assert {each for each in found if each[0] in ("probe_s", "twice_s") and each[1] is not None} == {
        ("probe_s", 1.5),
        ("twice_s", 3.0),
    }
    plain.write_text(f"{text}\n[metric]\n{probe.replace('DATA 2', 'DATA 3')}")
    with pytest.raises(CaptureError, match="probe_s"):
        take_cells(plain, [run.root], out=tmp_path / "other", report=False)
    assert not (tmp_path / "other").exists()


def test_where_cells_came_from_is_kept(plain: Path, tmp_path: Path) -> None:
    """Also of runs that were themselves put together; not of runs of which no cell was taken."""
    first, second, unused = (
        whole_run(plain, tmp_path / name, failed=failed)
        for name, failed in (("first", (0,)), ("second", (1,)), ("unused", (0, 1)))
    )
    changed(first, other_programs=["older of 2025: bin/sender"])
    changed(second, other_programs=["oldest of 2024: bin/sender", "older of 2025: bin/sender"])
    changed(unused, other_programs=["never of 2023: bin/sender"], programs={"bin/sender": "b" * 64})
    places = [run.root for run in (first, second, unused)]
    whole = take_cells(plain, places, out=tmp_path / "whole", report=False)
    assert whole.complete
    assert whole.manifest.other_programs == ("older of 2025: bin/sender", "oldest of 2024: bin/sender")


def test_runs_on_kernels_of_their_own_are_taken_together(tmp_path: Path) -> None:
    """A spec that names kernels: each run ran on one. Where it names none, they must be equal."""
    builds = {"6.1": GuestKernel("6.1.192", "a" * 64), "6.12": GuestKernel("6.12.117", "b" * 64)}
    levels = '[factor.kernel]\nlevels = ["old", "new"]\n[factor.kernel.level.old]\nkernel = "6.1"\n'
    levels += '[factor.kernel.level.new]\nkernel = "6.12"\n'
    text = spec_text(more=levels, extra=', "kernel"', where='where = { kernel = "old" }').replace("EXPECTED", "")
    spec = tmp_path / "spec.toml"
    spec.write_text(text)
    loaded, runs = load_spec(spec), []
    for name, build in zip(("old", "new"), builds.values(), strict=True):
        plan = make_plan(loaded, builds=builds.__getitem__, where=[("kernel", name)])
        runs.append(write_run(tmp_path / name, plan))
        put(runs[-1].manifest, MANIFEST | {"spec": "made-up", "spec_path": str(spec), "seed": 1, "repetitions": 1,
                                           "kernel_release": build.release, "kernel_sha256": build.sha256})  # fmt: skip
        keep_texts(runs[-1], texts_of(loaded))
    whole = take_cells(spec, [run.root for run in runs], out=tmp_path / "whole", report=False)
    assert {cell.kernel for cell in whole.plan.cells} == set(builds.values())
    assert whole.manifest.kernel_release == "6.1.192, 6.12.117"
    (tmp_path / "plain.toml").write_text(spec_text().replace("EXPECTED", ""))
    with pytest.raises(SpecError, match=r"must have run on one, .*old on Linux 6\.1\.192 \(a+\); .*or name kernels"):
        take_cells(tmp_path / "plain.toml", [run.root for run in runs], out=tmp_path / "other", report=False)


def test_a_run_of_two_kernels_is_put_together_again(tmp_path: Path) -> None:
    """Cells that name a kernel beside some that name none. The run of both kinds has a digest of both kernels; which of
    them is the usual one is told by a run of that alone, or by the kernels that are built here.
    """
    usual, other = GuestKernel("6.12.117", "b" * 64), GuestKernel("7.3.4", "c" * 64)
    more = '[factor.stack]\nlevels = ["usual", "new"]\n[factor.stack.level.new]\nkernel = "7.3"\n'
    text = spec_text(more=more, extra=', "stack"', where='where = { stack = "new" }').replace("EXPECTED", "")
    spec = tmp_path / "spec.toml"
    spec.write_text(text)
    loaded = load_spec(spec)

    def run_of(name: str, *levels: str, shard: tuple[int, int] | None = None, kernel: GuestKernel = usual) -> RunDir:
        plan = make_plan(loaded, builds={"7.3": other}.__getitem__, where=[("stack", level) for level in levels])
        plan = plan if shard is None else shard_of(plan, *shard)
        ran_on = {kernel if isinstance(cell.kernel, UnsetType) else cell.kernel for cell in plan.cells}
        release, sha256 = pair(kernel) if ran_on == {kernel} else identity_of(map(pair, ran_on))
        run = write_run(tmp_path / name, plan)
        put(run.manifest, MANIFEST | {"spec": "made-up", "spec_path": str(spec), "seed": 1, "repetitions": 1,
                                      "kernel_release": release, "kernel_sha256": sha256})  # fmt: skip
        keep_texts(run, texts_of(loaded))
        return run

    def pair(kernel: GuestKernel) -> tuple[str, str]:
        return kernel.release, kernel.sha256

    def ran_on(run: netwarp.Run) -> tuple[str, str]:
        return run.manifest.kernel_release, run.manifest.kernel_sha256

    both = ran_on(netwarp.open_run(run_of("both").root))
    assert both[0] == "6.12.117, 7.3.4"
    plain, new = run_of("plain", "usual"), run_of("new", "new")
    whole = take_cells(spec, [plain.root, new.root], out=tmp_path / "whole", report=False)
    assert ran_on(whole) == both
    for number, runs in enumerate([(whole.path, plain.root), (new.root, whole.path, plain.root)]):
        assert ran_on(take_cells(spec, runs, out=tmp_path / f"again{number}", report=False)) == both
    count = len(whole.plan.cells)
    shards = [run_of(f"shard{number}", shard=(number, count)).root for number in range(1, count + 1)]
    assert ran_on(netwarp.merge_runs(shards, out=tmp_path / "merged", report=False)) == both
    strange = run_of("strange", "usual", kernel=GuestKernel("6.1.192", "a" * 64))
    for beside in (strange, new):
        with pytest.raises(SpecError, match="must have run on one, and on one that is known here"):
            take_cells(spec, [whole.path, beside.root], out=tmp_path / "other", report=False)


@pytest.mark.parametrize("name", ["derived/measurements.json", "outcome.json", "apps/f.sender.ndjson"])
@pytest.mark.parametrize("by_cells", [False, True])
def test_a_merge_makes_no_changed_file_one_that_the_run_wrote(
    name: str, by_cells: bool, spec: Path, tmp_path: Path
) -> None:
    parts = [part(spec, each, tmp_path / each) for each in ("base", "robustness")]
    cell = min(parts[0].finished())
    file = parts[0].cell(cell).root / name
    put(file, file.read_bytes() if file.exists() else b"")
    for run in parts:
        write_digests(run)
    put(file, file.read_bytes() + b"\n")
    places = [run.root for run in parts]
    out = tmp_path / "whole"
    whole = take_cells(spec, places, out=out) if by_cells else netwarp.merge_runs(places, out=out)
    assert check_digests(whole.directory).changed == (f"cells/{cell}/{name}",)
    assert name in (out / "report/index.html").read_text()


def test_a_merge_of_unchanged_runs_has_none(spec: Path, tmp_path: Path) -> None:
    parts = [part(spec, each, tmp_path / each) for each in ("base", "robustness")]
    for run in parts:
        write_digests(run)
    whole = netwarp.merge_runs([run.root for run in parts], out=tmp_path / "whole", report=False)
    assert check_digests(whole.directory).changed == ()
