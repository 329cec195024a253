# ruff: noqa: E501 (rows of tables)
"""Every class of error in a spec: file, line, key, what is wrong, and a correct example; all of a file at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from specs import BASE, line_of, plan_of, problems_of, replaced, spec_of

from orchestrator.errors import SpecError
from orchestrator.spec import load_spec

FACTOR = '[factor.x]\nlevels = ["1 s", "2 s"]\n'


def only(text: str) -> str:
    found = problems_of(text)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("old", "new", "key", "says", "example"),
    [
        # quantities
        ('rate = "1 Mbit/s"', "rate = 500", "link.p1.rate", "500 is a bare number", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "500"', "link.p1.rate", "'500' is a bare number: its unit", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "1 Mbps"', "link.p1.rate", "unknown unit 'Mbps'", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "-1 Mbit/s"', "link.p1.rate", "is negative", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "1 bit/s"', "link.p1.rate", "at least 1 kbit/s", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "1 s"', "link.p1.rate", "is a time, but a rate is wanted", '"500 kbit/s"'),
        ('queue = "50 packets"', 'queue = "64 KiB"', "link.p1.queue", "is an amount of data, but a number of packets or", '"50 packets"'),
        ('queue = "50 packets"', 'queue = "0 packets"', "link.p1.queue", "at least 1 packets", '"50 packets"'),
        ('one_way_delay = "20 ms"', 'one_way_delay = "2 h"', "link.p1.one_way_delay", "at most 600 s", '"100 ms"'),
        ('one_way_delay = "20 ms"', 'loss = "2"', "link.p1.loss", "bare number", '"1 %"'),
        ('duration = "10 s"', 'duration = "0 s"', "duration", "at least 1 ms", '"100 s"'),
        # keys and names
        ('one_way_delay = "20 ms"', 'one_way_dely = "20 ms"', "link.p1.one_way_dely", "unknown key", '"one_way_delay"?'),
        ('duration = "10 s"', 'duration = "10 s"\nseeed = 1', "seeed", "unknown key", '"seed"?'),
        ("[node.b]", "[node.B]", "node.B", "is no name", "[node.a]"),
        ('name = "test"', 'name = "../x"', "name", "is no name", '"choi2009"'),
        ('name = "test"', 'name = ""', "name", "is no name", '"choi2009"'),
        # choices, types
        ('protocol = "tcp"', 'protocol = "udp"', "flow.f.protocol", "is none of tcp, sctp, mptcp", '"sctp"'),
        ('protocol = "tcp"', "protocol = true", "flow.f.protocol", "must be text", '"sctp"'),
        ('paths = ["p1"]', 'paths = "p1"', "flow.f.paths", "must be a list of texts", '["p1", "p2"]'),
        ('paths = ["p1"]', 'paths = ["p1"]\nport = 70000', "flow.f.port", "whole number from 1 to 65535", "5001"),
        ("[node.a]", "node.a = 3", "node.a", "must be a table", "kind"),
        ('name = "test"', 'name = 2009-01-01', "name", "a date means nothing here", '"10 s"'),
        # the network
        ('between = ["a", "b"]', 'between = ["a"]', "link.p1.between", "two different ends", '["a", "b"]'),
        ('between = ["a", "b"]', 'between = ["a", "a"]', "link.p1.between", "twice", '["a", "b"]'),
        ('between = ["a", "b"]', 'between = ["a", "bb"]', "link.p1.between", 'no node "bb"', '"b"?'),
        ('rate = "1 Mbit/s"\n', "", "link.p1.queue", "without a rate", '"10 Mbit/s"'),
        ('queue = "50 packets"\n', "", "link.p1.rate", "needs its queue", '"50 packets"'),
        ('queue = "50 packets"', 'queue = "50 packets"\nrtt = "40 ms"', "link.p1.rtt", "give one", "one_way_delay ="),
        ('one_way_delay = "20 ms"', 'rtt = "7 ns"', "link.p1.rtt", "even number of ns", '"200 ms"'),
        ('one_way_delay = "20 ms"', 'jitter = "1 ms"', "link.p1.jitter", "more than the one-way delay", "netem"),
        ('one_way_delay = "20 ms"', 'reorder = "1 %"', "link.p1.reorder", "needs a delay", '"10 ms"'),
        ('one_way_delay = "20 ms"', 'loss_correlation = "1 %"', "link.p1.loss_correlation", "without loss", '"1 %"'),
        ('one_way_delay = "20 ms"', 'burst_loss = { p = "1 %" }', "link.p1.burst_loss", "r is missing", "r ="),
        ('one_way_delay = "20 ms"', 'mtu = "100 B"', "link.p1.mtu", "at least 576 B", '"1500 B"'),
        ('one_way_delay = "20 ms"', 'profile = "dsll"', "link.p1.profile", "there is no profile", '"dsl"?'),
        ('one_way_delay = "20 ms"', 'profile = "../../x"', "link.p1.profile", "is no name", '"dsl"'),
        ("[node.b]", '[node.b]\nsysctl = { "kernel.core_pattern" = "x" }', 'node.b.sysctl."kernel.core_pattern"',
         "no sysctl below net", "tcp_sack"),
        ("[node.b]", '[node.b]\nsysctl = { "net.ipv4./../x" = "1" }', 'node.b.sysctl."net.ipv4./../x"',
         "no sysctl below net", "tcp_sack"),
        ("[node.b]", '[node.b]\nsysctl = { "net.ipv4.x" = "a\\nb" }', 'node.b.sysctl."net.ipv4.x"',
         "must be the text", "tcp_sack"),
        # flows
        ('from = "a"\n', "", "flow.f", "from is missing", '"a"'),
        ('to = "b"', 'to = "c"', "flow.f.to", 'there is no node "c"', "a, b"),
        ('paths = ["p1"]', 'paths = ["p2"]', "flow.f.paths[0]", 'there is no link "p2"', "there is: p1"),
        ('paths = ["p1"]', "paths = []", "flow.f.paths", "at least one path", '["p1", "p2"]'),
        ('paths = ["p1"]', 'paths = ["p1"]\nstop = "11 s"', "flow.f.stop", "after the end of the cell", "duration"),
        ('paths = ["p1"]', 'paths = ["p1"]\nstart = "10 s"', "flow.f", "not after the start", '"0.5 s"'),
        ('paths = ["p1"]', 'paths = ["p1"]\nsender = { mss = "1461 B" }', "flow.f.sender.mss", "exceed the MTU", '"1460 B"'),
        ('paths = ["p1"]', 'paths = ["p1"]\nsender = { rcvbuff = "1 KiB" }', "flow.f.sender.rcvbuff",
         "unknown option", '"rcvbuf"?'),
        ('paths = ["p1"]', 'paths = ["p1"]\nsender = { window_clamp = "4 KiB" }', "flow.f.sender.window_clamp",
         "no option of a tcp sender", "there is: "),
        ('paths = ["p1"]', 'paths = ["p1"]\nreceiver = { rcvbuf = 65536 }', "flow.f.receiver.rcvbuf",
         "bare number", '"65536 B"'),
        ('paths = ["p1"]', 'paths = ["p1"]\nreceiver = { window_clamp = "131073 B" }', "flow.f.receiver.window_clamp",
         "steps of 4 B", '"131072 B"'),
        ('paths = ["p1"]', 'paths = ["p1"]\nswitch_primary = [{ at = "1 s", path = "p1" }]', "flow.f.switch_primary",
         "only sctp", '"sctp"'),
        # captures, factors, experiments
        ('duration = "10 s"', 'duration = "10 s"\ncaptures = "none"', "captures", "must be", '"hosts"'),
        ('duration = "10 s"', 'duration = "10 s"\ncaptures = ["a.p2"]', "captures[0]", "no interface", '"a.p1"?'),
        ('duration = "10 s"', 'duration = "{time}"', "duration", '"{time}" is neither a factor nor a parameter', "none"),
        ('duration = "10 s"', 'duration = "10 s"\nexpected = "../e.toml"', "expected", "beside the spec", '"expected.toml"'),
        ('duration = "10 s"', 'duration = "10 s"\nexpected = "e.toml"', "expected", "there is no file", "leave the key out"),
        ('duration = "10 s"', 'duration = "10 s"\nshape = { kind = "ring" }', "shape.kind", "is none of", '"two-path"'),
        ('duration = "10 s"', 'duration = "10 s"\nshape = { hops = 3 }', "shape", "kind is missing", '"two-path"'),
        ('duration = "10 s"', 'duration = "10 s"\nparameter = { x = 3 }', "parameter.x", "is text, with its unit", '"1 Mbit/s"'),
        ('duration = "10 s"', 'duration = "10 s"\nparameter = { x = "{y}", y = "{x}" }', "parameter.x", "circle", "parameters"),
    ],
)  # fmt: skip
def test_one_error(old: str, new: str, key: str, says: str, example: str) -> None:
    text = replaced(old, new)
    found = only(text)
    place, _, rest = found.partition(": ")
    said_key, _, message = rest.partition(": ")
    assert said_key == key
    assert says in message
    assert example in message
    file, _, line = place.rpartition(":")
    assert file == "nowhere/spec.toml"
    written = text.splitlines()[int(line) - 1]
    last = key.rsplit(".", 1)[-1].split("[")[0].strip('"')
    assert last in written or (key == "flow.f" and "[flow.f]" in written), f"{found}\npoints at: {written}"


@pytest.mark.parametrize(
    ("more", "piece", "says"),
    [
        ('[event.e]\naction = "cut"\nlink = "p9"\nat = "1 s"\n', 'link = "p9"', 'no link "p9"; there is: p1'),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "11 s"\n', 'at = "11 s"', "outside the cell"),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "9 s"\nfor = "2 s"\n', 'for = "2 s"', "ends after the cell"),
        ('[event.e]\naction = "down"\nlink = "p1"\nat = "1 s"\n', 'action = "down"', "is none of cut, blackhole, link"),
        ('[event.e]\naction = "link"\nlink = "p1"\nat = "1 s"\nend = "c"\n', 'end = "c"', 'end = "p1.hop:b"'),
        ('[event.e]\naction = "link"\nlink = "p1"\nat = "1 s"\n', "[event.e]", "end is missing; it has: a, b, p1.hop:a"),
        ('[event.e]\naction = "cut"\nlink = "p1"\n', "[event.e]", 'at is missing; for example at = "50 s"'),
        ('[event.e]\naction = "change"\nlink = "p1"\nat = "1 s"\n', 'action = "change"', "changes nothing"),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nloss = "1 %"\n', "loss = ", 'action = "change"'),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\ndirections = ["up"]\n', "directions", "none of forward"),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nphase = "uniform(1 s, 0 s)"\n', "phase", "uniform(0 s, 1 s)"),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nphase = "normal(1)"\n', "phase", "uniform(0 s, 1 s)"),
        (
            '[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nfor = "3 s"\n'
            '[event.g]\naction = "blackhole"\nlink = "p1"\nat = "2 s"\n',
            'at = "2 s"',
            'overlaps event "e"',
        ),
        ('[factor.x]\nlevels = ["1 s", "1000 ms"]\n', "levels", '"1 s" and "1000 ms" mean the same'),
        ('[factor.x]\nlevels = [1, 2]\n', "levels", "must be a list of texts"),
        ("[factor.x]\nlevels = []\n", "levels", "is empty"),
        ("[factor.x]\n", "[factor.x]", "its levels are missing"),
        ('[factor.x]\nlevels = ["-"]\n', "levels", "cannot name a level"),
        ('[factor.duration]\nlevels = ["1 s"]\n', "[factor.duration]", "no name for a factor"),
        ('[factor.value]\nlevels = ["1 s"]\n', "[factor.value]", "is a column of the tables"),
        ('[factor.x]\nlevels = ["1 s"]\n[factor.x."2 s"]\n', '[factor.x."2 s"]', 'neither a key of a factor nor one of its'),
        (FACTOR + '[factor.x."1 s"]\nlink.p1.rat = "1 kbit/s"\n', "link.p1.rat ", 'unknown key "rat", did you mean "rate"?'),
        (FACTOR + '[factor.x."1 s"]\nlink.p1.rate = "1"\n', "link.p1.rate", "bare number"),
        (FACTOR + 'only = { y = ["1"] }\n', "only", 'unknown factor "y"'),
        (FACTOR + '[factor.y]\nlevels = ["1"]\nonly = { x = ["3 s"] }\n', "only", 'no level "3 s"'),
        (FACTOR + '[experiment.e]\nfactors = ["z"]\n', 'factors = ["z"]', 'unknown factor "z"'),
        (FACTOR + '[experiment.e]\nfactors = ["x"]\nfixed = { x = "1 s" }\n', "fixed", "both varied and fixed"),
        (
            FACTOR + '[factor.y]\nlevels = ["1"]\n[experiment.e]\nfactors = ["x", "y"]\nzip = [["x", "y"]]\n',
            "zip",
            "equally many levels; here: x 2, y 1",
        ),
        (FACTOR + 'title = 3\n', "title = 3", "must be text"),
        ('[link.p2]\nlike = "p3"\n', 'like = "p3"', 'there is no "p3" to be like'),
        ('[link.p2]\nlike = "p2"\n', "like", "circle of `like`"),
        ('[flow.g]\nlike = "f"\nport = 5001\n', "port", 'flow "f" has this port'),
        ('[flow.g]\nlike = "f"\nonly = { y = "1" }\n', "only", 'unknown factor "y"'),
        ('[metric.m]\nunit = "B"\nvalue = "payload_byte * 2"\n', "value", 'unknown name "payload_byte", did you mean "payload_bytes"?'),
        ('[metric.m]\nunit = "B"\nvalue = "__import__(\'os\')"\n', "value", "only numbers, names"),
        ('[metric.m]\nunit = "B"\nvalue = "min + 1"\n', "value", 'unknown name "min"'),
        ('[metric.m]\nvalue = "packets"\n', "[metric.m]", "its unit is missing"),
        ('[metric.packets]\nunit = "B"\nvalue = "packets"\n', "[metric.packets]", "another name"),
        ('[table.t]\nmetric = "goodput"\n', "metric", 'unknown metric "goodput"'),
        ('[table.cells]\nmetric = "packets"\n', "[table.cells]", "netwarp writes itself"),
        ('[table.t]\nmetric = "packets"\nrows = ["x"]\n', "rows", 'unknown factor "x"'),
        (FACTOR + '[table.t]\nmetric = "packets"\n', "[table.t]", "would mix 2 cells, which differ in x: choose"),
        (FACTOR + '[table.t]\nmetric = "packets"\nrows = ["x"]\nwhere = { x = "-" }\n', "[table.t]", "no cell fits"),
        (FACTOR + '[table.t]\nmetric = "packets"\nrows = ["x"]\nflow = "g"\n', "[table.t]", 'there is no flow "g"'),
        (FACTOR + '[figure.t]\nmetric = "packets"\nx = "z"\n', 'x = "z"', "x must be a factor"),
        (FACTOR + '[figure.t]\nmetric = "packets"\nx = "x"\nlines = ["x"]\n', "[figure.t]", "stands on two axes"),
    ],
)  # fmt: skip
def test_one_error_in_what_is_added(more: str, piece: str, says: str) -> None:
    text = BASE + more
    found = only(text)
    assert says in found
    assert found.startswith(f"nowhere/spec.toml:{line_of(text, piece if piece in more else more)}: "), found
    assert line_of(text, piece) > BASE.count("\n"), "the piece must be in what is added"


def test_circles_name_every_member() -> None:
    found = problems_of(BASE + '[link.p2]\nlike = "p3"\n[link.p3]\nlike = "p2"\n')
    assert [one.split(": ")[1] for one in found] == ["link.p2.like", "link.p3.like"] or len(found) == 2
    found = problems_of(BASE + FACTOR + 'only = { y = "1" }\n[factor.y]\nlevels = ["1"]\nonly = { x = "1 s" }\n')
    assert [one.split(": ")[1] for one in found] == ["factor.x", "factor.y"]
    assert all("circle" in one for one in found)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "test"', 'name = "{../x}"', "is no name"),
        ('rate = "1 Mbit/s"', 'rate = "{{x}}"', "not a number"),
        ('rate = "1 Mbit/s"', 'rate = "{x"', "not a number"),
        ('paths = ["p1"]', 'paths = ["{{x}}"]', "there is no link"),
    ],
)
def test_braces_never_hide_a_value(old: str, new: str, says: str) -> None:
    assert says in only(replaced(old, new) + '[factor.x]\nlevels = ["1 Mbit/s"]\n')


def test_a_profile_has_no_placeholders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.plan import network
    from orchestrator.spec import profiles

    (tmp_path / "open.toml").write_text('one_way_delay = "{x}"\n')
    monkeypatch.setattr(network, "find_profile", lambda name, problems: profiles.find_profile(name, problems, tmp_path))
    text = replaced('one_way_delay = "20 ms"', 'profile = "open"') + FACTOR
    assert any(f"{tmp_path}/open.toml:1: one_way_delay" in one for one in problems_of(text))


def test_two_nodes_of_one_name() -> None:
    text = BASE + "[node.a]\n"
    found = only(text)
    assert found.startswith(f"nowhere/spec.toml:{text.count(chr(10))}: not TOML: Cannot declare ('node', 'a') twice")


def test_not_toml() -> None:
    assert only("a = 1\nb = \n").startswith("nowhere/spec.toml:2: not TOML: Invalid value")
    assert only('a = "1\n').startswith("nowhere/spec.toml:1: not TOML")
    assert "not UTF-8" in only_bytes(b"a = 1\nb = '\xff'\n")
    assert ":2:" in only_bytes(b"a = 1\nb = '\xff'\n")


def only_bytes(text: bytes) -> str:
    from orchestrator.spec import parse_spec

    with pytest.raises(SpecError) as caught:
        parse_spec(text, Path("nowhere/spec.toml"), sets={})
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        b"a = " + b"[" * 5000 + b"]" * 5000,
        b"a = " + b"9" * 100_000,
        b"x" * (2 << 20),
        b"a = " + b"{b = " * 60 + b"1" + b"}" * 60,
        b"",
        b"\x00",
    ],
    ids=["brackets", "digits", "large", "deep", "empty", "zero"],
)
def test_hostile_text_is_an_error_not_a_crash(text: bytes) -> None:
    assert len(only_bytes(text)) < 20_000


def test_all_errors_of_a_file_at_once() -> None:
    text = replaced('rate = "1 Mbit/s"', "rate = 5")
    text = replaced('protocol = "tcp"', 'protocol = "udp"', text)
    text = replaced('duration = "10 s"', 'duration = "10"', text) + "[nod.c]\n"
    found = problems_of(text)
    assert [line.split(": ")[1] for line in found] == ["duration", "nod", "link.p1.rate", "flow.f.protocol"] or {
        line.split(": ")[1] for line in found
    } == {"duration", "nod", "link.p1.rate", "flow.f.protocol"}
    assert len(found) == 4


def test_an_error_of_many_cells_is_said_once_with_the_cell_that_showed_it() -> None:
    text = replaced('to = "b"', 'to = "{x}"') + '[factor.x]\nlevels = ["b", "c"]\n[factor.y]\nlevels = ["1", "2"]\n'
    found = only(text)
    assert 'there is no node "c"' in found
    assert found.endswith("(first seen in the cell x=c, y=1)")
    assert found.startswith(f"nowhere/spec.toml:{line_of(text, 'to = ')}: flow.f.to: ")


def test_error_in_a_patch_points_at_the_patch() -> None:
    text = BASE + FACTOR + '[factor.x."2 s"]\nflow.f.to = "nobody"\n'
    found = only(text)
    assert found.startswith(f"nowhere/spec.toml:{line_of(text, 'flow.f.to')}: ")
    assert "first seen in the cell x=2 s" in found


def test_a_factor_without_a_level_is_named_where_it_is_used() -> None:
    text = replaced('rate = "1 Mbit/s"', 'rate = "{r}"') + (
        '[factor.r]\nlevels = ["1 Mbit/s"]\n' + FACTOR + '[experiment.e]\nfactors = ["x"]\n'
    )
    found = only(text)
    assert 'factor "r" does not apply' in found
    assert f":{line_of(text, 'rate = ')}: link.p1.rate" in found


def test_many_problems_are_cut() -> None:
    text = BASE + "".join(f"[node.n{number}]\nkid = 1\n" for number in range(80))
    found = problems_of(text)
    assert len(found) == 51
    assert found[-1] == "... and 30 more problems"


def test_no_such_spec_lists_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match='did you mean "choi2009"'):
        load_spec("choi2008")
    with pytest.raises(SpecError, match="there is no spec file"):
        load_spec(tmp_path / "nothing.toml")


def test_a_spec_by_file_folder_and_name(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(BASE)
    assert load_spec(tmp_path).name == load_spec(tmp_path / "spec.toml").name == "test"
    assert load_spec("choi2009").name == "choi2009"


def test_missing_top_keys() -> None:
    found = problems_of("title = 'x'\n")
    assert [line.split(": ", 1)[1].split(";")[0] for line in found] == [
        "format is missing", "name is missing", "duration is missing",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ({"rat": "1 Mbit/s"}, '--set: rat: unknown key, did you mean "parameter"?'),
        ({"nothing.x": "1"}, "--set: nothing.x: unknown key"),
        ({"link.p1.rat": "1 Mbit/s"}, 'link.p1.rat: unknown key "rat", did you mean "rate"?'),
        ({"parameter.x": "1"}, 'unknown parameter "x"'),
        ({"link.p1.rate": "5"}, "link.p1.rate: '5' is a bare number"),
        ({"seed": "-1"}, "--set: seed: must be a whole number"),
        ({"": "1"}, "unknown key"),
        ({"a b": "1"}, "unknown key"),
    ],
)
def test_set_errors(sets: dict[str, str], says: str) -> None:
    found = problems_of(BASE, sets)
    assert len(found) == 1
    assert says in found[0] or (sets == {"rat": "1 Mbit/s"} and found[0].startswith("--set: rat: unknown key"))


def test_expected_errors(tmp_path: Path) -> None:
    (tmp_path / "expected.toml").write_text(
        """\
