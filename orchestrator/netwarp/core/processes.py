"""Waits for processes that work in certain directories of this machine; the signals that end a process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Collection
from pathlib import Path


def ending_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM, and the signal of a terminal that goes away, unless that is ignored (nohup)."""
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGTERM, *hangup)


def await_end_of_users(directories: Collection[Path], timeout_s: float) -> bool:
    """Wait until every process whose working directory is one of these has ended; whether there was one.

    Seen are the processes that this user may look into (/proc/PID/cwd), in whatever namespaces. Raises TimeoutError.
    """
    places = set()
    for directory in directories:
        with contextlib.suppress(FileNotFoundError):
            places.add(_place(directory))
    poll = select.poll()
    users: dict[int, int] = {}
    try:
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid() and _works_in(name, places):
                with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                    handle = os.pidfd_open(int(name))
                    users[handle] = int(name)
                    poll.register(handle, select.POLLIN)
        left, until = set(users), time.monotonic() + timeout_s
        while left:
            ended = poll.poll(max(0.0, until - time.monotonic()) * 1000)
            if not ended:
                pids = ", ".join(str(users[handle]) for handle in sorted(left))
                raise TimeoutError(f"after {timeout_s} s processes still work there: {pids}")
            for handle, _ in ended:
                poll.unregister(handle)
                left.remove(handle)
        return bool(users)
    finally:
        for handle in users:
            os.close(handle)


def _works_in(pid: str, places: Collection[tuple[int, int]]) -> bool:
    try:
        return _place(Path("/proc") / pid / "cwd") in places
    except OSError:  # it has ended, or is another user's
        return False


def _place(directory: Path) -> tuple[int, int]:
    state = directory.stat()
    return state.st_dev, state.st_ino
