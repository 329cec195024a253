"""Runs equal cells under different circumstances, many times: `make determinism`. Names the first packet that differs.

Circumstances are drawn for each run: the directory's depth and the lengths of its names, the user as which the guest's
kernel runs (for root: root, or the ordinary user that root's guests become), busy processes beside it, stops and
continues of the guest's kernel, programs and kernel evicted from the host's page cache. Every run is compared, packet
by packet, with the first one of its cell, which ran in a plain directory with none of this.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import string
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from netwarp.core.link_types import Link, LinkImpairment
from netwarp.core.types import Cell, Flow, Outcome
from netwarp.core.types import Path as FlowPath
from netwarp.experiment import load_spec
from netwarp.guestkernel import find_kernel
from netwarp.measure.calibration.datagram_probes import MS, S, probe_cell
from netwarp.plan import make_plan
from netwarp.sandbox import VirtualBackend
from netwarp.store.run_dir import CellDir, RunDir

from support.cell_init_kit import built
from support.chain_kit import busy, guests_of, two_paths, written
from support.packet_difference import cell_hashes, first_difference

LARGE_S = 24
LARGE_BYTES = 300_000_000
"""More than a guest's memory (256 MiB): raw captures of the large cell, both ends together."""
LARGE_EVERY = 8
"""Of the runs of a hunt one in so many is of the large cell: it costs twenty times what the others do."""
STOP_S = (0.002, 0.2)
NAME_LETTERS = string.ascii_letters + string.digits + "-_. "


def large_cell() -> Cell:
    """One TCP flow over 0.1 % loss, both ends captured."""
    there = LinkImpairment(one_way_delay_ns=5 * MS, loss_ratio=0.001)
    back = LinkImpairment(one_way_delay_ns=5 * MS, rate_bit_s=20_000_000, queue_packets=1000)
    path = FlowPath(name="p1", sender_link="p1", receiver_link="p1", bottleneck_bit_s=None, base_rtt_ns=0)
    flow = Flow("bulk", "tcp", "a", "b", (path,), 7001, 0, LARGE_S * S, None, 1460)
    sysctls = {"net.ipv4.tcp_timestamps": "0"}
    return probe_cell("loss 0.001", Link("p1", "a", "b", there, back), (flow,), LARGE_S * S, 1, sysctls=sysctls)


def small_cells(place: Path) -> tuple[Cell, ...]:
    """TCP and SCTP with losses and jitter; SCTP for so long that heartbeats are sent, whose times the kernel draws."""
    slow = 'duration = "130 s"\nlink.p1.rate = "100 kbit/s"\nlink.p2.rate = "100 kbit/s"'
    return make_plan(load_spec(str(written(place / "spec.toml", two_paths(slow, duration="4 s"))))).cells


@dataclass(frozen=True)
class Circumstances:
    """What is unlike between two runs of a cell. directory: below the place of all runs. stops: how often."""

    directory: str = "plain"
    root: bool = False
    busy: int = 0
    stops: int = 0
    cold: bool = False

    def __str__(self) -> str:
        parts = self.directory.split("/")
        user = "root" if self.root else "an ordinary user"
        said = (
            f"{len(parts)} directories of {sum(map(len, parts))} letters, {user}, {self.busy} busy, {self.stops} stops"
        )
        return said + (", cold" if self.cold else "")


MACHINE_CPUS = os.cpu_count() or 1
FIXED = (
    Circumstances("a", busy=2 * MACHINE_CPUS, stops=10),
    Circumstances("/".join(f"{number}{'long' * 10}" for number in range(8)), root=os.geteuid() == 0, cold=True),
    Circumstances("a name with blanks/" + "x" * 200, stops=20),
    Circumstances("/".join("d" * 40), root=os.geteuid() == 0, busy=1, stops=5),
    Circumstances("two/levels", busy=2 * MACHINE_CPUS, stops=20, cold=True),
)
"""Five directories of unlike depth and length, both users, load, stops, a cold page cache: where captures of more than
a guest's memory once differed. A hunt begins with them, `make test` has the first two."""


def drawn(moments: random.Random) -> Circumstances:
    """Some circumstances."""
    depth = moments.randint(1, 12)
    names = ["".join(moments.choices(NAME_LETTERS, k=moments.randint(1, 60))).strip(" .") or "x" for _ in range(depth)]
    return Circumstances(
        directory="/".join(names), root=os.geteuid() == 0 and moments.random() < 0.5,
        busy=moments.choice((0, 0, 1, 2 * MACHINE_CPUS)), stops=moments.choice((0, 0, 3, 20)),
        cold=moments.random() < 0.3,
    )  # fmt: skip


def out_of_the_page_cache(paths: Iterator[Path] | Sequence[Path]) -> None:
    """Have the host read those files from its disk again (one that is being executed stays)."""
    for path in paths:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class ColdBackend(VirtualBackend):
    """Its guests begin with a cold page cache."""

    def command(self, cell: Cell, directory: CellDir) -> list[str]:
        out_of_the_page_cache([self.kernel, *(path for path in self.apps.glob("*/*") if path.is_file())])
        out_of_the_page_cache(path for path in directory.root.rglob("*") if path.is_file())
        return super().command(cell, directory)


