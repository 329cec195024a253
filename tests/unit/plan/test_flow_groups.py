"""`count = 50` makes equal flows: names, ports, hosts, times; outputs choose them by pattern."""

from __future__ import annotations

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.frozen import to_json
from netwarp.experiment.flow_groups import matching
from netwarp.plan.group_words import group_lines
from support.specs import BASE, cell_of, plan_of, problems_of, replaced

MS, S = 10**6, 10**9
DUMBBELL = """\
format = 1
name = "test"
duration = "10 s"
shape = { kind = "dumbbell", pairs = 3 }
[default.link]
rate = "10 Mbit/s"
queue = "50 packets"
one_way_delay = "5 ms"
[flow.x]
from = "a*"
to = "b*"
paths = ["a*"]
protocol = "tcp"
"""
COUNTED = DUMBBELL + "count = 5\n"


def test_each_flow_has_a_name_a_port_and_the_next_pair_of_hosts() -> None:
    flows = cell_of(COUNTED).flows
    assert [(flow.name, flow.port, flow.sender, flow.receiver) for flow in flows] == [
        ("x1", 5001, "a1", "b1"),
        ("x2", 5002, "a2", "b2"),
        ("x3", 5003, "a3", "b3"),
        ("x4", 5004, "a1", "b1"),
        ("x5", 5005, "a2", "b2"),
    ]
    assert [flow.paths[0].name for flow in flows] == ["a1-b1", "a2-b2", "a3-b3", "a1-b1", "a2-b2"]
    assert {flow.group for flow in flows} == {"x"}


def test_a_flow_without_count_has_the_cell_it_had() -> None:
    assert b"group" not in to_json(cell_of(BASE))


def test_one_of_one_is_numbered_too() -> None:
    assert [flow.name for flow in cell_of(BASE + "count = 1\n").flows] == ["f1"]


