"""Calibrates links: runs the probes, judges them, and stores the result for all reports with the same kernel and
programs.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from ..core.built_programs import BUILD, BUILT_FILES
from ..core.checkout import CHECKOUT, INSTALLED
from ..core.errors import BackendUnavailable, CaptureError, SpecError, StoreError
from ..core.invocation import command
from ..core.types import Cell, CellOutcome, Outcome
from ..experiment import list_profiles
from ..experiment.problems import nearest
from ..guestkernel.cache import kernels_dir
from ..measure import calibration
from ..measure.calibration import (
    ON_THE_WALL_CLOCK,
    VIRTUAL,
    Budget,
    Probe,
    aqm_probes,
    bucket_probes,
    generic_probes,
    judge_profile,
    netem_probes,
    over_ipv6,
    profile_probes,
    rule_probes,
    wall_clock,
)
from ..present.pages.calibration import write_calibration_page
from ..sandbox import SandboxBackend, VirtualBackend
from ..sandbox.choose import Chosen, choose
from ..sandbox.virtual import T0_REALTIME_NS, newer_needed
from ..store import probe_rows as records
from ..store.init_records import Ready, Ticks, read_init_log
from ..store.manifest import now_utc
from ..store.ndjson import last
from ..store.probe_rows import Calibration, Curve, ProbeRow
from ..store.run_dir import CellDir, RunDir, locked, read_json, write_json
from ..store.run_locations import check_out
from ..testbed.compile import Clock, compile_cell
from ..testbed.steps import to_text
from .events import Notice, Progress, no_progress
from .execute import execute

T = TypeVar("T", ProbeRow, Curve)
log = logging.getLogger(__name__)
GENERIC, NETEM, RULES, AQM, BUCKETS, IPV6 = "generic", "netem", "rules", "aqm", "buckets", "ipv6"
"""Names beside the profiles': the probes every run's report is held by; each of netem's options by itself; losses by
the packet; the law of each kind of active queue management; policers and the like; and what of these goes over IPv6."""
ON_THE_VIRTUAL_CLOCK = (GENERIC, RULES, AQM, BUCKETS, IPV6)
"""Their bounds are that clock's."""
NOT_COMPLETED = "completed"
"""Unit of the row of a probe that did not complete: 0 of 1 completed."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration, and the path of its page if it was stored."""

    calibration: Calibration
    page: Path | None

    @property
    def passed(self) -> bool:
        """True if every comparison is within its bound."""
        return self.calibration.passed == len(self.calibration.rows)


def calibrate(
    names: Sequence[str] = (),
    *,
    backend: str = "virtual",
    jobs: int | None = None,
    out: Path | None = None,
    html: Path | None = None,
    progress: Progress = no_progress,
) -> Calibrated:
    """Measure links against their configuration, and store the result for the reports of this kernel.

    names: profiles, "generic" (rates, delays, faults), "netem" (each option), "rules" (losses by the packet), "aqm"
    (each kind's law), "buckets" (policers and the like), "ipv6" (generic, rules, buckets over it); empty: all. jobs:
    cells at once (default: cores; on the wall clock 1). out: keep the probes' captures in this new directory. html:
    write the page to this path. Raises SpecError, BackendUnavailable, StoreError.
    """
    if jobs is not None and jobs < 1:
        raise SpecError(f"--jobs {jobs}: at least 1")
    known = _names(names, backend)
    chosen = choose(backend)
    if chosen.why:
        progress(Notice(chosen.why))
    if out is not None:
        if RunDir(out).cells.exists():
            raise StoreError(f"{out}: holds cells already; --out wants a directory of its own for the probes")
        check_out(out, resume=False)
    jobs = 1 if chosen.backend.wall_clock else jobs or os.cpu_count() or 1
    measured = measure(chosen, known, jobs, out or folder() / ".probes", keep=out is not None)
    page = _keep(chosen, measured, known)
    if html is not None:
        page = write_calibration_page(html, measured)
    return Calibrated(measured, page)


def _names(given: Sequence[str], backend: str) -> tuple[str, ...]:
    """The names to measure. Raises SpecError for an unknown one."""
    known = [GENERIC, NETEM, RULES, AQM, BUCKETS, IPV6, *list_profiles()]
    for name in given:
        if name not in known:
            raise SpecError(f'there is no profile "{name}"{nearest(name, known)}; `{command("profiles")}` lists them')
    if backend != "virtual":
        for name in ON_THE_VIRTUAL_CLOCK:
            if name in given:
                raise SpecError(f'the bounds of "{name}" are the virtual clock\'s; on {backend} name profiles')
            known.remove(name)
    return tuple(name for name in known if name in given or not given)


