"""`netwarp shell`: a shell, or one command, on a node of a cell's network, captures running."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import SpecError
from ..core.executables import find_executable
from ..core.types import Cell
from ..core.units import counted
from ..engine.shell import node_environment, run_on_node, shell_backend, shell_directory, shell_node
from ..sandbox.guest_shell import STDERR, STDOUT, guest_shell, shell_status
from ..sandbox.virtual import GuestBackend
from ..store.run_dir import CellDir
from ..testbed.layout import make_layout
from . import terminal
from .progress import TerminalProgress
from .run import add_plan_arguments, plan_of


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "shell", help="a shell on a node of a cell's network, captures running",
        description="The network of a cell stands, without its flows and events; leaving the shell takes it down.",
    )  # fmt: skip
    add_plan_arguments(parser)
    parser.add_argument("--node", help="where the shell runs (default: the first host)")
    parser.add_argument(
        "--backend", default="auto", choices=("auto", "guest", "netns"),
        help="netns: namespaces on this machine's own kernel; guest: a guest's, on the wall clock; "
        "auto (default): netns, where it cannot run guest",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="where captures are kept (default: results/<name>/shell/<UTC time>/)")
    parser.add_argument(
        "--exec", dest="words", nargs=argparse.REMAINDER, metavar="COMMAND",
        help="run this command and its arguments there instead of a shell; the last option",
    )  # fmt: skip
    parser.set_defaults(run=shell)


def shell(args: argparse.Namespace) -> int:
    """Run; the exit status of the shell or the command."""
    if args.words == []:
        raise SpecError("--exec needs a command, e.g. --exec ping -c 1 10.0.0.129")
    cell = _cell(args)
    node = shell_node(args.node, cell)
    with TerminalProgress() as progress:
        backend = shell_backend(args.backend, progress)
    words = args.words or _interactive()
    if args.words is None and isinstance(backend, GuestBackend) and not terminal.has_terminal():
        raise SpecError("a shell in a guest wants a terminal; for a command without one: --exec COMMAND")
    directory = shell_directory(cell, args.out)
    try:
        if args.words is None:
            print(_greeting(cell, node), file=sys.stderr)
        if isinstance(backend, GuestBackend):
            return _in_guest(backend, cell, directory, node, words)
        return run_on_node(backend, cell, directory, node, words)
    finally:
        print(f"netwarp: captures are kept in {directory.capture}", file=sys.stderr)


def _in_guest(backend: GuestBackend, cell: Cell, directory: CellDir, node: str, words: Sequence[str]) -> int:
    kept = {key: os.environ[key] for key in ("HOME", "TERM", "LANG") if key in os.environ}
    environment = {**kept, **node_environment(node)}
    if terminal.has_terminal():
        with (
            terminal.tied() as tie,
            guest_shell(
                backend, cell, directory, node, words, environment=environment, at=Path.cwd(), terminal=tie.path
            ) as sandbox,
        ):
            tie.relay(sandbox)
    else:
        streams = {directory.root / STDOUT: sys.stdout.buffer, directory.root / STDERR: sys.stderr.buffer}
        with guest_shell(
            backend, cell, directory, node, words, environment=environment, at=Path.cwd(), terminal=None
        ) as sandbox:
            terminal.follow(streams, sandbox)
    return shell_status(directory)


def _cell(args: argparse.Namespace) -> Cell:
    """The one cell asked for; of several the first, and says so. Raises SpecError."""
    plan = plan_of(args, None if args.backend == "auto" else args.backend)
    cell = plan.cells[0]
    if len(plan.cells) > 1:
        print(
            f"netwarp: {counted(len(plan.cells), 'cell')}; taking the first, {cell.id} (--where chooses another)",
            file=sys.stderr,
        )
    return cell


def _interactive() -> list[str]:
    """A shell whose prompt names the node: one's own start-up files would set another."""
    return ["bash", "--norc"] if find_executable("bash") else ["sh"]


def _greeting(cell: Cell, node: str) -> str:
    layout = make_layout(cell)
    lines = [f"netwarp: the network of {cell.id} stands; this is {node}, `exit` takes it down"]
    ends = [end for end in layout.interfaces() if end.node in {each.name for each in cell.nodes}]
    lines += [f"  {end.node:<10} {end.ip:<16} on {end.name}" for end in ends]
    others = ", ".join(name for name in layout.namespaces if name != node)
    return "\n".join([*lines, f"  on another node: ip netns exec NODE COMMAND; there is: {others}"])
