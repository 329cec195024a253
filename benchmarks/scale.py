"""Cells per second: one worker, two, two of a dask cluster, two separate processes (shards): the same cells in one run.

Rounds go one after another, each way once a round, so that what else the machine does falls on all of them; medians,
and the ratios of two workers to two processes and to dask's two. A cluster is started and ended in its time. Also the
memory of the process that gives out the cells (VmRSS of /proc/PID/status): when a quarter of the cells is finished, and
its largest after that.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOOK_S = 0.1
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
    """One measurement of running the cells. rss_kib: of the process that gives out cells, early and at most later."""

    cells_s: float
    rss_kib: tuple[int, int]


def main() -> int:
    """Print the table; 1 if a run did not complete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=24, help="an even number (24)")
    parser.add_argument("--duration", default="20 s", help="virtual, of a cell (20 s)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    ways = {
        "one worker": [["--jobs", "1"]],
        "two workers": [["--jobs", "2"]],
        "two workers of dask": [["--executor", "dask", "--jobs", "2"]],
        "two processes (shards)": [["--jobs", "1", "--shard", f"{number}/2"] for number in (1, 2)],
    }
    measured: dict[str, list[Way]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="netwarp-scale-") as name:
        spec = Path(name) / "spec.toml"
        spec.write_text(SPEC.replace("DURATION", args.duration))
        # what is done once for a kernel (its calibration) is no part of it
        run(spec, args.cells // 2, Path(name) / "first", [["--jobs", "2"]])
        for number in range(args.rounds):
            for way, commands in ways.items():
                measured[way].append(run(spec, args.cells // 2, Path(name) / f"{number}-{way}", commands))
    print(f"{args.cells} cells of {args.duration}, medians of {args.rounds} rounds")
    for way, results in measured.items():
        speed = statistics.median(one.cells_s for one in results)
        early, late = (max(one.rss_kib[at] for one in results) / 1024 for at in (0, 1))
        print(f"{way:<24}{speed:>7.2f} cells/s   parent {early:.0f} MiB after a quarter, at most {late:.0f} MiB later")
    for way, other in (("two workers", "two processes (shards)"), ("two workers of dask", "two workers")):
        pairs = zip(measured[way], measured[other], strict=True)
        ratios = [mine.cells_s / theirs.cells_s for mine, theirs in pairs]
        print(f"{way} / {other}: median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")
    return 0


def run(spec: Path, repetitions: int, place: Path, commands: list[list[str]]) -> Way:
    """Run all cells once, in one or more processes at once, tables and all but the report."""
    words = [sys.executable, "-m", "netwarp", "run", spec, "--repetitions", str(repetitions), "--no-report"]
    started = time.monotonic()
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
    return Way(2 * repetitions / (time.monotonic() - started), (early, late))


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
