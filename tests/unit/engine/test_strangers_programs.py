"""A stranger's plan that brings programs is refused, with their list, before anything of it runs or is written."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from msgspec.structs import replace
from netwarp.cli import main
from netwarp.core.errors import SpecError, StoreError
from netwarp.core.types import Program
from netwarp.engine.bundles import bundle, opened
from netwarp.engine.merging import merge_runs
from netwarp.engine.run_again import replay, verify
from netwarp.sandbox.own_programs import own_programs, programs_notice, refuse_programs
from netwarp.sandbox.privileges import User
from netwarp.store.run_dir import RunDir
from support.report_kit import plan_of, put, spec_text, write_run

HOSTILE = Program(sender=("/bin/sh", "-c", "mount -t hostfs none /mnt\x1b[2J"), receiver=("cat",))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run whose flows are programs, of which its spec says nothing."""
    whole = plan_of(spec_text(), tmp_path / "spec")
    cells = tuple(
        replace(cell, flows=tuple(replace(flow, program=HOSTILE) for flow in cell.flows)) for cell in whole.cells[:2]
    )
    run = write_run(tmp_path / "run", replace(whole, cells=cells, filters=("shard 1/1",)))
    for cell in cells:
        put(run.cell(cell.id).packets, {"a-p1": "0" * 64})
    put(run.spec / "spec.toml", spec_text().encode())
    return run


def test_every_way_to_use_it_is_refused(run: RunDir, tmp_path: Path) -> None:
    cell_id = min(run.finished())
    before = sorted(str(path) for path in run.root.rglob("*"))
    for act in (
        lambda: verify(run.root),
        lambda: verify(run.root, run.root),
        lambda: replay(run.root, [cell_id]),
        lambda: merge_runs([run.root], out=tmp_path / "merged"),
    ):
        with pytest.raises(SpecError, match="brings 2 programs of its own") as caught:
            act()
        said = str(caught.value)
        assert "mount -t hostfs" in said and "\n  cat" in said and "--allow-programs" in said
        assert "\x1b" not in said
    assert sorted(str(path) for path in run.root.rglob("*")) == before and not (tmp_path / "merged").exists()
    assert verify(run.root, run.root, allow_programs=True).count("equal") == 2


def test_a_bundle_is_refused_with_status_2(run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = bundle(run.root, tmp_path / "run.tar.xz")
    assert main(["archive", "verify", str(file)]) == 2
    assert "brings 2 programs" in capsys.readouterr().err


def test_a_bundle_whose_plan_names_a_file_elsewhere_is_refused(
    run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It wrote any file as the caller, before a guest was started."""
    name = "../" * 12 + str(tmp_path).lstrip("/") + "/written"
    file = bundle(run.root, tmp_path / "run.tar.xz")
    with tarfile.open(file) as archive:
        kept = {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]
    for part in [name for name in kept if name == "plan.json" or name.endswith("cell.json")]:
        changed = json.loads(kept[part])
        for cell in changed["cells"] if part == "plan.json" else [changed]:
            for flow in cell["flows"]:
                flow["program"]["files"] = {name: "ours"}
        kept[part] = json.dumps(changed).encode()
    with tarfile.open(tmp_path / "hostile.tar.xz", "w:xz") as archive:
        for part, content in kept.items():
            entry = tarfile.TarInfo(part)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    for options in ([], ["--allow-programs"]):
        assert main(["archive", "verify", str(tmp_path / "hostile.tar.xz"), *options]) in (1, 2)
        assert "cannot be read" in capsys.readouterr().err
        with pytest.raises(StoreError, match="matching regex"), opened(tmp_path / "hostile.tar.xz"):
            pass
    assert not (tmp_path / "written").exists()


def test_one_line_says_which_programs_and_with_which_rights(run: RunDir) -> None:
    cells = [run.cell(cell_id).read_cell() for cell_id in sorted(run.finished())]
    said = programs_notice(cells, User(65534, 65534))
    assert said.startswith("runs programs of its own, with the rights of ") and "/bin/sh, cat" in said
    assert "\n" not in said and said.isprintable()
    without = [replace(cell, flows=tuple(replace(flow, program=None) for flow in cell.flows)) for cell in cells]
    assert programs_notice(without, None) == "" and own_programs(without) == ()
    assert not refuse_programs(without, run.root, allowed=False)
    assert refuse_programs(cells, run.root, allowed=True)


def test_the_place_of_a_bundle_can_be_reached_by_the_user_that_root_becomes(run: RunDir, tmp_path: Path) -> None:
    """In a directory of mode 0700 the cells would run as root."""
    with opened(bundle(run.root, tmp_path / "run.tar.xz")) as place:
        assert User(65534, 65534).may_pass(place)
