# ruff: noqa: E501 (rows of tables)
"""Mistakes a newcomer makes with the spec of `netwarp plan --example`: each is named at its line, with the correction."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.experiment import EXAMPLE_SPEC, parse_spec
from netwarp.plan import make_plan
from support.specs import line_of, plan_of, problems_of, replaced

DURATION = 'duration = "10 s"'
PATHS = 'paths = ["p1"]'
BETWEEN = 'between = ["a", "b"]'
SECOND_PATH = '[link.p2]\nlike = "p1"\n'
FIGURE = '[figure.f]\nmetric = "goodput_bit_s"\nx = "rate"\nlines = ["protocol"]\n'
ROUTER = '[node.r]\n[link.p2]\nlike = "p1"\nbetween = ["r", "b"]\n'
LEVELS = 'levels = ["tcp", "sctp"]'


@pytest.mark.parametrize(
    ("old", "new", "more", "piece", "key", "says"),
    [
        # a level or a parameter is wrong, not the place where it is filled in
        ('"tcp", "sctp"', '"tcp", "sctpp"', "", '"sctpp"', "factor.protocol.levels[1]", '"sctpp" is none of tcp, sctp, mptcp, udp, quic, icmp, did you mean "sctp"?'),
        (LEVELS, 'levels = [\n"tcp",\n"sctpp",\n]', "", '"sctpp"', "factor.protocol.levels[1]", "(as flow.bulk.protocol, line 21)"),
        ('"5 Mbit/s"]', '"5 Mbps"]', "", '"5 Mbps"', "factor.rate.levels[2]", 'write "Mbit/s"'),
        ('queue = "50 packets"', 'queue = "{room}"', '[parameter]\nroom = "50 ms"\n', 'room = "50 ms"', "parameter.room", "is a time"),
        ('queue = "50 packets"', 'queue = "{room}"', '[parameter]\nroom = "{space}"\nspace = "50 ms"\n', 'space = "50 ms"', "parameter.space", "(as link.p1.queue, line 15)"),
        ('queue = "50 packets"', 'queue = "{room} ms"', '[parameter]\nroom = "50"\n', 'queue = "{room}', "link.p1.queue", 'written "{room} ms"'),
        # names of flows, factors and levels, in lists over several lines
        ('rows = ["protocol"]', 'rows = ["protocol"]\nflow = "bulkk"', "", 'flow = "bulkk"', "table.goodput.flow", 'no flow "bulkk", did you mean "bulk"?'),
        ("", "", FIGURE + 'flow = "bulkk"\n', 'flow = "bulkk"', "figure.f.flow", 'did you mean "bulk"?'),
        ("", "", '[figure.f]\nseries = ["cwnd_bytes"]\nflow = [\n"bulk",\n"bulkk"]\n', '"bulkk"', "figure.f.flow[1]", 'did you mean "bulk"?'),
        ("", "", '[answer.q]\nmetric = "outage_s"\nsettings = ["rate"]\ngiven = ["protocol"]\nbudgets = ["1 s"]\nflow = "bulkk"\n', 'flow = "bulkk"', "answer.q.flow", 'did you mean "bulk"?'),
        ('rows = ["protocol"]', 'rows = [\n"protocl",\n]', "", '"protocl"', "table.goodput.rows[0]", 'did you mean "protocol"?'),
        ("", "", '[experiment.e]\nfactors = [\n"protocol",\n"rte"]\n', '"rte"', "experiment.e.factors[1]", 'did you mean "rate"?'),
        (LEVELS, 'levels = [\n"tcp",\n"-"]', "", '"-"', "factor.protocol.levels[1]", "cannot name a level"),
        (LEVELS, 'levels = [\n"tcp",\n"tcp"]', "", '"tcp"]', "factor.protocol.levels[1]", '"tcp" stands there twice'),
        ("", "", '[figure.f]\nseries = [\n"cwnd"]\n', '"cwnd"', "figure.f.series[0]", 'unknown series "cwnd"'),
        # the file itself
        ('queue = "50 packets"', 'queue = "50 packets"\nqueue = "40 packets"', "", 'queue = "40', "link.p1.queue", "stands in line 15 already; leave one of the two out"),
        ("", "", "[node.a]\n", "[node.a]\n\n", "node.a", "stands in line 7 already; leave one of the two out"),
        ("", "", '[link.p1]\nloss = "1 %"\n', '[link.p1]\nloss', "link.p1", "stands in line 12 already"),
        ("", "", 'link.p1.loss = "1 %"\n[table.goodput.where]\nlink = "a"\nlink = "b"\n', 'link = "b"', "table.goodput.where.link", "already"),
        ("format = 1", "format = 2", "", "format = 2", "format", "this netwarp reads format 1; write format = 1"),
        ("format = 1", 'format = "1"', "", 'format = "1"', "format", "write format = 1"),
        ('one_way_delay = "20 ms"', "one_way_delay = 20 ms", "", "one_way_delay = 20 ms", "", 'text stands in quotes; for example one_way_delay = "20 ms"'),
        ('protocol = "{protocol}"', "protocol = tcp", "", "protocol = tcp", "", 'for example protocol = "tcp"'),
        ('rate = "{rate}"', "rate = {rate}", "", "rate = {rate}", "", 'for example rate = "{rate}"'),
        # numbers and units
        ('one_way_delay = "20 ms"', 'one_way_delay = "0,5 ms"', "", '"0,5 ms"', "link.p1.one_way_delay", 'write "0.5 ms"'),
        ('one_way_delay = "20 ms"', 'one_way_delay = "1,000 ms"', "", '"1,000 ms"', "link.p1.one_way_delay", 'write "1000 ms" or "1.000 ms"'),
        ('one_way_delay = "20 ms"', 'one_way_delay = "20 ms"\nloss = "0,1 %"', "", '"0,1 %"', "link.p1.loss", 'write "0.1 %"'),
        ('"5 Mbit/s"]', '"0,5 Mbit/s"]', "", '"0,5 Mbit/s"', "factor.rate.levels[2]", 'write "0.5 Mbit/s"'),
        # keys under the names other tools give them
        ('one_way_delay = "20 ms"', 'delay = "20 ms"', "", 'delay = "20 ms"', "link.p1.delay", 'is for single packets; did you mean "one_way_delay", which is of all?'),
        ('one_way_delay = "20 ms"', 'latency = "20 ms"', "", 'latency = "20 ms"', "link.p1.latency", 'did you mean "one_way_delay"?'),
        ('rate = "{rate}"', 'bandwidth = "{rate}"', "", "bandwidth", "link.p1.bandwidth", 'did you mean "rate"?'),
        (PATHS, PATHS + '\nsize = "1 MB"', "", "size = ", "flow.bulk.size", 'did you mean "bytes"?'),
        # sections
        ("[link.p1]", "[link]", "", "[link]", "link", "[link] has no name; for example [link.p1]"),
        ("[flow.bulk]", "[flow]", "", "[flow]", "flow", "[flow] has no name; for example [flow.ftp]"),
        ("[link.p1]", "[[link.p1]]", "", "[[link.p1]]", "link.p1", "single brackets"),
        ('kind = "host"\n[node.b]', 'kind = "host"\nsysctl = { net.ipv4.tcp_sack = "0" }\n[node.b]', "", "sysctl = ", "node.a.sysctl.net", 'write its name in quotes, "net.ipv4.tcp_sack"'),
        ("[table.goodput]", "[table]", "", "[table]", "table", "[table] has no name; for example [table.table5]"),
        # keys in other places, values of other kinds
        (PATHS, PATHS + '\ncongestion = "reno"', "", "congestion", "flow.bulk.congestion", 'sender = { congestion = "reno" }'),
        (PATHS, PATHS + '\nsender = { cc = "reno" }', '[experiment.e]\nfactors = ["rate"]\nfixed = { protocol = "tcp" }\n', "sender = ", "flow.bulk.sender.cc", 'did you mean "congestion"?'),
        (PATHS, PATHS + '\nsender = { congestion = "reno" }', '[experiment.e]\nfactors = ["rate"]\nfixed = { protocol = "sctp" }\n', "sender = ", "flow.bulk.sender.congestion", "no option of a sctp sender; it is one of a tcp or mptcp"),
        ('to = "b"', 'to = "a"', "", 'to = "a"', "flow.bulk.to", "two hosts"),
        ('to = "b"', 'to = "b"\nstart = "12 s"', "", "start = ", "flow.bulk.start", "after the end of the cell"),
        ('queue = "50 packets"\n', "", "", 'rate = "{rate}"', "link.p1.rate", 'a rate needs its queue; for example queue = "50 packets"'),
        ("", "", FIGURE.replace('"rate"', '["rate"]'), "x = ", "figure.f.x", "must be text"),
        ("", "", FIGURE + 'flwo = ["bulk"]\n', "flwo = ", "figure.f.flwo", 'did you mean "flow"?'),
        ('title = "TCP and', 'title = "TCP "and"', "", 'TCP "and"', "", "a quote inside a text is written"),
        ('protocol = "{protocol}"', "protocol = \N{LEFT DOUBLE QUOTATION MARK}tcp\N{RIGHT DOUBLE QUOTATION MARK}", "", "protocol = ", "", 'for example protocol = "tcp"'),
        ('protocol = "{protocol}"', 'protocol: "tcp"', "", "protocol: ", "", 'for example protocol = "tcp"'),
        # what is empty, and must not be
        (PATHS, "paths = []", "", "paths = []", "flow.bulk.paths", "at least one path"),
        (BETWEEN, "between = []", "", "between = []", "link.p1.between", "two different ends"),
        (LEVELS, "levels = []", "", "levels = []", "factor.protocol.levels", "is empty"),
        (DURATION, DURATION + "\ncaptures = []", "", "captures = []", "captures", 'is empty; for example ["a.p1", "b.p1"], or leave the key out'),
        ("", "", '[experiment.e]\nfactors = ["rate", "protocol"]\nzip = [[]]\n', "zip = ", "experiment.e.zip[0]", "at least two factors"),
        ("", "", '[experiment.e]\nfactors = ["rate", "protocol"]\nzip = [["rate"]]\n', "zip = ", "experiment.e.zip[0]", "at least two factors"),
        ("", "", '[answer.q]\nmetric = "outage_s"\nsettings = []\ngiven = ["rate", "protocol"]\nbudgets = ["1 s"]\n', "settings = []", "answer.q.settings", "is empty"),
        ("", "", '[answer.q]\nmetric = "outage_s"\nsettings = ["rate", "protocol"]\nbudgets = []\n', "budgets = []", "answer.q.budgets", "is empty"),
        ("", "", '[figure.f]\nseries = ["cwnd_bytes"]\nflow = []\n', "flow = []", "figure.f.flow", "is empty"),
        ("", "", '[table.t]\nmetric = "goodput_bit_s"\nrows = ["rate"]\nwhere = { protocol = [] }\n', "where = ", "table.t.where.protocol", "must be a level"),
        # the network
        ("[node.a]", "[node.c]\n[node.a]", "", "[node.c]", "node.c", 'has no link; for example [link.p2] with between = ["c", "a"]'),
        (BETWEEN, 'between = ["a", "r"]', ROUTER, PATHS, "flow.bulk.paths[0]", '"r" is a host, and hosts do not forward; write kind = "router" under [node.r]'),
        (DURATION, DURATION + '\ncaptures = ["b.p1"]', "", "captures = ", "captures", 'flow "bulk" is measured at both its ends: add "a.p1"'),
    ],
)  # fmt: skip
def test_the_mistake_is_named_where_it_stands(old: str, new: str, more: str, piece: str, key: str, says: str) -> None:
    text = (replaced(old, new, EXAMPLE_SPEC) if old else EXAMPLE_SPEC) + more
    found = problems_of(text)
    assert len(found) == 1, found
    line = text[: text.rindex(piece.rstrip("\n"))].count("\n") + 1
    assert found[0].startswith(f"nowhere/spec.toml:{line}: {key + ': ' if key else ''}"), found
    assert says in found[0]


def test_a_byte_order_mark_is_no_mistake() -> None:
    """Windows' editors write one."""
    spec = parse_spec(b"\xef\xbb\xbf" + EXAMPLE_SPEC.encode(), Path("spec.toml"), sets={})
    assert make_plan(spec) == plan_of(EXAMPLE_SPEC)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(encoding: str) -> None:
    with pytest.raises(SpecError, match=r"spec\.toml:1: UTF-16 text; save the file as UTF-8"):
        parse_spec(EXAMPLE_SPEC.encode(encoding), Path("spec.toml"), sets={})


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("link.p9.rate", "1 Mbit/s", 'there is no link "p9"; there is: p1'),
        ("node.c.kind", "router", 'there is no node "c"; there is: a, b'),
        ("flow.bulkk.start", "1 s", 'there is no flow "bulkk", did you mean "bulk"?'),
        ("event.outage.at", "1 s", 'there is no event "outage"; there are none'),
        ("factor.rat.levels", '["1 Mbit/s"]', 'there is no factor "rat", did you mean "rate"?'),
        ("table.goodputt.metric", "payload_bytes", 'there is no table "goodputt", did you mean "goodput"?'),
        ("rate", "1 Mbit/s", '"rate" is a factor; choose its levels with --where rate='),
        ("p1.rate", "1 Mbit/s", 'unknown key "p1"; write link.p1.rate'),
    ],
)
def test_set_names_only_what_there_is(key: str, value: str, says: str) -> None:
    (found,) = problems_of(EXAMPLE_SPEC, {key: value})
    assert found.startswith(f"--set: {key}: ")
    assert says in found


