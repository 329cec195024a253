"""The laboratory of `make lab` for tests: commands on its machines, and the whole state of each."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from netwarp.core.checkout import CHECKOUT
from netwarp.engine.run_directory import LATE
from netwarp.store.run_dir import CellDir

LAB = Path(os.environ.get("NETWARP_LAB", CHECKOUT / "build" / "lab"))
INVENTORY = LAB / "inventory.yml"
BIN = Path(sys.executable).parent
MACHINES = {"a": "192.0.2.1", "b": "192.0.2.2", "r": "192.0.2.3"}
CHOI = (
    "choi2009", "--where", "outage=10 s", "--where", "reading=one_way_delay", "--where", "variant=sctp_multi",
    "--where", "failover=linux_default", "--set", "fault_at=10 s", "--set", "duration=30 s", "--set",
    "flow.ftp.stop=28 s",
)  # fmt: skip
"""choi2009's outage of 10 s under a multihomed association, in a cell of 30 s."""
TRIES = 4
AGAIN_S = 120
"""For a machine that was switched off to boot and answer."""
SSH = [
    LAB / "ssh", "-i", LAB / "key", "-o", f"UserKnownHostsFile={LAB / 'known_hosts'}", "-o", "BatchMode=yes", "-o",
    "ConnectTimeout=5",
]  # fmt: skip
# /run/sudo: when sudo asked for a password last, which it does where a test makes it
STATE = """
PATH=$PATH:/usr/sbin:/sbin
section() { echo "[$1]"; shift; "$@" 2>/dev/null; }
section links sh -c 'ip -d -o link | sed "s/ qlen .*//"'
section addresses sh -c 'ip -o address | sed "s/ valid_lft .*//"'
section routes ip route show table all
section routes6 sh -c 'ip -6 route show table all | grep -v vec0'
section rules ip rule
section qdiscs tc qdisc
section netns ip netns
section sysctls sh -c 'sysctl -a | grep -E "^(net|kernel|vm)[.]" | grep -v -E "random|_mem |entries|count|ns_last_pid|\
nr_|stat_|inet_peer_threshold|max_orphans|max_tw_buckets|threads-max|max-inodes"'
section mounts sh -c 'sort /proc/mounts'
section processes sh -c 'for p in /proc/[0-9]*; do [ -e $p/exe ] && readlink $p/exe; done | grep -v -E "/(sh|dash|sshd|\
sshd-session|sudo|readlink|sort|uniq|grep|sleep)$" | sort | uniq -c'
section files sh -c 'find /run /tmp /home /root /dev/shm /mnt /var/lib/netwarp -xdev \
-not -path "/run/mount*" -not -path "/run/sudo*" \
-printf "%p %y %m " \\( -type f -printf "%s" -o -true \\) -printf "\\n" | sort'
section netwarp sh -c 'find /var/tmp -name "netwarp*"'
section sudoers cat /etc/sudoers
"""


def on(machine: str, command: str, sudo: str = "sudo sh") -> str:
    """What a shell there says, as root."""
    done = subprocess.run(
        [*SSH, f"lab@{MACHINES[machine]}", sudo], input=command, capture_output=True, text=True, check=False
    )
    return done.stdout


def state() -> dict[str, list[str]]:
    """Addresses, routes, qdiscs, sysctls, processes, mounts, files of every machine."""
    with ThreadPoolExecutor(len(MACHINES)) as at_once:
        return dict(zip(MACHINES, at_once.map(lambda machine: on(machine, STATE).splitlines(), MACHINES), strict=True))


OF_MEMORY = re.compile("net[.](ipv4|sctp)[.][a-z]+_[rw]mem |vm[.](min_free|user_reserve)_kbytes ")
"""Sysctls that a kernel computes from how much memory is free when it boots: a little different each time."""


def differences(before: dict[str, list[str]], after: dict[str, list[str]], booted: str = "") -> list[str]:
    """Lines that one of two states has and the other has not. booted: the machine that booted in between."""
    return [
        f"{machine}: {sign} {line}"
        for machine in MACHINES
        for sign, mine, other in (("-", before, after), ("+", after, before))
        for line in mine[machine]
        if line not in other[machine] and not (machine == booted and OF_MEMORY.match(line))
    ]


def switch_off(machine: str) -> None:
    """Kill a machine as a power cut does; the laboratory boots it again."""
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and (place / "cwd").readlink() == LAB / machine:
                os.kill(int(place.name), signal.SIGKILL)
        except OSError:
            continue  # not ours to see, or gone meanwhile


def await_machine(machine: str) -> None:
    """Until it has booted: ssh itself waits for a connection."""
    deadline = time.monotonic() + AGAIN_S
    while "netwarp-lab" not in on(machine, "echo netwarp-lab"):
        assert time.monotonic() < deadline, f"machine {machine} does not answer {AGAIN_S} s after it was switched off"


def netwarp(command: str, *arguments: object, inventory: Path = INVENTORY) -> subprocess.CompletedProcess[str]:
    """`netwarp COMMAND ... --backend hosts --inventory FILE`."""
    words = [BIN / "netwarp", command, *arguments, "--backend", "hosts", "--allow-programs", "--inventory", inventory]
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=280)


def playbook(name: str, *more: str, status: int = 0, late: bool = False) -> str:
    """Run a playbook on the machines; returns what it prints. late: it may fail as a run does whose cells were late."""
    done = subprocess.run(
        [BIN / "ansible-playbook", "-i", INVENTORY, f"{name}.yml", *more],
        cwd=CHECKOUT / "ansible", capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == status or (late and done.returncode == 2), done.stdout + done.stderr
    return done.stdout


def edited(folder: Path, *pairs: tuple[str, str]) -> Path:
    text = INVENTORY.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "inventory.yml"
    path.write_text(text)
    return path


def cell_of(run: Path) -> tuple[Path, dict[str, Any]]:
    """The directory of a run's cell, and its outcome by all checks, the analyser's too."""
    cell = next(path for path in (run / "cells").iterdir() if not path.name.startswith("."))
    return cell, msgspec.to_builtins(CellDir(cell).read_outcome())


def completed(folder: Path, *arguments: object, inventory: Path = INVENTORY) -> Path:
    """The cell of a run, COMPLETED; run again where the machine was late, which is no fault of what is tested."""
    said = []
    for number in range(TRIES):
        out = folder / f"run{number}"
        done = netwarp("run", *arguments, "--out", out, inventory=inventory)
        assert done.returncode in (0, 1), done.stderr
        cell, outcome = cell_of(out)
        if outcome["outcome"] == "COMPLETED":
            return cell
        assert outcome["outcome"] == "INVALID" and str(outcome["reason"]).startswith(LATE), outcome
        said.append(outcome["reason"])
        shutil.rmtree(out)
    pytest.skip(f"this machine is too busy for cells on the wall clock, {TRIES} times: {said}")
