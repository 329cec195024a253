"""`archive verify` says by kind what of a run is equal. Whatever was changed afterwards is named, with status 1."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from netwarp.cli import main
from netwarp.core.errors import StoreError
from netwarp.core.frozen import from_json
from netwarp.core.types import Cell
from netwarp.engine.analysis import report, tabulate
from netwarp.engine.bundles import bundle, opened
from netwarp.engine.cluster_files import analyser_here
from netwarp.engine.run_directory import open_run
from netwarp.engine.stored_files import _numbers_again
from netwarp.measure.cell import capture_digests
from netwarp.store.digests import check_digests, write_digests
from netwarp.store.manifest import Manifest
from netwarp.store.plan_file import read_plan
from netwarp.store.run_dir import RunDir, read_json, write_json
from support.report_kit import plan_of, put, spec_text, write_run

Change = Callable[[RunDir], object]


def _in_json(path: Path, key: str, value: object) -> None:
    whole = json.loads(path.read_bytes())
    (whole[0] if isinstance(whole, list) else whole)[key] = value
    path.write_text(json.dumps(whole))


def _a_cell(run: RunDir) -> Path:
    return run.cell(min(run.finished())).root


CHANGES: dict[str, Change] = {
    "a derived number": lambda run: _in_json(_a_cell(run) / "derived" / "measurements.json", "value", 1.25),
    "a table": lambda run: _text(run.tables / "cells.csv", "COMPLETED", "INVALID"),
    "a judgement": lambda run: put(_a_cell(run) / "derived" / "judgement.json", {"outcome": "INVALID", "reason": "no"}),
    "the seed in the plan": lambda run: _in_json(run.plan, "seed", 77),
    "the spec": lambda run: _text(run.spec / "spec.toml", "format", "# a word\nformat"),
    "the hash of a capture": lambda run: put(_a_cell(run) / "derived" / "packets.json", {"a-p1": "1" * 64}),
}
UNLISTED = ("a derived number", "a table", "a judgement", "the seed in the plan")
"""Changes that are found also where somebody removed the list: by what follows from other files."""


def _relisted(change: Change) -> Change:
    """Its author made digests.json to fit: what is missing is missed all the same."""

    def whole(run: RunDir) -> None:
        change(run)
        write_digests(run)

    return whole


def _without(path: Path, key: str | int) -> None:
    kept = json.loads(path.read_bytes())
    del kept[key]
    path.write_text(json.dumps(kept))


OMISSIONS: dict[str, tuple[Change, str]] = {
    "a table": (lambda run: (run.tables / "claims.csv").unlink(), "not equal: claims.csv"),
    "every table": (lambda run: run.tables.remove_tree(), "not equal: cells.csv"),
    "a table that no run of this plan has": (
        lambda run: (run.tables / "best.csv").write_text("x\n"), "not equal: best.csv",
    ),
    "the checks of a cell": (lambda run: (_a_cell(run) / "derived" / "checks.json").unlink(), "tables cannot be made"),
    "a cell in the plan": (
        lambda run: _in_cell(run, "duration_ns", 77_000_000_000), "cells planned again from the spec: 1 equal, 1 not",
    ),
    "the spec": (lambda run: (run.spec / "spec.toml").unlink(), "cells planned again from the spec: 0 equal, 2 not"),
    "the figures": (lambda run: _in_json(run.outputs, "figures", []), "not equal: figures"),
    "a title": (lambda run: _in_json(run.outputs, "title", "All is well"), "not equal: title"),
    "another spec": (
        lambda run: _text(run.spec / "spec.toml", "200 ms", "30 ms"), "planned again from the spec: 0 equal, 2 not",
    ),
}  # fmt: skip


def _in_cell(run: RunDir, key: str, value: object) -> None:
    plan = json.loads(run.plan.read_bytes())
    cell = plan["cells"][0]
    before = run.cell(from_json(json.dumps(cell).encode(), Cell).id).root
    cell[key] = value
    run.plan.write_text(json.dumps(plan))
    before.rename(before.with_name(from_json(json.dumps(cell).encode(), Cell).id))


@pytest.mark.parametrize("omission", OMISSIONS)
def test_lies_of_omission_are_named(omission: str, run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    change, said = OMISSIONS[omission]
    _relisted(change)(run)
    status, printed = _verified(run.root, run, capsys)
    assert said in printed, printed
    assert status == 1


@pytest.mark.parametrize(("kept", "made"), [(0, 1), (1, 0)])
def test_a_number_that_one_side_lacks_is_not_equal(kept: int, made: int, run: RunDir, tmp_path: Path) -> None:
    shutil.copytree(run.root, tmp_path / "again")
    sides = run, RunDir(tmp_path / "again")
    name = min(run.finished())
    numbers = json.loads(run.cell(name).measurements.read_bytes())
    for side, left_out in zip(sides, (kept, made), strict=True):
        put(side.cell(name).measurements, numbers[: len(numbers) - left_out])
    equal, other = _numbers_again(open_run(run.root), open_run(tmp_path / "again"), [(name, name)])
    assert equal == len(numbers) - 1 and len(other) == 1 and name in other[0]
    (sides[made].cell(name).measurements).unlink()
    equal, other = _numbers_again(open_run(run.root), open_run(tmp_path / "again"), [(name, name)])
    assert equal == 0 and other


def _text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    whole = plan_of(spec_text(), tmp_path / "spec")
    run = write_run(tmp_path / "run", replace(whole, cells=whole.cells[:2]))
    for cell_id in run.finished():
        put(run.cell(cell_id).packets, capture_digests(run.cell(cell_id).capture))
        put(run.cell(cell_id).apps / "f.sender.ndjson", b'{"record": "summary"}\n')
    put(run.spec / "spec.toml", spec_text().replace("EXPECTED", "").encode())
    write_json(run.manifest, replace(read_json(run.manifest, Manifest), software=analyser_here(), seed=whole.seed))
    tabulate(read_plan(run), run)
    return run


def _verified(reference: Path, run: RunDir, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["archive", "verify", str(run.root), str(reference)])
    said = capsys.readouterr()
    assert said.err == ""
    return status, said.out


def test_an_unchanged_run_is_equal_in_every_kind(
    run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = _verified(bundle(run.root, tmp_path / "run.tar.xz"), run, capsys)
    assert status == 0, said
    assert re.search(r"digests\.json: sha256 [0-9a-f]{64}", said)
    for kind in ("2 captures", "2 derived numbers", "judgement", "plan", "1 spec", "tables"):
        assert kind in said
    assert ", 0 not" in said and "changed" not in said


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("bundled", [True, False])
def test_what_was_changed_is_named(
    change: str, bundled: bool, run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CHANGES[change](run)
    reference = bundle(run.root, tmp_path / "run.tar.xz") if bundled else run.root
    status, said = _verified(reference, run, capsys)
    assert status == 1 and "changed since the run wrote it: " in said


@pytest.mark.parametrize("change", UNLISTED)
def test_without_the_list_what_follows_from_other_files_is_compared(
    change: str, run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    CHANGES[change](run)
    run.digests.unlink()
    status, said = _verified(run.root, run, capsys)
    assert status == 1 and "digests.json: none" in said
    assert "not equal: " in said or "seed 77" in said


def test_a_list_made_to_fit_has_another_digest(run: RunDir) -> None:
    """It proves nothing against its author; its digest, published elsewhere, does."""
    before = check_digests(run).digest
    CHANGES["the spec"](run)
    assert check_digests(run).changed == ("spec/spec.toml",)
    write_digests(run)
    assert check_digests(run).changed == () and check_digests(run).digest != before


def test_files_that_a_bundle_leaves_out_are_not_missed(run: RunDir, tmp_path: Path) -> None:
    with opened(bundle(run.root, tmp_path / "run.tar.xz")) as place:
        assert check_digests(RunDir(place)).changed == ()
    (run.tables / "claims.csv").unlink()
    assert check_digests(run).changed == ("tables/claims.csv",)


def test_the_page_names_them_too(run: RunDir) -> None:
    assert "Not what the run wrote" not in report(run.root).read_text()
    _text(run.spec / "spec.toml", "format", "# <b>\nformat")
    page = report(run.root).read_text()
    assert "Not what the run wrote" in page and "<code>spec/spec.toml</code>" in page


@pytest.mark.parametrize("options", [[], ["--packets"], ["--exact"]])
def test_compare_hashes_captures(options: list[str], run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    cell = run.cell(min(run.finished()))
    main(["compare", str(run.root), str(run.root), *options])
    assert "not what the run wrote" not in capsys.readouterr().err
    capture = next(cell.capture.glob("*.pcap*"))
    put(capture, b"another")
    main(["compare", str(run.root), str(run.root), *options])
    said = f"not what the run wrote: cells/{cell.root.name}/capture/{capture.name.partition('.')[0]}"
    assert said in capsys.readouterr().err
    put(capture.with_name(f"{capture.name}.gz"), b"a second one")
    assert main(["compare", str(run.root), str(run.root), *options]) == 1
    assert "the same capture is there in another form too" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["report"], ["compare"]])
def test_report_and_compare_name_what_the_run_did_not_write(
    command: list[str], run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*command, str(run.root), *([str(run.root)] if command == ["compare"] else [])]
    main(words)
    assert "not what the run wrote" not in capsys.readouterr().err
    app = next((_a_cell(run) / "apps").glob("*.ndjson"))
    app.write_text('{"record": "another"}\n')
    CHANGES["a table"](run)
    main(words)
    said = capsys.readouterr().err
    assert "not what the run wrote: tables/cells.csv" in said
    assert "not what the run wrote: cells/" in said and said.count("f.sender.ndjson") >= 1


def test_a_file_of_any_size_is_hashed_in_parts_and_within_the_limits(run: RunDir) -> None:
    """A run directory from elsewhere may hold a file of terabytes that takes no room (a sparse one)."""
    cell = run.cell(min(run.finished()))
    record, capture = cell.apps / "big.ndjson", cell.capture / "b-p9.pcap"
    for path, size in ((record, 1 << 42), (capture, 1 << 42)):
        path.touch()
        os.truncate(path, size)
    with pytest.raises(StoreError, match=r"big\.ndjson: has more than 1 GiB; .*--limit bytes="):
        check_digests(run)
    with pytest.raises(StoreError, match=r"b-p9\.pcap: has more than 16 GiB; .*--limit capture-bytes="):
        capture_digests(cell.capture)


READ_BY_AN_ANALYSIS: dict[str, tuple[str, Change]] = {
    "an app's record": ("apps/f.ndjson", lambda run: put(_a_cell(run) / "apps" / "f.ndjson", {"record": "down"})),
    "init's records": ("init.ndjson", lambda run: put(_a_cell(run) / "init.ndjson", {"record": "end"})),
    "the calibration": ("calibration.json", lambda run: put(run.calibration, CALIBRATION | {"key": "another"})),
    "the seed": ("plan.json", CHANGES["the seed in the plan"]),
}
CALIBRATION = {
    "key": "one",
    "kernel_release": "6",
    "kernel_sha256": "0",
    "backend": "virtual",
    "date_utc": "",
    "rows": [],
}


@pytest.mark.parametrize("what", READ_BY_AN_ANALYSIS)
def test_an_analysis_makes_no_changed_file_one_that_the_run_wrote(
    what: str, run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the file, and so does whatever comes later."""
    name, change = READ_BY_AN_ANALYSIS[what]
    for made in ("apps/f.ndjson", "init.ndjson"):
        put(_a_cell(run) / made, {"made": "before"})
    put(run.calibration, CALIBRATION)
    write_digests(run)
    change(run)
    for command in ("report", "analyze", "analyze", "report"):
        main([command, str(run.root)])
        assert re.search(rf"not what the run wrote: \S*{re.escape(name)}\n", capsys.readouterr().err), command
