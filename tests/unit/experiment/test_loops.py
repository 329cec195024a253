"""Loops: an item with `each` is the items that it stands for; its errors say which turn they are of."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.outputs import Claim
from support.specs import BASE, spec_of

FACTORS = """
[factor.who]
levels = ["a", "b"]
[factor.x]
levels = ["1 s", "2 s", "3 s"]
"""
HEAD = 'source = "Table 1"\nkind = "value"\nmetric = "packets"\n'


def claims_of(text: str, tmp_path: Path) -> tuple[Claim, ...]:
    (tmp_path / "claims.toml").write_text(text)
    return spec_of('expected = "claims.toml"\n' + BASE + FACTORS, tmp_path).claims


def written(name: str, text: str, who: str, x: str, expected: float, more: str = "") -> str:
    """A claim written out."""
    return (
        f'[[claim]]\n{HEAD}id = "{name}"\ntext = "{text}"\na = {{ who = "{who}", x = "{x}" }}\n'
        f"expected = {expected}\ntolerance = 0.5\n{more}"
    )


def test_a_list_of_texts_is_a_turn_for_each_and_several_lists_all_combinations(tmp_path: Path) -> None:
    looped = f"""[[claim]]
{HEAD}each = {{ who = ["a", "b"], x = ["1 s", "2 s"] }}
id = "C-{{who}}-{{x}}"
text = "{{who}} after {{x}}"
a = {{ who = "{{who}}", x = "{{x}}" }}
expected = 3
tolerance = 0.5
"""
    pairs = [("a", "1 s"), ("a", "2 s"), ("b", "1 s"), ("b", "2 s")]
    plain = "".join(written(f"C-{who}-{x}", f"{who} after {x}", who, x, 3) for who, x in pairs)
    assert claims_of(looped, tmp_path) == claims_of(plain, tmp_path)


@pytest.mark.parametrize("form", ["inline", "tables", "named"])
def test_keys_of_a_row_lie_over_the_item_and_its_other_keys_are_placeholders(form: str, tmp_path: Path) -> None:
    rows = [
        '{ id = "C1", name = "First", a = { x = "1 s" }, expected = 1 }',
        '{ id = "C2", name = "Second", a = { who = "b", x = "2 s" }, expected = 2, also = { x = "3 s" } }',
    ]
    body = f'{HEAD}text = "{{name}} of them"\na = {{ who = "a" }}\ntolerance = 0.5\n'
    text = {
        "inline": f"[[claim]]\n{body}each = [{', '.join(rows)}]\n",
        "tables": f"[[claim]]\n{body}"
        + '[[claim.each]]\nid = "C1"\nname = "First"\na = { x = "1 s" }\nexpected = 1\n'
        + '[[claim.each]]\nid = "C2"\nname = "Second"\na = { who = "b", x = "2 s" }\n'
        + 'expected = 2\nalso = { x = "3 s" }\n',
        "named": f'[loop]\nrows = [{", ".join(rows)}]\n[[claim]]\n{body}each = "rows"\n',
    }[form]
    plain = written("C1", "First of them", "a", "1 s", 1) + written(
        "C2", "Second of them", "b", "2 s", 2, 'also = [{ x = "3 s" }]\n'
    )
    assert claims_of(text, tmp_path) == claims_of(plain, tmp_path)


def test_a_text_that_is_one_placeholder_becomes_its_value_whatever_that_is(tmp_path: Path) -> None:
    looped = f"""[loop]
