"""One connection: the controller's commands, one after the other, and what there is to tell of the sandbox meanwhile.

`put` is followed by its bytes. When standard input ends, or is silent for SILENCE_S, the sandbox is killed and
everything is put back.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import select
import shutil
import signal
import subprocess
import time
import zlib
from typing import Any

from .controller import Gone, Refused, say, write_all
from .fitness import check_interface, check_machine, facts, missing, need_tools
from .interfaces import CELL, LEASE, STATE, keep, put_back, recorded
from .namespaces import Namespaces
from .sandbox import ChildEnds, Sandbox

SILENCE_S = 60
BUSY_S = 20
BLOCK = 1 << 16


class Serving:
    """The state of one connection."""

    def __init__(self) -> None:
        self.pending = b""
        self.heard = time.monotonic()
        self.locks: list[int] = []
        self.leases = False
        self.directory = ""
        self.sandbox: Sandbox | None = None
        self.namespaces = Namespaces()
        self.children = ChildEnds()

    def serve(self) -> None:
        """Until the controller goes."""
        try:
            say(event="hello", kernel=platform.release(), version=platform.version(), machine=platform.machine(),
                uid=os.geteuid())  # fmt: skip
            while True:
                message = json.loads(self.line())
                command = message.pop("command")
                if command == "alive":
                    continue
                try:
                    say(answer=command, **(getattr(self, "do_" + command)(**message) or {}))
                except Refused as refused:
                    say(answer=command, refused=str(refused), remedy=refused.remedy)
                except (OSError, subprocess.SubprocessError) as error:
                    say(answer=command, refused=str(error), remedy="")
        except (Gone, BrokenPipeError):
            pass
        finally:
            self.clean()

    def clean(self) -> list[str]:
        """Leave nothing."""
        if self.sandbox is not None:
            self.sandbox.kill()
            self.sandbox = None
        said = []
        if self.directory:
            self.namespaces.take_back(recorded())
            said = put_back()
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = ""
        if self.leases:
            # the machine is given away when the agent of its last cell has put everything back
            handle = os.open(CELL, os.O_RDWR | os.O_CREAT, 0o600)
            if self.lock(handle, BUSY_S):
                os.unlink(CELL)
            os.unlink(LEASE)
            self.leases = False
        while self.locks:
            os.close(self.locks.pop())
        with contextlib.suppress(OSError):
            os.rmdir(STATE)
        return said

    # the connection

    def receive(self) -> None:
        """Wait for more of standard input; the sandbox's events are told meanwhile."""
        sources = [0, self.children.handle]
        if self.sandbox is not None:
            sources.append(self.sandbox.changes.handle)
        left = self.heard + SILENCE_S - time.monotonic()
        there = select.select(sources, [], [], max(0.0, left))[0]
        if self.children.handle in there:  # before the sandbox is asked: one that ends after that is told again
            self.children.forget()
        if 0 in there:
            data = os.read(0, 1 << 20)
            if not data:
                raise Gone
            self.pending += data
            self.heard = time.monotonic()
        elif time.monotonic() - self.heard >= SILENCE_S:
            raise Gone
        if self.sandbox is not None and there != [0]:
            self.tell()

    def tell(self) -> None:
        """The sandbox's events."""
        sandbox = self.sandbox
        assert sandbox is not None
        for event in sandbox.news():
            if event["event"] == "waiting":  # it has made them all
                self.namespaces.hold(sandbox.process.pid)
            say(**event)
            if event["event"] == "ended":
                sandbox.changes.close()
                self.sandbox = None

    def line(self) -> bytes:
        """The next command."""
        while b"\n" not in self.pending:
            self.receive()
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def bytes(self, count: int) -> bytes:
        """The bytes that follow a command."""
        while len(self.pending) < count:
            self.receive()
        data, self.pending = self.pending[:count], self.pending[count:]
        return data

    def lock(self, handle: int, wait_s: int) -> bool:
        """True if this connection has the lock now, or gets it within the time."""

        def over(number: int, frame: object) -> None:
            raise TimeoutError

        try:
            if not wait_s:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                signal.signal(signal.SIGALRM, over)
                signal.alarm(wait_s)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX)
                finally:
                    signal.alarm(0)
        except (BlockingIOError, TimeoutError):
            return False
        self.locks.append(handle)
        return True

    # commands

    def do_clock(self) -> dict[str, Any]:
        """CLOCK_REALTIME now."""
        return {"t_ns": time.time_ns()}

    def do_lease(self, token: str, who: str) -> dict[str, Any]:
        """Take the machine for a run; puts back what a killed agent left."""
        if os.geteuid() != 0:
            raise Refused("is not root there", "ansible_become: true, with sudo that asks for no password")
        os.makedirs(STATE, mode=0o755, exist_ok=True)
        handle = os.open(LEASE, os.O_RDWR | os.O_CREAT, 0o600)
        if not self.lock(handle, 0):
            holder = os.read(handle, 4000).decode(errors="replace").partition("\n")[2].strip()
            os.close(handle)
            raise Refused("another run uses this machine: " + (holder or "just begun"), "wait until it has ended")
        os.ftruncate(handle, 0)
        os.write(handle, (token + "\n" + who + "\n").encode())
        self.leases = True
        cell = os.open(CELL, os.O_RDWR | os.O_CREAT, 0o600)
        if not self.lock(cell, BUSY_S):
            raise Refused("the cell of a run that has gone does not end", "end the netns-exec there")
        os.close(self.locks.pop())
        return {"left": put_back()}

    def do_check(self, interfaces: list[str], directory: str, room_bytes: int) -> dict[str, Any]:
        """Problems, and what is known of the interfaces. Changes nothing (but for modules that a socket loads)."""
        need_tools()
        problems = [problem for name in interfaces for problem in check_interface(name)]
        problems += check_machine(directory, room_bytes)
        return {"problems": problems, "interfaces": facts(interfaces)}

    def do_missing(self, features: list[str]) -> dict[str, Any]:
        """The ones among these that its kernel cannot do. Changes nothing (but for modules that trying one loads)."""
        need_tools()
        return {"missing": missing(features)}

    def do_cell(self, token: str, directory: str) -> None:
        """A new directory for a cell, on a machine that is leased by this token."""
        lease = os.open(LEASE, os.O_RDWR)
        try:
            fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            raise Refused("nobody holds this machine for the run any more")
        except BlockingIOError:
            if os.read(lease, 4000).decode().partition("\n")[0] != token:
                raise Refused("another run uses this machine") from None
        finally:
            os.close(lease)
        if not self.lock(os.open(CELL, os.O_RDWR | os.O_CREAT, 0o600), BUSY_S):
            raise Refused("the cell before does not end")
        self.directory = directory + "/netwarp-" + token
        shutil.rmtree(self.directory, ignore_errors=True)
        for name in ("bin", "apps", "capture"):
            os.makedirs(self.directory + "/" + name)

    def do_put(self, path: str, size: int, executable: bool = False) -> None:
        """A file of the cell's; its bytes follow, compressed (zlib)."""
        data = zlib.decompress(self.bytes(size))
        name = self.directory + "/" + path
        with open(name + ".new", "wb") as file:
            file.write(data)
        os.chmod(name + ".new", 0o755 if executable else 0o644)
        os.replace(name + ".new", name)

    def do_start(self, interfaces: list[str], flows: list[str]) -> None:
        """The sandbox; its record of the interfaces first."""
        keep(self.directory, interfaces)
        self.sandbox = Sandbox(self.directory, interfaces, flows)

    def do_files(self) -> dict[str, Any]:
        """The files that the sandbox left: path -> bytes."""
        sizes = {}
        for folder, _, names in os.walk(self.directory):
            for name in names:
                path = os.path.join(folder, name)
                if not path.startswith((self.directory + "/bin/", self.directory + "/init.reserve")):
                    sizes[os.path.relpath(path, self.directory)] = os.path.getsize(path)
        sizes.pop("init", None)
        return {"sizes": sizes}

    def do_get(self, path: str) -> None:
        """A file: an event with its size, its bytes, then the answer."""
        with open(self.directory + "/" + path, "rb") as file:
            size = os.path.getsize(file.name)
            say(event="file", path=path, size=size)
            while size:
                data = file.read(min(BLOCK, size))
                if not data:
                    raise Gone
                size -= len(data)
                write_all(data)

    def do_finish(self) -> dict[str, Any]:
        """The end of the cell: what could not be put back."""
        return {"left": self.clean()}


def main() -> None:
    """As long as the controller lives."""
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"

    def leave(number: int, frame: object) -> None:
        raise Gone

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, leave)
    Serving().serve()
