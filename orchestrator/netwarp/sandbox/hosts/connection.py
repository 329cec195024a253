"""A connection to a machine: ssh, and at its other end the agent."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import subprocess
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from ...core.errors import CellError, StoreError
from ...core.inside import inside
from ...core.limits import limits
from ...core.types import Problem
from .agent import MODULES
from .answers import MOST_LINE, MOST_MESSAGES, decoded
from .inventory import Machine

AGENT = Path(__file__).with_name("agent")
ANSWER_S = 60.0
HELLO_S = 40.0
ALIVE_S = 10.0
CLOCK_EXCHANGES, GOOD_BOUND_NS = 100, 300_000
"""The clocks are compared so often at most, and until this bound is met."""
_BOOT = """import json, os, sys, types
def take(n):
    b = b""
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c:
            raise SystemExit
        b += c
    return b
package = sys.modules["netwarp_agent"] = types.ModuleType("netwarp_agent")
package.__path__ = []
for name, source in json.loads(take(int(take(8)))):
    module = types.ModuleType("netwarp_agent." + name)
    module.__package__ = "netwarp_agent"
    sys.modules[module.__name__] = module
    setattr(package, name, module)
    exec(compile(source, "netwarp_agent/" + name, "exec"), module.__dict__)
package.serve.main()
"""
MOST_SHOWN = 500
"""Bytes of a line that is no message."""
Event = dict[str, Any]
GONE = "gone"


class MachineError(CellError):
    """The reason why a machine cannot be used, and a remedy."""

    def __init__(self, machine: str, what: str, remedy: str = "") -> None:
        super().__init__(f"machine {machine}: {what}")
        self.remedy = remedy

    @property
    def problem(self) -> Problem:
        """As a back end's problem."""
        return Problem(str(self), self.remedy or "correct the inventory, or the machine")


