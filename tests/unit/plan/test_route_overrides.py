"""A flow's routes: the link by which answers leave, TCP's initial window; and starts that are drawn."""

from __future__ import annotations

import pytest
from netwarp.core.types import Cell
from netwarp.experiment import load_spec
from netwarp.measure.planned_paths import links_of
from netwarp.plan import make_plan
from netwarp.plan.types import Plan
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.layout import StaticRoute, make_layout
from support.specs import BASE, plan_of, problems_of, replaced, spec_of

BOTH = '[{ sender = "u", receiver = "d1", back = "d2" }, { sender = "u", receiver = "d2", back = "d2" }]'
SPLIT = """\
format = 1
name = "split"
duration = "10 s"
[node]
a = {}
b = {}
r1 = { kind = "router" }
r2 = { kind = "router" }
r3 = { kind = "router" }
[default.link]
rate = "10 Mbit/s"
queue = "50 packets"
[link]
u = { between = ["a", "r1"] }
m1 = { between = ["r1", "r2"], one_way_delay = "10 ms" }
m2 = { between = ["r1", "r3"], one_way_delay = "30 ms" }
d1 = { between = ["r2", "b"] }
d2 = { between = ["r3", "b"] }
[flow.f]
from = "a"
to = "b"
protocol = "sctp"
paths = PATHS
bytes = "1 MB"
""".replace("PATHS", BOTH)


def cell_of(text: str) -> Cell:
    return plan_of(text).cells[0]


def route_of(cell: Cell, node: str, to: str, link: str) -> StaticRoute:
    layout = make_layout(cell)
    subnet = layout.interface(to, link).subnet
    return next(route for route in layout.routes if (route.node, route.subnet) == (node, subnet))


def test_the_receiver_s_packets_leave_by_the_link_that_is_named() -> None:
    cell = cell_of(SPLIT)
    first, second = cell.flows[0].paths
    assert (first.name, first.receiver_link, first.back_link) == ("u-d1", "d1", "d2")
    assert first.base_rtt_ns == 10_000_000 + 30_000_000  # data by m1, SACKs by m2
    assert second.base_rtt_ns == 60_000_000
    route = route_of(cell, "b", "a", "u")
    assert route.interface.link == "d2"
    assert route.gateway == route.interface.peer_ip
    assert links_of(cell, cell.flows[0], first) == {"u", "m1", "d1", "d2", "m2"}
    arguments = next(item.command for item in compile_cell(cell, Clock()).steps if "sender --protocol" in item.command)
    assert arguments.count("--bind ") == 1 and arguments.count("--to ") == 2  # one address here, two there


def test_without_a_way_back_routing_decides() -> None:
    cell = cell_of(
        SPLIT.replace(
            BOTH,
            '[{ sender = "u", receiver = "d1" }]',
        )
    )
    assert cell.flows[0].paths[0].back_link is None
    assert route_of(cell, "b", "a", "u").interface.link == "d1"


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        (
            '[{ sender = "u", receiver = "d1" }, { sender = "u", receiver = "d2" }]',
            'not over "d2" as written; to have it so, write { sender = "u", receiver = "d2", back = "d2" }',
        ),
        (
            '[{ sender = "u", receiver = "d1", back = "d2" }, { sender = "u", receiver = "d2", back = "d1" }]',
            'packets cannot leave over "d2" for one path and over "d1" for another',
        ),
        (
            '[{ sender = "u", receiver = "d1" }, { sender = "u", receiver = "d2", back = "d2" }]',
            'packets cannot leave over "d1" for one path and over "d2"',
        ),
        (
            '[{ sender = "u", receiver = "d1", back = "m1" }]',
            'link "m1" does not touch the receiver "b"; it has: d1, d2',
        ),
        ('[{ sender = "u", receiver = "d1", back = "d3" }]', 'there is no link "d3"'),
    ],
)
def test_ways_back_that_cannot_be(paths: str, says: str) -> None:
    found = problems_of(SPLIT.replace(BOTH, paths))
    assert len(found) == 1 and says in found[0], found


def test_an_initial_window_is_one_of_the_sender_s_route() -> None:
    tcp = SPLIT.replace("sctp", "tcp").replace(
        BOTH,
        '[{ sender = "u", receiver = "d1" }]',
    )
    cell = cell_of(tcp + 'sender = { initial_window = "4 packets" }\n')
    assert route_of(cell, "a", "b", "d1").initial_window_packets == 4
    assert route_of(cell, "b", "a", "u").initial_window_packets is None
    commands = [item.command for item in compile_cell(cell, Clock()).steps]
    assert sum("initcwnd 4" in command for command in commands) == 1
    assert not any("--initial-window" in command for command in commands)
    (said,) = problems_of(SPLIT + 'sender = { initial_window = "4 packets" }\n')
    assert "no option of a sctp sender" in said


def test_starts_are_drawn_from_the_seed() -> None:
    text = BASE + 'start = "1 s"\nphase = { uniform = ["0 s", "100 ms"] }\n'
    drawn = [make_plan_of(text, seed).cells[0] for seed in range(20)]
    starts = [cell.flows[0].start_ns for cell in drawn]
    assert all(cell.random for cell in drawn) and len(set(starts)) == 20
    assert all(1_000_000_000 <= start <= 1_100_000_000 for start in starts)
    assert starts[3] == make_plan_of(text, 3).cells[0].flows[0].start_ns
    fixed = make_plan_of(text.replace("100 ms", "0 s"), 3).cells[0]
    assert not fixed.random and fixed.flows[0].start_ns == 1_000_000_000
    (said,) = problems_of(replaced("1 s", "9.95 s", text))
    assert "phase" in said and "after its stop" in said


def make_plan_of(text: str, seed: int) -> Plan:
    return make_plan(spec_of(text), seed=seed)


def test_ha2005_plans_what_its_readme_says() -> None:
    plan = make_plan(load_spec("ha2005", sets={"transfer": "10 MB"}))
    routers = {
        cell.factors["protocol"]: len(make_layout(cell).routers)
        for cell in plan.cells
        if cell.factors["protocol"] != "-"
    }
    assert routers == {"tcp": 13, "sctp": 13}
    assert {cell.flows[0].total_bytes for cell in plan.cells if cell.factors["size"] == "8192 B"} == {10_000_000}
    assert {claim.id for claim in plan.claims} >= {f"C{number}" for number in range(1, 19)}
    tcp = [flow for cell in plan.cells for flow in cell.flows if flow.protocol == "tcp" and flow.name != "cross"]
    assert {flow.sender_options.get("separate_sends") for flow in tcp} == {True}


def test_a_part_may_be_run_without_the_flows_of_the_others() -> None:
    plan = make_plan(load_spec("ha2005"), only=["example"])
    assert {flow.name for cell in plan.cells for flow in cell.flows} == {"bulk"}
    assert any(table.flows == ("sctp1",) for table in plan.tables)
    wrong = BASE + '[table.t]\nmetric = "goodput_bit_s"\nflow = "g"\n'
    assert any('there is no flow "g"' in one for one in problems_of(wrong))
