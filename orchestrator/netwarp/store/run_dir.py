"""The file names of a run directory, and writes that are complete or absent."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from ..core.errors import DiskFull, StoreError, reason_words
from ..core.frozen import Frozen, from_json, to_json
from ..core.inside import InsidePath, inside
from ..core.processes import await_end_of_users
from ..core.types import Cell, CellOutcome, Outcome
from . import compressed
from .packs import SUFFIX, PackedPath, Packs, archives

FORMAT_VERSION = 1
"""Of the run directory, written to manifest.json for scripts: raise it when a file's name or meaning changes."""
LOCK = ".lock"
UNFINISHED = ".part"
"""Suffix of the name of a file that is still being written."""
DYING_S = 2.0
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
T = TypeVar("T")


class RunDir:
    """results/<name>/<time>/ (docs/formats.md). An unfinished cell exists only in cells/.partial; an unfinished file
    has the suffix UNFINISHED, anywhere.
    """

    def __init__(self, root: Path) -> None:
        self.root = root = InsidePath.at(root)
        self.manifest = root / "manifest.json"
        self.plan = root / "plan.json"
        self.outputs = root / "outputs.json"
        self.digests = root / "digests.json"
        self.spec = root / "spec"
        self.cells = root / "cells"
        self.partial = self.cells / ".partial"
        self.calibration = root / "calibration.json"
        self.tables = root / "tables"
        self.new_tables = root / f".tables{UNFINISHED}"
        self.report = root / "report"
        self.counterexamples = root / "counterexamples"
        self.search = root / "search"
        self.conclusion = root / "conclusion.json"
        self._packs = Packs(self.cells)

    def cell(self, cell_id: str) -> CellDir:
        """A finished cell's directory. A packed cell is read-only. Raises StoreError."""
        root = self.cells / cell_id
        if root.is_dir():
            return CellDir(root)
        single = self.cells / f"{cell_id}{SUFFIX}"
        archive = single if single.is_file() else self._packs.pack_of(cell_id)
        return CellDir(root if archive is None else PackedPath.of(archive, cell_id))

    def partial_cell(self, cell_id: str) -> CellDir:
        """The directory in which a cell runs until its outcome is known."""
        return CellDir(self.partial / cell_id)

    def finished(self) -> set[str]:
        """Ids of the cells that have an outcome."""
        if not self.cells.is_dir():
            return set()
        there = {path.parent.name for path in self.cells.glob("*/outcome.json") if path.parent.name != ".partial"}
        return there | archives(self.cells).keys()

    def remove(self) -> None:
        """Remove the whole run directory."""
        self.root.remove_tree(ignore_errors=True)

    def set_aside(self, cell_id: str) -> None:
        """Move a finished cell aside, so that it runs again; its files are kept for inspection."""
        for number in itertools.count(1):
            aside = self.cells / ".failed" / f"{cell_id}.{number}"
            if not aside.exists():
                break
        aside.parent.mkdir(exist_ok=True)
        (self.cells / cell_id).replace(aside)

    def install(self, cell_id: str) -> None:
        """Move a cell from the directory in which it ran to its final place, by one rename."""
        final = self.cells / cell_id
        if final.exists():
            final.remove_tree()
        self.partial_cell(cell_id).root.replace(final)

    def keep_outcome(self, cell: Cell, outcome: CellOutcome) -> None:
        """Keep only the outcome of a cell, not its files."""
        directory = self.partial_cell(cell.id)
        directory.root.remove_tree(ignore_errors=True)
        write_atomic(directory.cell, to_json(cell) + b"\n")
        write_atomic(directory.outcome, to_json(outcome) + b"\n")
        self.install(cell.id)

    def captures(self) -> list[Path]:
        """Every capture file of its finished cells, and of those set aside."""
        return sorted(path for path in self.cells.rglob("capture/*") if path.is_file() and not path.is_symlink())

    def sizes(self) -> tuple[int, int]:
        """Bytes of all its files, and of the captures among them."""
        every = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_size for path in every), sum(path.stat().st_size for path in self.captures())

    def clear_partial(self) -> None:
        """Remove the unfinished cells of an interrupted run; they are never read."""
        again = True
        while self.partial.exists():
            try:
                self.partial.remove_tree()
            except OSError:  # the guest of a worker that was killed may still write while it dies
                if not again:
                    raise
                places = [self.partial, *self.partial.glob("*"), *self.partial.glob("*/*")]
                # nobody: the last one may have ended between the error and the look; then once more
                again = await_end_of_users(places, DYING_S)
        for left in list(self.root.rglob(f".*{UNFINISHED}")):
            with contextlib.suppress(FileNotFoundError):  # in one of these directories
                left.remove_tree()

    @contextlib.contextmanager
    def tables_beside(self) -> Iterator[Path]:
        """An empty folder for new tables, which takes the place of tables/ when `install_tables` is called; else it is
        removed at the end, and tables/ stays.
        """
        self.new_tables.remove_tree(ignore_errors=True)
        try:
            yield self.new_tables
        finally:
            self.new_tables.remove_tree(ignore_errors=True)

    def install_tables(self, between: Callable[[], None] = lambda: None) -> None:
        """Replace every table by the new ones. between: what must change together with them (outputs.json): it runs
        while there are no tables, so that a kill at any moment leaves old tables, none, or new ones, never a mixture.

        Tables that are missing are made again from derived files. Raises StoreError.
        """
        old = self.root / f".old-tables{UNFINISHED}"
        try:
            old.remove_tree(ignore_errors=True)
            if self.tables.exists():
                self.tables.replace(old)
            between()
            self.new_tables.replace(self.tables)
            old.remove_tree(ignore_errors=True)
        except OSError as error:
            raise unwritten(self.tables, error) from error


