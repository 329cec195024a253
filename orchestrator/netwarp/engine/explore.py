"""Searches schedules by coverage: cells whose schedules change where a schedule reached new lines of the kernel.

Generations of cells run one after another, each of a fixed size, so that the number of workers does not change which
cells there are. docs/explore.md says what is changed, and what counts as a finding.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..core.built_programs import BUILD
from ..core.errors import BackendUnavailable, KernelError, SpecError, StoreError
from ..core.invocation import command
from ..core.schedule_levels import PacketPosition
from ..core.types import Cell, GuestKernel
from ..core.units import counted
from ..experiment import AnyExperiment, Spec, load_experiment
from ..exploration.changes import Change, PacketChange, as_json, from_json, named
from ..exploration.corpus import Entry, Reached, choose
from ..exploration.counters import Function, counts, lines_of, read_kept, with_counts
from ..exploration.coverage_files import counted_objects, notes_of, write_curve, write_functions
from ..exploration.found import Finding, Step
from ..exploration.minimise import minimised
from ..exploration.mutation import Parent, mutated
from ..exploration.oracles import Seen, Wrong, wrongs
from ..exploration.promises import broken
from ..exploration.specs import EXPLORED, cell_of, root_of, text_of
from ..guestkernel import KernelBuild, load_recipe
from ..guestkernel.build import find_build
from ..guestkernel.cache import find_named
from ..guestkernel.coverage import label_of
from ..plan.schedules import undisturbed
from ..plan.types import Level, Plan, PlannedFactor
from ..results import Results
from ..sandbox import VirtualBackend
from ..sandbox.choose import cannot
from ..store import compressed
from ..store.run_dir import RunDir, locked, read_json, write_json
from ..store.run_locations import check_out, new_directory
from .events import Notice, Progress, no_progress
from .execute import execute
from .planning import Where, plan_experiment
from .run_directory import collect
from .running import check_jobs

FORMAT = 1
"""Of explore.json."""
GENERATION = 16
"""Cells of a generation; of one that they all come from are known when it begins."""
MOST_DRAWS = 20
MOST_FINDINGS = 40
FIRST_PLAIN = 60
"""Packets of a root that a plain exploration loses one by one; then it loses each two of the first of them."""


@dataclass(frozen=True, slots=True)
class Explored:
    """The result: where it is, how many cells ran, the curve, the functions, the findings."""

    path: Path
    cells: int
    curve: Sequence[Step]
    functions: Sequence[Function]
    findings: Sequence[Finding]
    outcomes: Mapping[str, int]


def explore(
    experiment: AnyExperiment,
    *,
    files: Sequence[str],
    cells: int | None = None,
    budget_s: float | None = None,
    seed: int = 1,
    kernel: str = "",
    plain: bool = False,
    again: str | Path | None = None,
    small: bool = True,
    only: Sequence[str] = (),
    where: Where = (),
    sets: Mapping[str, str] | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    progress: Progress = no_progress,
) -> Explored:
    """Search schedules of an experiment's cells that reach lines of these files, and what goes wrong in them.

    files: patterns of the source, as "net/sctp/*.c". cells, budget_s: how many cells, or for how long (wall clock); at
    least one. seed: of what is drawn. kernel: one with counters ("": the default release's with those of `files`).
    plain: lose packet after packet instead of drawing changes. again: an earlier exploration of the same cells, whose
    schedules (those that were kept, and the findings') run instead of new ones, on another kernel say. small: make
    findings small. only, where, sets: as for `run`. jobs: cells at once; it does not change which cells run. out: the
    directory (default: results/<name>-explore/<UTC time>/).
    Raises SpecError, BackendUnavailable, StoreError.
    """
    check_jobs(jobs)
    if cells is None and budget_s is None and again is None:
        raise SpecError("how long? for example --budget 30min, or --cells 500")
    build = _kernel(files, kernel)
    spec = load_experiment(experiment, sets=sets)
    plan = undisturbed(plan_experiment(spec, only=only, where=where, repetitions=1, backend=None))
    if out is not None:
        check_out(Path(out), False)
    directory = new_directory(Path("results") / f"{plan.name}-explore") if out is None else RunDir(Path(out))
    backend = VirtualBackend(build.binary, BUILD)
    if problems := backend.check():
        raise BackendUnavailable(cannot("virtual", problems))
    with locked(directory):
        try:
            search = _Search(spec, plan, directory, backend, build, files, seed, jobs, progress)
            if again is not None:
                schedules = list(_again(search, Path(again)))
                search.first = sorted({root for root, _ in schedules}) or search.first
                search.queue = iter([each for each in schedules if each[1]])
            elif plain:
                search.queue = _plain(search)
            try:
                search.run(cells, budget_s)
                if small:
                    search.make_small()
            finally:
                search.write()
            return search.result()
        finally:
            backend.close()


def _kernel(files: Sequence[str], name: str) -> KernelBuild:
    """The kernel with counters. Raises BackendUnavailable where it is not built."""
    try:
        label = label_of(files)
    except KernelError as error:
        raise SpecError(f"--files: {error}") from error
    wanted = name or f"{load_recipe().release}+{label}"
    build = find_named(wanted)
    if build is None:
        words = [word for pattern in files for word in ("--coverage", f"'{pattern}'")]
        raise BackendUnavailable(
            f"the kernel {wanted} is not built; {command('kernel', 'build')} {' '.join(words)} builds it (minutes)"
        )
    if not notes_of(build).is_dir():
        raise BackendUnavailable(f"the kernel {wanted} counts no lines; `netwarp kernel build --coverage` makes one")
    return build


class _Search:
    """The state of an exploration."""

    def __init__(
        self,
        spec: Spec,
        plan: Plan,
        run: RunDir,
        backend: VirtualBackend,
        build: KernelBuild,
        files: Sequence[str],
        seed: int,
        jobs: int | None,
        progress: Progress,
    ) -> None:
        self.spec, self.plan, self.run_dir, self.backend, self.build = spec, plan, run, backend, build
        self.seed, self.progress = seed, progress
        self.jobs = jobs or len(os.sched_getaffinity(0))
        self.notes = notes_of(build)
        self.objects = [
            each for each in counted_objects(build) if any(Path(f"{each}.c").match(pattern) for pattern in files)
        ]
        if not self.objects:
            raise SpecError(f"--files: {build.release}+{build.variant} counts no lines of {', '.join(files)}")
        self.roots = [root_of(spec, cell) for cell in plan.cells]
        self.builds: dict[str, GuestKernel] = {}
        self.entries: list[Entry] = []
        self.reached = Reached()
        self.functions: list[Function] = []
        self.templates: dict[str, bytes] = {}
        self.findings: dict[tuple[str, str], Finding] = {}
        self.seen_roots: dict[int, Seen] = {}
        self.curve: list[Step] = []
        self.outcomes: dict[str, int] = {}
        self.tried: set[str] = set()
        self.done = self.drawn = 0
        self.started = time.monotonic()
        self.queue: Iterator[tuple[int, tuple[Change, ...]]] | None = None
        """The schedules to try, in this order; None: they are drawn."""
        self.first: Sequence[int] = range(len(self.roots))
        """The roots to run."""

    # ---------------------------------------------------------------------------------------------- generations
    def run(self, cells: int | None, budget_s: float | None) -> None:
        """Generation after generation, until the budget is used up."""
        first: list[tuple[int, tuple[Change, ...]]] = [(number, ()) for number in self.first]
        self._generation(first)
        while (cells is None or self.done < cells) and (budget_s is None or time.monotonic() - self.started < budget_s):
            size = GENERATION if cells is None else min(GENERATION, cells - self.done)
            drawn = self._draw(size)
            if not drawn:
                self.progress(Notice("no further schedule of this kind"))
                break
            self._generation(drawn)
            last = self.curve[-1]
            self.progress(
                Notice(
                    f"{counted(last.cells, 'cell')}, {last.wall_s:.0f} s, CPU {last.cpu_s:.0f} s: {last.lines} lines, "
                    f"{last.arcs} arcs, {counted(len(self.findings), 'finding')}, corpus {len(self.entries)}"
                )
            )

    def make_small(self) -> None:
        """Make each finding small, and write what shows it."""
        for number, finding in enumerate(list(self.findings.values())[:MOST_FINDINGS], 1):
            self._write(number, self._small(finding))

    def _draw(self, size: int) -> list[tuple[int, tuple[Change, ...]]]:
        """Schedules that were not tried, each from one that was kept."""
        if self.queue is not None:
            return [each for each, _ in zip(self.queue, range(size), strict=False)]
        found: list[tuple[int, tuple[Change, ...]]] = []
        new: set[tuple[int, str]] = set()
        for _ in range(size * MOST_DRAWS):
            if len(found) == size:
                break
            draw = random.Random(f"{self.seed}/{self.drawn}")
            self.drawn += 1
            entry = choose(self.entries, draw)
            root = self.roots[entry.root]
            parent = Parent(root.cell, entry.changes, self._packets(entry.cell_id))
            others = [each.changes for each in self.entries if each.root == entry.root and each is not entry]
            changes = mutated(parent, others, draw)
            if not changes or (entry.root, named(changes)) in new:
                continue
            try:
                cell = self._cell(entry.root, changes)
            except SpecError:
                continue
            if cell.id not in self.tried:
                entry.chosen += 1
                new.add((entry.root, named(changes)))
                found.append((entry.root, changes))
        return found

    def _cell(self, root: int, changes: Sequence[Change]) -> Cell:
        return cell_of(self.roots[root], self.spec, changes, self._build_of)

    def _build_of(self, name: str) -> GuestKernel:
        if name not in self.builds:
            build = find_build(name, self.spec.folder)
            self.builds[name] = GuestKernel(name, "") if build is None else GuestKernel(build.release, build.sha256)
        return self.builds[name]

    def _packets(self, cell_id: str) -> list[PacketPosition]:
        path = self.run_dir.cell(cell_id).positions
        if not compressed.exists(path):
            return []
        packets = read_json(path, list[PacketPosition])
        return [packet for packet in packets if packet.t_ns >= 0]

    def _generation(self, schedules: Sequence[tuple[int, tuple[Change, ...]]]) -> None:
        cells = [self._cell(root, changes) for root, changes in schedules]
        self._execute(cells, self.run_dir, "tables")
        results = self._results(cells, self.run_dir)
        before = self.reached.arcs
        for (root, changes), cell in zip(schedules, cells, strict=True):
            self._take(root, changes, cell, results)
        if self.reached.arcs > before or not self.functions:
            self.functions = lines_of(
                {name: with_counts(data, self.reached.sums[name]) for name, data in self.templates.items()}, self.notes
            )
        self._point()

    def _execute(self, cells: Sequence[Cell], run: RunDir, keep: str) -> None:
        ids = [cell.id for cell in cells]
        execute(
            cells, self.backend, run, jobs=self.jobs, analyze=True, keep="all" if keep == "all" else "tables",
            grown_from=frozenset(ids), finished=lambda cell, outcome: None, progress=self._heard,
        )  # fmt: skip

    def _heard(self, event: object) -> None:
        if isinstance(event, Notice):
            self.progress(event)

    def _results(self, cells: Sequence[Cell], run: RunDir) -> Results:
        factor = PlannedFactor(EXPLORED, EXPLORED, tuple(Level(c.factors[EXPLORED], "") for c in cells))
        return collect(
            msgspec.structs.replace(self.plan, cells=tuple(cells), factors=(*self.plan.factors, factor)), run
        )

    def _take(self, root: int, changes: tuple[Change, ...], cell: Cell, results: Results) -> None:
        """What a cell reached, and what is wrong with it."""
        name = cell.id
        self.tried.add(name)
        self.done += 1
        seen = self._seen(cell, results, self.run_dir)
        self.outcomes[str(seen.outcome.outcome)] = self.outcomes.get(str(seen.outcome.outcome), 0) + 1
        if seen.kept is not None:
            self.templates |= {k: v for k, v in seen.kept.files.items() if k not in self.templates}
            arcs, steps = self.reached.add({file: counts(data) for file, data in seen.kept.files.items()})
            if arcs or steps or not changes:
                self.entries.append(Entry(root, name, changes, arcs))
        if not changes:
            self.seen_roots[root] = seen
        for wrong in self._wrongs(root, changes, cell, seen, results):
            if not changes:
                self.progress(Notice(f"already without a schedule: {wrong.kind}: {wrong.text} ({name})"))
            key = (wrong.kind, wrong.mark)
            finding = self.findings.setdefault(key, Finding(wrong, root, changes, first_at=self.done))
            finding.cells.append(name)
            if len(changes) < len(finding.changes):
                finding.root, finding.changes, finding.wrong = root, changes, wrong
        for path in (self.run_dir.cell(name).counters, compressed.packed(self.run_dir.cell(name).counters)):
            path.unlink(missing_ok=True)

    def _seen(self, cell: Cell, results: Results, run: RunDir) -> Seen:
        directory = run.cell(cell.id)
        console = directory.console.read_text(errors="replace") if directory.console.exists() else ""
        kept = None
        if compressed.exists(directory.counters):
            with contextlib.suppress(StoreError):  # a guest that was killed may have left half of them
                kept = read_kept(directory.counters, self.objects)
        values = {(row.flow, row.metric): row.value for row in results.by_cell[cell.id] if row.value is not None}
        outcome = results.outcomes[cell.id]
        in_time = outcome.virtual_s is None or outcome.virtual_s < cell.duration_ns / 1e9
        return Seen(outcome, console, kept, values, in_time)

    def _wrongs(
        self, root: int, changes: tuple[Change, ...], cell: Cell, seen: Seen, results: Results
    ) -> Iterator[Wrong]:
        given = (*self.roots[root].given, *changes)
        yield from wrongs(seen, self.seen_roots.get(root, seen), given)
        yield from broken(self.plan, results, cell, changes)

    def _point(self) -> None:
        self.curve.append(
            Step(
                cells=self.done,
                wall_s=round(time.monotonic() - self.started, 1),
                cpu_s=round(sum(os.times()[:4]), 1),
                arcs=self.reached.arcs,
                lines=sum(function.reached for function in self.functions),
                functions=sum(function.calls > 0 for function in self.functions),
            )
        )

    # ------------------------------------------------------------------------------------------------- findings
    def _small(self, finding: Finding) -> Finding:
        """The finding with the fewest changes that still show it."""

        def still(candidates: Sequence[tuple[Change, ...]]) -> list[bool]:
            shown: list[bool] = []
            cells: list[Cell | None] = []
            for changes in candidates:
                try:
                    cells.append(self._cell(finding.root, changes))
                except SpecError:
                    cells.append(None)
            there = list({cell.id: cell for cell in cells if cell is not None}.values())
            run = RunDir(self.run_dir.root / "smaller")
            self._execute(there, run, "tables")
            results = self._results(there, run)
            for cell, changes in zip(cells, candidates, strict=True):
                shows = False
                if cell is not None:
                    seen = self._seen(cell, results, run)
                    marks = {(w.kind, w.mark) for w in self._wrongs(finding.root, changes, cell, seen, results)}
                    shows = (finding.wrong.kind, finding.wrong.mark) in marks
                shown.append(shows)
            return shown

        self.progress(Notice(f"makes small: {finding.wrong.kind}: {finding.wrong.text}"))
        finding.changes = minimised(finding.changes, still)
        (self.run_dir.root / "smaller").remove_tree(ignore_errors=True)
        return finding

    def _write(self, number: int, finding: Finding) -> None:
        """findings/NAME: the spec that shows it, what it is, the captures."""
        finding.name = f"{number:02d}-{finding.wrong.kind.replace(' ', '-')}"
        folder = self.run_dir.root / "findings" / finding.name
        folder.mkdir(parents=True, exist_ok=True)
        title = f"{finding.wrong.kind}: {finding.wrong.text}"[:200]
        (folder / "spec.toml").write_text(text_of(self.roots[finding.root], finding.changes, title))
        cell = self._cell(finding.root, finding.changes)
        run = RunDir(folder / "run")
        self._execute([cell], run, "all")
        if (capture := run.cell(cell.id).capture).is_dir():
            capture.copy_tree(folder / "capture")
        if (console := run.cell(cell.id).console).exists():
            console.copy_to(folder / "console.txt")
        run.root.remove_tree()
        lines = [
            title,
            f"Schedule: {named(finding.changes)}",
            f"Of the cell: {self.roots[finding.root].cell.id}",
            f"Shown by {counted(len(finding.cells), 'cell')}, first by cell {finding.first_at}.",
            f"Replay it: NETWARP_KERNEL={self.build.release}+{self.build.variant} netwarp run spec.toml",
        ]
        (folder / "about.txt").write_text("\n".join(lines) + "\n")

    def write(self) -> None:
        """What was reached and found, as files. Also of a search that did not end, whose findings stay large."""
        if not self.curve:
            return
        write_functions(self.run_dir.root, self.functions)
        write_curve(self.run_dir.root, self.curve)
        write_json(
            self.run_dir.root / "explore.json",
            {
                "format": FORMAT,
                "spec": self.plan.name,
                "seed": self.seed,
                "drawn": self.queue is None,
                "kernel": {"release": f"{self.build.release}+{self.build.variant}", "sha256": self.build.sha256},
                "cells": self.done,
                "outcomes": self.outcomes,
                "lines": {"reached": self.curve[-1].lines, "all": sum(len(f.lines) for f in self.functions)},
                "arcs": {"reached": self.reached.arcs, "all": self.reached.all_arcs},
                "corpus": [
                    {"cell": each.cell_id, "root": each.root, "new_arcs": each.new, "changes": as_json(each.changes)}
                    for each in self.entries
                ],
                "findings": [
                    {
                        "name": each.name,
                        "kind": each.wrong.kind,
                        "mark": each.wrong.mark,
                        "text": each.wrong.text,
                        "schedule": named(each.changes),
                        "root": each.root,
                        "changes": as_json(each.changes),
                        "cells": len(each.cells),
                        "first_at": each.first_at,
                    }
                    for each in self.findings.values()
                ],
            },
        )

    def result(self) -> Explored:
        """Everything, for whoever asked."""
        return Explored(
            self.run_dir.root,
            self.done,
            self.curve,
            self.functions,
            list(self.findings.values()),
            self.outcomes,
        )


def _plain(search: _Search) -> Iterator[tuple[int, tuple[Change, ...]]]:
    """Each of the first packets of each root lost, then twice; then each two of the first half of them lost. The roots
    take turns.
    """
    first = {entry.root: search._packets(entry.cell_id)[:FIRST_PLAIN] for entry in search.entries if not entry.changes}
    for action in ("drop", "duplicate"):
        for place in range(FIRST_PLAIN):
            for number, packets in first.items():
                for each in packets[place : place + 1]:
                    yield number, (PacketChange(action, each.link, each.direction, each.number, each.name),)
    for one, two in itertools.combinations(range(FIRST_PLAIN // 2), 2):
        for number, packets in first.items():
            if two < len(packets):
                both = (packets[one], packets[two])
                yield number, tuple(PacketChange("drop", p.link, p.direction, p.number, p.name) for p in both)


def _again(search: _Search, place: Path) -> Iterator[tuple[int, tuple[Change, ...]]]:
    """The schedules of an earlier exploration, each once, roots among them. Raises StoreError, SpecError."""
    told = read_json(place / "explore.json", dict[str, Any])
    if (told.get("format"), told.get("spec")) != (FORMAT, search.plan.name):
        raise SpecError(f"{place}: is no exploration of {search.plan.name}")
    seen: set[tuple[int, str]] = set()
    for each in (*told["corpus"], *told["findings"]):
        changes = from_json(each["changes"])
        key = (int(each["root"]), named(changes))
        if key not in seen and key[0] < len(search.roots):
            seen.add(key)
            yield key[0], changes
