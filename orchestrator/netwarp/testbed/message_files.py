"""The files that give netwarp's own programs their messages, where they are listed one by one, and their HEARTBEATs
(apps/traffic/message_list.h, heartbeat_list.h).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..core.messages import Messages, Row, message_rows
from ..core.types import Cell, Flow, reversed_flow
from .layout import Layout

WORDS = {"gaps": "due", "file": "all"}
"""What the first line says of the times. Of thinking times it depends on the end."""


def listed(flow: Flow) -> Messages | None:
    """The messages of a flow's own direction that are listed one by one; None where they are not."""
    return None if flow.messages is msgspec.UNSET else flow.messages


def rows_of(cell: Cell, flow: Flow) -> list[Row]:
    """The messages of a flow, or of its other direction (reversed_flow), in the order in which they are sent."""
    messages = listed(flow)
    assert messages is not None
    span_ns = (cell.duration_ns if flow.stop_ns is None else flow.stop_ns) - flow.start_ns
    return message_rows(messages, cell.seed, flow.name, span_ns, flow.paths[0].base_rtt_ns)


def message_file(flow: Flow, role: str) -> str:
    """The file of the messages that an end sends, in the cell's directory."""
    return f"apps/{flow.name}.{role}.messages"


def message_files(cell: Cell) -> Iterator[tuple[str, bytes]]:
    """Every such file of a cell and its bytes."""
    for flow in cell.flows:
        ends = [("sender", flow)]
        if flow.reverse is not msgspec.UNSET:
            ends.append(("receiver", reversed_flow(flow)))
        for role, sends in ends:
            messages = listed(sends)
            if messages is not None:
                word = WORDS.get(messages.times, "asks" if role == "sender" else "answers")
                lines = (f"{at_ns} {size} {stream}" for at_ns, size, stream in rows_of(cell, sends))
                yield message_file(flow, role), "\n".join([word, *lines, ""]).encode()


def heartbeat_file(flow: Flow, role: str) -> str:
    """The file of the HEARTBEATs that an end sends, in the cell's directory."""
    return f"apps/{flow.name}.{role}.heartbeats"


def heartbeat_files(cell: Cell, layout: Layout) -> Iterator[tuple[str, bytes]]:
    """Every such file of a cell and its bytes."""
    for flow in cell.flows:
        if flow.heartbeats is msgspec.UNSET:
            continue
        to = {
            "sender": {path.name: layout.interface(flow.receiver, path.receiver_link).ip for path in flow.paths},
            "receiver": {path.name: layout.interface(flow.sender, path.sender_link).ip for path in flow.paths},
        }
        for role, address in to.items():
            until_ns = flow.heartbeats.until_ns
            own = [] if until_ns is None else [(max(until_ns - flow.start_ns, 0), "kernel")]
            rows = [(beat.at_ns, address[beat.path]) for beat in flow.heartbeats.beats if beat.end == role]
            rows = [row for row in rows if not own or row[0] < own[0][0]] + own
            yield heartbeat_file(flow, role), "".join(f"{at_ns} {to}\n" for at_ns, to in rows).encode()
