"""Waits for processes that work in certain directories of this machine."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Collection
from pathlib import Path


def await_end_of_users(directories: Collection[Path], timeout_s: float) -> bool:
    """Wait until every process whose working directory is one of these has ended; whether there was one.

    Seen are the processes that this user may look into (/proc/PID/cwd), in whatever namespaces. Raises TimeoutError.
    """
    places = set()
    for directory in directories:
        with contextlib.suppress(FileNotFoundError):
            places.add(_place(directory))
    handles = []
    poll = select.poll()
    try:
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            # it may end meanwhile, or be another user's
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                handle = os.pidfd_open(int(name))
                handles.append(handle)
                if _place(Path("/proc") / name / "cwd") in places:
                    poll.register(handle, select.POLLIN)
                else:
                    os.close(handles.pop())
        until, left = time.monotonic() + timeout_s, list(handles)
        while left:
            ended = poll.poll(max(0.0, until - time.monotonic()) * 1000)
            if not ended:
                raise TimeoutError(f"{len(left)} processes still work there after {timeout_s} s")
            for handle, _ in ended:
                poll.unregister(handle)
                left.remove(handle)
        return bool(handles)
    finally:
        for handle in handles:
            os.close(handle)


def _place(directory: Path) -> tuple[int, int]:
    state = directory.stat()
    return state.st_dev, state.st_ino
