"""The inventory: machines, how they are reached, and the cables between their interfaces. Ansible reads the file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...core.errors import BackendUnavailable, SpecError
from ...core.executables import find_executable
from ...core.extras import install_extra
from ...core.scratch import scratch
from ..own_programs import ALLOW, LONGEST, MOST_NAMED
from . import ssh_options
from .commands import LinkCommand

GROUP = "netwarp"
"""The group whose machines are used; every machine of an inventory without it."""
ROLES = ("endpoint", "bottleneck")
MACHINE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}", re.ASCII)
"""A machine's name, which is also that of a directory here."""
INTERFACE = re.compile(r"(?!\.\.?\Z)[!-.0-~]{1,15}", re.ASCII)
ANSIBLE = {"ANSIBLE_INVENTORY_ENABLED": "yaml,ini", "ANSIBLE_NOCOLOR": "1",
           "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True"}  # fmt: skip
"""An inventory that is a program, or a plugin's configuration, is none of these."""
MOST_S, MOST_MEMORY, MOST_PRINTED = 40, 1 << 30, 16 << 20
SSH_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
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


def read_inventory(path: Path, *, allow_programs: bool = False) -> Inventory:
    """An inventory as Ansible reads it, of YAML or INI, without plugins of its own. allow_programs: it may name
    programs that run here. Raises SpecError (the file is wrong, or names programs), BackendUnavailable (no Ansible).
    """
    if not path.exists():
        raise SpecError(f"{path}: there is no such inventory; `make lab` makes one")
    if not (path.is_file() or path.is_dir()):
        raise SpecError(f"{path}: is neither a file nor a directory, so it is no inventory")
    beside = Path(sys.executable).parent / "ansible-inventory"
    program = str(beside) if beside.exists() else find_executable("ansible-inventory")
    if program is None:
        raise BackendUnavailable(
            "inventories are read by Ansible, and there is no ansible-inventory here: "
            f"{install_extra('hosts')}, or apt-get install ansible-core"
        )
    try:
        listing = json.loads(_listed(path, program))
        return from_listing(path, listing, allow_programs=allow_programs)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise SpecError(f"{path}: Ansible reads it as something that is no inventory of machines: {error}") from error


