"""Specs for tests: a base text, and the messages that planning it gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.experiment import Spec, parse_spec
from netwarp.plan import make_plan
from netwarp.plan.types import Plan

BASE = """\
format = 1
name = "test"
duration = "10 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = "50 packets"
one_way_delay = "20 ms"
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
"""


def spec_of(text: str, folder: Path | None = None, sets: Mapping[str, str] | None = None) -> Spec:
    """Parse a text as a file called spec.toml (in a folder, if it has an expected.toml)."""
    return parse_spec(text.encode(), (folder or Path("nowhere")) / "spec.toml", sets=sets or {})


def plan_of(text: str, sets: Mapping[str, str] | None = None) -> Plan:
    """Parse and plan."""
    return make_plan(spec_of(text, sets=sets))


def replaced(old: str, new: str, text: str = BASE) -> str:
    """The base with one piece replaced (which must be there)."""
    assert old in text
    return text.replace(old, new, 1)


def problems_of(text: str, sets: Mapping[str, str] | None = None) -> list[str]:
    """The lines of the SpecError a text ends in."""
    with pytest.raises(SpecError) as caught:
        plan_of(text, sets)
    return str(caught.value).splitlines()


def line_of(text: str, piece: str) -> int:
    """1-based line on which a piece first stands."""
    return 1 + text[: text.index(piece)].count("\n")
