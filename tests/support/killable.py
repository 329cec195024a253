"""The processes of a running netwarp that can be killed, by what they are: workers, guests, programs in a sandbox."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

from support.chain_kit import is_guest


def everyone() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def family(pid: int) -> list[int]:
    """The descendants of a process (a guest's kernel has no /proc/PID/task/TID/children)."""
    children: dict[int, list[int]] = {}
    for other in everyone():
        children.setdefault(parent(other), []).append(other)
    found, waiting = [], [pid]
    while waiting:
        waiting += (born := children.get(waiting.pop(), []))
        found += born
    return found


def program(pid: int) -> str:
    """The name of the file a process runs; "" when it has just gone."""
    with contextlib.suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    return ""


def running(name: str) -> Callable[[int], list[int]]:
    return lambda netwarp: [pid for pid in family(netwarp) if program(pid) == name]


def kernels(netwarp: int) -> list[int]:
    """The guests' kernels: children of netwarp's workers that have become `linux`."""
    return [pid for pid in family(netwarp) if is_guest(pid) and not is_guest(parent(pid))]


def in_guests(netwarp: int) -> list[int]:
    """Processes of guests, as the host has them."""
    return [child for pid in kernels(netwarp) for child in family(pid)]


def parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return 0


def arguments(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def workers(netwarp: int) -> list[int]:
    """The processes that run cells: forked from netwarp, and with its command line still, as a program has that it is
    about to start, too; but they ignore Ctrl-C.
    """
    forked = [pid for pid in family(netwarp) if parent(pid) == netwarp and arguments(pid) == arguments(netwarp)]
    return [pid for pid in forked if ignored(pid) >> (signal.SIGINT - 1) & 1]


def ignored(pid: int) -> int:
    """The signals that a process ignores, a bit for each."""
    with contextlib.suppress(OSError):
        return int(re.findall(r"(?m)^SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())[0], 16)
    return 0


def dask_workers(netwarp: int) -> list[int]:
    """The processes of a dask cluster's workers, which its nannies (threads of netwarp) start anew."""
    return [pid for pid in family(netwarp) if b"spawn_main" in arguments(pid) and not is_guest(pid)]


GUEST_TARGETS: dict[str, Callable[[int], list[int]]] = {
    "worker": workers, "guest": kernels, "process of a guest": in_guests
}  # fmt: skip
TARGETS: dict[str, dict[str, Callable[[int], list[int]]]] = {
    "virtual": {"netwarp": lambda pid: [pid], **GUEST_TARGETS},
    "guest": {"netwarp": lambda pid: [pid], **GUEST_TARGETS},
    "dask": {"netwarp": lambda pid: [pid], **GUEST_TARGETS, "worker": dask_workers},
    "netns": {
        "netwarp": lambda pid: [pid],
        "worker": workers,
        "netns-exec": running("netns-exec"),
        "cell-init": running("init"),
        "sender": running("sender"),
        "receiver": running("receiver"),
    },
}
