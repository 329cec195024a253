"""Specs as files: hostile text, several errors, --set, profiles, claims.toml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.core.errors import SpecError
from netwarp.experiment import load_spec, parse_spec, profiles
from netwarp.plan import make_plan, network
from support.checkout import ROOT
from support.specs import BASE, line_of, only, problems_of, replaced, spec_of

FACTOR = '[factor.x]\nlevels = ["1 s", "2 s"]\n'


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


@pytest.mark.parametrize(
    ("profile", "says"),
    [('one_way_delay = "{x}"\n', "1: one_way_delay: "), ('title = "x"\nrate = "5"\n', "2: rate: '5' is a bare number")],
)
def test_errors_of_a_profile_point_into_it(
    profile: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no placeholders, also where a factor has that name."""
    (tmp_path / "bad.toml").write_text(profile)
    monkeypatch.setattr(network, "find_profile", lambda name, problems: profiles.find_profile(name, problems, tmp_path))
    found = problems_of(replaced('rate = "1 Mbit/s"\n', 'profile = "bad"\n') + FACTOR)
    assert any(f"{tmp_path}/bad.toml:{says}" in one for one in found)


def test_two_nodes_of_one_name() -> None:
    text = BASE + "[node.a]\n"
    found = only(text)
    assert found.startswith(f"nowhere/spec.toml:{text.count(chr(10))}: node.a: stands in line 4 already")


def test_not_toml() -> None:
    assert only("a = 1\nb = \n").startswith("nowhere/spec.toml:2: not TOML: Invalid value")
    assert only('a = "1\n').startswith("nowhere/spec.toml:1: not TOML")
    assert "not UTF-8" in only_bytes(b"a = 1\nb = '\xff'\n")
    assert ":2:" in only_bytes(b"a = 1\nb = '\xff'\n")


def only_bytes(text: bytes) -> str:
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
    text = replaced('protocol = "tcp"', 'protocol = "dccp"', text)
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
    assert found.startswith(f"nowhere/spec.toml:{line_of(text, 'levels = ')}: factor.x.levels[1]: ")
    assert f"(as flow.f.to, line {line_of(text, 'to = ')})" in found


def test_error_in_a_patch_points_at_the_patch() -> None:
    text = BASE + FACTOR + '[factor.x.level."2 s"]\nflow.f.to = "nobody"\n'
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
    (tmp_path / "mine.toml").touch()
    with pytest.raises(SpecError, match=r"did you mean \".*/mine.toml\"\?"):
        load_spec(tmp_path / "mine.tml")


