"""The back end hosts without machines: inventories, placement, steps by machine, times put together."""

from __future__ import annotations

import json
import re
import struct
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from netwarp.core.checkout import CHECKOUT
from netwarp.core.errors import CellError, SpecError
from netwarp.core.types import Cell
from netwarp.engine.planning import fit, plan_experiment
from netwarp.experiment.example import EXAMPLE_SPEC
from netwarp.sandbox.hosts.cell_run import CellRun, flows_of, machine_text
from netwarp.sandbox.hosts.cell_run import devices_of as adopted
from netwarp.sandbox.hosts.collect import clocks_of, merge, shift_capture
from netwarp.sandbox.hosts.commands import Played
from netwarp.sandbox.hosts.inventory import read_inventory
from netwarp.sandbox.hosts.placement import needs_of, place
from netwarp.store.app_records import Object, Sample, read_app_log
from netwarp.store.init_records import End, Proc, Ready, Start, Ticks, read_init_log
from netwarp.store.ndjson import of_kind
from netwarp.store.run_dir import CellDir
from netwarp.testbed.compile import Clock, compile_cell
from support.hosts_kit import commanded, devices_of, inventory
from support.recorded_cell import START, write
from support.specs import BASE, cell_of

CLOCK = Clock(sandbox="namespaces", t0_after_ready_ns=600_000_000, t0_file="t0", over_file="over", tick_ns=20_000_000)


LAB = {
    "a": {"netwarp_cables": {"x1": "r:x1", "x2": "r:x2"}},
    "b": {"netwarp_cables": {"x1": "r:x3", "x2": "r:x4"}},
    "r": {"netwarp_role": "bottleneck"},
}
TWO: dict[str, dict[str, Any]] = {"a": {"netwarp_cables": {"x1": "b:x1"}}, "b": {}}


def cells(name: str) -> tuple[Cell, ...]:
    return plan_experiment(name).cells


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    spec = tmp_path_factory.mktemp("spec") / "example.toml"
    spec.write_text(EXAMPLE_SPEC)
    return plan_experiment(spec).cells[0]


def test_a_cell_of_ipv6_needs_it_of_every_machine_and_no_interface_that_is_not_there_yet(tmp_path: Path) -> None:
    spec = tmp_path / "example.toml"
    spec.write_text(EXAMPLE_SPEC)
    cell = plan_experiment(spec, sets={"default.link.family": "ipv6"}).cells[0]
    placed = place(cell, inventory(**LAB))
    compiled = compile_cell(cell, CLOCK, devices=devices_of(placed))
    needs = needs_of(cell, compiled, placed)
    assert set(needs) == {"a", "b", "r"}
    of_ipv6 = {each for features in needs.values() for each in features if "ipv6" in each}
    assert "sysctl:net/ipv6/conf/lo/disable_ipv6" in of_ipv6
    assert {each.split("/")[3] for each in of_ipv6} == {"all", "default", "lo"}


def test_a_cable_is_of_both_ends_though_one_names_it() -> None:
    machines = inventory(**LAB).machines
    assert machines["r"].cables == {"x1": ("a", "x1"), "x2": ("a", "x2"), "x3": ("b", "x1"), "x4": ("b", "x2")}
    assert len(inventory(**LAB).cables()) == 4


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
        inventory(a=machine, r={})
    assert problem in str(raised.value)


def test_how_a_machine_is_reached() -> None:
    words = inventory(
        a={"ansible_host": "192.0.2.1", "ansible_user": "u", "ansible_port": 2222, "ansible_become": True,
           "ansible_ssh_common_args": "-o ProxyJump='x y'"}
    ).machines["a"]  # fmt: skip
    assert words.become
    assert words.ssh[-6:] == ("-p", "2222", "-l", "u", "--", "192.0.2.1")
    assert "ProxyJump=x y" in words.ssh


def test_hosts_go_to_machines_of_their_name_and_the_hop_to_the_bottleneck(example: Cell) -> None:
    placed = place(example, inventory(**LAB))
    assert not placed.lacks
    assert not placed.notes
    assert placed.machine_of == {"a": "a", "b": "b", "p1.hop": "r"}
    assert placed.ends["p1", "a", "p1.hop"] == ("a", "x1")
    assert placed.ends["p1", "p1.hop", "a"] == ("r", "x1")
    assert placed.ends["p1", "b", "p1.hop"] == ("b", "x1")
    assert placed.devices("r") == ("x1", "x3")


