"""Cell -> Steps, without a kernel: layout, routes, faults, order, printing."""

from __future__ import annotations

import msgspec
import pytest
from netwarp.core.errors import SpecError
from netwarp.core.link_types import Link, LinkImpairment
from netwarp.core.types import Cell, Event, Node
from netwarp.store.init_records import Dump
from netwarp.testbed import messages
from netwarp.testbed.compile import AskedDump, Clock, Compiled, compile_cell
from netwarp.testbed.layout import make_layout
from netwarp.testbed.readback import Check, verify
from netwarp.testbed.steps import quote, step, to_commands, to_text
from support.cells import MS, SLOW, S, outage, two_path_cell

CLOCK = Clock(t0_realtime_ns=1_700_000_000 * S)


def compiled(cell: Cell) -> Compiled:
    return compile_cell(cell, CLOCK)


def commands(cell: Cell) -> str:
    return to_commands(compiled(cell).steps)


def test_a_shaped_link_between_hosts_gets_a_hop_that_shapes_both_directions() -> None:
    layout = make_layout(two_path_cell())
    assert layout.namespaces == ("a", "b", "p1.hop", "p2.hop")
    assert layout.shaped["p1", "forward"].node == "p1.hop"
    assert layout.shaped["p1", "forward"].peer_node == "b"
    assert layout.shaped["p1", "backward"].peer_node == "a"


def test_hosts_carry_no_qdisc_of_ours() -> None:
    cell = two_path_cell()
    for interface in make_layout(cell).shaped.values():
        assert interface.node not in ("a", "b")


def test_an_ideal_link_is_one_veth() -> None:
    cell = two_path_cell(
        links=(Link("p1", "a", "b", LinkImpairment(), LinkImpairment()), Link("p2", "a", "b", SLOW, SLOW))
    )
    assert make_layout(cell).namespaces == ("a", "b", "p2.hop")


def test_routes_follow_the_shortest_way_and_hosts_never_forward() -> None:
    nodes = (Node("a", "host"), Node("r", "router"), Node("h", "host"), Node("b", "host"))
    links = (
        Link("ah", "a", "h", LinkImpairment(), LinkImpairment()),
        Link("hb", "h", "b", LinkImpairment(), LinkImpairment()),
        Link("ar", "a", "r", LinkImpairment(), LinkImpairment()),
        Link("rb", "r", "b", LinkImpairment(), LinkImpairment()),
    )
    layout = make_layout(two_path_cell(nodes=nodes, links=links))
    from_a = {route.subnet: route.gateway for route in layout.routes if route.node == "a"}
    assert from_a[layout.interface("b", "rb").subnet] == layout.interface("r", "ar").ip
    # the only way to h's other subnet leads through a host: there is none
    assert layout.interface("b", "hb").subnet not in from_a
    assert not any(route.subnet == "0.0.0.0" for route in layout.routes)


def test_every_interface_has_its_own_index_mac_and_address() -> None:
    interfaces = make_layout(two_path_cell()).interfaces()
    for key in ("ifindex", "mac", "ip"):
        assert len({getattr(interface, key) for interface in interfaces}) == len(interfaces) == 8


def test_long_link_names_are_refused() -> None:
    with pytest.raises(SpecError, match="15 characters"):
        make_layout(two_path_cell(links=(Link("abcdefghijklmnop", "a", "b", SLOW, SLOW),)))


def test_cut_replaces_under_a_new_handle_and_repair_builds_both_anew() -> None:
    text = commands(two_path_cell(timeline=outage("cut")))
    cut = "tc qdisc replace dev b root handle 3: netem limit 1000000 loss 100%"
    assert f"# at T0 + 5 s\nip netns exec p1.hop {cut}" in text
    assert "tc qdisc replace dev b root handle 5: netem limit 1000000 delay 200000us" in text
    assert "tc qdisc replace dev b parent 5:1 handle 6: netem limit 51 rate 500000bit -14" in text


def test_blackhole_changes_in_place_and_repair_restores() -> None:
    cell = two_path_cell(timeline=outage("blackhole"))
    text = commands(cell)
    assert "tc qdisc change dev b root handle 1: netem limit 1000000 delay 200000us loss 100%" in text
    assert text.count("tc qdisc change dev b root handle 1: netem limit 1000000 delay 200000us seed") == 1


def test_one_direction_only() -> None:
    down, up = outage("cut", directions=("forward",))
    text = commands(two_path_cell(timeline=(down, msgspec.structs.replace(up, directions=("forward",)))))
    assert "replace dev b root handle 3:" in text and "replace dev a root handle 3:" not in text


