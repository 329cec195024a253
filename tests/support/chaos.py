"""Kills processes of a run by `kill -9` at random moments, many times: `make chaos`. After each kill it checks that
nothing remains and that --resume completes the run.

Killed are netwarp itself; one of its worker processes; a sandbox (the guest's kernel, or netns-exec); or a process in
it (in a guest the host's process for it; on netns cell-init with its capture process, the sender, the receiver). The
moment is drawn from the whole length of a run, from the first line of code to the last line of the report; a process
that does not exist yet is killed as soon as it does. In virtual time tables and captures must then equal those of an
undisturbed run, byte for byte; on the wall clock the same cells must be COMPLETED.

The netns back end runs here if this machine's kernel has netem, otherwise in a guest on the wall clock.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from netwarp.core.types import Outcome
from netwarp.guestkernel import find_kernel
from netwarp.sandbox import netns_backend
from netwarp.store.run_dir import RunDir
from netwarp.testbed.steps import step

from support import cell_init_kit as kit
from support.chain_kit import (
    GONE_S,
    LIMIT_S,
    Checkout,
    captures,
    ended,
    factor,
    outcomes,
    tables,
    two_paths,
)
from support.checkout import ROOT
from support.killable import TARGETS, family
from support.leftovers import LOOK_S, Watch, namespaces, settle

BACKENDS = ("virtual", "guest", "netns", "dask")
"""The last one: in virtual time on a dask cluster of netwarp's own."""
KILLED = -signal.SIGKILL
LATE = ("timeline", "start of", "steal time", "utilization")
"""Checks that a busy machine makes fail on the wall clock (docs/limitations.md): no fault of a kill."""
GUEST_SESSION_S = 3000


@dataclass(frozen=True)
class Kill:
    """One kill and what came of it."""

    backend: str
    target: str
    at_s: float
    """Into the run."""
    gone_s: float
    """Until the last process that had to go with it was gone."""
    left: tuple[str, ...]
    """Things that should not be there afterwards."""
    failed_cells: int
    """Of the killed run: cells that say they FAILED."""
    late_cells: int
    """INVALID because this machine was late, which wall-clock cells may be."""
    wrong: str
    """The differences from the undisturbed run after --resume; empty: none."""


# One kill --------------------------------------------------------------------------------------------------------


