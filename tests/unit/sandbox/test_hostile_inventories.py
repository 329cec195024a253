"""An inventory is data: nothing of it, beside it or in the environment runs on this machine unasked, and what a machine
answers is data too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from netwarp.core.errors import CellError, NetwarpError, SpecError, StoreError
from netwarp.sandbox.hosts import connection
from netwarp.sandbox.hosts import inventory as module
from netwarp.sandbox.hosts.collect import shift_capture
from netwarp.sandbox.hosts.connection import MachineError, MachineLink
from netwarp.sandbox.hosts.held_machines import fetch
from netwarp.sandbox.hosts.inventory import Machine, from_listing, read_inventory

HARMLESS = "netwarp:\n  hosts:\n    a:\n      ansible_host: 192.0.2.1\n"


def listed(**machine: Any) -> dict[str, Any]:
    return {"_meta": {"hostvars": {"a": machine}}, "netwarp": {"hosts": ["a"]}}


PROGRAMS: dict[str, dict[str, Any]] = {
    "another ssh": {"ansible_ssh_executable": "./ssh"},
    "ProxyCommand": {"ansible_ssh_common_args": "-o ProxyCommand='touch made'"},
    "ProxyCommand in one word": {"ansible_ssh_extra_args": "-oProxyCommand='touch made'"},
    "ProxyCommand in other letters": {"ansible_ssh_extra_args": "-o 'pRoXyCoMmAnD touch made'"},
    "LocalCommand": {"ansible_ssh_common_args": "-o PermitLocalCommand=yes -o LocalCommand='touch made'"},
    "KnownHostsCommand": {"ansible_ssh_common_args": "-o KnownHostsCommand='/bin/touch made'"},
    "PKCS11Provider": {"ansible_ssh_common_args": "-o PKCS11Provider=/tmp/x.so"},
    "SecurityKeyProvider": {"ansible_ssh_common_args": "-o SecurityKeyProvider=/tmp/x.so"},
    "Match exec": {"ansible_ssh_common_args": "-o 'Match exec \"touch made\"'"},
    "Include": {"ansible_ssh_common_args": "-o Include=/tmp/x"},
    "a configuration": {"ansible_ssh_common_args": "-F ./ssh_config"},
    "a configuration in one word": {"ansible_ssh_common_args": "-F./ssh_config"},
    "a log": {"ansible_ssh_common_args": "-E /home/x/.bashrc"},
    "a library of keys": {"ansible_ssh_common_args": "-I /tmp/x.so"},
    "a port forwarded": {"ansible_ssh_common_args": "-L 2000:127.0.0.1:22"},
    "the agent forwarded": {"ansible_ssh_common_args": "-A"},
    "the agent forwarded by an option": {"ansible_ssh_common_args": "-o ForwardAgent=yes"},
    "letters together": {"ansible_ssh_common_args": "-4A"},
    "a control socket": {"ansible_ssh_common_args": "-o ControlMaster=auto -o ControlPath=/home/x/.ssh/y"},
    "a jump with a command": {"ansible_ssh_common_args": "-J 'a;touch made'"},
    "a jump of another option": {"ansible_ssh_common_args": "-o ProxyJump='-oProxyCommand=touch'"},
    "a host in the arguments": {"ansible_ssh_common_args": "elsewhere touch made"},
    "the end of the options": {"ansible_ssh_common_args": "-- elsewhere"},
    "an option without a value": {"ansible_ssh_common_args": "-o"},
    "commands for a link": {"netwarp_commands": {"p1": {"down": "touch made", "up": "touch made"}}},
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_programs_are_refused_with_their_list_unless_allowed(what: str) -> None:
    with pytest.raises(SpecError, match="then add --allow-programs:\n  ") as refused:
        from_listing(Path("x.yml"), listed(**PROGRAMS[what]))
    (value,) = list(PROGRAMS[what].values())[:1]
    first = "touch made" if isinstance(value, dict) else value.split()[-1].strip("'\"")
    assert first[:4] in str(refused.value)
    from_listing(Path("x.yml"), listed(**PROGRAMS[what]), allow_programs=True)


@pytest.mark.parametrize(
    "arguments",
    [
        "", "-4 -C", "-p 22 -i /home/x/key", "-J jump.example.org:2222", "-o ProxyJump=me@jump",
        "-oStrictHostKeyChecking=yes",
        "-o 'ConnectTimeout 5' -o ControlMaster=no -o IdentitiesOnly=yes",
    ],
)  # fmt: skip
def test_what_starts_nothing_needs_no_leave(arguments: str) -> None:
    machine = from_listing(Path("x.yml"), listed(ansible_ssh_common_args=arguments)).machines["a"]
    assert machine.ssh[0] == "ssh" and machine.ssh[-2:] == ("--", "a")


def test_ssh_writes_no_key_into_a_file_that_the_inventory_names() -> None:
    of = listed(ansible_ssh_common_args="-o UserKnownHostsFile=/home/x/.bashrc -o StrictHostKeyChecking=no")
    words = from_listing(Path("x.yml"), of).machines["a"].ssh
    assert words.index("StrictHostKeyChecking=yes") < words.index("StrictHostKeyChecking=no")  # ssh takes the first


WRONG: tuple[dict[str, Any], ...] = (
    {"ansible_host": "-oProxyCommand=touch made"}, {"ansible_host": "$(touch made)"}, {"ansible_host": "a b"},
    {"ansible_host": "x\0y"}, {"ansible_user": "-oProxyCommand=x"}, {"ansible_user": "`x`"}, {"ansible_port": "22;x"},
    {"ansible_ssh_private_key_file": "-F./x"}, {"ansible_private_key_file": "a\0b"},
    {"ansible_ssh_common_args": "'unclosed"}, {"netwarp_commands": {"p1": {"down": "'", "up": "x"}}},
    {"netwarp_commands": ["x"]}, {"netwarp_commands": "x"}, {"netwarp_cables": ["x"]}, {"netwarp_cables": 5},
    {"netwarp_cables": {"../x": "a:x"}}, {"netwarp_cables": {"x": "a:.."}}, {"netwarp_nodes": 5},
)  # fmt: skip


@pytest.mark.parametrize("machine", WRONG, ids=str)
def test_odd_values_are_problems(machine: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        from_listing(Path("x.yml"), listed(**machine), allow_programs=True)


@pytest.mark.parametrize("name", ["../../x", "/x", "..", "-oProxyCommand=x", "a\0b", "a\x1b[2J", ""])
def test_a_machine_s_name_is_one_of_a_directory(name: str) -> None:
    with pytest.raises(SpecError):
        from_listing(Path("x.yml"), {"_meta": {"hostvars": {name: {}}}, "netwarp": {"hosts": [name]}})


PLUGIN = """
from pathlib import Path
Path({made!r}).touch()
class VarsModule: pass
class InventoryModule: pass
class CallbackModule: pass
"""


def _plugins(place: Path, made: Path) -> None:
    """Plugins of Ansible in every folder beside which it could look for them, and a configuration that names them."""
    kinds = ("vars", "inventory", "callback", "cache", "filter", "lookup", "test", "connection", "strategy")
    for kind in kinds:
        folder = place / f"{kind}_plugins"
        folder.mkdir(exist_ok=True)
        (folder / "evil.py").write_text(PLUGIN.format(made=str(made)))
    lines = ["[defaults]", "vars_plugins_enabled = evil,host_group_vars", "stdout_callback = evil"]
    lines += [f"{kind}_plugins = {place / f'{kind}_plugins'}" for kind in kinds]
    (place / "ansible.cfg").write_text("\n".join([*lines, "[inventory]", "enable_plugins = evil,script,auto,yaml", ""]))


def _script(place: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = place / "hosts"
    path.write_text(f"#!/bin/sh\ntouch {made}\necho '{{}}'\n")
    path.chmod(0o755)
    return path


def _configured(place: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plugins and ansible.cfg beside the inventory, in the current directory; also named by the environment."""
    _plugins(place, made)
    monkeypatch.chdir(place)
    monkeypatch.setenv("ANSIBLE_CONFIG", str(place / "ansible.cfg"))
    monkeypatch.setenv("ANSIBLE_VARS_PLUGINS", str(place / "vars_plugins"))
    monkeypatch.setenv("ANSIBLE_VARS_ENABLED", "evil")
    (place / "hosts.yml").write_text(HARMLESS)
    return place / "hosts.yml"