[source.paper]
[source.x]
[[numbers]]
source = "papers"
metric = "packets"
by = "x"
values = { "1 s" = "2", "3 s" = 1 }
[[claim]]
id = "C1"
text = "t"
source = "s"
kind = "greater"
metric = "packets"
a = { x = "1 s" }
[[claim]]
id = "C1"
text = "t"
source = "s"
kind = "gain"
metric = "packets"
a = { x = "1 s" }
b = { x = "2 s" }
[[claim]]
id = "C2"
text = "t"
source = "s"
kind = "later"
metric = "packets"
reason = "needs more"
[[claim]]
kind = "best"
"""
    )
    with pytest.raises(SpecError) as caught:
        spec_of(BASE.replace("[node.a]", 'expected = "expected.toml"\n[node.a]') + FACTOR, tmp_path)
    text = str(caught.value)
    for line, says in [
        (2, '"x" is a column of the tables already'),
        (4, 'unknown source "papers", did you mean "paper"?'),
        (7, "must be a number"),
        (7, 'factor "x" has no level "3 s"'),
        (8, 'kind "greater" compares a with b, and b is missing'),
        (15, 'kind "gain" needs expected = a number'),
        (15, 'kind "gain" needs its tolerance'),
        (15, 'two claims are called "C1"'),
        (28, "is not tested: leave this out"),
        (30, "its id is missing"),
        (31, '"best" is none of greater, less'),
    ]:
        assert any(f"expected.toml:{line}: " in one and says in one for one in text.splitlines()), (line, says, text)


def test_a_claim_that_fits_no_single_cell(tmp_path: Path) -> None:
    (tmp_path / "expected.toml").write_text(
        '[[claim]]\nid = "C1"\ntext = "t"\nsource = "s"\nkind = "value"\nmetric = "packets"\na = {}\nexpected = 1\ntolerance = 0\n'
    )
    from orchestrator.plan import make_plan

    spec = spec_of(BASE.replace("[node.a]", 'expected = "expected.toml"\n[node.a]') + FACTOR, tmp_path)
    with pytest.raises(SpecError, match="fits 2 cells, which differ in x"):
        make_plan(spec)


def test_profile_errors_point_into_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.plan import network
    from orchestrator.spec import profiles

    (tmp_path / "bad.toml").write_text('title = "x"\nrate = "5"\n')
    monkeypatch.setattr(network, "find_profile", lambda name, problems: profiles.find_profile(name, problems, tmp_path))
    found = problems_of(replaced('rate = "1 Mbit/s"\n', 'profile = "bad"\n'))
    assert any(f"{tmp_path}/bad.toml:2: rate: '5' is a bare number" in one for one in found)


def test_the_base_is_right() -> None:
    assert len(plan_of(BASE).cells) == 1
