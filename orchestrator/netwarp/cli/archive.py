"""`netwarp archive merge`, `verify`, `replay`, `bundle`, `unpack`: runs that are kept, in parts or as a file."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.numbers import readable
from ..core.units import counted
from ..engine.bundles import SUFFIX, bundle, opened
from ..engine.cleaning import unpack
from ..engine.merging import merge_runs, take_cells
from ..engine.run_again import replay, verify
from ..engine.run_directory import open_run
from ..results.compared_numbers import Comparison
from ..results.run_comparison import StoredRun
from ..sandbox.own_programs import ALLOW
from .places import new_file, new_folder
from .progress import TerminalProgress
from .run import EXIT_INCOMPLETE, EXIT_OK, add_shard_argument, shard_option
from .summary import print_summary


def _add_programs_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        ALLOW, action="store_true", help="accept programs that the runs bring (refused otherwise, with their list)"
    )


MOST_NUMBERS = 10
"""Numbers outside of their interval that are named."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare them."""
    merging = commands.add_parser(
        "archive merge",
        help="make one run of all shards of a plan (netwarp run --shard K/N), or of its base and robustness",
        example="netwarp archive merge part1 part2 part3 --out whole",
    )
    merging.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="every shard, or the runs to take cells from, in any order; they stay",
    )
    merging.add_argument(
        "--spec",
        help="take the cells of this spec from whichever run has them: runs of earlier states of it, or a part each",
    )
    merging.add_argument("--out", type=new_folder, metavar="DIR", required=True, help="the run directory of the whole")
    merging.add_argument("--no-report", action="store_true", help="stop after the tables")
    merging.add_argument("--junit", type=new_file, metavar="FILE", help="write outcomes and verdicts as JUnit XML")
    _add_programs_argument(merging)
    merging.set_defaults(run=run_merge)
    verifying = commands.add_parser(
        "archive verify",
        help="compare a run's captures with those of a reference run, or of its cells run again",
        description="Compares a run's captures with those of a reference run, or of its cells run again. Says whether "
        "the kernel is the same, names the first packet that differs, and holds the numbers of such cells against the "
        "reference's intervals.",
        example="netwarp archive verify results/choi2009/latest --shard 1/40",
    )
    verifying.add_argument("run_dir", type=Path, metavar="RUN", help="a run directory or a bundle")
    verifying.add_argument(
        "reference", type=Path, nargs="?", metavar="REFERENCE", help="a run or a bundle (default: run it again)"
    )
    add_shard_argument(verifying)
    verifying.add_argument("--jobs", type=int, metavar="N", help="cells at once (default: cores)")
    _add_programs_argument(verifying)
    verifying.set_defaults(run=run_verify)
    making = commands.add_parser(
        "archive replay", help="make the captures of cells of a run again, bit for bit",
        example="netwarp archive replay results/choi2009/latest main_r0_f3b1e2681e",
    )  # fmt: skip
    making.add_argument("run_dir", type=Path, metavar="RUN")
    making.add_argument("cells", nargs="+", metavar="CELL", help="cell ids, as tables/cells.csv has them")
    _add_programs_argument(making)
    making.set_defaults(run=run_replay)
    packing = commands.add_parser(
        "archive bundle",
        help="pack a run as one file, without captures, which another machine verifies (netwarp archive verify FILE)",
        example="netwarp archive bundle results/choi2009/latest",
    )
    packing.add_argument("run_dir", type=Path, metavar="RUN")
    packing.add_argument(
        "--out", type=new_file, metavar="FILE", help=f"default: NAME{SUFFIX} here, NAME the experiment's"
    )
    packing.set_defaults(run=run_bundle)
    unpacks = commands.add_parser(
        "archive unpack", help="make cells/<cell_id>/ of packed cells again (netwarp run --pack)",
        example="netwarp archive unpack results/choi2009/latest",
    )  # fmt: skip
    unpacks.add_argument("run_dir", type=Path, metavar="RUN_DIR")
    unpacks.set_defaults(run=run_unpack)


def run_merge(args: argparse.Namespace) -> int:
    """The exit status of `netwarp run`."""
    report = not args.no_report
    if args.spec is not None:
        merged = take_cells(args.spec, args.runs, out=args.out, report=report, allow_programs=args.allow_programs)
    else:
        merged = merge_runs(args.runs, out=args.out, report=report, allow_programs=args.allow_programs)
    if args.junit is not None:
        merged.write_junit(args.junit)
    print_summary(merged)
    return EXIT_OK if merged.complete else EXIT_INCOMPLETE


