"""A fault of drawn length, and the table of events that shows how its path is found again, in real guests."""

from __future__ import annotations

import csv
import itertools
import subprocess
from pathlib import Path

import pytest
from support.chain_kit import Checkout, all_completed, cells, unpacked

S = 1_000_000_000
T0_S = 1_700_000_000
"""T0 as captures write it (architecture.md: the clock starts at a constant)."""
SPEC = """\
format = 1
name = "found"
duration = "30 s"
seed = 5
repetitions = 2
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = "40 packets"
one_way_delay = "20 ms"
[link.p2]
like = "p1"
[flow.bulk]
from = "a"
to = "b"
protocol = "sctp"
paths = ["p1", "p2"]
sender = { sample_interval = "100 ms" }
[event.outage]
action = "cut"
link = "p1"
at = "5 s"
for = "3 s"
for_phase = "uniform(0 s, 2 s)"
[figure.window]
series = ["cwnd_bytes"]
window = ["4 s", "12 s"]
[figure.arrivals]
series = ["goodput_bit_s"]
window = ["4 s", "12 s"]
[table.found]
around = ["fault", "first_other_path", "heartbeat", "heartbeat_ack"]
packets = 3
"""
HEARTBEAT, HEARTBEAT_ACK = 4, 5


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def tshark(capture: Path, kind: int, tmp_path: Path) -> list[float]:
    """When packets with a chunk of that type passed, seconds from T0, by a program that is not ours."""
    plain = tmp_path / (capture.name + ".pcap")
    plain.write_bytes(unpacked(capture.read_bytes()))
    said = subprocess.run(
        ["tshark", "-r", plain, "-Y", f"sctp.chunk_type == {kind}", "-T", "fields", "-e", "frame.time_epoch"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    return [float(line.partition(".")[0]) - T0_S + float("0." + line.partition(".")[2]) for line in said.split()]


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("found")
    (base / "spec.toml").write_text(SPEC)
    checkout.run("run", base / "spec.toml", "--out", base / "run", cwd=base).ok()
    all_completed(base / "run")
    return base / "run"


def test_a_drawn_length_is_what_the_wire_sees(run: Path, tmp_path: Path) -> None:
    lengths = []
    for cell_id, cell in cells(run).items():
        fault, repair = cell.timeline
        lengths.append(repair.at_ns - fault.at_ns)
        assert 3 * S <= lengths[-1] <= 5 * S
        silent = [
            at
            for kind in (0, 3, HEARTBEAT, HEARTBEAT_ACK)
            for at in tshark(run / "cells" / cell_id / "capture" / "b-p1.pcap.zst", kind, tmp_path)
            if fault.at_ns / S < at
        ]
        sent = tshark(run / "cells" / cell_id / "capture" / "b-p1.pcap.zst", 3, tmp_path)
        arriving = [at for at in silent if at not in sent]
        assert arriving, "the path was found again"
        assert min(arriving) >= repair.at_ns / S + 0.02
    assert len(set(lengths)) == 2, "one length a seed"


def test_the_table_shows_the_heartbeat_that_finds_the_path(run: Path, tmp_path: Path) -> None:
    first = next(cell_id for cell_id, cell in cells(run).items() if cell.repetition == 0)
    repair = cells(run)[first].timeline[1].at_ns / S
    found = rows(run / "tables" / "found.csv")
    assert {row["cell_id"] for row in found} == {first}
    assert [float(row["t_s"]) for row in found] == sorted(float(row["t_s"]) for row in found)
    near = {
        name: [row for row in found if name in row["near"].split()] for row in found for name in row["near"].split()
    }
    assert [row["event"] for row in near["fault"]].count("cut") == 1
    answer = next(row for row in near["heartbeat_ack"] if "HEARTBEAT ACK" in row["type"] and row["node"] == "a")
    asked = next(row for row in near["heartbeat"] if row["type"] == "HEARTBEAT" and row["link"] == "p1")
    acks = tshark(run / "cells" / first / "capture" / "a-p1.pcap.zst", HEARTBEAT_ACK, tmp_path)
    assert float(answer["t_s"]) == pytest.approx(min(at for at in acks if at >= repair), abs=1e-6)
    asks = tshark(run / "cells" / first / "capture" / "a-p1.pcap.zst", HEARTBEAT, tmp_path)
    assert float(asked["t_s"]) == pytest.approx(max(at for at in asks if at < float(answer["t_s"])), abs=1e-6)
    assert (answer["event"], answer["link"], answer["path"]) == ("arrives", "p1", "p1")
    moved = next(row for row in near["first_other_path"] if row["link"] == "p2" and row["type"] == "DATA")
    assert float(moved["t_s"]) > 5


def test_a_figure_over_time_holds_the_samples(run: Path) -> None:
    found = rows(run / "tables" / "window.csv")
    arrived = rows(run / "tables" / "arrivals.csv")
    assert {row["series"] for row in found} == {"cwnd_bytes"}
    assert {row["series"] for row in arrived} == {"goodput_bit_s"}
    assert {row["path"] for row in found} == {"p1", "p2"}
    assert all(4 <= float(row["t_s"]) <= 12 for row in found + arrived)
    p1 = [float(row["value"]) for row in found if row["path"] == "p1"]
    assert all(one != other for one, other in itertools.pairwise(p1[:-1])), "only changes, and the last"
    assert min(p1) == 1500, "a timeout shrinks the window of the path that was cut to one packet"
    page = (run / "report" / "index.html").read_text()
    assert 'data-figure="window"' in page
    assert page.count("HEARTBEAT ACK") >= 1, "the table of events is in the report"
    assert b"<svg" in (run / "report" / "figures" / "window.svg").read_bytes()
