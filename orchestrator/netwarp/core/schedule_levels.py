"""A factor whose levels are packets: every set of packets that is lost, doubled or late. docs/decisions/0014."""

from __future__ import annotations

import math
from typing import Literal

from .frozen import Frozen
from .link_types import DirectionName

ScheduleAction = Literal["drop", "duplicate", "reorder"]
UNDISTURBED = "none"
"""The first level: no packet is touched."""
BETWEEN = " + "
"""Between the packets of a level's name."""
ENDINGS: dict[ScheduleAction, str] = {"drop": "", "duplicate": " twice", "reorder": " late"}
"""The words that a level's name adds to a packet's own name."""


class PacketSchedule(Frozen, frozen=True):
    """The packets that are touched: of these directions of links ("p1.forward"; empty: all), the first so many that
    come to them from a time on, and up to so many of them together.
    """

    action: ScheduleAction
    of: tuple[str, ...]
    first: int
    together: int = 1
    from_ns: int = 0

    @property
    def most(self) -> int:
        """The most schedules that one undisturbed cell can have."""
        return sum(math.comb(self.first, size) for size in range(1, self.together + 1))


def packets_of_level(level: str) -> int:
    """The number of packets that a level of a schedule touches."""
    return 0 if level == UNDISTURBED else level.count(BETWEEN) + 1


class PacketPosition(Frozen, frozen=True):
    """A packet of a cell that ran: the how manieth of a direction of a link, when it was sent (from T0), its name
    within the cell, who sends it.

    gap_ns: to the next packet of the direction; None: it is the last one.
    """

    link: str
    direction: DirectionName
    number: int
    t_ns: int
    name: str
    node: str
    gap_ns: int | None = None

    @property
    def place(self) -> tuple[str, str, int]:
        """Its mark among all packets of the cell."""
        return self.link, self.direction, self.number
