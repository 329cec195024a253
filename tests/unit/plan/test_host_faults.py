"""Events of hosts, addresses and middle boxes: what a spec says becomes, and what is wrong with it."""

from __future__ import annotations

import pytest
from netwarp.core.types import Event
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.steps import to_commands
from support.specs import BASE, cell_of, problems_of

S = 10**9
CLOCK = Clock(t0_realtime_ns=1_700_000_000 * S)


def event(body: str) -> str:
    return BASE + f'[event.e]\nat = "2 s"\n{body}\n'


def commands(text: str) -> list[str]:
    """Those of the timeline, without dumps and the starts of programs."""
    lines = to_commands(compile_cell(cell_of(text), CLOCK).steps).split("# at T0 + 2 s\n", 1)[1].split("\n")
    return [
        line for line in lines if line and not line.startswith("# at") and "sender" not in line and " cat " not in line
    ]


def test_a_host_restarts() -> None:
    cell = cell_of(event('action = "restart"\nnode = "b"\nfor = "3 s"'))
    down, up = cell.timeline
    assert down == Event(2 * S, "e", "restart", "", directions=(), node="b", killed="host")
    assert (up.action, up.at_ns, up.node) == ("repair", 5 * S, "b")
    assert commands(event('action = "restart"\nnode = "b"\nfor = "3 s"')) == [
        "ip netns exec b nft add table inet netwarp",
        "ip netns exec b nft add chain inet netwarp in '{ type filter hook prerouting priority -500; policy drop; }'",
        "ip netns exec b nft add chain inet netwarp out '{ type filter hook output priority -500; policy drop; }'",
        "# kill -USR1 f.receiver",
        "ip netns exec b nft delete table inet netwarp",
        "# kill -USR2 f.receiver",
    ]
    process = event('action = "restart"\nnode = "b"\nfor = "3 s"\nkilled = "process"')
    assert commands(process) == ["# kill -HUP f.receiver", "# kill -USR2 f.receiver"]


def test_a_sender_that_has_not_been_started_is_not_told() -> None:
    """It is started half a second before its flow; a signal to no process was an error of the step."""
    late = BASE.replace('protocol = "tcp"', 'protocol = "tcp"\nstart = "9 s"')
    for text, told in ((BASE, True), (late, False)):
        steps = compile_cell(
            cell_of(text + event('action = "restart"\nnode = "a"\nfor = "3 s"')[len(BASE) :]), CLOCK
        ).steps
        assert ("# kill -USR1 f.sender" in to_commands(steps)) is told
        assert ("# kill -USR2 f.sender" in to_commands(steps)) is told


def test_a_receiver_takes_connections_again_where_it_may_have_to() -> None:
    again = "--again"
    assert again not in to_commands(compile_cell(cell_of(BASE), CLOCK).steps)
    for text in (BASE + 'sender = { reconnect = "1 s" }', event('action = "restart"\nnode = "a"\nfor = "3 s"')):
        assert again in to_commands(compile_cell(cell_of(text), CLOCK).steps)
    assert cell_of(BASE + 'sender = { reconnect = "off" }').flows[0].sender_options == {"loss_ends": True}


def test_a_receiver_stops_reading() -> None:
    assert commands(event('action = "stop_reading"\nflow = "f"\nfor = "3 s"')) == [
        "# kill -STOP f.receiver",
        "# kill -CONT f.receiver",
    ]
    forever = to_commands(compile_cell(cell_of(event('action = "stop_reading"\nflow = "f"')), CLOCK).steps)
    assert "# at T0 + 10 s\n# kill -CONT f.receiver" in forever  # a stopped process cannot end


def test_an_address_and_its_routes_come_back() -> None:
    assert commands(event('action = "address"\nnode = "a"\nlink = "p1"\nfor = "3 s"')) == [
        "ip netns exec a ip addr del 10.0.0.1/26 dev p1",
        "ip netns exec a ip addr add 10.0.0.1/26 dev p1",
        "ip netns exec a ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:0b dev p1 nud permanent",
        "ip netns exec a ip route replace 10.0.0.128/26 via 10.0.0.2 dev p1",
    ]


