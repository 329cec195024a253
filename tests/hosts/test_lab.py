"""The laboratory: playbooks and cells on machines, and every machine afterwards as it was before.

Run by `make lab-test`, which makes the laboratory; without one these tests are skipped. On a busy machine a cell may be
INVALID because it was late, and only because of that: then there is no number to look at.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.core.checkout import CHECKOUT
from netwarp.sandbox.hosts.connection import Connection
from netwarp.sandbox.hosts.inventory import read_inventory
from netwarp.store.ndjson import read_ndjson

LAB = Path(os.environ.get("NETWARP_LAB", CHECKOUT / "build" / "lab"))
INVENTORY = LAB / "inventory.yml"
NETWARP = Path(sys.executable).parent / "netwarp"
pytestmark = pytest.mark.skipif("NETWARP_LAB_TEST" not in os.environ, reason="only in a laboratory: make lab-test")
LATE = ("timeline", "start of ", "clock: ", "clocks of the machines")
MACHINES = {"a": "192.0.2.1", "b": "192.0.2.2", "r": "192.0.2.3"}
STATE = """
PATH=$PATH:/usr/sbin:/sbin
ip -o link | sed 's/ qlen .*//'; ip address | grep -v valid_lft; ip route; ip -6 route; tc qdisc; ip netns
sysctl -a 2>/dev/null | grep -E '^net[.](core|ipv4|ipv6|sctp)' | grep -v -E 'random|_mem|entries|count'
cd / && find run/netwarp var/lib/netwarp var/tmp -type f -o -type d -name 'netwarp*' 2>/dev/null | sort
cat /proc/[0-9]*/comm 2>/dev/null | grep -E '^(netns-exec|init|cell-init|sender|receiver|python3)$' | sort | uniq -c
"""


def on(machine: str, command: str) -> str:
    words = [LAB / "ssh", "-i", LAB / "key", "-o", f"UserKnownHostsFile={LAB / 'known_hosts'}", "-o", "BatchMode=yes"]
    done = subprocess.run(
        [*words, f"lab@{MACHINES[machine]}", "sudo sh"], input=command, capture_output=True, text=True, check=False
    )
    return done.stdout


def state() -> dict[str, list[str]]:
    return {machine: on(machine, STATE).splitlines() for machine in MACHINES}


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Every test leaves every machine as it was."""
    before = state()
    yield
    assert state() == before


def netwarp(*arguments: object, inventory: Path = INVENTORY) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in (NETWARP, "run", *arguments, "--backend", "hosts", "--inventory", inventory)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=280)


def edited(folder: Path, *pairs: tuple[str, str]) -> Path:
    text = INVENTORY.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "inventory.yml"
    path.write_text(text)
    return path


def playbook(name: str, *more: str) -> str:
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", INVENTORY, f"{name}.yml", *more],
        cwd=CHECKOUT / "ansible", capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_playbooks_change_nothing_twice_and_teardown_puts_everything_back() -> None:
    playbook("check")
    first = playbook("site")
    assert first.count("changed=1 ") == 3  # net.core.rmem_max and wmem_max
    assert playbook("site").count("changed=0 ") == 3
    assert "net.core.rmem_max" in on("a", "cat /var/lib/netwarp/changes.json")
    playbook("teardown")
    assert playbook("teardown").count("changed=0 ") == 3


def cell_of(run: Path) -> tuple[Path, dict[str, object]]:
    cell = next(path for path in (run / "cells").iterdir() if not path.name.startswith("."))
    return cell, json.loads((cell / "outcome.json").read_text())


