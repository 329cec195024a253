"""The events of a cell's machines, until all of them have told what is waited for."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator

from .connection import GONE, Event, MachineError

Events = queue.SimpleQueue[tuple[str, Event]]
"""(machine, event) in the order in which they came."""


class Watch:
    """The events of each machine so far."""

    def __init__(self, events: Events, progress: Callable[[float], None]) -> None:
        self._events = events
        self._progress = progress
        self._seen: dict[str, set[str]] = {}
        self.ended: set[str] = set()

    def until(self, what: str, machines: set[str], limit_s: float) -> bool:
        """Wait for an event of each of them; False where a machine has ended before. Raises MachineError: one has gone,
        or says nothing for too long."""
        deadline = time.monotonic() + limit_s
        while True:
            seen = self._seen.setdefault(what, set())
            if machines <= seen | self.ended:
                return machines <= seen or what == "ended"
            if what == "waiting" and self.ended:
                return False
            for name, event in self._take(deadline, what, machines - seen):
                if event["event"] == GONE:
                    raise MachineError(name, "the connection ended in the middle of the cell", "is it up?")
                if event["event"] == "time":
                    self._progress(event["seconds"])
                if event["event"] == "ended":
                    self.ended.add(name)
                self._seen.setdefault(event["event"], set()).add(name)

    def _take(self, deadline: float, what: str, missing: set[str]) -> Iterator[tuple[str, Event]]:
        try:
            yield self._events.get(timeout=max(0.01, deadline - time.monotonic()))
        except queue.Empty:
            text = f"`{what}` did not come"
            raise MachineError(", ".join(sorted(missing)), text, "is it overloaded?") from None