def test_link_goes_down_at_the_named_end_and_routes_come_back() -> None:
    nodes = (Node("a", "host"), Node("r", "router"), Node("s", "router"), Node("b", "host"))
    links = (
        Link("ar", "a", "r", LinkImpairment(), LinkImpairment()),
        Link("rs", "r", "s", SLOW, SLOW),
        Link("sb", "s", "b", LinkImpairment(), LinkImpairment()),
    )
    cell = two_path_cell(nodes=nodes, links=links, flows=(), captures=())
    down = Event(5 * S, "outage", "link", "rs", end="r")
    text = commands(msgspec.structs.replace(cell, timeline=(down, Event(8 * S, "outage", "repair", "rs"))))
    after = text.split("# at T0 + 8 s\n", 1)[1]
    assert "ip netns exec r ip link set dev rs down" in text
    for part in ("ip link set dev rs up", "ip neigh replace", "ip route replace"):
        assert part in after


def test_the_end_of_a_link_event_must_exist() -> None:
    with pytest.raises(SpecError, match=r"it has: a, p1.hop:a, b, p1.hop:b"):
        compiled(two_path_cell(timeline=(Event(5 * S, "o", "link", "p1", end="nowhere"),)))


def test_change_of_rate_keeps_the_queue_and_change_while_cut_waits_for_the_repair() -> None:
    fast = LinkImpairment(one_way_delay_ns=MS, rate_bit_s=1_000_000, queue_packets=50)
    change = Event(6 * S, "faster", "change", "p1", forward=fast)
    text = commands(two_path_cell(timeline=(change,)))
    at6 = text.split("# at T0 + 6 s\n", 1)[1]
    assert "tc class change dev rate18 parent 2: classid 2:1 htb rate 1000000bit" in at6
    assert "tc qdisc change dev b root handle 1: netem limit 1000001 rate 1000000bit" in at6
    assert "pfifo" not in at6  # what waits stays
    down, up = outage("cut")
    text = commands(two_path_cell(timeline=(down, change, up)))
    at6 = text.split("# at T0 + 6 s")[1:]
    assert not at6  # nothing is done at 6 s: the qdisc is cut
    assert "rate 1000000bit" in text.split("# at T0 + 8 s\n", 1)[1]


@pytest.mark.parametrize("rated", [False, True])
def test_change_in_a_black_hole_comes_with_the_repair(rated: bool) -> None:
    """A rate, and no rate any more (other qdiscs under new handles): what must be there is what was asked for."""
    down, up = outage("blackhole")
    after = LinkImpairment(one_way_delay_ns=MS) if rated else LinkImpairment(MS, rate_bit_s=1_000_000, queue_packets=50)
    cell = two_path_cell(timeline=(down, Event(6 * S, "other", "change", "p1", forward=after), up))
    result, where = compiled(cell), make_layout(cell).shaped["p1", "forward"]
    text = to_commands(result.steps)
    assert not text.split("# at T0 + 6 s")[1:]
    repaired = text.split("# at T0 + 8 s\n", 1)[1]
    expected = [item for item in list(result.events.values())[-1] if item.device == where]
    assert expected
    for item in expected:
        assert f"handle {item.handle:x}: {item.stage.text()}" in repaired
    assert ("rate 1000000bit" in repaired) is not rated


def test_timeline_is_in_order_and_events_come_before_apps_at_equal_times() -> None:
    cell = two_path_cell(timeline=(Event(0, "early", "cut", "p1"),))
    timed = [item for item in compiled(cell).steps if item.at_ns is not None and item.verb != "end"]
    assert [item.at_ns for item in timed] == sorted(item.at_ns for item in timed if item.at_ns is not None)
    assert timed[0].verb == "netlink" and timed[-1].verb == "spawn"


def test_expected_qdiscs_are_filed_under_the_line_of_their_dump() -> None:
    result = compiled(two_path_cell(timeline=outage("cut")))
    lines = to_text(result.steps).split("\n")
    for number, dump in result.dumps.items():
        assert lines[number - 1].startswith("dump ") and f"label={dump.label}" in lines[number - 1]
        assert all(item.device.name in ("a", "b") for item in result.expected(dump, set()))
    # start, cut, repair, end of two hops; start and end of two hosts
    assert sum(dump.label == "qdisc" for dump in result.dumps.values()) == 4 + 2 + 4


