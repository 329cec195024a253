"""The inventory: machines, how they are reached, and the cables between their interfaces. Ansible reads the file."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...core.errors import BackendUnavailable, SpecError
from ...core.executables import find_executable
from ...core.extras import install_extra
from .commands import LinkCommand

GROUP = "netwarp"
"""The group whose machines are used; every machine of an inventory without it."""
ROLES = ("endpoint", "bottleneck")
NOT_SUPPORTED = ("ansible_password", "ansible_ssh_pass", "ansible_become_password", "ansible_become_pass")


@dataclass(frozen=True, slots=True)
class Machine:
    """One host of the inventory. cables: own interface -> (machine, its interface)."""

    name: str
    ssh: tuple[str, ...]
    """The words before the remote command."""
    become: bool
    python: str
    directory: str
    role: str
    nodes: tuple[str, ...]
    cables: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Inventory:
    """Machines by name, in the order of the file. commands: link of a spec -> what takes it down and up."""

    path: Path
    machines: Mapping[str, Machine]
    commands: Mapping[str, LinkCommand] = field(default_factory=dict)

    def cables(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        """Each cable once, as two (machine, interface)."""
        seen: dict[frozenset[tuple[str, str]], tuple[tuple[str, str], tuple[str, str]]] = {}
        for machine in self.machines.values():
            for interface, far in machine.cables.items():
                near = (machine.name, interface)
                seen.setdefault(frozenset((near, far)), (near, far))
        return list(seen.values())


def read_inventory(path: Path) -> Inventory:
    """An inventory as Ansible reads it, of YAML or INI: it would also run one that is a program, or a plugin's
    configuration. Raises SpecError (the file is wrong), BackendUnavailable (no Ansible)."""
    if not path.exists():
        raise SpecError(f"{path}: there is no such inventory; `make lab` makes one")
    beside = Path(sys.executable).parent / "ansible-inventory"
    program = str(beside) if beside.exists() else find_executable("ansible-inventory")
    if program is None:
        raise BackendUnavailable(
            "inventories are read by Ansible, and there is no ansible-inventory here: "
            f"{install_extra('hosts')}, or apt-get install ansible-core"
        )
    done = subprocess.run(
        [program, "-i", str(path.absolute()), "--list"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, env=os.environ | {"ANSIBLE_INVENTORY_ENABLED": "yaml,ini"},
    )  # fmt: skip
    if done.returncode:
        raise SpecError(f"{path}: {(done.stderr.strip().splitlines() or ['Ansible cannot read it'])[-1]}")
    return from_listing(path, json.loads(done.stdout))


def from_listing(path: Path, listing: Mapping[str, Any]) -> Inventory:
    """The inventory of what `ansible-inventory --list` prints. Raises SpecError with every problem."""
    known: Mapping[str, Mapping[str, Any]] = listing.get("_meta", {}).get("hostvars", {})
    names = _members(GROUP, listing) or list(known)
    if not names:
        raise SpecError(f"{path}: holds no machine")
    problems: list[str] = []
    machines = {name: _machine(name, known.get(name, {}), problems) for name in names}
    commands: dict[str, LinkCommand] = {}
    for name in names:
        commands |= _commands(name, known.get(name, {}), problems)
    used: dict[tuple[str, str], tuple[str, str]] = {}
    for machine in machines.values():
        for interface, far in machine.cables.items():
            near = (machine.name, interface)
            if far[0] not in machines:
                problems.append(f"{machine.name}: {interface} is cabled to {far[0]}, which is no machine of it")
            for end, other in ((near, far), (far, near)):
                if used.setdefault(end, other) != other:
                    both = " and ".join(sorted(":".join(x) for x in (used[end], other)))
                    problems.append(f"{':'.join(end)} is cabled to both {both}")
    if problems:
        raise SpecError(f"{path}: " + "\n  ".join(dict.fromkeys(problems)))
    whole: dict[str, dict[str, tuple[str, str]]] = {name: {} for name in machines}
    for (name, interface), far in used.items():
        whole[name][interface] = far
    cabled = {name: replace(machine, cables=whole[name]) for name, machine in machines.items()}
    return Inventory(path, cabled, commands)


def _members(group: str, listing: Mapping[str, Any]) -> list[str]:
    entry = listing.get(group, {})
    below = [name for child in entry.get("children", []) for name in _members(child, listing)]
    return list(dict.fromkeys([*entry.get("hosts", []), *below]))


def _machine(name: str, values: Mapping[str, Any], problems: list[str]) -> Machine:
    for key in NOT_SUPPORTED:
        if key in values:
            problems.append(f"{name}: {key}: passwords are not supported; use a key, and sudo without a password")
    method = values.get("ansible_become_method", "sudo")
    if method != "sudo":
        problems.append(f"{name}: ansible_become_method: {method}; only sudo is supported")
    role = str(values.get("netwarp_role", "endpoint"))
    if role not in ROLES:
        problems.append(f"{name}: netwarp_role: {role}; it is one of {', '.join(ROLES)}")
    cables: dict[str, tuple[str, str]] = {}
    for interface, text in dict(values.get("netwarp_cables") or {}).items():
        machine, colon, far = str(text).partition(":")
        if not colon or not machine or not far:
            problems.append(f"{name}: netwarp_cables: {interface}: {text}; wants MACHINE:INTERFACE, e.g. router:eth1")
            continue
        cables[str(interface)] = (machine, far)
    nodes = values.get("netwarp_nodes", [])
    return Machine(
        name=name,
        ssh=tuple(_ssh(name, values)),
        become=str(values.get("ansible_become", False)).lower() in ("true", "yes", "1"),
        python=str(values.get("ansible_python_interpreter", "/usr/bin/python3")),
        directory=str(values.get("netwarp_directory", "/var/tmp")),
        role=role,
        nodes=tuple(str(node) for node in ([nodes] if isinstance(nodes, str) else nodes)),
        cables=cables,
    )


def _commands(name: str, values: Mapping[str, Any], problems: list[str]) -> dict[str, LinkCommand]:
    """netwarp_commands, a variable of the whole group: link -> {down, up}."""
    commands = {}
    for link, entry in dict(values.get("netwarp_commands") or {}).items():
        if not isinstance(entry, Mapping) or set(entry) != {"down", "up"} or not all(entry.values()):
            problems.append(f"{name}: netwarp_commands: {link}: wants {{down: COMMAND, up: COMMAND}}")
            continue
        commands[str(link)] = LinkCommand(*(tuple(shlex.split(str(entry[way]))) for way in ("down", "up")))
    return commands


def _ssh(name: str, values: Mapping[str, Any]) -> list[str]:
    words = [str(values.get("ansible_ssh_executable", "ssh"))]
    for option in ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=2", "ServerAliveCountMax=3"):
        words += ["-o", option]
    for key in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        words += shlex.split(str(values.get(key, "")))
    for key, option in (
        ("ansible_port", "-p"), ("ansible_user", "-l"), ("ansible_ssh_private_key_file", "-i"),
        ("ansible_private_key_file", "-i"),
    ):  # fmt: skip
        if key in values:
            words += [option, str(values[key])]
    return [*words, "--", str(values.get("ansible_host", name))]
