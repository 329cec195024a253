"""A switch: one segment, one subnet, two interfaces of a host in it; what is wrong with switches."""

from __future__ import annotations

from netwarp.core.types import Cell
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.layout import make_layout
from support.specs import plan_of, problems_of, replaced

LAN = """\
format = 1
name = "lan"
duration = "10 s"
[node]
a = {}
b = {}
c = {}
r = { kind = "router" }
lan = { kind = "switch" }
[default.link]
rate = "10 Mbit/s"
queue = "50 packets"
[link]
u = { between = ["a", "lan"], one_way_delay = "1 ms" }
d1 = { between = ["lan", "b"], one_way_delay = "2 ms" }
d2 = { between = ["b", "lan"], one_way_delay = "3 ms" }
g = { between = ["lan", "r"] }
far = { between = ["r", "c"] }
[flow.f]
from = "a"
to = "b"
protocol = "sctp"
paths = [{ sender = "u", receiver = "d1", back = "d1" }, { sender = "u", receiver = "d2", back = "d1" }]
bytes = "1 MB"
[flow.away]
from = "a"
to = "c"
protocol = "tcp"
paths = [{ sender = "u", receiver = "far" }]
bytes = "1 MB"
"""


def cell_of(text: str = LAN) -> Cell:
    return plan_of(text).cells[0]


def test_all_interfaces_on_a_switch_are_in_one_subnet_and_know_each_other() -> None:
    layout = make_layout(cell_of())
    members = {f"{end.node}.{end.link}": end for end in layout.interfaces() if end.ip and end.segment}
    assert {name: end.ip for name, end in members.items()} == {
        "a.u": "10.0.0.193", "b.d1": "10.0.0.194", "b.d2": "10.0.0.195", "r.g": "10.0.0.196",
    }  # fmt: skip
    assert {end.subnet for end in members.values()} == {"10.0.0.192"}
    assert [ip for ip, _ in layout.neighbours(members["a.u"])] == ["10.0.0.194", "10.0.0.195", "10.0.0.196"]
    assert [ip for ip, _ in layout.neighbours(members["b.d2"])] == ["10.0.0.193", "10.0.0.196"]


def test_the_switch_and_the_hops_of_its_links_are_bridges_that_do_not_route() -> None:
    layout = make_layout(cell_of())
    bridging = {layout.namespaces[number] for number in layout.bridges}
    assert bridging == {"lan", "u.hop", "d1.hop", "d2.hop"}
    assert layout.routers == {"r", "far.hop"}
    numbers = [device.ifindex for device in (*layout.interfaces(), *layout.bridges.values())]
    assert len(set(numbers)) == len(numbers) and layout.free_ifindex() > max(numbers)
    ports = [end for end in layout.interfaces() if end.bridge is not None]
    assert all(not end.ip and not layout.neighbours(end) for end in ports)
    behind = {port.link: layout.behind(port) for port in ports if port.node == "lan"}
    assert behind["d1"] == (layout.interface("b", "d1").mac,) and behind["g"] == (layout.interface("r", "g").mac,)


def test_routes_beyond_the_segment_lead_to_the_router_on_it() -> None:
    layout = make_layout(cell_of())
    far = layout.interface("c", "far").subnet
    route = next(route for route in layout.routes if (route.node, route.subnet) == ("a", far))
    assert (route.gateway, route.interface.link) == (layout.interface("r", "g").ip, "u")
    back = next(route for route in layout.routes if (route.node, route.subnet) == ("c", "10.0.0.192"))
    assert back.interface.link == "far"
    assert not any(route.node == "b" and route.subnet == "10.0.0.192" for route in layout.routes)  # the kernel's own


def test_answers_leave_by_the_link_listed_first_and_otherwise_by_a_route_to_the_address() -> None:
    assert not [route for route in make_layout(cell_of()).routes if route.prefix_length == 32]
    other = cell_of(LAN.replace('back = "d1"', 'back = "d2"'))
    route = next(route for route in make_layout(other).routes if route.prefix_length == 32)
    assert (route.node, route.subnet, route.gateway, route.interface.link) == ("b", "10.0.0.193", "", "d2")
    assert other.flows[0].paths[0].base_rtt_ns == 1_000_000 + 2_000_000 + 3_000_000 + 1_000_000
    commands = [item.command for item in compile_cell(other, Clock(t0_realtime_ns=1)).steps]
    assert "ip netns exec b ip route replace 10.0.0.193/32 dev d2 scope link" in commands
    wrong = problems_of(LAN.replace(', back = "d1"', ""))
    assert any('reaches the other end over link "d1", not over "d2"' in line for line in wrong)


def test_what_is_wrong_with_a_switch_is_said() -> None:
    two = replaced(
        'far = { between = ["r", "c"] }', 'far = { between = ["r", "c"] }\nx = { between = ["lan", "hub"] }', LAN
    )
    two = replaced("c = {}\n", 'c = {}\nhub = { kind = "switch" }\n', two)
    assert any("joins the switches" in line for line in problems_of(two))
    small = replaced('g = { between = ["lan", "r"] }', 'g = { between = ["lan", "r"], mtu = "1400 B" }', LAN)
    assert any("has another MTU" in line for line in problems_of(small))
    end = replaced('to = "c"', 'to = "lan"', replaced('[{ sender = "u", receiver = "far" }]', '["u"]', LAN))
    assert any('"lan" is a switch; flows run between hosts' in line for line in problems_of(end))


def test_a_host_with_two_interfaces_in_a_segment_is_not_cut_at_its_own_end() -> None:
    """The route of the interface that comes up again would stand behind the other's."""
    event = '[event.e]\naction = "link"\nlink = "d1"\nat = "2 s"\nfor = "2 s"\nend = %s\n'
    said = problems_of(LAN + event % '"b"')
    assert any("would answer by its other interface for good" in line for line in said), said
    assert plan_of(LAN + event % '{ hop = "b" }').cells
