"""environment.json: where a cell ran, what its network was read back as, and the checks of the back end."""

from __future__ import annotations

from typing import Any

from ..core.types import Check, Frozen


class Kernel(Frozen, frozen=True):
    """What uname(2) says in the sandbox; None where it left no record."""

    kernel: str | None
    kernel_version: str | None
    machine: str | None


class HostLoad(Frozen, frozen=True, omit_defaults=True):
    """What the host did while a cell ran on the wall clock.

    load_1min: before and after. steal_ratio: of the CPU time, taken by other guests of the same machine.
    late_wakes_ratio: of the sandbox's wakes between its steps, those that were late. latest_wake_s: the latest of them.
    """

    load_1min: tuple[float, float]
    steal_ratio: float
    late_wakes_ratio: float | None = None
    latest_wake_s: float | None = None


class Environment(Frozen, frozen=True, kw_only=True, omit_defaults=True):
    """network: as testbed.readback decodes the kernel's answers. programs: the user's own, and senders for another
    processor (arm64). host: on the wall clock only.
    """

    backend: str
    kernel: Kernel
    network: dict[str, Any]
    programs: dict[str, Any] | None = None
    host: HostLoad | None = None
    checks: tuple[Check, ...]