def test_set_reaches_what_a_shape_or_a_level_adds() -> None:
    shape = replaced(
        '[node.a]\nkind = "host"\n[node.b]\nkind = "host"\n\n', 'shape = { kind = "chain", hops = 2 }\n', EXAMPLE_SPEC
    )
    shape = shape[: shape.index("[link.p1]")] + shape[shape.index("[flow.bulk]") :].replace(
        '"p1"', '{ sender = "h1", receiver = "h2" }'
    )
    shape += '[factor.fault]\nlevels = ["cut"]\n[factor.fault.level.cut.event.outage]\naction = "cut"\nlink = "h1"\nat = "5 s"\n'
    shape = replaced("[flow.bulk]\n", '[flow.bulk]\nbytes = "1 MB"\n', shape)
    sets = {"link.h1.mtu": "1400 B", "event.outage.at": "6 s"}
    plan = plan_of(shape, sets)
    assert {link.mtu_bytes for cell in plan.cells for link in cell.links if link.name == "h1"} == {1400}
    assert {event.at_ns for cell in plan.cells for event in cell.timeline} == {6 * 10**9}


TWO_PATHS = replaced('"{protocol}"', '"sctp"', replaced(PATHS, 'paths = ["p1", "p2"]', EXAMPLE_SPEC)) + SECOND_PATH