class Judgement(Frozen, frozen=True):
    """judgement.json: the outcome after the analyser's checks of a cell that ran to its end."""

    outcome: Outcome
    reason: str

    def of(self, outcome: CellOutcome) -> CellOutcome:
        """The back end's outcome, with this judgement replacing its result."""
        return msgspec.structs.replace(outcome, outcome=self.outcome, reason=self.reason, judged_by="analysis")


class CellDir:
    """The files of one cell."""

    def __init__(self, root: Path) -> None:
        self.root = root = InsidePath.at(root)
        self.cell = root / "cell.json"
        self.steps = root / "steps.txt"
        self.init_log = root / "init.ndjson"
        self.capture = root / "capture"
        self.apps = root / "apps"
        self.trace = self.apps / "trace.bin"
        self.counters = root / "counters.bin"
        self.environment = root / "environment.json"
        self.log = root / "log.txt"
        self.console = root / "console.txt"
        self.outcome = root / "outcome.json"
        self.derived = root / "derived"
        self.measurements = self.derived / "measurements.json"
        self.series = self.derived / "series.json"
        self.exchange = self.derived / "exchange.json"
        self.pages = self.derived / "pages.json"
        self.windows = self.derived / "windows.json"
        self.checks = self.derived / "checks.json"
        self.clock_limits = self.derived / "clock_limits.json"
        self.packets = self.derived / "packets.json"
        self.positions = self.derived / "positions.json"
        self.judgement = self.derived / "judgement.json"
        self.analysis_error = self.derived / "analysis_error.txt"

    def read_cell(self) -> Cell:
        """The Cell; raises StoreError if the file is missing or not one."""
        return read_json(self.cell, Cell)

    def read_run_outcome(self) -> CellOutcome:
        """outcome.json: how the cell ended according to the back end. Raises StoreError if the cell was never
        finished.
        """
        return read_json(self.outcome, CellOutcome)

    def read_outcome(self) -> CellOutcome:
        """The outcome after the analyser's checks, if the cell was analysed. Raises StoreError if the cell was never
        finished.
        """
        outcome = self.read_run_outcome()
        return read_json(self.judgement, Judgement).of(outcome) if self.judgement.exists() else outcome


def read_json(path: Path, kind: type[T], limit: str = "file_bytes") -> T:
    """Decode a JSON file, plain or compressed, into a type. limit: of a plain one. Raises StoreError, naming it."""
    try:
        return from_json(compressed.read(path, limit), kind)
    except FileNotFoundError as error:
        raise StoreError(f"{path}: missing; is this a netwarp run directory, and did the run get this far?") from error
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error


def write_atomic(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file completely or not at all. data: the content, or its blocks. Raises StoreError."""
    with whole_file(path) as file:
        file.writelines((data,) if isinstance(data, bytes) else data)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which has its name only once it is complete: temporary name, fsync, rename. After an error it is
    gone. Raises StoreError (e.g. a full disk).
    """
    target = inside(path)
    growing = target.temporary(UNFINISHED)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with growing.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), 0o644)
            growing.replace(target)
        except BaseException:
            growing.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise unwritten(path, error) from error


def write_packed_json(path: Path, value: object) -> None:
    """Write compact JSON, compressed as name.zst, completely or not at all: for files that only programs read."""
    write_atomic(compressed.packed(path), compressed.packed_bytes(msgspec.json.encode(value)))
    path.unlink(missing_ok=True)  # of an older netwarp


def unwritten(path: Path, error: OSError) -> StoreError:
    """The exception to raise when a file cannot be written: DiskFull if the disk is full."""
    kind = DiskFull if no_room(error) else StoreError
    return kind(f"{path}: cannot be written: {reason_words(error)}")


def no_room(error: BaseException) -> bool:
    """True if a write failed because the disk is full or a quota is used up."""
    return isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in NO_ROOM)


def write_json(path: Path, value: object) -> None:
    """Readable JSON (two spaces; keys keep their order), whole or not at all."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


@contextlib.contextmanager
def locked(run: RunDir) -> Iterator[None]:
    """Lock a run directory. Raises StoreError if another netwarp holds it, or if it cannot be created."""
    try:
        run.root.mkdir(parents=True, exist_ok=True)
        file = (run.root / LOCK).open("ab")
    except OSError as error:
        raise unwritten(run.root, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(f"{run.root}: another netwarp is running in this directory") from error
        yield
