"""The events of a script's run, as text and as a capture."""

from __future__ import annotations

import struct
from pathlib import Path

from ...core.lines import columns, lines_text
from .compile import START_NS, Program
from .judge import EXACT_NS, Judge
from .packets import checksum, parse, text_of
from .record import Captured, Record
from .script import Call, Code, Command, Packet

_LINKTYPE_RAW = 101
_NANOSECONDS = 0xA1B23C4D


def timeline(program: Program, judge: Judge) -> str:
    """One line an event: the time of the script's clock at which it was, how far off that is, the event."""
    off = {one.step: one.off_ns for one in judge.timed()}
    lines: list[tuple[int, tuple[str, str, str, str]]] = []
    for number, step in enumerate(program.steps):
        begun = judge.record.begun.get(number)
        if begun is None:
            break
        sent = judge.record.sent(number)
        at_ns = sent[-1].t_ns if sent else begun.t_ns
        far = off.get(number, 0)
        shown = f"{far / 1000:+.0f} us" if abs(far) > EXACT_NS else ""
        row = (f"{(at_ns - START_NS) / 1e9:.6f}", shown, f"line {step.event.line}", _text(step.event.what))
        lines.append((at_ns, row))
    for packet in judge.record.packets:
        seen = parse(packet.data) if packet.event < 0 and packet.t_ns >= START_NS else None
        if seen is not None:
            row = (f"{(packet.t_ns - START_NS) / 1e9:.6f}", "", "no line", f"{text_of(seen)} (raw numbers)")
            lines.append((packet.t_ns, row))
    rows = [row for _, row in sorted(lines, key=lambda line: line[0])]
    return lines_text(columns(rows, right={0, 1})) + "\n" if rows else ""


def _text(what: Packet | Call | Command | Code) -> str:
    match what:
        case Packet(text=text) | Call(text=text):
            return text
        case Command(text):
            return f"`{text.splitlines()[0] if text else ''}`"
        case Code(text):
            return f"%{{ {' '.join(text.split())} }}%"


def write_capture(record: Record, file: Path) -> None:
    """All packets as a pcap of raw IP, in nanoseconds; checksums that the kernel leaves to its device are filled in."""
    with open(file, "wb") as out:
        out.write(struct.pack("<IHHiIII", _NANOSECONDS, 2, 4, 0, 0, 1 << 18, _LINKTYPE_RAW))
        for packet in sorted(record.packets, key=lambda packet: packet.t_ns):
            data = _complete(packet)
            out.write(struct.pack("<IIII", *divmod(packet.t_ns, 1_000_000_000), len(data), len(data)) + data)


def _complete(packet: Captured) -> bytes:
    """A packet with its TCP checksum, as the device that offloads it would send it."""
    data = packet.data
    if packet.inbound or parse(data) is None:
        return data
    four = data[0] >> 4 == 4
    at = 4 * (data[0] & 15) if four else 40
    pseudo = data[12:20] if four else data[8:40]
    segment = data[at : at + 16] + b"\0\0" + data[at + 18 :]
    total = checksum(pseudo + struct.pack(">II", len(segment), 6) + segment)
    return data[: at + 16] + total.to_bytes(2, "big") + data[at + 18 :]