def calibration_for(chosen: Chosen, jobs: int, scratch: Path, progress: Progress) -> Calibration | None:
    """The stored calibration of this kernel and these programs, with the profiles measured so far. If there is none,
    the generic probes are run now, in `scratch`.

    None if cells do not run in virtual time: the probes' bounds hold only there.
    """
    if chosen.kernel is None or chosen.backend.wall_clock:
        return None
    if chosen.kernels:
        return _of_each(chosen, jobs, scratch, progress)
    path = stored(chosen)
    if path.exists():
        calibration = read_json(path, Calibration)
    else:
        progress(Notice("calibrating this kernel and these programs once ..."))
        calibration = measure(chosen, (GENERIC,), jobs, scratch, keep=False)
        _keep(chosen, calibration, (GENERIC,))
    more = _stored_profiles(chosen)
    if more is not None:
        calibration = msgspec.structs.replace(calibration, rows=calibration.rows + more.rows, curves=more.curves)
    return calibration


def _of_each(chosen: Chosen, jobs: int, scratch: Path, progress: Progress) -> Calibration | None:
    """The calibrations of several kernels as one; of more than one, each probe's name begins with the release."""
    parts = []
    for build in chosen.kernels:
        virtual = Chosen(VirtualBackend(build.binary, BUILD), build)
        part = calibration_for(virtual, jobs, scratch, progress)
        assert part is not None
        parts.append(part if len(chosen.kernels) == 1 else _prefixed(part, f"Linux {build.release}, "))
    release, sha256 = chosen.identity
    return msgspec.structs.replace(
        parts[0],
        key=hashlib.sha256("\n".join(part.key for part in parts).encode()).hexdigest()[:16],
        kernel_release=release,
        kernel_sha256=sha256,
        rows=tuple(row for part in parts for row in part.rows),
        curves=tuple(curve for part in parts for curve in part.curves),
    )


def _prefixed(calibration: Calibration, words: str) -> Calibration:
    def named(entry: T) -> T:
        return msgspec.structs.replace(entry, probe=words + entry.probe)

    return msgspec.structs.replace(
        calibration, rows=tuple(map(named, calibration.rows)), curves=tuple(map(named, calibration.curves))
    )


def _stored_profiles(chosen: Chosen) -> Calibration | None:
    path = stored(chosen, profiles=True)
    return read_json(path, Calibration) if path.exists() else None


def measured_profiles() -> tuple[ProbeRow, ...]:
    """The stored calibration of profiles on the virtual clock; empty if that clock is not available here."""
    try:
        profiles = _stored_profiles(choose("virtual"))
    except BackendUnavailable:
        return ()
    return profiles.rows if profiles is not None else ()


def _keep(chosen: Chosen, calibration: Calibration, names: Iterable[str]) -> Path | None:
    """Store the calibration for later runs, with its page; returns the page's path. Nothing is stored if a probe did
    not complete (a full disk, a killed guest), since that says nothing about the testbed, or if the user may not write
    to this checkout: it is then measured again each time.
    """
    if any(row.unit == NOT_COMPLETED for row in calibration.rows):
        return None
    try:
        if GENERIC in names:
            generic = {probe.name for probe in _probes(GENERIC, Budget())}
            rows = tuple(row for row in calibration.rows if row.probe in generic)
            write_json(stored(chosen), msgspec.structs.replace(calibration, rows=rows, curves=()))
        if set(names) - {GENERIC}:
            return _keep_profiles(chosen, calibration)
    except (OSError, StoreError) as error:
        log.warning("the calibration is not kept: %s", error)
    return None


