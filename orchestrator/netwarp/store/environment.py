"""environment.json: where a cell ran, its network as read back, and the checks of the back end."""

from __future__ import annotations

from typing import Any

from ..core.frozen import Frozen
from ..core.types import Check


class Kernel(Frozen, frozen=True):
    """uname(2) in the sandbox; None if it left no record."""

    kernel: str | None
    kernel_version: str | None
    machine: str | None


class HostLoad(Frozen, frozen=True, omit_defaults=True):
    """The load of the host while a cell ran on the wall clock.

    load_1min: before and after. steal_ratio: share of the CPU time taken by other guests of the same machine. Both None
    where cells run on other machines (hosts), of which the latest wakes count.
    late_wakes_ratio: share of the sandbox's wakes between its steps that were late. latest_wake_s: the largest
    lateness.
    """

    load_1min: tuple[float, float] | None = None
    steal_ratio: float | None = None
    late_wakes_ratio: float | None = None
    latest_wake_s: float | None = None


class Environment(Frozen, frozen=True, kw_only=True, omit_defaults=True):
    """network: as testbed.readback decodes the kernel's answers. programs: the user's own, and senders for another
    processor (arm64). host: None in virtual time. machines: of the back end hosts (docs/formats.md).
    """

    backend: str
    kernel: Kernel
    network: dict[str, Any]
    programs: dict[str, Any] | None = None
    host: HostLoad | None = None
    machines: dict[str, Any] | None = None
    checks: tuple[Check, ...]
