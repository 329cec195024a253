"""Programs that a cell brings beside netwarp's own: the user's, and senders for another processor (`arch = "arm64"`).
Finds them on this machine, identifies them, and refuses those that cannot run.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePath

from ..core.executables import find_executable
from ..core.inside import inside
from ..core.types import Cell, Check
from ..core.unpacked import UNPACKED_PACKAGES
from ..experiment.programs import UNPACKED
from ..testbed.arguments import EMULATORS, archs, sender_file, spun_file

SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The path in which cell-init looks a program up (apps/cell-init/process.c, DEFAULT_PATH)."""
PACKAGES = {"iperf3": "iperf3", "ping": "iputils-ping"}
"""Debian's."""
VERSION = {"iperf3": "--version", "ping": "-V", "qemu-aarch64-static": "--version"}
"""The commands that print the version of the ready-made programs. Other programs are not run for it."""
ANSWER_S = 10
_BELOW = re.compile(rf"\{{{UNPACKED}\}}/(?:usr/)?s?bin/[\w.+-]+")


def _lists(cell: Cell) -> Iterator[tuple[str, tuple[str, ...]]]:
    for flow in cell.flows:
        if flow.program is not None:
            yield from (
                (flow.name, arguments) for arguments in (flow.program.sender, flow.program.receiver) if arguments
            )


def _programs(cell: Cell) -> Iterator[tuple[str, str]]:
    """The programs that start, and those of unpacked packages that their arguments name (a shell's, say)."""
    for flow, arguments in _lists(cell):
        own = [arguments[0], *(path for text in arguments for path in _BELOW.findall(text))]
        yield from ((flow, each.replace(f"{{{UNPACKED}}}", str(UNPACKED_PACKAGES))) for each in dict.fromkeys(own))


def missing_program(cell: Cell) -> str:
    """The first program that is not installed on this machine, and how to get it; "" if all are."""
    for flow, program in _programs(cell):
        if find_executable(program, path=SEARCHED) is None:
            if Path(program).is_relative_to(UNPACKED_PACKAGES):
                return f"flow {flow}: {program} is not there; make programs unpacks it"
            package = PACKAGES.get(PurePath(program).name)
            remedy = f"apt install {package}" if package else f"install it in one of {SEARCHED}, or give its path"
            return f"flow {flow}: there is no program {program} on this machine; {remedy}"
    return ""


def check_spinning(cell: Cell, directory: Path, t0_ns: int) -> list[Check]:
    """For each end of a flow that spun on the virtual clock: since when it is put to sleep (docs/limitations.md)."""
    checks = []
    for flow in cell.flows:
        for role in ("sender", "receiver"):
            path = directory / spun_file(flow, role)
            if flow.program is not None and path.exists():
                first_ns = json.loads(path.read_text().splitlines()[0])["realtime_ns"]
                program = PurePath(flow.program.of(role)[0]).name
                detail = (
                    f"{program} read the clock without sleeping from {(first_ns - t0_ns) / 1e9:.3f} s on: it "
                    "slept up to 1 ms at each such read"
                )
                checks.append(Check(f"clock of {flow.name}.{role}", True, detail))
    return checks


def programs_used(cell: Cell) -> dict[str, dict[str, str | None]]:
    """For each program of the user's own: its path, the SHA-256 of its file and (of iperf3 and ping) its version."""
    return {program: facts(program) for _, program in _programs(cell)}


def facts(program: str) -> dict[str, str | None]:
    """Path, SHA-256 and version of one program, as far as they are known."""
    return dict(_facts(program))


@functools.cache
def _facts(program: str) -> tuple[tuple[str, str | None], ...]:
    path = find_executable(program, path=SEARCHED)
    if path is None:
        return (("path", None),)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return (("path", path), ("sha256", digest), ("version", _version(program, path)))


def _version(program: str, path: str) -> str | None:
    option = VERSION.get(program)  # by its name alone: a path may lead to somebody else's
    if option is None:
        return None
    try:
        done = subprocess.run(
            [path, option], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=ANSWER_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next(iter(done.stdout.splitlines()), None)


BUILT = {"arm64": "android/bin/sender"}
"""The file that `make android` writes, below build/."""
REMEDY = "make android"


def missing_arch(cell: Cell, apps: Path) -> str:
    """The parts that are missing to run a cell's senders for another processor, with the remedy; "" if nothing is."""
    for arch in archs(cell):
        if not (apps / BUILT[arch]).is_file():
            return f'the sender for arch = "{arch}" is not built; {REMEDY}'
        if find_executable(EMULATORS[arch], path=SEARCHED) is None:
            return f"there is no {EMULATORS[arch]} on this machine; {REMEDY} (or: apt install qemu-user-static)"
    return ""


def install_arch(cell: Cell, apps: Path, directory: Path) -> None:
    """Copy the senders into the cell's bin/. One that is not built is skipped (missing_arch reports it)."""
    for arch in archs(cell):
        source, target = apps / BUILT[arch], directory / "bin" / sender_file(arch)
        if source.is_file():
            inside(target).write_bytes(source.read_bytes())
            target.chmod(0o755)


def arch_used(cell: Cell, apps: Path) -> dict[str, dict[str, str | None]]:
    """Path, SHA-256 and version of each emulator, and SHA-256 of each such sender."""
    used: dict[str, dict[str, str | None]] = {}
    for arch in archs(cell):
        used[EMULATORS[arch]] = facts(EMULATORS[arch])
        digest = hashlib.sha256((apps / BUILT[arch]).read_bytes()).hexdigest()
        used[sender_file(arch)] = {"sha256": digest}
    return used
