"""One connection as a block of text."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...captures.connection import Connection
from ...captures.multipath import Multipath
from .lines import Lines, detail_lines, multipath_lines, multipath_title
from .words import direction_rows, lead, protocol

HEAD = "bold cyan"


def connection_block(one: Connection) -> RenderableType:
    """Who with whom; both directions side by side; what the protocol's analyser found."""
    head = Text.assemble((f"{one.number}  ", "dim"), (protocol(one), HEAD), f"  {one.ends[0]} \u2194 {one.ends[1]}")
    return Group(head, Text(f"   {lead(one)}"), _directions(one), *_details(detail_lines(one)))


def _directions(one: Connection) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("  ")
    for direction in (0, 1):
        table.add_column(Text(f"{one.ends[direction]} sends"), justify="right", overflow="fold")
    for name, forward, back in direction_rows(one):
        table.add_row(f"   {name}", forward, back)
    return table


def multipath_block(one: Multipath) -> RenderableType:
    """The data level above some of the connections."""
    return Group(Text(multipath_title(one), style=HEAD), *_details(multipath_lines(one)))


def _details(lines: Lines) -> list[RenderableType]:
    if not lines:
        return []
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for label, text in lines:
        table.add_row(f"   {label}", text)
    return [Text(""), table]
