"""Runs netwarp as a process of its own and checks what it prints, the files it leaves, and that no process remains."""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
import zstandard
from netwarp.core.types import Cell, CellOutcome
from netwarp.testbed.steps import step

from support.cell_init_kit import MS, Result, S, namespaces, prepare, run_guest
from support.checkout import ROOT
from support.run_files import CellFiles, RunFiles, load_run

Key = TypeVar("Key")
Value = TypeVar("Value")
LIMIT_S = 300
"""No command here takes a tenth of this; one that hangs must not hang the tests."""
GONE_S = 60
"""Killed processes are gone long before this, on the busiest machine."""
TRIES = 3
"""Times that something is tried whose moment, or whose cell, a busy machine can spoil."""
LATE = f"this machine was too busy, {TRIES} times"
HINT = "go on with: "
PARTS = (
    "orchestrator", "kernel", "netem-profiles", "stack-profiles", "setup", "build/bin", "build/lib",
    "build/android/bin", "build/packages", "results/calibration",
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    """A netwarp that has ended."""

    status: int
    out: str
    err: str

    def ok(self) -> Done:
        """Asserts exit status 0."""
        assert self.status == 0, self
        return self


@dataclass(frozen=True)
class Checkout:
    """A copy of what a checkout needs to run, and of the kernel: nobody rebuilds them under a test."""

    root: Path
    kernel: Path

    def command(self, *arguments: object) -> list[str]:
        """A command line of netwarp."""
        return [sys.executable, "-m", "netwarp", *(str(argument) for argument in arguments)]

    def environment(self, home: Path, **more: str) -> dict[str, str]:
        """Nothing of this process but PATH: this checkout's code, this kernel, a home of its own."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(self.root / "orchestrator"),
            "NETWARP_KERNEL": str(self.kernel),
            **more,
        }

    def start(self, *arguments: object, cwd: Path, **more: str) -> subprocess.Popen[str]:
        """Start netwarp in a session of its own, as a terminal would."""
        return subprocess.Popen(
            self.command(*arguments), cwd=cwd, env=self.environment(cwd, **more), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, *arguments: object, cwd: Path, **more: str) -> Done:
        """Run netwarp to its end."""
        return ended(self.start(*arguments, cwd=cwd, **more))

    def run_spec(self, place: Path, spec: str | Path, *arguments: object) -> RunFiles:
        """Run a spec (its text, or its file) into `place`/run; asserts that every cell completed."""
        path = written(place / "spec.toml", spec) if isinstance(spec, str) else spec
        self.run("run", path, "--out", place / "run", *arguments, cwd=place).ok()
        return load_run(place / "run").completed()


def as_typed(checkout: Checkout, said: str, cwd: Path) -> Done:
    """Runs the command that netwarp said to go on with, given to a shell as it stands."""
    (line,) = [text.partition(HINT)[2] for text in said.splitlines() if HINT in text]
    done = subprocess.run(
        ["sh", "-c", line], cwd=cwd, env=checkout.environment(cwd), capture_output=True, text=True, check=False,
        timeout=LIMIT_S,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def ended(process: subprocess.Popen[str], timeout_s: float = LIMIT_S) -> Done:
    """Wait for a netwarp; one that does not end is killed, and fails the test."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Done(process.returncode, out, err)


def unless_too_late(done: Done) -> None:
    """Skips the test where a run was over before it was interrupted."""
    if done.status == 0:
        pytest.skip("this machine was too busy: the run was over before it could be interrupted")


def in_time(play: Callable[[Path], CellFiles], place: Path) -> CellFiles:
    """A cell on the wall clock that the machine played in time; another try where it was late (what `play` returns is
    COMPLETED then, or late() fails).
    """
    for number in range(TRIES):
        cell = play(place / f"try{number}")
        if not cell.late():
            return cell
    pytest.skip(LATE)


def in_a_guest(kernel: Path, checkout: Checkout, place: Path, *arguments: str) -> Result:
    """netwarp in a guest on the wall clock, which has netem and SCTP: leaves netwarp.out and netwarp.err."""
    return python_in_a_guest(kernel, checkout, place, "-m", "netwarp", *arguments)


def python_in_a_guest(kernel: Path, checkout: Checkout, place: Path, *arguments: str, user: str = "") -> Result:
    """Python with the checkout's code, likewise; its home is the guest's /run/cell. user: UID:GID of the guest."""
    steps = [
        step("sandbox", kind="guest"), step("clock", t0_after_ready_ns=100 * MS),
        step("deadline", setup_ns=60 * S, after_t0_ns=270 * S), *namespaces("machine"), step("ready"),
        step("spawn", id="netwarp", ns=0, stdout="netwarp.out", stderr="netwarp.err", flow=1, at_ns=0,
             arg=[sys.executable, *arguments],
             env=[f"PYTHONPATH={checkout.root}/orchestrator", "HOME=/run/cell", "TMPDIR=/run/cell",
                  "PYTHONDONTWRITEBYTECODE=1"]),
        step("end", at_ns=240 * S, early=1, grace_ns=5 * S),
    ]  # fmt: skip
    prepare(place, steps)
    options = ["--user", user] if user else []
    return run_guest(kernel, place, steps, "--mode", "wall", "--memory", "1G", *options)


def copy_checkout(target: Path, kernel: Path, source: Path = ROOT) -> Checkout:
    """A checkout in another directory, with a copy of the kernel in it."""
    for part in PARTS:
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part, ignore=shutil.ignore_patterns("__pycache__", ".probes*"))
    shutil.copy(kernel, target / "linux")
    return Checkout(target, target / "linux")


