"""Ways through graphs, and that they are the ways the testbed's routes take."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.core.link_types import Link, LinkImpairment
from netwarp.core.topology import DirectedLink, NoRoute, find_route
from netwarp.core.types import CapturePoint, Cell, Node
from netwarp.testbed.layout import Layout, make_layout

PLAIN = LinkImpairment()
HOSTS = frozenset("ab")


def links_of(text: str) -> list[Link]:
    """ "l1:a-b l2:b-c" as links."""
    found = []
    for word in text.split():
        name, _, ends = word.partition(":")
        a, _, b = ends.partition("-")
        found.append(Link(name, a, b, PLAIN, PLAIN))
    return found


def names(hops: tuple[DirectedLink, ...]) -> str:
    return " ".join(("" if hop.direction == "forward" else "-") + hop.link for hop in hops)


@pytest.mark.parametrize(
    ("links", "source", "to", "over", "wanted"),
    [
        ("p1:a-b", "a", "b", "p1", "p1"),
        ("p1:b-a", "a", "b", "p1", "-p1"),
        ("p1:a-b p2:a-b", "a", "b", "p2", "p2"),
        ("l1:a-r l2:r-b", "a", "b", "l2", "l1 l2"),
        ("l1:a-r l2:b-r", "b", "a", "l1", "l2 -l1"),
        # shorter wins, whatever the order
        ("l1:a-r l2:r-s l3:s-b l4:r-t m:a-s", "a", "b", "l3", "m l3"),
        # ties go to the link listed first
        ("x:r-s y:r-s l1:a-r l2:s-b", "a", "b", "l2", "l1 x l2"),
        ("y:r-s x:r-s l1:a-r l2:s-b", "a", "b", "l2", "l1 y l2"),
        # a host in between does not forward
        ("l1:a-c l2:c-b m1:a-r m2:r-s m3:s-b", "a", "b", "m3", "m1 m2 m3"),
    ],
)
def test_ways(links: str, source: str, to: str, over: str, wanted: str) -> None:
    assert names(find_route(frozenset("abc"), links_of(links), source, to, over)) == wanted


@pytest.mark.parametrize(
    ("links", "source", "to", "over", "says"),
    [
        ("l1:a-c l2:c-b", "a", "b", "l2", "no way leads from 'a' to 'b' over its link 'l2'"),
        ("l1:a-r", "a", "b", "l1", "'b' is not on link 'l1'"),
        ("l1:a-b", "a", "b", "l2", "'b' is not on link 'l2'"),
        ("l1:a-b", "a", "a", "l1", "send to itself"),
    ],
)
def test_no_way(links: str, source: str, to: str, over: str, says: str) -> None:
    with pytest.raises(NoRoute, match=says):
        find_route(frozenset("abc"), links_of(links), source, to, over)


def walk(layout: Layout, source: str, address: str) -> list[str] | None:
    """The links a packet to an address takes by the routes of a layout; None if it is not delivered."""
    here, taken = source, []
    for _ in range(50):
        own = {i.subnet: i for i in layout.interfaces() if i.node == here}
        if any(i.ip == address for i in own.values()):
            return taken
        if here != source and here not in layout.routers:
            return None
        subnet = next(i.subnet for i in layout.interfaces() if i.ip == address)
        via = own.get(subnet)
        if via is None:
            route = next((r for r in layout.routes if r.node == here and r.subnet == subnet), None)
            if route is None:
                return None
            via = route.interface
        if not taken or taken[-1] != via.link:
            taken.append(via.link)
        here = via.peer_node
    return None


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[Link]]:
    """Two hosts and some routers, some links shaped."""
    routers = [f"r{number}" for number in range(draw(st.integers(0, 4)))]
    everyone = ["a", "b", *routers]
    pairs = [(x, y) for number, x in enumerate(everyone) for y in everyone[number + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=9))
    links = []
    for number, (x, y) in enumerate(chosen):
        shape = draw(st.sampled_from([PLAIN, LinkImpairment(one_way_delay_ns=1000)]))
        links.append(Link(f"l{number}", x, y, shape, shape))
    return routers, links


@settings(max_examples=300)
@given(graphs())
def test_the_testbed_routes_the_same_way(graph: tuple[list[str], list[Link]]) -> None:
    routers, links = graph
    nodes = (Node("a", "host"), Node("b", "host"), *(Node(name, "router") for name in routers))
    cell = Cell(
        spec="t", experiment="t", factors={}, repetition=0, seed=1, duration_ns=1, nodes=nodes, links=tuple(links),
        flows=(), timeline=(), captures=(CapturePoint("a", "l0"),), random=False,
    )  # fmt: skip
    layout = make_layout(cell)
    for link in links:
        if "b" not in (link.a, link.b):
            continue
        address = layout.interface("b", link.name).ip
        try:
            wanted: list[str] | None = [hop.link for hop in find_route(HOSTS, links, "a", "b", link.name)]
        except NoRoute:
            wanted = None
        assert walk(layout, "a", address) == wanted
