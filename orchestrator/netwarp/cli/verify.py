"""`netwarp verify`, `replay`, `bundle`: run cells again, compare with or restore captures, pack a run as a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..core.units import counted
from ..engine.bundles import SUFFIX, bundle, opened
from ..engine.run_directory import open_run
from ..engine.verification import replay, verify
from .progress import TerminalProgress


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare them."""
    comparing = commands.add_parser(
        "verify",
        help="hold a run's captures against those of a reference run, or against what its cells give now; "
        "names the first packet that differs",
    )
    comparing.add_argument("run_dir", type=Path, metavar="RUN", help="a run directory or a bundle")
    comparing.add_argument("reference", type=Path, nargs="?", metavar="REFERENCE", help="a run (default: run it again)")
    comparing.add_argument("--jobs", type=int, help="cells at once (default: cores)")
    comparing.set_defaults(run=run_verify)
    making = commands.add_parser("replay", help="make the captures of cells of a run again, bit for bit")
    making.add_argument("run_dir", type=Path, metavar="RUN")
    making.add_argument("cells", nargs="+", metavar="CELL", help="cell ids, as tables/cells.csv has them")
    making.set_defaults(run=run_replay)
    packing = commands.add_parser(
        "bundle", help="a run as one file, without captures: another machine runs its cells again (netwarp verify FILE)"
    )
    packing.add_argument("run_dir", type=Path, metavar="RUN")
    packing.add_argument("--out", type=Path, metavar="FILE", help=f"default: NAME{SUFFIX} here, NAME the experiment's")
    packing.set_defaults(run=run_bundle)


def run_verify(args: argparse.Namespace) -> int:
    """0: all captures are equal; 1: some are not."""
    with TerminalProgress() as progress, opened(args.run_dir) as run_dir:
        verified = verify(run_dir, args.reference, jobs=args.jobs, progress=progress)
    for cell_id, words in verified.differ.items():
        print(f"{cell_id}: {words}")
    print(f"{counted(len(verified.equal), 'cell')} equal byte for byte, {len(verified.differ)} not")
    return 1 if verified.differ else 0


def run_bundle(args: argparse.Namespace) -> int:
    """Print the file."""
    print(bundle(args.run_dir, args.out or f"{open_run(args.run_dir).plan.name}{SUFFIX}"))
    return 0


def run_replay(args: argparse.Namespace) -> int:
    """Print the captures."""
    with TerminalProgress() as progress:
        captures = replay(args.run_dir, args.cells, progress=progress)
    print("\n".join(str(path) for path in captures))
    return 0
