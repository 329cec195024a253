"""Same cell, same seed, same kernel: the same captures, byte for byte, wherever, by whomever and beside whatever."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chain_kit import (
    Checkout,
    all_completed,
    busy,
    captures,
    copy_checkout,
    ended,
    nothing_left,
    raw_files,
    same,
    tables,
    two_paths,
    written,
)
from support.chain_packets import HEARTBEAT, frames

SEED = 11
NOBODY = 65534
RUN = ("--no-report", "--seed", SEED)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TCP and SCTP, 1 % loss and jitter; SCTP for so long that heartbeats are sent, whose times the kernel draws."""
    slow = 'duration = "130 s"\nlink.p1.rate = "100 kbit/s"\nlink.p2.rate = "100 kbit/s"'
    return written(tmp_path_factory.mktemp("spec") / "spec.toml", two_paths(slow, duration="4 s"))


@pytest.fixture(scope="module")
def reference(checkout: Checkout, spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run everything is compared with: one cell at a time."""
    place = tmp_path_factory.mktemp("r")
    checkout.run("run", spec, *RUN, "--jobs", 1, "--out", place / "r", cwd=place).ok()
    return place / "r"


def equal(run: Path, reference: Path) -> None:
    """Every capture, compressed and plain; and beyond what is promised, every other raw and derived file."""
    all_completed(run)
    found = captures(run)
    assert {key[0] for key in found} == {"tcp", "sctp"}
    same(found, captures(reference))
    same(raw_files(run), raw_files(reference))
    same(tables(run), tables(reference))


def test_the_cells_are_worth_comparing(reference: Path) -> None:
    """Data flowed, and something random happened: packets were lost on their way."""
    rows = (reference / "tables" / "measurements.csv").read_text().splitlines()
    lost = [float(row.split(",")[3]) for row in rows if ",retransmitted_packets," in row]
    heartbeats = [f for f in frames(next(reference.glob("cells/sctp*/capture/a-p2.pcap.zst"))) if HEARTBEAT in f.chunks]
    assert len(lost) == 2
    assert min(lost) > 1
    assert len(heartbeats) >= 3


def test_in_a_directory_with_a_long_name(checkout: Checkout, spec: Path, reference: Path, tmp_path: Path) -> None:
    out = tmp_path.joinpath(*(f"{'long' * 10}{number}" for number in range(8)))
    checkout.run("run", spec, *RUN, "--jobs", 1, "--out", out, cwd=tmp_path).ok()
    equal(out, reference)


def test_four_cells_at_once_under_full_load(checkout: Checkout, spec: Path, reference: Path, tmp_path: Path) -> None:
    """--jobs 4 for --jobs 1, and twice as many busy processes as there are cores."""
    with busy(2 * (os.cpu_count() or 1)):
        checkout.run("run", spec, *RUN, "--jobs", 4, "--out", tmp_path / "x", cwd=tmp_path).ok()
    equal(tmp_path / "x", reference)


def test_from_another_checkout(checkout: Checkout, spec: Path, reference: Path, tmp_path: Path) -> None:
    """Another directory for the code, the programs, the kernel, the home and the work, and a longer environment."""
    other = copy_checkout(tmp_path / "another" / "place for a checkout", checkout.kernel, checkout.root)
    more = {"LANG": "de_DE.UTF-8", "SOMETHING": "else" * 500, "PYTHONHASHSEED": "7"}
    other.run("run", spec, *RUN, "--out", "x", cwd=tmp_path, **more).ok()
    equal(tmp_path / "x", reference)


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that every user may enter (pytest's own are its user's alone)."""
    place = Path(tempfile.mkdtemp(prefix="netwarp-test-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


@pytest.mark.root(reason="only root can be compared with an ordinary user")
def test_as_an_ordinary_user(checkout: Checkout, spec: Path, reference: Path, open_place: Path) -> None:
    """The reference ran as root; this one as nobody, who can write to nothing but its own home."""
    other = copy_checkout(open_place / "checkout", checkout.kernel, checkout.root)
    home, packages = open_place / "home", open_place / "packages"
    home.mkdir()
    packages.mkdir()
    os.chown(home, NOBODY, NOBODY)
    shutil.copy(spec, home / "spec.toml")
    # the virtual environment may lie in a home that nobody can enter: a mount of our own is another way in
    script = 'mount --bind "$0" "$1" && shift && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"'
    command = other.command("run", "spec.toml", *RUN, "--out", "x")
    environment = other.environment(
        home, PYTHONPATH=f"{other.root}/orchestrator:{packages}", PYTHONDONTWRITEBYTECODE="1"
    )
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, sysconfig.get_paths()["purelib"], str(packages),
         os.path.realpath(sys.executable), *command[1:]],
        cwd=home, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    ended(process).ok()
    assert (home / "x" / "plan.json").stat().st_uid == NOBODY
    equal(home / "x", reference)
    nothing_left(open_place, run=home / "x")


def test_another_seed_differs_and_repetitions_count_up(
    checkout: Checkout, spec: Path, reference: Path, tmp_path: Path
) -> None:
    """Repetition 1 of seed 11 is repetition 0 of seed 12, and neither is repetition 0 of seed 11."""
    checkout.run("run", spec, *RUN, "--repetitions", 2, "--out", tmp_path / "two", cwd=tmp_path).ok()
    next_seed = ("--no-report", "--seed", SEED + 1)
    checkout.run("run", spec, *next_seed, "--out", tmp_path / "next", cwd=tmp_path).ok()
    first, second, following = (captures(tmp_path / run, rep) for run, rep in (("two", 0), ("two", 1), ("next", 0)))
    same(first, captures(reference))
    same(second, following)
    # TCP uses one path only: what nothing crosses is equal for every seed
    equal_anyway = {key for key in first if first[key] == second[key]}
    assert equal_anyway == {("tcp", "a-p2.pcap.zst"), ("tcp", "b-p2.pcap.zst")}
