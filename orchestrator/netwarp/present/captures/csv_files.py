"""Writes tidy tables of captures: `netwarp analyze --csv DIR` (docs/analyze.md lists them)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...captures import FileSummary, Join
from ...captures.connection import Connection
from ...captures.summary import conversations_of
from ...captures.time_sequence import time_sequence
from ...core.errors import StoreError
from ...results.rows import Field, Rows
from ...results.write import csv_blocks
from ...store.run_dir import write_atomic

MARK = ".netwarp-analyze"
"""A file in a directory of these tables: it names the tables that the next call may overwrite."""
MARK_TEXT = "Tables of netwarp analyze: the next --csv into this directory writes them anew."


def write_tables(folder: Path, summaries: Sequence[FileSummary], join: Join | None) -> None:
    """Write every table and delete tables of an earlier call that this one does not have.

    Raises StoreError if the directory cannot be written or holds files that netwarp did not write.
    """
    before = claim(folder)
    tables = [
        make(summaries)
        for make in (_flows, _totals, _paths, _conversations, _events, _series, _time_sequence, _retransmissions)
    ]
    tables += _own_tables(summaries)
    if join is not None:
        tables += [_hops(join), _hop_packets(join)]
    names = [f"{table.name}.csv" for table in tables]
    write_atomic(folder / MARK, "\n".join([MARK_TEXT, *sorted({*before, *names})]).encode())
    for name, table in zip(names, tables, strict=True):
        write_atomic(folder / name, csv_blocks(table.header, table.rows))
    for left in before - set(names):
        (folder / left).unlink(missing_ok=True)
    write_atomic(folder / MARK, "\n".join([MARK_TEXT, *sorted(names)]).encode())


def claim(folder: Path) -> set[str]:
    """Names of the tables of an earlier call. Raises StoreError if the directory holds other files."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder}: is a file; --csv takes a directory")
    if not folder.is_dir() or not any(folder.iterdir()):
        return set()
    try:
        text, *names = (folder / MARK).read_text().splitlines()
    except (OSError, ValueError):
        text, names = "", []
    strangers = sorted(path.name for path in folder.iterdir() if path.name not in (MARK, *names))
    if text != MARK_TEXT or strangers:
        raise StoreError(
            f"{folder}: holds what netwarp did not write ({', '.join(strangers[:3] or [MARK])}); "
            "name a new or an empty directory"
        )
    return set(names)


def _table(name: str, header: Iterable[str], rows: Iterable[Iterable[Field]]) -> Rows:
    return Rows(name, tuple(header), (tuple(row) for row in rows))


def _every_flow(summaries: Sequence[FileSummary]) -> Iterator[tuple[list[Field], Connection]]:
    for summary in summaries:
        for connection in summary.connections:
            yield [summary.name, connection.number], connection


def _looked_at(summaries: Sequence[FileSummary]) -> Iterator[tuple[list[Field], FileSummary, Connection]]:
    """The connections that are looked at in depth: the others have no totals, events or tables."""
    for summary in summaries:
        for connection in summary.connections.in_depth():
            yield [summary.name, connection.number], summary, connection


def _kinds(summaries: Sequence[FileSummary]) -> list[Connection]:
    """A connection of each protocol: all others have the same columns."""
    return [connection for summary in summaries for connection in summary.connections.first_of_each_protocol()]


def _flows(summaries: Sequence[FileSummary]) -> Rows:
    """One row per flow and direction."""
    names = dict.fromkeys(name for flow in _kinds(summaries) for name in flow.directions[0])
    header = (
        "file",
        "flow",
        "protocol",
        "direction",
        "source",
        "destination",
        "start_s",
        "duration_s",
        *names,
    )
    rows: Iterator[list[Field]] = (
        [*key, flow.protocol, direction, flow.ends[direction], flow.ends[1 - direction], flow.facts["start_s"],
         flow.facts["duration_s"], *(counts.get(name) for name in names)]
        for key, flow in _every_flow(summaries)
        for direction, counts in enumerate(flow.directions)
    )  # fmt: skip
    return _table("flows", header, rows)


def _paths(summaries: Sequence[FileSummary]) -> Rows:
    names = dict.fromkeys(
        name for flow in _kinds(summaries) for path in flow.facts["paths"] for name in path if name != "addresses"
    )
    rows: Iterator[list[Field]] = (
        [*key, direction, path["addresses"][direction], path["addresses"][1 - direction],
         *(path[name][direction] if name in path else None for name in names)]
        for key, flow in _every_flow(summaries)
        for path in flow.facts["paths"]
        for direction in (0, 1)
    )  # fmt: skip
    return _table("paths", ("file", "flow", "direction", "source", "destination", *names), rows)


def _conversations(summaries: Sequence[FileSummary]) -> Rows:
    """One row per conversation that is no connection, and direction."""
    names = ("packets", "ip_bytes")
    rows: Iterator[list[Field]] = (
        [summary.name, one["protocol"], direction, one["ends"][direction], one["ends"][1 - direction],
         *(one[name][direction] for name in names), one["first_s"] - summary.first_ns / 1e9, one["duration_s"]]
        for summary in summaries
        for one in conversations_of(summary.capture, summary.capture.conversations)
        for direction in (0, 1)
    )  # fmt: skip
    header = ("file", "protocol", "direction", "source", "destination", *names, "start_s", "duration_s")
    return _table("conversations", header, rows)


