"""The due time and the size of each message of a flow: by an interval (apps/traffic/schedule.h), by the cell's list
(core/messages.py), or so long after a message of the other end was delivered.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..captures.native import Ints
from ..core.types import Flow

NEVER = int(np.iinfo(np.int64).max)


@dataclasses.dataclass(frozen=True, eq=False)
class Timetable:
    """Times in ns from T0. connected_ns: when the sending application was connected; None: it is not known. at_ns,
    sizes: of the messages that the cell lists; None: it lists none. left_out: those that were due before the connection
    was up. peer_ns: the deliveries of the other end's messages, for messages that answer them.
    """

    flow: Flow
    connected_ns: int | None
    at_ns: Ints | None = None
    sizes: Ints | None = None
    left_out: int = 0
    peer_ns: Ints | None = None

    @property
    def timed(self) -> bool:
        """True if there are due times and they are known; without them a message is due when it is first sent."""
        return self.connected_ns is not None and (self.at_ns is not None or self._interval_ns is not None)

    @property
    def _interval_ns(self) -> int | None:
        interval = self.flow.sender_options.get("interval_ns")
        return None if interval is None else int(interval)

    @property
    def _burst(self) -> Ints:
        """Sizes of the messages of a burst."""
        sizes = str(self.flow.sender_options.get("burst_bytes") or self.flow.message_bytes)
        return np.array(sizes.split(","), dtype=np.int64)

    @property
    def _thinks(self) -> bool:
        return getattr(self.flow.messages, "times", "") == "think"

    def ends(self, upto_bytes: int) -> Ints:
        """The last byte's number + 1 of each message that begins within the first upto_bytes bytes of the flow, whose
        total cuts the last one short.
        """
        if self.sizes is not None:
            sizes = self.sizes
        else:
            burst = self._burst
            sizes = np.resize(burst, len(burst) * (1 + upto_bytes // int(burst.sum())))
        ends: Ints = np.cumsum(sizes)
        begun = ends - sizes < upto_bytes
        return ends[begun] if self.flow.total_bytes is None else np.minimum(ends[begun], self.flow.total_bytes)

    def due(self, count: int) -> Ints | None:
        """The due times of the first messages, as many as there are, NEVER where it was never due; None: not known."""
        if not self.timed or self.connected_ns is None:
            return None
        start = self.flow.start_ns
        if self.at_ns is not None:
            if self._thinks:
                return self._answers()[:count]
            return start + self.at_ns[self.left_out : self.left_out + count]
        step = self._interval_ns
        assert step is not None
        first = start + -(-max(0, self.connected_ns - start) // step) * step
        return first + np.arange(count) // len(self._burst) * step

    def due_by(self, end_ns: int) -> Ints | None:
        """The due times of all messages that were due by then, before the flow's stop (at which nothing is sent any
        more); None: not known.
        """
        if not self.timed:
            return None
        if self.flow.stop_ns is not None:
            end_ns = min(end_ns, self.flow.stop_ns - 1)
        if self.at_ns is not None:
            due = self.due(len(self.at_ns))
            assert due is not None
            return due[due <= end_ns]
        first = self.due(1)
        assert first is not None and self._interval_ns is not None
        bursts = max(0, (end_ns - int(first[0])) // self._interval_ns + 1)
        due = self.due(bursts * len(self._burst))
        total = self.flow.total_bytes
        return due if due is None or total is None else due[: len(self.ends(total))]

    def _answers(self) -> Ints:
        """A message is due when its peer's was delivered and the time to think has passed, after the one before it."""
        assert self.at_ns is not None and self.connected_ns is not None
        peer = np.sort(self.peer_ns if self.peer_ns is not None else np.zeros(0, dtype=np.int64))
        asks = not self.flow.is_back
        known = peer[peer != NEVER][: len(self.at_ns) - asks]
        due = np.full(len(self.at_ns), NEVER, dtype=np.int64)
        due[asks : asks + len(known)] = known + self.at_ns[asks : asks + len(known)]
        if asks and len(due):
            due[0] = self.connected_ns
        return np.maximum.accumulate(due)
