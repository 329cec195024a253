"""No command pads a column by hand: a field wider than its column would touch the next (core/lines.py does it)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import netwarp

ROOT = Path(netwarp.__file__).parent
ROOMS = ("cli", "doctor", "engine", "present", "results", "selftests")


def hand_made(tree: ast.AST) -> Iterator[int]:
    """Lines with a width in a format, or with ljust, rjust, center of a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec = "".join(part.value if isinstance(part, ast.Constant) else "1" for part in node.format_spec.values)
            width = spec.partition(".")[0].lstrip("<>^")
            if width[:1] != "0" and re.match(r"[1-9]", width):
                yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            bytes_of = any(isinstance(arg, ast.Constant) and isinstance(arg.value, bytes) for arg in node.args)
            if node.func.attr in ("ljust", "rjust", "center") and not bytes_of:
                yield node.lineno


def test_no_column_is_padded_by_hand() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for line in hand_made(ast.parse(path.read_text()))
    ]
    assert found == []


def test_the_rule_finds_what_it_forbids() -> None:
    wrong = "a = f'{x:<28}{y:>10}'\nb = f'{x:{w}}'\nc = x.ljust(3)\n"
    code = wrong + "d = f'{x:.3f} {n:02d} {y:+.0f} {z:x}'\ne = b.ljust(3, b'0')"
    assert sorted(hand_made(ast.parse(code))) == [1, 1, 2, 3]
