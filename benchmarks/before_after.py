"""Measures the cost of cells with an earlier netwarp and with this checkout, in turns, on the same kernel.

    .venv/bin/python benchmarks/before_after.py --before 85724fd2

The earlier one is unpacked and built below build/bench, once. Each row is the CPU time (user and system, of every
process) and the wall time of a further cell of one `netwarp run --no-report --jobs 1`, analysis and all: what a run of
more cells takes longer than a run of one, for each. Of either the least of several rounds counts, since other work on
the machine only adds to it. NETWARP_KERNEL chooses the guest kernel.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from netwarp.core.checkout import CHECKOUT
from netwarp.sandbox.choose import choose
from netwarp.store.manifest import cpu_model

SPEC = Path(__file__).with_name("speed.toml")


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a level of speed.toml, and of how many cells in a run all but the first are measured."""

    title: str
    level: str
    cells: int


ROWS = (
    Row("TCP at 1 Gbit/s, {seconds} s", "gigabit", 2),
    Row("100 MB of TCP", "tcp_100_mb", 2),
    Row("100 MB of SCTP, messages of 1452 bytes", "sctp_100_mb", 2),
    Row("100 s of TCP at 0.5 Mbit/s", "slow_tcp", 9),
    Row("100 s of SCTP at 0.5 Mbit/s", "slow_sctp", 9),
)


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU and wall seconds."""

    cpu_s: float
    wall_s: float


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, metavar="REVISION", help="a commit of this repository")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="of the gigabit (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=[row.level for row in ROWS])
    arguments = parser.parse_args()
    rows = [row for row in ROWS if arguments.only is None or row.level in arguments.only]
    checkouts = (unpacked(arguments.before), CHECKOUT)
    for checkout in checkouts:  # each calibrates the kernel with its first cell
        run(checkout, "slow_tcp", 1, ["--set", "duration=1 s"])
    kernel = choose("virtual").kernel
    print(f"Linux {kernel.release} in virtual time on {cpu_model()}; the least of {arguments.rounds} rounds, in turns")
    print(f"{'':<45}{'CPU before':>12}{'now':>9}{'ratio':>8}{'wall before':>14}{'now':>9}", flush=True)
    for row in rows:
        sets = ["--set", f"duration={arguments.seconds} s"] if row.level == "gigabit" else []
        runs: dict[tuple[Path, int], list[Spent]] = {}
        for _ in range(arguments.rounds):
            for cells in (1, row.cells):
                for checkout in checkouts:
                    runs.setdefault((checkout, cells), []).append(run(checkout, row.level, cells, sets))
        (then, then_wall), (now, now_wall) = (
            further(runs[checkout, 1], runs[checkout, row.cells], row.cells - 1) for checkout in checkouts
        )
        title = row.title.format(seconds=arguments.seconds)
        walls = f"{then_wall:>12.2f} s{now_wall:>7.2f} s"
        print(f"{title:<45}{then:>10.2f} s{now:>7.2f} s{now / then:>8.2f}{walls}", flush=True)
    return 0


def unpacked(revision: str) -> Path:
    """That commit, with its programs built."""
    name = subprocess.run(
        ["git", "-C", str(CHECKOUT), "rev-parse", "--verify", f"{revision}^{{commit}}"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    place = CHECKOUT / "build" / "bench" / f"before-{name[:12]}"
    if not (place / "build" / "bin").exists():
        place.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "-C", str(CHECKOUT), "archive", name], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(place)], check=True, input=archive)
        (place / "build").mkdir(exist_ok=True)
        (place / "build" / "kernel-headers").symlink_to((CHECKOUT / "build" / "kernel-headers").resolve())
        subprocess.run(["make", "-s", "-C", str(place / "apps"), "all"], check=True, stdout=subprocess.DEVNULL)
    return place


def further(of_one: list[Spent], of_more: list[Spent], cells: int) -> tuple[float, float]:
    """CPU and wall seconds of a further cell."""
    cpu_s = min(each.cpu_s for each in of_more) - min(each.cpu_s for each in of_one)
    wall_s = min(each.wall_s for each in of_more) - min(each.wall_s for each in of_one)
    return cpu_s / cells, wall_s / cells


def run(checkout: Path, level: str, repetitions: int, sets: list[str]) -> Spent:
    """One `netwarp run`."""
    with tempfile.TemporaryDirectory(prefix="netwarp-bench-") as place:
        command = [
            sys.executable, "-m", "netwarp", "run", str(SPEC), "--where", f"what={level}", "--jobs", "1",
            "--repetitions", str(repetitions), "--no-report", "--out", f"{place}/run", *sets,
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(checkout / "orchestrator"), "PYTHONDONTWRITEBYTECODE": "1"}
        used, started = children_s(), time.perf_counter()
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{checkout}: {done.stdout}{done.stderr}")
        return Spent(children_s() - used, time.perf_counter() - started)


def children_s() -> float:
    """CPU seconds of the processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
