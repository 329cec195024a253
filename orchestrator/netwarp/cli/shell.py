"""`netwarp shell`: a shell, or one command, on a node of a cell's network, captures running.

The shell of a guest is tied to the user's terminal; without one, what a command writes to files is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

from ..core.errors import SpecError
from ..core.executables import find_executable
from ..core.lines import columns, lines_text
from ..core.types import Cell
from ..core.units import counted
from ..engine.shell import node_environment, run_on_node, shell_backend, shell_directory, shell_node
from ..sandbox.live_network import STDERR, STDOUT, guest_shell, shell_status
from ..sandbox.virtual import GuestBackend
from ..store.run_dir import CellDir
from ..testbed.layout import make_layout
from .places import new_folder
from .progress import TerminalProgress
from .run import add_plan_arguments, plan_of

CHUNK = 65536
LOOK_MS = 50
"""The interval at which files are read for new lines."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "shell", example="netwarp shell choi2009 --where outage='10 s' --node b --exec ip route",
        description="Opens a shell on a node of a cell's network, with captures running, without its flows and events; "
        "leaving the shell takes the network down.",
    )  # fmt: skip
    add_plan_arguments(parser)
    parser.add_argument("--node", help="where the shell runs (default: the first host)")
    parser.add_argument(
        "--backend", default="auto", choices=("auto", "guest", "netns"),
        help="netns: namespaces on this machine's own kernel; guest: a guest's, on the wall clock; "
        "auto (default): netns, where it cannot run guest",
    )  # fmt: skip
    parser.add_argument(
        "--out",
        type=new_folder,
        metavar="DIR",
        help="where captures are kept (default: results/<name>/shell/<UTC time>/)",
    )
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
    if args.words is None and isinstance(backend, GuestBackend) and not has_terminal():
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
    if has_terminal():
        with (
            tied() as tie,
            guest_shell(
                backend, cell, directory, node, words, environment=environment, at=Path.cwd(), terminal=tie.path
            ) as sandbox,
        ):
            tie.relay(sandbox)
    else:
        streams: dict[Path, IO[bytes]] = {
            directory.root / STDOUT: sys.stdout.buffer,
            directory.root / STDERR: sys.stderr.buffer,
        }
        with guest_shell(
            backend, cell, directory, node, words, environment=environment, at=Path.cwd(), terminal=None
        ) as sandbox:
            follow(streams, sandbox)
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
    rows = [(end.node, str(end.ip), f"on {end.name}") for end in ends]
    lines += [lines_text([line]) for line in columns(rows, indent="  ")]
    others = ", ".join(name for name in layout.namespaces if name != node)
    return "\n".join([*lines, f"  on another node: ip netns exec NODE COMMAND; there is: {others}"])


def has_terminal() -> bool:
    """True if standard input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


class Tie:
    """A pseudo-terminal (pty): `ours` is this process's end; the guest opens the other end, the device `path`."""

    def __init__(self, ours: int, path: str) -> None:
        self.ours = ours
        self.path = path

    def same_size(self) -> None:
        """Give it the size of the user's terminal."""
        size = fcntl.ioctl(sys.stdin.fileno(), termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, size)

    def relay(self, process: subprocess.Popen[bytes]) -> None:
        """Copy between it and the user's terminal until the process has ended and all it said is shown."""
        handle = os.pidfd_open(process.pid)
        try:
            _copy(self.ours, handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def tied() -> Iterator[Tie]:
    """A new pseudo-terminal with the size of the user's terminal, which is in raw mode within the block, so that Ctrl-C
    too goes to the guest. SIGTERM and SIGHUP raise KeyboardInterrupt.
    """
    ours, other = pty.openpty()
    with contextlib.ExitStack() as stack:
        tie = Tie(ours, os.ttyname(other))
        stack.callback(os.close, ours)
        # held open: reading `ours` fails while nobody has the other end open, and the guest opens it later
        stack.callback(os.close, other)
        tty.setraw(other)
        tie.same_size()
        before = termios.tcgetattr(sys.stdin)
        stack.callback(_restore, before)
        for number, handler in (
            (signal.SIGWINCH, lambda *_: tie.same_size()), (signal.SIGTERM, _interrupt), (signal.SIGHUP, _interrupt),
        ):  # fmt: skip
            stack.callback(signal.signal, number, signal.signal(number, handler))
        tty.setraw(sys.stdin)
        yield tie


def _restore(modes: list[Any]) -> None:
    with contextlib.suppress(termios.error):  # a window that was closed has none
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)


def _copy(ours: int, handle: int) -> None:
    typing = sys.stdin.fileno()
    poll = select.poll()
    for descriptor in (ours, typing, handle):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if ours in ready:
            _write(sys.stdout.fileno(), os.read(ours, CHUNK))
        elif handle in ready:
            return
        if typing in ready:
            try:
                data = os.read(typing, CHUNK)
            except OSError:  # its other end is closed
                data = b""
            if not data:
                raise KeyboardInterrupt
            _write(ours, data)


def follow(files: dict[Path, IO[bytes]], process: subprocess.Popen[bytes]) -> None:
    """Copy what a process appends to files, each to its stream, until the process has ended."""
    at = dict.fromkeys(files, 0)
    handle = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        over = False
        while not over:
            over = bool(poll.poll(LOOK_MS))
            for path, stream in files.items():
                with contextlib.suppress(FileNotFoundError), path.open("rb") as source:
                    source.seek(at[path])
                    while data := source.read(CHUNK):
                        at[path] += len(data)
                        stream.write(data)
                        stream.flush()
    finally:
        os.close(handle)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