# What a run left ------------------------------------------------------------------------------------------------


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()


def tables(run: Path) -> dict[str, bytes]:
    """Every table of a run."""
    return {path.name: path.read_bytes() for path in sorted((run / "tables").glob("*.csv"))}


def cells(run: Path) -> dict[str, Cell]:
    """Every finished cell."""
    return {cell_id: found.cell for cell_id, found in load_run(run).cells.items()}


def outcomes(run: Path) -> dict[str, CellOutcome]:
    """How each finished cell ended."""
    return {cell_id: found.outcome for cell_id, found in load_run(run).cells.items()}


def all_completed(run: Path) -> None:
    """Asserts that every finished cell completed."""
    load_run(run).completed()


def captures(run: Path, repetition: int = 0) -> dict[tuple[str, ...], tuple[str, str]]:
    """(levels of the cell, file) -> digests of the compressed and of the plain capture, of one repetition."""
    found: dict[tuple[str, ...], tuple[str, str]] = {}
    for cell_id, cell in cells(run).items():
        if cell.repetition == repetition:
            for path in sorted((run / "cells" / cell_id / "capture").iterdir()):
                packed = path.read_bytes()
                found[(*cell.factors.values(), path.name)] = (sha256(packed), sha256(unpacked(packed)))
    return found


def unpacked(packed: bytes) -> bytes:
    """A .pcap.zst as the plain file."""
    return zstandard.ZstdDecompressor().decompress(packed)


NOT_EQUAL = ("outcome.json", "init.ndjson.zst", "console.txt")
"""outcome.json holds wall time and the host's load; init.ndjson.zst the kernel's raw replies, neighbours among them in
the order of a hash of its own addresses, which the depth of the working directory moves (hostfs walks it); console.txt
lacks its last line where a guest was killed behind its end record."""


def raw_files(run: Path) -> dict[str, str]:
    """Digest of every file of every finished cell that equal cells have equal."""
    root = run / "cells"
    paths = (path for cell_id in cells(run) for path in sorted((root / cell_id).rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): sha256(path.read_bytes()) for path in paths if path.name not in NOT_EQUAL}


# What it must not leave -----------------------------------------------------------------------------------------


def processes(mark: Path) -> dict[int, str]:
    """Processes that work in, run from, or were told of a path below `mark`; of zombies only the parent knows."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                told = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                said = [told]
                for link in ("cwd", "exe"):
                    with contextlib.suppress(OSError):
                        said.append(os.readlink(entry / link))
                if any(str(mark) in text for text in said):
                    found[int(entry.name)] = " | ".join(said)
    return found


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    started: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                started += [int(word) for word in (thread / "children").read_text().split()]
    return started


def guests(netwarp_pid: int) -> list[int]:
    """The guest kernels that the workers of a running netwarp have started."""
    return sorted(pid for worker in children(netwarp_pid) for pid in guests_of(worker))


def guests_of(worker: int) -> list[int]:
    """Those of one worker."""
    return [pid for pid in children(worker) if is_guest(pid)]


def is_guest(pid: int) -> bool:
    """Whether that process has become a kernel (guest-exec names it `linux`)."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"linux\0")
    return False


