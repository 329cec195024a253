"""The contents of a page about captures (`netwarp analyze --html FILE`): sections, tables and charts."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from ...captures import FileSummary, Join
from ...captures.connection import Connection
from ...captures.findings import hop_findings
from ...captures.hop_joins import Hop
from ...captures.ladder import ladder
from ...captures.mptcp import MptcpConnection
from ...core.errors import StoreError
from ...core.numbers import fixed, with_unit
from ...core.units import counted
from ...core.version import __version__
from ...store.run_dir import write_atomic
from ..pages.capture import Line, LineChart, LinePanel, Part, Section, TextTable, capture_page
from .ladder_picture import ladder_svgs
from .lines import detail_lines, multipath_lines, multipath_title
from .words import (
    HEADS,
    beside,
    direction_rows,
    event_text,
    hop_row,
    join_notes,
    lead,
    path_of,
    protocol,
    seconds,
    unit_of,
    value_text,
    words_of,
)

CHARTED = 20
"""Connections per file that are drawn and shown completely; the others are in the list of connections only."""
LISTED = 500
EVENTS = 300
BINS = 500
PAGE_LETTERS = 150
"""Characters that fit a table's line on the widest page."""
PAGE_BEGINS = b"<!doctype html>"
PANELS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("goodput", "bit/s", ("goodput_forward_bit_s", "goodput_back_bit_s")),
    ("progress", "bytes", ("sequence_bytes", "acknowledged_sequence_bytes", "retransmitted_sequence_bytes")),
    ("progress (TSN)", "", ("tsn", "acknowledged_tsn", "retransmitted_tsn")),
    ("in flight, windows", "bytes", ("flight_bytes", "outstanding_bytes", "receive_window_bytes")),
    ("round trip time", "s", ("rtt_s", "rtt_timestamps_s", "heartbeat_rtt_s")),
    ("head-of-line delay", "s", ("hol_blocking_s", "hol_blocking_one_stream_s")),
)
FALLBACK = ("progress_forward_bytes", "progress_back_bytes")
"""If single packets are not in memory, the bins' sums replace the sequence numbers."""
STYLES = {
    "goodput": "step", "retransmitted": "marks", "rtt": "dots", "heartbeat": "dots", "hol": "dots", "flight": "step",
    "outstanding": "step", "receive": "step", "acknowledged": "step", "sequence": "dots", "tsn": "dots",
}  # fmt: skip
"""The drawing of a series, by the beginning of its name; others: a line."""


def write_page(path: Path, summaries: Sequence[FileSummary], join: Join | None) -> None:
    """Write the page whole or not at all. Raises StoreError."""
    sections = [_file(summary, number) for number, summary in enumerate(summaries)]
    if join is not None:
        sections.insert(0, _hops(join))
    title = " and ".join(summary.name for summary in summaries) if len(summaries) < 3 else f"{len(summaries)} captures"
    write_atomic(path, capture_page(title, sections, __version__))


def claim_page(path: Path) -> None:
    """Raises StoreError if the file exists and is not such a page, so that a capture given by mistake is not
    overwritten.
    """
    if path.is_dir():
        raise StoreError(f"{path}: is a directory; --html takes a file")
    if not path.exists():
        return
    with contextlib.suppress(OSError), open(path, "rb") as file:
        if not path.is_file() or file.read(len(PAGE_BEGINS)).lower() in (PAGE_BEGINS, b""):
            return
    raise StoreError(f"{path}: is there and is no HTML page; --html would write over it: name another file")


def _file(summary: FileSummary, number: int) -> Section:
    facts = summary.facts
    charted = summary.connections[:CHARTED]
    rows = [_connection_row(flow) for flow in summary.connections[:LISTED]]
    heads = ("Flow", "Protocol", "From", "To", "Packets", "IP bytes", "Retransmitted", "Duration")
    table = TextTable("Connections", heads, rows, (0, 4, 5, 6, 7))
    notes, others = list(summary.notes), beside(summary.capture)
    if len(summary.connections) > CHARTED:
        listed = f", the next up to {LISTED} in the list" if len(summary.connections) > LISTED else ""
        notes.append(f"the {CHARTED} largest of {len(summary.connections)} connections are shown here{listed}")
    return Section(
        anchor=f"file{number}",
        title=summary.name,
        lead=f"{' and '.join(facts['link_types'])}, {counted(facts['packets'], 'packet')}, "
        f"{with_unit(facts['frame_bytes'], 'bytes')}, {seconds(facts['duration_s'])}, "
        f"{counted(len(summary.connections), 'connection')}" + (f"; other traffic: {others}" if others else ""),
        findings=summary.findings,
        notes=notes,
        facts=[("Files", ", ".join(summary.files)), *((words_of(name).capitalize(), _fact(name, value))
               for name, value in facts.items())],
        table=table if len(summary.connections) > 1 else None,
        links=[f"file{number}-flow{flow.number}" for flow in charted],
        parts=[
            *(_multipath(multi, number, summary) for multi in summary.multipath[:CHARTED]),
            *(_flow(flow, number, summary) for flow in charted),
        ],
    )  # fmt: skip


