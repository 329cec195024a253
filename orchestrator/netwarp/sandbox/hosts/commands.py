"""Commands of the user's own that take a link down and up (a switch port, a power plug), in place of `ip link`."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import CellError
from ...core.types import Cell, Event

LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class LinkCommand:
    """Words of the program that takes a link down, and of the one that takes it up again."""

    down: tuple[str, ...]
    up: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """A command that ran: for which link and event, when it was due, began and ended (ns from T0, our clock)."""

    link: str
    action: str
    at_ns: int
    began_ns: int
    ended_ns: int


def events_of(cell: Cell, links: Mapping[str, object]) -> Iterator[tuple[Event, str]]:
    """The `link` faults of these links, and their repairs: (event, "down" or "up") in the order of time."""
    down: set[str] = set()
    for event in sorted(cell.timeline, key=lambda each: each.at_ns):
        if event.action == "link" and event.link in links:
            down.add(event.name)
            yield event, "down"
        elif event.action == "repair" and event.name in down:
            down.discard(event.name)
            yield event, "up"


def as_cell_error(error: Exception) -> CellError:
    """An error of a command, of whatever kind, as the reason why a cell failed."""
    if isinstance(error, CellError):
        return error
    return CellError(f"a command for a link: {type(error).__name__}: {error}")


class LinkCommands:
    """Those of an inventory: link -> commands. They run here, in the inventory's directory."""

    def __init__(self, commands: Mapping[str, LinkCommand], directory: Path) -> None:
        self.commands = commands
        self.directory = directory

    @contextlib.contextmanager
    def play(self, cell: Cell, t0_ns: int) -> Iterator[list[Played]]:
        """While this lasts, run what the cell's timeline asks for, each at its time. What was taken down is taken up
        again at the end, whatever happens. Raises CellError: a command failed.
        """
        played: list[Played] = []
        down: dict[str, Event] = {}
        errors: list[CellError] = []
        over = threading.Event()
        todo = list(events_of(cell, self.commands))

        def work() -> None:
            for event, action in todo:
                if over.wait(max(0.0, (t0_ns + event.at_ns - time.time_ns()) / 1e9)):
                    return
                try:
                    if action == "down":
                        down[event.link] = event
                    played.append(self._run(event, action, t0_ns))
                    if action == "up":
                        del down[event.link]
                except Exception as error:  # noqa: BLE001  whatever it is, the rest of the faults do not happen
                    errors.append(as_cell_error(error))
                    return

        thread = threading.Thread(target=work, daemon=True)
        if todo:
            thread.start()
        try:
            yield played
        finally:
            over.set()
            if todo:
                thread.join()
            for event in down.values():
                try:
                    self._run(event, "up", t0_ns)
                except Exception as error:  # noqa: BLE001  the other links are to be taken up all the same
                    errors.append(as_cell_error(error))
        if errors:
            raise errors[0]

    def _run(self, event: Event, action: str, t0_ns: int) -> Played:
        words = getattr(self.commands[event.link], action)
        began_ns = time.time_ns() - t0_ns
        what = f"the command for link {event.link} {action} ({shlex.join(words)})"
        try:
            done = subprocess.run(
                words, cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", check=False, timeout=LIMIT_S,
                env={**os.environ, "NETWARP_LINK": event.link, "NETWARP_ACTION": action},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CellError(f"{what}: {error}") from error
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it says nothing"]
            raise CellError(f"{what} ended with status {done.returncode}: {said[-1]}")
        return Played(event.link, action, event.at_ns, began_ns, time.time_ns() - t0_ns)
