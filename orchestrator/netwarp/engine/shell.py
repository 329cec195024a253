"""Keeps up the network of a cell for a command on one of its nodes; captures run meanwhile."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..core.built_programs import BUILD
from ..core.errors import BackendUnavailable, SpecError
from ..core.executables import with_sbin
from ..core.types import Cell
from ..experiment.problems import nearest
from ..sandbox.choose import cannot, guest
from ..sandbox.live_network import live_network
from ..sandbox.netns import NetnsBackend, netns_backend
from ..sandbox.virtual import GuestBackend
from ..store.run_dir import CellDir
from ..store.run_locations import new_directory
from .events import Notice, Progress, no_progress


def shell_backend(name: str, progress: Progress = no_progress) -> NetnsBackend | GuestBackend:
    """The back end of this name (auto, netns, guest); auto: the first that can run here, with a Notice why not netns.
    Raises BackendUnavailable.
    """
    problem = ""
    if name in ("auto", "netns"):
        backend, problems = netns_backend(BUILD)
        if not problems:
            return backend
        problem = cannot("netns", problems)
        if name == "netns":
            raise BackendUnavailable(problem)
    try:
        chosen = guest()
    except BackendUnavailable as error:
        raise BackendUnavailable("\n".join(filter(None, (problem, str(error))))) from None
    if name == "auto":
        problem += "\nso the network stands in a guest"
    for text in filter(None, (problem, chosen.why)):
        progress(Notice(text))
    assert isinstance(chosen.backend, GuestBackend)
    return chosen.backend


def shell_node(name: str | None, cell: Cell) -> str:
    """The node of this name; None: the first host. Raises SpecError."""
    names = [node.name for node in cell.nodes]
    if name is not None and name not in names:
        raise SpecError(f'--node {name}: there is no node "{name}"{nearest(name, names)}')
    return name or next(node.name for node in cell.nodes if node.kind == "host")


def shell_directory(cell: Cell, out: Path | None) -> CellDir:
    """A new directory for the captures. Raises SpecError if `out` holds files."""
    root = out if out is not None else new_directory(Path("results") / cell.spec / "shell").root
    directory = CellDir(root.resolve())
    if directory.root.exists() and any(directory.root.iterdir()):
        raise SpecError(f"{directory.root}: is not empty; another --out starts a new one")
    return directory


def run_on_node(backend: NetnsBackend, cell: Cell, directory: CellDir, node: str, words: Sequence[str]) -> int:
    """Run a command on a node with this process's standard input and output. Returns its exit status, 128 + N if signal
    N ended it.
    """
    with live_network(backend, cell, directory) as network:
        environment = {**os.environ, **node_environment(node)}
        command = network.entering(node, words, at=Path.cwd())
        status = subprocess.run(command, env=environment, check=False).returncode
    return status if status >= 0 else 128 - status


def node_environment(node: str) -> dict[str, str]:
    """The environment of a command on a node: a prompt, and a PATH with sbin for ip(8) and tc(8)."""
    path = with_sbin(os.environ.get("PATH", os.defpath))
    return {"PS1": f"{node}# ", "NETWARP_NODE": node, "PATH": path}