def test_a_program_in_place_of_a_spec(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import netwarp\n")
    with pytest.raises(SpecError, match=r"mine\.py: an experiment in Python is a program: python .*/mine\.py"):
        load_spec(tmp_path / "mine.py")


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
    (tmp_path / "claims.toml").write_text(
        """\
[source.paper]
[source.x]
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
        spec_of(BASE.replace("[node.a]", 'expected = "claims.toml"\n[node.a]') + FACTOR, tmp_path)
    text = str(caught.value)
    for line, says in [
        (2, '"x" is a column of the tables already'),
        (3, 'kind "greater" compares a with b, and b is missing'),
        (10, 'kind "gain" needs expected = a number'),
        (10, 'kind "gain" needs its tolerance'),
        (10, 'two claims are called "C1"'),
        (23, "is not tested: leave this out"),
        (25, "its id is missing"),
        (26, '"best" is none of greater, less'),
    ]:
        assert any(f"claims.toml:{line}: " in one and says in one for one in text.splitlines()), (line, says, text)


PAPER = '[source.paper]\ntitle = "P"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("source,metric,x,value\npapers,packets,1 s,2\n", '2: source: there is no "papers", did you mean "paper"?'),
        ("source,metric,x,value\npaper,pakets,1 s,2\n", '2: metric: there is no "pakets", did you mean "packets"?'),
        ("source,metric,x,value\n\npaper,packets,3 s,2\n", '3: x: there is no "3 s"'),
        ("source,metric,x,value\npaper,packets,1 s | 3 s,2\n", '2: x: there is no "3 s"'),
        ("source,metric,x,value\npaper,packets,1 s,2 packets\n", '2: value: "2 packets" is no number'),
        ("source,metric,x,value\npaper,packets,1 s,nan\n", '2: value: "nan" is no number'),
        ("source,metric,x,value\npaper,packets,1 s\n", "2: has 3 fields, the header 4"),
        ("source,metric,y,value\npaper,packets,1 s,2\n", "1: y: is neither a factor nor one of source"),
        ("source,metric,x,x,value\n", "1: x: stands in the header twice"),
        ("source,metric,x\n", "1: value: the column is missing"),
        ("", "1: source: the column is missing"),
        ('source,metric,x,value\n"paper,packets\n', "2: not CSV: unexpected end of data"),
        ("source,metric,experiment,value\npaper,packets,mine,2\n", '2: experiment: there is no "mine"'),
        ("source,metric,value\n\udcff", "2: not UTF-8 text"),
        ("source,metric,flow,value\npaper,packets,gg,2\n", '2: flow: there is no "gg"'),
    ],
)
def test_published_errors(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(PAPER)
    (tmp_path / "published.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    head = 'expected = "claims.toml"\npublished = "published.csv"\n'
    with pytest.raises(SpecError) as caught:
        spec_of(head + BASE + FACTOR, tmp_path)
    assert any(f"published.csv:{says}" in line for line in str(caught.value).splitlines()), caught.value


def test_published_numbers(tmp_path: Path) -> None:
    """An empty field: any level. Fields of several levels; a byte order mark and carriage returns, as Excel writes."""
    (tmp_path / "claims.toml").write_text(PAPER)
    rows = "paper,packets,,2,Table 1\r\npaper,packets,1 s | 2 s,2.5,\r\n"
    (tmp_path / "published.csv").write_text("\ufeffsource,metric,x,value,printed\r\n" + rows, newline="")
    spec = spec_of('expected = "claims.toml"\npublished = "published.csv"\n' + BASE + FACTOR, tmp_path)
    assert [(one.at, one.value, one.printed) for one in spec.expected] == [
        ({}, 2.0, "Table 1"),
        ({"x": ("1 s", "2 s")}, 2.5, ""),
    ]
    assert list(spec.files) == ["spec.toml", "claims.toml", "published.csv"]


def test_a_claim_that_fits_no_single_cell(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(
        '[[claim]]\nid = "C1"\ntext = "t"\nsource = "s"\nkind = "value"\nmetric = "packets"\n'
        "a = {}\nexpected = 1\ntolerance = 0\n"
    )
    spec = spec_of(BASE.replace("[node.a]", 'expected = "claims.toml"\n[node.a]') + FACTOR, tmp_path)
    with pytest.raises(SpecError, match="fits 2 cells, which differ in x"):
        make_plan(spec)


def test_two_captures_of_one_name() -> None:
    text = BASE + '[node.a-b]\n[link.c]\nbetween = ["a-b", "b"]\n[link.b-c]\nbetween = ["a", "b"]\n'
    assert 'two interfaces would be captured into "a-b-c.pcap"' in only(text)


CHOI2009 = ROOT / "experiments" / "choi2009" / "spec.toml"
PIECES = re.findall(r'\w+|"[^"\n]*"|\s+|[^\w\s]', CHOI2009.read_text())
OTHERS = [
    '"', "{", "}", "[", "]", "=", "3", "true", "[]", "{}", "0.1", "nan", "1979-05-27", '"-"', '"{x}"', '""',
    "like",
]  # fmt: skip


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.integers(0, len(PIECES) - 1), st.sampled_from([*OTHERS, *PIECES])), min_size=1, max_size=4)
)
def test_a_damaged_spec_is_an_error_or_a_plan_never_a_crash(damage: list[tuple[int, str]]) -> None:
    pieces = list(PIECES)
    for place, piece in damage:
        pieces[place] = piece
    try:
        plan = make_plan(parse_spec("".join(pieces).encode(), CHOI2009, sets={}), repetitions=1)
    except SpecError as error:
        assert all(re.match(r"\S+\.(toml|csv)(:\d+)?: |\.\.\. and ", line) for line in str(error).splitlines()), str(
            error
        )
    else:
        assert plan.cells


def test_the_name_of_the_published_numbers_may_have_dots(tmp_path: Path) -> None:
    """But it is a file beside the spec: nothing hidden, nothing elsewhere."""
    (tmp_path / "my.expected.toml").write_text('[source.paper]\ntitle = "A paper"\n')
    spec = spec_of('expected = "my.expected.toml"\n' + BASE, tmp_path)
    assert [source.name for source in spec.sources] == ["paper"]
    for name in ("../my.expected.toml", ".my.expected.toml", "my..toml", "a/my.toml", "my.expected", ".toml", "toml"):
        with pytest.raises(SpecError, match=r"must be a \.toml file beside the spec"):
            spec_of(f'expected = "{name}"\n' + BASE, tmp_path)


def test_a_level_may_have_the_name_of_a_key_of_its_factor(tmp_path: Path) -> None:
    levels = '[factor.x]\nlevels = ["only", "title"]\n[factor.x.level]\nonly.link.p1.rate = "3 Mbit/s"\n'
    spec = spec_of(BASE + levels, tmp_path)
    assert [(level.name, level.patch is not None) for level in spec.factors["x"].levels] == [
        ("only", True),
        ("title", False),
    ]
    assert spec.factors["x"].only == {}