@pytest.mark.parametrize(
    ("captures", "missing"),
    [
        ('["b.p1"]', '"a.p1", "a.p2", "b.p2"'),
        ('["a.p1", "a.p2"]', '"b.p1", "b.p2"'),
        ('["a.p1", "b.p1"]', '"a.p2", "b.p2"'),
        ('["a.p1", "a.p2", "b.p1"]', '"b.p2"'),
    ],
)
def test_a_capture_point_that_sees_half_of_a_flow(captures: str, missing: str) -> None:
    text = replaced(DURATION, f"{DURATION}\ncaptures = {captures}", TWO_PATHS)
    (found,) = problems_of(text)
    assert found.startswith(f"nowhere/spec.toml:{line_of(text, 'captures')}: captures: ")
    assert f"add {missing}" in found


def test_more_capture_points_than_a_flow_needs_are_no_mistake() -> None:
    """Every interface that a flow uses at its ends, whatever else: routers, hosts without flows, links without paths."""
    more = '[node.r]\nkind = "router"\n[link.p3]\nlike = "p1"\nbetween = ["b", "r"]\n'
    for captures in ('["a.p1", "b.p1"]', '["a.p1", "b.p1", "r.p3"]', '"hosts"', '"all"'):
        plan_of(replaced(DURATION, f"{DURATION}\ncaptures = {captures}", EXAMPLE_SPEC) + more)


