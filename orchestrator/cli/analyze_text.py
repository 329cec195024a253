"""What `netwarp analyze CAPTURE...` prints: for a terminal of any width, plain where it is piped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..analysis import FileSummary, Join
from ..analysis.connection import Connection
from ..analysis.hops import Hop
from ..report.numbers import DASH, fixed, readable, with_unit
from .analyze_block import connection_block

PLAIN_WIDTH = 100
UNITS = ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"))
SHOWN = 10
"""Connections a file that are printed as blocks; the others as one line each, up to LISTED."""
LISTED = 40
HOP_HEADS = ("  hop", "packets", "lost", "burst", "delay min/med/p95/max", "reord.")


def print_captures(found: Sequence[FileSummary], join: Join | None) -> None:
    """To stdout. Colours only on a terminal, and its width; else PLAIN_WIDTH unless COLUMNS says otherwise."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # a terminal that knows no arrow gets a question mark, not a traceback
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PLAIN_WIDTH
    with console.capture() as captured:
        _print_all(console, found, join)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _print_all(console: Console, found: Sequence[FileSummary], join: Join | None) -> None:
    for number, one in enumerate(found):
        if number:
            console.print()
        _print_file(console, one, brief=join is not None)
    if join is not None:
        console.print()
        _print_join(console, join)


def seconds(value: float | None) -> str:
    """A time with the unit that suits it: 12.3 ms."""
    if value is None:
        return DASH
    for limit, factor, unit in UNITS:
        if 0 < abs(value) < limit:
            return f"{readable(value * factor, 4)} {unit}"
    return f"{readable(value, 4)} s"


def _print_file(console: Console, one: FileSummary, *, brief: bool) -> None:
    facts = one.facts
    console.print(Text(one.name, style="bold"))
    parts = [
        " and ".join(facts["link_types"]), f"{fixed(facts['packets'], 0)} packets",
        with_unit(facts["frame_bytes"], "bytes"), seconds(facts["duration_s"]),
        f"{len(one.connections)} connection" + ("" if len(one.connections) == 1 else "s"),
    ]  # fmt: skip
    console.print(Padding(Text(", ".join(parts)), (0, 0, 0, 2)))
    for note in one.notes:
        _bullet(console, Text("note: ", style="yellow") + Text(note))
    if one.findings:
        console.print(Padding(Text("What stands out", style="bold"), (1, 0, 0, 2)))
        for text in one.findings:
            _bullet(console, Text(text))
    if brief:
        return
    for connection in one.connections[:SHOWN]:
        console.print()
        console.print(Padding(connection_block(connection, console.width - 2), (0, 0, 0, 2)))
    rest = one.connections[SHOWN:]
    if rest:
        console.print()
        console.print(Padding(_list(rest[:LISTED]), (0, 0, 0, 2)))
    if len(rest) > LISTED:
        console.print(f"  and {len(rest) - LISTED} smaller connections (--json and --csv hold all)")


def _bullet(console: Console, text: Text) -> None:
    line = Table.grid(padding=(0, 1, 0, 0))
    line.add_column(no_wrap=True)
    line.add_column()
    line.add_row("\u2022", text)
    console.print(Padding(line, (0, 0, 0, 2)))


def _list(rest: Iterable[Connection]) -> RenderableType:
    table = plain_table("flow", "", "who with whom", ">packets", ">bytes")
    for one in rest:
        table.add_row(
            str(one.number), one.protocol.upper(), one.name,
            fixed(sum(d["packets"] for d in one.directions), 0), with_unit(one.ip_bytes, "bytes"),
        )  # fmt: skip
    return table


def delays(*values: float | None) -> str:
    """Several times in one unit, that of the largest: 20.4/260/506/634 ms."""
    there = [abs(value) for value in values if value is not None]
    if not there:
        return DASH
    factor, unit = next(((f, u) for limit, f, u in UNITS if max(there) < limit), (1.0, "s"))
    return "/".join(DASH if value is None else readable(value * factor, 3) for value in values) + f" {unit}"


def plain_table(*heads: str) -> Table:
    """A table without lines; a head that begins with > is of numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="dim")
    for head in heads:
        table.add_column(Text(head.lstrip(">")), justify="right" if head.startswith(">") else "left",
                         overflow="fold")  # fmt: skip
    return table


def _print_join(console: Console, join: Join) -> None:
    console.print(Text("Hops", style="bold"))
    for line in _join_notes(join):
        _bullet(console, Text(line))
    console.print()
    rows = [HOP_HEADS, *(_hop_row(hop) for hop in join.hops)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HOP_HEADS))]
    beside = sum(widths) + 2 * len(widths) + 2 <= console.width  # else a hop's name gets a line of its own
    line = "  ".join(head.rjust(width) for head, width in zip(HOP_HEADS[1:], widths[1:], strict=True))
    console.print(f"  {HOP_HEADS[0].ljust(widths[0]) if beside else '  '}  {line}", style="dim")
    shown = ("", "")
    for hop, row in zip(join.hops, rows[1:], strict=True):
        if shown != (hop.source, hop.destination):
            shown = (hop.source, hop.destination)
            console.print(f"  {hop.source} \u2192 {hop.destination}", style="bold")
        line = "  ".join(field.rjust(width) for field, width in zip(row[1:], widths[1:], strict=True))
        if not beside:
            console.print(f"  {row[0]}", no_wrap=True, crop=False)
        console.print(f"  {row[0].ljust(widths[0]) if beside else '  '}  {line}", no_wrap=True, crop=False)
    console.print("  burst: packets lost in a row, mean/longest; reord.: arrived after one sent later", style="dim")


def _hop_row(hop: Hop) -> tuple[str, ...]:
    return (
        f"  {hop.before} \u2192 {hop.after}",
        fixed(hop.packets, 0),
        _lost(hop),
        f"{readable(hop.burst_mean_packets, 3)}/{max(hop.bursts)}" if hop.bursts else DASH,
        delays(hop.delay_min_s, hop.delay_median_s, hop.delay_p95_s, hop.delay_max_s),
        fixed(hop.reordered_packets, 0),
    )


def _lost(hop: Hop) -> str:
    if not hop.lost_packets or hop.loss_ratio is None:
        return fixed(hop.lost_packets, 0)
    return f"{fixed(hop.lost_packets, 0)} ({readable(hop.loss_ratio * 100, 3)} %)"


def _join_notes(join: Join) -> list[str]:
    found = []
    if join.alone:
        found.append(f"shares no packet with the others: {', '.join(join.alone)}")
    unknown = sum(hop.unknown_packets for hop in join.hops)
    if unknown:
        found.append(
            f"{unknown} packets are in no number below: the next capture had ended, or not begun, when they were due"
        )
    by_time = sum(hop.by_time_packets for hop in join.hops)
    if by_time:
        found.append(f"{by_time} packets look exactly like others, and only time tells which of them were lost")
    negative = sum(hop.negative_packets for hop in join.hops)
    if negative:
        found.append(f"{negative} packets arrive before they were sent: the captures' clocks differ (--json: "
                     "clock_offset_if_symmetric_s)")  # fmt: skip
    elif not join.one_clock:
        found.append("delays are differences of the captures' times: as true as their clocks agree")
    return found
