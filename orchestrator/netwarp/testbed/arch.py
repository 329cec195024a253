"""Senders built for another processor: they run under qemu user-mode emulation, and this machine's kernel executes
their system calls.
"""

from __future__ import annotations

from ..core.types import Cell, Flow

EMULATORS = {"arm64": "qemu-aarch64-static"}
"""Debian's qemu-user-static; cell-init looks it up in its PATH."""


def sender_program(flow: Flow) -> list[str]:
    """The command that runs a flow's sender, relative to the cell's directory, without the sender's options."""
    arch = arch_of(flow)
    return ["bin/sender"] if arch is None else [EMULATORS[arch], f"bin/{sender_file(arch)}"]


def bare(flow: Flow) -> bool:
    """True if the sender must run with --bare: qemu-user (7.2) passes no SCTP socket option on."""
    return flow.protocol == "sctp" and (arch_of(flow) is not None or bool(flow.sender_options.get("bare")))


def arch_of(flow: Flow) -> str | None:
    """The processor that a flow's sender is built for; None: this machine's."""
    arch = flow.sender_options.get("arch")
    return None if arch is None or flow.program is not None else str(arch)


def archs(cell: Cell) -> list[str]:
    """The processors, besides this machine's, that a cell's senders are built for."""
    return sorted({arch for flow in cell.flows if (arch := arch_of(flow)) is not None})


def sender_file(arch: str) -> str:
    """Its name in the cell's bin/."""
    return f"sender-{arch}"
