"""The laboratory: playbooks and cells on machines, and every machine afterwards as it was before.

Run by `make lab-test`, which makes the laboratory; without one these tests are skipped. A cell that is INVALID only
because the machine was late (docs/agreement.md) is run again, a few times: on a machine that is always busy a test of
numbers is skipped, and says so.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from netwarp.experiment.example import EXAMPLE_SPEC
from netwarp.sandbox.hosts.connection import MachineLink
from netwarp.sandbox.hosts.inventory import read_inventory
from netwarp.store.init_records import Proc, Timeline, read_init_log
from netwarp.store.ndjson import of_kind
from support.laboratory import (
    BIN,
    CHOI,
    INVENTORY,
    LATE,
    MACHINES,
    await_machine,
    cell_of,
    completed,
    differences,
    edited,
    netwarp,
    on,
    playbook,
    state,
    switch_off,
)


def small(folder: Path) -> Path:
    """A spec of six cells of 10 s."""
    spec = folder / "lab.toml"
    spec.write_text(EXAMPLE_SPEC)
    return spec


def measured(cell: Path) -> dict[str, float]:
    rows = (cell.parent.parent / "tables" / "measurements.csv").read_text().splitlines()
    return {line.split(",")[2]: float(line.split(",")[3]) for line in rows[1:] if line.split(",")[3]}


def timeline(cell: Path) -> list[Timeline]:
    return of_kind(read_init_log(cell / "init.ndjson"), Timeline)


def test_playbooks_change_nothing_twice_and_teardown_puts_everything_back() -> None:
    before = state()
    playbook("check")
    assert playbook("site", "--check").count("changed=1 ") == 3
    assert differences(before, state()) == []
    first = playbook("site")
    assert first.count("changed=1 ") == 3  # net.core.rmem_max and wmem_max
    assert playbook("site").count("changed=0 ") == 3
    assert playbook("site", "--check").count("changed=0 ") == 3
    assert "net.core.rmem_max" in on("a", "cat /var/lib/netwarp/changes.json")
    playbook("teardown")
    assert differences(before, state()) == []
    assert playbook("teardown").count("changed=0 ") == 3


def test_a_package_from_a_repository_comes_and_goes() -> None:
    """The laboratory has a repository of one package; purged it leaves nothing."""
    wanted = json.dumps({"common_packages": ["iproute2", "python3", "netwarp-trial"]})
    assert playbook("site", "-e", wanted).count("changed=2 ") == 3
    assert "netwarp trial" in on("b", "cat /usr/share/doc/netwarp-trial/README")
    assert playbook("site", "-e", wanted).count("changed=0 ") == 3
    playbook("teardown")
    assert "installed" not in on("b", "dpkg-query --show --showformat '${db:Status-Status}' netwarp-trial 2>/dev/null")


def test_teardown_after_a_site_that_failed() -> None:
    wanted = json.dumps({"common_packages": ["iproute2", "netwarp-trial", "netwarp-there-is-no-such-package"]})
    assert "netwarp-there-is-no-such-package" in playbook("site", "-e", wanted, status=2)
    playbook("teardown")
    assert playbook("teardown").count("changed=0 ") == 3


def test_choi2009_link_down_with_sctp_failover(tmp_path: Path) -> None:
    """The multihomed association goes on by the other path, from the packets at both machines."""
    cell = completed(tmp_path, *CHOI, "--where", "fault=link")
    environment = json.loads((cell / "environment.json").read_text())
    assert environment["machines"]["namespaces"] == {"a": "a", "b": "b", "p1.hop": "r", "p2.hop": "r"}
    assert {path.name.partition(".")[0] for path in (cell / "capture").iterdir()} == {"a-p1", "a-p2", "b-p1", "b-p2"}
    assert {step.on for step in timeline(cell) if step.verb == "netlink"} == {"r"}
    counters = [file.text or "" for file in of_kind(read_init_log(cell / "init.ndjson"), Proc) if "sctp" in file.path]
    assert any("SctpT3Retransmits" in text for text in counters)
    metrics = measured(cell)
    # one RTO (at least 1 s, at most 1 s and what 1 s of queue makes of it) and the way there
    assert 1.0 < metrics["first_useful_arrival_other_path_s"] < 6.0, metrics
    assert 0.0 < environment["machines"]["clock_error_ns"] < 10_000_000
    assert environment["host"]["late_wakes_ratio"] <= 0.02
    assert set(environment["host"]) == {"late_wakes_ratio", "latest_wake_s"}
    page = (cell.parent.parent / "report" / "index.html").read_text()
    assert "may be wrong against each other by at most" in page


def test_the_playbook_run_does_what_the_command_does(tmp_path: Path) -> None:
    """`run.yml -e experiment=...`: the run, its report, and where that is."""
    spec = small(tmp_path)
    chosen = ["--where", "protocol=tcp", "--where", "rate=1 Mbit/s", "--out", str(tmp_path / "run"), "--allow-programs"]
    said = playbook("run", "-e", json.dumps({"experiment": str(spec), "arguments": chosen}), late=True)
    cell, outcome = cell_of(tmp_path / "run")
    assert outcome["outcome"] == "COMPLETED" or str(outcome["reason"]).startswith(LATE), outcome
    assert {path.name.partition(".")[0] for path in (cell / "capture").iterdir()} == {"a-p1", "b-p1"}
    assert (tmp_path / "run" / "report" / "index.html").exists()
    assert f"{tmp_path / 'run'}" in said
    assert ("Some cells did not complete" in said) == (outcome["outcome"] != "COMPLETED"), said


def test_a_users_command_makes_the_fault(tmp_path: Path) -> None:
    """A switch port, here the cable's end in the laboratory's namespace."""
    program = tmp_path / "port"
    inside = (INVENTORY.parent / "ssh").read_text().splitlines()[1].removeprefix("exec ").partition(" ssh ")[0]
    program.write_text(f'#!/bin/sh\nexec {inside} ip link set dev cable-b1 "$1"\n')
    program.chmod(0o755)
    lines = f"    netwarp_commands: {{p1: {{down: {program} down, up: {program} up}}}}\n    ansible_user: lab\n"
    where = edited(tmp_path, ("    ansible_user: lab\n", lines))
    cell = completed(tmp_path, *CHOI, "--where", "fault=link", inventory=where)
    events = [step for step in timeline(cell) if step.verb == "command"]
    assert [(step.link, step.action, step.at_ns) for step in events] == [
        ("p1", "down", 10_000_000_000), ("p1", "up", 20_000_000_000),
    ]  # fmt: skip
    assert all(0 <= (step.t_ns or 0) - step.at_ns < 10_000_000 for step in events)
    assert all((step.ended_ns or 0) > (step.t_ns or 0) for step in events)
    assert 1.0 < measured(cell)["outage_s"] < 6.0


def test_two_machines_without_a_router(tmp_path: Path) -> None:
    """The bottleneck is a namespace on one of them, and the report says so."""
    spec = small(tmp_path)
    where = tmp_path / "two.yml"
    text = INVENTORY.read_text().partition("    r:\n")[0]
    for own, far in (("vec1: r:vec1", "vec1: b:vec1"), ("        vec2: r:vec2\n", ""), ("vec1: r:vec3", "vec1: a:vec1"),
                     ("        vec2: r:vec4\n", "")):  # fmt: skip
        text = text.replace(own, far, 1)
    where.write_text(text)
    # a's plug into b's cable
    inside = (INVENTORY.parent / "ssh").read_text().splitlines()[1].removeprefix("exec ").partition(" ssh ")[0].split()
    plug = [*inside, "ip", "link", "set", "dev", "a1", "master"]
    subprocess.run([*plug, "cable-b1"], check=True)
    try:
        cell = completed(tmp_path, spec, "--where", "protocol=tcp", "--where", "rate=1 Mbit/s", inventory=where)
    finally:
        subprocess.run([*plug, "cable-a1"], check=True)
    note = "the bottleneck of p1 is a namespace on b, which is an end of it"
    assert note in json.loads((cell / "environment.json").read_text())["machines"]["notes"]
    assert "The bottleneck of p1 is a namespace on b" in (cell.parent.parent / "report" / "index.html").read_text()


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([("vec1: r:vec1", "vec9: r:vec1"), ("a:vec1", "a:vec9")], "machine a: there is no interface vec9"),
        ([("ansible_host: 192.0.2.2", "ansible_host: 192.0.2.77")], "machine b: ssh: connect to host 192.0.2.77"),
        ([("ansible_become: true", "ansible_become: false")], "machine a: is not root there"),
        (
            [("vec2: r:vec2", "vec0: r:vec2"), ("a:vec2", "a:vec0")],
            "machine a: vec0 has the address 192.0.2.1: somebody uses it",
        ),
        ([("ansible_python_interpreter: /usr/bin/python3", "ansible_python_interpreter: /usr/bin/python2")],
         "machine a: "),
    ],
    ids=["wrong interface", "unreachable", "no root", "management interface", "no python"],
)  # fmt: skip
def test_what_is_wrong_is_said_and_nothing_is_changed(tmp_path: Path, pairs: list[tuple[str, str]], says: str) -> None:
    where = edited(tmp_path, *pairs)
    spec = small(tmp_path)
    done = netwarp("run", spec, "--out", tmp_path / "run", inventory=where)
    assert done.returncode == 77
    assert says in done.stderr
    assert not (tmp_path / "run").exists()
    planned = netwarp("plan", spec, inventory=where)
    assert planned.returncode == 77
    assert says in planned.stdout


def test_sudo_that_asks_for_a_password(tmp_path: Path) -> None:
    on(
        "b",
        """cat >/run/give-back <<END
