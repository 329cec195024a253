"""Connects the user's terminal with that of a command in a guest; without one, prints what the command writes to files.

Used by `netwarp shell`.
"""

from __future__ import annotations

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
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

CHUNK = 65536
LOOK_MS = 50
"""The interval at which files are read for new lines."""


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
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as source:
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