class MachineLink:
    """An agent on a machine; it and all that it made there end with this. Raises MachineError."""

    def __init__(self, machine: Machine, events: queue.SimpleQueue[tuple[str, Event]] | None = None) -> None:
        self.machine = machine
        self.events = events
        self._answers: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._receiving = Path(os.devnull)
        self._errors: deque[str] = deque(maxlen=20)
        self._most = limits().capture_bytes
        self._writing = threading.Lock()
        remote = f"{shlex.quote(machine.python)} -ISc {shlex.quote(_BOOT)}"
        words = [*machine.ssh, f"sudo -n {remote}" if machine.become else remote]
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise MachineError(machine.name, f"{words[0]} cannot be run: {error.strerror}") from error
        self._closed = threading.Event()
        self._error_reader = threading.Thread(target=self._read_errors, daemon=True)
        self._error_reader.start()
        for task in (self._read, self._keep_alive):
            threading.Thread(target=task, daemon=True).start()
        sources = [(name, (AGENT / f"{name}.py").read_text()) for name in MODULES]
        source = json.dumps(sources).encode()
        try:
            self._write(f"{len(source):8}".encode() + source)
            self.hello = self._answer(HELLO_S, "hello")
        except BaseException:
            self.close()
            raise

    def ask(self, command: str, /, *, data: bytes = b"", timeout_s: float = ANSWER_S, **fields: Any) -> Event:
        """Send a command (and what follows it) and wait for its answer. Without one the connection ends."""
        if self._closed.is_set():
            raise MachineError(self.machine.name, f"`{command}` was not sent: the connection has ended")
        self._write(json.dumps({"command": command, **fields}).encode() + b"\n" + data)
        return self._answer(timeout_s, command)

    def put(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """A file of the cell's."""
        packed = zlib.compress(data)
        self.ask("put", path=path, size=len(packed), executable=executable, data=packed)

    def get(self, path: str, to: Path) -> None:
        """Fetch a file of the cell's."""
        self._receiving = to
        self._write(json.dumps({"command": "get", "path": path}).encode() + b"\n")
        self._answer(ANSWER_S, "get")

    def clock(self) -> tuple[int, int]:
        """(offset, bound): the machine's CLOCK_REALTIME less ours, in ns, and by how much that may be wrong.

        The machine read its clock between our sending and our receiving, so half of the shortest exchange is a bound,
        whatever the network did.
        """
        best: tuple[int, int] | None = None
        for _ in range(CLOCK_EXCHANGES):
            before = time.time_ns()
            there = int(self.ask("clock")["t_ns"])
            took = time.time_ns() - before
            if took >= 0 and (best is None or took < best[0]):
                best = (took, there - before - took // 2)
                if took // 2 < GOOD_BOUND_NS:
                    break
        if best is None:
            raise MachineError(self.machine.name, "our own clock was set while it was compared")
        return best[1], best[0] // 2 + 1

    @property
    def ended(self) -> bool:
        """Whether it was ended: nothing can be asked any more."""
        return self._closed.is_set()

    def close(self) -> None:
        """End the agent, and wait until it has cleaned up or cannot be reached."""
        self._closed.set()
        with contextlib.suppress(OSError), self._writing:
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def abandon(self) -> None:
        """End it at once, from any thread; the agent cleans up by itself."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._process.kill()

    def why_gone(self) -> MachineError:
        """The message of ssh, and a remedy."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        self._error_reader.join(2)  # its last line may still be in the pipe
        said = next((line for line in reversed(self._errors) if line.strip()), "the connection ended")
        name = self.machine.name
        remedy = f"try: {shlex.join(self.machine.ssh)} true"
        if "password is required" in said or "sudo:" in said:
            return MachineError(name, said, "let the user become root without a password (NOPASSWD in sudoers)")
        if "python" in said and ("not found" in said or "No such file" in said):
            return MachineError(name, said, "apt-get install python3, or set ansible_python_interpreter")
        return MachineError(name, said, remedy)

    def _write(self, data: bytes) -> None:
        try:
            with self._writing:
                assert self._process.stdin is not None
                self._process.stdin.write(data)
                self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self.why_gone() from error

    def _answer(self, timeout_s: float, command: str) -> Event:
        try:
            answer = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            self.abandon()  # else a late answer would be taken for that to the next command
            text = f"no answer to `{command}` in {timeout_s:.0f} s"
            raise MachineError(self.machine.name, text, "is it overloaded, or stopped?") from None
        if answer.get("event") == GONE:
            self._answers.put(answer)
            raise self.why_gone()
        if answer.get("answer", answer.get("event")) != command:
            self.abandon()
            raise MachineError(self.machine.name, f"what answers `{command}` is no agent of netwarp's")
        if "refused" in answer:
            raise MachineError(self.machine.name, str(answer["refused"]), str(answer.get("remedy", "")))
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        out = self._process.stdout
        try:
            with contextlib.suppress(ValueError, OSError), out:
                for _ in range(MOST_MESSAGES):
                    if not (line := out.readline(MOST_LINE)) or not self._take(line, out):
                        break
        except StoreError as error:
            self._errors.append(str(error))
        finally:
            self._answers.put({"event": GONE})
            if self.events is not None:
                self.events.put((self.machine.name, {"event": GONE}))

    def _take(self, line: bytes, out: IO[bytes]) -> bool:
        """One message. False: nothing more is read. Raises StoreError, OSError: a file cannot be written here."""
        try:
            message = decoded(line)
        except ValueError as error:
            shown = line[:MOST_SHOWN].decode(errors="replace").strip()
            if line.startswith(b"{"):  # and no line that a login shell prints
                raise StoreError(f"sends what no agent of netwarp does: {error}: {shown}") from error
            self._errors.append(shown)
            return True
        if message.get("event") == "file":
            if message["size"] > self._most:
                self._errors.append(f"sends a file of more than {self._most} bytes")
                return False
            with inside(self._receiving).open("wb") as file:
                left = message["size"]
                while left and (data := out.read(min(left, 1 << 16))):
                    file.write(data)
                    left -= len(data)
        elif "answer" in message or message.get("event") == "hello":
            self._answers.put(message)
        elif self.events is not None:
            self.events.put((self.machine.name, message))
        return True

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError, OSError), self._process.stderr as errors:
            while line := errors.readline(MOST_LINE):
                self._errors.append(line[:MOST_SHOWN].decode(errors="replace").strip())

    def _keep_alive(self) -> None:
        while not self._closed.wait(ALIVE_S):
            with contextlib.suppress(MachineError):
                self._write(b'{"command": "alive"}\n')


Events = queue.SimpleQueue[tuple[str, Event]]
"""(machine, event) in the order in which they came."""


class Watch:
    """The events of each machine so far."""

    def __init__(self, events: Events, progress: Callable[[float], None]) -> None:
        self._events = events
        self._progress = progress
        self._seen: dict[str, set[str]] = {}
        self.ended: set[str] = set()

    def until(self, what: str, machines: set[str], limit_s: float) -> bool:
        """Wait for an event of each of them; False where a machine has ended before. Raises MachineError: one has gone,
        or says nothing for too long."""
        deadline = time.monotonic() + limit_s
        while True:
            seen = self._seen.setdefault(what, set())
            if machines <= seen | self.ended:
                return machines <= seen or what == "ended"
            if what == "waiting" and self.ended:
                return False
            for name, event in self._take(deadline, what, machines - seen):
                if event["event"] == GONE:
                    raise MachineError(name, "the connection ended in the middle of the cell", "is it up?")
                if event["event"] == "time":
                    self._progress(event["seconds"])
                if event["event"] == "ended":
                    self.ended.add(name)
                self._seen.setdefault(event["event"], set()).add(name)

    def _take(self, deadline: float, what: str, missing: set[str]) -> Iterator[tuple[str, Event]]:
        try:
            yield self._events.get(timeout=max(0.01, deadline - time.monotonic()))
        except queue.Empty:
            text = f"`{what}` did not come"
            raise MachineError(", ".join(sorted(missing)), text, "is it overloaded?") from None
