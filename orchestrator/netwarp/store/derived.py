"""series.json and exchange.json: the data that the analysis keeps of a cell for figures over time and event tables.
docs/formats.md defines each field.
"""

from __future__ import annotations

import msgspec

from ..core.frozen import Frozen

Sampled = dict[str, list[float | None]]
"""Columns of samples: `t_s`, and others of the same length."""


class FaultSpan(Frozen, frozen=True):
    """A fault as figures shade it; one without a repair lasts to the end of the cell."""

    name: str
    action: str
    link: str
    from_s: float
    to_s: float


class CellEvent(Frozen, frozen=True):
    """An event of the timeline (flow ""), of a flow's packets, or of its sender's socket, in words."""

    t_s: float
    flow: str
    kind: str
    text: str


class FlowSeries(Frozen, frozen=True, omit_defaults=True):
    """The series of a flow. Lists are bins from T0; paths, samples, states and trace are by path.

    samples: the kernel's; "": those of the whole association. states: (from s, state) for each change.
    """

    goodput_bit_s: tuple[float, ...]
    paths: dict[str, dict[str, list[float]]]
    samples: dict[str, Sampled]
    states: dict[str, list[tuple[float, str]]]
    packets_s: tuple[float, ...] = ()
    data_packets_s: tuple[float, ...] = ()
    control_packets_s: tuple[float, ...] = ()
    trace: dict[str, Sampled] = msgspec.field(default_factory=dict)


class CellSeries(Frozen, frozen=True):
    """series.json."""

    bin_s: float
    duration_s: float
    flows: dict[str, FlowSeries]
    faults: list[FaultSpan]
    events: list[CellEvent]


class WindowSeries(Frozen, frozen=True):
    """A number for each window of time. subject: as in measurements.csv, the column flow. None: nothing to measure."""

    subject: str
    series: str
    unit: str
    values: list[float | None]


class CellWindows(Frozen, frozen=True):
    """windows.json: windows from T0 on, that lie in the cell's duration."""

    window_s: float
    series: list[WindowSeries]


class PageObject(Frozen, frozen=True):
    """An object of a page, times in s from T0 by the client's captures. object 0: the HTML. port: the client's.

    opened_s: first packet of its connection. first_s, complete_s: arrival of its first and of its last missing byte.
    delivered_s: when all before it on its connection or stream was there too. told_s: the client's word for that.
    waited_for: the object whose packet came last of those before it, if it had to wait (its own: a piece of it).
    """

    page: int
    object: int
    port: int
    stream: int
    bytes: int
    opened_s: float
    requested_s: float | None
    first_s: float | None
    complete_s: float | None
    delivered_s: float | None
    told_s: float
    waited_for: int | None = None


Pages = dict[str, list[PageObject]]
"""pages.json: flow -> its objects, in the order of pages and numbers. There is none where no flow is pages."""


class NearPacket(Frozen, frozen=True):
    """A packet, or an event of the timeline (node ""), near moments of a flow's first fault.

    moments: moment -> position relative to it: -1 is the last before, 0 the first at or after it.
    """

    t_s: float
    event: str
    node: str
    link: str
    path: str
    type: str
    number: int | None
    bytes: int | None
    note: str
    moments: dict[str, int]


Exchange = dict[str, list[NearPacket]]
"""exchange.json: flow -> its packets, in the order of time."""
