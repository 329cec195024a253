"""Packet programs: the assembler's encoding, the survival factors against the formula, and what a spec may say."""

from pathlib import Path

import msgspec
import pytest
from netwarp.core.errors import SpecError
from netwarp.core.frozen import to_json
from netwarp.core.link_types import LinkImpairment, PacketRange, PacketRule
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.testbed.bpf import assemble, program_tags
from netwarp.testbed.packet_program import ONE, packet_program, survival_factors
from support.cells import two_path_cell

SPEC = """
format = 1
name = "t"
title = "t"
duration = "20 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
one_way_delay = "20 ms"
LINE
[flow.x]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
bytes = "1 MB"
"""


def test_instructions_are_as_linux_bpf_h_has_them() -> None:
    """Known encodings: ldx dw; jne over one instruction; mov r0, -1; a store of a constant; mov r0, 0; exit."""
    code = assemble("""
    r1 = *(u64 *)(r9 + 16)   ; a comment
    if r1 != 7 goto end
    r0 = -1
end:
    *(u64 *)(r10 + -8) = 0
    r0 = 0
    exit
    """)
    assert code.hex(" ", 8) == (
        "7991100000000000 5501010007000000 b7000000ffffffff 7a0af8ff00000000 b700000000000000 9500000000000000"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("goto nowhere", "no label 'nowhere'"),
        ("end:\nexit\nend:", "stands twice"),
        ("r1 divided by r2", "no instruction"),
        ("goto end\n" + "exit\n" * 40_000 + "end:", "too far away"),
    ],
)
def test_what_cannot_be_assembled_is_an_error(text: str, said: str) -> None:
    """Labels that are missing, doubled or out of reach, and lines that are no instruction."""
    with pytest.raises(ValueError, match=said):
        assemble(text)


@pytest.mark.parametrize("name", ["dropped", "kept", "verdict", "single"])
def test_a_flow_may_have_the_name_of_a_label(name: str) -> None:
    flow = msgspec.structs.replace(two_path_cell().flows[0], name=name, protocol="tcp")
    assert packet_program([PacketRule("drop", (1,), "data")], [flow], errors=True).counters == 1


def test_the_tag_does_not_depend_on_descriptors() -> None:
    """The kernel leaves the descriptors of maps out of a program's tag."""
    assert program_tags(assemble("r1 = map 0\nexit")) == program_tags(assemble("r1 = map 1\nexit"))


@pytest.mark.parametrize("ratio", [1e-3, 1e-5, 1e-6])
@pytest.mark.parametrize("length", [20, 64, 576, 1500, 65535])
def test_the_product_of_the_factors_is_the_formula(ratio: float, length: int) -> None:
    for shape, units in (
        (LinkImpairment(bit_error_ratio=ratio), 8 * length),
        (LinkImpairment(byte_error_ratio=ratio), length),
        (LinkImpairment(byte_error_ratio=ratio, layer="ethernet"), 14 + length),
    ):
        survival, *factors = survival_factors(shape)
        for bit, factor in enumerate(factors):
            if length >> bit & 1:
                survival = survival * factor >> 32
        assert survival / ONE == pytest.approx((1 - ratio) ** units, abs=1e-8)


def plan(tmp_path: Path, line: str) -> LinkImpairment:
    """The forward direction of the cell."""
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.replace("LINE", line))
    return make_plan(load_spec(path)).cells[0].links[0].forward


def test_rules_are_read(tmp_path: Path) -> None:
    shape = plan(tmp_path, 'drop = { data = [3, 1] }\nduplicate = [5]\ndelay = { 7 = "30 ms", syn = { 1 = "1 ms" } }')
    assert [(rule.action, rule.kind, rule.numbers, rule.delay_ns) for rule in shape.packet_rules] == [
        ("drop", "data", (1, 3), 0),
        ("duplicate", "", (5,), 0),
        ("delay", "", (7,), 30_000_000),
        ("delay", "syn", (1,), 1_000_000),
    ]


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ('{ every = "1000 packets" }', [("", (), (PacketRange(1000, None, 1000),))]),
        ("{ from = 20, to = 30 }", [("", (), (PacketRange(20, 30, 1),))]),
        ("{ to = 3 }", [("", (), (PacketRange(1, 3, 1),))]),
        ('[7, { every = "5 packets", from = 11, to = 90 }]', [("", (7,), (PacketRange(11, 90, 5),))]),
        (
            '{ every = "9 packets", data = { every = "100 packets" }, ack = [2, { from = 4 }] }',
            [
                ("", (), (PacketRange(9, None, 9),)),
                ("data", (), (PacketRange(100, None, 100),)),
                ("ack", (2,), (PacketRange(4, None, 1),)),
            ],
        ),
    ],
)
def test_ranges_are_read(tmp_path: Path, line: str, rules: list[tuple[str, tuple[int, ...], object]]) -> None:
    read = plan(tmp_path, f"drop = {line}").packet_rules
    assert [(rule.kind, rule.numbers, rule.spans) for rule in read] == rules
    assert plan(tmp_path, f"duplicate = {line}").packet_rules[0].ranges == read[0].ranges


def test_a_rule_without_ranges_keeps_the_id_of_its_cell(tmp_path: Path) -> None:
    (rule,) = plan(tmp_path, "drop = [3, 7]").packet_rules
    assert to_json(rule) == b'{"action":"drop","numbers":[3,7],"kind":"","delay_ns":0}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("drop = { dat = [1] }", 'did you mean "data"'),
        ("drop = { evry = 5 }", 'did you mean "every"'),
        ("drop = { every = 1000 }", 'write for example "1000 packets"'),
        ('drop = { every = "0 packets" }', "at least 1 packet"),
        ("drop = { from = 30, to = 20 }", "no packet: the first would be number 30"),
        ('drop = { every = "100 packets", to = 99 }', "no packet: the first would be number 100"),
        ("drop = { data = {} }", 'is empty; for example { every = "1000 packets" }'),
        ("drop = { data = { form = 3 } }", 'did you mean "from"'),
        ("drop = { data = 3 }", "a list of numbers, or a range"),
        ("drop = [0]", "whole number from 1"),
        ("drop = [3, 3]", "twice"),
        ("drop = 3", "list of packets' numbers, a range"),
        ('delay = "30 ms"', "one_way_delay"),
        ('delay = { 05 = "30 ms" }', "neither a packet's number nor a kind"),
        (f"drop = {list(range(1, 1002))}", "more than 1000 single packets"),
        ("delay = { 5 = 30 }", "bare number"),
        ('delay = { cookie = { 1 = "30 ms" } }', "neither a packet's number nor a kind"),
        ('bit_errors = "1e-5"\nbyte_errors = "1e-5"', "two readings"),
        ('bit_errors = "100 %"', "below 1"),
        ('duplicate = "5 ms"', "a ratio is wanted"),
    ],
)
def test_typing_errors_are_said(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(SpecError) as error:
        plan(tmp_path, line)
    assert said in str(error.value)


def test_flows_of_one_port_cannot_be_counted_apart(tmp_path: Path) -> None:
    second = 'drop = { data = [1] }\n[flow.y]\nlike = "x"\nport = 5002'
    with pytest.raises(SpecError, match="have one port"):
        plan(tmp_path, second)