class Chaos:
    """Kills runs of one small spec on one back end."""

    def __init__(self, checkout: Checkout, place: Path, backend: str, report: bool) -> None:
        self.checkout, self.place, self.backend, self.report = checkout, place, backend, report
        for name in ("tmp", "home"):
            (place / name).mkdir(parents=True)
        self.virtual = virtual = backend in ("virtual", "dask")
        text = two_paths(factor("delay", ["10 ms", "30 ms"]) if virtual else "", duration="3 s" if virtual else "1 s")
        self.spec = place / "spec.toml"
        self.spec.write_text(text.replace('"20 ms"', '"{delay}"', 1) if virtual else text)
        self.more = ("--backend", "virtual" if virtual else backend, *(("--jobs", "2") if virtual else ()))
        self.more += ("--executor", "dask") if backend == "dask" else ()
        if not report:  # the short version: one cell on the wall clock, no page
            self.more += ("--no-report", *(() if virtual else ("--where", "protocol=sctp")))
        self.reference = place / "undisturbed"
        started = time.monotonic()
        done = ended(self.start(self.reference))
        self.wall_s = time.monotonic() - started
        found, _ = self.judge(self.reference, done.status)
        assert not found, (found, done)

    def start(self, run: Path, *more: str) -> subprocess.Popen[str]:
        arguments = ("run", self.spec, "--out", run, *self.more, *more)
        return self.checkout.start(*arguments, cwd=self.place, TMPDIR=str(self.place / "tmp"),
                                   HOME=str(self.place / "home"), PYTHONDONTWRITEBYTECODE="1")  # fmt: skip

    def judge(self, run: Path, status: int) -> tuple[str, int]:
        """What is not as in the undisturbed run, and how many cells were late."""
        late = 0
        for cell_id, outcome in outcomes(run).items():
            if outcome.outcome is Outcome.COMPLETED:
                continue
            if not self.virtual and self.was_late(run, cell_id, outcome.outcome):
                late += 1
            else:
                return f"{cell_id} {outcome.outcome}: {outcome.reason}", late
        if status != (1 if late else 0):
            return f"exit status {status}", late
        if sorted(outcomes(run)) != sorted(outcomes(self.reference)):
            return "other cells", late
        if self.report and not (run / "report" / "index.html").is_file():
            return "no report", late
        if (run / "cells" / ".partial").exists() or list(run.rglob("*.part")):
            return "unfinished files", late
        if self.virtual:
            if tables(run) != tables(self.reference):
                return "other tables", late
            if captures(run) != captures(self.reference):
                return "other captures", late
        return "", late

    def was_late(self, run: Path, cell_id: str, outcome: Outcome) -> bool:
        """Whether that explains it: standing still for seconds makes a flow, or the cell, miss its end."""
        environment = RunDir(run).cell(cell_id).environment
        if not environment.exists():  # of a cell that was given up
            return False
        checks = json.loads(environment.read_text())["checks"]
        wrong = [check["check"] for check in checks if not check["ok"]]
        late = [name for name in wrong if name.startswith(LATE)]
        return bool(late) and (late == wrong or outcome is not Outcome.INVALID)

    def kill(self, target: str, moments: random.Random) -> Kill:
        """Until one could be killed in a new run; then what the machine looks like, and what --resume makes of it."""
        find = TARGETS[self.backend][target]
        for number in range(1000):
            run = self.place / f"run-{number}"
            if run.exists():
                continue
            watch, started = Watch(self.place), time.monotonic()
            process = self.start(run)
            due_s = moments.uniform(0, self.wall_s)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(due_s)
            while process.poll() is None:
                if victims := find(process.pid):
                    found = self.strike(process, target, moments.choice(victims), started, watch, run)
                    subprocess.run(["rm", "-rf", str(run)], check=True)
                    return found
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_S)
            ended(process)  # too late: another run, another moment
        raise RuntimeError(f"no {target} could be killed")

    def strike(
        self, process: subprocess.Popen[str], target: str, victim: int, started: float, watch: Watch, run: Path
    ) -> Kill:
        all_of_it = [process.pid, *family(process.pid)]
        held = namespaces(all_of_it)
        going = all_of_it if victim == process.pid else [victim, *family(victim)]
        handles = [handle for pid in going if (handle := opened(pid)) is not None]
        at = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        if victim == process.pid:
            process.wait(LIMIT_S)
        gone_s = all_gone(handles) - at
        done = ended(process)
        wrong = ""
        failed = [one for one in outcomes(run).values() if one.outcome is Outcome.FAILED]
        if victim != process.pid and (done.status not in (0, 1) or "Traceback" in done.err):
            wrong = f"netwarp ended with {done.status}: {done.err[-300:]}"
        if victim == process.pid and done.status != KILLED:
            wrong = f"netwarp ended with {done.status}"
        left = settle(lambda: list(watch.left(held, run)))
        # killed before it made its directory, there is no run to resume
        again = ended(self.start(run, *(("--resume",) if run.exists() else ())))
        found, late = self.judge(run, again.status)
        if left_after := settle(lambda: list(watch.left(held, run, resumed=True))):
            left += [f"after --resume: {one}" for one in left_after]
        return Kill(
            self.backend, target, round(at - started, 3), round(gone_s, 4), tuple(left), len(failed), late,
            wrong or (f"{found} {again.err[-300:]}" if found else ""),
        )  # fmt: skip


