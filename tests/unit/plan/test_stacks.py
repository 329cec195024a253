"""Stack profiles: sysctls and options of another system under what the spec says itself."""

from __future__ import annotations

import pytest
from netwarp.experiment.problems import Problems
from netwarp.experiment.profiles import STACKS, names_in, read_stack
from netwarp.testbed.compile import Clock, compile_cell
from support.specs import plan_of, problems_of

SPEC = """\
format = 1
name = "s"
duration = "5 s"
[node.a]
stack = "linux-2.6.10-like"
[node.b]
stack = "ns-2.29-like"
sysctl = { "net.ipv4.tcp_recovery" = "1" }
[link.l]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = "50 packets"
one_way_delay = "10 ms"
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["l"]
bytes = "100 kB"
"""


@pytest.mark.parametrize("name", names_in(STACKS))
def test_every_value_of_every_stack_has_its_source(name: str) -> None:
    problems = Problems()
    stack = read_stack(STACKS / f"{name}.toml", problems)
    problems.check()
    assert stack is not None and stack.get("cannot") is not None


def test_a_stack_is_sysctls_and_options_of_the_flows_of_its_host() -> None:
    cell = plan_of(SPEC).cells[0]
    a, b = cell.nodes
    assert (a.sysctls["net.ipv4.tcp_recovery"], a.sysctls["net.ipv4.tcp_rmem"]) == ("0", "4096 87380 174760")
    (flow,) = cell.flows
    assert (flow.sender_options["congestion"], flow.sender_options["initial_window_packets"]) == ("bic", 3)
    assert flow.receiver_options == {"quick_ack": True}
    assert b.sysctls["net.ipv4.tcp_timestamps"] == "0"
    commands = [item.command for item in compile_cell(cell, Clock()).steps]
    assert sum(" quickack 1" in command for command in commands) == 1
    assert not any("--quick-ack" in command for command in commands)


def test_what_the_spec_says_itself_wins() -> None:
    cell = plan_of(SPEC + 'sender = { congestion = "reno" }\n').cells[0]
    assert cell.nodes[1].sysctls["net.ipv4.tcp_recovery"] == "1"
    assert cell.flows[0].sender_options["congestion"] == "reno"
    assert cell.flows[0].sender_options["initial_window_packets"] == 3


def test_sctp_has_its_own_options() -> None:
    text = SPEC.replace('"tcp"', '"sctp"').replace("ns-2.29-like", "linux-2.6.6-like")
    (flow,) = plan_of(text).cells[0].flows
    assert (flow.receiver_options, "congestion" in flow.sender_options) == ({"sack_frequency": 1}, False)


def test_today_is_no_profile() -> None:
    today = SPEC.replace("linux-2.6.10-like", "today").replace("ns-2.29-like", "today")
    cell = plan_of(today).cells[0]
    assert "net.ipv4.tcp_recovery" not in cell.nodes[0].sysctls
    assert cell.flows[0].receiver_options == {}


def test_a_stack_that_is_not_there() -> None:
    (said,) = problems_of(SPEC.replace("linux-2.6.10-like", "linux-2.6.10"))
    assert 'there is no stack "linux-2.6.10", did you mean "linux-2.6.10-like"?' in said


@pytest.mark.parametrize(
    ("mtu", "option", "packets"),
    [
        (1500, "", 3),
        (576, "", 4),
        (1147, "", 4),
        (1148, "", 3),
        (1513, "", 2),
        (1500, 'receiver = { mss = "536 B" }\n', 4),
    ],
)
def test_the_initial_window_of_rfc_3390_follows_the_segments(mtu: int, option: str, packets: int) -> None:
    text = SPEC.replace('one_way_delay = "10 ms"', f'one_way_delay = "10 ms"\nmtu = "{mtu} B"')
    text = text.replace("ns-2.29-like", "linux-2.6.10-like") + option
    (flow,) = plan_of(text).cells[0].flows
    assert flow.sender_options["initial_window_packets"] == packets


def test_without_timestamps_a_segment_is_12_bytes_longer() -> None:
    text = SPEC.replace('one_way_delay = "10 ms"', 'one_way_delay = "10 ms"\nmtu = "1147 B"')
    assert plan_of(text).cells[0].flows[0].sender_options["initial_window_packets"] == 3