def test_an_mtu_is_that_of_the_hops_routes() -> None:
    assert commands(event('action = "mtu"\nlink = "p1"\nmtu = "1000 B"\nfor = "3 s"\ndirections = ["forward"]')) == [
        "ip netns exec p1.hop ip route replace 10.0.0.128/26 dev b scope link mtu 1000",
        "ip netns exec p1.hop ip route replace 10.0.0.128/26 dev b scope link",
    ]


def test_a_firewall_forgets() -> None:
    text = event('action = "forget"\nlink = "p1"').replace("[flow.f]", 'firewall = "reject"\n[flow.f]')
    everything = to_commands(compile_cell(cell_of(text), CLOCK).steps)
    assert "ct state invalid meta l4proto tcp counter reject with tcp reset" in everything
    assert "sysctl -w net.netfilter.nf_conntrack_tcp_loose=0" in everything
    assert "nf_conntrack_checksum" not in everything
    assert commands(text) == ["ip netns exec p1.hop conntrack -F"]


def test_a_firewall_leaves_checksums_to_the_receiver_where_a_link_alters_bits() -> None:
    text = event('action = "forget"\nlink = "p1"').replace("[flow.f]", 'firewall = "drop"\ncorrupt = "1 %"\n[flow.f]')
    everything = to_commands(compile_cell(cell_of(text), CLOCK).steps)
    assert "ip netns exec p1.hop sysctl -w net.netfilter.nf_conntrack_checksum=0" in everything


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('action = "restart"\nnode = "b"', 'for is missing; for example for = "10 s"'),
        ('action = "restart"\nfor = "1 s"', 'node is missing; for example node = "b"'),
        ('action = "restart"\nfor = "1 s"\nnode = "x"', 'there is no host "x"'),
        ('action = "restart"\nfor = "1 s"\nnode = "a"\nlink = "p1"', 'is no key of action = "restart"; leave it out'),
        ('action = "stop_reading"\nflow = "g"', 'there is no flow "g"'),
        ('action = "address"\nlink = "p1"\nnode = "c"', '"c" is no host of link "p1", which has "a" and "b"'),
        ('action = "mtu"\nlink = "p1"\nmtu = "1500 B"', "is not below the link's own of 1500 B"),
        ('action = "mtu"\nlink = "p1"\nmtu = "1279 B"\n[default.link]\nfamily = "ipv6"', "IPv6 needs an MTU of 1280 B"),
        ('action = "mtu"\nlink = "p1"', 'mtu is missing; for example mtu = "1280 B"'),
        ('action = "forget"\nlink = "p1"', 'link "p1" has no firewall that could forget'),
        ('action = "cut"\nlink = "p1"\nnode = "a"', 'is no key of action = "cut"; that is action = "restart"'),
    ],
)
def test_mistakes(body: str, words: str) -> None:
    assert words in "\n".join(problems_of(event(body)))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('action = "restart"\nnode = "b"\nfor = "3 s"', 'flow "f" is UDP, whose datagrams are numbered once'),
        ('action = "stop_reading"\nflow = "f"', "is UDP: nothing holds its sender back"),
    ],
)
def test_datagrams_that_a_stopped_receiver_loses_are_not_asked_for(body: str, words: str) -> None:
    datagrams = 'protocol = "udp"\nmessages = { gaps = "10 ms", sizes = "100 B" }\n'
    assert words in "\n".join(problems_of(event(body).replace('protocol = "tcp"\n', datagrams)))


def test_two_restarts_do_not_overlap() -> None:
    text = event('action = "restart"\nnode = "b"\nfor = "3 s"')
    again = text + '[event.g]\nat = "3 s"\naction = "restart"\nnode = "b"\nfor = "1 s"\n'
    assert 'overlaps event "e"' in "\n".join(problems_of(again))
    assert len(cell_of(again.replace('node = "b"\nfor = "1 s"', 'node = "a"\nfor = "1 s"')).timeline) == 4


def test_reconnecting_is_of_flows_that_end_by_time() -> None:
    text = BASE + 'bytes = "1 MB"\nsender = { reconnect = "1 s" }'
    assert "is of flows that end by time" in "\n".join(problems_of(text))
