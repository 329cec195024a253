"""The processes of sandboxes and guests: started in a process group of their own, awaited, ended from any thread."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.inside import inside

POLL_MS = 200


class NoMoreChildren(Exception):
    """No process is started any more."""


class Children:
    """Those that run now. After `stop` none is started any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self.stopped = False

    @contextlib.contextmanager
    def running(
        self, command: Sequence[str], log: Path, descriptors: Sequence[int] = ()
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start one, with its output in the file `log` and these descriptors; it is ended on leaving. Raises
        NoMoreChildren.
        """
        with inside(log).open("wb") as output, self._lock:
            if self.stopped:
                raise NoMoreChildren
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=descriptors,
            )
            self._running.add(child)
        try:
            yield child
        finally:
            with self._lock:
                self._running.discard(child)
            _kill(child)
            child.wait()

    def stop(self) -> None:
        """End all at once, from any thread."""
        with self._lock:
            self.stopped = True
            for child in self._running:
                _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):  # it ended just now
            os.killpg(child.pid, signal.SIGKILL)


def until_end(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Yields every POLL_MS until the process has ended."""
    handle = os.pidfd_open(child.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        while not poll.poll(POLL_MS):
            yield
    finally:
        os.close(handle)