def memory_files() -> set[Path]:
    """Guests' memory that has a name (a guest removes the name of its own as soon as it has made it)."""
    return {path for place in ("/dev/shm", "/tmp") for path in Path(place).glob("vm_file-*")}


def nothing_left(mark: Path, *, run: Path | None = None) -> None:
    """Asserts that what was killed is gone, and all that belonged to it: processes, memory, ~/.uml.

    mark: the directory everything of the test lies in, its home included. run: a run directory that netwarp itself
    had time to tidy up.
    """
    until = time.monotonic() + GONE_S
    while left := processes(mark):
        for pid in left:
            _await_end(pid, until)
        assert time.monotonic() < until, left
    names = memory_files()
    while names := {path for path in names if path.exists()}:
        assert time.monotonic() < until, names
    assert [path for path in mark.rglob(".uml") if ".partial" not in path.parts] == []
    if run is not None:
        assert list(run.rglob("*.part")) == []
        assert not (run / "cells" / ".partial").exists()


def _await_end(pid: int, until: float) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([handle], [], [], max(0.0, until - time.monotonic()))
    finally:
        os.close(handle)


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Processes that use all of the machine's cores for as long as the block lasts."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-ISc", "while True: pass"])
            stack.callback(_end, process)
        yield


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


# Specs ----------------------------------------------------------------------------------------------------------

HOSTS = """\
format = 1
name = "{name}"
title = "{name}"
duration = "{duration}"
[node.a]
kind = "host"
[node.b]
kind = "host"
"""


def two_hosts(
    *more: str,
    name: str,
    duration: str,
    top: str = "",
    rate: str = "2 Mbit/s",
    queue: str = "20 packets",
    delay: str = "20 ms",
    link: str = "",
    links: int = 1,
    flow: str = "",
) -> str:
    """Hosts a and b, links p1 (and p2, alike), and the flow `bulk` from a to b over p1; `top`, `link` and `flow` are
    lines more of these parts, `more` is what follows.
    """
    flow = flow if "protocol = " in flow else 'protocol = "tcp"\n' + flow
    flow = flow if "paths = " in flow else 'paths = ["p1"]\n' + flow
    return f"""\
format = 1
name = "{name}"
duration = "{duration}"
{top}
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "{rate}"
queue = "{queue}"
one_way_delay = "{delay}"
{link}
""" + "\n".join(
        [*('[link.p2]\nlike = "p1"' for _ in range(links - 1)), '[flow.bulk]\nfrom = "a"\nto = "b"', flow, *more, ""]
    )


STANDS = """\
format = 1
name = "stands"
duration = "3 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
one_way_delay = "20 ms"
[flow.bulk]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
bytes = "1 MB"
"""
"""The network that a shell is opened in: 20 ms each way, nothing else."""
TCP_OR_SCTP = """\
[factor.protocol]
levels = ["tcp", "sctp"]
[factor.protocol.level.sctp]
flow.bulk.paths = ["p1", "p2"]
"""


def two_paths(*more: str, duration: str = "4 s", shape: str = 'loss = "1 %"\njitter = "2 ms"') -> str:
    """TCP over one, SCTP over two paths of 2 Mbit/s and 40 ms, with losses and jitter to be drawn."""
    flow = 'protocol = "{protocol}"'
    return two_hosts(TCP_OR_SCTP, *more, name="chain", duration=duration, link=shape, links=2, flow=flow)


def factor(name: str, levels: Iterable[str]) -> str:
    """A factor that changes nothing by itself: its level is used as `{name}`."""
    return f"[factor.{name}]\nlevels = [{', '.join(repr(level) for level in levels)}]\n"


def written(path: Path, text: str) -> Path:
    """A spec in its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def same(found: Mapping[Key, Value], wanted: Mapping[Key, Value]) -> None:
    """Asserts that two mappings are equal; says which keys differ, not what megabytes of digests look like."""
    assert sorted(map(str, found)) == sorted(map(str, wanted))
    assert [key for key in found if found[key] != wanted[key]] == []
