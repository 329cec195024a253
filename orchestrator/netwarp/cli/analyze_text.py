"""Prints the findings of `netwarp analyze CAPTURE...`, as wide as the terminal; plain where it is piped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..captures import FileSummary, Join
from ..captures.connection import Connection
from ..captures.findings import hop_findings
from ..core.lines import columns, letters
from ..core.numbers import fixed, with_unit
from ..core.units import counted
from ..present.captures.lines import Lines, detail_lines, multipath_lines, multipath_title
from ..present.captures.words import HEADS, beside, direction_rows, hop_row, join_notes, lead, protocol, seconds
from .output import plain_console

if TYPE_CHECKING:
    from ..captures.mptcp import MptcpConnection

HEAD = "bold cyan"
SHOWN = 10
"""Connections a file that are printed as blocks; the others as one line each, up to LISTED."""
LISTED = 40


def print_captures(summaries: Sequence[FileSummary], join: Join | None) -> None:
    """To stdout. Colours only on a terminal; wrapped as `terminal_width` says."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # a terminal that knows no arrow gets a question mark, not a traceback
    console = plain_console()
    with console.capture() as captured:
        _print_all(console, summaries, join)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _print_all(console: Console, summaries: Sequence[FileSummary], join: Join | None) -> None:
    for number, summary in enumerate(summaries):
        if number:
            console.print()
        _print_file(console, summary, brief=join is not None)
    if join is not None:
        console.print()
        _print_join(console, join)


def _print_file(console: Console, file: FileSummary, *, brief: bool) -> None:
    facts = file.facts
    console.print(Text(file.name, style="bold"))
    parts = [
        " and ".join(facts["link_types"]), counted(facts["packets"], "packet"),
        with_unit(facts["frame_bytes"], "bytes"), seconds(facts["duration_s"]),
        counted(len(file.connections), "connection"),
    ]  # fmt: skip
    console.print(Padding(Text(", ".join(parts)), (0, 0, 0, 2)))
    if len(file.connections):
        console.print(Padding(Text(file.viewpoint.words), (0, 0, 0, 2)))
    if others := beside(file.capture):
        console.print(Padding(Text(f"other traffic: {others}"), (0, 0, 0, 2)))
    if file.findings:
        console.print(Padding(Text("What stands out", style="bold"), (1, 0, 0, 2)))
        for text in file.findings:
            _bullet(console, Text(text))
    if file.findings and file.notes:
        console.print()
    for note in file.notes:
        _bullet(console, Text("note: ", style="yellow") + Text(note))
    if brief:
        return
    for multipath in file.multipath[:SHOWN]:
        console.print()
        console.print(Padding(_multipath_block(multipath), (0, 0, 0, 2)))
    for connection in file.connections[:SHOWN]:
        console.print()
        console.print(Padding(_connection_block(connection), (0, 0, 0, 2)))
    listed = file.connections[SHOWN : SHOWN + LISTED]
    if listed:
        console.print()
        console.print(Padding(_list(listed), (0, 0, 0, 2)))
    rest = len(file.connections) - SHOWN - len(listed)
    if listed and rest:
        console.print(f"  and {counted(rest, 'smaller connection')} (--json and --csv hold all)")


def _bullet(console: Console, text: Text) -> None:
    line = Table.grid(padding=(0, 1, 0, 0))
    line.add_column(no_wrap=True)
    line.add_column()
    line.add_row("\u2022", text)
    console.print(Padding(line, (0, 0, 0, 2)))


def _list(rest: Iterable[Connection]) -> RenderableType:
    table = plain_table("flow", "", "who with whom", ">packets", ">bytes")
    for connection in rest:
        table.add_row(
            str(connection.number), connection.protocol.upper(), connection.name,
            fixed(sum(d["packets"] for d in connection.directions), 0), with_unit(connection.ip_bytes, "bytes"),
        )  # fmt: skip
    return table


def plain_table(*heads: str) -> Table:
    """A table without lines; a head that begins with > is of numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="dim")
    for head in heads:
        table.add_column(Text(head.lstrip(">")), justify="right" if head.startswith(">") else "left",
                         overflow="fold")  # fmt: skip
    return table


def _print_join(console: Console, join: Join) -> None:
    console.print(Text("Hops", style="bold"))
    for finding in hop_findings(join.hops):
        _bullet(console, Text(finding))
    for note in join_notes(join):
        _bullet(console, Text("note: ", style="yellow") + Text(note))
    console.print()
    rows = [HEADS, *(hop_row(hop) for hop in join.hops)]
    right = range(1, len(HEADS))
    lines = columns(rows, right=right, indent="  ")
    beside = all(letters(line.lead + line.text) <= console.width for line in lines)
    if not beside:  # a hop's name gets a line of its own
        lines = columns([("", *row[1:]) for row in rows], right=right, indent="  ")
    console.print(lines[0].lead + lines[0].text, style="dim", no_wrap=True, crop=False)
    shown = ("", "")
    for hop, row, line in zip(join.hops, rows[1:], lines[1:], strict=True):
        if shown != (hop.source, hop.destination):
            shown = (hop.source, hop.destination)
            console.print(f"  {hop.source} \u2192 {hop.destination}", style="bold")
        if not beside:
            console.print(f"  {row[0]}", no_wrap=True, crop=False)
        console.print(line.lead + line.text, no_wrap=True, crop=False)
    console.print("  burst: packets lost in a row, mean/longest; reord.: arrived after one sent later", style="dim")


def _connection_block(connection: Connection) -> RenderableType:
    """One connection: its ends, both directions side by side, the findings of the protocol's analyser."""
    head = Text.assemble(
        (f"{connection.number}  ", "dim"),
        (protocol(connection), HEAD),
        f"  {connection.ends[0]} \u2194 {connection.ends[1]}",
    )
    return Group(head, Text(f"   {lead(connection)}"), _directions(connection), *_details(detail_lines(connection)))


def _directions(connection: Connection) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("  ")
    for direction in (0, 1):
        table.add_column(Text(f"{connection.ends[direction]} sends"), justify="right", overflow="fold")
    for name, forward, back in direction_rows(connection):
        table.add_row(f"   {name}", forward, back)
    return table


def _multipath_block(multipath: MptcpConnection) -> RenderableType:
    """An MPTCP connection: the data level above its subflows."""
    return Group(Text(multipath_title(multipath), style=HEAD), *_details(multipath_lines(multipath)))


def _details(lines: Lines) -> list[RenderableType]:
    if not lines:
        return []
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for label, text in lines:
        table.add_row(f"   {label}", text)
    return [Text(""), table]
