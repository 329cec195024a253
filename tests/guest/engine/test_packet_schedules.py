"""Schedules of packets on the real kernel: what is lost has the name it is given, cells begin as their parents do, a
counterexample replays, and an interrupted run grows to the same plan.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from netwarp.captures.capture import read_captures
from netwarp.core.schedule_levels import packets_of_level
from netwarp.core.types import Cell
from netwarp.plan.types import Plan
from netwarp.store.plan_file import read_plan, write_plan
from netwarp.store.run_dir import RunDir
from netwarp.store.tables import read_rows
from support.chain_kit import Checkout, all_completed, written

SPEC = """\
format = 1
name = "schedules"
duration = "20 s"
expected = "claims.toml"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "2 Mbit/s"
queue = "50 packets"
one_way_delay = "20 ms"
[flow.bulk]
from = "a"
to = "b"
protocol = "{protocol}"
paths = ["p1"]
bytes = "6 kB"
sender = { close = "graceful" }
[factor.protocol]
levels = ["tcp", "sctp"]
[factor.schedule]
drops = { first = 5, together = 2 }
"""
EXPECTED = """\
[source.own]
title = "own"
[[claim]]
id = "slow"
text = "No two packets cost 4 s."
source = "here"
kind = "every"
metric = "completion_time_s"
a = { schedule = "*" }
expected = 2
tolerance = 2
"""


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("schedules")
    written(place / "spec.toml", SPEC)
    written(place / "claims.toml", EXPECTED)
    done = checkout.run("run", "spec.toml", "--out", "run", cwd=place).ok()
    assert "gave identical packets" not in done.out
    assert "counterexample: run/counterexamples/slow: " in done.err
    all_completed(place / "run")
    return place / "run"


def plan_of(run: Path) -> Plan:
    return read_plan(RunDir(run))


def cell_of(plan: Plan, protocol: str, schedule: str) -> Cell:
    (cell,) = (one for one in plan.cells if one.factors == {"protocol": protocol, "schedule": schedule})
    return cell


def sent(run: Path, cell: Cell) -> list[tuple[int, int]]:
    """Times and lengths of the packets at the sender."""
    (file,) = RunDir(run).cell(cell.id).capture.glob("a-p1.pcap*")
    packets = read_captures([file], ("packets",)).packets
    return list(zip(packets["time_ns"].tolist(), packets["ip_bytes"].tolist(), strict=True))


def test_levels_are_the_packets_of_each_protocol(run: Path) -> None:
    plan = plan_of(run)
    levels = {name: [] for name in ("tcp", "sctp")}  # type: dict[str, list[str]]
    for cell in plan.cells:
        levels[cell.factors["protocol"]].append(cell.factors["schedule"])
    singles = {name: [level for level in some if packets_of_level(level) == 1] for name, some in levels.items()}
    assert singles["tcp"] == ["SYN", "SYN ACK", "ACK 1", "DATA 1", "DATA 2"]
    assert singles["sctp"] == ["INIT", "INIT ACK", "COOKIE ECHO", "COOKIE ACK", "DATA 1"]
    assert {"SYN + SYN 2", "SYN ACK + SYN 2"} <= set(levels["tcp"])
    assert "INIT + COOKIE ECHO" in levels["sctp"]


def test_a_lost_packet_is_the_one_that_is_named(run: Path) -> None:
    """The SYN is lost: the sender's first packet does not arrive, and it costs the first timeout."""
    plan = plan_of(run)
    rows = {row["cell_id"]: row for row in read_rows(run / "tables" / "measurements.csv")
            if row["metric"] == "completion_time_s"}  # fmt: skip
    for protocol, schedule, timer_s in (("tcp", "SYN", 1.0), ("sctp", "INIT ACK", 3.0), ("sctp", "COOKIE ACK", 3.0)):
        base, one = (float(rows[cell_of(plan, protocol, level).id]["value"]) for level in ("none", schedule))
        assert timer_s <= one - base <= 1.125 * timer_s, (protocol, schedule)


def test_what_a_flow_waits_for(run: Path) -> None:
    """The timer that is paid for each loss, from the captures; and nothing is promised in vain."""
    plan = plan_of(run)
    rows = {(row["cell_id"], row["metric"]): row["value"] for row in read_rows(run / "tables" / "measurements.csv")}
    waits = ("setup_repeat_wait_s", "data_repeat_wait_s", "close_repeat_wait_s")
    for protocol, schedule, waited in (
        ("tcp", "none", (0, 0, 0)),
        ("tcp", "SYN", (1.0, 0, 0)),
        ("tcp", "SYN ACK", (1.0, 0, 0)),
        ("tcp", "DATA 1", (0, 0.05, 0)),
        ("sctp", "none", (0, 0, 0)),
        ("sctp", "INIT", (3.0, 0, 0)),
        ("sctp", "COOKIE ACK", (3.0, 0, 0)),
        ("sctp", "INIT + COOKIE ECHO", (3.0, 0, 0)),
    ):
        cell = cell_of(plan, protocol, schedule)
        for metric, least in zip(waits, waited, strict=True):
            value = float(rows[cell.id, metric])
            assert least <= value <= 1.6 * least, (protocol, schedule, metric, value)
    for cell in plan.cells:
        for metric in ("aborts", "undelivered_bytes", "ends_disagree"):
            assert rows[cell.id, metric] == "0.0", (cell.id, metric)
        assert float(rows[cell.id, "silence_s"]) <= 6.75
        if cell.factors["protocol"] == "sctp":
            assert rows[cell.id, "data_on_failed_path_packets"] == "0.0"


