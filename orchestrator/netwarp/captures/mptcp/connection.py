"""One MPTCP connection: its subflows, the data that each carried, and the data that was sent again on another
subflow.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.wire import (
    ADD_ADDR,
    DSS,
    FIN,
    MP_CAPABLE,
    MP_FAIL,
    MP_JOIN,
    MP_PRIO,
    REMOVE_ADDR,
    RST,
    SYN,
    mptcp_subtype_name,
)
from ..capture import Capture, address_text, rows_of_flow, rows_of_flows
from ..native import Bools, Floats, Ints, Rows
from ..time_spans import rate_bit_s
from .data_level import DataLevel, data_level, places_by
from .subflows import Lifetime, SubflowGroup, lifetimes

MOST = 500  # Events of one kind that are listed

Event = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class MptcpConnection:
    """The analysis of one connection; docs/metrics.md, "MPTCP", defines every name.

    flows: its subflows, as rows of the flow table (in a summary: numbers of flows). direction: of the analysed data (0:
    from the end that opened the connection). complete: the handshake is in the capture; otherwise its subflows could
    not be assigned to one connection. version: 0 or 1. totals: numbers, None if there is nothing to measure. series:
    name -> (seconds, values). events: {t_s, what, subflow, ...}, sorted by time. tables: {"subflows": one row per
    subflow}. number: rank by size within a summary.
    """

    flows: tuple[int, ...]
    direction: int
    complete: bool
    version: int
    totals: dict[str, Any]
    series: dict[str, tuple[Floats, Floats]] = dataclasses.field(compare=False)
    events: list[Event]
    tables: dict[str, list[dict[str, Any]]]
    number: int = 1

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md."""
        names = ("flows", "complete", "version", "direction", "totals", "events", "tables")
        return {"connection": self.number} | {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True)
class _Data:
    """Segments with payload of one direction, each with its subflow and its position in the data stream."""

    rows: Rows
    subflow: Ints
    level: DataLevel

    @functools.cached_property
    def places(self) -> dict[int, Ints]:
        """The rows of each subflow that has any."""
        return {int(self.subflow[mine[0]]): mine for mine in places_by(self.subflow)}

    def of(self, subflow: int) -> Ints:
        """The rows of a subflow."""
        return self.places.get(subflow, np.empty(0, dtype=np.int64))


def make_connection(capture: Capture, group: SubflowGroup, direction: int | None, t0_ns: int) -> MptcpConnection:
    """Analyse a group of subflows. direction: None takes the one with more new data."""
    segments = rows_of_flows(capture, "segments", group.flows)
    both = [_data(segments, group, way) for way in (0, 1)]
    if direction is None:
        direction = int(both[1].level.new_bytes.sum() > both[0].level.new_bytes.sum())
    data = both[direction]
    names = [_name(capture, flow) for flow in group.flows]
    lives = lifetimes(capture, group)
    seconds = (data.rows["time_ns"] - t0_ns) / 1e9
    series = {}
    for number, mine in data.places.items():
        series[f"sent_bytes[{names[number]}]"] = (
            seconds[mine],
            np.cumsum(data.rows["payload_bytes"][mine].astype(np.int64)).astype(np.float64),
        )
    fresh = data.level.new_bytes > 0
    if fresh.any():
        series["new_bytes"] = (seconds[fresh], np.cumsum(data.level.new_bytes[fresh]).astype(np.float64))
    return MptcpConnection(
        flows=group.flows,
        direction=direction,
        complete=group.complete,
        version=group.version,
        totals=_totals(capture, group.flows, data, both[1 - direction], lives),
        series=series,
        events=_events(capture, group, data, names, t0_ns),
        tables={
            "subflows": [
                _subflow(capture, group, data, number, name, lives[number], t0_ns) for number, name in enumerate(names)
            ]
        },
    )


def _name(capture: Capture, flow: int) -> str:
    """Both ends of a subflow; the end that opened it comes first."""
    row = capture.flows[flow]
    end = int(row["path_direction"])
    ends = [capture.address(int(row["path"]), end ^ side) for side in (0, 1)]
    return ">".join(f"{address}:{port}" for address, port in zip(ends, row["port"].tolist(), strict=True))


def _data(segments: Rows, group: SubflowGroup, direction: int) -> _Data:
    flows = np.array(group.flows)
    order = np.argsort(flows)
    number = order[np.searchsorted(flows[order], segments["flow"])]
    keep = (segments["payload_bytes"] > 0) & (segments["direction"] ^ np.array(group.turned)[number] == direction)
    return _Data(segments[keep], number[keep], data_level(segments[keep], "flow"))


def _totals(
    capture: Capture, flows: Sequence[int], data: _Data, back: _Data, lives: tuple[Lifetime, ...]
) -> dict[str, float | int | None]:
    new, rows = data.level.new_bytes, data.rows
    again = data.level.elsewhere_bytes
    arrivals = rows["time_ns"][new > 0]
    span = int(arrivals[-1] - arrivals[0]) if len(arrivals) else 0
    carriers = data.subflow[new > 0]
    options = rows_of_flows(capture, "mptcp_options", flows)
    return {
        "subflows": len(flows),
        "subflows_with_data": len(data.places),
        "payload_bytes": int(rows["payload_bytes"].astype(np.int64).sum()),
        "new_bytes": int(new.sum()),
        "new_bytes_other_direction": int(back.level.new_bytes.sum()),
        "unmapped_bytes": int(rows["payload_bytes"][~data.level.known].astype(np.int64).sum()),
        "goodput_bit_s": rate_bit_s(int(new[np.flatnonzero(new > 0)[1:]].sum()), span),
        "retransmitted_segments": int(rows["is_retransmission"].sum()),
        "reinjected_segments": int(data.level.elsewhere.sum()),
        "reinjected_bytes": int(again.sum()),
        "subflow_changes": int((np.diff(carriers) != 0).sum()),
        "addresses_told": int(((options["subtype"] == ADD_ADDR) & (options["flags"] & 1 == 0)).sum()),
        "fails": int((options["subtype"] == MP_FAIL).sum()),
        "subflows_opened": sum(life.asked_ns is not None for life in lives),
        "subflows_joined": sum(life.joined_ns is not None for life in lives[1:]),
        "subflows_lost": sum(life.lost_ns is not None for life in lives),
    }