def _keep_profiles(chosen: Chosen, calibration: Calibration) -> Path:
    """Store the new measurements; they replace older ones of the same profiles."""
    generic = {probe.name for probe in _probes(GENERIC, Budget())}
    rows = [row for row in calibration.rows if row.probe not in generic]
    curves, now = list(calibration.curves), {row.probe for row in rows}
    before = _stored_profiles(chosen)
    if before is not None:
        rows += [row for row in before.rows if row.probe not in now]
        curves += [curve for curve in before.curves if curve.probe not in now]
    path = stored(chosen, profiles=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = msgspec.structs.replace(calibration, rows=tuple(rows), curves=tuple(curves))
    write_json(path, whole)
    return write_calibration_page(path.with_suffix(".html"), whole)


def measure(chosen: Chosen, names: Iterable[str], jobs: int, place: Path, *, keep: bool) -> Calibration:
    """Run and judge every probe in the directory `place`; the captures stay there if `keep`. Earlier content of the
    directory is not used. A probe that does not complete gives a row that fails.
    """
    directory = RunDir(place)
    with locked(directory):
        try:
            rows, curves, load = _measure(chosen.backend, names, jobs, directory)
        finally:
            if not keep:
                directory.remove()
    release, sha256 = chosen.identity
    return Calibration(
        key=calibration_key(chosen),
        kernel_release=release,
        kernel_sha256=sha256,
        backend=chosen.backend.name,
        date_utc=now_utc(),
        rows=tuple(rows),
        curves=tuple(curves),
        host_load_1min=load,
    )


def _measure(
    backend: SandboxBackend, names: Iterable[str], jobs: int, directory: RunDir
) -> tuple[list[ProbeRow], list[Curve], float | None]:
    budget = ON_THE_WALL_CLOCK if backend.wall_clock else Budget()
    wanted = [probe for name in names for probe in _probes(name, budget)
              if not (newer_needed(probe.cell, (0, 0)) and backend.refuses(probe.cell))]  # fmt: skip
    outcomes: dict[str, CellOutcome] = {}

    def finished(cell: Cell, outcome: CellOutcome) -> None:
        outcomes[cell.id] = outcome

    if directory.cells.exists():
        directory.cells.remove_tree()
    execute([probe.cell for probe in wanted], backend, directory, jobs=jobs, finished=finished)
    rows: list[ProbeRow] = []
    curves: list[Curve] = []
    for probe in wanted:
        outcome, cell = outcomes[probe.cell.id], directory.cell(probe.cell.id)
        if outcome.outcome is not Outcome.COMPLETED:
            rows.append(ProbeRow(probe.name, f"{outcome.outcome}: {outcome.reason}", 1, 0, 0, NOT_COMPLETED, False))
        else:
            more, drawn = _judge_profile(probe, cell, backend)
            rows += more
            curves += drawn
    loads = [outcome.host_load_1min for outcome in outcomes.values() if outcome.host_load_1min is not None]
    return rows, curves, max(loads, default=None) if backend.wall_clock else None


def _judge_profile(probe: Probe, cell: CellDir, backend: SandboxBackend) -> tuple[list[ProbeRow], list[Curve]]:
    """A capture that holds nothing to judge gives a row that fails."""
    records = read_init_log(cell.init_log)
    ready = last(records, Ready)
    try:
        if ready is None:
            raise CaptureError(f"calibration: {probe.name}: cell-init never said when T0 was")
        clock = wall_clock(last(records, Ticks)) if backend.wall_clock else VIRTUAL
        return judge_profile(probe, cell.root, ready.t0_realtime_ns, clock)
    except CaptureError as error:
        return [ProbeRow(probe.name, str(error), 1, 0, 0, NOT_COMPLETED, False)], []


def _probes(name: str, budget: Budget) -> tuple[Probe, ...]:
    program = BUILD / "bin" / "probe"
    match name:
        case "generic":
            return generic_probes(program)
        case "netem":
            return netem_probes(program, budget)
        case "rules":
            return rule_probes(program, budget)
        case "aqm":
            return aqm_probes(program)
        case "buckets":
            return bucket_probes(program)
        case "ipv6":
            every = (*generic_probes(program), *rule_probes(program, budget), *bucket_probes(program))
            return tuple(over_ipv6(probe) for probe in every)
    return profile_probes(name, program, budget)


def calibration_key(chosen: Chosen) -> str:
    """Hash of everything that affects the result: kernel, programs, the probes and their steps, and the code that
    judges them.
    """
    digest = hashlib.sha256("\n".join(chosen.identity if chosen.kernel is None else (chosen.kernel.sha256,)).encode())
    for file in BUILT_FILES:
        if not file.launcher:
            digest.update((BUILD / file.path).read_bytes())
    for probe in generic_probes(Path("/bin/probe")):  # wherever this checkout lies; the program itself is hashed above
        digest.update(to_text(compile_cell(probe.cell, Clock(t0_realtime_ns=T0_REALTIME_NS)).steps).encode())
    for source in (*sorted(Path(calibration.__file__).parent.glob("*.py")), Path(records.__file__)):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def folder() -> Path:
    """results/calibration of this checkout; beside the kernels' cache if there is no checkout."""
    return kernels_dir().parent / "calibration" if INSTALLED else CHECKOUT / "results" / "calibration"


def stored(chosen: Chosen, *, profiles: bool = False) -> Path:
    """The file of a calibration: <key>.json for the generic probes; <key>/<back end>.json for profiles, with the page
    beside it.
    """
    key = calibration_key(chosen)
    return folder() / key / f"{chosen.backend.name}.json" if profiles else folder() / f"{key}.json"
