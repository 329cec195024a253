"""Agents on routers: what a spec may say, the cell's, and the steps they become."""

from __future__ import annotations

import pytest
from netwarp.core.types import Agent, OptionValue
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.nftables import AgentRules, agent_rules, check_rules, decode_rules
from netwarp.testbed.steps import Step
from support.specs import plan_of, problems_of, replaced

SPEC = """\
format = 1
name = "test"
duration = "10 s"
[node.fh]
[node.bs]
kind = "router"
agent = "snoop"
[node.mh]
[link.wired]
between = ["fh", "bs"]
[link.air]
between = ["bs", "mh"]
rate = "2 Mbit/s"
queue = "50 packets"
[flow.f]
from = "fh"
to = "mh"
protocol = "tcp"
paths = [{ sender = "wired", receiver = "air" }]
"""


def agent_of(agent: str) -> Agent | None:
    cell = plan_of(replaced('"snoop"', agent, SPEC)).cells[0]
    return next(node.agent for node in cell.nodes if node.name == "bs")


def steps_of(agent: str = '"snoop"') -> list[Step]:
    return compile_cell(plan_of(replaced('"snoop"', agent, SPEC)).cells[0], Clock(t0_realtime_ns=1)).steps


def test_the_link_is_the_one_towards_the_receiver() -> None:
    assert agent_of('"snoop"') == Agent("snoop", "air")
    assert agent_of('{ kind = "snoop", link = "wired" }') == Agent("snoop", "wired")


def test_options_and_death() -> None:
    text = """{ kind = "snoop", cache = "7 packets", timeout_min = "20 ms", retransmissions = 3, sack = "pass",
  dies_at = "4 s" }""".replace("\n ", "")
    options: dict[str, OptionValue] = {"cache_packets": 7, "timeout_min_ns": 20_000_000}
    options |= {"retransmissions": 3, "sack": "pass"}
    assert agent_of(text) == Agent("snoop", "air", options, 4_000_000_000)


def test_none_is_no_agent() -> None:
    assert agent_of('"none"') is None
    assert not [step for step in steps_of('"none"') if "agent" in step.line() or "netfilter" in step.line()]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('"snoop"', '"snop"', 'there is no agent "snop", did you mean "snoop"?'),
        ('"snoop"', '{ cache = "7 packets" }', "has no kind"),
        ('"snoop"', '{ kind = "snoop", cache = "7" }', "cache"),
        ('"snoop"', '{ kind = "snoop", cash = "7 packets" }', 'unknown key "cash"'),
        ('"snoop"', '{ kind = "snoop", link = "wierd" }', '"bs" is not on a link "wierd"'),
        ("[node.mh]", '[node.mh]\nagent = "snoop"', '"mh" is a host, and agents are on routers'),
        ('to = "mh"\nprotocol = "tcp"', 'to = "mh"\nprotocol = "sctp"', "which link leads to the mobile host?"),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, text: str) -> None:
    assert any(text in line for line in problems_of(replaced(old, new, SPEC))), problems_of(replaced(old, new, SPEC))


def test_steps_set_up_rules_and_wait_for_the_agent() -> None:
    lines = [step.line() for step in steps_of('{ kind = "snoop", cache = "7 packets", dies_at = "4 s" }')]
    rules = next(n for n, line in enumerate(lines) if "netlink" in line and "netfilter=1" in line)
    spawn = next(n for n, line in enumerate(lines) if line.startswith("spawn id=bs.agent"))
    assert rules < lines.index("capture-start") < spawn
    assert "arg=--cache-packets arg=7" in lines[spawn] and "flow=1" not in lines[spawn]
    assert lines[spawn + 1].startswith("output id=bs.agent text=%22ready%22")
    assert "signal at=4000000000 id=bs.agent signal=9" in lines
    assert [line for line in lines if line.startswith("dump") and "label=rules" in line]


def test_a_relay_has_rules_for_its_flows_ports() -> None:
    assert agent_of('{ kind = "itcp-proxy", buffer = "8 KiB" }') == Agent(
        "itcp-proxy", "air", {"buffer_bytes": 8192, "port": "5001"}
    )
    commands = [step.command for step in steps_of('"itcp-proxy"') if "ip rule" in step.command]
    assert len(commands) == 4
    assert commands[0] == "ip netns exec bs ip rule add pref 100 iif air ipproto tcp sport 5001-5001 lookup 100"
    assert not [step for step in steps_of('"itcp-proxy"') if "netfilter" in step.line()]


@pytest.mark.parametrize(("told", "signals"), [("nothing", []), ("return", [10]), ("both", [12, 10])])
def test_mtcp_is_told_of_faults_of_its_link(told: str, signals: list[int]) -> None:
    text = replaced('"snoop"', f'{{ kind = "mtcp", told = "{told}" }}', SPEC)
    for link in ("wired", "air"):
        text += f'[event.{link}]\naction = "cut"\nlink = "{link}"\nat = "2 s"\nfor = "1 s"\n'
    steps = compile_cell(plan_of(text).cells[0], Clock(t0_realtime_ns=1)).steps
    sent = [dict(step.fields)["signal"] for step in steps if step.verb == "signal"]
    assert sent == [str(number) for number in signals]


def test_rules_are_decoded_by_what_they_do() -> None:
    """The kernel sends rules back as they were set up; a rule that is missing is no count of zero."""
    batch = agent_rules().data
    assert decode_rules([batch]) is None  # a counter that was only set up has no numbers
    assert decode_rules([]) is None


def test_a_packet_that_went_missing_is_only_right_where_the_agent_dies() -> None:
    whole, short = AgentRules(10, 7, 3), AgentRules(10, 7, 2)
    assert check_rules("bs", whole, dies=False).ok and check_rules("bs", whole, dies=True).ok
    assert not check_rules("bs", short, dies=False).ok and check_rules("bs", short, dies=True).ok
    assert not check_rules("bs", AgentRules(1, 2, 0), dies=True).ok and not check_rules("bs", None, dies=True).ok
