"""An MPTCP flow uses all its paths: the kernels open subflows, each carries data, another carries on after a cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.captures.mptcp import MptcpConnection, analyze_mptcp
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Event
from support.apps_lab import MS, Run, S, make_cell, run

SHAPE = LinkImpairment(one_way_delay_ns=20 * MS, rate_bit_s=2_000_000, queue_packets=40)


def connection(done: Run, node: str) -> MptcpConnection:
    """The one connection, at one host."""
    (found,) = analyze_mptcp(read_captures(sorted((done.result.directory / "capture").glob(f"{node}-*.pcap"))))
    return found


@pytest.mark.parametrize("paths", [2, 3])
def test_every_path_carries_data(paths: int, kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("mptcp", shape=SHAPE, paths=paths, duration_ns=20 * S, total_bytes=3_000_000)
    done = run(kernel, tmp_path, cell).well()
    assert done.got["unique_bytes"] == 3_000_000
    found = connection(done, "b")
    assert found.totals["new_bytes"] == 3_000_000
    assert (found.totals["subflows"], found.totals["subflows_with_data"]) == (paths, paths)
    ends = [row["subflow"].split(">") for row in found.tables["subflows"]]
    links = {(a.split(":")[0], b.split(":")[0]) for a, b in ends}
    assert links == {(f"10.0.{n}.1", f"10.0.{n}.129") for n in range(paths)}
    shares = [row["new_ratio"] for row in found.tables["subflows"]]
    assert min(shares) > 0.6 / paths
    goodput = found.totals["goodput_bit_s"]
    assert goodput is not None
    assert 0.8 * paths * 2e6 < goodput < paths * 2e6
    told = [event["what"] for event in found.events]
    assert told.count("ADD_ADDR") == paths - 1
    assert found.totals["addresses_told"] == paths - 1


def test_one_path_is_one_subflow(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("mptcp", shape=SHAPE, duration_ns=20 * S, total_bytes=500_000)
    found = connection(run(kernel, tmp_path, cell).well(), "a")
    assert (found.totals["subflows"], found.totals["addresses_told"]) == (1, 0)


def test_data_of_a_cut_path_is_reinjected_on_the_other(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell(
        "mptcp",
        shape=SHAPE,
        paths=2,
        duration_ns=30 * S,
        total_bytes=3_000_000,
        timeline=[Event(at_ns=3 * S, action="cut", name="x", link="p1")],
    )
    done = run(kernel, tmp_path, cell)
    assert done.got["unique_bytes"] == 3_000_000
    sent, got = connection(done, "a"), connection(done, "b")
    assert sent.totals["reinjected_bytes"] is not None
    assert sent.totals["reinjected_bytes"] > 1000
    assert got.totals["new_bytes"] == 3_000_000
    cut, kept = got.tables["subflows"]
    assert cut["last_new_data_s"] < 3 < kept["last_new_data_s"]
    (onto,) = [
        event for event in sent.events if event["what"] == "first reinjection" and event["subflow"] == kept["subflow"]
    ]
    assert 2.5 < onto["t_s"] < 5
