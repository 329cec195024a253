"""Plays packetdrill's scripts of a kernel's source (or a user's own) on that kernel, each case in a guest, several at
once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import CellError, KernelError, os_words
from ..guestkernel import KernelBuild, build_kernel, find_kernel, load_recipe
from ..guestkernel.cache import find_named
from ..guestkernel.source import find_source, release_of
from ..guestkernel.tool_run import Progress as BuildProgress
from ..guestkernel.variant import PLAIN, debugging
from ..sandbox.children import Children
from ..selftests.guest import Result
from ..selftests.packetdrill.cases import ScriptResult, play_script
from ..selftests.packetdrill.collection import COLLECTION, Scripts, cached_scripts, own_scripts, unpack_scripts
from ..selftests.packetdrill.counts import Counts, count
from ..selftests.packetdrill.guest import Bench
from ..selftests.packetdrill.judge import Tolerance
from ..selftests.tap import Case
from ..selftests.tree import Selftest
from ..store.run_locations import refuse_used
from .selftests import side_by_side

PREFIX = f"{COLLECTION}:"


@dataclass(frozen=True, slots=True)
class PacketdrillRun:
    """Results in the order of the scripts. results: the same as those of any selftest."""

    kernel: KernelBuild
    scripts: tuple[ScriptResult, ...]
    results: tuple[Result, ...]

    @property
    def counts(self) -> Counts:
        """How many cases hold, and at which tolerance."""
        return count(self.scripts)


def run_packetdrill(
    names: Sequence[str],
    *,
    source: Path | None = None,
    kernel: str | None = None,
    debug: bool = False,
    jobs: int | None = None,
    seed: int = 1,
    wall_limit_s: float = 600.0,
    tolerance_us: int | None = None,
    out: Path,
    building: Callable[[BuildProgress], None] = lambda _: None,
    planned: Callable[[int], None] = lambda count: None,
    finished: Callable[[int, Result], None] = lambda number, result: None,
) -> PacketdrillRun:
    """Play scripts: each `packetdrill:PATTERN` (of the kernel's own) or `packetdrill:PATH` (one of yours, with a `/`).

    source: as for build_kernel(); the kernel is the one built from it by this checkout's recipe. kernel: a built one
    (find_named()) instead. debug: with the checks of kernel/debug.config. A kernel's scripts are those of its own
    package, which must be installed, have been used before, or be named by `source`. tolerance_us: None: each script's
    own. out: a new directory that keeps each case's recording,
    capture and timeline. planned: called with the number of scripts; finished: as of run_selftests(). Raises SpecError
    for a pattern that fits nothing, KernelError.
    """
    refuse_used(out)
    build = _kernel(source, kernel, debug, building)
    patterns = [name.removeprefix(PREFIX) for name in names]
    scripts = own_scripts(patterns) or _scripts(source, build)
    files = dict.fromkeys(file for pattern in patterns for file in scripts.matching(pattern))
    beside = {file: scripts.files(file) for file in files}
    planned(len(files))
    bench = Bench(build.binary, seed, wall_limit_s)
    out.mkdir(parents=True, exist_ok=True)
    tolerance = None if tolerance_us is None else Tolerance(tolerance_us)
    guests = Children()
    played: dict[int, ScriptResult] = {}
    listed = list(files)

    def run(number: int, test: Selftest) -> Result:
        file = listed[number - 1]
        place = out.absolute() / test.folder(number)
        place.mkdir(mode=0o755)
        try:
            found = play_script(bench, file, scripts.versions, place, guests, files=beside[file], tolerance=tolerance)
        except OSError as error:
            raise CellError(f"{file}: {os_words(error)}") from error
        played[number] = found
        return as_result(test, found)

    tests = [Selftest(COLLECTION, file.name) for file in listed]
    results = side_by_side(run, tests, jobs or os.cpu_count() or 1, guests, finished)
    return PacketdrillRun(build, tuple(played[number] for number in sorted(played)), results)


def as_result(test: Selftest, found: ScriptResult) -> Result:
    """A script's result in the form of every selftest: its cases as KTAP, failures with both packets and a timeline."""
    lines = ["TAP version 13", f"1..{len(found.cases)}"]
    for number, case in enumerate(found.cases, 1):
        for line in (case.reason.splitlines() + case.timeline.splitlines()) if case.verdict == "fail" else ():
            lines.append(f"# {line}")
        needs = "" if case.needs_us is None or case.verdict != "pass" else f" # needs a tolerance of {case.needs_us} us"
        directive = f" # SKIP {case.reason}" if case.verdict == "skip" else needs
        lines.append(f"{'not ok' if case.verdict == 'fail' else 'ok'} {number} {case.version}{directive}")
    failed = [case for case in found.cases if case.verdict == "fail"]
    note = found.reason
    if not note and failed:
        note = f"{', '.join(case.version for case in failed)}: {failed[0].reason.splitlines()[0]}"
    elif not note and found.verdict == "skip" and found.cases:
        note = found.cases[0].reason
    times = [case.virtual_s for case in found.cases if case.virtual_s is not None]
    cases = tuple(Case(case.version, case.verdict, case.reason.split("\n")[0]) for case in found.cases)
    status = {"pass": 0, "fail": 1, "skip": 4}[found.verdict]
    wall_s = sum(case.wall_s for case in found.cases)
    faults = tuple(splat for case in found.cases for splat in case.splats)
    return Result(
        test, found.verdict, status, sum(times) if times else None, wall_s, note, "\n".join(lines) + "\n", cases, faults
    )


def _kernel(
    source: Path | None, kernel: str | None, debug: bool, building: Callable[[BuildProgress], None]
) -> KernelBuild:
    if kernel is not None:
        build = find_named(kernel)
        if build is None:
            raise KernelError(f"the kernel {kernel} is not built; `netwarp kernel list` lists those that are")
        return build
    if source is None and not debug and (default := find_kernel()) is not None:
        return default
    return build_kernel(source, progress=building, variant=debugging() if debug else PLAIN)


def _scripts(source: Path | None, build: KernelBuild) -> Scripts:
    """The scripts of the source asked for, or of the kernel's own."""
    if source is None and (cached := cached_scripts(build.source)) is not None:
        return cached
    recipe = load_recipe()
    if source is None and build.kind == "package" and build.source.split()[0] != recipe.package:
        try:
            found = find_source(Path(build.source.split()[0]), recipe)
        except KernelError as error:
            raise KernelError(
                f"the scripts of Linux {build.release} come with its source ({build.source}): name that once, with "
                "--source FILE.deb|DIR|TARBALL"
            ) from error
    else:
        found = find_source(source, recipe)
    if source is None and found.identity != build.source and release_of(found) not in build.release:
        raise KernelError(
            f"the scripts of Linux {build.release} are not in {found.text}: name its source with --source"
        )
    return unpack_scripts(found)
