"""Links of IPv6, without a kernel: addresses, what keeps interfaces quiet, restored addresses; pyroute2 decodes the
requests, and the kernel's headers say what the numbers are.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Any

import msgspec
import pytest
from netwarp.core.frozen import from_json, to_json
from netwarp.core.ip_families import FAMILIES, IPV4, IPV6
from netwarp.core.link_types import Link, LinkImpairment
from netwarp.core.types import Cell, Node
from netwarp.testbed import messages
from netwarp.testbed.compile import Clock, Compiled, compile_cell
from netwarp.testbed.layout import make_layout
from netwarp.testbed.path_manager import SIGNAL, endpoint
from netwarp.testbed.steps import to_commands
from pyroute2.netlink.generic.mptcp import mptcp_msg
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg
from support.cells import S, outage, two_path_cell

DEVICE = messages.Device("p1", 10, 0)


def on_ipv6(cell: Cell, *names: str) -> Cell:
    """The cell with these links on IPv6 (none named: all)."""
    links = tuple(
        msgspec.structs.replace(link, family="ipv6") if link.name in names or not names else link for link in cell.links
    )
    return msgspec.structs.replace(cell, links=links)


def compiled(cell: Cell) -> Compiled:
    return compile_cell(cell, Clock(t0_realtime_ns=1_700_000_000 * S))


def decoded(kind: Any, data: bytes) -> tuple[Any, dict[str, Any]]:
    message = kind(data)
    message.decode()
    return message, dict(message["attrs"])


def test_the_numbers_of_families_are_those_of_the_system() -> None:
    assert (IPV4.number, IPV6.number) == (socket.AF_INET, socket.AF_INET6)
    for family in FAMILIES.values():
        assert ipaddress.ip_address(family.loopback).max_prefixlen == family.address_length


def test_a_link_without_a_family_keeps_its_json() -> None:
    """Ids of cells are made from it."""
    cell = two_path_cell()
    assert b"family" not in to_json(cell)
    assert from_json(to_json(on_ipv6(cell)), Cell) == on_ipv6(cell)
    assert on_ipv6(cell).id != cell.id


def test_addresses_are_unique_canonical_and_in_their_subnets() -> None:
    layout = make_layout(on_ipv6(two_path_cell()))
    addresses = [interface.ip for interface in layout.interfaces()]
    assert len(set(addresses)) == len(addresses) == 8
    for interface in layout.interfaces():
        assert str(ipaddress.ip_address(interface.ip)) == interface.ip
        net = ipaddress.ip_network(f"{interface.subnet}/64")
        assert ipaddress.ip_address(interface.ip) in net
        assert ipaddress.ip_address(interface.peer_ip) in net
    assert [layout.interface("a", name).ip for name in ("p1", "p2")] == ["fd00::1", "fd00:0:1::1"]


@pytest.mark.parametrize("number", [0, 9, 10, 16, 249, 250, 999])
def test_subnets_of_any_link_differ(number: int) -> None:
    """Their numbers stand as decimal digits, of which IPv6 makes hexadecimal ones."""
    links = tuple(
        Link(f"p{each}", "a", "b", LinkImpairment(), LinkImpairment(), family="ipv6") for each in range(number + 1)
    )
    layout = make_layout(two_path_cell(links=links, flows=(), captures=()))
    assert len({interface.subnet for interface in layout.interfaces()}) == number + 1


def test_routes_stay_on_links_of_their_family() -> None:
    layout = make_layout(on_ipv6(two_path_cell(), "p2"))
    families = {(route.interface.link, ":" in route.subnet, ":" in route.gateway) for route in layout.routes}
    assert families == {("p1", False, False), ("p2", True, True)}
    hosts = [(route.node, route.interface.link) for route in layout.routes if route.node in ("a", "b")]
    assert sorted(hosts) == [("a", "p1"), ("a", "p2"), ("b", "p1"), ("b", "p2")]


def test_an_address_of_ipv6_is_not_tested_for_duplicates() -> None:
    request = messages.address(DEVICE, "fd00::1", 64)
    message, attributes = decoded(ifaddrmsg, request.data)
    assert (message["family"], message["prefixlen"], message["flags"]) == (socket.AF_INET6, 64, 0x02)
    assert attributes["IFA_LOCAL"] == attributes["IFA_ADDRESS"] == "fd00::1"
    assert request.command == "ip -6 addr add fd00::1/64 dev p1 nodad"


def test_routes_and_neighbours_of_ipv6() -> None:
    request = messages.route("fd00:0:0:128::", 64, "fd00::2", DEVICE)
    message, attributes = decoded(rtmsg, request.data)
    assert (message["family"], message["dst_len"]) == (socket.AF_INET6, 64)
    assert (attributes["RTA_DST"], attributes["RTA_GATEWAY"]) == ("fd00:0:0:128::", "fd00::2")
    assert request.command == "ip -6 route replace fd00:0:0:128::/64 via fd00::2 dev p1"
    message, attributes = decoded(ndmsg, messages.neighbour(DEVICE, "fd00::2", "02:00:00:00:00:0b").data)
    assert (message["family"], attributes["NDA_DST"]) == (socket.AF_INET6, "fd00::2")


def test_endpoints_of_mptcp_have_their_family() -> None:
    def address(ip: str) -> dict[str, Any]:
        message = mptcp_msg(endpoint(ip, SIGNAL).data)
        message.decode()
        return dict(dict(message["attrs"])["MPTCP_PM_ATTR_ADDR"]["attrs"])

    assert address("fd00::1")["MPTCP_PM_ADDR_ATTR_ADDR6"] == "fd00::1"
    assert address("fd00::1")["MPTCP_PM_ADDR_ATTR_FAMILY"] == socket.AF_INET6
    assert address("10.0.0.1")["MPTCP_PM_ADDR_ATTR_ADDR4"] == "10.0.0.1"


def test_ipv6_is_switched_on_for_its_interfaces_alone_and_after_they_are_quiet() -> None:
    lines = to_commands(compiled(on_ipv6(two_path_cell(), "p2")).steps).splitlines()
    on = [line.split()[-1] for line in lines if "disable_ipv6=0" in line]
    assert sorted(on) == sorted(f"net/ipv6/conf/{name}/disable_ipv6=0" for name in ("p2", "a", "b", "p2"))
    for node, name in (("a", "p2"), ("p2.hop", "b")):
        places = [
            next(i for i, line in enumerate(lines) if re.match(f"ip netns exec {node} {rest}", line))
            for rest in (
                "sysctl -w net.ipv6.conf.default.disable_ipv6=1",
                f"ip link set dev {name} arp off multicast off",
                f"sysctl -w net/ipv6/conf/{name}/disable_ipv6=0",
                f"ip -6 addr add .* dev {name} nodad",
                f"ip link set dev {name} up",
            )
        ]
        assert places == sorted(places)
    forwards = lines.index("ip netns exec p2.hop sysctl -w net.ipv6.conf.all.forwarding=1")
    assert forwards > max(i for i, line in enumerate(lines) if "multicast off" in line)
    assert not any(line.startswith("ip netns exec p1.hop") and "disable_ipv6=0" in line for line in lines)
    assert "ip netns exec p1.hop sysctl -w net.ipv6.conf.all.disable_ipv6=1" in lines


def test_a_repaired_link_gets_its_address_back() -> None:
    cell = on_ipv6(two_path_cell(timeline=outage("link", end="b")))
    steps = [item for item in compiled(cell).steps if item.at_ns == 8 * S and item.verb == "netlink"]
    done = [line.removeprefix("ip netns exec b ") for line in to_commands(steps).splitlines() if line[0] != "#"]
    assert done == [
        "ip link set dev p1 up",
        "ip -6 addr add fd00:0:0:128::1/64 dev p1 nodad",
        "ip -6 neigh replace fd00:0:0:128::2 lladdr 02:00:00:00:00:0d dev p1 nud permanent",
        "ip -6 route replace fd00::/64 via fd00:0:0:128::2 dev p1",
    ]


def test_a_switch_of_ipv6_is_one_subnet() -> None:
    nodes = (Node("a", "host"), Node("b", "host"), Node("lan", "switch"))
    ends = (LinkImpairment(), LinkImpairment())
    links = tuple(Link(name, node, "lan", *ends, family="ipv6") for name, node in (("u", "a"), ("d", "b")))
    layout = make_layout(two_path_cell(nodes=nodes, links=links, flows=(), captures=()))
    members = {end.node: end.ip for end in layout.interfaces() if end.ip}
    assert members == {"a": "fd00:0:0:192::1", "b": "fd00:0:0:192::2"}
    lines = to_commands(compiled(two_path_cell(nodes=nodes, links=links, flows=(), captures=())).steps)
    assert "ip netns exec lan sysctl -w net/ipv6" not in lines
