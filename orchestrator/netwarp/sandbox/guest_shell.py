"""A command on a node of a cell's network in a guest: network and captures last as long as the command."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..core.errors import CellError
from ..core.types import Cell
from ..store.init_records import End, Exit
from ..store.ndjson import last, of_kind
from ..store.run_dir import CellDir
from ..testbed.compile import S, compile_cell
from ..testbed.steps import Step, step
from .cell_verdict import console_tail, records_left
from .live_network import END_S, quiet_of
from .virtual import GuestBackend

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
    with open(directory.log, "wb") as log:
        sandbox = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        yield sandbox
    finally:
        if sandbox.poll() is None:
            (directory.root / STOP).touch()
            try:
                sandbox.wait(END_S)
            except subprocess.TimeoutExpired:
                sandbox.kill()
                sandbox.wait()
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