#!/bin/sh
echo '$(tail -n 1 /etc/sudoers)' >/run/last
sed -i '\\$d' /etc/sudoers; cat /run/last >>/etc/sudoers; rm /run/last /run/give-back
END
chmod 755 /run/give-back; sed -i '$d' /etc/sudoers
printf 'lab ALL=(ALL) ALL, NOPASSWD: /run/give-back\\n' >>/etc/sudoers""",
    )
    try:
        done = netwarp("run", small(tmp_path), "--out", tmp_path / "run")
        assert done.returncode == 77
        assert "machine b: sudo: a password is required" in done.stderr
        assert "NOPASSWD" in done.stderr
    finally:
        on("b", "", "sudo -n /run/give-back")


def test_a_kernel_that_lacks_a_feature(tmp_path: Path) -> None:
    """Compound TCP is in no Linux: its cells are UNSUPPORTED, and nothing is begun."""
    spec = small(tmp_path)
    chosen = (spec, "--where", "protocol=tcp", "--where", "rate=1 Mbit/s", "--set",
              'node.a.sysctl={"net.ipv4.tcp_congestion_control" = "compound"}')  # fmt: skip
    says = "machine a: its kernel has not the congestion control compound (modprobe tcp_compound)"
    done = netwarp("run", *chosen, "--out", tmp_path / "run", "--no-report")
    assert done.returncode == 1, done.stderr
    _, outcome = cell_of(tmp_path / "run")
    assert (outcome["outcome"], outcome["reason"]) == ("UNSUPPORTED", says)
    planned = netwarp("plan", *chosen)
    assert (planned.returncode, f"1 cell: {says}" in planned.stdout) == (77, True), planned.stdout


def test_two_runs_at_once(tmp_path: Path) -> None:
    """The second is refused, and told whose the first is."""
    machine = read_inventory(INVENTORY, allow_programs=True).machines["r"]
    holder = MachineLink(machine)
    try:
        holder.ask("lease", token="0", who="somebody, since noon")
        done = netwarp("run", small(tmp_path), "--out", tmp_path / "run")
        assert done.returncode == 77
        assert "machine r: another run uses this machine: somebody, since noon" in done.stderr
    finally:
        holder.close()


def test_a_full_disk(tmp_path: Path) -> None:
    on("a", "mkdir -p /mnt/small; mount -t tmpfs -o size=4M tmpfs /mnt/small")
    try:
        host = "ansible_host: 192.0.2.1\n"
        where = edited(tmp_path, (host, f"{host}      netwarp_directory: /mnt/small\n"))
        done = netwarp("run", small(tmp_path), "--out", tmp_path / "run", inventory=where)
        assert done.returncode == 77
        assert "machine a: /mnt/small has room for 4 MB only" in done.stderr
    finally:
        on("a", "umount /mnt/small; rmdir /mnt/small")


def disturbed(folder: Path, machine: str, command: str, inventory: Path = INVENTORY) -> dict[str, Any]:
    """The outcome of a cell in whose middle something is done on a machine ("": it is switched off)."""
    words = [BIN / "netwarp", "run", *CHOI, "--where", "fault=link", "--out", folder / "run", "--backend", "hosts",
             "--allow-programs", "--inventory", inventory, "--no-report"]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        while not on("a", "grep -sxl sender /proc/[0-9]*/comm") and run.poll() is None:
            pass
        if command:
            on(machine, command)
        else:
            switch_off(machine)
        _, said = run.communicate(timeout=280)
    if not command:
        await_machine(machine)
    assert run.returncode == 1, said
    return cell_of(folder / "run")[1]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_dies_in_the_middle(tmp_path: Path, machine: str) -> None:
    """The cell is FAILED and names it; the others are cleaned, and the next cell runs when it is up again."""
    outcome = disturbed(tmp_path, machine, "")
    assert outcome["outcome"] == "FAILED", outcome
    assert f"machine {machine}: " in outcome["reason"]


def test_the_sandbox_is_killed_in_the_middle(tmp_path: Path) -> None:
    kill = "for p in /proc/[0-9]*; do grep -qsx netns-exec $p/comm && kill -9 ${p#/proc/}; done"
    outcome = disturbed(tmp_path, "r", kill)
    assert outcome["outcome"] == "FAILED", outcome
    assert "no end record of r" in outcome["reason"]


def test_the_agent_is_killed_in_the_middle(tmp_path: Path) -> None:
    """The kernel takes the namespaces down; the next run puts the rest back."""
    kill = "for p in /proc/[0-9]*; do grep -qsx netns-exec $p/comm && kill -9 $(awk '{print $4}' $p/stat); done"
    outcome = disturbed(tmp_path, "r", kill)
    assert outcome["outcome"] == "FAILED", outcome
    assert "machine r: " in outcome["reason"]
    playbook("teardown")


def test_a_disk_that_becomes_full_in_the_middle(tmp_path: Path) -> None:
    on("b", "mkdir -p /mnt/small; mount -t tmpfs -o size=110M tmpfs /mnt/small")
    try:
        host = "ansible_host: 192.0.2.2\n"
        where = edited(tmp_path, (host, f"{host}      netwarp_directory: /mnt/small\n"))
        outcome = disturbed(tmp_path, "b", "cat /dev/zero >/mnt/small/fill", where)
        assert outcome["outcome"] == "FAILED", outcome
        assert "machine b: " in outcome["reason"]
        assert "No space left on device" in outcome["reason"]
    finally:
        on("b", "umount /mnt/small; rmdir /mnt/small")
