"""The starts of a group's senders: not while another flow of the cell starts or stops, which would be late."""

from __future__ import annotations

from netwarp.core.types import Cell
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.spawning import LEAD_NS, LOAD_NS, SPAWN_NS, program_start_ns
from support.specs import BASE, cell_of

MS = 10**6


def spawned(cell: Cell) -> dict[str, int]:
    """Sender -> when it is spawned, of those that are spawned in the timeline."""
    steps = compile_cell(cell, Clock(t0_realtime_ns=0)).steps
    found = {}
    for step in steps:
        name = dict(step.fields).get("id", "")
        if step.verb == "spawn" and step.at_ns is not None and name.endswith(".sender"):
            found[name.removesuffix(".sender")] = step.at_ns
    return found


def test_no_sender_of_a_group_is_spawned_as_another_flow_starts_or_stops() -> None:
    text = BASE + 'count = 30\nstart = { first = "0 s", every = "100 ms" }\nstop = { last = "4 s", every = "100 ms" }\n'
    cell = cell_of(text)
    starts = spawned(cell)
    assert len(starts) == 25, "the others before T0"
    edges = [at for flow in cell.flows for at in (flow.start_ns, flow.stop_ns) if at is not None]
    for flow in cell.flows[5:]:
        at_ns = starts[flow.name]
        assert min(abs(at_ns - edge) for edge in edges) >= SPAWN_NS
        assert 0 <= at_ns - (flow.start_ns - LEAD_NS) < MS


def test_flows_that_are_no_group_are_spawned_when_they_were() -> None:
    text = BASE + 'start = "2 s"\n[flow.g]\nlike = "f"\nstart = "1.5 s"\n'
    assert spawned(cell_of(text)) == {"f": 1500 * MS, "g": 1000 * MS}


def test_programs_begin_behind_what_else_begins_at_that_instant() -> None:
    """To load a program takes the guest's one CPU: flows that begin meanwhile would be late, and the cell INVALID."""
    ping = 'from = "a"\nto = "b"\nprotocol = "icmp"\npaths = ["p1"]\nprogram = "ping"\n'
    other = ping.replace("icmp", "tcp").replace('"ping"', '{ sender = ["x"] }')
    first = f'{BASE}start = "1 s"\n'
    text = f'{first}[flow.g]\nlike = "f"\n[flow.one]\n{ping}start = "1 s"\n[flow.two]\n{other}start = "1 s"\n'
    flows = {flow.name: flow for flow in cell_of(text).flows}
    cell = cell_of(text)
    assert program_start_ns(cell, flows["one"]) == 1000 * MS + 2 * SPAWN_NS
    assert program_start_ns(cell, flows["two"]) == 1000 * MS + 2 * SPAWN_NS + LOAD_NS
    alone = cell_of(f'{BASE}start = "1 s"\n[flow.one]\n{ping}start = "2 s"\n')
    assert program_start_ns(alone, alone.flows[1]) == 2000 * MS
