"""TCP packets of a cell's capture, as tshark reads them, by the cell's clock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.packet_difference import plain_captures
from support.run_files import CellFiles
from support.tshark import time_ns, tshark

S = 10**9
DUPLICATE, AGAIN = "tcp.analysis.duplicate_ack", "tcp.analysis.retransmission"


@dataclass(frozen=True)
class Segment:
    """A TCP packet of a capture. t_s from T0; ack, seq: from the first of the connection."""

    t_s: float
    source: str
    seq: int
    ack: int
    length: int
    window: int
    flags: int


def segments(cell: CellFiles, node: str, place: Path, condition: str = "") -> list[Segment]:
    """tshark's packets of a host's capture."""
    (ready,) = cell.init("ready")
    names = ["seq", "ack", "len", "window_size_value", "flags"]
    fields = ["frame.time_epoch", "ip.src", "ip.dst", *(f"tcp.{name}" for name in names)]
    plain = place / f"{node}.pcap"
    (capture,) = (data for name, data in plain_captures(cell.root) if name.startswith(f"{node}-"))
    plain.write_bytes(capture)
    return [
        Segment(
            (time_ns(row[0][0]) - ready["t0_realtime_ns"]) / S, row[1][0],
            *(int(row[3 + number][0], 0) if row[3 + number] else 0 for number in range(len(names))),
        )
        for row in tshark([plain], place, fields, condition)
    ]  # fmt: skip