def test_the_interface_that_acknowledgements_leave_by_is_captured_too() -> None:
    text = replaced(
        '"{protocol}"',
        '"sctp"',
        replaced(PATHS, 'paths = [{ sender = "a1", receiver = "b1", back = "b2" }]', EXAMPLE_SPEC),
    )
    network = '[node.r]\nkind = "router"\n[link.a1]\nlike = "p1"\nbetween = ["a", "r"]\n'
    network += '[link.b1]\nlike = "p1"\nbetween = ["r", "b"]\n[link.b2]\nlike = "b1"\n'
    (found,) = problems_of(replaced(DURATION, f'{DURATION}\ncaptures = ["a.a1", "b.b1"]', text) + network)
    assert 'add "b.b2"' in found
    plan_of(replaced(DURATION, f'{DURATION}\ncaptures = ["a.a1", "b.b1", "b.b2"]', text) + network)


def test_a_claim_is_named_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(
        '[[claim]]\nid = "C1"\ntext = "t"\nsource = "s"\nkind = "greater"\nmetric = "goodput_bit_s"\nflow = "bulkk"\n'
        'a = { protocol = "tcp", rate = "1 Mbit/s" }\nb = { protocol = "sctp", rate = "1 Mbit/s" }\n'
        '[[claim]]\nid = "C2"\ntext = "t"\nsource = "s"\nkind = "greater"\nmetric = "goodput_bit_s"\n'
        'a = { protocol = "tcp" }\nb = { protocol = "sctp", rate = "1 Mbit/s" }\n'
    )
    text = replaced("format = 1", 'format = 1\nexpected = "claims.toml"', EXAMPLE_SPEC)
    with pytest.raises(SpecError) as caught:
        make_plan(parse_spec(text.encode(), tmp_path / "spec.toml", sets={}))
    assert 'claims.toml:7: claim[0].flow: there is no flow "bulkk", did you mean "bulk"?' in str(caught.value)
    (tmp_path / "claims.toml").write_text((tmp_path / "claims.toml").read_text().replace("bulkk", "bulk"))
    with pytest.raises(SpecError) as caught:
        make_plan(parse_spec(text.encode(), tmp_path / "spec.toml", sets={}))
    assert "claims.toml:16: claim[1].a: " in str(caught.value)
    assert "fits 3 cells, which differ in rate" in str(caught.value)


