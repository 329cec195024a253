"""`family` of a link in a spec: defaults, sizes that follow from it, and its mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.ip_families import IPV4, IPV6
from netwarp.core.types import Cell
from netwarp.experiment import load_spec
from netwarp.measure.models.packet_count_model import packets_of
from netwarp.plan import make_plan

SPEC = """\
format = 1
name = "families"
duration = "10 s"
{top}
[node]
a = {{}}
b = {{}}
r = {{ kind = "router"{router} }}
[default.link]
rate = "1 Mbit/s"
queue = "20 packets"
{default}
[link]
p1 = {{ between = ["a", "b"]{p1} }}
p2 = {{ between = ["a", "b"]{p2} }}
ar = {{ between = ["a", "r"]{ar} }}
rb = {{ between = ["r", "b"]{rb} }}
[flow.f]
from = "a"
to = "b"
protocol = "{protocol}"
paths = {paths}
bytes = "100 kB"
{flow}
"""
PARTS = ("top", "router", "default", "p1", "p2", "ar", "rb", "flow")


def cell(
    folder: Path, protocol: str = "tcp", paths: str = '["p1"]', sets: dict[str, str] | None = None, **more: str
) -> Cell:
    spec = folder / "spec.toml"
    spec.write_text(SPEC.format(protocol=protocol, paths=paths, **{part: more.get(part, "") for part in PARTS}))
    (only,) = make_plan(load_spec(str(spec), sets=sets or {})).cells
    return only


V6 = ', family = "ipv6"'


@pytest.mark.parametrize(
    ("more", "sets"),
    [
        ({"default": 'family = "ipv6"'}, {}),
        ({}, {"default.link.family": "ipv6"}),
        (dict.fromkeys(("p1", "p2", "ar", "rb"), V6), {}),
    ],
)
def test_one_key_makes_a_whole_spec_ipv6(tmp_path: Path, more: dict[str, str], sets: dict[str, str]) -> None:
    made = cell(tmp_path, sets=sets, **more)
    assert {link.ip_family for link in made.links} == {IPV6}
    assert {node.sysctls.get("net.ipv6.conf.all.disable_ipv6") for node in made.nodes} == {None}
    assert {node.sysctls["net.ipv6.conf.default.accept_ra"] for node in made.nodes} == {"0"}


def test_a_links_own_family_wins_over_the_default(tmp_path: Path) -> None:
    made = cell(tmp_path, default='family = "ipv6"', p1=', family = "ipv4"')
    assert [link.ip_family for link in made.links] == [IPV4, IPV6, IPV6, IPV6]


@pytest.mark.parametrize(
    ("protocol", "paths", "more", "message_bytes"),
    [
        ("tcp", '["p1"]', {}, 1500 - 40),
        ("tcp", '["p2"]', {"p2": V6}, 1500 - 60),
        ("sctp", '["p1"]', {}, 1500 - 20 - 12 - 16),
        ("sctp", '["p2"]', {"p2": V6}, 1500 - 40 - 12 - 16),
        ("sctp", '["p1", "p2"]', {"p2": V6}, 1500 - 40 - 12 - 16),
        ("sctp", '["p1", "p2"]', {"p1": V6}, 1500 - 40 - 12 - 16),
        ("sctp", '["p2"]', {"p2": V6, "flow": 'sender = { path_mtu = "1280 B" }'}, 1280 - 40 - 12 - 16),
        ("mptcp", '["p1", "p2"]', {"p2": V6}, 1500 - 60),
    ],
)
def test_a_message_fills_a_packet_of_every_path(
    tmp_path: Path, protocol: str, paths: str, more: dict[str, str], message_bytes: int
) -> None:
    """RFC 791, RFC 8200 3, RFC 9293 3.1, RFC 9260 3 and 3.3.1."""
    assert cell(tmp_path, protocol, paths, **more).flows[0].message_bytes == message_bytes


def test_an_association_over_both_families_names_private_addresses(tmp_path: Path) -> None:
    """Linux alone would keep 10.0.0.1 from an INIT to fd00::1 (net.sctp.addr_scope_policy 1)."""
    policies = {
        families: cell(tmp_path, "sctp", '["p1", "p2"]', p1=families).nodes[0].sysctls.get("net.sctp.addr_scope_policy")
        for families in ("", V6)
    }
    assert policies == {"": None, V6: "2"}


def test_calculated_packets_follow_the_header(tmp_path: Path) -> None:
    over4, over6 = cell(tmp_path, "sctp"), cell(tmp_path, "sctp", '["p2"]', p2=V6)
    counts = [packets_of(each, each.flows[0]) for each in (over4, over6)]
    assert [(count.low, count.high) for count in counts if count is not None] == [(69, 69), (70, 70)]


@pytest.mark.parametrize(
    ("protocol", "paths", "more", "said"),
    [
        ("tcp", '["p1"]', {"p1": ', family = "dual"'}, "a link carries one family; for paths of both, link.p1.family"),
        ("tcp", '["p1"]', {"p1": ', family = "ip6"'}, 'did you mean "ipv6"?'),
        ("tcp", '["p2"]', {"p2": V6 + ', mtu = "1279 B"'}, "IPv6 needs an MTU of 1280 B"),
        ("tcp", '[{ sender = "ar", receiver = "rb" }]', {"ar": V6}, "no packet changes its family on the way"),
        ("tcp", '["p2"]', {"p2": V6, "flow": 'sender = { mss = "1460 B" }'}, 'at most "1440 B"'),
        (
            "tcp",
            '["p1"]',
            {"ar": V6, "rb": V6, "router": ', agent = { kind = "snoop", link = "rb" }'},
            "read IPv4 alone",
        ),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, protocol: str, paths: str, more: dict[str, str], said: str) -> None:
    with pytest.raises(SpecError) as raised:
        cell(tmp_path, protocol, paths, **more)
    assert said in str(raised.value)


def test_an_answer_leaves_by_a_link_of_its_own_family(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        cell(tmp_path, "tcp", '[{ sender = "p2", receiver = "p2", back = "p1" }]', p2=V6)
    assert "'p1' carries IPv4, 'p2' IPv6" in str(raised.value)
