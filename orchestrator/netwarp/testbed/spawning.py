"""The steps that start the programs of flows, and when those that connect are started."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from ..core.types import Cell, Flow
from .arguments import opener_steps, page_arguments, receiver_arguments, sender_arguments, sender_program
from .layout import Layout
from .steps import Step, step

LEAD_NS = 500_000_000
"""A sender is spawned this long before its start, and sleeps until its start by itself. One that starts sooner after T0
is spawned before T0: before `ready` if the clock has a fixed T0 (which the sender is given), otherwise between `ready`
and T0.
"""
SPAWN_NS = 20_000
"""In no less virtual time a sender is spawned (14 reads of the clock)."""
LOAD_NS = 200_000
"""In no less virtual time a program is loaded and has sent its first packet."""


def spawn(
    flow: Flow,
    role: Literal["sender", "receiver"],
    layout: Layout,
    token: int,
    at_ns: int | None = None,
    *,
    t0_file: str = "",
    again: bool = False,
) -> Step:
    """The step that starts one end of a flow. t0_file: where a program that starts before T0 learns it. again: its
    listener accepts one connection after the other.
    """
    node = flow.sender if role == "sender" else flow.receiver
    if flow.is_page:
        program = ["bin/web-server" if role == "sender" else "bin/web-client"]
        arguments = page_arguments(flow, role, layout, token)
    elif role == "sender":
        program, arguments = sender_program(flow), sender_arguments(flow, layout, token)
    else:
        program, arguments = ["bin/receiver"], receiver_arguments(flow, layout, token, t0_file, again=again)
    return step(
        "spawn",
        id=f"{flow.name}.{role}",
        ns=layout.namespaces.index(node),
        stdout=f"apps/{flow.name}.{role}.ndjson",
        stderr=f"apps/{flow.name}.{role}.stderr",
        flow=1,
        arg=[*program, *arguments],
        command=f"ip netns exec {node} {' '.join([*(part.rpartition('/')[2] for part in program), *arguments])} &",
        at_ns=at_ns,
    )


def program_start_ns(cell: Cell, flow: Flow) -> int:
    """When the program of a flow that connects is started. To load one takes a guest's one CPU some 50 to 100 us, in
    which no other begins anything (ngtcp2's client, by 256 ns at each read of the clock): a program is started behind
    what else begins at that instant, netwarp's own flows first, then the programs in the order of the spec.
    """
    at_once = [other for other in cell.flows if other.start_ns == flow.start_ns]
    before = sum(other.program is None for other in at_once)
    programs = [other.name for other in at_once if other.program is not None]
    return flow.start_ns + before * SPAWN_NS + programs.index(flow.name) * LOAD_NS


def sender_steps(
    cell: Cell, flows: list[Flow], tokens: dict[str, int], earliest_ns: int, layout: Layout, *, virtual: bool
) -> Iterator[Step]:
    """The steps that start the ends of these flows that connect, after T0."""
    busy = sorted({at_ns for flow in cell.flows for at_ns in (flow.start_ns, flow.stop_ns) if at_ns is not None})
    at_once = Counter(flow.start_ns for flow in flows)
    for flow in flows:
        if flow.program is not None:  # begins when it is started; netwarp's own sender sleeps until its start
            yield from opener_steps(flow, flow.program, layout, program_start_ns(cell, flow), virtual=virtual)
            continue
        at_ns = max(earliest_ns, flow.start_ns - LEAD_NS)
        if isinstance(flow.group, str):  # flows that follow each other by a part of the lead
            at_ns = _quiet(at_ns, SPAWN_NS * at_once[flow.start_ns], busy)
        yield spawn(flow, flow.opener, layout, tokens[flow.name], at_ns)


def _quiet(at_ns: int, takes_ns: int, busy: Sequence[int]) -> int:
    """The first time from `at_ns` on, in steps of as long as spawning takes, at which no flow starts or stops
    meanwhile: it would be late.
    """
    while (place := bisect_left(busy, at_ns - SPAWN_NS)) < len(busy) and busy[place] <= at_ns + takes_ns:
        at_ns += SPAWN_NS
    return at_ns
