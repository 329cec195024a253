"""The machines of an inventory, held for a run: leased, looked at, tried with a link, before any cell."""

from __future__ import annotations

import contextlib
import contextvars
import getpass
import os
import platform
import queue
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from ...core.inside import InsidePath
from ...core.limits import limits
from ...core.scratch import scratch
from ...core.types import Problem
from ...store.init_records import End
from ...store.ndjson import last
from ...store.run_dir import CellDir
from ...testbed.compile import Clock, compile_cell
from ...testbed.readback import verify
from ...testbed.steps import to_text
from ..cell_verdict import records_left
from ..netns import PROBE
from .connection import GONE, Events, MachineError, MachineLink
from .inventory import Inventory
from .placement import in_words

ROOM_BYTES = 100_000_000
TRIED_S = 60.0
"""For the link that is tried on a machine."""
NO_ROOT = "ansible_become: true, with sudo that asks for no password"
BARE = ("qdisc:netem",)
"""Needed by every cell."""
T = TypeVar("T")


def on_each(names: Iterable[str], task: Callable[[str], T]) -> list[T | MachineError]:
    """Do it for all of these machines at once (the task takes a name); a MachineError is the machine's result."""

    def attempt(name: str) -> T | MachineError:
        try:
            return task(name)
        except MachineError as error:
            return error

    every = list(names)
    with ThreadPoolExecutor(max(1, len(every))) as pool:
        # the limits that hold here hold there
        tasks = [pool.submit(contextvars.copy_context().run, attempt, name) for name in every]
        return [task.result() for task in tasks]


def checked(results: Sequence[object]) -> None:
    """Raises the first MachineError among them."""
    for result in results:
        if isinstance(result, MachineError):
            raise result


def put_cell(connection: MachineLink, token: str, steps: str, programs: Mapping[str, Path]) -> None:
    """A directory for a cell on the machine, with its programs (name there -> file here) and its steps."""
    connection.ask("cell", token=token, directory=connection.machine.directory)
    for path, built in programs.items():
        connection.put(path, built.read_bytes(), executable=True)
    connection.put("steps.txt", steps.encode())


def fetch(connection: MachineLink, to: Path) -> Path:
    """Every file that the cell left on the machine."""
    sizes = connection.ask("files")["sizes"]
    if sum(sizes.values()) > limits().capture_bytes:
        raise MachineError(connection.machine.name, f"left files of {limits().beyond('capture_bytes')}")
    for path in sizes:
        target = InsidePath.at(to) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        connection.get(path, target)
    for name in ("capture", "apps"):
        (to / name).mkdir(exist_ok=True)
    return to


def ask_machines(
    inventory: Inventory, features: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[str]], list[Problem]]:
    """Of each machine that answers the features that its kernel has not; and the problems of all. No machine is taken.

    features: by machine, those to try.
    """
    absent: dict[str, list[str]] = {}

    def ask(name: str) -> list[Problem]:
        connection = MachineLink(inventory.machines[name])
        try:
            if connection.hello["uid"] != 0:
                raise MachineError(name, "is not root there", NO_ROOT)
            problems = look_at(connection)
            absent[name] = connection.ask("missing", features=list(features[name]))["missing"]
            return problems
        finally:
            connection.close()

    problems: list[Problem] = []
    for result in on_each(features, ask):
        problems += [result.problem] if isinstance(result, MachineError) else result
    return absent, problems


def look_at(connection: MachineLink, known: dict[str, dict[str, dict[str, Any]]] | None = None) -> list[Problem]:
    """The reason why a machine or its interfaces cannot be used; `known` gets what is known of these. Nothing is
    changed.
    """
    machine = connection.machine
    said = connection.ask(
        "check", interfaces=sorted(machine.cables), directory=machine.directory, room_bytes=ROOM_BYTES
    )
    if known is not None:
        known[machine.name] = said["interfaces"]
    return [Problem(f"machine {machine.name}: {what}", remedy) for what, remedy in said["problems"]]