def _listed(path: Path, program: str) -> bytes:
    """What Ansible prints of an inventory. It gets no configuration but ours, neither from the environment nor from a
    directory, because that can name programs; and so much time, memory and room as an inventory takes. Raises
    SpecError.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    with scratch("netwarp-inventory-") as ours:
        (ours / "ansible.cfg").touch()
        environment |= ANSIBLE | {"ANSIBLE_CONFIG": str(ours / "ansible.cfg"), "ANSIBLE_LOCAL_TEMP": str(ours / "tmp")}
        out, errors = ours / "out", ours / "errors"
        with out.open("wb") as printed, errors.open("wb") as said:
            asked = subprocess.Popen(
                [program, "-i", str(path.absolute()), "--list"], stdin=subprocess.DEVNULL, stdout=printed, stderr=said,
                cwd=ours, env=environment, start_new_session=True,
            )  # fmt: skip
        try:
            for limit, most in ((resource.RLIMIT_AS, MOST_MEMORY), (resource.RLIMIT_FSIZE, MOST_PRINTED)):
                resource.prlimit(asked.pid, limit, (most, most))
            status = asked.wait(MOST_S)
        except subprocess.TimeoutExpired as error:
            raise SpecError(f"{path}: Ansible is not done with it in {MOST_S} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(asked.pid, signal.SIGKILL)
            asked.wait()
        if status:
            lines = errors.read_text(errors="replace").strip().splitlines()
            raise SpecError(f"{path}: {(lines or [f'Ansible cannot read it in {MOST_MEMORY >> 20} MiB'])[-1][:500]}")
        return out.read_bytes()


def from_listing(path: Path, listing: Mapping[str, Any], *, allow_programs: bool = False) -> Inventory:
    """The inventory of what `ansible-inventory --list` prints. Raises SpecError with every problem."""
    known: Mapping[str, Mapping[str, Any]] = listing.get("_meta", {}).get("hostvars", {})
    names = _members(GROUP, listing) or list(known)
    if not names:
        raise SpecError(f"{path}: holds no machine")
    problems = [f"a machine named {name!r}" for name in names if not MACHINE.fullmatch(name)]
    machines = {name: _machine(name, known.get(name, {}), problems) for name in names}
    commands: dict[str, LinkCommand] = {}
    for name in names:
        commands |= _commands(name, known.get(name, {}), problems)
    programs = {f"{name}: {text}" for name in names for text in programs_of(known.get(name, {}))}
    programs |= {f"netwarp_commands: {shlex.join(way)}" for each in commands.values() for way in (each.down, each.up)}
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
    if programs and not allow_programs:
        listed = "".join(f"\n  {line[:LONGEST]}" for line in sorted(programs)[:MOST_NAMED])
        raise SpecError(
            f"{path}: names programs that would run on this machine as you, or options of ssh that could; read them, "
            f"then add {ALLOW}:{listed}"
        )
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
    for interface, text in _table(name, "netwarp_cables", values, problems).items():
        machine, colon, far = str(text).partition(":")
        if not (colon and machine and INTERFACE.fullmatch(far) and INTERFACE.fullmatch(str(interface))):
            problems.append(f"{name}: netwarp_cables: {interface}: {text}; wants MACHINE:INTERFACE, e.g. router:eth1")
            continue
        cables[str(interface)] = (machine, far)
    nodes = values.get("netwarp_nodes", [])
    if not isinstance(nodes, str | list):
        problems.append(f"{name}: netwarp_nodes: {nodes}; wants names of nodes")
        nodes = []
    return Machine(
        name=name,
        ssh=tuple(_ssh(name, values, problems)),
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
    for link, entry in _table(name, "netwarp_commands", values, problems).items():
        words = _words(entry) if isinstance(entry, Mapping) and set(entry) == {"down", "up"} else None
        if words is None:
            problems.append(f"{name}: netwarp_commands: {link}: wants {{down: COMMAND, up: COMMAND}}")
            continue
        commands[str(link)] = LinkCommand(*words)
    return commands


def _words(entry: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The commands down and up; None where one is no command."""
    try:
        down, up = (tuple(shlex.split(str(entry[way] or ""))) for way in ("down", "up"))
    except ValueError:
        return None
    return (down, up) if down and up and "\0" not in "".join((*down, *up)) else None


def _table(name: str, key: str, values: Mapping[str, Any], problems: list[str]) -> Mapping[str, Any]:
    table = values.get(key) or {}
    if not isinstance(table, Mapping):
        problems.append(f"{name}: {key}: {table}; wants a table")
        return {}
    return table


def programs_of(values: Mapping[str, Any]) -> list[str]:
    """What of a machine's variables is, or can name, a program that runs here: another ssh, and every option of ssh
    that is not known to start none.
    """
    found = []
    if str(values.get("ansible_ssh_executable", "ssh")) != "ssh":
        found.append(f"ansible_ssh_executable: {values['ansible_ssh_executable']}")
    for key in SSH_ARGUMENTS:
        try:
            words = shlex.split(str(values.get(key, "")))
        except ValueError:
            continue  # a problem already
        found += [f"{key}: {text}" for text in ssh_options.unknown(words)]
    return found


def _ssh(name: str, values: Mapping[str, Any], problems: list[str]) -> list[str]:
    words = [str(values.get("ansible_ssh_executable", "ssh"))]
    for option in ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=2", "ServerAliveCountMax=3"):
        words += ["-o", option]
    for key in SSH_ARGUMENTS:
        try:
            given = shlex.split(str(values.get(key, "")))
        except ValueError as error:
            problems.append(f"{name}: {key}: {error}")
            continue
        words += ssh_options.guarded(given)
    for key, option, rule in (
        ("ansible_port", "-p", ssh_options.PORT), ("ansible_user", "-l", ssh_options.USER),
        ("ansible_ssh_private_key_file", "-i", ssh_options.FILE), ("ansible_private_key_file", "-i", ssh_options.FILE),
    ):  # fmt: skip
        if key in values:
            if not rule.fullmatch(str(values[key])):
                problems.append(f"{name}: {key}: {values[key]!r} is none")
            words += [option, str(values[key])]
    host = str(values.get("ansible_host", name))
    if not ssh_options.HOST.fullmatch(host):
        problems.append(f"{name}: ansible_host: {host!r} is no host")
    return [*words, "--", host]
