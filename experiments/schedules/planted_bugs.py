"""Builds a kernel for each planted bug (bugs/*.patch), runs schedules on it, and says which promises it breaks.

    .venv/bin/python experiments/schedules/planted_bugs.py [--work DIR] [--build] [NAME...]

The source is unpacked and built once in DIR (minutes); each bug then costs the compilation of one file and a link. For
each bug the schedules of its protocol run, on the unmodified kernel too: a bug is found by a promise that it breaks in
more cells.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
from pathlib import Path

from netwarp.core.checkout import CHECKOUT
from netwarp.guestkernel.build import apply_patch, configure
from netwarp.guestkernel.recipe import Patch, load_recipe
from netwarp.guestkernel.run import Runner
from netwarp.guestkernel.source import find_source, unpack

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


def main() -> int:
    """Build, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="patches of bugs/ (default: all)")
    parser.add_argument("--work", type=Path, default=CHECKOUT / "build" / "planted-bugs", metavar="DIR")
    parser.add_argument("--build", action="store_true", help="build the kernels, and run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    patches = {path.stem: path for path in sorted((HERE / "bugs").glob("*.patch"))}
    names = args.names or list(patches)
    if unknown := [name for name in names if name not in patches]:
        parser.error(f"there is no bug {unknown[0]}; there is: {', '.join(patches)}")
    work = args.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    kernels = {name: work / f"linux-{name}" for name in (BASE, *names)}
    build(work, {name: patches[name] for name in names}, kernels, args.jobs)
    if args.build:
        return 0
    say(f"{'bug':<28} found by")
    for name in names:
        found: list[str] = []
        for number, part in enumerate(PARTS[name.split("-")[0]]):
            runs = [run(kernels[kernel], work / f"{kernel}-{name.split('-')[0]}-{number}", part, args.jobs)
                    for kernel in (BASE, name)]  # fmt: skip
            before, after = (broken(one) for one in runs)
            found += [
                f"{claim} ({count} cells of part {number + 1}, {before.get(claim, 0)} without it)"
                for claim, count in after.items()
                if count > before.get(claim, 0)
            ]
        say(f"{name:<28} {'; '.join(found) or 'nothing'}")
    return 0


def say(text: str) -> None:
    """A line on stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def build(work: Path, patches: dict[str, Path], kernels: dict[str, Path], jobs: int) -> None:
    """Build what is not there yet: first the unmodified kernel, then each bug in the same tree."""
    recipe, tree = load_recipe(), work / "tree"
    log_path = work / "build.log"
    with log_path.open("ab") as log:
        runner = Runner(log, log_path, recipe.identity, lambda progress: None)

        def make(target: Path) -> None:
            runner.run([*recipe.make, f"-j{jobs}", "ARCH=um", "linux"], cwd=tree, objects=recipe.objects)
            runner.run(["strip", "-o", str(target), str(tree / "linux")], cwd=tree)
            say(f"built {target.name}")

        if not (tree / ".config").exists():
            runner.enter("unpacks")
            unpack(find_source(None, recipe), tree, recipe, runner)
            for patch in recipe.patches:
                apply_patch(patch, tree)
            configure(recipe, tree, runner)
        runner.enter("compiles")
        if not kernels[BASE].exists():
            make(kernels[BASE])
        for name, path in patches.items():
            if kernels[name].exists():
                continue
            apply_patch(Patch(path.name, path.read_bytes()), tree)
            try:
                make(kernels[name])
            finally:
                command = ["patch", "-p1", "--force", "--silent", "--reverse", "--no-backup-if-mismatch"]
                subprocess.run(command, cwd=tree, input=path.read_bytes(), check=True)


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
