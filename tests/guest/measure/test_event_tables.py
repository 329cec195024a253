"""A fault of drawn length, and the table of events that shows how its path is found again, in real guests."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest
from support.chain_kit import Checkout, two_hosts, unpacked
from support.run_files import RunFiles

S = 1_000_000_000
T0_S = 1_700_000_000
"""T0 as captures write it (architecture.md: the clock starts at a constant)."""
SPEC = two_hosts(
    """
[event]
outage = { action = "cut", link = "p1", at = "5 s", for = "3 s", for_phase = { uniform = ["0 s", "2 s"] } }
[figure]
window = { series = ["cwnd_bytes"], window = ["4 s", "12 s"] }
arrivals = { series = ["goodput_bit_s"], window = ["4 s", "12 s"] }
[table]
found = { around = ["fault", "first_other_path", "heartbeat", "heartbeat_ack"], packets = 3 }
""",
    name="found",
    duration="30 s",
    top="seed = 5\nrepetitions = 2",
    rate="1 Mbit/s",
    queue="40 packets",
    links=2,
    flow='protocol = "sctp"\npaths = ["p1", "p2"]\nsender = { sample_interval = "100 ms" }',
)
HEARTBEAT, HEARTBEAT_ACK = 4, 5


def tshark(capture: Path, kind: int, tmp_path: Path) -> list[float]:
    """When packets with a chunk of that type passed, seconds from T0, by a program that is not ours."""
    plain = tmp_path / (capture.name + ".pcap")
    plain.write_bytes(unpacked(capture.read_bytes()))
    said = subprocess.run(
        ["tshark", "-r", plain, "-Y", f"sctp.chunk_type == {kind}", "-T", "fields", "-e", "frame.time_epoch"],
        capture_output=True, text=True, check=True, timeout=300,
    ).stdout  # fmt: skip
    return [float(line.partition(".")[0]) - T0_S + float("0." + line.partition(".")[2]) for line in said.split()]


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return checkout.run_spec(tmp_path_factory.mktemp("found"), SPEC)


def test_a_drawn_length_is_what_the_wire_sees(run: RunFiles, tmp_path: Path) -> None:
    lengths = []
    for cell in run.cells.values():
        fault, repair = cell.cell.timeline
        (capture,) = cell.captures("b", "p1")
        lengths.append(repair.at_ns - fault.at_ns)
        assert 3 * S <= lengths[-1] <= 5 * S
        silent = [
            at
            for kind in (0, 3, HEARTBEAT, HEARTBEAT_ACK)
            for at in tshark(capture, kind, tmp_path)
            if fault.at_ns / S < at
        ]
        sent = tshark(capture, 3, tmp_path)
        arriving = [at for at in silent if at not in sent]
        assert arriving, "the path was found again"
        assert min(arriving) >= repair.at_ns / S + 0.02
    assert len(set(lengths)) == 2, "one length a seed"


def test_the_table_shows_the_heartbeat_that_finds_the_path(run: RunFiles, tmp_path: Path) -> None:
    first = next(cell for cell in run.cells.values() if cell.cell.repetition == 0)
    (capture,) = first.captures("a", "p1")
    repair = first.cell.timeline[1].at_ns / S
    found = run.table("found")
    assert {row["cell_id"] for row in found} == {first.cell.id}
    assert [float(row["t_s"]) for row in found] == sorted(float(row["t_s"]) for row in found)
    near = {
        name: [row for row in found if name in row["near"].split()] for row in found for name in row["near"].split()
    }
    assert [row["event"] for row in near["fault"]].count("cut") == 1
    answer = next(row for row in near["heartbeat_ack"] if "HEARTBEAT ACK" in row["type"] and row["node"] == "a")
    asked = next(row for row in near["heartbeat"] if row["type"] == "HEARTBEAT" and row["link"] == "p1")
    acks = tshark(capture, HEARTBEAT_ACK, tmp_path)
    assert float(answer["t_s"]) == pytest.approx(min(at for at in acks if at >= repair), abs=1e-6)
    asks = tshark(capture, HEARTBEAT, tmp_path)
    assert float(asked["t_s"]) == pytest.approx(max(at for at in asks if at < float(answer["t_s"])), abs=1e-6)
    assert (answer["event"], answer["link"], answer["path"]) == ("arrives", "p1", "p1")
    moved = next(row for row in near["first_other_path"] if row["link"] == "p2" and row["type"] == "DATA")
    assert float(moved["t_s"]) > 5


def test_a_figure_over_time_holds_the_samples(run: RunFiles) -> None:
    found = run.table("window")
    arrived = run.table("arrivals")
    assert {row["series"] for row in found} == {"cwnd_bytes"}
    assert {row["series"] for row in arrived} == {"goodput_bit_s"}
    assert {row["path"] for row in found} == {"p1", "p2"}
    assert all(4 <= float(row["t_s"]) <= 12 for row in found + arrived)
    p1 = [float(row["value"]) for row in found if row["path"] == "p1"]
    assert all(one != other for one, other in itertools.pairwise(p1[:-1])), "only changes, and the last"
    assert min(p1) == 1500, "a timeout shrinks the window of the path that was cut to one packet"
    page = (run.root / "report" / "index.html").read_text()
    assert 'data-figure="window"' in page
    assert page.count("HEARTBEAT ACK") >= 1, "the table of events is in the report"
    assert b"<svg" in (run.root / "report" / "figures" / "window.svg").read_bytes()
