"""Cells per second: one worker, two, two of a dask cluster, two separate processes (shards): the same cells in one run.

Rounds go one after another, each way once a round, so that what else the machine does falls on all of them; medians,
and the ratios of two workers to two processes and of dask's two to them. Each way runs the cells, and --more times as
many: the difference is what a further cell takes, without the start and the end of the run (and of the cluster), in
wall time and in CPU time of all processes. Also the memory of the process that gives out the cells (VmRSS of
/proc/PID/status): when a quarter of the cells is finished, and its largest after that.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOK_S = 0.1
TWO, DASK, SHARDS = "two workers", "two workers of dask", "two processes (shards)"
SPEC = """\
format = 1
name = "scale"
duration = "DURATION"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "2 Mbit/s"
queue = "20 packets"
one_way_delay = "20 ms"
loss = "1 %"
[flow.f]
from = "a"
to = "b"
protocol = "{protocol}"
paths = ["p1"]
[factor.protocol]
levels = ["tcp", "sctp"]
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One measurement of running cells. rss_kib: of the process that gives out cells, early and at most later."""

    cells: int
    wall_s: float
    cpu_s: float
    rss_kib: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pair:
    """A run, and one of more cells the same way."""

    short: Way
    long: Way

    @property
    def cells_s(self) -> float:
        """Cells per second of the short run, its start and end included."""
        return self.short.cells / self.short.wall_s

    @property
    def further_s(self) -> float:
        """Wall time of a further cell."""
        return (self.long.wall_s - self.short.wall_s) / (self.long.cells - self.short.cells)

    @property
    def further_cpu_s(self) -> float:
        """CPU time of a further cell, of all processes."""
        return (self.long.cpu_s - self.short.cpu_s) / (self.long.cells - self.short.cells)


def main() -> int:
    """Print the table; 1 if a run did not complete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=24, help="an even number (24)")
    parser.add_argument("--duration", default="20 s", help="virtual, of a cell (20 s)")
    parser.add_argument("--more", type=int, default=3, help="times as many in the longer run of each way (3)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    ways = {
        "one worker": [["--jobs", "1"]],
        TWO: [["--jobs", "2"]],
        DASK: [["--executor", "dask", "--jobs", "2"]],
        SHARDS: [["--jobs", "1", "--shard", f"{number}/2"] for number in (1, 2)],
    }
    measured: dict[str, list[Pair]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="netwarp-scale-") as name:
        spec = Path(name) / "spec.toml"
        spec.write_text(SPEC.replace("DURATION", args.duration))
        # what is done once for a kernel (its calibration) is no part of it
        run(spec, args.cells // 2, Path(name) / "first", [["--jobs", "2"]])
        for number in range(args.rounds):
            for way, commands in ways.items():
                place = Path(name) / f"{number}-{way}"
                short = run(spec, args.cells // 2, place / "short", commands)
                measured[way].append(Pair(short, run(spec, args.more * args.cells // 2, place / "long", commands)))
                shutil.rmtree(place)
    print(f"{args.cells} and {args.more * args.cells} cells of {args.duration}, medians of {args.rounds} rounds")
    for way, pairs in measured.items():
        speed, further, cpu = (
            statistics.median(getattr(pair, what) for pair in pairs)
            for what in ("cells_s", "further_s", "further_cpu_s")
        )
        early, late = (max(pair.long.rss_kib[at] for pair in pairs) / 1024 for at in (0, 1))
        print(
            f"{way:<24}{speed:>6.2f} cells/s; a further cell {further:.3f} s, CPU {cpu:.3f} s; "
            f"parent {early:.0f} MiB after a quarter, at most {late:.0f} MiB later"
        )
    ratio("cells/s", TWO, SHARDS, measured, lambda mine, theirs: mine.cells_s / theirs.cells_s)
    ratio("further cells/s", TWO, SHARDS, measured, lambda mine, theirs: theirs.further_s / mine.further_s)
    ratio("wall time of a further cell", DASK, TWO, measured, lambda mine, theirs: mine.further_s / theirs.further_s)
    ratio("its CPU time", DASK, TWO, measured, lambda mine, theirs: mine.further_cpu_s / theirs.further_cpu_s)
    return 0


def ratio(
    what: str, way: str, other: str, measured: Mapping[str, Sequence[Pair]], of: Callable[[Pair, Pair], float]
) -> None:
    """Print the median and the range over the rounds."""
    found = [of(mine, theirs) for mine, theirs in zip(measured[way], measured[other], strict=True)]
    print(f"{what}, {way} / {other}: median {statistics.median(found):.3f}, {min(found):.3f} to {max(found):.3f}")


def run(spec: Path, repetitions: int, place: Path, commands: list[list[str]]) -> Way:
    """Run all cells once, in one or more processes at once, tables and all but the report."""
    words = [sys.executable, "-m", "netwarp", "run", spec, "--repetitions", str(repetitions), "--no-report"]
    started, cpu = time.monotonic(), cpu_s()
    places = [place / str(number) for number in range(len(commands))]
    processes = [
        subprocess.Popen([*words, *more, "--out", out], stdout=subprocess.DEVNULL)
        for more, out in zip(commands, places, strict=True)
    ]
    early = late = 0
    share = 2 * repetitions // len(commands)
    for rss_kib, finished in watched(processes[0], places[0]):
        if finished < share // 4:
            early = max(early, rss_kib)
        else:
            early, late = early or rss_kib, max(late, rss_kib)
    for process in processes:
        if process.wait() != 0:
            raise SystemExit(f"a run ended with {process.returncode}")
    return Way(2 * repetitions, time.monotonic() - started, cpu_s() - cpu, (early, late))


def cpu_s() -> float:
    """CPU time of all processes below this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watched(process: subprocess.Popen[bytes], out: Path) -> Iterator[tuple[int, int]]:
    """(VmRSS in KiB, finished cells), again and again while it runs."""
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except FileNotFoundError:
            return
        lines = [line.split() for line in status.splitlines() if line.startswith("VmRSS")]
        if lines:
            yield int(lines[0][1]), len(list(out.glob("cells/*/outcome.json")))
        time.sleep(LOOK_S)


if __name__ == "__main__":
    sys.exit(main())
