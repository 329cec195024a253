"""`netwarp export`: captures as plain files, which any program reads."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..engine.export import export_captures


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("export", help="write captures as plain pcap files")
    parser.add_argument(
        "captures", nargs="+", type=Path, metavar="CAPTURE | CELL_DIR",
        help="captures (.zst and .gz are expanded, others copied), or directories of them, a cell's among them",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path(), help="directory to write to (default: here)")
    parser.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> int:
    """Print the name of each file as it is written."""
    for target in export_captures(args.captures, args.out):
        print(target)
    return 0
