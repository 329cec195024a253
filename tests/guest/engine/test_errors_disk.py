"""A full disk, at several places: reported, nothing half-written trusted, and completed once there is room."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.core.types import Outcome
from netwarp.store.run_dir import RunDir, read_json
from support.chain_kit import (
    Checkout,
    all_completed,
    as_typed,
    captures,
    factor,
    nothing_left,
    outcomes,
    raw_files,
    same,
    tables,
    two_paths,
    written,
)

FULL = "No space left on device"


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four cells; a cell needs 3.1 MB for its programs and 0.1 MB for its captures."""
    text = two_paths(factor("delay", ["10 ms", "20 ms"]), duration="6 s").replace('"20 ms"', '"{delay}"', 1)
    return written(tmp_path_factory.mktemp("spec") / "spec.toml", text)


@pytest.fixture(scope="module")
def undisturbed(checkout: Checkout, spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that had room."""
    place = tmp_path_factory.mktemp("undisturbed")
    checkout.run("run", spec, "--no-report", "--out", place / "x", cwd=place).ok()
    all_completed(place / "x")
    return place / "x"


@contextlib.contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[None]:
    """A file system of that size, mounted for as long as the block lasts."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def trusted(run: Path) -> None:
    """Asserts that every outcome on disk is that of a whole cell: what it says can be read, COMPLETED is complete."""
    directory = RunDir(run)
    for cell_id, outcome in outcomes(run).items():
        cell = directory.cell(cell_id)
        assert cell.read_cell().id == cell_id
        if outcome.outcome is Outcome.COMPLETED:
            assert read_json(cell.environment, dict[str, object])["checks"]
            assert len(list(cell.capture.glob("*.pcap.zst"))) == 4
            assert list(cell.capture.glob("*.pcap")) == []
        else:
            assert outcome.outcome is Outcome.FAILED
            assert FULL in outcome.reason, outcome


@pytest.mark.root(reason="only root may mount a small file system")
@pytest.mark.parametrize("kilobytes", [16, 256, 2000, 3300, 3800])
def test_full_disk(kilobytes: int, checkout: Checkout, spec: Path, undisturbed: Path, tmp_path: Path) -> None:
    """From no room for the plan, over none for the programs, for the captures, to almost enough: the run ends there."""
    disk = tmp_path / "disk"
    with small_disk(disk, kilobytes):
        run = disk / "x"
        arguments = ("run", spec, "--no-report", "--jobs", 1, "--out", run)
        done = checkout.run(*arguments, cwd=tmp_path)
        assert done.status == 1, done
        assert FULL in done.out + done.err, done
        assert "Traceback" not in done.err, done
        trusted(run)
        ends = [outcome.outcome for outcome in outcomes(run).values()]
        assert ends.count(Outcome.FAILED) <= 1, "the next cell would find no room either"
        assert f"{ends.count(Outcome.COMPLETED)} of 4 cells are kept in {run}" in done.err
        nothing_left(tmp_path)
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        as_typed(checkout, done.err, tmp_path).ok()
        all_completed(run)
        same(captures(run), captures(undisturbed))
        same(raw_files(run), raw_files(undisturbed))
        same(tables(run), tables(undisturbed))
        nothing_left(tmp_path, run=run)


def test_a_limit_on_the_size_of_files(checkout: Checkout, spec: Path, undisturbed: Path, tmp_path: Path) -> None:
    """Captures larger than a file may be: the guest is ended by SIGXFSZ, or its write fails; FAILED either way."""
    run = tmp_path / "x"
    command = checkout.command("run", spec, "--no-report", "--out", run)
    limited = ["sh", "-c", 'ulimit -f 2100 && exec "$@"', "sh", *command]
    done = subprocess.run(limited, cwd=tmp_path, env=checkout.environment(tmp_path), capture_output=True, check=False)
    assert done.returncode == 1, done
    assert {outcome.outcome for outcome in outcomes(run).values()} == {Outcome.FAILED}
    checkout.run("run", spec, "--no-report", "--out", run, "--resume", cwd=tmp_path).ok()
    all_completed(run)
    same(captures(run), captures(undisturbed))
    same(tables(run), tables(undisturbed))
    nothing_left(tmp_path, run=run)
