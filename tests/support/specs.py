"""Specs for tests: a base text, and the messages that planning it gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Cell
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


def two_hosts(head: str, link: str, more: str) -> str:
    """Hosts a and b with the link p1. head: top-level keys. link: keys of p1. more: keys of every flow, then tables."""
    return f"""
format = 1
{head}
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
{link}
[default.flow]
from = "a"
to = "b"
paths = ["p1"]
{more}"""


def shape(**changes: object) -> LinkImpairment:
    """The shape of BASE's link, changed."""
    given = {"one_way_delay_ns": 20_000_000, "rate_bit_s": 10**6, "queue_packets": 50, **changes}
    return LinkImpairment(**given)  # type: ignore[arg-type]


def spec_of(text: str, folder: Path | None = None, sets: Mapping[str, str] | None = None) -> Spec:
    """Parse a text as a file called spec.toml (in a folder, if it has a claims.toml)."""
    return parse_spec(text.encode(), (folder or Path("nowhere")) / "spec.toml", sets=sets or {})


def plan_of(text: str, sets: Mapping[str, str] | None = None) -> Plan:
    """Parse and plan."""
    return make_plan(spec_of(text, sets=sets))


def cell_of(text: str) -> Cell:
    """The only cell of a spec."""
    (cell,) = plan_of(text).cells
    return cell


def replaced(old: str, new: str, text: str = BASE) -> str:
    """The base with one piece replaced (which must be there)."""
    assert old in text
    return text.replace(old, new, 1)


SCTP = replaced('protocol = "tcp"', 'protocol = "sctp"')
TWO = replaced('paths = ["p1"]', 'paths = ["p1", "p2"]', SCTP) + '[link.p2]\nlike = "p1"\n'
"""SCTP over two equal paths."""


def problems_of(text: str, sets: Mapping[str, str] | None = None) -> list[str]:
    """The lines of the SpecError a text ends in."""
    with pytest.raises(SpecError) as caught:
        plan_of(text, sets)
    return str(caught.value).splitlines()


def only(text: str, sets: Mapping[str, str] | None = None) -> str:
    """The only problem of a text."""
    found = problems_of(text, sets)
    assert len(found) == 1, found
    return found[0]


def line_of(text: str, piece: str) -> int:
    """1-based line on which a piece first stands."""
    return 1 + text[: text.index(piece)].count("\n")
