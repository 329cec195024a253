"""`netwarp shell`: the network of a cell stands, with captures running; a shell, or one command, on a node of it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import BackendUnavailable, SpecError
from ..core.executables import find_executable, with_sbin
from ..core.types import Cell
from ..core.units import counted
from ..experiment.problems import nearest
from ..sandbox.built_programs import build_directory
from ..sandbox.choose import cannot, guest
from ..sandbox.guest_shell import STDERR, STDOUT, guest_shell, shell_status
from ..sandbox.live_network import live_network
from ..sandbox.netns import NetnsBackend, netns_backend
from ..sandbox.virtual import GuestBackend
from ..store.run_dir import CellDir
from ..store.run_locations import new_directory
from ..testbed.layout import make_layout
from . import terminal
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
    node = _node(args.node, cell)
    backend = _backend(args.backend)
    words = args.words or _interactive()
    if args.words is None and isinstance(backend, GuestBackend) and not terminal.has_terminal():
        raise SpecError("a shell in a guest wants a terminal; for a command without one: --exec COMMAND")
    directory = CellDir((args.out or _new_place(cell)).resolve())
    if directory.root.exists() and any(directory.root.iterdir()):
        raise SpecError(f"{directory.root}: is not empty; another --out starts a new one")
    try:
        if args.words is None:
            print(_greeting(cell, node), file=sys.stderr)
        if isinstance(backend, GuestBackend):
            return _in_guest(backend, cell, directory, node, words)
        return _in_namespaces(backend, cell, directory, node, words)
    finally:
        print(f"netwarp: captures are kept in {directory.capture}", file=sys.stderr)


def _backend(name: str) -> NetnsBackend | GuestBackend:
    """The one asked for; of auto the first that can run here, and says why it is not the first. Raises
    BackendUnavailable."""
    said = ""
    if name in ("auto", "netns"):
        backend, problems = netns_backend(build_directory())
        if not problems:
            return backend
        said = cannot("netns", problems)
        if name == "netns":
            raise BackendUnavailable(said)
    try:
        chosen = guest()
    except BackendUnavailable as error:
        raise BackendUnavailable("\n".join(filter(None, (said, str(error))))) from None
    if name == "auto":
        said += "\nso the network stands in a guest"
    for text in filter(None, (said, chosen.why)):
        print(f"netwarp: {text}", file=sys.stderr)
    assert isinstance(chosen.backend, GuestBackend)
    return chosen.backend


def _in_namespaces(backend: NetnsBackend, cell: Cell, directory: CellDir, node: str, words: Sequence[str]) -> int:
    with live_network(backend, cell, directory) as found:
        environment = {**os.environ, **node_environment(node)}
        status = subprocess.run(found.entering(node, words, at=Path.cwd()), env=environment, check=False).returncode
    return status if status >= 0 else 128 - status


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


def node_environment(node: str) -> dict[str, str]:
    """The environment of what runs on a node: a prompt, and a PATH with sbin, where ip(8) and tc(8) are."""
    path = with_sbin(os.environ.get("PATH", os.defpath))
    return {"PS1": f"{node}# ", "NETWARP_NODE": node, "PATH": path}


def _cell(args: argparse.Namespace) -> Cell:
    """The one cell asked for; of several the first, and says so. Raises SpecError."""
    _, plan = plan_of(args, None if args.backend == "auto" else args.backend)
    cell = plan.cells[0]
    if len(plan.cells) > 1:
        print(
            f"netwarp: {counted(len(plan.cells), 'cell')}; taking the first, {cell.id} (--where chooses another)",
            file=sys.stderr,
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
    return ["bash", "--norc"] if find_executable("bash") else ["sh"]


def _greeting(cell: Cell, node: str) -> str:
    layout = make_layout(cell)
    lines = [f"netwarp: the network of {cell.id} stands; this is {node}, `exit` takes it down"]
    ends = [one for one in layout.interfaces() if one.node in {each.name for each in cell.nodes}]
    lines += [f"  {one.node:<10} {one.ip:<16} on {one.name}" for one in ends]
    others = ", ".join(name for name in layout.namespaces if name != node)
    return "\n".join([*lines, f"  on another node: ip netns exec NODE COMMAND; there is: {others}"])
