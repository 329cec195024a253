"""`netwarp kernel watch BASE NEW`: which tests, splats and numbers changed from one kernel to another."""

from __future__ import annotations

import argparse
import re
import shutil
import traceback
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from ..core.errors import DoesNotBuild, NetwarpError, SpecError, os_words
from ..core.numbers import percent, readable
from ..core.units import counted
from ..engine.watch import compare_results, results_of
from ..engine.watch_bisect import bisect
from ..engine.watch_nipa import watch_results
from ..engine.watch_sets import watch_set
from ..guestkernel import KernelBuild
from ..guestkernel.asked import build_asked, parse_asked
from ..present.pages.watch import sentence, watch_page
from ..results.compared_numbers import ComparedNumber
from ..results.senses import Sense, senses
from ..results.watched import ChangedCell, Watched, as_json, headline
from ..store.run_dir import write_atomic
from ..store.run_locations import refuse_used
from .kernel import Shown
from .nipa import telling_nipa, write_nipa
from .output import make_table, plain_console, print_json
from .places import new_folder
from .progress import TerminalProgress

SHOWN = 10
NAMED = ("base", "new")


GIT_BISECT = {0: 0, 1: 1, DoesNotBuild.exit_status: 125}
"""Our exit status -> that of a step of `git bisect run`: good, bad, skip this commit; any other status stops it."""
STOP = 255


def run_watch(args: argparse.Namespace) -> int:
    """`netwarp kernel watch`; 0: nothing changed, 1: something did, 2: it could not be asked."""
    if not args.git_bisect:
        return _watch(args)
    try:
        if args.over is not None:
            raise SpecError("--git-bisect answers git, which bisects; --over bisects by itself: leave one of them out")
        return GIT_BISECT.get(_watch(args), STOP)
    except NetwarpError as error:
        error.exit_status = GIT_BISECT.get(error.exit_status, STOP)
        raise
    except Exception:  # noqa: BLE001  Python would end with 1, which git takes for a bad commit
        traceback.print_exc()
        return STOP


def _watch(args: argparse.Namespace) -> int:
    try:
        with telling_nipa(args):
            return _run(args)
    except NetwarpError as error:
        if error.exit_status == 1:  # which says here that something changed
            raise SpecError(str(error)) from error
        raise
    except OSError as error:  # a full disk, which would end with 1, too
        raise SpecError(os_words(error)) from error


def _run(args: argparse.Namespace) -> int:
    tree, good, bad = _over(args)
    asked = [f"{tree}@{good}", f"{tree}@{bad}"] if tree is not None else args.kernels
    if len(asked) != 2:
        raise SpecError(
            "watch compares two kernels, BASE and NEW: netwarp kernel watch 6.12 6.12+fix.patch; "
            "or two commits of one tree: netwarp kernel watch ~/linux --over v6.12..HEAD"
        )
    chosen = watch_set(args.set)
    out = args.out
    if out is None and not args.git_bisect:
        out = Path("results/watch") / args.started.strftime("%Y%m%dT%H%M%SZ")
    if out is not None:
        refuse_used(new_folder(out))
    parsed = [parse_asked(text) for text in asked]
    with Shown() as shown:
        built = [build_asked(each, args.jobs, shown.update) for each in parsed]
    with TerminalProgress() as progress:
        results = [
            results_of(build, source, chosen, asked=each.text, jobs=args.jobs, progress=progress, anew=args.anew)
            for each, (build, source) in zip(parsed, built, strict=True)
        ]
        watched = compare_results(results[0], results[1], chosen.name)
    if out is not None:
        _keep(watched, [place for _, place in results], out)
    if tree is not None and out is not None and watched.differs:
        with Shown() as shown, TerminalProgress() as progress:

            def build(text: str) -> tuple[KernelBuild, Path | None]:
                return build_asked(parse_asked(text), args.jobs, shown.update)

            named = _findings(watched, args.finding, out)
            found = tuple(
                bisect(watched, one, chosen, tree, good, bad, results[0][1], build, args.jobs, progress)
                for one in named
            )
        watched = replace(watched, bisected=found)
        _write(watched, out)
    write_nipa(args, partial(watch_results, watched))
    if args.json:
        print_json(as_json(watched))
    else:
        print_watched(watched, out)
    if watched.empty:
        raise SpecError("no test and no number is there on both kernels: nothing was compared")
    return int(watched.differs)


def _over(args: argparse.Namespace) -> tuple[Path | None, str, str]:
    """The tree and the two commits of --over."""
    if args.over is None:
        if args.finding is not None:
            raise SpecError("--finding says what --over bisects: netwarp kernel watch ~/linux --over v6.12..HEAD")
        return None, "", ""
    if args.finding is not None and not re.fullmatch(r"all|[1-9]\d*(,[1-9]\d*)*", args.finding):
        raise SpecError(f"--finding {args.finding}: wants all, or numbers from 1 on, for example --finding 1,3")
    good, dots, bad = args.over.partition("..")
    if not (good and dots and bad) or bad.startswith("."):
        raise SpecError(f"--over {args.over}: wants two commits, for example --over v6.12..HEAD")
    if len(args.kernels) != 1 or not (tree := Path(args.kernels[0]).expanduser()).is_dir():
        raise SpecError("--over needs one git repository: netwarp kernel watch ~/linux --over v6.12..HEAD")
    return tree.resolve(), good, bad


