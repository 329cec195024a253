"""A run directory from elsewhere never leads netwarp out: with a link in the place of a file or folder in it, every
operation leaves what the link leads to as it was.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from netwarp.core.errors import NetwarpError
from netwarp.engine.analysis import tabulate
from netwarp.engine.bundles import bundle
from netwarp.engine.cleaning import remove_captures, remove_derived, unpack
from netwarp.engine.compare import compare_runs
from netwarp.engine.merging import merge_runs
from netwarp.present.pages.build import make_report
from netwarp.store.packing import pack_run
from netwarp.store.plan_file import read_plan
from netwarp.store.run_dir import LOCK, RunDir, locked
from support.checkout import ROOT
from support.report_kit import plan_of, put, spec_text, write_run

Act = Callable[[Path], object]


def _made_tables(root: Path) -> None:
    run = RunDir(root)
    with locked(run):
        tabulate(read_plan(run), run)


def _packed(root: Path) -> None:
    run = RunDir(root)
    with locked(run):
        pack_run(run)


ACTS: dict[str, Act] = {
    "clean --captures": remove_captures,
    "clean --derived": remove_derived,
    "tables": _made_tables,
    "report": lambda root: make_report(RunDir(root)),
    "pack": _packed,
    "unpack": unpack,
    "compare": lambda root: compare_runs(root, root),
    "bundle": lambda root: bundle(root, root.with_name("bundle.tar.xz")),
    "merge": lambda root: merge_runs([root], out=root.with_name("merged"), report=False),
}


def _run(root: Path) -> RunDir:
    """A small run with everything that a run can have, as files that a guest left."""
    whole = plan_of(spec_text(), root.parent / "spec")
    run = write_run(root, replace(whole, cells=whole.cells[:2], filters=("shard 1/1",)))
    put(run.spec / "spec.toml", spec_text().encode())
    for cell_id in run.finished():
        cell = run.cell(cell_id)
        put(cell.packets, {"a-p1": "0" * 64})
        put(cell.capture / "a-p1.pcap.zst", b"capture")
        put(cell.apps / "f.sender.ndjson", b"{}\n")
        put(cell.steps, b"steps")
    _made_tables(root)
    put(run.report / "index.html", b"<p>")
    (run.root / LOCK).touch()
    return run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _run(tmp_path_factory.mktemp("made") / "run").root.absolute()


PLACES = (
    "cells", "cells/X", "cells/X/derived", "cells/X/capture", "cells/X/apps", "cells/X/outcome.json",
    "cells/X/capture/a-p1.pcap.zst", "cells/X/derived/checks.json", "cells/X/derived/measurements.json", "tables",
    "tables/cells.csv", "spec", "report", "plan.json", "outputs.json", "manifest.json",
)  # fmt: skip
"""X: one of its cells."""


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr(os, "sync", lambda: None)


def _state(root: Path) -> dict[str, object]:
    return {
        str(path): (path.read_bytes() if path.is_file() else None, path.stat().st_mode, path.stat().st_mtime_ns)
        for path in [root, *root.rglob("*")]
    }


@pytest.mark.parametrize("act", ACTS)
def test_no_link_is_followed(act: str, made: Path, tmp_path: Path) -> None:
    """The file or folder itself lies elsewhere; a link stands in its place."""
    cell = min(path.name for path in (made / "cells").iterdir())
    places = [name.replace("X", cell) for name in PLACES]
    if act == "report":  # takes a second each
        places = [name for name in places if name.endswith(("report", "cells", "derived"))]
    elsewhere, run = tmp_path / "elsewhere", tmp_path / "run"
    followed = []
    for name in places:
        for each in (elsewhere, run, tmp_path / "merged"):
            shutil.rmtree(each, ignore_errors=True)
        shutil.copytree(made, run)
        elsewhere.mkdir()
        shutil.move(run / name, elsewhere / "it")
        os.symlink(elsewhere / "it", run / name)
        before = _state(elsewhere)
        try:
            ACTS[act](run)
        except NetwarpError as error:
            assert str(error).isprintable(), error
        if _state(elsewhere) != before:
            followed.append(name)
    assert followed == []


@pytest.mark.parametrize("act", [name for name in ACTS if name not in ("report", "compare", "bundle", "merge")])
def test_the_lock_of_another_directory_is_not_truncated(act: str, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "run")
    (tmp_path / "run" / LOCK).unlink()
    (tmp_path / "bashrc").write_text("alias ll='ls -l'\n")
    for link in (os.symlink, os.link):
        link(tmp_path / "bashrc", tmp_path / "run" / LOCK)
        with pytest.raises(NetwarpError, match="link"):
            ACTS[act](tmp_path / "run")
        assert (tmp_path / "bashrc").read_text() == "alias ll='ls -l'\n"
        (tmp_path / "run" / LOCK).unlink()


def test_the_newest_run_may_be_reached_by_a_link(made: Path, tmp_path: Path) -> None:
    """results/NAME/latest, and a results/ that lies on another disk."""
    shutil.copytree(made, tmp_path / "disk" / "name" / "run")
    os.symlink("run", tmp_path / "disk" / "name" / "latest")
    os.symlink("disk", tmp_path / "results")
    latest = tmp_path / "results" / "name" / "latest"
    assert remove_captures(latest).captures > 0
    _made_tables(latest)


WATCHED = """
import os, sys
from pathlib import Path
root, way = sys.argv[1], []
PATHS = {"open": (0,), "os.remove": (0,), "os.rename": (0, 1), "os.mkdir": (0,), "os.rmdir": (0,), "os.listdir": (0,),
         "os.scandir": (0,), "os.link": (0, 1), "os.symlink": (1,), "os.chmod": (0,), "os.chown": (0,),
         "os.truncate": (0,), "os.utime": (0,), "os.walk": (0,)}
def hook(event, arguments):
    for number in PATHS.get(event, ()):
        path = arguments[number]
        if isinstance(path, (str, os.PathLike)) and os.path.abspath(os.fspath(path)).startswith(root + "/"):
            way.append(f"{event} {path}")
sys.path.insert(0, sys.argv[2])
from unit.engine.test_hostile_run_directories import ACTS
sys.addaudithook(hook)
ACTS[sys.argv[3]](Path(root))
open(root + "/by a path", "w").close()  # so that the hook is known to see one
print("\\n".join(sorted(set(way))))
"""


@pytest.mark.parametrize("act", ACTS)
def test_there_is_no_other_way_in(act: str, made: Path, tmp_path: Path) -> None:
    """Python tells of every file that it opens, lists, renames or removes (PEP 578). Within a run directory all of that
    goes by a folder's descriptor and a name in it, never by a path.
    """
    run = tmp_path / "place" / "run"
    shutil.copytree(made, run)
    if act == "unpack":
        _packed(run)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(run), str(ROOT / "tests"), act],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"open {run}/by a path"]
