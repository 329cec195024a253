"""`netwarp export`: captures as plain files, which any program reads; with --har pages as HTTP archives."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..core.errors import SpecError
from ..engine.export import export_captures
from ..engine.har import export_har


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("export", help="write captures as plain pcap files, or pages as HAR")
    parser.add_argument(
        "captures", nargs="+", type=Path, metavar="CAPTURE | CELL_DIR",
        help="captures (.zst and .gz are expanded, others copied), or directories of them, a cell's among them",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path(), help="directory to write to (default: here)")
    parser.add_argument("--har", action="store_true", help="RUN CELL: the pages of a cell as HAR 1.2 instead")
    parser.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> int:
    """Print the name of each file as it is written."""
    if args.har:
        if len(args.captures) != 2:
            raise SpecError("--har takes a run and a cell; for example --har results/lee2008/latest CELL_ID")
        run, cell = args.captures
        targets = iter(export_har(run, str(cell), args.out))
    else:
        targets = export_captures(args.captures, args.out)
    for target in targets:
        print(target)
    return 0