def test_what_each_schedule_cost(run: Path) -> None:
    """In the table, and in the report's map of them."""
    rows = {(row["protocol"], row["schedule"]): row for row in read_rows(run / "tables" / "schedules.csv")}
    assert len(rows) == len(plan_of(run).cells) - 2
    for protocol, schedule, cause, least in (
        ("tcp", "SYN", "timer of the set-up", 1.0),
        ("tcp", "SYN + SYN 2", "timer of the set-up", 2.0),
        ("tcp", "ACK 1", "nothing", -0.001),
        ("tcp", "DATA 1", "fast retransmission", 0.03),
        ("sctp", "COOKIE ECHO", "timer of the set-up", 3.0),
        ("sctp", "COOKIE ECHO + COOKIE ECHO 2", "timer of the set-up", 9.0),
    ):
        row = rows[protocol, schedule]
        assert row["cause"].startswith(cause), row
        assert least <= float(row["cost_s"]) <= 1.1 * abs(least) + 0.05, row
    page = (run / "report" / "index.html").read_text()
    assert 'id="schedules"' in page and f"{len(rows)} schedules ran" in page
    for level in ("SYN + SYN 2", "COOKIE ECHO + COOKIE ECHO 2"):
        assert f'title="{level}: ' in page


def test_a_cell_begins_as_its_parent(run: Path) -> None:
    """Byte for byte, until the packet is lost."""
    plan = plan_of(run)
    for child in plan.cells:
        names = child.factors["schedule"].split(" + ")
        if names == ["none"]:
            continue
        parent = cell_of(plan, child.factors["protocol"], " + ".join(names[:-1]) or "none")
        both = [sent(run, cell) for cell in (parent, child)]
        same = next((n for n, pair in enumerate(zip(*both, strict=False)) if pair[0] != pair[1]), min(map(len, both)))
        position = next(
            rule.numbers[-1]
            for link in child.links
            for shape in (link.forward, link.backward)
            for rule in shape.packet_rules
            if rule.numbers
        )
        assert same >= position, (child.id, same)


def test_a_counterexample_replays(run: Path, checkout: Checkout, tmp_path: Path) -> None:
    example = run / "counterexamples" / "slow"
    about = (example / "about.txt").read_text()
    assert "slow: No two packets cost 4 s." in about and "schedule=" in about
    checkout.run("run", example / "spec.toml", "--out", "again", "--no-report", cwd=tmp_path).ok()
    (again,) = (tmp_path / "again" / "cells").glob("*/derived/packets.json")
    cell_id = next(line.removeprefix("Cell: ") for line in about.splitlines() if line.startswith("Cell: "))
    assert json.loads(again.read_text()) == json.loads((RunDir(run).cell(cell_id).packets).read_text())
    assert sorted(path.name for path in (example / "capture").iterdir()) == sorted(
        path.name for path in RunDir(run).cell(cell_id).capture.iterdir()
    )


def test_an_interrupted_run_grows_to_the_same_plan(run: Path, checkout: Checkout, tmp_path: Path) -> None:
    """A copy from which a round's cells are gone, its plan the one before that round."""
    place = tmp_path / "copy"
    shutil.copytree(run.parent, place)
    whole = plan_of(run)
    half = [cell for cell in whole.cells if packets_of_level(cell.factors["schedule"]) < 2]
    directory = RunDir(place / "run")
    write_plan(directory, Plan(**{**_fields(whole), "cells": tuple(half)}))
    for cell in whole.cells:
        if cell not in half or cell.factors["schedule"] == "DATA 1":
            shutil.rmtree(directory.cell(cell.id).root)
    checkout.run("run", "spec.toml", "--out", "run", "--resume", "--no-report", cwd=place).ok()
    assert plan_of(place / "run") == whole
    for cell in whole.cells:
        assert directory.cell(cell.id).packets.read_bytes() == RunDir(run).cell(cell.id).packets.read_bytes()


def _fields(plan: Plan) -> dict[str, object]:
    return {name: getattr(plan, name) for name in plan.__struct_fields__}
