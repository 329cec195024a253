"""Flows that share a process: of a cell with many equal flows (`count`, `arrivals`) those of one host and role, since a
process costs more than a flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..core.types import HOST_FAULTS, Cell, Flow
from .arguments import receiver_arguments, sender_arguments
from .layout import Layout
from .steps import Step, step

MANY = 64
"""Up to so many flows of a host and role have a process each, as the flows of other cells."""
OF_A_PROCESS = frozenset({"arch", "bare", "tracepoints", "window_clamp_bytes", "reconnect_ns"})
"""Options of flows that have a process of their own."""
End = tuple[str, str]
"""A host and a role."""


def shared_processes(cell: Cell) -> dict[End, tuple[Flow, ...]]:
    """The ends whose flows share a process, and these flows. None in a cell with faults of hosts, which are signals to
    the processes of single flows.
    """
    if any(event.action in HOST_FAULTS for event in cell.timeline):
        return {}
    ends: dict[End, list[Flow]] = {}
    for flow in cell.flows:
        own = OF_A_PROCESS & (flow.sender_options.keys() | flow.receiver_options.keys())
        if flow.group is not msgspec.UNSET and flow.program is None and not flow.is_page and not own:
            ends.setdefault((flow.sender, "sender"), []).append(flow)
            ends.setdefault((flow.receiver, "receiver"), []).append(flow)
    return {end: tuple(flows) for end, flows in ends.items() if len(flows) > MANY}


def process_id(end: End) -> str:
    """The id of the process that all flows of an end share."""
    node, role = end
    return f"{node}.{role}s"


def processes(cell: Cell) -> dict[str, tuple[str, ...]]:
    """Every process of netwarp's own programs -> the ends of flows that it runs, as "x1.sender"."""
    shared = shared_processes(cell)
    found = {process_id(end): tuple(f"{flow.name}.{end[1]}" for flow in flows) for end, flows in shared.items()}
    inside = {name for names in found.values() for name in names}
    for flow in cell.flows:
        for role in ("sender", "receiver"):
            name = f"{flow.name}.{role}"
            if flow.program is None and name not in inside:
                found[name] = (name,)
    return found


def flows_file(end: End) -> str:
    """The file of an end's flows, in the cell's directory."""
    return f"apps/{process_id(end)}.flows"


def flows_text(role: str, flows: Iterable[tuple[Flow, list[str]]]) -> bytes:
    """What the program reads (apps/traffic/many.h): of each flow the file of its records, and its arguments."""
    return b"".join(
        " ".join([f"apps/{flow.name}.{role}.ndjson", *arguments, ""]).rstrip().encode() + b"\n"
        for flow, arguments in flows
    )


def spawn_many(
    end: End,
    flows: Sequence[Flow],
    layout: Layout,
    tokens: dict[str, int],
    files: dict[str, bytes],
    *,
    at_ns: int | None = None,
    t0_file: str = "",
) -> Step:
    """One process for all these flows; adds the file with their arguments to `files`."""
    node, role = end
    name = flows_file(end)
    if role == "sender":
        each = [(flow, sender_arguments(flow, layout, tokens[flow.name])) for flow in flows]
    else:
        each = [(flow, receiver_arguments(flow, layout, tokens[flow.name], t0_file)) for flow in flows]
    files[name] = flows_text(role, each)
    return step(
        "spawn",
        id=process_id(end),
        ns=layout.namespaces.index(node),
        stdout=f"apps/{process_id(end)}.stdout",
        stderr=f"apps/{process_id(end)}.stderr",
        flow=1,
        arg=[f"bin/{role}", "--flows", name],
        command=f"ip netns exec {node} {role} --flows {name} &",
        at_ns=at_ns,
    )