def _connection_row(flow: Connection) -> tuple[str, ...]:
    sums = {name: sum(d[name] or 0 for d in flow.directions) for name in ("packets", "retransmitted_packets")}
    return (
        str(flow.number),
        protocol(flow),
        *flow.ends,
        fixed(sums["packets"], 0),
        with_unit(flow.ip_bytes, "bytes"),
        fixed(sums["retransmitted_packets"], 0),
        seconds(flow.facts["duration_s"]),
    )


def _fact(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "first_s":
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
    return ", ".join(value) if isinstance(value, list) else value_text(name, value)


def _ladder(summary: FileSummary, connection: Connection) -> Markup | None:
    """The sequence diagram of a connection whose packets are in memory."""
    return ladder_svgs(ladder(summary, connection)) if connection.totals else None


def _flow(connection: Connection, file: int, summary: FileSummary) -> Part:
    head = ("", f"{connection.ends[0]} sends", f"{connection.ends[1]} sends")
    details = []
    if connection.events:
        rows = [(fixed(event["t_s"], 6), event_text(event)) for event in connection.events[:EVENTS]]
        caption = f"Events ({len(connection.events)}" + (
            f", the first {EVENTS})" if len(connection.events) > EVENTS else ")"
        )
        details.append(TextTable(caption, ("Time (s)", "What"), rows, (0,)))
    details += _own_tables(connection.tables)
    if connection.totals:
        details.append(_totals(connection.totals))
    name = f"file{file}-flow{connection.number}"
    panels = _panels(connection.series)
    subflows = {number for multi in summary.multipath if len(multi.flows) > 1 for number in multi.flows}
    return Part(
        anchor=name,
        title=f"Flow {connection.number}: {protocol(connection)}, {connection.ends[0]} and {connection.ends[1]}",
        lead=lead(connection),
        facts=detail_lines(connection),
        tables=[TextTable(f"Directions of flow {connection.number}", head, direction_rows(connection), (1, 2))],
        details=details,
        chart=LineChart(name, panels, [(event["t_s"], event_text(event)) for event in connection.events[:EVENTS]])
        if panels
        else None,
        ladder=None if connection.number in subflows else _ladder(summary, connection),
    )


def _totals(totals: Mapping[str, Any]) -> TextTable:
    rows = [(name, value_text(name, value)) for name, value in totals.items()]
    return TextTable("Every number of this connection", ("Name", "Value"), rows, (1,))


def _own_tables(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[TextTable]:
    """The analyser's own tables, without columns that are empty in every row."""
    result = []
    for name, own in tables.items():
        columns = [key for key in dict.fromkeys(key for row in own for key in row)
                   if any(row.get(key) is not None for row in own)]  # fmt: skip
        rows = [tuple(value_text(key, row.get(key)) for key in columns) for row in own[:EVENTS]]
        caption = f"{words_of(name).capitalize()} ({len(own)}"
        caption += f", the first {EVENTS})" if len(own) > EVENTS else ")"
        numeric = [at for at, key in enumerate(columns) if not any(isinstance(row.get(key), str) for row in own)]
        if rows:
            heads = tuple(words_of(key)[:1].upper() + words_of(key)[1:] for key in columns)
            result.append(_as_narrow(TextTable(caption, heads, rows, tuple(numeric))))
    return result


def _as_narrow(table: TextTable) -> TextTable:
    """A table wider than a page, with its rows as columns if that is narrower: a path has thirty numbers."""
    lines = [table.head, *table.rows]
    turned = list(zip(*lines, strict=True))
    if _width(lines) <= PAGE_LETTERS or _width(turned) >= _width(lines):
        return table
    return TextTable(table.caption, turned[0], turned[1:], tuple(range(1, len(lines))))


def _width(lines: Sequence[Sequence[str]]) -> int:
    """Width in characters, with two between columns."""
    return sum(2 + max(len(cell) for cell in column) for column in zip(*lines, strict=True))


def _multipath(multipath: MptcpConnection, file: int, summary: FileSummary) -> Part:
    name = f"file{file}-mptcp{multipath.number}"
    lines = [_line(key, pair) for key, pair in multipath.series.items() if key.startswith("sent_bytes")]
    events = [(event["t_s"], event_text(event)) for event in multipath.events[:EVENTS]]
    rows = [(fixed(time, 6), text) for time, text in events]
    return Part(
        anchor=name,
        title=multipath_title(multipath),
        lead="",
        facts=multipath_lines(multipath),
        details=[
            TextTable(f"Events ({len(multipath.events)})", ("Time (s)", "What"), rows, (0,)),
            *_own_tables(multipath.tables),
            _totals(multipath.totals),
        ],
        chart=LineChart(name, [LinePanel("sent by each subflow", "bytes", lines)], events) if lines else None,
        ladder=_ladder(summary, summary.connections[multipath.flows[0] - 1]) if len(multipath.flows) > 1 else None,
    )


def _panels(series: Mapping[str, Any]) -> list[LinePanel]:
    """Panels of what there is: named ones in order, then one for each series nobody thought of here."""
    left = dict(series)
    for name in FALLBACK:
        if any(key.startswith(("sequence", "tsn")) for key in series):
            left.pop(name, None)
    for name in ("goodput_bit_s", "throughput_bit_s", "retransmitted_chunks", "retransmitted_forward_packets",
                 "retransmitted_back_packets"):  # fmt: skip
        left.pop(name, None)  # said by the other panels
    panels = []
    for title, unit, names in PANELS:
        keys = [key for name in names for key in left if key.split("[")[0] == name]
        lines = [_line(key, left.pop(key)) for key in keys]
        if lines:
            panels.append(LinePanel(title, unit, lines))
    return panels + [LinePanel(words_of(key), unit_of(key), [_line(key, pair)]) for key, pair in left.items()]


def _line(key: str, pair: tuple[Any, Any]) -> Line:
    style = next((style for begin, style in STYLES.items() if key.startswith(begin)), "line")
    return Line(words_of(key), pair[0], pair[1], style, path_of(key))


def _hops(join: Join) -> Section:
    parts = []
    ways: dict[frozenset[str], list[Hop]] = {}
    for hop in join.hops:
        ways.setdefault(frozenset((hop.source, hop.destination)), []).append(hop)
    for number, hops in enumerate(ways.values()):
        name = f"hops{number}"
        panels = []
        for source, destination in dict.fromkeys((hop.source, hop.destination) for hop in hops):
            mine = [hop for hop in hops if hop.source == source]
            panels.append(LinePanel(f"one-way delay, {source} → {destination}", "s", [_delay(hop) for hop in mine]))
            lost = [_lost(hop) for hop in mine if hop.lost_packets]
            if lost:
                panels.append(LinePanel(f"lost, {source} → {destination}", "", lost))
        rows = [tuple(text.strip() for text in hop_row(hop)) for hop in hops]
        rows = [(f"{hop.source} → {hop.destination}", *row) for hop, row in zip(hops, rows, strict=True)]
        parts.append(
            Part(
                anchor=name,
                title=f"{hops[0].source} and {hops[0].destination}",
                lead="",
                tables=[
                    TextTable("Hops", ("Path", *(head.strip().capitalize() for head in HEADS)), rows, (2, 3, 4, 5, 6))
                ],
                chart=LineChart(name, [panel for panel in panels if any(len(line.times) for line in panel.lines)]),
            )
        )
    text = "Packets seen at one point and, or not, at the next. Burst: packets lost in a row, mean/longest."
    return Section("hops", "Hops", text, findings=hop_findings(join.hops), notes=join_notes(join), parts=parts)


def _delay(hop: Hop) -> Line:
    there = ~np.isnan(hop.packet_delay_s)
    return Line(f"{hop.before} → {hop.after}", hop.packet_s[there], hop.packet_delay_s[there], "dots")


def _lost(hop: Hop) -> Line:
    """Packets lost over time, in bins, so that a loss is equally visible among many and among few packets."""
    times = hop.packet_s[np.isnan(hop.packet_delay_s)]
    edges = np.linspace(hop.packet_s[0], hop.packet_s[-1] + 1e-9, BINS + 1)
    counts, _ = np.histogram(times, edges)
    return Line(f"{hop.before} → {hop.after}, lost", edges[:-1], counts, "bar", f"{hop.before} → {hop.after}")