def _totals(summaries: Sequence[FileSummary]) -> Rows:
    """One row per number of the protocol's analyser."""
    rows = (
        [*key, name, _plain(value)] for key, _, flow in _looked_at(summaries) for name, value in flow.totals.items()
    )
    return _table("totals", ("file", "flow", "total", "value"), rows)


def _own_tables(summaries: Sequence[FileSummary]) -> list[Rows]:
    """The analysers' own tables, <protocol>_<table>.csv; a field is empty if its row has no such value."""
    rows: dict[str, list[tuple[list[Field], Mapping[str, Any]]]] = {}
    for key, _, flow in _looked_at(summaries):
        for name, table in flow.tables.items():
            if table:
                rows.setdefault(f"{flow.protocol}_{name}", []).extend((key, row) for row in table)
    for summary in summaries:
        for multi in summary.multipath:
            for name, table in multi.tables.items():
                rows.setdefault(f"mptcp_{name}", []).extend(([summary.name, row.get("flow")], row) for row in table)
            totals = {"connection": multi.number, "flows": list(multi.flows), **multi.totals}
            rows.setdefault("mptcp_connections", []).append(([summary.name, None], totals))
    result = []
    for name, pairs in rows.items():
        columns = dict.fromkeys(column for _, row in pairs for column in row if column != "flow")
        lines = [[*key, *(_plain(row.get(column)) for column in columns)] for key, row in pairs]
        result.append(_table(name, ("file", "flow", *columns), lines))
    return result


def _plain(value: Any) -> Field:
    """The value as text of a field: lists joined by spaces, yes or no as 1 or 0."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return number(value)


def _events(summaries: Sequence[FileSummary]) -> Rows:
    names = dict.fromkeys(name for _, _, flow in _looked_at(summaries) for event in flow.events for name in event)
    rows = (
        [*key, *(_plain(event.get(name)) for name in names)]
        for key, _, flow in _looked_at(summaries)
        for event in flow.events
    )
    return _table("events", ("file", "flow", *names), rows)


def _series(summaries: Sequence[FileSummary]) -> Rows:
    rows = (
        [summary.name, flow.number, name, float(t), number(value)]
        for summary in summaries
        for flow in summary.connections.with_series()
        for name, (times, values) in flow.series.items()
        for t, value in zip(times, values, strict=True)
    )
    return _table("series", ("file", "flow", "series", "time_s", "value"), rows)


def _time_sequence(summaries: Sequence[FileSummary]) -> Rows:
    """One row per segment, chunk or acknowledgement of the connections that are analysed in detail."""
    rows = (
        [*key, direction, t_s, what, start, end]
        for key, summary, flow in _looked_at(summaries)
        for t_s, direction, what, start, end in time_sequence(summary.capture, flow.row, summary.first_ns)
    )
    return _table("time_sequence", ("file", "flow", "direction", "time_s", "what", "start", "end"), rows)


def number(value: Any) -> Field:
    """A NumPy number as Python's; None for NaN."""
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and math.isnan(plain) else plain


def _retransmissions(summaries: Sequence[FileSummary]) -> Rows:
    """One row per packet that carries data sent before, of the flows whose packets are in memory."""
    header = ("file", "frame", "flow", "direction", "time_s", "source", "destination", "payload_bytes", "new_bytes")
    rows: list[list[Field]] = []
    for summary in summaries:
        packets = summary.capture.packets
        again = packets["is_retransmission"].astype(np.bool_) & np.isin(packets["flow"], summary.connections.rows)
        for at in again.nonzero()[0].tolist():
            packet = packets[at]
            flow = int(summary.connections.numbers[packet["flow"]])
            path, way = int(packet["path"]), int(packet["path_direction"])
            ends = [summary.capture.address(path, end) for end in (way, 1 - way)]
            time_s = (int(packet["time_ns"]) - summary.first_ns) / 1e9
            rows.append([
                summary.name, at + 1, flow, int(packet["direction"]), time_s, *ends,
                int(packet["payload_bytes"]), int(packet["new_bytes"]),
            ])  # fmt: skip
    return _table("retransmissions", header, rows)


def _hops(join: Join) -> Rows:
    names = [name for name in join.hops[0].as_json() if name != "bursts"]
    rows = [[number, *(hop.as_json()[name] for name in names)] for number, hop in enumerate(join.hops, 1)]
    return _table("hops", ("hop", *names), rows)


def _hop_packets(join: Join) -> Rows:
    """Every packet of every hop: its time at the first point, and its delay to the next point (empty: lost)."""
    rows = (
        [at, float(t), number(delay), int(size)]
        for at, hop in enumerate(join.hops, 1)
        for t, delay, size in zip(hop.packet_s, hop.packet_delay_s, hop.packet_bytes, strict=True)
    )
    return _table("hop_packets", ("hop", "time_s", "one_way_delay_s", "ip_bytes"), rows)