lengths = [{{ n = 1, number = 7.5, others = ["2 s", "3 s"], cells = {{ who = "b" }} }}]
[[claim]]
{HEAD}each = {{ length = "lengths", who = ["a"] }}
id = "C{{n}}"
text = "t"
where = "{{cells}}"
a = {{ x = "1 s", who = "{{who}}" }}
also = {{ x = "{{others}}" }}
expected = "{{number}}"
tolerance = 0.5
"""
    plain = written("C1", "t", "a", "1 s", 7.5, 'also = [{ x = "2 s" }, { x = "3 s" }]\n')
    assert claims_of(looped, tmp_path) == claims_of(plain, tmp_path)


def test_where_is_of_both_selectors_and_alone_where_none_is_written(tmp_path: Path) -> None:
    head = '[[claim]]\ntext = "t"\nsource = "s"\nmetric = "packets"\n'
    short = f"""{head}id = "C1"\nkind = "greater"\nwhere = {{ x = "1 s", who = "a" }}\na = {{}}\nb = [{{ who = "b" }}]
{head}id = "C2"\nkind = "less"\nmetric_b = "payload_bytes"\nwhere = {{ x = "1 s", who = "a" }}
[default.claim]\nwhere = {{ x = "2 s" }}
"""
    full = f"""{head}id = "C1"\nkind = "greater"\na = {{ x = "1 s", who = "a" }}\nb = [{{ x = "1 s", who = "b" }}]
{head}id = "C2"\nkind = "less"\nmetric_b = "payload_bytes"
a = {{ x = "1 s", who = "a" }}\nb = {{ x = "1 s", who = "a" }}
"""
    assert claims_of(short, tmp_path) == claims_of(full, tmp_path)
    rest = f'{head}id = "C1"\nkind = "greater"\na = {{ who = "a" }}\nb = {{ who = "b" }}\n'
    (claim,) = claims_of(rest + '[default.claim]\nwhere = { x = "2 s" }\n', tmp_path)
    assert claim.a == ({"x": ("2 s",), "who": ("a",)},) and claim.b == ({"x": ("2 s",), "who": ("b",)},)


def test_lists_in_also_are_all_combinations_but_the_claims_own(tmp_path: Path) -> None:
    body = 'also = { x = ["1 s", "2 s", "3 s"], who = ["a", "b"] }\n'
    own, *others = claims_of(written("C1", "t", "a", "1 s", 1, body), tmp_path)
    assert own.condition_text == ""
    assert [each.condition_text for each in others] == [
        "who=b", "x=2 s", "x=2 s who=b", "x=3 s", "x=3 s who=b",
    ]  # fmt: skip
    assert [each.a[0]["x"] + each.a[0]["who"] for each in others][:2] == [("1 s", "b"), ("2 s", "a")]


def test_metrics_loop(tmp_path: Path) -> None:
    text = """
[metric."m{k}"]
title = "packets, {k} times"
unit = "packets"
value = "packets * {k}"
each = [{ k = 1 }, { k = 2 }]
"""
    own = spec_of(BASE + text, tmp_path).own_metrics
    assert [(each.metric.name, each.metric.title, each.metric.expression) for each in own] == [
        ("m1", "packets, 1 times", "packets * 1"),
        ("m2", "packets, 2 times", "packets * 2"),
    ]


def test_what_an_experiment_varies_is_not_fixed_by_the_default(tmp_path: Path) -> None:
    short = """
[default.experiment.fixed]
who = "a"
x = "1 s"
[experiment.usual]
factors = []
[experiment.others]
factors = ["who"]
fixed.x = "2 s"
"""
    usual, others = spec_of(BASE + FACTORS + short, tmp_path).experiments
    assert usual.fixed == {"who": "a", "x": "1 s"}
    assert others.fixed == {"x": "2 s"}


def test_what_every_level_of_a_factor_changes_lies_below_its_own_table(tmp_path: Path) -> None:
    factor = """
[factor.pace]
levels = ["usual", "slow"]
every.link.p1 = { queue = "9 packets", rate = "1 Mbit/s" }
level.slow.link.p1.rate = "10 kbit/s"
"""
    usual, slow = spec_of(BASE + factor, tmp_path).factors["pace"].levels
    assert usual.patch is not None and usual.patch.texts("link", "p1", "rate") == ("1 Mbit/s",)
    assert slow.patch is not None and slow.patch.texts("link", "p1", "rate") == ("10 kbit/s",)
    assert slow.patch.texts("link", "p1", "queue") == ("9 packets",)
    with pytest.raises(SpecError, match='unknown key "title"'):
        spec_of(BASE + factor + 'every.title = "pace"\n', tmp_path)


def test_tables_and_figures_loop_and_have_defaults(tmp_path: Path) -> None:
    looped = """
