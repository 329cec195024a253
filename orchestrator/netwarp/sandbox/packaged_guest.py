"""Runs cells in guests of the distribution's own User-Mode-Linux kernel, on the wall clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..core.types import Cell, GuestKernel, Problem
from ..guestkernel import KernelBuild
from ..guestkernel.packaged import modules_of
from .kernel_features import NEWER_SCHEDULERS, NEWER_SCHEDULERS_FROM
from .virtual import GuestBackend


class DistributionBackend(GuestBackend):
    """The back end `guest` with that kernel: its modules are loaded before a cell's network is made."""

    any_kernel = False

    def __init__(
        self,
        kernel: KernelBuild,
        apps: Path,
        *,
        problems: Callable[[], list[Problem]] = list,
    ) -> None:
        super().__init__(kernel.binary, apps, problems=problems)
        self.release = kernel.release
        self.clock = replace(self.clock, modules=tuple(str(path) for path in modules_of(kernel.release)))

    def refuses(self, cell: Cell) -> str:
        """Refuses what this kernel was built without (Debian's 6.1: no MPTCP, no tracepoints, older stream
        schedulers).
        """
        for flow in cell.flows:
            lacks = ""
            if flow.protocol == "mptcp":
                lacks = "no MPTCP"
            elif flow.sender_options.get("tracepoints"):
                lacks = "no tracepoints"
            elif GuestKernel(self.release, "").numbers < NEWER_SCHEDULERS_FROM and (
                flow.sender_options.get("scheduler") in NEWER_SCHEDULERS
            ):
                lacks = f"no stream scheduler {flow.sender_options['scheduler']}"
            if lacks:
                return f"flow {flow.name}: the distribution's kernel {self.release} has {lacks}; build one: make kernel"
        return super().refuses(cell)
