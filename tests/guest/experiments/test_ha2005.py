"""A scaled ha2005: packet counts from header arithmetic, 13 routers, SACKs on the path that the route names."""

from __future__ import annotations

import numpy as np
import pytest
from netwarp.captures import read_captures
from support.chain_kit import Checkout
from support.checkout import ROOT
from support.run_files import Measured, RunFiles

SPEC = ROOT / "experiments" / "ha2005" / "spec.toml"
TOTAL = 1_024_000
"""Whole messages of 1024, 2048, 4096 and 8192 B: then the arithmetic is exact to the packet."""
EXACT = {"1024 B": 1000, "2048 B": 500 * 2, "4096 B": 250 * 3, "8192 B": 125 * 6}
ONE_MORE = {"717 B": -(-TOTAL // 717), "1453 B": TOTAL // 1453 * 2 + 1}
"""The last message is shorter and may share a packet with what is before it."""


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """SCTP with six send sizes, TCP with four initial windows, single and split paths, the worked example."""
    words: list[str] = []
    for experiment in ("sizes", "windows", "split", "example"):
        words += ["--only", experiment]
    chosen = {
        "size": ["-", *EXACT, *ONE_MORE],
        "nagle": ["on", "-"],
        "buffers": ["default", "-"],
        "homing": ["-", "single", "split"],
        "reverse": ["none", "-"],
        "stack": ["today", "-"],
    }
    words += [
        word for factor, levels in chosen.items() for level in levels for word in ("--where", f"{factor}={level}")
    ]
    words += ["--set", f"transfer={TOTAL} B", "--repetitions", "1", "--no-report"]
    return checkout.run_spec(tmp_path_factory.mktemp("ha2005"), SPEC, *words)


@pytest.fixture(scope="module")
def measured(run: RunFiles) -> Measured:
    return run.measured("bulk")


def test_data_packets_are_those_of_header_arithmetic(measured: Measured) -> None:
    sizes = {cell["size"]: one for cell, one in measured if cell["protocol"] == "sctp"}
    assert set(sizes) == {*EXACT, *ONE_MORE}
    for size, packets in EXACT.items():
        one = sizes[size]
        assert one["theory_data_packets_low"] == one["theory_data_packets_high"] == packets
        assert one["data_packets"] == one["data_chunks"] == packets
        assert one["ack_packets"] >= one["theory_ack_packets_low"] == packets // 2
    for size, packets in ONE_MORE.items():
        assert packets - 1 <= sizes[size]["data_packets"] <= packets
    assert all(one["data_packets_as_theory"] == one["ack_packets_as_theory"] == 1 for one in sizes.values())
    assert all(one["retransmitted_packets"] == 0 for one in sizes.values())


def test_thirteen_routers_count_the_hop_limit_down(run: RunFiles) -> None:
    cell = next(cell for cell in run.cells.values() if {"sctp", "8192 B"} <= set(cell.cell.factors.values()))
    capture = read_captures(cell.captures("b", "h12"), ("packets", "identities"))
    towards = capture.packets["direction"][capture.identities["packet"]] == 0
    assert np.unique(capture.identities["hop_limit"][towards]).tolist() == [64 - 13]
    assert np.unique(capture.identities["hop_limit"][~towards]).tolist() == [64]


def test_a_route_s_initial_window_is_what_tcp_begins_with(measured: Measured) -> None:
    begun = {
        cell["initial_window"]: one["initial_window_packets"]
        for cell, one in measured
        if (cell["protocol"], cell["size"]) == ("tcp", "8192 B")
    }
    assert begun == {"default": 10, "1 packets": 1, "2 packets": 2, "4 packets": 4}


def test_sacks_leave_where_the_receiver_s_route_leads(measured: Measured) -> None:
    other = {cell["homing"]: one["sacks_other_path_ratio"] for cell, one in measured if cell["homing"] != "-"}
    assert other == {"single": 0, "split": 1}


def test_the_worked_example(measured: Measured) -> None:
    """15 packets of SCTP; TCP needs 11 but sends one short segment early (Minshall's variant of Nagle's algorithm)."""
    packets = {cell["example"]: one["data_packets"] for cell, one in measured if cell["example"] != "-"}
    assert packets["sctp"] == packets["sctp_nodelay"] == 15
    assert packets["tcp"] == 12