def run_verify(args: argparse.Namespace) -> int:
    """0: all captures are equal; 1: some are not."""
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(TerminalProgress())
        run_dir = stack.enter_context(opened(args.run_dir))
        reference = None if args.reference is None else stack.enter_context(opened(args.reference))
        verified = verify(
            run_dir, reference, shard=shard_option(args), jobs=args.jobs, allow_programs=args.allow_programs,
            never_root=args.run_dir.is_file(), progress=progress,
        )  # fmt: skip
    then, now = verified.a.kernel, verified.b.kernel
    print(f"kernel: {now}, {'the same' if then == now else f'not the same: {then} in the reference'}")
    for pair in verified.unequal:
        print(f"{pair.id}: {pair.words}")
    print(f"{counted(verified.count('equal'), 'cell')}: captures equal byte for byte, {len(verified.unequal)} not")
    if verified.without_numbers:
        print(f"their numbers cannot be compared: {verified.without_numbers}")
    if verified.numbers is not None:
        print("\n".join(_numbers(verified.numbers)))
    if verified.stored is not None:
        print("\n".join(_stored(verified.stored)))
    return 1 if verified.unequal or (verified.stored is not None and verified.stored.differs) else 0


def _stored(stored: StoredRun) -> Iterator[str]:
    """What else of the run is equal, by kind, and what is not."""
    files = stored.files
    if files.digest:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted((files.equal or {}).items()))
        yield f"digests.json: sha256 {files.digest}; files that are as the run wrote them: {counts or 'none'}"
        yield from _named("changed since the run wrote it", files.changed)
    else:
        yield "digests.json: none, so nothing tells whether its files are those that the run wrote"
    for what, compared in (
        ("cells planned again from the spec", stored.planned),
        ("parts of outputs.json made again from the spec", stored.outputs),
        ("tables made again from its numbers", stored.tables),
        ("outcomes judged again by its checks", stored.judgements),
        ("numbers measured again", stored.numbers),
    ):
        if compared is not None:
            other = "" if stored.same_software or not compared[1] else " (another netwarp made them)"
            yield f"{what}: {compared[0]} equal, {len(compared[1])} not{other}"
            yield from _named("not equal", compared[1])
    if stored.numbers is None:
        yield "numbers measured again: none were, the cells did not run again"
    yield from (line for line in (stored.seed, *stored.notes) if line)


def _named(what: str, names: Sequence[str]) -> Iterator[str]:
    yield from (f"  {what}: {name}" for name in names[:MOST_NUMBERS])
    if len(names) > MOST_NUMBERS:
        yield f"  ... and {len(names) - MOST_NUMBERS} more"


def _numbers(numbers: Comparison) -> Iterator[str]:
    """If the numbers of cells whose captures differ lie within intervals."""
    counts, outside = numbers.counts, numbers.of("changed")
    single = f", {counts['unclear']} undecided (one draw)" if counts["unclear"] else ""
    missing = counts["only in A"] + counts["only in B"]
    yield (
        f"of {counted(counts.total(), 'number')} of these cells and their repetitions "
        f"{counts['same'] + counts['unresolved']} are equal, {counts['within noise']} within the 95 % interval, "
        f"{len(outside)} outside{single}" + (f", {missing} in one of the two only" if missing else "")
    )
    for number in outside[:MOST_NUMBERS]:
        levels = " ".join(f"{factor}={level}" for factor, level in number.levels)
        name = f"{number.flow} {number.metric}".strip()
        values = " -> ".join("none" if value is None else readable(value) for value in (number.a, number.b))
        why = "" if number.p is not None else ", nothing random in it"
        yield f"  {levels}: {name} {values} {number.unit}{why}".rstrip()
    if len(outside) > MOST_NUMBERS:
        yield f"  ... and {len(outside) - MOST_NUMBERS} more (netwarp compare names all, of two runs)"
    for moved in numbers.verdicts:
        yield f"  claim {moved.name}: {moved.a} -> {moved.b}"


def run_bundle(args: argparse.Namespace) -> int:
    """Print the file."""
    print(bundle(args.run_dir, args.out or f"{open_run(args.run_dir).plan.name}{SUFFIX}"))
    return 0


def run_replay(args: argparse.Namespace) -> int:
    """Print the captures."""
    with TerminalProgress() as progress:
        captures = replay(args.run_dir, args.cells, allow_programs=args.allow_programs, progress=progress)
    print("\n".join(str(path) for path in captures))
    return 0


def run_unpack(args: argparse.Namespace) -> int:
    """`netwarp archive unpack`."""
    print(f"{counted(unpack(args.run_dir), 'cell')} unpacked", file=sys.stderr)
    return 0