class HeldMachines:
    """Machines that this process holds until `release`. launcher: the programs that every cell needs there."""

    def __init__(self, inventory: Inventory, token: str, launcher: Mapping[str, Path]) -> None:
        self.inventory = inventory
        self.token = token
        self.launcher = launcher
        self.interfaces: dict[str, dict[str, dict[str, Any]]] = {}
        """Machine -> interface -> what its agent says of it."""
        self.kernels: dict[str, tuple[str, str, str]] = {}
        """Machine -> (release, version, processor)."""
        self.left: list[str] = []
        """The leftovers of a killed run that could not be put back."""
        self._tried: dict[str, dict[str, bool]] = {}
        """Machine -> feature -> whether its kernel has it."""
        self._leases: list[MachineLink] = []
        self._owner = os.getpid()

    def take(self) -> list[Problem]:
        """Hold every machine, and look whether cells can run there; all problems of all. Nothing is changed."""
        problems: list[Problem] = []
        for result in on_each(self.inventory.machines, self._lease):
            problems += [result.problem] if isinstance(result, MachineError) else result
        processors = {kernel[2] for kernel in self.kernels.values()}
        if processors - {platform.machine()}:
            problems.append(Problem(f"machines are {', '.join(sorted(processors))}", "use x86-64 machines"))
        if not problems:
            for result in on_each(self.inventory.machines, self._probe):
                problems += [result.problem] if isinstance(result, MachineError) else result
        if problems:
            self.release()
        return problems

    def release(self) -> None:
        """Give the machines away."""
        if os.getpid() != self._owner:
            return  # a worker: the machines are its parent's
        leases, self._leases = self._leases, []
        for lease in leases:
            with contextlib.suppress(MachineError):
                lease.close()

    def absent(self, needs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Of these features (by machine) those that its kernel has not; each is tried once. Raises MachineError."""

        def ask(name: str) -> None:
            tried = self._tried.setdefault(name, {})
            unknown = [feature for feature in needs[name] if feature not in tried]
            if unknown:
                connection = MachineLink(self.inventory.machines[name])
                try:
                    missing = connection.ask("missing", features=unknown)["missing"]
                finally:
                    connection.close()
                tried.update({feature: feature not in missing for feature in unknown})

        checked(on_each(needs, ask))
        return {name: [each for each in features if not self._tried[name][each]] for name, features in needs.items()}

    def _lease(self, name: str) -> list[Problem]:
        machine = self.inventory.machines[name]
        connection = MachineLink(machine)
        self._leases.append(connection)
        hello = connection.hello
        self.kernels[name] = (hello["kernel"], hello["version"], hello["machine"])
        who = f"{getpass.getuser()} on {platform.node()}, process {os.getpid()}, since {time.strftime('%F %T %Z')}"
        self.left += connection.ask("lease", token=self.token, who=who)["left"]
        problems = look_at(connection, self.interfaces)
        for feature in connection.ask("missing", features=list(BARE))["missing"]:
            what, remedy = in_words(feature)
            problems.append(Problem(f"machine {name}: its kernel has not {what}", remedy))
        return problems

    def _probe(self, name: str) -> list[Problem]:
        """Two hosts and a shaped link in namespaces there, set up and read back; nothing is sent."""
        compiled = compile_cell(PROBE, Clock(sandbox="namespaces", t0_after_ready_ns=1))
        events: Events = queue.SimpleQueue()
        connection = MachineLink(self.inventory.machines[name], events)
        try:
            put_cell(connection, self.token, to_text(compiled.steps), self.launcher)
            connection.ask("start", interfaces=[], flows=[])
            while (event := events.get(timeout=TRIED_S)[1]).get("event") not in ("ended", GONE):
                pass
            with scratch("netwarp-machine-") as there:
                (there / "cell").mkdir()
                left = fetch(connection, there / "cell")
                records = records_left(CellDir(left).init_log)
                console = (left / "console.txt").read_text() if (left / "console.txt").exists() else ""
        except queue.Empty:
            return [Problem(f"machine {name}: a link that is tried there does not end", "look at its load")]
        finally:
            connection.close()
        end = last(records, End)
        if end is None:
            said = (console.strip().splitlines() or [f"{event}"])[-1]
            return [Problem(f"machine {name}: cell-init cannot run there ({said})", "it needs root and Linux 5.13")]
        if end.reason != "completed":
            step = compiled.steps[(end.step or 2) - 2]
            text = f"machine {name}: its kernel refuses `{step.command or step.verb}` ({end.message})"
            return [Problem(text, "boot a newer kernel")]
        return [
            Problem(f"machine {name}: {check.check}: {check.detail}", "boot another kernel")
            for check in verify(compiled, records)[0]
            if not check.ok
        ]