def _findings(watched: Watched, asked: str | None, out: Path) -> list[str]:
    """What is bisected: the first finding, or those of --finding."""
    every = list(watched.findings)
    if not every or asked == "all":
        return every
    numbers = sorted({int(word) for word in (asked or "1").split(",")})
    if numbers[-1] > len(every):
        raise SpecError(
            f"--finding {asked}: there are findings 1 to {len(every)}, in {out / 'index.html'}; what ran is kept, and "
            "is not run again"
        )
    return [every[number - 1] for number in numbers]


def _keep(watched: Watched, places: list[Path], out: Path) -> None:
    """The page, the JSON and all that ran, in one directory."""
    out.mkdir(parents=True, exist_ok=True)
    for name, place in zip(NAMED, places, strict=True):
        shutil.copytree(place, out / name, symlinks=True)
    _write(watched, out)


def _write(watched: Watched, out: Path) -> None:
    write_atomic(out / "index.html", watch_page(watched))
    write_atomic(out / "watch.json", msgspec.json.format(msgspec.json.encode(as_json(watched)), indent=1) + b"\n")


def print_watched(watched: Watched, out: Path | None) -> None:
    """The answer, short: what changed, the largest first."""
    console = plain_console()
    console.print(sentence(watched))
    for name, kernel in (("A", watched.base), ("B", watched.new)):
        tests = ", ".join(f"{count} {verdict}" for verdict, count in watched.counts(kernel).most_common())
        console.print(f"{name}  {kernel.asked}: Linux {kernel.release}, {kernel.source}; tests: {tests or 'none'}")
        for why in kernel.without:
            console.print(f"   not run: {why}")
    cells = sum(run.cells for run in watched.runs)
    numbers = ", ".join(f"{count} {verdict}" for verdict, count in watched.numbers.most_common())
    console.print(f"{counted(cells, 'cell')} on each; numbers: {numbers or 'none'}")
    for run in watched.runs:
        for side, why in zip("AB", run.failed, strict=True):
            if why:
                console.print(f"{run.spec} on {side}: {why}")
    for splat in watched.splats:
        console.print(f"splat in {splat.where}:\n{splat.text}")
    _print_tests(console, watched)
    numbered = watched.finding_numbers
    ended = [(str(numbered[each.name]), each.spec, each.ended) for each in watched.ended]
    judged = [("", run.spec, each) for run in watched.runs for each in run.verdicts]
    for title, moved in (("Cells that ended otherwise", ended), ("Verdicts that changed", judged)):
        if moved:
            shown = make_table(title, "", "", "", "A", "B")
            for number, spec, each in moved[:SHOWN]:
                shown.add_row(*map(Text, (number, spec, each.name, each.a, each.b)))
            console.print(shown)
            if len(moved) > SHOWN:
                console.print(f"... and {len(moved) - SHOWN} more")
    _print_cells(console, watched.cells)
    for found in watched.bisected:
        which = " or ".join(commit[:12] for commit in found.commits[:5])
        console.print(f"{found.finding}: {which} ({found.subject}), {counted(found.steps, 'step')}")
    if out is not None:
        console.print(str(out / "index.html"), soft_wrap=True)


def _print_tests(console: Console, watched: Watched) -> None:
    both = [one for one in watched.tests if one.a and one.b]
    if both:
        numbered = watched.finding_numbers
        shown = make_table("Tests that ended otherwise", "", "", "A", "B", "")
        for one in both[:SHOWN]:
            assert one.a is not None and one.b is not None
            inside = ", ".join(f"{name} {b}" for name, _, b in one.inside[:3])
            why = one.b.note.split("\n")[0] or inside
            shown.add_row(*map(Text, (str(numbered[f"test {one.name}"]), one.name, one.a.verdict, one.b.verdict, why)))
        console.print(shown)
    if alone := len(watched.tests) - len(both):
        console.print(f"{counted(alone, 'test is', 'tests are')} in the source of one of the kernels only")


def _print_cells(console: Console, cells: tuple[ChangedCell, ...]) -> None:
    for number, cell in enumerate(cells[:SHOWN], 1):
        console.print(Text(f"{number}. {cell.name}", style="bold"))
        head = headline(cell)
        named = list(dict.fromkeys([*cell.numbers[:2], *([] if head is None else [head])]))
        meaning = dict(zip(map(id, cell.numbers), senses(cell.numbers), strict=True))
        said = [_number(one, meaning[id(one)]) for one in named]
        more = len(cell.numbers) - len(said)
        console.print("   " + "; ".join(said) + (f"; and {more} more" if more else ""))
        if cell.first:
            console.print(f"   first packet that differs {cell.first}")
    if len(cells) > SHOWN:
        console.print(f"... and {counted(len(cells) - SHOWN, 'more cell')} with numbers that changed")


def _number(one: ComparedNumber, meaning: Sense) -> str:
    words = ([] if one.relative is None else [percent(one.relative, signed=True)]) + ([meaning] if meaning else [])
    change = f" ({', '.join(words)})" if words else ""
    return f"{one.flow} {one.metric} {readable(one.a)} -> {readable(one.b)} {one.unit}{change}".strip()