[default.table]
metric = "packets"
[default.figure]
where = { who = "a" }
[default.experiment]
repeat = "random"
[experiment.all]
factors = ["who", "x"]
[table."{name}"]
each = [
    { name = "first", rows = ["who"] },
    { name = "second", title = "{name} one", rows = ["x"], metric = "payload_bytes" },
]
[figure."of_{metric}"]
each = { metric = ["packets", "payload_bytes"] }
metric = "{metric}"
x = "x"
[figure.over_time]
series = ["cwnd_bytes"]
"""
    plain = """
[experiment.all]
factors = ["who", "x"]
repeat = "random"
[table.first]
metric = "packets"
rows = ["who"]
[table.second]
title = "second one"
metric = "payload_bytes"
rows = ["x"]
[figure.of_packets]
metric = "packets"
x = "x"
where = { who = "a" }
[figure.of_payload_bytes]
metric = "payload_bytes"
x = "x"
where = { who = "a" }
[figure.over_time]
series = ["cwnd_bytes"]
"""
    one, other = (spec_of(BASE + FACTORS + text, tmp_path) for text in (looped, plain))
    assert (one.tables, one.figures, one.time_series) == (other.tables, other.figures, other.time_series)
    assert [each.only_random for each in one.experiments] == [True]


ROW = 'text = "t"\na = { who = "a", x = "1 s" }\nexpected = 1\ntolerance = 0.5\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('each = "rows"\nid = "C1"\n', 'claim[0].each: there is no loop "rows"; there are none'),
        ('each = 3\nid = "C1"\n', "claim[0].each: must be a list of texts or tables; for example each = { outage"),
        ('each = []\nid = "C1"\n', "claim[0].each: must be a list of texts or tables"),
        ('each = { n = ["1", "2"] }\nid = "C{m}"\n', 'claim[0].id: its `each` has no "m"; there is: n'),
        ('each = { n = ["1", "2"] }\nid = "C1"\n', 'claim[0].each.n[0]: no item has this key, and no text has "{n}"'),
        ('each = [{ id = "C1", metirc = "payload_bytes" }]\n', "claim[0].each[0].metirc: no item has this key"),
        ('each = [{ id = "C1" }, { id = "C1" }]\n', 'two claims are called "C1"'),
        (
            'each = [{ id = "C1" }, { id = "C2", kind = "vlaue" }]\n',
            'claim[0].each[1].kind: "vlaue" is none of',
        ),
        ('each = { n = ["1", "2"] }\nid = "C{n}"\nmetric_b = "x"\n', "(C1, turn 1 of 2)"),
        ('each = [{ id = "C1" }, { id = "C2", metric_b = "payload_bytes" }]\n', "(C2, turn 2 of 2)"),
        (
            f"each = {{ n = {list(range(40))}, m = {list(range(40))} }}\nid = 'C{{n}}{{m}}'\n",
            "has 1600 turns; at most 1000",
        ),
    ],
)
def test_an_error_names_the_item_and_the_turn(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        claims_of(f"[[claim]]\n{HEAD}{ROW}{text}", tmp_path)
    assert any(says in line for line in str(caught.value).splitlines()), str(caught.value)


def test_what_is_wrong_in_every_turn_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        claims_of(f'[[claim]]\n{HEAD}{ROW}each = {{ n = ["1", "2", "3"] }}\nid = "C{{n}}"\nflow = "nobody"\n', tmp_path)
    (line,) = str(caught.value).splitlines()
    assert 'claim[0].flow: there is no flow "nobody"' in line and line.endswith("(C1, turn 1 of 3)")
