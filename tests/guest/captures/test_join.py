"""Joined captures of real guests against what the kernel's qdiscs counted and the delays that were asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from netwarp.captures import join_captures
from support.chain_kit import Checkout
from support.run_files import CellFiles

SPEC = """\
format = 1
name = "hops"
title = "Loss and delay of each hop"
duration = "40 s"
seed = 5
captures = "all"
[node]
a = { kind = "host" }
r = { kind = "router" }
b = { kind = "host" }
[link]
ar = { between = ["a", "r"], rate = "4 Mbit/s", queue = "{queue}", one_way_delay = "10 ms", loss = "{loss}" }
rb = { between = ["r", "b"], rate = "2 Mbit/s", queue = "{queue}", one_way_delay = "30 ms", loss = "{loss}" }
[flow.bulk]
from = "a"
to = "b"
protocol = "{protocol}"
paths = [{ sender = "ar", receiver = "rb" }]
start = "0.5 s"
bytes = "1 MB"
[factor]
protocol = { levels = ["tcp", "sctp"] }
loss = { levels = ["0 %", "2 %"] }
queue = { levels = ["12 packets"] }
"""
MS = 1e-3


@dataclass(frozen=True)
class Ran:
    files: CellFiles
    hops: list[dict[str, Any]]


@pytest.fixture(scope="module")
def ran(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    base = tmp_path_factory.mktemp("hops")
    found = []
    for cell in checkout.run_spec(base, SPEC).cells.values():
        done = checkout.run("analyze", "--join", "--json", cell.root, cwd=base).ok()
        found.append(Ran(cell, json.loads(done.out)["join"]["hops"]))
    assert len(found) == 4
    return found


def counted(cell: CellFiles, link: str) -> list[tuple[int, int, int]]:
    """(sent, dropped, still queued) of both root qdiscs of a link's shaping hop, as the kernel counted at the end."""
    network = cell.environment["network"]
    last = {entry["namespace"]: entry["qdiscs"] for entry in network["qdiscs"]}[f"{link}.hop"]
    roots = [qdisc for qdisc in last if qdisc["kind"] == "netem" and qdisc["parent"] is None]
    assert len(roots) == 2
    return sorted((one["sent_packets"], one["dropped_packets"], one["queued_packets"]) for one in roots)


def of_link(one: Ran, link: str) -> list[dict[str, Any]]:
    return [hop for hop in one.hops if hop["before"].endswith(f"-{link}") and hop["after"].endswith(f"-{link}")]


def test_loss_is_what_the_qdiscs_dropped(ran: list[Ran]) -> None:
    lost = queued = 0
    for one in ran:
        for link in ("ar", "rb"):
            seen = [(hop["packets"] - hop["lost_packets"], hop["lost_packets"], hop["unknown_packets"])
                    for hop in of_link(one, link)]  # fmt: skip
            # what the kernel still held at the end was sent and not seen to arrive: unknown, not lost
            assert sorted(seen) == counted(one.files, link)
            lost += sum(count for _, count, _ in seen)
            queued += sum(count for _, _, count in seen)
        for hop in one.hops:
            assert hop["by_time_packets"] == hop["negative_packets"] == hop["reordered_packets"] == 0
            assert hop["unseen_packets"] == 0
    assert lost > 100
    assert queued > 0


def test_points_are_in_the_order_of_the_way(ran: list[Ran]) -> None:
    for one in ran:
        ways: dict[str, list[tuple[str, str]]] = {}
        for hop in one.hops:
            ways.setdefault(hop["source"], []).append((hop["before"], hop["after"]))
        there = [("a-ar", "r-ar"), ("r-ar", "r-rb"), ("r-rb", "b-rb")]
        assert list(ways.values()) == [there, [(b, a) for a, b in reversed(there)]]
        assert [hop["routers"] for hop in one.hops] == [1, 1, 1] * 2, "a link's shaping hop is a router, and r is one"


@pytest.mark.parametrize(("link", "delay_s", "rate_bit_s"), [("ar", 10 * MS, 4e6), ("rb", 30 * MS, 2e6)])
def test_no_packet_is_faster_than_its_link(ran: list[Ran], link: str, delay_s: float, rate_bit_s: float) -> None:
    """Configured delay and the packet's own time on the wire at least; exactly that where nothing was queued."""
    for one in ran:
        files = one.files.captures("*")
        for hop in join_captures(files, one_clock=True, whole=True).hops:
            if not hop.before.endswith(f"-{link}") or not hop.after.endswith(f"-{link}"):
                continue
            there = ~np.isnan(hop.packet_delay_s)
            queued_s = hop.packet_delay_s[there] - delay_s - hop.packet_bytes[there] * 8 / rate_bit_s
            assert queued_s.min() == pytest.approx(0, abs=1e-6)
            assert queued_s.max() <= 13 * 1500 * 8 / rate_bit_s, "12 packets wait, one is being sent"


def test_a_router_that_shapes_nothing_adds_nothing(ran: list[Ran]) -> None:
    inside = [hop for one in ran for hop in one.hops if hop["before"][0] == hop["after"][0] == "r"]
    assert len(inside) == 2 * len(ran)
    assert max(hop["delay_max_s"] for hop in inside) < MS
    assert sum(hop["lost_packets"] for hop in inside) == 0
