"""Checks names of sysctls against the kernel of the run before anything runs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..core.types import GuestKernel
from ..experiment.problems import Problems
from ..experiment.toml_positions import Item
from .network import SYSCTL_EXAMPLE, UnresolvedLink

EVERY_INTERFACE = "lo"
"""An interface that every namespace has: its sysctls stand for those of any interface."""


@dataclass(frozen=True, slots=True)
class KernelSysctls:
    """The sysctls that a kernel has in a host of a cell.

    kernel: its name in messages. sysctls: name below net -> whether it can be written. (A congestion control that the
    kernel lacks is not an error here but makes the cell UNSUPPORTED: the spec may be meant for another kernel.)
    """

    kernel: str
    sysctls: Mapping[str, bool]


class SysctlCheck:
    """Checks the names in a spec's cells. `ask` is called at most once a kernel (None: the back end's), and only if
    there is a sysctl to check.
    """

    def __init__(self, ask: Callable[[GuestKernel | None], KernelSysctls | None], problems: Problems) -> None:
        self._ask, self._problems = ask, problems
        self._asked: dict[GuestKernel | None, KernelSysctls | None] = {}

    def nodes(self, nodes: Mapping[str, Item], links: Mapping[str, UnresolvedLink], kernel: GuestKernel | None) -> None:
        """Every sysctl of every node of a cell."""
        for node, item in nodes.items():
            own = [link.name for link in links.values() if node in (link.a, link.b)]
            for name, child in item.under("sysctl").items():
                if kernel not in self._asked:
                    self._asked[kernel] = self._ask(kernel)
                if (known := self._asked[kernel]) is not None and (said := _sysctl_problem(name, own, known)):
                    self._problems.add(child, said)


def _sysctl_problem(name: str, links: Sequence[str], known: KernelSysctls) -> str:
    """The reason why a sysctl cannot be set on a node with these links; "" if it can."""
    there = ".".join(EVERY_INTERFACE if part in links else part for part in name.split("."))
    if there in known.sysctls:
        return "" if known.sysctls[there] else f"{known.kernel} lets nobody write this one; leave it out"
    every = f".{EVERY_INTERFACE}."
    own = [sysctl.replace(every, f".{link}.") for link in links for sysctl in known.sysctls if every in sysctl]
    names = [*known.sysctls, *own]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
    guess = f', did you mean "{near[0]}"?' if near else f"; for example {SYSCTL_EXAMPLE}"
    return f'{known.kernel} has no sysctl "{name}"{guess}'
