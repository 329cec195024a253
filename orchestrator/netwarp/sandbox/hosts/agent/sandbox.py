"""A cell's processes on the machine, and what its files say of how far they are."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

IN_MODIFY, IN_CREATE = 0x2, 0x100
EVENTS = 1 << 16


class Changes:
    """Tells when a file of a directory is written or made (inotify)."""

    def __init__(self, directory: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.handle: int = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.handle < 0:
            number = ctypes.get_errno()
            raise OSError(number, "inotify_init1: " + os.strerror(number))
        if libc.inotify_add_watch(self.handle, os.fsencode(directory), IN_MODIFY | IN_CREATE) < 0:
            number = ctypes.get_errno()
            os.close(self.handle)
            raise OSError(number, "inotify_add_watch: " + os.strerror(number), directory)

    def forget(self) -> None:
        """Those that were told."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.handle, EVENTS)

    def close(self) -> None:
        """Watch no longer."""
        os.close(self.handle)


class ChildEnds:
    """Readable when a child of this process may have ended (SIGCHLD)."""

    def __init__(self) -> None:
        self.handle, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def forget(self) -> None:
        """Those that were told."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.handle, EVENTS)


class Sandbox:
    """netns-exec, which holds the cell's namespaces: it ends with this process."""

    def __init__(self, directory: str, interfaces: list[str], flows: list[str]) -> None:
        self.directory = directory
        self.flows = set(flows)
        self.records = b""
        self.offset = 0
        self.mark = ""
        self.changes = Changes(directory)
        words = [directory + "/bin/netns-exec", "--dir", directory, "--parent", str(os.getpid()), "--root"]
        words += [word for name in interfaces for word in ("--interface", name)]
        try:
            with open(directory + "/log.txt", "wb") as log:
                self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        except BaseException:
            self.changes.close()
            raise

    def news(self) -> Iterator[dict[str, Any]]:
        """Events since the last call; `ended` is the last of all."""
        self.changes.forget()
        status = self.process.poll()
        with contextlib.suppress(OSError), open(self.directory + "/init.ndjson", "rb") as file:
            file.seek(self.offset)
            data = file.read()
            self.offset += len(data)
            self.records += data
        while b"\n" in self.records:
            line, _, self.records = self.records.partition(b"\n")
            if line.startswith(b'{"record":"waiting"'):
                yield {"event": "waiting"}
            elif line.startswith(b'{"record":"exit"') and self.flows:
                self.flows.discard(json.loads(line)["id"])
                if not self.flows:
                    yield {"event": "flows over"}
        with contextlib.suppress(OSError), open(self.directory + "/console.txt", "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - 200))
            marks = [line for line in file.read().split(b"\n")[:-1] if line.startswith(b"@")]
            if marks and marks[-1].decode() != self.mark:
                self.mark = marks[-1].decode()
                yield {"event": "time", "seconds": float(self.mark[1:])}
        if status is not None:
            yield {"event": "ended", "status": status}

    def kill(self) -> None:
        """It, and by the kernel all in its namespaces."""
        self.process.kill()
        self.process.wait()
        self.changes.close()
