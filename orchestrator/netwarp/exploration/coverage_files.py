"""Files that say which lines of a kernel ran: functions.csv, coverage.info and, of an exploration, coverage.csv."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ..guestkernel import KernelBuild
from ..guestkernel.coverage import NOTES
from ..guestkernel.variant import KEPT
from .counters import Counts, Function, counts, lines_of, read_kept, with_counts
from .found import Step

FUNCTIONS, TRACEFILE, CURVE = "functions.csv", "coverage.info", "coverage.csv"


def notes_of(build: KernelBuild) -> Path:
    """Where the graphs of a kernel with counters are. Of others there is no such directory."""
    return build.binary.parent / KEPT


def counted_objects(build: KernelBuild) -> list[str]:
    """The objects whose lines a kernel counts, as "net/sctp/input"."""
    notes = notes_of(build)
    return [str(path.relative_to(notes).with_suffix("")) for path in sorted(notes.rglob(NOTES))]


def functions_of(files: Iterable[Path], build: KernelBuild, objects: Sequence[str]) -> list[Function]:
    """The functions of these objects, with what ran in all cells or tests that left these files together. Raises
    StoreError.
    """
    templates: dict[str, bytes] = {}
    sums: dict[str, Counts] = {}
    for file in files:
        for name, data in read_kept(file, objects).files.items():
            templates.setdefault(name, data)
            sums[name] = sums.get(name, np.uint64(0)) + counts(data)
    return lines_of({name: with_counts(data, sums[name]) for name, data in templates.items()}, notes_of(build))


def write_functions(place: Path, functions: Sequence[Function]) -> None:
    """functions.csv, and all lines in coverage.info."""
    rows = ["file,function,first_line,calls,lines,lines_reached\n"]
    rows += [f"{f.file},{f.name},{f.first_line},{f.calls},{len(f.lines)},{f.reached}\n" for f in functions]
    (place / FUNCTIONS).write_text("".join(rows))
    (place / TRACEFILE).write_text(tracefile(functions))


def write_curve(place: Path, curve: Sequence[Step]) -> None:
    """coverage.csv: what was reached after so many cells."""
    names = Step.__struct_fields__
    rows = [",".join(names), *(",".join(str(getattr(step, name)) for name in names) for step in curve)]
    (place / CURVE).write_text("\n".join(rows) + "\n")


def tracefile(functions: Iterable[Function]) -> str:
    """Functions and lines with how often each ran, as lcov's tracefiles have them (geninfo(1)): genhtml and an editor
    can show them.
    """
    files: dict[str, list[Function]] = {}
    for each in functions:
        files.setdefault(each.file, []).append(each)
    return "".join(_record(file, those) for file, those in files.items())


def _record(file: str, functions: Sequence[Function]) -> str:
    lines: dict[int, int] = {}
    for each in functions:
        for number, times in each.lines.items():
            lines[number] = max(lines.get(number, 0), times)
    rows = [
        "TN:",
        f"SF:{file}",
        *(f"FN:{each.first_line},{each.name}" for each in functions),
        *(f"FNDA:{each.calls},{each.name}" for each in functions),
        f"FNF:{len(functions)}",
        f"FNH:{sum(each.calls > 0 for each in functions)}",
        *(f"DA:{number},{times}" for number, times in sorted(lines.items())),
        f"LF:{len(lines)}",
        f"LH:{sum(times > 0 for times in lines.values())}",
        "end_of_record",
    ]
    return "".join(f"{row}\n" for row in rows)
