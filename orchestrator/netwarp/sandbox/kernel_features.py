"""Features of a cell that kernels of older releases lack."""

from __future__ import annotations

from ..core.types import Cell, GuestKernel, LinkImpairment

NEWER_SCHEDULERS = ("fc", "wfq")
"""SCTP's, which Linux 6.1 does not know."""
SEEDED_NETEM = (6, 6)
"""The first release whose netem has a generator of its own (TCA_NETEM_PRNG_SEED)."""
NEWER_SCHEDULERS_FROM = (6, 4)


def lacks(cell: Cell, kernel: GuestKernel) -> str:
    """The reason why a cell cannot run on a kernel of that release; "" if it can."""
    if kernel.numbers < NEWER_SCHEDULERS_FROM:
        for flow in cell.flows:
            if (scheduler := flow.sender_options.get("scheduler")) in NEWER_SCHEDULERS:
                return f"flow {flow.name}: Linux {kernel.release} has no stream scheduler {scheduler}"
    if kernel.numbers < SEEDED_NETEM:
        changes = (shape for event in cell.timeline for shape in (event.forward, event.backward) if shape is not None)
        shapes = [shape for link in cell.links for shape in (link.forward, link.backward)]
        drawn = next((name for shape in (*shapes, *changes) if (name := drawn_by_netem(shape))), "")
        if drawn:
            return (
                f"{drawn}: netem of Linux {kernel.release} has no seed, so that other kernels would meet other draws; "
                "bit_errors, byte_errors and rules for single packets (drop, duplicate, delay) have their own"
            )
    return ""


def drawn_by_netem(shape: LinkImpairment) -> str:
    """The first impairment of a direction that netem's generator draws; "" if there is none."""
    drawn = {
        "loss": shape.loss_ratio,
        "burst_loss": shape.burst_loss,
        "jitter": shape.jitter_ns,
        "duplicate": shape.duplicate_ratio,
        "corrupt": shape.corrupt_ratio,
        "reorder": shape.reorder_ratio,
    }
    return next((name for name, value in drawn.items() if value), "")