def _current_directory(place: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    _plugins(place, made)
    monkeypatch.chdir(place)
    (place / "hosts.yml").write_text(HARMLESS)
    return place / "hosts.yml"


def _plugin_s_configuration(place: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (place / "inventory_plugins").mkdir()
    (place / "inventory_plugins" / "evil.py").write_text(PLUGIN.format(made=str(made)))
    monkeypatch.chdir(place)
    (place / "hosts.yml").write_text("plugin: evil\n")
    return place / "hosts.yml"


def _constructed(place: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (place / "hosts.yml").write_text(
        f"plugin: ansible.builtin.constructed\ncompose: {{x: \"lookup('pipe', 'touch {made}')\"}}\n"
    )
    return place / "hosts.yml"


def _templates(place: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    of = ("ansible_ssh_common_args", "ansible_user", "netwarp_role", "x")
    lines = [f"      {key}: \"{{{{ lookup('pipe', 'touch {made}') }}}}\"" for key in of]
    (place / "hosts.yml").write_text("\n".join([*HARMLESS.splitlines(), *lines, ""]))
    (place / "group_vars").mkdir()
    (place / "group_vars" / "all.yml").write_text(f"y: !unsafe \"{{{{ lookup('pipe', 'touch {made}') }}}}\"\n")
    return place / "hosts.yml"


def _folder(place: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of inventories, one of which is a program."""
    (place / "all").mkdir()
    (place / "all" / "hosts.yml").write_text(HARMLESS)
    _script(place / "all", made, monkeypatch)
    return place / "all"


RUN: tuple[Callable[[Path, Path, pytest.MonkeyPatch], Path], ...] = (
    _script, _configured, _current_directory, _plugin_s_configuration, _constructed, _templates, _folder,
)  # fmt: skip


@pytest.mark.parametrize("way", RUN)
def test_reading_an_inventory_runs_nothing(
    way: Callable[[Path, Path, pytest.MonkeyPatch], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, place = tmp_path / "made", tmp_path / "place"
    place.mkdir()
    path = way(place, made, monkeypatch)
    try:
        read_inventory(path)
    except NetwarpError as error:
        assert "\x1b" not in str(error)
    assert not made.exists()


@pytest.mark.parametrize("what", ["aliases", "a range", "a pipe"])
def test_an_inventory_that_takes_all_memory_or_time_is_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_S", 6)
    monkeypatch.setattr(module, "MOST_MEMORY", 400 << 20)
    path = tmp_path / "hosts.yml"
    if what == "aliases":
        aliases = [f"  x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 10)]
        path.write_text("\n".join([HARMLESS.rstrip(), "  vars:", "    x0: &x0 [a]", *[f"  {a}" for a in aliases], ""]))
    elif what == "a range":
        path.write_text("[netwarp]\na[1:99999999]\n")
    else:
        os.mkfifo(path)
    with pytest.raises(SpecError):
        read_inventory(path)


HELLO = b'{"event": "hello", "kernel": "6", "version": "1", "machine": "x", "uid": 0}\n'
SAYS: dict[str, bytes] = {
    "no object": HELLO + b"[1]\n5\nnull\n",
    "deep JSON": HELLO + b"[" * 100_000 + b"\n",
    "a line without an end": HELLO + b"x" * (3 << 20),
    "an answer of another kind": HELLO + b'{"answer": "files", "sizes": [1]}\n',
    "an answer to another command": HELLO + b'{"answer": "clock", "t_ns": 5}\n',
    "a path that leads out": HELLO + b'{"answer": "files", "sizes": {"../made": 5}}\n',
    "an absolute path": HELLO + b'{"answer": "files", "sizes": {"/made": 5}}\n',
    "a negative size": HELLO + b'{"answer": "files", "sizes": {"a": -5}}\n',
    "too much": HELLO + b'{"answer": "files", "sizes": {"a": 99999999999999}}\n',
    "a file that was not asked for": HELLO + b'{"event": "file", "path": "a", "size": 4}\nabcd',
    "a file larger than the limit": HELLO
    + b'{"answer": "files", "sizes": {"a": 4}}\n{"event": "file", "path": "a", "size": 99999999999999}\n' + bytes(4096),
    "another file than was asked for": HELLO
    + b'{"answer": "files", "sizes": {"a": 4}}\n{"event": "file", "path": "../../made", "size": 4}\nabcd',
    "an escape sequence": b"\x1b[2J\x1b]0;x\x07\n",
    "no hello": b'{"event": "hello"}\n',
    "a hello of lists": b'{"event": "hello", "kernel": [], "version": {}, "machine": 5, "uid": "0"}\n',
    "a lie about a command": HELLO + b'{"answer": "files", "refused": ["x"]}\n',
}  # fmt: skip


@pytest.mark.parametrize("what", SAYS)
def test_what_a_machine_answers_is_data(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A host that is no agent: one sentence, nothing outside, no waiting, no trace of a thread that died."""
    (tmp_path / "said").write_bytes(SAYS[what])
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat {tmp_path}/said; exec cat >/dev/null\n")
    python.chmod(0o755)
    monkeypatch.setattr(connection, "ANSWER_S", 1)
    monkeypatch.setattr(connection, "HELLO_S", 1)
    monkeypatch.setattr(MachineLink.ask, "__kwdefaults__", {"data": b"", "timeout_s": 1})
    to = tmp_path / "there" / "cell"
    to.mkdir(parents=True)
    machine = Machine("m", ("sh", "-c"), False, str(python), str(tmp_path), "endpoint", (), {})
    with pytest.raises((MachineError, StoreError)):
        link = MachineLink(machine)
        try:
            fetch(link, to)
        finally:
            link.close()
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("said", "python", "there")] == []
    assert "Traceback" not in capfd.readouterr().err


def test_a_capture_that_no_clock_can_have_fails_its_cell(tmp_path: Path) -> None:
    """Times are moved to our clock: those of a stranger's machine may leave what a capture can hold."""
    (tmp_path / "a.pcap").write_bytes(bytes(24) + b"\xff" * 8 + bytes(8))
    with pytest.raises(CellError, match=r"a\.pcap: has times that are none of our clock"):
        shift_capture(tmp_path / "a.pcap", tmp_path / "b.pcap", 1 << 40)