def test_without_a_router_the_bottleneck_is_a_namespace_of_an_end_and_the_report_says_so(example: Cell) -> None:
    placed = place(example, inventory(**TWO))
    assert not placed.lacks
    assert placed.machine_of["p1.hop"] == "b"
    assert placed.notes == ("the bottleneck of p1 is a namespace on b, which is an end of it",)
    assert set(placed.ends) == {("p1", "a", "p1.hop"), ("p1", "p1.hop", "a")}


def test_what_an_inventory_lacks_for_a_paper() -> None:
    whole = next(cell for cell in cells("choi2009") if len(cell.links) == 2)
    assert not place(whole, inventory(**LAB)).lacks
    assert place(whole, inventory(**TWO)).lacks == ("link p2: no free cable between a (a) and b (p2.hop)",)
    lonely = place(whole, inventory(a={}))
    assert lonely.lacks[0].startswith("no machine for the host b: the inventory has 1 of the role endpoint")


def test_each_machine_has_its_own_lines_with_the_numbers_of_the_whole(example: Cell) -> None:
    placed = place(example, inventory(**LAB))
    devices = devices_of(placed)
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
        assert adopted(compiled, here) == placed.devices(machine)
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


def test_a_changed_rate_has_the_same_steps_on_machines() -> None:
    """All of it is on the hop, so it holds there as on the wall clock of a guest."""
    event = '[event.slow]\naction = "change"\nlink = "p1"\nat = "2 s"\nfor = "1 s"\nrate = "100 kbit/s"\n'
    cell = cell_of(BASE + event)
    placed = place(cell, inventory(**LAB))
    devices = devices_of(placed)
    guest, machines = (compile_cell(cell, CLOCK, b"", there) for there in ({}, devices))
    router = placed.namespaces("r", machines.layout)
    assert router == {guest.layout.namespaces.index("p1.hop")}
    for compiled in (guest, machines):
        assert {step.kind for step in (each.stage for each in compiled.installed)} == {"netem", "htb", "pfifo"}
    there = {device.name: "DEVICE" for device in devices.values()} | {"a": "DEVICE", "b": "DEVICE"}
    told = [
        [
            (item.at_ns, [there.get(word, re.sub(r"^(rate|back)\d+$", r"\1", word)) for word in item.command.split()])
            for item in compiled.steps
            if " tc " in item.command
        ]
        for compiled in (guest, machines)
    ]
    assert len(told[0]) > 10
    assert told[0] == told[1]


def test_offloads_of_a_machines_interface_are_switched_off_whenever_it_has_gone_up() -> None:
    """Drivers may switch them on then; of a veth, whose packets depend on no driver, they are off before."""
    where = [("fault", "link"), ("outage", "10 s"), ("variant", "sctp_multi"), ("failover", "linux_default")]
    cell = plan_experiment("choi2009", where=where).cells[0]
    placed = place(cell, inventory(**LAB))
    devices = devices_of(placed)
    for there in (devices, {}):
        compiled = compile_cell(cell, CLOCK, b"", there)
        told = [(item.at_ns, item.command) for item in compiled.steps if item.verb in ("netlink", "offload")]
        ups = [at for at, (_, command) in enumerate(told) if command.endswith(" up")]
        after = [at for at in ups if "ethtool -K" in told[at + 1][1] and told[at + 1][0] == told[at][0]]
        interfaces = compiled.layout.interfaces()
        assert len(ups) == len(interfaces) + 1, "and the repair"
        if there:
            assert all(each.is_device for each in interfaces)
            assert after == ups
        else:
            assert told[ups[-1] + 1][0] is not None
            assert ups[-1] not in after


