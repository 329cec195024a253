"""Explains connections: what happened, what each end was set to, what was the network's part (docs/signalling.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from .connection import Connection
from .course import Moment, course, network_part
from .sctp.settings import InferredSetting, infer_settings
from .summary import FileSummary


@dataclasses.dataclass(frozen=True)
class Known:
    """A setting of one end, by all capture points together. low, high: in s, bytes or a count; None: not bounded.

    because: of each point, its name and why. times_s: of the packets that show it, from the first capture's start.
    """

    end: int
    name: str
    low: float | None
    high: float | None
    unit: str
    because: tuple[tuple[str, str], ...]
    times_s: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Explanation:
    """One connection, as seen at the points that captured it. point: that of the course, `points` all, `views` the
    connection in the summary of each.
    """

    connection: Connection
    point: str
    points: tuple[str, ...]
    moments: tuple[Moment, ...]
    network: tuple[str, ...]
    settings: tuple[Known, ...]
    views: tuple[tuple[FileSummary, Connection], ...] = dataclasses.field(repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """The object of `netwarp explain --json`."""
        return {
            "protocol": self.connection.protocol,
            "ends": list(self.connection.ends),
            "point": self.point,
            "points": list(self.points),
            "course": [dataclasses.asdict(moment) for moment in self.moments],
            "network": list(self.network),
            "settings": [
                dataclasses.asdict(known) | {"end": self.connection.ends[known.end]} for known in self.settings
            ],
        }


def explain(files: Sequence[FileSummary], most: int) -> list[Explanation]:
    """Explain the largest `most` connections of some capture points. One that several of them captured is explained
    once.
    """
    seen: dict[tuple[Any, ...], list[tuple[FileSummary, Connection]]] = {}
    for file in files:
        for connection in file.connections[:most]:
            seen.setdefault(_key(file, connection), []).append((file, connection))
    return [_explain(views) for views in list(seen.values())[:most]]


def _key(file: FileSummary, connection: Connection) -> tuple[Any, ...]:
    """Equal for one connection at several points: its ends, and of SCTP its tags."""
    inits = file.capture.inits
    tags = tuple(sorted(inits["tag"][inits["flow"] == connection.row].tolist()))
    return connection.protocol, *sorted(connection.ends), *sorted(set(tags))


def _explain(views: Sequence[tuple[FileSummary, Connection]]) -> Explanation:
    """The course as the data's sender saw it, where that was captured."""
    order = {"sender": 0, "middle": 1, "unknown": 2}
    file, connection = min(views, key=lambda view: order.get(str(view[1].totals.get("point")), 3))
    return Explanation(
        connection,
        file.name,
        tuple(view.name for view, _ in views),
        course(connection),
        tuple(network_part(connection)),
        tuple(_settings(views)),
        tuple(views),
    )


def _settings(views: Sequence[tuple[FileSummary, Connection]]) -> list[Known]:
    found: dict[tuple[int, str], list[tuple[FileSummary, InferredSetting]]] = {}
    for file, connection in views:
        if connection.protocol == "sctp":
            for setting in infer_settings(file.capture, connection.row):
                found.setdefault((setting.end, setting.name), []).append((file, setting))
    return [_together(end, name, each) for (end, name), each in sorted(found.items())]


def _together(end: int, name: str, each: Sequence[tuple[FileSummary, InferredSetting]]) -> Known:
    """What all points permit. Points that contradict each other leave the setting open."""
    lows = [setting.low for _, setting in each if setting.low is not None]
    highs = [setting.high for _, setting in each if setting.high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    because = tuple((file.name, setting.because) for file, setting in each)
    if low is not None and high is not None and low > high:
        low = high = None
        because = (*because, ("", "the captures contradict each other"))
    file, shown = each[0]
    times_s = tuple((time - file.first_ns) / 1e9 for time in shown.times_ns)
    return Known(end, name, low, high, shown.unit, because, times_s)
