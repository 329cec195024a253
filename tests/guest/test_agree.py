"""`netwarp agree`: the virtual and the wall clock within stated bounds, and a difference that it must see."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from chain_kit import Checkout, Done, cells, outcomes, two_paths, written

from orchestrator.model import Outcome

SPEC = """\
format = 1
name = "agreed"
duration = "3 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "2 Mbit/s"
queue = "20 packets"
one_way_delay = "20 ms"
[flow.bulk]
from = "a"
to = "b"
paths = ["p1"]
message_size = "1000 B"
sender = { message_rate = "400 kbit/s" }
[factor.protocol]
levels = ["tcp", "sctp"]
[factor.protocol.tcp]
flow.bulk.protocol = "tcp"
[factor.protocol.sctp]
flow.bulk.protocol = "sctp"
"""
BOUND = 0.025
"""What tolerance.py makes of these cells for rates: 2 x 10 ms of 3 s, and 2 packets of 150. Wider than this would be a
test that cannot fail. A fifth of the link is used: what a busy host is late with inside a cell delays, but takes no
packets away, as it does where the bottleneck is full."""
STEADY = ("goodput_bit_s", "throughput_bit_s", "payload_bytes", "data_packets")
REPETITIONS = 3


def agreed(done: Done, out: Path) -> dict[str, Any]:
    """What --json said; the files say the same."""
    found: dict[str, Any] = json.loads(done.out)
    assert json.loads((out / "agreement.json").read_text()) == found
    rows = list(csv.DictReader((out / "agreement.csv").read_text().splitlines()))
    assert len(rows) == sum(found["numbers"].values())
    assert (out / "agreement.html").read_bytes().startswith(b"<!doctype html>")
    return found


def numbers(out: Path, metric: str) -> dict[str, dict[str, str]]:
    """Protocol -> row of agreement.csv."""
    rows = csv.DictReader((out / "agreement.csv").read_text().splitlines())
    return {row["protocol"]: row for row in rows if row["metric"] == metric}


def late(run: Path) -> set[str]:
    """Levels of the cells that are INVALID, all of which the host made late (else this fails)."""
    found = set()
    for cell_id, outcome in outcomes(run).items():
        if outcome.outcome is Outcome.COMPLETED:
            continue
        assert outcome.outcome is Outcome.INVALID, outcome
        checks = json.loads((run / "cells" / cell_id / "environment.json").read_text())["checks"]
        wrong = [check["check"] for check in checks if not check["ok"]]
        assert wrong, outcome
        assert all(name.startswith(("timeline", "start of", "steal time")) for name in wrong), outcome
        found.add(cells(run)[cell_id].factors["protocol"])
    return found


def test_virtual_and_wall_clock_agree(checkout: Checkout, tmp_path: Path) -> None:
    """Steady rates within their bounds. A cell that the host made late is run once more, and one that is late again
    leaves its place out: said on stderr, never counted as agreeing."""
    spec, out = written(tmp_path / "spec.toml", SPEC), tmp_path / "out"
    done = checkout.run(
        "agree", spec, "--backends", "virtual,guest", "--repetitions", REPETITIONS, "--jobs", 3, "--out", out, "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.status in (0, 1), done
    found = agreed(done, out)
    assert [side["backend"] for side in found["sides"]] == ["virtual", "guest"]
    assert [len(cells(out / name)) for name in ("virtual", "guest")] == [2, 2 * REPETITIONS]
    again = found["sides"][1]["again"]
    assert done.err.count("once more, the host was late: ") == len(again)
    left_out = late(out / "guest")
    print(f"late twice: {left_out or 'none'}; once more: {again}")
    for metric in STEADY:
        for protocol, row in numbers(out, metric).items():
            assert float(row["bound"]) < BOUND * float(row["a"]), row
            if protocol not in left_out:
                assert row["verdict"] == "agree", (row, found["sides"])


def test_another_setting_differs(checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", SPEC)
    for name, more in (("a", ()), ("same", ()), ("slow", ("--set", "link.p1.one_way_delay=25 ms"))):
        checkout.run("run", spec, "--no-report", *more, "--out", tmp_path / name, cwd=tmp_path).ok()
    same = checkout.run("agree", tmp_path / "a", tmp_path / "same", cwd=tmp_path).ok()
    assert "No number lies beyond its bound by more than chance." in same.out
    out = tmp_path / "differs"
    done = checkout.run("agree", tmp_path / "a", tmp_path / "slow", "--json", "--out", out, cwd=tmp_path)
    assert done.status == 1
    found = agreed(done, out)
    assert not found["agree"]
    assert {row["verdict"] for row in numbers(out, "setup_time_s").values()} == {"differ"}
    senders = {one["levels"]["protocol"]: one["senders"] for one in found["parted"]}
    # messages are sent when they are due: the first that shows it is sent when the connection is up, a round trip later
    first = (
        "the senders part at data packet 1: A sends new data on p1 at 0.100002 s, B sends new data on p1 at 0.120002 s"
    )
    assert senders["sctp"] == [first]


def test_a_random_difference_is_seen_with_enough_draws(checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", two_paths(duration="3 s", shape='loss = "1 %"'))
    for name, more in (("a", ()), ("b", ("--seed", "500")), ("c", ("--seed", "900", "--set", "link.p1.rate=1 Mbit/s"))):
        checkout.run(
            "run",
            spec,
            "--no-report",
            "--repetitions",
            6,
            "--where",
            "protocol=tcp",
            *more,
            "--out",
            tmp_path / name,
            cwd=tmp_path,
        ).ok()
    for other, verdicts in (("b", {"agree", "unclear"}), ("c", {"differ"})):
        out = tmp_path / f"with-{other}"
        done = checkout.run("agree", tmp_path / "a", tmp_path / other, "--out", out, cwd=tmp_path)
        assert done.status == (other == "c"), done
        assert {row["verdict"] for row in numbers(out, "throughput_bit_s").values()} <= verdicts