def pcap(*packets: tuple[int, bytes]) -> bytes:
    body = b"".join(struct.pack("=IIII", t // 10**9, t % 10**9, len(data), len(data)) + data for t, data in packets)
    return struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + body


@pytest.mark.parametrize("shift_ns", [0, 1, -1, 999_999_999, -1_500_000_000, 65_464_385])
def test_a_capture_is_moved_and_nothing_else(tmp_path: Path, shift_ns: int) -> None:
    packets = [(1_700_000_000_000_000_001 + i * 333_333_333, bytes([i]) * (i * 7)) for i in range(20)]
    (tmp_path / "a").write_bytes(pcap(*packets))
    shift_capture(tmp_path / "a", tmp_path / "b", shift_ns)
    assert (tmp_path / "b").read_bytes() == pcap(*((t + shift_ns, data) for t, data in packets))


def left(place: Path, t0_ns: int, monotonic_ns: int, reason: Any = "completed") -> Path:
    for name in ("capture", "apps"):
        (place / name).mkdir(parents=True)
    records = [
        START,
        Proc(7, 0, "net/snmp", None),
        Ready(t0_ns, monotonic_ns, 0),
        Ticks(every_ns=1, late_ns=1, ticks=10, late=t0_ns % 5, worst_ns=monotonic_ns),
        End(reason, None, "why" if reason != "completed" else None, 5),
    ]
    write(place / "init.ndjson", records)
    write(place / "apps" / "f.sender.ndjson", [Sample(monotonic_ns + 7, 0)])
    write(
        place / "apps" / f"{place.name}.receiver.ndjson",
        [Object(0, 1, 80, 0, 9, *(monotonic_ns + t for t in (1, 2, 3)))],
    )
    (place / "capture" / f"{place.name}-p1.pcap").write_bytes(pcap((t0_ns + 9, b"x")))
    return place


@pytest.fixture
def cell(tmp_path: Path) -> CellDir:
    """The directory of a cell here, empty."""
    directory = CellDir(tmp_path / "cell")
    for folder in (directory.capture, directory.apps):
        folder.mkdir(parents=True)
    return directory


def test_machines_with_unlike_clocks_become_one_cell(tmp_path: Path, cell: CellDir) -> None:
    t0 = 1_700_000_000_000_000_000
    there = {"a": left(tmp_path / "a", t0 - 65_000_000, 1000), "b": left(tmp_path / "b", t0 + 12, 900)}
    assert merge(cell, there, t0) == []
    assert (cell.capture / "a-p1.pcap").read_bytes() == pcap((t0 + 9, b"x"))
    assert (cell.capture / "b-p1.pcap").read_bytes() == pcap((t0 + 9, b"x"))
    assert read_app_log(cell.apps / "f.sender.ndjson") == [Sample(1007, 0)]
    assert read_app_log(cell.apps / "b.receiver.ndjson") == [Object(0, 1, 80, 0, 9, 1001, 1002, 1003)]
    records = read_init_log(cell.init_log)
    assert of_kind(records, Start) == [START]
    assert [file.on for file in of_kind(records, Proc)] == ["a", "b"]
    assert of_kind(records, Ready) == [Ready(t0, 1000, 0)]
    assert [(ticks.ticks, ticks.late, ticks.worst_ns) for ticks in of_kind(records, Ticks)] == [(10, 2, 1000)]
    assert records[-1] == End("completed", None, None, 5)


def test_times_from_t0_and_durations_are_not_moved(tmp_path: Path, cell: CellDir) -> None:
    there = {"a": left(tmp_path / "a", 5, 1000), "b": left(tmp_path / "b", 5, 900)}
    times = {"t_ns": 1, "first_t_ns": 2, "t0_monotonic_ns": 3, "at_ns": 4, "init_max_timeout_ns": 5}
    (there["b"] / "apps" / "more.ndjson").write_text(json.dumps(times) + "\n")
    merge(cell, there, 5)
    assert list(json.loads((cell.apps / "more.ndjson").read_text()).values()) == [101, 102, 103, 4, 5]


def test_the_worst_end_is_the_cells_and_names_its_machine(tmp_path: Path, cell: CellDir) -> None:
    there = {"a": left(tmp_path / "a", 5, 1), "r": left(tmp_path / "r", 5, 1, "failed")}
    merge(cell, there, 5)
    assert read_init_log(cell.init_log)[-1] == End("failed", None, "machine r: why", 5)
    (there["a"] / "init.ndjson").write_text("")
    assert merge(cell, there, 5) == ["a"]
    assert read_init_log(cell.init_log)[-1] == End("failed", None, "machine r: why", 5)


def test_clocks_that_know_too_little_make_no_cell() -> None:
    good = {"a": [(0, 200_000), (1000, 200_000)], "b": [(-65_000_000, 300_000), (-65_000_500, 250_000)]}
    clocks = clocks_of(CellRun(1, good), 10_000_000)
    assert clocks.check.ok
    assert clocks.error_ns == clocks.shown["clock_error_ns"] == (1000 + 200_000) + 300_000
    apart = clocks_of(CellRun(1, {"a": [(0, 300_000), (500_000, 300_000)]}), 10_000_000)
    assert apart.error_ns == 800_000, "the offset may have grown from -300 to 800 us"
    assert not clocks_of(CellRun(1, good | {"b": [(0, 300_000), (40_000_000, 250_000)]}), 10_000_000).check.ok
    assert not clocks_of(CellRun(1, good | {"b": [(0, 9_900_000), (0, 250_000)]}), 10_000_000).check.ok


@pytest.fixture
def lab_file(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.yml"
    path.write_text(json.dumps({"netwarp": {"hosts": LAB}}))
    return path


@pytest.mark.parametrize(
    ("paper", "where", "machines", "lacks"),
    [
        ("choi2009", {"variant": "sctp_multi"}, TWO, "link p2: no free cable between a (a) and b (p2.hop)"),
        ("ha2005", {}, {"a": {}, "b": {}}, "no machine for the router r1: the inventory has 0 of the role bottleneck"),
        ("min2013", {}, {"a": {"netwarp_cables": {"x": "r:x"}}, "r": {"netwarp_role": "bottleneck"}},
         "no machine for the host server"),
        ("kim2002", {}, {"a": {}, "b": {}, "r": {"netwarp_role": "bottleneck"}},
         "link l1: no free cable between a (a) and r"),
        ("lee2008", {}, {"a": {}, "b": {}}, "link p1: no free cable between a (server) and b (p1.hop)"),
    ],
)  # fmt: skip
def test_a_plan_says_what_each_paper_lacks(
    paper: str, where: dict[str, str], machines: dict[str, Any], lacks: str, tmp_path: Path
) -> None:
    path = tmp_path / "inventory.yml"
    path.write_text(json.dumps({"netwarp": {"hosts": machines}}))
    plan = plan_experiment(paper, where=where)
    plan = msgspec.structs.replace(plan, cells=plan.cells[:3])
    found = fit(plan, path, ask=False)
    assert not found.ready
    assert any(lacks in sentence for sentence in found.lacks), found.lacks


@pytest.mark.parametrize("paper", ["choi2009", "ha2005", "min2013", "kim2002", "lee2008"])
def test_two_ends_and_a_router_do_for_every_paper(paper: str, lab_file: Path) -> None:
    plan = plan_experiment(paper)
    agents = tuple(cell for cell in plan.cells if any(node.agent for node in cell.nodes))[:1]
    plan = msgspec.structs.replace(plan, cells=plan.cells[:: max(1, len(plan.cells) // 6)] + agents)
    found = fit(plan, lab_file, ask=False)
    switched = sum(any(node.kind == "switch" for node in cell.nodes) for cell in plan.cells)
    refused = {"node lan: a switch of metal cannot be verified; use --backend virtual, guest or netns": switched}
    assert found.lacks == (refused if switched else {})
    assert bool(switched) == (paper == "ha2005")
    assert found.fitting == len(plan.cells) - switched
    assert "qdisc:netem" in found.needs["r"]
    if paper == "kim2002":
        assert {"packet filter", "packet programs"} <= set(found.needs["r"])


@pytest.mark.parametrize("name", ["rack", "two-routers"])
def test_the_example_inventories_do_for_two_paths(name: str) -> None:
    path = CHECKOUT / "ansible" / "inventories" / f"{name}.yml"
    there = read_inventory(path)
    cell = next(cell for cell in cells("choi2009") if len(cell.links) == 2)
    placed = place(cell, there)
    assert not placed.lacks and not placed.notes
    routers = {"rack": ("r", "r"), "two-routers": ("r1", "r2")}[name]
    assert placed.machine_of == {"a": "a", "b": "b", "p1.hop": routers[0], "p2.hop": routers[1]}
    assert all(len(placed.devices(end)) == 2 for end in ("a", "b"))
    text = path.read_text().partition("\nnetwarp:")[2]
    if name == "rack":
        assert "\nnetwarp:" + text in (CHECKOUT / "docs" / "physical-hosts.md").read_text()


def test_what_a_kernel_lacks_keeps_its_cells_and_no_others(
    monkeypatch: pytest.MonkeyPatch, lab_file: Path, tmp_path: Path
) -> None:
    absent: dict[str, list[str]] = {"a": ["sctp"], "b": [], "r": []}
    monkeypatch.setattr("netwarp.engine.planning.ask_machines", lambda inventory, features: (absent, []))
    plan = plan_experiment("choi2009", where=[("outage", "10 s")])
    found = fit(plan, lab_file)
    tcp = sum(flow.protocol == "tcp" for cell in plan.cells for flow in cell.flows)
    assert 0 < tcp == found.fitting < found.cells
    (sentence,) = found.lacks
    assert sentence.startswith("machine a: its kernel has not SCTP (modprobe sctp")


def test_commands_of_an_inventory() -> None:
    of = {"a": {"netwarp_commands": {"p1": {"down": "./port 'off 3'", "up": "./port on"}}}, "b": {}}
    assert inventory(**of).commands["p1"].down == ("./port", "off 3")
    with pytest.raises(SpecError, match=r"a: netwarp_commands: p1: wants \{down: COMMAND, up: COMMAND\}"):
        inventory(a={"netwarp_commands": {"p1": {"down": "x"}}})


def test_a_users_command_takes_the_link_down_and_up_at_its_time(tmp_path: Path) -> None:
    cell, commands = commanded(tmp_path, '#!/bin/sh\necho "$1 $NETWARP_LINK $NETWARP_ACTION" >>said\n')
    t0_ns = time.time_ns()
    over = threading.Event()
    with commands.play(cell, t0_ns) as played:
        while len(played) < 2:
            over.wait(0.01)
    assert (tmp_path / "said").read_text() == "down p1 down\nup p1 up\n"
    assert [(each.action, each.at_ns) for each in played] == [("down", 50_000_000), ("up", 100_000_000)]
    assert all(each.at_ns <= each.began_ns <= each.ended_ns for each in played)
    steps = compile_cell(cell, CLOCK, b"", {}, frozenset({"p1"})).steps
    assert not any(step.verb == "netlink" and step.at_ns is not None for step in steps)
    assert any(step.verb == "netlink" and step.at_ns is not None for step in compile_cell(cell, CLOCK).steps)


def test_a_link_that_a_command_took_down_is_up_after_a_cell_that_failed(tmp_path: Path) -> None:
    cell, commands = commanded(tmp_path, '#!/bin/sh\necho "$1" >>said\n', up_ns=10**12)
    with (
        pytest.raises(RuntimeError),
        commands.play(cell, time.time_ns()) as played,
    ):
        while not played:
            threading.Event().wait(0.01)
        raise RuntimeError
    assert (tmp_path / "said").read_text() == "down\nup\n"


def test_a_command_that_fails_fails_the_cell(tmp_path: Path) -> None:
    cell, commands = commanded(tmp_path, "#!/bin/sh\necho no such port >&2; exit 3\n")
    with (
        pytest.raises(CellError, match=r"link p1 down .*ended with status 3: no such port"),
        commands.play(cell, time.time_ns()),
    ):
        threading.Event().wait(0.3)


def test_a_commands_time_is_in_the_cells_records(tmp_path: Path, cell: CellDir) -> None:
    merge(cell, {"a": left(tmp_path / "a", 5, 1)}, 5, 700, [Played("p1", "down", 10, 12, 40)])
    records = [json.loads(line) for line in cell.init_log.read_text().splitlines()]
    (event,) = [record for record in records if record["record"] == "timeline"]
    assert (event["at_ns"], event["t_ns"], event["ended_ns"]) == (10, 12, 40)
    (ready,) = [record for record in records if record["record"] == "ready"]
    assert (ready["clock_error_ns"], ready["event_error_ns"]) == (700, 28)
