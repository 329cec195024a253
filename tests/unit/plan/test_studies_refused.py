"""What the study fuzzer found that a plan has to say, or to take, before anything runs."""

from __future__ import annotations

import itertools

import pytest
from netwarp.testbed.arguments import receiver_arguments
from netwarp.testbed.layout import make_layout
from support.specs import BASE, cell_of, problems_of, replaced

OFF = 'sysctl = { "net.ipv4.tcp_window_scaling" = "0" }\n'


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_window_clamp_needs_window_scaling(node: str) -> None:
    text = replaced(f"[node.{node}]\n", f"[node.{node}]\n{OFF}") + 'receiver = { window_clamp = "65000 B" }\n'
    assert any(f'window scaling, which "{node}" has off' in problem for problem in problems_of(text))


@pytest.mark.parametrize(("measure", "hold_s"), [
    ('windows = "2.5 s"', 2.5), ('windows = "500 ms"', 2), ('windows = "500 ms"\nfair = { for = "1 s" }', 1),
])  # fmt: skip
def test_windows_longer_than_the_default_of_fair_are_no_mistake(measure: str, hold_s: float) -> None:
    asked = cell_of(f"{BASE}[measure]\n{measure}\n").measure
    assert asked
    assert asked.fair_hold_ns == hold_s * 10**9


@pytest.mark.parametrize(("family", "bound"), [("ipv4", []), ("ipv6", ["::"])])
def test_a_receiver_bound_to_no_address_listens_in_the_family_of_its_links(family: str, bound: list[str]) -> None:
    text = (
        BASE.replace('"tcp"', '"sctp"') + f'receiver = {{ any_address = true }}\n[default.link]\nfamily = "{family}"\n'
    )
    cell = cell_of(text)
    arguments = receiver_arguments(cell.flows[0], make_layout(cell), 1)
    assert [after for before, after in itertools.pairwise(arguments) if before == "--bind"] == bound


def test_a_sender_bound_to_no_address_may_come_from_each_of_its_host() -> None:
    """Its INIT names every address of the host, of links too that the flow does not use."""
    more = '[link.p2]\nbetween = ["a", "b"]\nrate = "1 Mbit/s"\nqueue = "50 packets"\n'
    text = BASE.replace('"tcp"', '"sctp"').replace("[flow.f]", f"{more}[flow.f]")
    for options, peers in (("", 1), ("sender = { any_address = true }\n", 2)):
        cell = cell_of(text + options)
        arguments = receiver_arguments(cell.flows[0], make_layout(cell), 1)
        assert arguments.count("--peer") == peers
