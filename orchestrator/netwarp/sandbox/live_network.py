"""A cell's network kept up for an interactive shell: captures run, the cell's flows and timeline do not."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..core.errors import BackendUnavailable, CellError
from ..core.executables import find_executable
from ..core.types import Cell
from ..store.init_records import End, Ready
from ..store.ndjson import last
from ..store.run_dir import CellDir
from ..testbed.compile import compile_cell
from ..testbed.layout import Layout, make_layout
from ..testbed.messages import NAMESPACE_FD_BASE
from .cell_verdict import console_tail, records_left
from .netns import NetnsBackend
from .privileges import foreign_owner
from .sandbox import POLL_MS

LONGEST_NS = 7 * 86400 * 10**9
"""After this time the network is taken down even if the shell is still open."""
END_S = 30
"""Normally the sandbox ends at once; one that has not ended by then is killed."""


@dataclass(frozen=True, slots=True)
class LiveNetwork:
    """The network of a cell. `init`: pid, on this machine, of the process that holds it.

    cell-init has bound every namespace to a name for ip(8), in its own mount namespace: `ip netns exec NODE` works
    after entering that.
    """

    layout: Layout
    init: int

    def entering(self, node: str, command: Sequence[str], *, at: Path | None = None) -> list[str]:
        """The command line that runs a command on a node, with its standard input and output as they are."""
        nsenter = find_executable("nsenter")
        if nsenter is None:
            raise BackendUnavailable("there is no nsenter(1) on this machine; apt install util-linux")
        number = self.layout.namespaces.index(node)
        enter = [nsenter, "--target", str(self.init), "--mount", "--pid", "--ipc", "--uts"]
        if os.readlink(f"/proc/{self.init}/ns/user") != os.readlink("/proc/self/ns/user"):
            enter += ["--user", "--preserve-credentials"]
        enter += [f"--net=/proc/{self.init}/fd/{NAMESPACE_FD_BASE + number}"]
        return [*enter, *([] if at is None else [f"--wd={at}"]), "--", *command]


@contextlib.contextmanager
def live_network(backend: NetnsBackend, cell: Cell, directory: CellDir) -> Iterator[LiveNetwork]:
    """Set up the network of a cell, without its flows and timeline. On leaving, the captures in `directory` are
    complete. Raises CellError with the kernel's reason if it cannot be set up.
    """
    quiet = quiet_of(cell)
    backend.prepare(directory, quiet, compile_cell(quiet, backend.clock))
    arguments = backend.command(quiet, directory)
    if backend.user is not None and foreign_owner(directory.root) is not None:
        arguments.append("--root")  # the root of a user namespace could not write there
    with open(directory.log, "wb") as log:
        sandbox = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_until_ready(sandbox, directory)
        yield LiveNetwork(make_layout(quiet), _child_of(sandbox.pid))
    finally:
        sandbox.terminate()  # cell-init ends its captures in good order, and all else with itself
        try:
            sandbox.wait(END_S)
        except subprocess.TimeoutExpired:
            sandbox.kill()
            sandbox.wait()
        backend.remove_programs(directory)


def quiet_of(cell: Cell) -> Cell:
    """The cell with its network and captures only, without an end time."""
    return msgspec.structs.replace(cell, flows=(), timeline=(), duration_ns=LONGEST_NS)


def _wait_until_ready(sandbox: subprocess.Popen[bytes], directory: CellDir) -> None:
    handle = os.pidfd_open(sandbox.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        while last(records_left(directory.init_log), Ready) is None:
            if poll.poll(POLL_MS):
                end = last(records_left(directory.init_log), End)
                tails = (console_tail(file, 1) for file in (directory.console, directory.log))
                reason = (end.message if end else None) or next((tail[0] for tail in tails if tail), "no reason given")
                raise CellError(f"the network could not be set up: {reason}")
    finally:
        os.close(handle)


def _child_of(pid: int) -> int:
    """The only child of a process: netns-exec's is cell-init."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just gone
            # proc_stat(5): the name may hold anything, brackets too
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[1]) == pid:
                return int(stat.parent.name)
    raise CellError("the sandbox ended while its network was set up")