def _subflow(
    capture: Capture, group: SubflowGroup, data: _Data, number: int, name: str, life: Lifetime, t0_ns: int
) -> dict[str, Any]:
    flow, mine = group.flows[number], data.of(number)
    rows, level = data.rows[mine], data.level
    options = rows_of_flow(capture, "mptcp_options", flow)
    joins = options[options["subtype"] == MP_JOIN]
    new = int(level.new_bytes[mine].sum())
    every = int(level.new_bytes.sum())
    when = rows["time_ns"][level.new_bytes[mine] > 0]

    def seconds(at_ns: int | None) -> float | None:
        return None if at_ns is None else (int(at_ns) - t0_ns) / 1e9

    return {
        "subflow": name,
        "flow": flow,
        "opened_by": "other" if group.turned[number] else "opener",
        "address_ids": [
            int(joins["address_id"][joins["direction"] == d][0]) if (joins["direction"] == d).any() else 0
            for d in (0, 1)
        ],
        "backup": bool(joins["backup"].any()),
        "segments": len(rows),
        "payload_bytes": int(rows["payload_bytes"].astype(np.int64).sum()),
        "new_bytes": new,
        "new_ratio": new / every if every else None,
        "retransmitted_segments": int(rows["is_retransmission"].sum()),
        "reinjected_segments": int(level.elsewhere[mine].sum()),
        "reinjected_bytes": int(level.elsewhere_bytes[mine].sum()),
        "first_new_data_s": seconds(when[0] if len(when) else None),
        "last_new_data_s": seconds(when[-1] if len(when) else None),
        "syns": life.asked,
        "asked_s": seconds(life.asked_ns),
        "joined_s": seconds(life.joined_ns),
        "lost_s": seconds(life.lost_ns),
    }


def _events(capture: Capture, group: SubflowGroup, data: _Data, names: list[str], t0_ns: int) -> list[Event]:
    events: list[Event] = []
    place = {flow: number for number, flow in enumerate(group.flows)}
    options = rows_of_flows(capture, "mptcp_options", group.flows)
    segments = rows_of_flows(capture, "segments", group.flows)
    counts: dict[int, int] = {}
    finished: set[int] = set()
    opening = set(segments["packet"][segments["flags"] & SYN > 0].tolist())
    for row in options:
        kind = int(row["subtype"])
        counts[kind] = counts.get(kind, 0) + 1
        handshake = kind in (MP_CAPABLE, MP_JOIN)
        if counts[kind] > MOST or (handshake and int(row["packet"]) not in opening):
            continue
        sender = int(row["direction"]) ^ group.turned[place[int(row["flow"])]]
        if kind == DSS and sender in finished:  # until it is acknowledged every segment repeats it
            continue
        finished |= {sender} if kind == DSS else set()
        event: Event = {
            "t_s": (int(row["time_ns"]) - t0_ns) / 1e9,
            "what": "DATA_FIN" if kind == DSS else mptcp_subtype_name(kind),
            "subflow": names[place[int(row["flow"])]],
            "from": "other" if sender else "opener",
        }
        if kind == ADD_ADDR:
            event["what"] += " echo" if row["flags"] & 1 else ""
            event["address"] = address_text(bytes(row["address"])) if row["family"] else ""
        if kind in (MP_JOIN, ADD_ADDR, REMOVE_ADDR, MP_PRIO):
            event["address_id"] = int(row["address_id"])
        if kind in (MP_JOIN, MP_PRIO):
            event["backup"] = bool(row["backup"])
        events.append(event)
    events += _ends(segments, place, names, t0_ns)
    events += _handovers(data, names, t0_ns)
    return sorted(events, key=lambda event: event["t_s"])


def _ends(segments: Rows, place: dict[int, int], names: list[str], t0_ns: int) -> list[Event]:
    events: list[Event] = []
    for flag, what in ((FIN, "FIN"), (RST, "RST")):
        rows = segments[segments["flags"] & flag > 0]
        if not len(rows):
            continue
        flows, first = np.unique(rows["flow"], return_index=True)
        events += [
            {"t_s": (int(rows["time_ns"][at]) - t0_ns) / 1e9, "what": what, "subflow": names[place[flow]]}
            for flow, at in zip(flows.tolist(), first.tolist(), strict=True)
        ]
    return events


def _handovers(data: _Data, names: list[str], t0_ns: int) -> list[Event]:
    """The first and last new data of a subflow, and the first reinjection onto it."""
    events: list[Event] = []
    conditions: tuple[tuple[str, Bools, int], ...] = (
        ("first new data", data.level.new_bytes > 0, 0),
        ("last new data", data.level.new_bytes > 0, -1),
        ("first reinjection", data.level.elsewhere, 0),
    )
    for what, condition, which in conditions:
        for number, mine in data.places.items():
            rows = mine[condition[mine]]
            if len(rows):
                at = int(data.rows["time_ns"][rows[which]])
                events.append({"t_s": (at - t0_ns) / 1e9, "what": what, "subflow": names[number]})
    return events
