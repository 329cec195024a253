"""Runs the commands of a build: their output goes to one log file, progress is counted, and no child outlives
netwarp.
"""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from ..core.errors import DoesNotBuild, KernelError
from ..core.executables import with_sbin

# setpriv (util-linux) because preexec_fn is not safe in a process with threads
_DIE_WITH_US = ("setpriv", "--pdeathsig", "TERM")
_COMPILED = re.compile(rb"  (?:CC|AS|HOSTCC) ")
_TAIL_LINES = 15
_COMPILER_SAYS = re.compile(rb"\S+:\d+(?::\d+)?: (?:fatal )?error: |.*: undefined reference to ")
_ERRORS_SHOWN = 8
# compilers and make say it so (LC_ALL=C); the kernel kills a compiler when memory ends
_OF_THE_MACHINE = re.compile(
    rb"No space left on device|Disk quota exceeded|Input/output error|Read-only file system"
    rb"|Cannot allocate memory|memory exhausted|\bKilled\b"
)
_NOT_STARTED = (126, 127)


@dataclasses.dataclass(frozen=True)
class Progress:
    """The progress of a build. `done` of about `total` objects while compiling, else 0 of 0. `elapsed_s` since its
    start.
    """

    stage: str
    done: int
    total: int
    elapsed_s: float


class Runner:
    """Plays commands one after another with one environment and one log."""

    def __init__(
        self, log: BinaryIO, log_path: Path, identity: Mapping[str, str], progress: Callable[[Progress], None]
    ) -> None:
        """`identity`: KBUILD_BUILD_* of the recipe. No variable of the caller's environment that kbuild reads is passed
        on.
        """
        self._log = log
        self._log_path = log_path
        self._progress = progress
        self._started = time.monotonic()
        keep = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
        path = with_sbin(os.environ.get("PATH", os.defpath))
        self._environment = {**keep, "PATH": path, "LC_ALL": "C", **identity}
        self.stage = ""
        self.objects = 0

    def enter(self, stage: str) -> None:
        """A new stage begins."""
        self.stage = stage
        self._report(0, 0)

    def run(self, command: list[str], cwd: Path, objects: int = 0) -> None:
        """Run one command to its end; `objects`: about how many it compiles. Raises KernelError with the compiler's
        errors, or the log's end; DoesNotBuild if make failed, and not for want of space or memory.

        Whatever ends this call early (Ctrl-C too) ends the command's whole process group first; if we are killed, the
        command gets SIGTERM, which make passes on to its children.
        """
        self._log.write(f"$ {' '.join(command)}\n".encode())
        self._log.flush()
        tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        errors: list[bytes] = []
        done = 0
        fault_of_source = command[0] == "make"
        process = subprocess.Popen(
            [*_DIE_WITH_US, *command],
            cwd=cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                self._log.write(line)
                tail.append(line)
                if _OF_THE_MACHINE.search(line):
                    fault_of_source = False
                if _COMPILER_SAYS.match(line):
                    errors.append(line)
                if objects and _COMPILED.match(line):
                    done += 1
                    self._report(done, max(done, objects))
            status = process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()
            self._log.flush()
        self.objects += done
        if status != 0:
            last = b"".join(errors[:_ERRORS_SHOWN] or tail).decode(errors="replace").rstrip()
            if len(errors) > _ERRORS_SHOWN:
                last += f"\n... and {len(errors) - _ERRORS_SHOWN} more errors"
            if status < 0 or status in _NOT_STARTED:
                fault_of_source = False
            raise (DoesNotBuild if fault_of_source else KernelError)(
                f"the kernel build failed while it {self.stage}: {' '.join(command)} ended with status {status}\n"
                f"{last}\nThe whole log: {self._log_path}"
            )

    def _report(self, done: int, total: int) -> None:
        self._progress(Progress(self.stage, done, total, time.monotonic() - self._started))