def test_choi2009_link_down_with_sctp_failover(tmp_path: Path) -> None:
    """The multihomed association goes on by the other path, from the packets at both machines."""
    done = netwarp(
        "choi2009", "--where", "outage=10 s", "--where", "fault=link", "--where", "variant=sctp-multi", "--where",
        "failover=linux-default", "--set", "duration=30 s", "--out", tmp_path / "run", "--no-report",
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    cell, outcome = cell_of(tmp_path / "run")
    environment = json.loads((cell / "environment.json").read_text())
    assert outcome["outcome"] == "COMPLETED" or str(outcome["reason"]).startswith(LATE), outcome
    assert environment["machines"]["namespaces"] == {"a": "a", "b": "b", "p1.hop": "r", "p2.hop": "r"}
    assert {path.name.partition(".")[0] for path in (cell / "capture").iterdir()} == {"a-p1", "a-p2", "b-p1", "b-p2"}
    downs = [r for r in read_ndjson(cell / "init.ndjson") if r.get("record") == "timeline"]
    assert {record["on"] for record in downs if record["verb"] == "netlink"} == {"r"}
    counters = [r for r in read_ndjson(cell / "init.ndjson") if r.get("record") == "proc" and "sctp" in r["path"]]
    assert any("SctpT3Retransmits" in (record["text"] or "") for record in counters)


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
    ],
    ids=["wrong interface", "unreachable", "no root", "management interface"],
)
def test_what_is_wrong_is_said_and_nothing_is_changed(tmp_path: Path, pairs: list[tuple[str, str]], says: str) -> None:
    done = netwarp("choi2009", "--out", tmp_path / "run", inventory=edited(tmp_path, *pairs))
    assert done.returncode == 77
    assert says in done.stderr
    assert not (tmp_path / "run").exists()


def test_sudo_that_asks_for_a_password(tmp_path: Path) -> None:
    undo = "sleep 40; sed -i 's/^lab.*/lab ALL=(ALL) NOPASSWD: ALL/' /etc/sudoers"
    on("b", f"sed -i 's/NOPASSWD: //' /etc/sudoers; ({undo}) </dev/null >/dev/null 2>&1 &")
    try:
        done = netwarp("choi2009", "--out", tmp_path / "run")
        assert done.returncode == 77
        assert "machine b: sudo: a password is required" in done.stderr
        assert "NOPASSWD" in done.stderr
    finally:
        while "netwarp-lab" not in on("b", "echo netwarp-lab"):
            pass


def test_two_runs_at_once(tmp_path: Path) -> None:
    """The second is refused, and told whose the first is."""
    machine = read_inventory(INVENTORY).machines["r"]
    holder = Connection(machine)
    try:
        holder.ask("lease", token="0", who="somebody, since noon")
        done = netwarp("choi2009", "--out", tmp_path / "run")
        assert done.returncode == 77
        assert "machine r: another run uses this machine: somebody, since noon" in done.stderr
    finally:
        holder.close()


def test_a_full_disk(tmp_path: Path) -> None:
    on("a", "mkdir -p /mnt/small; mount -t tmpfs -o size=4M tmpfs /mnt/small")
    try:
        host = "ansible_host: 192.0.2.1\n"
        where = edited(tmp_path, (host, f"{host}      netwarp_directory: /mnt/small\n"))
        done = netwarp("choi2009", "--out", tmp_path / "run", inventory=where)
        assert done.returncode == 77
        assert "machine a: /mnt/small has room for 4 MB only" in done.stderr
    finally:
        on("a", "umount /mnt/small; rmdir /mnt/small")


def test_the_sandbox_is_killed_in_the_middle(tmp_path: Path) -> None:
    """The cell is FAILED and names the machine; the others are cleaned."""
    spec = tmp_path / "lab.toml"
    spec.write_text(subprocess.run([NETWARP, "plan", "--example"], capture_output=True, text=True, check=True).stdout)
    words = [NETWARP, "run", spec, "--where", "protocol=tcp", "--where", "rate=1 Mbit/s", "--out", tmp_path / "run",
             "--backend", "hosts", "--inventory", INVENTORY, "--no-report"]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        for _ in range(400):
            if on("r", "cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^init$'; ls /var/tmp").count("netwarp-"):
                break
        on("r", "sleep 3; for p in /proc/[0-9]*; do grep -qs '^netns-exec$' $p/comm && kill -9 ${p#/proc/}; done")
        run.communicate(timeout=280)
    _, outcome = cell_of(tmp_path / "run")
    assert outcome["outcome"] == "FAILED", outcome
    assert "r" in str(outcome["reason"])
