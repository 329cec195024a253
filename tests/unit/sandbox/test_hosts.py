"""The back end hosts without machines: inventories, placement, steps by machine, times put together."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.types import Cell
from netwarp.engine.planning import plan_experiment
from netwarp.experiment.example import EXAMPLE_SPEC
from netwarp.sandbox.hosts.collect import clock_check, merge, shift_capture
from netwarp.sandbox.hosts.inventory import Inventory, from_listing
from netwarp.sandbox.hosts.placement import place
from netwarp.store.run_dir import CellDir
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.layout import NetworkDevice
from netwarp.testbed.machines import devices_of, flows_of, machine_text

CLOCK = Clock(sandbox="namespaces", t0_after_ready_ns=600_000_000, t0_file="t0", over_file="over", tick_ns=20_000_000)


def listing(**machines: dict[str, Any]) -> dict[str, Any]:
    return {"_meta": {"hostvars": machines}, "netwarp": {"hosts": list(machines)}, "all": {"children": ["netwarp"]}}


LAB = listing(
    a={"netwarp_cables": {"x1": "r:x1", "x2": "r:x2"}},
    b={"netwarp_cables": {"x1": "r:x3", "x2": "r:x4"}},
    r={"netwarp_role": "bottleneck"},
)
TWO = listing(a={"netwarp_cables": {"x1": "b:x1"}}, b={})


def inventory(of: dict[str, Any]) -> Inventory:
    return from_listing(Path("inventory.yml"), of)


def cells(name: str) -> tuple[Cell, ...]:
    return plan_experiment(name).cells


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    spec = tmp_path_factory.mktemp("spec") / "example.toml"
    spec.write_text(EXAMPLE_SPEC)
    return plan_experiment(spec).cells[0]


def test_a_cable_is_of_both_ends_though_one_names_it() -> None:
    machines = inventory(LAB).machines
    assert machines["r"].cables == {"x1": ("a", "x1"), "x2": ("a", "x2"), "x3": ("b", "x1"), "x4": ("b", "x2")}
    assert len(inventory(LAB).cables()) == 4


@pytest.mark.parametrize(
    ("machine", "problem"),
    [
        ({"netwarp_cables": {"x1": "r"}}, "a: netwarp_cables: x1: r; wants MACHINE:INTERFACE"),
        ({"netwarp_cables": {"x1": "q:x1"}}, "a: x1 is cabled to q, which is no machine of it"),
        ({"netwarp_cables": {"x1": "r:x1", "x2": "r:x1"}}, "r:x1 is cabled to both a:x1 and a:x2"),
        ({"netwarp_role": "switch"}, "a: netwarp_role: switch; it is one of endpoint, bottleneck"),
        ({"ansible_become_password": "x"}, "a: ansible_become_password: passwords are not supported"),
        ({"ansible_become_method": "su"}, "a: ansible_become_method: su; only sudo is supported"),
    ],
)
def test_what_is_wrong_with_an_inventory(machine: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=r"inventory\.yml: ") as raised:
        inventory(listing(a=machine, r={}))
    assert problem in str(raised.value)


def test_how_a_machine_is_reached() -> None:
    words = inventory(
        listing(a={"ansible_host": "192.0.2.1", "ansible_user": "u", "ansible_port": 2222, "ansible_become": True,
                   "ansible_ssh_common_args": "-o ProxyJump='x y'"})
    ).machines["a"]  # fmt: skip
    assert words.become
    assert words.ssh[-6:] == ("-p", "2222", "-l", "u", "--", "192.0.2.1")
    assert "ProxyJump=x y" in words.ssh


def test_hosts_go_to_machines_of_their_name_and_the_hop_to_the_bottleneck(example: Cell) -> None:
    placed = place(example, inventory(LAB))
    assert not placed.lacks
    assert not placed.notes
    assert placed.machine_of == {"a": "a", "b": "b", "p1.hop": "r"}
    assert placed.ends["p1", "a", "p1.hop"] == ("a", "x1")
    assert placed.ends["p1", "p1.hop", "a"] == ("r", "x1")
    assert placed.ends["p1", "b", "p1.hop"] == ("b", "x1")
    assert placed.devices("r") == ("x1", "x3")


def test_without_a_router_the_bottleneck_is_a_namespace_of_an_end_and_the_report_says_so(example: Cell) -> None:
    placed = place(example, inventory(TWO))
    assert not placed.lacks
    assert placed.machine_of["p1.hop"] == "b"
    assert placed.notes == ("the bottleneck of p1 is a namespace on b, which is an end of it",)
    assert set(placed.ends) == {("p1", "a", "p1.hop"), ("p1", "p1.hop", "a")}


def test_what_an_inventory_lacks_for_a_paper() -> None:
    whole = next(cell for cell in cells("choi2009") if len(cell.links) == 2)
    assert not place(whole, inventory(LAB)).lacks
    assert place(whole, inventory(TWO)).lacks == ("link p2: no free cable between a (a) and b (p2.hop)",)
    lonely = place(whole, inventory(listing(a={})))
    assert lonely.lacks[0].startswith("no machine for the host b: the inventory has 1 of the role endpoint")


def test_each_machine_has_its_own_lines_with_the_numbers_of_the_whole(example: Cell) -> None:
    placed = place(example, inventory(LAB))
    devices = {
        end: NetworkDevice(name, f"02:00:00:00:00:{number:02x}")
        for number, (end, (_, name)) in enumerate(placed.ends.items())
    }
    compiled = compile_cell(example, CLOCK, b"", devices)
    whole = [item.line() for item in compiled.steps]
    texts = {}
    for machine in ("a", "b", "r"):
        here = placed.namespaces(machine, compiled.layout)
        lines = texts[machine] = machine_text(compiled, here).splitlines()[1:]
        assert len(lines) == len(whole)
        assert all(
            line == full or line.startswith("# of another machine: ") for line, full in zip(lines, whole, strict=True)
        )
        assert devices_of(compiled, here) == placed.devices(machine)
        assert any(line.startswith("adopt ") for line in lines)
    for lines in zip(*texts.values(), whole, strict=True):  # no line is lost, none but the common ones is played twice
        played = [line for line in lines[:-1] if line == lines[-1]]
        assert played
        assert len(played) in (1, 3)
    assert flows_of(compiled, placed.namespaces("a", compiled.layout)) == ("bulk.sender",)
    assert flows_of(compiled, placed.namespaces("r", compiled.layout)) == ()
    assert not any(
        line.startswith("netlink") and "veth" in item.command for line, item in zip(whole, compiled.steps, strict=True)
    )


def pcap(*packets: tuple[int, bytes]) -> bytes:
    body = b"".join(struct.pack("=IIII", t // 10**9, t % 10**9, len(data), len(data)) + data for t, data in packets)
    return struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + body


@pytest.mark.parametrize("shift_ns", [0, 1, -1, 999_999_999, -1_500_000_000, 65_464_385])
def test_a_capture_is_moved_and_nothing_else(tmp_path: Path, shift_ns: int) -> None:
    packets = [(1_700_000_000_000_000_001 + i * 333_333_333, bytes([i]) * (i * 7)) for i in range(20)]
    (tmp_path / "a").write_bytes(pcap(*packets))
    shift_capture(tmp_path / "a", tmp_path / "b", shift_ns)
    assert (tmp_path / "b").read_bytes() == pcap(*((t + shift_ns, data) for t, data in packets))


def left(place: Path, t0_ns: int, monotonic_ns: int, reason: str = "completed") -> Path:
    for name in ("capture", "apps"):
        (place / name).mkdir(parents=True)
    records = [
        {"record": "start", "kernel": "6.12"},
        {"record": "ready", "t0_realtime_ns": t0_ns, "t0_monotonic_ns": monotonic_ns},
        {"record": "ticks", "ticks": 10, "late": 1, "worst_ns": monotonic_ns, "every_ns": 1, "late_ns": 1},
        {
            "record": "end",
            "reason": reason,
            "step": None,
            "message": "why" if reason != "completed" else None,
            "t_ns": 5,
        },
    ]
    (place / "init.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    (place / "apps" / "f.sender.ndjson").write_text(json.dumps({"record": "sample", "t_ns": monotonic_ns + 7}) + "\n")
    (place / "capture" / f"{place.name}-p1.pcap").write_bytes(pcap((t0_ns + 9, b"x")))
    return place


def test_machines_with_unlike_clocks_become_one_cell(tmp_path: Path) -> None:
    cell = CellDir(tmp_path / "cell")
    for folder in (cell.capture, cell.apps):
        folder.mkdir(parents=True)
    t0 = 1_700_000_000_000_000_000
    there = {"a": left(tmp_path / "a", t0 - 65_000_000, 1000), "b": left(tmp_path / "b", t0 + 12, 900)}
    assert merge(cell, there, t0) == []
    assert (cell.capture / "a-p1.pcap").read_bytes() == pcap((t0 + 9, b"x"))
    assert (cell.capture / "b-p1.pcap").read_bytes() == pcap((t0 + 9, b"x"))
    assert json.loads((cell.apps / "f.sender.ndjson").read_text())["t_ns"] == 1007
    records = [json.loads(line) for line in cell.init_log.read_text().splitlines()]
    assert [record["t0_realtime_ns"] for record in records if record["record"] == "ready"] == [t0]
    assert [(r["ticks"], r["late"], r["worst_ns"]) for r in records if r["record"] == "ticks"] == [(20, 2, 1000)]
    assert records[-1]["record"] == "end"
    assert records[-1]["reason"] == "completed"


def test_the_worst_end_is_the_cells_and_names_its_machine(tmp_path: Path) -> None:
    cell = CellDir(tmp_path / "cell")
    for folder in (cell.capture, cell.apps):
        folder.mkdir(parents=True)
    there = {"a": left(tmp_path / "a", 5, 1), "r": left(tmp_path / "r", 5, 1, "failed")}
    merge(cell, there, 5)
    end = json.loads(cell.init_log.read_text().splitlines()[-1])
    assert (end["reason"], end["message"]) == ("failed", "machine r: why")
    (there["a"] / "init.ndjson").write_text("")
    assert merge(cell, there, 5) == ["a"]


def test_clocks_that_know_too_little_make_no_cell() -> None:
    good = {"a": [(0, 200_000), (1000, 200_000)], "b": [(-65_000_000, 300_000), (-65_000_500, 250_000)]}
    shown, check = clock_check(good, 10_000_000)
    assert check.ok
    assert shown["clock_error_ns"] == 500_000
    assert not clock_check(good | {"b": [(0, 300_000), (40_000_000, 250_000)]}, 10_000_000)[1].ok
    assert not clock_check(good | {"b": [(0, 9_900_000), (0, 250_000)]}, 10_000_000)[1].ok
