"""`netwarp shell`: the network of a cell stands, with captures running; a shell, or one command, on a node of it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ..backends.netns import netns_backend
from ..backends.standing import Standing, standing
from ..errors import BackendUnavailable, SpecError
from ..model import Cell
from ..spec.problems import nearest
from ..store import CellDir
from .backends import cannot
from .programs import build_directory
from .run import add_plan_arguments, new_directory, plan_of


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
        help="netns: namespaces on this machine's own kernel; auto (default): the same; guest: not built yet",
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
    if args.backend == "guest":
        raise BackendUnavailable("a shell in a guest is not built yet; use --backend netns")
    cell = _cell(args)
    node = _node(args.node, cell)
    backend, problems = netns_backend(build_directory())
    if problems:
        raise BackendUnavailable(cannot("netns", problems))
    directory = CellDir((args.out or _new_place(cell)).resolve())
    if directory.root.exists() and any(directory.root.iterdir()):
        raise SpecError(f"{directory.root}: is not empty; another --out starts a new one")
    try:
        with standing(backend, cell, directory) as found:
            if args.words is None:
                print(_greeting(cell, node, found), file=sys.stderr)
            words = args.words or _interactive()
            environment = {**os.environ, "PS1": f"{node}# ", "NETWARP_NODE": node}
            status = subprocess.run(found.entering(node, words, at=Path.cwd()), env=environment, check=False).returncode
    finally:
        print(f"netwarp: captures are kept in {directory.capture}", file=sys.stderr)
    return status if status >= 0 else 128 - status


def _cell(args: argparse.Namespace) -> Cell:
    """The one cell asked for; of several the first, and says so. Raises SpecError."""
    _, plan = plan_of(args)
    cell = plan.cells[0]
    if len(plan.cells) > 1:
        print(
            f"netwarp: {len(plan.cells)} cells; taking the first, {cell.id} (--where chooses another)", file=sys.stderr
        )
    return cell


def _node(name: str | None, cell: Cell) -> str:
    hosts = [node.name for node in cell.nodes if node.kind == "host"]
    names = [node.name for node in cell.nodes]
    if name is not None and name not in names:
        raise SpecError(f'--node {name}: there is no node "{name}"{nearest(name, names)}')
    return name or hosts[0]


def _new_place(cell: Cell) -> Path:
    return new_directory(Path("results") / cell.spec / "shell").root


def _interactive() -> list[str]:
    """A shell whose prompt names the node: one's own start-up files would set another."""
    return ["bash", "--norc"] if shutil.which("bash") else ["sh"]


def _greeting(cell: Cell, node: str, found: Standing) -> str:
    lines = [f"netwarp: the network of {cell.id} stands; this is {node}, `exit` takes it down"]
    ends = [one for one in found.layout.interfaces() if one.node in {each.name for each in cell.nodes}]
    lines += [f"  {one.node:<10} {one.ip:<16} on {one.name}" for one in ends]
    others = ", ".join(name for name in found.layout.namespaces if name != node)
    return "\n".join([*lines, f"  on another node: ip netns exec NODE COMMAND; there is: {others}"])
