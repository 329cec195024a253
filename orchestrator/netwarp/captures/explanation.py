"""Explains connections: what happened, what each end was set to, what was the network's part (docs/signalling.md)."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.numbers import in_short
from ..core.units import counted
from .connection import Connection
from .course import Moment, course, network_part
from .inference import InferredSetting
from .sctp.association import Association
from .sctp.message_delays import message_delays
from .sctp.mtu_hole import mtu_hole
from .sctp.settings import infer_settings
from .summary import FileSummary
from .tcp.settings import infer_tcp_settings


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
    streams: tuple[dict[str, Any], ...]
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
            "streams": list(self.streams),
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
        ports_again: Counter[tuple[Any, ...]] = Counter()
        for connection in file.connections[:most]:
            key = _key(file, connection)
            seen.setdefault((*key, ports_again[key]), []).append((file, connection))
            ports_again[key] += 1  # another connection of the same ends
    return [_explain(views) for views in list(seen.values())[:most]]


def _key(file: FileSummary, connection: Connection) -> tuple[Any, ...]:
    """Equal for one connection at several points: its ends, and of SCTP its tags. The same ends may have several, the
    larger first.
    """
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
        (*network_part(connection), *_holes(file, connection)),
        tuple(_settings(views)),
        tuple(_streams(views, connection)),
        tuple(views),
    )


def _streams(views: Sequence[tuple[FileSummary, Connection]], shown: Connection) -> Iterator[dict[str, Any]]:
    """The rows of the analyser's table of streams; of each direction and stream the view that shows its head-of-line
    delay. message_delay_mean_s, message_delay_max_s: where both ends were captured.
    """
    if shown.protocol != "sctp":
        return
    first_way = int(shown.totals["data_direction"])
    seen = {way: _seen_from(views, way) for way in (0, 1)}
    for row in shown.tables["streams"]:
        way = first_way if row["direction"] == "data" else 1 - first_way
        waited, delays = seen[way]
        mean, longest = delays.get(row["stream"], (None, None))
        at_receiver = waited.get(row["stream"], {})
        yield {
            **row, "direction": way, "message_delay_mean_s": mean, "message_delay_max_s": longest, **at_receiver
        }  # fmt: skip


def _seen_from(
    views: Sequence[tuple[FileSummary, Connection]], way: int
) -> tuple[dict[int, dict[str, Any]], dict[int, tuple[float, float]]]:
    """Stream -> what the receiver's view of a direction says of the head-of-line delay; stream -> mean and longest
    delay of its messages, where both ends were captured.
    """
    both = [Association(file.capture, each.row, direction=way) for file, each in views]
    at = {each.point: (each, view) for each, (_, view) in zip(both, views, strict=True)}
    if "receiver" not in at:
        return {}, {}
    receiver, view = at["receiver"]
    name = "data" if int(view.totals["data_direction"]) == way else "back"
    waited = {
        row["stream"]: {key: value for key, value in row.items() if key.startswith("hol_")}
        for row in view.tables["streams"]
        if row["direction"] == name
    }
    return waited, (message_delays(at["sender"][0], receiver) or {}) if "sender" in at else {}


def _holes(file: FileSummary, connection: Connection) -> Iterator[str]:
    """Path-MTU black holes of an association, in words."""
    if connection.protocol != "sctp":
        return
    for direction in (0, 1):
        hole = mtu_hole(Association(file.capture, connection.row, direction=direction))
        if hole is None:
            continue
        since, until = (in_short((time_ns - file.first_ns) / 1e9, "s") for time_ns in (hole.from_ns, hole.to_ns))
        told = "no ICMP is in the capture" if not hole.icmp else f"{counted(hole.icmp, 'packet')} of ICMP came"
        yield (
            f"large packets of {connection.ends[direction]} vanish, small ones pass: from {since} to {until} "
            f"{counted(hole.lost, 'packet')} with {hole.lost_bytes} B of data and more were lost, while {hole.passed} "
            f"with {hole.passed_bytes} B at most arrived: a path-MTU black hole ({told})"
        )


def _settings(views: Sequence[tuple[FileSummary, Connection]]) -> list[Known]:
    found: dict[tuple[int, str], list[tuple[FileSummary, InferredSetting]]] = {}
    for file, connection in views:
        infer = infer_settings if connection.protocol == "sctp" else infer_tcp_settings
        for setting in infer(file.capture, connection.row):
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