EVERYTHING = (
    EXAMPLE_SPEC
    + FIGURE
    + """[figure.g]
series = ["cwnd_bytes"]
window = ["1 s", "2 s"]
where = { rate = "1 Mbit/s" }
[event.outage]
action = "cut"
link = "p1"
at = "5 s"
for = "1 s"
[experiment.e]
factors = ["rate", "protocol"]
repetitions = 2
[metric.m]
unit = "s"
value = "duration_s"
[answer.q]
metric = "outage_s"
settings = ["rate"]
given = ["protocol"]
budgets = ["1 s"]
[parameter]
size = "1 MB"
"""
)


@pytest.mark.parametrize(
    "value", ["3", "1.5", "true", '"x"', '""', '["x"]', "[]", "[3]", "[[]]", "{}", "{ a = 1 }", "[{}]"]
)
def test_a_value_of_another_kind_is_never_a_traceback(value: str) -> None:
    plan_of(EVERYTHING)
    for line in [line for line in EVERYTHING.splitlines() if " = " in line and not line.startswith("#")]:
        text = EVERYTHING.replace(f"{line}\n", f"{line.partition(' = ')[0]} = {value}\n")
        with contextlib.suppress(SpecError):
            plan_of(text)
    for name in (
        "node", "link", "flow", "event", "factor", "table", "figure", "experiment", "metric", "answer", "parameter",
    ):  # fmt: skip
        with contextlib.suppress(SpecError):
            plan_of(f"{name} = {value}\n{DURATION}\n")