def opened(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.pidfd_open(pid)
    return None


def all_gone(handles: list[int]) -> float:
    """When the last of them had gone (zombies are gone)."""
    import select

    for handle in handles:
        if not select.select([handle], [], [], GONE_S)[0]:
            raise RuntimeError("a process outlived the kill")
        os.close(handle)
    return time.monotonic()


# All of them -----------------------------------------------------------------------------------------------------


def kills_of(checkout: Checkout, place: Path, backend: str, kills: int, seed: int, report: bool) -> list[Kill]:
    """`kills` on one back end, its targets in turn, from one that the seed chooses."""
    moments = random.Random(f"{seed} {backend}")
    chaos = Chaos(checkout, place, backend, report)
    targets = list(TARGETS[backend])
    found = []
    for number in range(kills):
        found.append(chaos.kill(targets[(seed + number) % len(targets)], moments))
        print(json.dumps(asdict(found[-1])), flush=True)
    return found


def netns_in_a_guest(checkout: Checkout, place: Path, kills: int, seed: int, report: bool) -> list[Kill]:
    """The same in a guest on the wall clock, whose kernel has netem and SCTP."""
    me = ["-m", "support.chaos", "--here", "--backends", "netns", "--kills", str(kills), "--seed", str(seed)]
    me += [] if report else ["--no-report"]
    steps = [
        step("sandbox", kind="guest"), step("clock", t0_after_ready_ns=100 * kit.MS),
        step("deadline", setup_ns=9 * kit.S, after_t0_ns=(GUEST_SESSION_S + 20) * kit.S),
        *kit.namespaces("machine"), step("ready"),
        step("spawn", id="chaos", ns=0, stdout="chaos.out", stderr="chaos.err", flow=1, at_ns=0,
             arg=[sys.executable, *me, "--place", "/run/cell/chaos"],
             env=[f"PYTHONPATH={checkout.root}/orchestrator:{ROOT}/tests", "HOME=/run/cell",
                  "TMPDIR=/run/cell", "PYTHONDONTWRITEBYTECODE=1"]),
        step("end", at_ns=GUEST_SESSION_S * kit.S, early=1, grace_ns=5 * kit.S),
    ]  # fmt: skip
    directory = kit.prepare(place, steps)
    command = kit.guest_command(checkout.kernel, directory, "--mode", "wall", "--memory", "1G")
    subprocess.run(command, timeout=GUEST_SESSION_S + 60, check=False, stdout=subprocess.DEVNULL)
    said = (directory / "chaos.out").read_text() if (directory / "chaos.out").exists() else ""
    found = [kill_of(line) for line in said.splitlines() if line.startswith("{")]
    if len(found) < kills:
        error = (directory / "chaos.err").read_text()[-2000:] if (directory / "chaos.err").exists() else ""
        console = (directory / "console.txt").read_text(errors="replace")[-500:]
        raise RuntimeError(f"{len(found)} of {kills} kills in the guest: {error}\n{console}")
    return found


def kill_of(line: str) -> Kill:
    found = Kill(**json.loads(line))
    return replace(found, left=tuple(found.left))


def chaos(
    checkout: Checkout, place: Path, kills: dict[str, int], seed: int, *, here: bool = False, report: bool = True
) -> list[Kill]:
    """So many kills on each back end. report: runs make their page, and may be killed while they do."""
    found: list[Kill] = []
    for backend, count in kills.items():
        if backend == "netns" and not here and netns_backend(checkout.root / "build")[1]:
            found += netns_in_a_guest(checkout, place / backend, count, seed, report)
        else:
            found += kills_of(checkout, place / backend, backend, count, seed, report)
    return found


def summary(kills: Sequence[Kill], seed: int) -> str:
    """A line for each back end and target."""
    rows = [
        ("back end", "killed", "times", "moments", "gone after (median, max)", "left", "cells FAILED", "whole again")
    ]
    for backend, target in dict.fromkeys((kill.backend, kill.target) for kill in kills):
        of = [kill for kill in kills if (kill.backend, kill.target) == (backend, target)]
        gone = [1000 * kill.gone_s for kill in of]
        rows.append((
            backend, target, str(len(of)), f"{min(k.at_s for k in of):.2f} to {max(k.at_s for k in of):.2f} s",
            f"{statistics.median(gone):.1f} ms, {max(gone):.1f} ms", str(sum(len(k.left) for k in of)),
            str(sum(k.failed_cells for k in of)), f"{sum(not k.wrong for k in of)} of {len(of)}",
        ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    well = sum(not kill.wrong and not kill.left for kill in kills)
    late = sum(kill.late_cells for kill in kills)
    lines.append(f"{well} of {len(kills)} kills left nothing, and --resume ended as if they had not been (seed {seed})")
    if late:
        lines.append(f"{late} wall-clock cells were INVALID because this machine was late: run it where less goes on")
    return "\n".join(lines)


def main() -> int:
    """Kill, print; 1 if anything was left or wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="in all (100)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (drawn; printed)")
    parser.add_argument("--backends", default=",".join(BACKENDS), help="virtual,guest,netns,dask (all)")
    parser.add_argument("--place", type=Path, help="work here, and leave it (a temporary directory)")
    parser.add_argument("--here", action="store_true", help="netns on this machine's kernel, never in a guest")
    parser.add_argument("--no-report", action="store_true", help="runs without a page, one cell on the wall clock")
    args = parser.parse_args()
    backends = args.backends.split(",")
    if args.kills < 1 or not set(backends) <= set(BACKENDS):
        parser.error(f"--kills at least 1, --backends out of {', '.join(BACKENDS)}")
    seed = args.seed or random.SystemRandom().randrange(1, 1 << 31)
    shares = {name: args.kills // len(backends) + (n < args.kills % len(backends)) for n, name in enumerate(backends)}
    kernel = find_kernel()
    needs_kernel = not (args.here and backends == ["netns"])
    if kernel is None and needs_kernel:
        print("no guest kernel: run `make kernel`", file=sys.stderr)
        return 77
    checkout = Checkout(ROOT, kernel.binary if kernel else Path("/nonexistent"))
    with contextlib.ExitStack() as stack:
        place = args.place or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="netwarp-chaos-")))
        wanted = {name: n for name, n in shares.items() if n}
        found = chaos(checkout, place, wanted, seed, here=args.here, report=not args.no_report)
    print(summary(found, seed))
    for kill in found:
        if kill.left or kill.wrong:
            print(f"{kill.backend}, {kill.target} at {kill.at_s} s: {'; '.join(kill.left)} {kill.wrong}")
    return 1 if any(kill.left or kill.wrong for kill in found) else 0


if __name__ == "__main__":
    sys.exit(main())
