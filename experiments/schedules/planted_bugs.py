"""Builds a kernel for each planted bug (bugs/*.patch), runs schedules on it, and says which promises it breaks.

    .venv/bin/python experiments/schedules/planted_bugs.py [--work DIR] [--build] [NAME...]

Each kernel is a build of its own; with ccache all but the first take a minute. For each bug the schedules of its
protocol run, on the unmodified kernel too: a bug is found by a promise that it breaks in more cells.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
from pathlib import Path

from netwarp.core.checkout import CHECKOUT
from netwarp.guestkernel import build_kernel
from netwarp.guestkernel.source import file_sha256
from netwarp.guestkernel.variant import PLAIN, patched
from netwarp.store.manifest import Manifest
from netwarp.store.run_dir import RunDir, read_json

HERE = Path(__file__).parent
BASE = "unmodified"
PARTS: dict[str, list[list[str]]] = {
    "sctp": [
        ["--only", "handshake", "--where", "variant=sctp", "--where", "variant=sctp2"],
        ["--only", "failover", "--where", "variant=sctp2"],
        ["--only", "idle", "--only", "close", "--only", "hole"],
    ],
    "tcp": [["--only", "handshake", "--where", "variant=tcp"], ["--only", "failover", "--where", "variant=tcp"]],
    "mptcp": [["--only", "join"], ["--only", "failover", "--where", "variant=mptcp2"]],
}
"""The protocol that a patch's name begins with -> the parts of the experiment that are run."""
NOT_COMPLETED = "a cell that completes"
LATER = frozenset([
    "overtaken", "reinjection", "in-order-mptcp", "founded", "close-limit", "complete-idle", "closing-ends",
    "closed"
])  # fmt: skip
LATER_PARTS = frozenset([("sctp", 2)])
"""Promises (the last part of claims.toml) and parts that were added when the bugs were known."""


def main() -> int:
    """Build, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="patches of bugs/ (default: all)")
    parser.add_argument("--work", type=Path, default=CHECKOUT / "build" / "planted-bugs", metavar="DIR")
    parser.add_argument(
        "--base",
        type=Path,
        metavar="RUN",
        help="a run of all schedules on the unmodified kernel (default: made)",
    )
    parser.add_argument("--build", action="store_true", help="build the kernels, and run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    patches = {path.stem: path for path in sorted((HERE / "bugs").glob("*.patch"))}
    names = args.names or list(patches)
    if unknown := [name for name in names if name not in patches]:
        parser.error(f"there is no bug {unknown[0]}; there is: {', '.join(patches)}")
    work = args.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    kernels = build({name: patches[name] for name in names})
    if args.base and read_json(RunDir(args.base).manifest, Manifest).kernel_sha256 != file_sha256(kernels[BASE]):
        parser.error(f"{args.base} ran on another kernel than {kernels[BASE]}")
    if args.build:
        return 0
    say(f"{'bug':<28} found by")
    early, all_found = set[str](), set[str]()
    for name in names:
        protocol = name.split("-")[0]
        found: list[str] = []
        for number, part in enumerate(PARTS[protocol]):
            base = args.base or run(kernels[BASE], work / f"{BASE}-{protocol}-{number}", part, args.jobs)
            before = broken(base)
            after = broken(run(kernels[name], work / f"{name}-{protocol}-{number}", part, args.jobs))
            for claim, count in after.items():
                if count > before.get(claim, 0):
                    found.append(f"{claim} ({count} cells of part {number + 1}, {before.get(claim, 0)} without it)")
                    all_found.add(name)
                    if claim not in LATER and (protocol, number) not in LATER_PARTS:
                        early.add(name)
        say(f"{name:<28} {'; '.join(found) or 'nothing'}")
    say(f"{len(all_found)} of {len(names)} found; by what was promised before the bugs were known: {len(early)}")
    return 0


def say(text: str) -> None:
    """A line on stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def build(patches: dict[str, Path]) -> dict[str, Path]:
    """Build the unmodified kernel and each bug's; the binaries. Kernels that are there stay."""
    kernels = {}
    for name, variant in {BASE: PLAIN, **{name: patched(path) for name, path in patches.items()}}.items():
        kernel = build_kernel(variant=variant)
        say(f"{name:<28} kernel {kernel.key}, sha256 {kernel.sha256[:16]}")
        kernels[name] = kernel.binary
    return kernels


def run(kernel: Path, out: Path, part: list[str], jobs: int) -> Path:
    """Run a part of the experiment on a kernel, unless it has been run."""
    if not (out / "tables" / "claims.csv").exists():
        command = [sys.executable, "-m", "netwarp", "run", "schedules", "--no-report", "--jobs", str(jobs)]
        command += ["--out", str(out), *(["--resume"] if (out / "plan.json").exists() else []), *part]
        environment = {**os.environ, "NETWARP_KERNEL": str(kernel)}
        done = subprocess.run(command, cwd=CHECKOUT, env=environment, stdout=subprocess.DEVNULL, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return out


def broken(out: Path) -> dict[str, int]:
    """Promises that a run breaks -> in how many cells; beside them cells that did not complete."""
    with (out / "tables" / "claims.csv").open(newline="") as file:
        claims = [row["claim"] for row in csv.DictReader(file) if row["verdict"] == "does not hold"]
    with (out / "tables" / "claim_details.csv").open(newline="") as file:
        reasons = {row["claim"]: row["reason"] for row in csv.DictReader(file)}
    with (out / "tables" / "cells.csv").open(newline="") as file:
        failed = sum(row["outcome"] != "COMPLETED" for row in csv.DictReader(file))
    found = {claim: int(reasons[claim].split()[0]) for claim in claims}
    return found | ({NOT_COMPLETED: failed} if failed else {})


if __name__ == "__main__":
    sys.exit(main())
