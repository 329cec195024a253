"""Senders built for another processor, run under qemu user-mode emulation: this kernel answers their calls."""

from __future__ import annotations

from ..core.types import Cell, Flow

EMULATORS = {"arm64": "qemu-aarch64-static"}
"""Debian's qemu-user-static; cell-init looks it up in its PATH."""


def sender_program(flow: Flow) -> list[str]:
    """What runs a flow's sender, below the cell's directory; its own options follow."""
    arch = arch_of(flow)
    return ["bin/sender"] if arch is None else [EMULATORS[arch], f"bin/{sender_file(arch)}"]


def bare(flow: Flow) -> bool:
    """Whether the sender has to do without SCTP's socket options: qemu-user (7.2) passes none of them on."""
    return flow.protocol == "sctp" and (arch_of(flow) is not None or bool(flow.sender_options.get("bare")))


def arch_of(flow: Flow) -> str | None:
    """The machine a sender is built for, None: this one."""
    arch = flow.sender_options.get("arch")
    return None if arch is None or flow.program is not None else str(arch)


def archs(cell: Cell) -> list[str]:
    """The machines a cell's senders are built for, besides this one."""
    return sorted({arch for flow in cell.flows if (arch := arch_of(flow)) is not None})


def sender_file(arch: str) -> str:
    """Its name in the cell's bin/."""
    return f"sender-{arch}"