def test_seeds_differ_by_link_and_direction_and_follow_the_cell_seed() -> None:
    def seeds(seed: int) -> list[int]:
        result = compiled(two_path_cell(seed=seed))
        return [item.stage.seed for item in result.installed]  # type: ignore[attr-defined]

    assert len(set(seeds(1))) == 8
    assert set(seeds(1)).isdisjoint(seeds(2))


def test_values_are_percent_encoded() -> None:
    assert quote('a b%"=ü') == "a%20b%25%22%3D%C3%BC"
    assert step("spawn", id="x", arg=["a b", "c"], at_ns=5).line() == "spawn at=5 id=x arg=a%20b arg=c"


def test_options_become_arguments() -> None:
    cell = two_path_cell()
    flow = msgspec.structs.replace(
        cell.flows[0], sender_options={"nodelay": True, "sndbuf_bytes": 9}, receiver_options={"nodelay": False}
    )
    spawns = [item for item in compiled(msgspec.structs.replace(cell, flows=(flow,))).steps if item.verb == "spawn"]
    assert "--nodelay --sndbuf-bytes 9" in spawns[1].command
    assert "nodelay" not in spawns[0].command


def test_a_sender_that_starts_soon_after_t0_is_spawned_before_it() -> None:
    """Where T0 is known beforehand; where it follows from `ready`, it is spawned at T0."""
    cell = two_path_cell()
    for start_ns, clock, at_ns in (
        (0, CLOCK, None), (500 * MS - 1, CLOCK, None), (500 * MS, CLOCK, 0), (0, Clock(), 0),
        (3 * S, CLOCK, 2500 * MS),
    ):  # fmt: skip
        flow = msgspec.structs.replace(cell.flows[0], start_ns=start_ns)
        steps = compile_cell(msgspec.structs.replace(cell, flows=(flow,)), clock).steps
        senders = [item for item in steps if item.verb == "spawn" and "sender" in item.command]
        assert [item.at_ns for item in senders] == [at_ns]


def read_back(result: Compiled, namespace: str, label: str, replies: list[str]) -> list[Check]:
    """The checks of the one answer to the dump made after a repair."""
    number = result.layout.namespaces.index(namespace)
    (step_number,) = [at for at, dump in repaired(result).items() if (dump.namespace, dump.label) == (number, label)]
    checks, _ = verify(result, [Dump(step_number, label, number, tuple(replies))])
    names = {"route": "static routes", "neighbour": "permanent neighbours", "address": "addresses"}
    return [check for check in checks if check.check == f"{names[label]} of {namespace}"]


def repaired(result: Compiled) -> dict[int, AskedDump]:
    """The dumps on the timeline that must show all that was set up."""
    return {number: dump for number, dump in result.dumps.items() if dump.whole and dump.at_ns is not None}


WHOLE = [(0, "address"), (0, "neighbour"), (0, "route")]


def test_addresses_and_routes_are_read_back_after_a_repair() -> None:
    down, up = outage("link", end="a")
    result = compiled(two_path_cell(timeline=(down, up)))
    assert sorted((dump.namespace, dump.label) for dump in repaired(result).values()) == WHOLE
    assert {dump.at_ns for dump in repaired(result).values()} == {8 * S}
    requests = {"route": messages.RTM_NEWROUTE, "neighbour": messages.RTM_NEWNEIGH, "address": messages.RTM_NEWADDR}
    for label, kind in requests.items():
        data = [item.line().partition("data=")[2].split()[0] for item in result.steps if item.verb == "netlink"
                and "ns=0 " in item.line() and item.at_ns is None]  # fmt: skip
        setup = [text for text in data if int.from_bytes(bytes.fromhex(text)[4:6], "little") == kind]
        assert setup
        assert [check.ok for check in read_back(result, "a", label, setup)] == [True]
        assert [check.ok for check in read_back(result, "a", label, setup[1:])] == [False]
    (unanswered,) = [check.detail for check in verify(result, [])[0] if check.check == "dumps"]
    assert all(f"{dump.label} of a (step {number})" in unanswered for number, dump in repaired(result).items())


def test_no_complete_state_is_expected_while_another_end_is_down() -> None:
    down, up = outage("link", end="a")
    other = [msgspec.structs.replace(event, name="other", link="p2", at_ns=event.at_ns + S) for event in (down, up)]
    result = compiled(two_path_cell(timeline=(down, other[0], up, other[1])))
    assert sorted((dump.namespace, dump.label) for dump in repaired(result).values()) == WHOLE
    assert {dump.at_ns for dump in repaired(result).values()} == {9 * S}
