"""In a laboratory: rules for single packets exact to the packet, active queue management, the CPU time of both ends."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from support import cell_init_kit as kit
from support.chain_packets import Frame, way_of
from support.laboratory import completed
from support.run_files import CellFiles, load_run
from support.specs import two_hosts

MS = 1_000_000
LATE_NS = 10 * MS
"""A laboratory is late by at most so much in a cell that counts."""
HOLE_NS, LONGER_BYTES = (1500 * MS, 1900 * MS), 1000
RULES = two_hosts(
    'name = "rules"\nseed = 5\nduration = "8 s"',
    'one_way_delay = "20 ms"\nrate = "2 Mbit/s"\nqueue = "100 packets"',
    f"""
protocol = "tcp"
[flow.x]
bytes = "600 kB"
[link.p1.forward]
drop = {{ packet = [11], data = [1] }}
duplicate = [40]
delay = {{ 60 = "300 ms" }}
bit_errors = "5e-7"
[link.p1.backward]
drop = {{ syn_ack = [1] }}
[event.hole]
action = "blackhole"
link = "p1"
directions = ["forward"]
longer_than = "{LONGER_BYTES} B"
at = "{HOLE_NS[0] // MS} ms"
for = "{(HOLE_NS[1] - HOLE_NS[0]) // MS} ms"
""",
)
AQM = two_hosts(
    'name = "aqm"\nduration = "6 s"',
    'one_way_delay = "10 ms"\nrate = "5 Mbit/s"\nqueue = "100 packets"',
    """
protocol = "tcp"
[flow.x]
bytes = "2 MB"
[default.node]
sysctl = { "net.ipv4.tcp_ecn" = "1" }
[link.p1.forward.aqm]
kind = "codel"
ecn = true
""",
)


def ran(folder: Path, spec: str) -> CellFiles:
    """The only cell of a spec, COMPLETED."""
    path = folder / "spec.toml"
    path.write_text(spec)
    (cell,) = load_run(completed(folder, path).parent.parent).cells.values()
    return cell


def from_t0(cell: CellFiles, found: list[Frame]) -> list[Frame]:
    """Frames with times from T0, which way_of() takes for that of a guest in virtual time."""
    t0_ns = cell.init("ready")[0]["t0_realtime_ns"] - kit.T0
    return [dataclasses.replace(frame, t_ns=frame.t_ns - t0_ns) for frame in found]


def test_rules_are_exact_to_the_packet_between_machines(tmp_path: Path) -> None:
    """The router's programs count what the captures of both ends say: lost, twice, late, and nothing else."""
    cell = ran(tmp_path, RULES)
    assert cell.environment["machines"]["namespaces"]["p1.hop"] == "r"
    way = way_of(cell, "a")
    sent, arrived, counts, lost = from_t0(cell, way.sent), from_t0(cell, way.arrived), way.counts, way.lost
    came = [frame.identity for frame in arrived]
    with_data = [number for number, frame in enumerate(sent, 1) if frame.data_bytes]
    assert {11, with_data[0]} <= lost
    others = lost - {11, with_data[0]}
    in_hole = {number for number in others if _may_meet(sent[number - 1], HOLE_NS)}
    assert counts["dropped"] == 2
    # both take packets by their length: what is lost outside the hole are bit errors
    assert counts["bit_errors"] + counts["too_long"] == len(others)
    assert counts["bit_errors"] >= len(others - in_hole)
    assert counts["too_long"] >= 1
    deep = {n for n, frame in enumerate(sent, 1) if HOLE_NS[0] + LATE_NS < frame.t_ns < HOLE_NS[1] - LATE_NS}
    assert {n for n in deep if sent[n - 1].ip_bytes > LONGER_BYTES} <= lost
    twice = {number for number, frame in enumerate(sent, 1) if came.count(frame.identity) > 1}
    assert twice == {40} - lost
    assert counts["duplicated"] == counts["delayed"] == 1
    if 60 not in lost:
        (held,) = (frame.t_ns for frame in arrived if frame.identity == sent[59].identity)
        assert held - sent[59].t_ns > 300 * MS
        assert sum(frame.t_ns < held for frame in arrived) > 60, "others have overtaken it"
    way = way_of(cell, "b")
    assert way.sent[0].flags == 0x12
    assert way.lost == {1}
    assert way.counts["dropped"] == 1


def _may_meet(frame: Frame, span: tuple[int, int]) -> bool:
    """Whether a packet may have come to the router's program in a span."""
    return span[0] - LATE_NS < frame.t_ns + LATE_NS and frame.t_ns < span[1] + LATE_NS


def test_marks_of_the_routers_queue_come_to_the_receiver(tmp_path: Path) -> None:
    """As many as the router's CoDel counted: else the cell is INVALID."""
    cell = ran(tmp_path, AQM)
    metrics = load_run(cell.root.parent.parent).measured()[0][1]
    assert cell.checks["ECN marks of p1 forward"]["ok"]
    assert metrics["aqm_marked_packets"] > 5
    assert metrics["aqm_dropped_packets"] == metrics["retransmitted_packets"]


def test_cpu_time_of_each_end_by_its_own_machine(tmp_path: Path) -> None:
    """Each program's, by the kernel that ran it, over the bytes that arrived."""
    spec = AQM.replace("ecn = true\n", "")
    cell = ran(tmp_path, spec)
    records = {record["id"]: record for record in cell.init("exit")}
    assert {name: record["on"] for name, record in records.items()} == {"x.sender": "a", "x.receiver": "b"}
    metrics = load_run(cell.root.parent.parent).measured()[0][1]
    for role in ("sender", "receiver"):
        took = records[f"x.{role}"]["cpu_ns"]
        assert 0 < took < 6_000_000_000
        assert metrics[f"{role}_cpu_per_byte_s"] == took / 1e9 / 2_000_000
    assert json.loads((cell.root / "outcome.json").read_text())["outcome"] == "COMPLETED"
