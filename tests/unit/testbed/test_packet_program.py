"""Packet programs: the assembler's encoding, the survival factors against the formula, and what a spec may say."""

from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.types import LinkImpairment
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.testbed.bpf import Assembler, program_tag
from netwarp.testbed.packet_program import ONE, survival_factors

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
    """Known encodings: mov r0, 0; exit; ldx dw; jne over one instruction."""
    code = Assembler()
    code.load(8, 1, 9, 16)
    code.jump_if("ne", 1, 7, "end")
    code.op("mov", 0, -1)
    code.label("end")
    code.leave(0)
    assert (
        code.encode().hex(" ", 8)
        == "7991100000000000 5501010007000000 b7000000ffffffff b700000000000000 9500000000000000"
    )


def test_a_label_must_be_there() -> None:
    code = Assembler()
    code.jump("nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        code.encode()


def test_the_tag_does_not_depend_on_descriptors() -> None:
    tags = []
    for number in (0, 1):
        code = Assembler()
        code.map_value(1, number)
        code.leave(0)
        tags.append(program_tag(code.encode()))
    assert tags[0] == tags[1]


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
    ("line", "said"),
    [
        ("drop = { dat = [1] }", 'did you mean "data"'),
        ("drop = [0]", "whole number from 1"),
        ("drop = [3, 3]", "twice"),
        ("drop = 3", "list of packets' numbers"),
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