def test_starts_and_stops_follow_each_other() -> None:
    joins = COUNTED + 'start = { first = "1 s", every = "100 ms" }\n'
    last = cell_of(joins + 'stop = { last = "5 s", every = "1 s" }\n').flows
    assert [flow.start_ns // MS for flow in last] == [1000, 1100, 1200, 1300, 1400]
    assert [(flow.stop_ns or 0) // S for flow in last] == [9, 8, 7, 6, 5], "the last to come is the first to leave"
    first = cell_of(joins + 'stop = { first = "5 s", every = "1 s" }\n').flows
    assert [(flow.stop_ns or 0) // S for flow in first] == [5, 6, 7, 8, 9]
    assert {flow.start_ns for flow in cell_of(COUNTED + 'start = "2 s"\n').flows} == {2 * S}


def test_each_has_a_phase_of_its_own() -> None:
    starts = [flow.start_ns for flow in cell_of(COUNTED + 'phase = { uniform = ["0 s", "1 s"] }\n').flows]
    assert len(set(starts)) == 5


def test_ports_follow_the_given_one_and_other_flows_theirs() -> None:
    text = (
        COUNTED + 'port = 7000\n[flow.y]\nlike = "x"\ncount = 2\nport = 8000\n[flow.z]\nlike = "x"\ncount = 1\nport=9\n'
    )
    assert [flow.port for flow in cell_of(text).flows] == [7000, 7001, 7002, 7003, 7004, 8000, 8001, 9]


@pytest.mark.parametrize("how", ['sets = ["flow.x.count", "shape.pairs"]', ""])
def test_the_number_may_be_a_factor(how: str) -> None:
    text = DUMBBELL.replace("pairs = 3", "pairs = 2" if how else 'pairs = "{n}"')
    text += f'count = {3 if how else chr(34) + "{n}" + chr(34)}\n[factor.n]\nlevels = ["2", "4"]\n{how}\n'
    few, many = plan_of(text).cells
    assert [[flow.name for flow in cell.flows] for cell in (few, many)] == [["x1", "x2"], ["x1", "x2", "x3", "x4"]]
    assert many.flows[3].sender == "a4"


def test_several_paths_of_one_host() -> None:
    text = replaced('paths = ["p1"]', 'paths = [{ sender = "*", receiver = "p*" }]', BASE) + "count = 2\n"
    assert [flow.paths[0].name for flow in cell_of(text).flows] == ["p1", "p1"]


TABLE = COUNTED + '[table.t]\nmetric = "goodput_bit_s"\nrows = ["flow"]\nflow = {}\n'


def test_outputs_choose_by_pattern() -> None:
    (table,) = plan_of(TABLE.replace("{}", '"x*"')).tables
    assert table.flows == ("x1", "x2", "x3", "x4", "x5")
    (table,) = plan_of(TABLE.replace("{}", '["x2", "*4"]')).tables
    assert table.flows == ("x2", "x4")
    assert matching("x*", ["x", "y", "x10", "ax"]) == ["x", "x10"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            COUNTED.replace("count = 5", "count = 0"),
            "flow.x.count: must be a whole number from 1 to 1000; for example 50",
        ),
        (COUNTED.replace("count = 5", "count = 5000"), "must be a whole number from 1 to 1000"),
        (COUNTED + '[flow.y]\nlike = "x"\ncount = 999\n', "flow.y.count: 1004 flows in this cell; at most 1000"),
        (
            COUNTED + '[flow.x3]\nfrom = "a1"\nto = "b1"\npaths = ["a1"]\nprotocol = "tcp"\n',
            'a flow "x3", which is there',
        ),
        (DUMBBELL, 'flow.x.from: "a*" names several hosts, which goes with count = 50'),
        (COUNTED.replace('"a*"\nto', '"c*"\nto'), 'flow.x.from: there is no host "c*"'),
        (COUNTED.replace('["a*"]', '["b*"]'), '"b*" fits none of its links: a1 (at host "a1")'),
        (COUNTED + 'start = { first = "1 s" }\n', 'its every is missing; for example start = { first = "0 s", every'),
        (COUNTED + 'stop = { every = "1 s" }\n', "has either first or last, of which the others follow"),
        (BASE + 'start = { every = "1 s" }\n', 'is a table, which goes with count = 50; of one flow start = "0.5 s"'),
        (COUNTED + 'start = { first = "9 s", every = "1 s" }\n', "flow.x.start: is after the end of the cell"),
        (TABLE.replace("{}", '"y*"'), 'table.t.flow: there is no flow "y*"'),
        (TABLE.replace("{}", '"x9"'), 'table.t.flow: there is no flow "x9"'),
        (
            TABLE.replace("{}", '"x"').replace('rows = ["flow"]\n', ""),
            '"x" is 5 flows; write "x*" for all, or one of them',
        ),
        (TABLE.replace("{}", '"x"'), '"x" is 5 flows'),
        (
            COUNTED
            + 'stop = "9 s"\n[flow.y]\nlike = "x"\ncount = 2\n[table.t]\nmetric = "goodput_bit_s"\nflow = "x*"\n',
            "names 5 flows",
        ),
        (COUNTED + '[table.t]\nmetric = "goodput_bit_s"\n', "of which flow? name one: x1, x2, x3, x4, x5"),
        (COUNTED.replace("[flow.x]", "[flow.a1234567890123456789012345678901]"), "would be no name"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    assert said in "\n".join(problems_of(text))


def test_the_plan_says_a_group_in_one_line() -> None:
    text = COUNTED + 'start = { first = "0 s", every = "250 ms" }\nbytes = "1 MB"\n'
    assert list(group_lines(plan_of(text))) == [
        "x: 5 tcp flows, x1, x2, x3, x4, x5; from a1, a2, a3 to b1, b2, b3 over a1-b1, a2-b2, a3-b3;"
        " start 0 s to 1 s; size 1 MB, together 5 MB"
    ]
    assert list(group_lines(plan_of(BASE))) == []


def test_the_most_flows_are_planned() -> None:
    flows = cell_of(COUNTED.replace("count = 5", "count = 1000")).flows
    assert (len(flows), flows[-1].name, flows[-1].port) == (1000, "x1000", 6000)
    with pytest.raises(SpecError, match="at most 1000"):
        plan_of(COUNTED.replace("count = 5", "count = 1000") + '[flow.y]\nlike = "x"\ncount = 1\n')
