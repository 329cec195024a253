"""Pages as flows: grammar and mistakes, the arguments of their programs, where those run."""

from __future__ import annotations

import pytest
from netwarp.core.types import Cell
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.steps import to_text
from support.specs import BASE, plan_of, problems_of, replaced

PAGE = 'page = { html = "2 kB", objects = { count = 3, size = "13.5 kB" } }'


def cell_of(page: str = PAGE, protocol: str = "tcp", more: str = "") -> Cell:
    return plan_of(replaced('protocol = "tcp"', f'protocol = "{protocol}"\n{page}\n{more}')).cells[0]


def test_the_server_sends_and_the_client_connects() -> None:
    cell = cell_of()
    flow = cell.flows[0]
    assert (flow.is_page, flow.opener) == (True, "receiver")
    text = to_text(compile_cell(cell, Clock(t0_realtime_ns=1_700_000_000_000_000_000)).steps)
    spawned = [line for line in text.splitlines() if "web-" in line]
    assert len(spawned) == 2 and "web-server" in spawned[0] and "web-client" in spawned[1], "the server first"
    assert "f.sender" in spawned[0] and "f.receiver" in spawned[1]
    assert cell_of().nodes[0].sysctls["net.ipv4.tcp_no_metrics_save"] == "1"


def test_other_flows_have_no_page() -> None:
    flow = plan_of(BASE).cells[0].flows[0]
    assert (flow.is_page, flow.opener) == (False, "sender")
    assert "net.ipv4.tcp_no_metrics_save" not in plan_of(BASE).cells[0].nodes[0].sysctls


def test_several_connections_are_not_pipelined_unless_asked() -> None:
    assert "serial" not in cell_of().flows[0].receiver_options
    six = PAGE.replace("{ html", "{ connections = 6, html")
    assert cell_of(six).flows[0].receiver_options["serial"] is True
    assert cell_of(six).flows[0].sender_options["expected"] == 3, "no more connections than objects"
    piped = six.replace("{ conn", "{ pipelined = true, conn")
    assert "serial" not in cell_of(piped).flows[0].receiver_options


def test_a_stream_an_object_unless_asked() -> None:
    flow = cell_of(protocol="sctp").flows[0]
    assert flow.receiver_options["streams"] == flow.sender_options["streams"] == 4
    assert flow.sender_options["message_bytes"] == 1452
    mixed = cell_of(PAGE.replace("{ html", "{ interleave = true, html"), protocol="sctp")
    assert {node.sysctls["net.sctp.intl_enable"] for node in mixed.nodes} == {"1"}


def test_drawn_sizes_are_the_same_in_every_cell() -> None:
    page = 'page = { objects = { count = 30, median = "9 kB", sigma = "1.4" } }'
    text = replaced('protocol = "tcp"', f'protocol = "tcp"\n{page}') + '[factor.v]\nlevels = ["1", "2"]\n'
    sizes = {str(cell.flows[0].receiver_options["object_bytes"]) for cell in plan_of(text).cells}
    assert len(sizes) == 1
    drawn = sorted(map(int, sizes.pop().split(",")))
    assert len(drawn) == 30 and drawn[0] < 9000 < drawn[-1] and len(set(drawn)) > 25


@pytest.mark.parametrize(
    ("page", "protocol", "more", "said"),
    [
        ("page = {}", "tcp", "", "neither html nor objects"),
        (PAGE, "mptcp", "", "over tcp or sctp, not mptcp"),
        (PAGE, "tcp", 'bytes = "1 MB"', "is not of a flow with a page"),
        (PAGE, "tcp", 'sender = { sample_interval = "1 s" }', "sample_interval_ns is no option of a page"),
        (PAGE.replace("{ html", "{ streams = 3, html"), "tcp", "", "is of sctp only"),
        (PAGE.replace("{ html", "{ connections = 3, html"), "sctp", "", "is of tcp only"),
        ("page = { objects = { count = 3 } }", "tcp", "", "needs count, and size or median"),
        ('page = { objects = { count = 3, median = "1 kB" } }', "tcp", "", "sigma goes with median"),
        ('page = { objects = { count = 3, median = "1 kB", sigma = "x" } }', "tcp", "", "number from 0 to 4"),
        ("page = { objects = 3 }", "tcp", "", "must be sizes"),
        ('page = { objects = ["20 MB"] }', "tcp", "", "16"),
        ("page = { object = 3 }", "tcp", "", "did you mean"),
        (PAGE.replace("{ html", '{ frame = "1 kB", html'), "tcp", "", "is of objects in turn"),
        (PAGE.replace("{ html", "{ multiplexed = true, connections = 2, html"), "tcp", "", "share one connection"),
        (PAGE.replace("{ html", "{ multiplexed = true, html"), "sctp", "", "is of tcp only"),
        (PAGE.replace("{ html", '{ order = "rr", streams = 2, html'), "sctp", "", "for example streams = 3"),
        (PAGE.replace("{ html", '{ order = "prio", streams = 3, html'), "sctp", "", "for example streams = 4"),
        ("page = { objects = [" + '"1 kB",' * 257 + "] }", "tcp", "", "at most 256"),
    ],
)
def test_mistakes(page: str, protocol: str, more: str, said: str) -> None:
    lines = problems_of(replaced('protocol = "tcp"', f'protocol = "{protocol}"\n{page}\n{more}'))
    assert any(said in line for line in lines), lines
