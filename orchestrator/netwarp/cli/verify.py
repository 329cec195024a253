"""`netwarp verify` and `netwarp replay`: run cells again, and compare with or restore the captures of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..core.units import counted
from ..engine.verification import replay, verify
from .progress import TerminalProgress


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare them."""
    comparing = commands.add_parser(
        "verify",
        help="hold a run's captures against those of a reference run, or against what its cells give now; "
        "names the first packet that differs",
    )
    comparing.add_argument("run_dir", type=Path, metavar="RUN")
    comparing.add_argument("reference", type=Path, nargs="?", metavar="REFERENCE", help="a run (default: run it again)")
    comparing.add_argument("--jobs", type=int, help="cells at once (default: cores)")
    comparing.set_defaults(run=run_verify)
    making = commands.add_parser("replay", help="make the captures of cells of a run again, bit for bit")
    making.add_argument("run_dir", type=Path, metavar="RUN")
    making.add_argument("cells", nargs="+", metavar="CELL", help="cell ids, as tables/cells.csv has them")
    making.set_defaults(run=run_replay)


def run_verify(args: argparse.Namespace) -> int:
    """0: all captures are equal; 1: some are not."""
    with TerminalProgress() as progress:
        verified = verify(args.run_dir, args.reference, jobs=args.jobs, progress=progress)
    for cell_id, words in verified.differ.items():
        print(f"{cell_id}: {words}")
    print(f"{counted(len(verified.equal), 'cell')} equal byte for byte, {len(verified.differ)} not")
    return 1 if verified.differ else 0


def run_replay(args: argparse.Namespace) -> int:
    """Print the captures."""
    with TerminalProgress() as progress:
        captures = replay(args.run_dir, args.cells, progress=progress)
    print("\n".join(str(path) for path in captures))
    return 0
