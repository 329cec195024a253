"""Failures on the way to machines, and an agent meanwhile: real agents and programs, no machine."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from netwarp.core.errors import CellError
from netwarp.core.types import Outcome
from netwarp.engine.planning import plan_experiment
from netwarp.experiment.example import EXAMPLE_SPEC
from netwarp.sandbox.hosts.agent.sandbox import Changes
from netwarp.sandbox.hosts.backend import HostsBackend
from netwarp.sandbox.hosts.commands import LinkCommand, LinkCommands
from netwarp.sandbox.hosts.connection import HELLO_S, MachineError, MachineLink
from netwarp.sandbox.hosts.inventory import Machine
from netwarp.sandbox.hosts.placement import place
from netwarp.store.run_dir import RunDir
from support.checkout import BUILD
from support.hosts_kit import commanded, inventory

IDLE_AGENT = """
import os, select, subprocess
ours, controller = os.pipe()
os.dup2(ours, 0)
from netwarp.sandbox.hosts.agent.serve import Serving
agent = Serving()
for _ in range(3):
    subprocess.run(["true"], check=True)
assert select.select([agent.children.handle], [], [], 0)[0], "an end of a child wakes it"
agent.receive()
assert not select.select([agent.children.handle], [], [], 0)[0], "and it sleeps again"
os.write(controller, b"one\\n")
assert agent.line() == b"one"
"""


def test_an_agent_without_a_sandbox_sleeps_again_after_a_child_of_it_ended() -> None:
    done = subprocess.run([sys.executable, "-c", IDLE_AGENT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_late_answer_is_nobodys(tmp_path: Path) -> None:
    """An agent that is stopped for a while: the next command does not get the answer to the last."""
    pids, python = tmp_path / "pids", tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho $$ > {pids}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    machine = Machine("m", ("sh", "-c"), False, str(python), str(tmp_path), "endpoint", (), {})
    connection = MachineLink(machine)
    agent = int(pids.read_text())
    try:
        assert connection.ask("clock")["answer"] == "clock"
        os.kill(agent, signal.SIGSTOP)
        with pytest.raises(MachineError, match="no answer to `clock`"):
            connection.ask("clock", timeout_s=0.2)
        assert connection.ended
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent, signal.SIGCONT)
        with pytest.raises(MachineError):
            connection.ask("finish")
    finally:
        connection.close()


def agent_here(folder: Path, cables: dict[str, tuple[str, str]] | None = None) -> MachineLink:
    """A real agent of this machine."""
    return MachineLink(Machine("m", ("sh", "-c"), False, sys.executable, str(folder), "endpoint", (), cables or {}))


def test_what_an_agent_says_is_taken(tmp_path: Path) -> None:
    """Of interfaces that are there, whatever their drivers leave out, and of one that is not."""
    interfaces = [*os.listdir("/sys/class/net"), "absent0"]
    connection = agent_here(tmp_path)
    try:
        checked = connection.ask("check", interfaces=interfaces, directory=str(tmp_path), room_bytes=1, timeout_s=20)
        assert set(checked["interfaces"]) == set(interfaces) - {"absent0"}
        assert any("absent0" in problem for problem, _ in checked["problems"])
        assert connection.ask("missing", features=["congestion:none"], timeout_s=20)["missing"] == ["congestion:none"]
        with pytest.raises(MachineError, match="No such file"):
            connection.ask("get", path="absent", timeout_s=20)
    finally:
        connection.close()


def test_an_answer_that_is_none_ends_the_connection_at_once(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("""#!/bin/sh\necho '{"answer": "check", "problems": 3}'\nexec cat >/dev/null\n""")
    python.chmod(0o755)
    began = time.monotonic()
    with pytest.raises(MachineError, match=r"sends what no agent of netwarp does: .*problems"):
        MachineLink(Machine("m", ("sh", "-c"), False, str(python), str(tmp_path), "endpoint", (), {}))
    assert time.monotonic() - began < HELLO_S


def test_a_directory_that_cannot_be_watched_is_named_and_nothing_stays_open(tmp_path: Path) -> None:
    def watching() -> int:
        """Descriptors of that kind alone: others of this process come and go."""
        targets = []
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                targets.append(os.readlink(descriptor))
        return targets.count("anon_inode:inotify")

    before = watching()
    with pytest.raises(FileNotFoundError, match=r"inotify_add_watch.*absent"):
        Changes(str(tmp_path / "absent"))
    assert watching() == before


def test_a_machine_that_does_not_answer_before_a_cell_fails_that_cell(tmp_path: Path) -> None:
    spec = tmp_path / "example.toml"
    spec.write_text(EXAMPLE_SPEC)
    cell = plan_experiment(spec).cells[0]
    unreachable = {"ansible_ssh_executable": "/bin/false"}
    backend = HostsBackend(BUILD, inventory(a={**unreachable, "netwarp_cables": {"x1": "b:x1"}}, b=unreachable))
    for machine, interface in place(cell, backend.inventory).ends.values():
        backend.held.interfaces[machine] = {interface: {"mac": "02:00:00:00:00:01", "ifindex": 3}}
    run = RunDir(tmp_path / "run")
    run.partial.mkdir(parents=True)
    outcome = backend.run_cell(cell, run)
    assert outcome.outcome is Outcome.FAILED
    assert re.fullmatch(r"machine [ab]: the connection ended", outcome.reason)
    assert run.cell(cell.id).read_outcome() == outcome


def test_what_a_command_says_need_not_be_utf_8(tmp_path: Path) -> None:
    cell, commands = commanded(tmp_path, "#!/bin/sh\nprintf 'port \\344\\n'\n")
    over = threading.Event()
    with commands.play(cell, time.time_ns()) as played:
        until = time.monotonic() + 300
        while not played and time.monotonic() < until:
            over.wait(0.01)
    assert played
    cell, commands = commanded(tmp_path, "#!/bin/sh\nprintf 'no port \\344\\n' >&2; exit 3\n")
    with (
        pytest.raises(CellError, match="ended with status 3: no port \N{REPLACEMENT CHARACTER}"),
        commands.play(cell, time.time_ns()),
    ):
        over.wait(0.3)


def test_any_error_of_a_command_fails_the_cell(tmp_path: Path) -> None:
    """subprocess raises ValueError for a word with a null byte."""
    cell, _ = commanded(tmp_path, "", down_ns=0)
    commands = LinkCommands({"p1": LinkCommand(("./port\0", "down"), ("./port\0", "up"))}, tmp_path)
    with pytest.raises(CellError, match="a command for a link: ValueError: "), commands.play(cell, time.time_ns()):
        threading.Event().wait(0.3)
