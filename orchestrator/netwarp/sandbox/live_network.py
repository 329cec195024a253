"""A cell's network kept up for an interactive shell or a command, in namespaces or in a guest: captures run, the cell's
flows and timeline do not.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..core.errors import BackendUnavailable, CellError
from ..core.executables import find_executable
from ..core.types import Cell
from ..store.console import console_tail
from ..store.init_records import End, Exit, Ready
from ..store.ndjson import last, of_kind
from ..store.run_dir import CellDir
from ..testbed.compile import S, compile_cell
from ..testbed.layout import Layout, make_layout
from ..testbed.messages import NAMESPACE_FD_BASE
from ..testbed.steps import Step, step
from .cell_verdict import records_left
from .children import until_end
from .netns import NetnsBackend
from .privileges import foreign_owner
from .virtual import GuestBackend

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
    sandbox = _start(arguments, directory)
    try:
        _wait_until_ready(sandbox, directory)
        yield LiveNetwork(make_layout(quiet), _child_of(sandbox.pid))
    finally:
        sandbox.terminate()  # cell-init ends its captures in good order, and all else with itself
        _wait_for_end(sandbox)
        backend.remove_programs(directory)


def _start(arguments: list[str], directory: CellDir) -> subprocess.Popen[bytes]:
    with directory.log.open("wb") as log:
        return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _wait_for_end(sandbox: subprocess.Popen[bytes]) -> None:
    try:
        sandbox.wait(END_S)
    except subprocess.TimeoutExpired:
        sandbox.kill()
        sandbox.wait()


def quiet_of(cell: Cell) -> Cell:
    """The cell with its network and captures only, without an end time."""
    return msgspec.structs.replace(cell, flows=(), timeline=(), duration_ns=LONGEST_NS)


def _wait_until_ready(sandbox: subprocess.Popen[bytes], directory: CellDir) -> None:
    for _ in until_end(sandbox):
        if last(records_left(directory.init_log), Ready) is not None:
            return
    end = last(records_left(directory.init_log), End)
    tails = (console_tail(file, 1) for file in (directory.console, directory.log))
    reason = (end.message if end else None) or next((tail[0] for tail in tails if tail), "no reason given")
    raise CellError(f"the network could not be set up: {reason}")


def _child_of(pid: int) -> int:
    """The only child of a process: netns-exec's is cell-init."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just gone
            # proc_stat(5): the name may hold anything, brackets too
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[1]) == pid:
                return int(stat.parent.name)
    raise CellError("the sandbox ended while its network was set up")


ID = "shell"
STDOUT, STDERR = "shell.stdout", "shell.stderr"
"""The output of a command without a terminal, in the cell's directory."""
STOP = "stop"
"""A file whose presence ends the guest in good order: no signal can be sent to a process inside it."""
LOOK_NS = S


@contextlib.contextmanager
def guest_shell(
    backend: GuestBackend,
    cell: Cell,
    directory: CellDir,
    node: str,
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    at: Path,
    terminal: str | None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A guest in which the command runs on `node`, in this machine's directory `at`. The guest ends when the command
    does.

    terminal: path of a terminal of this machine for the command; None: its output goes to files. A guest that still
    runs on leaving is asked to end, gets some time to finish its captures, and is then killed.
    """
    quiet = quiet_of(cell)
    compiled = compile_cell(quiet, backend.clock)
    item = _spawn(compiled.layout.namespaces.index(node), node, command, environment, at, terminal is not None)
    verbs = [compiled_step.verb for compiled_step in compiled.steps]
    compiled.steps[verbs.index("progress")] = step("progress", every_ns=LOOK_NS, stop=STOP)
    compiled.steps.insert(verbs.index("ready"), item)
    backend.prepare(directory, quiet, compiled)
    arguments = [*backend.command(quiet, directory), *([] if terminal is None else ["--terminal", terminal])]
    sandbox = _start(arguments, directory)
    try:
        yield sandbox
    finally:
        if sandbox.poll() is None:
            (directory.root / STOP).touch()
            _wait_for_end(sandbox)
        (directory.root / STOP).unlink(missing_ok=True)
        backend.remove_programs(directory)


def shell_status(directory: CellDir) -> int:
    """The exit status of the command, 128 + N if signal N ended it. Raises CellError if it was never started."""
    records = records_left(directory.init_log)
    for exited in of_kind(records, Exit):
        if exited.id == ID:
            return exited.status if exited.status is not None else 128 + (exited.signal or 0)
    end = last(records, End)
    reason = (end.message if end else None) or " ".join(console_tail(directory.console, 1)) or "no reason given"
    raise CellError(f"the command could not be started in the guest: {reason}")


def _spawn(
    namespace: int, node: str, command: Sequence[str], environment: Mapping[str, str], at: Path, terminal: bool
) -> Step:
    # env(1) of coreutils goes to the directory: cell-init starts everything in the cell's own
    arguments = ["env", f"--chdir={at}", *command]
    return step(
        "spawn", id=ID, ns=namespace, stdout=STDOUT, stderr=STDERR, flow=1, terminal=int(terminal),
        arg=arguments, env=[f"{key}={value}" for key, value in environment.items()],
        command=f"ip netns exec {node} {' '.join(arguments)}",
    )  # fmt: skip