class Stops:
    """Stops the guests of this process and lets them go on, so often, at moments that are drawn."""

    def __init__(self, count: int, moments: random.Random) -> None:
        self.count, self.moments, self.done = count, moments, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while self.done < self.count and not self._over.wait(self.moments.uniform(*STOP_S)):
            for pid in guests_of(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    handle = os.pidfd_open(pid)
                    try:
                        signal.pidfd_send_signal(handle, signal.SIGSTOP)
                        self._over.wait(self.moments.uniform(*STOP_S))
                        self.done += 1
                    finally:
                        with contextlib.suppress(ProcessLookupError):
                            signal.pidfd_send_signal(handle, signal.SIGCONT)
                        os.close(handle)


def run_cell(
    kernel: Path, apps: Path, cell: Cell, place: Path, how: Circumstances, moments: random.Random
) -> tuple[Path, int]:
    """Run a cell there and so; returns its directory and how often its guest was stopped.

    Raises RuntimeError if it did not complete.
    """
    run = RunDir(place / how.directory)
    run.root.mkdir(parents=True, exist_ok=True)
    backend = (ColdBackend if how.cold else VirtualBackend)(kernel, apps)
    if how.root:
        backend.user = None
    elif backend.user is not None and not all(map(backend.user.may_pass, run.root.resolve().parents)):
        raise RuntimeError(f"{place} shuts out the user that guests become: give --place another directory")
    with busy(how.busy), Stops(how.stops, moments) as stops:
        outcome = backend.run_cell(cell, run)
    if outcome.outcome is not Outcome.COMPLETED:
        raise RuntimeError(f"{cell.id}, {how}: {outcome.outcome}: {outcome.reason}")
    return run.cell(cell.id).root, stops.done


@dataclass
class Reference:
    """The first run of a cell: its directory and a hash of each packet."""

    cell: Cell
    directory: Path
    hashes: dict[str, tuple[bytes, ...]]


class Hunt:
    """Runs cells and compares them. apps: the directory of the built programs."""

    def __init__(self, kernel: Path, apps: Path, place: Path, seed: int) -> None:
        self.kernel, self.apps, self.place = kernel, apps, place
        self.moments = random.Random(seed)
        self.number = 0
        self.stopped = 0
        """How often a guest has been stopped: a short cell may end before."""

    def reference(self, cell: Cell) -> Reference:
        """Run it in a plain directory, undisturbed."""
        directory, _ = run_cell(self.kernel, self.apps, cell, self.place / "reference", Circumstances(), self.moments)
        return Reference(cell, directory, cell_hashes(directory))

    def compare(self, reference: Reference, how: Circumstances) -> str:
        """Run it so; "" if every packet is equal, else the first that is not. A run that differs is left there."""
        self.number += 1
        place = self.place / f"run-{self.number}"
        try:
            found, stopped = run_cell(self.kernel, self.apps, reference.cell, place, how, self.moments)
            self.stopped += stopped
        except RuntimeError as error:
            return str(error)
        if cell_hashes(found) == reference.hashes:
            shutil.rmtree(place)
            return ""
        return f"{reference.cell.id}, {how}: {first_difference(reference.directory, found)} ({found})"

    def go(self, cells: Sequence[Cell], large: Cell | None, runs: int, told: Callable[[str], None]) -> list[str]:
        """So many runs; what differed."""
        references = [self.reference(cell) for cell in cells]
        big = self.reference(large) if large is not None else None
        differences = []
        for number in range(1, runs + 1):
            is_large = big is not None and (number % LARGE_EVERY == 0 or not references)
            reference = big if is_large and big is not None else references[number % len(references)]
            how = drawn(self.moments)
            if big is not None and number <= len(FIXED):
                reference, how = big, FIXED[number - 1]
            if wrong := self.compare(reference, how):
                differences.append(wrong)
            told(f"{number} of {runs}: {wrong or f'equal ({reference.cell.id}, {how})'}")
        return differences


def main() -> int:
    """Hunt, print; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=40, help="how many runs are compared (40)")
    parser.add_argument("--seed", type=int, default=0, help="of the circumstances (drawn; printed)")
    parser.add_argument("--kind", choices=("all", "small", "large"), default="all", help="which cells (all)")
    parser.add_argument("--place", type=Path, help="work here, and leave what differs (a temporary directory)")
    args = parser.parse_args()
    if args.cells < 1:
        parser.error("--cells at least 1")
    seed = args.seed or random.SystemRandom().randrange(1, 1 << 31)
    kernel = find_kernel()
    if kernel is None:
        print("no guest kernel: run `make kernel`", file=sys.stderr)
        return 77
    place = args.place or Path(tempfile.mkdtemp(prefix="netwarp-determinism-"))
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o755)  # guests of root run as nobody
    small = small_cells(place) if args.kind != "large" else ()
    large = large_cell() if args.kind != "small" else None
    hunt = Hunt(kernel.binary, built(), place, seed)
    differences = hunt.go(small, large, args.cells, lambda text: print(text, flush=True))
    print(f"{args.cells - len(differences)} of {args.cells} runs equal to the first of their cell, seed {seed}")
    print(f"guests were stopped and continued {hunt.stopped} times in all")
    if differences:
        print(f"what differs is in {place}")
    elif args.place is None:
        shutil.rmtree(place)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
