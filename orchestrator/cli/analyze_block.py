"""One connection as a block of text."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..analysis.connection import Connection
from ..report.numbers import DASH, fixed, readable, with_unit

HEAD = "bold cyan"


def connection_block(one: Connection, width: int) -> RenderableType:
    """Who with whom; then both directions side by side."""
    return Group(_head(one), _directions(one))


def _head(one: Connection) -> Text:
    facts = one.facts
    text = Text.assemble((f"{one.number}  ", "dim"), (_protocol(one), HEAD), f"  {one.ends[0]} \u2194 {one.ends[1]}")
    text.append(f"\n   {readable(facts['duration_s'], 4)} s from {readable(facts['start_s'], 6)} s on")
    text.append(", handshake seen" if facts["handshake_seen"] else ", handshake not in the capture")
    ended = [one.ends[side] for side in (0, 1) if facts["ended"][side]]
    text.append(", not ended" if not ended else ", ended by both" if len(ended) == 2 else f", ended by {ended[0]}")
    return text


def _protocol(one: Connection) -> str:
    return "MPTCP subflow" if one.facts["mptcp_subflow"] else one.protocol.upper()


def _directions(one: Connection) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("  ")
    for direction in (0, 1):
        table.add_column(Text(f"{one.ends[direction]} sends"), justify="right", overflow="fold")
    two = one.directions
    rows = {
        "packets": [fixed(d["packets"], 0) for d in two],
        "with data": [fixed(d["data_packets"], 0) for d in two],
        "new payload": [with_unit(d["new_bytes"], "bytes") for d in two],
        "goodput": [with_unit(d["goodput_bit_s"], "bit/s") for d in two],
        "retransmitted": [_share(d["retransmitted_packets"], d["data_packets"]) for d in two],
    }
    for name, cells in rows.items():
        table.add_row(f"   {name}", *cells)
    return table


def _share(count: int, of: int) -> str:
    return f"{fixed(count, 0)} ({readable(100 * count / of, 3)} %)" if of else fixed(count, 0) if count else DASH
