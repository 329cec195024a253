"""`netwarp kernel explore`: schedules that reach new lines of the kernel, and what goes wrong in them."""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import SpecError
from ..core.lines import columns, lines_text
from ..core.units import QuantityError, counted, parse_quantity
from .places import new_folder

if TYPE_CHECKING:
    from ..engine.explore import Explored

EXIT_FOUND = 1
SHOWN = 12
"""Files and findings of which the summary says a line each."""
_UNITS = {"min": 60, "h": 3600}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("spec", metavar="SPEC", help="a spec file, or a folder name under experiments/")
    parser.add_argument(
        "--files", action="append", required=True, metavar="PATTERN",
        help="of the kernel's source, whose lines count (again for more); for example 'net/sctp/*.c'",
    )  # fmt: skip
    parser.add_argument("--budget", metavar="TIME", help="of the wall clock: 30min, 2h, 90s")
    parser.add_argument("--cells", type=int, metavar="N", help="instead of a time, or beside it: at most N cells")
    parser.add_argument("--seed", type=int, metavar="N", default=1, help="of the changes that are drawn (default: 1)")
    parser.add_argument(
        "--kernel", default="", metavar="RELEASE+LABEL",
        help="one with counters (default: the default release's with those of --files)",
    )  # fmt: skip
    parser.add_argument("--plain", action="store_true", help="lose packet after packet, to compare; draw nothing")
    parser.add_argument(
        "--again", type=Path, metavar="DIR",
        help="run the schedules that an earlier exploration kept, on this kernel, instead of new ones",
    )  # fmt: skip
    parser.add_argument(
        "--beside", action="append", default=[], type=Path, metavar="DIR",
        help="of an earlier exploration (a plain one, say) or of netwarp selftest --out: say what that reached, and "
        "draw its curve beside this one's (again for more)",
    )  # fmt: skip
    parser.add_argument("--only", action="append", default=[], metavar="EXPERIMENT", help="only cells of this one")
    parser.add_argument("--where", action="append", default=[], metavar="FACTOR=LEVEL", help="as of netwarp run")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of netwarp run")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="cells at once (default: cores); the cells are the same ones"
    )
    parser.add_argument("--out", type=new_folder, metavar="DIR", help="(default: results/<name>-explore/<UTC time>/)")
    parser.add_argument("--json", action="store_true", help="print explore.json instead of the summary")


def run(args: argparse.Namespace) -> int:
    """Explore; 0: nothing found, 1: findings, 2: wrong arguments, 77: no such kernel."""
    from ..engine.explore import explore  # here: `netwarp kernel list` does without a second of imports
    from ..engine.explore_curves import draw_curves
    from .progress import TerminalProgress
    from .run import pairs

    with TerminalProgress() as progress:
        found = explore(
            args.spec, files=args.files, cells=_positive(args.cells, "--cells"), budget_s=_budget(args.budget),
            seed=args.seed, kernel=args.kernel, plain=args.plain, again=args.again, only=args.only,
            where=pairs(args.where, "--where"), sets=dict(pairs(args.set, "--set")), jobs=args.jobs, out=args.out,
            progress=progress,
        )  # fmt: skip
    drawn = draw_curves(found.path, args.beside)
    if args.json:
        print(json.dumps(json.loads((found.path / "explore.json").read_bytes())))
    else:
        others = [line for place in args.beside for line in beside(found, place)]
        print("\n".join([*summary(found), *others, f"curve: {drawn}", str(found.path)]))
    return EXIT_FOUND if found.findings else 0


def _budget(text: str | None) -> float | None:
    """Seconds of "30min", "2 h" or a time as a spec writes it. Raises SpecError."""
    if text is None:
        return None
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*(min|h)", text.strip()):
        return float(match[1]) * _UNITS[match[2]]
    try:
        return parse_quantity(text, "time").value / 1e9
    except QuantityError as error:
        raise SpecError(f"--budget {text}: {error}; for example --budget 30min") from error


def _positive(number: int | None, option: str) -> int | None:
    if number is not None and number < 1:
        raise SpecError(f"{option} {number}: at least 1")
    return number


def summary(found: Explored) -> list[str]:
    """What was reached, file by file, and what was found."""
    last = found.curve[-1]
    every = sum(len(function.lines) for function in found.functions)
    ends = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.outcomes.items()))
    lines = [
        f"{counted(found.cells, 'cell')} ({ends}) in {last.wall_s:.0f} s, {last.cpu_s:.0f} s of CPU time",
        f"lines reached: {last.lines} of {every}, functions: {last.functions} of {len(found.functions)}",
    ]
    files: Counter[str] = Counter()
    for function in found.functions:
        files[function.file] += len(function.lines)
    rows = []
    for file, total in files.most_common(SHOWN):
        reached = sum(function.reached for function in found.functions if function.file == file)
        rows.append((file, f"{reached} of {total}", f"{100 * reached / max(total, 1):.0f} %"))
    lines += [lines_text([line]) for line in columns(rows, right={1, 2}, indent="  ")]
    lines.append(f"findings: {len(found.findings)}")
    for finding in found.findings[:SHOWN]:
        lines.append(f"  {finding.name}: {finding.wrong.text[:110]}")
    return lines


def beside(found: Explored, place: Path) -> list[str]:
    """What another exploration reached of the same files. Raises SpecError if it is none."""
    try:
        with open(place / "functions.csv", newline="") as file:
            rows = {(row["file"], row["function"]): row for row in csv.DictReader(file)}
    except OSError as error:
        raise SpecError(f"--beside {place}: is no exploration: {error.strerror}") from error
    there = sum(int(row["lines_reached"]) for row in rows.values())
    here = sum(function.reached for function in found.functions)
    called = {key for key, row in rows.items() if int(row["calls"])}
    new = [each.name for each in found.functions if each.calls and (each.file, each.name) not in called]
    gone = len(called - {(each.file, each.name) for each in found.functions if each.calls})
    return [
        f"{place}: {there} lines there, {here} here; {counted(gone, 'function')} only there, {len(new)} only here:",
        f"  {', '.join(new)}",
    ]
