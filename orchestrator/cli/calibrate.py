"""`netwarp calibrate`: run the probes, judge them, keep the answer for every report of this kernel and programs."""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import shutil
import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from .. import calibration
from ..backends import VirtualBackend
from ..backends.virtual import T0_REALTIME_NS
from ..calibration import Row, judge, probes
from ..errors import StoreError
from ..execute import execute
from ..kernel import KernelBuild
from ..model import Cell, CellOutcome, Frozen, Outcome
from ..store import RunDir, locked, read_json, write_json
from ..testbed.compile import Clock, compile_cell
from ..testbed.steps import to_text
from .backends import Chosen
from .manifest import now_utc
from .programs import build_directory, usable_kernel

log = logging.getLogger(__name__)
PROGRAMS = ("bin/cell-init", "bin/sender", "bin/receiver", "lib/seed.so", "lib/libnetwarp_analyzer.so")
NOT_COMPLETED = "completed"
"""Unit of the row of a probe that did not complete: 0 of 1 completed."""


class Calibration(Frozen, frozen=True):
    """calibration.json. `key`: of the kernel and the programs; another key wants another calibration."""

    key: str
    kernel_release: str
    kernel_sha256: str
    backend: str
    date_utc: str
    rows: tuple[Row, ...]

    @property
    def passed(self) -> int:
        """How many comparisons are within their bounds."""
        return sum(row.ok for row in self.rows)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("calibrate", help="measure what the testbed does against what it is told to do")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at once (default: cores)")
    parser.add_argument("--out", type=Path, help="keep the captures of the probes in this run directory")
    parser.add_argument("--json", action="store_true", help="print calibration.json instead of the table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure anew; 0 if everything is within its bounds, else 1."""
    kernel = usable_kernel()
    if args.out is not None and RunDir(args.out).cells.exists():
        raise StoreError(f"{args.out}: holds cells already; --out wants a directory of its own for the probes")
    place = args.out or stored(kernel).parent / ".probes"
    found = measure(kernel, args.jobs, place, keep=args.out is not None)
    _keep(stored(kernel), found)
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    else:
        show(found)
    return 0 if found.passed == len(found.rows) else 1


def calibration_for(chosen: Chosen, jobs: int, scratch: Path) -> Calibration | None:
    """The stored calibration of this kernel and these programs; measured now, in `scratch`, if there is none.

    None where cells do not run in virtual time: the probes' bounds are its.
    """
    kernel = chosen.kernel
    if kernel is None or chosen.backend.wall_clock:
        return None
    path = stored(kernel)
    if path.exists():
        return read_json(path, Calibration)
    print("netwarp: calibrating this kernel and these programs once ...", file=sys.stderr, flush=True)
    found = measure(kernel, jobs, scratch, keep=False)
    _keep(path, found)
    return found


def _keep(path: Path, found: Calibration) -> None:
    """Store it for the next run, unless a probe did not complete (a full disk, a killed guest: no word on the testbed).
    A checkout that this user may not write to has it measured again."""
    if any(row.unit == NOT_COMPLETED for row in found.rows):
        return
    try:
        write_json(path, found)
    except StoreError as error:
        log.warning("the calibration is not kept: %s", error)


def measure(kernel: KernelBuild, jobs: int, place: Path, *, keep: bool) -> Calibration:
    """Run and judge every probe in the directory `place`, which is left there or not (`keep`). What it held before is
    not trusted. A probe that does not complete is a row that fails."""
    directory = RunDir(place)
    with locked(directory):
        try:
            rows = _measure(kernel, jobs, directory)
        finally:
            if not keep:
                directory.remove()
    return Calibration(
        key=calibration_key(kernel),
        kernel_release=kernel.release,
        kernel_sha256=kernel.sha256,
        backend=VirtualBackend.name,
        date_utc=now_utc(),
        rows=tuple(rows),
    )


def _measure(kernel: KernelBuild, jobs: int, directory: RunDir) -> list[Row]:
    wanted = probes()
    outcomes: dict[str, CellOutcome] = {}

    def finished(cell: Cell, outcome: CellOutcome) -> None:
        outcomes[cell.id] = outcome

    if directory.cells.exists():
        shutil.rmtree(directory.cells)
    backend = VirtualBackend(kernel.binary, build_directory())
    execute([probe.cell for probe in wanted], backend, directory, jobs=jobs, finished=finished)
    rows: list[Row] = []
    for probe in wanted:
        outcome = outcomes[probe.cell.id]
        if outcome.outcome is Outcome.COMPLETED:
            rows += judge(probe, directory.cell(probe.cell.id).root, T0_REALTIME_NS)
        else:
            rows.append(Row(probe.name, f"{outcome.outcome}: {outcome.reason}", 1, 0, 0, NOT_COMPLETED, False))
    return rows


def calibration_key(kernel: KernelBuild) -> str:
    """Hash of everything that plays a part: kernel, programs, the probes and their steps, and how they are judged."""
    digest = hashlib.sha256(kernel.sha256.encode())
    for name in PROGRAMS:
        digest.update((build_directory() / name).read_bytes())
    for probe in probes():
        digest.update(to_text(compile_cell(probe.cell, Clock(t0_realtime_ns=T0_REALTIME_NS)).steps).encode())
    for source in sorted(Path(calibration.__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def stored(kernel: KernelBuild) -> Path:
    """results/calibration/<key>.json of this checkout."""
    return build_directory().parent / "results" / "calibration" / f"{calibration_key(kernel)}.json"


def show(found: Calibration) -> None:
    """The table on stdout."""
    table = Table(title=f"Calibration of Linux {found.kernel_release}, back end {found.backend}", title_justify="left")
    for name in ("probe", "quantity", "configured", "measured", "off by", "bound", "unit", ""):
        table.add_column(name, justify="right" if name in ("configured", "measured", "off by", "bound") else "left")
    for row in found.rows:
        measured = "-" if row.measured is None else f"{row.measured:.9g}"
        difference = "-" if row.measured is None else f"{row.measured - row.configured:+.3g}"
        table.add_row(
            row.probe, row.quantity, f"{row.configured:.9g}", measured, difference, f"{row.bound:.3g}",
            row.unit, "ok" if row.ok else "[bold red]OFF[/]",
        )  # fmt: skip
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{found.passed} of {len(found.rows)} within bounds")
