"""The steps of a flow that is a program of the user's own, with addresses and times filled into its arguments.

A step becomes a line of steps.txt: its verb and its fields (`id`, `ns`, `arg`, ...) are those that
apps/cell-init/step.c reads. The names of files, `apps/...`, are part of docs/formats.md.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from typing import Literal

from ..core.types import Flow, Program
from ..core.unpacked import UNPACKED_PACKAGES, library_folders
from ..experiment.programs import JOINED, OF_EACH, OF_ONE, UNPACKED
from .arguments import receiver_addresses, sender_addresses
from .layout import Layout
from .steps import Step, step

WRITABLE = "/run"
"""The only place where a program may always write: each sandbox has a tmpfs there. The rest is the host's file system,
read-only in a guest."""


def listener_steps(flow: Flow, program: Program, layout: Layout, timeout_ns: int) -> Iterator[Step]:
    """Starts the end that listens before T0 and waits until it prints that it does; no steps if none listens."""
    if not program.of(flow.listener):
        return
    yield _spawn(flow, flow.listener, program, layout)
    if program.ready:
        yield step("output", id=f"{flow.name}.{flow.listener}", text=program.ready, timeout_ns=timeout_ns)


def opener_steps(flow: Flow, program: Program, layout: Layout) -> Iterator[Step]:
    """Starts the other end at the flow's start; sends it SIGINT at the flow's stop if the program asks for it."""
    yield _spawn(flow, flow.opener, program, layout, flow.start_ns)
    if program.interrupt:
        yield step("signal", id=f"{flow.name}.{flow.opener}", signal=int(signal.SIGINT), at_ns=flow.stop_ns)


def _spawn(
    flow: Flow, role: Literal["sender", "receiver"], program: Program, layout: Layout, at_ns: int | None = None
) -> Step:
    node = flow.sender if role == "sender" else flow.receiver
    filled = fill_in(program.of(role), flow, layout)
    unpacked = any(f"{{{UNPACKED}}}" in argument for argument in program.of(role))
    return step(
        "spawn",
        id=f"{flow.name}.{role}",
        ns=layout.namespaces.index(node),
        stdout=f"apps/{flow.name}.{role}.stdout",
        stderr=f"apps/{flow.name}.{role}.stderr",
        flow=1,  # this process is an end of a flow: machines.py
        arg=filled,
        env=[f"TMPDIR={WRITABLE}", *([f"LD_LIBRARY_PATH={':'.join(library_folders())}"] if unpacked else [])],
        command=f"ip netns exec {node} {' '.join(filled)} &",
        at_ns=at_ns,
    )


def fill_in(arguments: Iterable[str], flow: Flow, layout: Layout) -> list[str]:
    """The arguments with every placeholder replaced; an argument with `{to_all}` (or a similar one) is repeated for
    each address.
    """
    path, stop_ns = flow.paths[0], flow.stop_ns or flow.start_ns
    ends = (sender_addresses(flow, layout), receiver_addresses(flow, layout))
    single = (
        layout.interface(flow.sender, path.sender_link).ip,
        layout.interface(flow.receiver, path.receiver_link).ip,
        str(flow.port),
        *(_seconds(time_ns) for time_ns in (flow.start_ns, stop_ns, stop_ns - flow.start_ns)),
    )
    # `single` in the order of OF_ONE, `ends` in that of JOINED: strict compares the lengths alone
    values = dict(zip((*OF_ONE, *JOINED), (*single, *map(",".join, ends)), strict=True))
    values[UNPACKED] = str(UNPACKED_PACKAGES)
    each = dict(zip(OF_EACH, (*ends, *(addresses[1:] for addresses in ends)), strict=True))
    filled_in: list[str] = []
    for text in arguments:
        name = next((name for name in each if f"{{{name}}}" in text), None)
        for known in [values] if name is None else [{**values, name: address} for address in each[name]]:
            filled = text
            for key, value in known.items():
                filled = filled.replace(f"{{{key}}}", value)
            filled_in.append(filled)
    return filled_in


def _seconds(time_ns: int) -> str:
    whole, rest = divmod(time_ns, 10**9)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
