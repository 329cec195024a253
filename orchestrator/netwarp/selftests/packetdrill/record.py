"""The records of the player in the guest (drill.ndjson; docs/formats.md), as types."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec


class _Line(msgspec.Struct, omit_defaults=True):
    record: str
    event: int = -1
    t_ns: int = 0
    base_ns: int = 0
    due_ns: int = 0
    data: str = ""
    length: int = 0
    result: int = 0
    error: int = 0
    status: int = 0
    which: str = ""
    reason: str = ""
    memory: list[_Piece] = []


class _Piece(msgspec.Struct):
    piece: int
    data: str
    length: int


@dataclass(frozen=True, slots=True)
class Begun:
    """An event's beginning. base_ns: the end of the one before; due_ns: its time by the script; t_ns: when it was."""

    base_ns: int
    due_ns: int
    t_ns: int


@dataclass(frozen=True, slots=True)
class Captured:
    """A packet. inbound: it was sent into the kernel; event: -1 if no event took it."""

    t_ns: int
    data: bytes
    inbound: bool
    event: int


@dataclass(frozen=True, slots=True)
class Returned:
    """The end of a call. memory: piece -> its content."""

    t_ns: int
    result: int
    error: int
    memory: dict[int, bytes]


@dataclass(slots=True)
class Record:
    """A whole run. shells: (event or -1, which, exit status); failed: event -> why the script could not go on; stopped:
    the event under way when its time was over; ended: the player came to its end.
    """

    begun: dict[int, Begun] = field(default_factory=dict)
    returned: dict[int, Returned] = field(default_factory=dict)
    packets: list[Captured] = field(default_factory=list)
    shells: list[tuple[int, str, int]] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    stopped: int | None = None
    ended: bool = False

    def sent(self, event: int) -> list[Captured]:
        """The packets that the kernel sent and this event took."""
        return [packet for packet in self.packets if packet.event == event and not packet.inbound]


def read_record(path: Path) -> Record:
    """Read drill.ndjson; a line that a dying guest left half is not there. Raises OSError, ValueError."""
    decoder = msgspec.json.Decoder(_Line)
    record = Record()
    for text in path.read_bytes().split(b"\n")[:-1]:
        line = decoder.decode(text)
        match line.record:
            case "event":
                record.begun[line.event] = Begun(line.base_ns, line.due_ns, line.t_ns)
            case "returned":
                memory = {one.piece: _filled(one.data, one.length) for one in line.memory}
                record.returned[line.event] = Returned(line.t_ns, line.result, line.error, memory)
            case "injected" | "sent" | "passed":
                data = _filled(line.data, line.length)
                record.packets.append(Captured(line.t_ns, data, line.record == "injected", line.event))
            case "shell":
                record.shells.append((line.event, line.which, line.status))
            case "failed":
                record.failed[line.event] = line.reason
            case "stopped":
                record.stopped = line.event
            case "end":
                record.ended = True
            case other:
                raise ValueError(f"{path}: an unknown record '{other}'")
    return record


def _filled(data: str, length: int) -> bytes:
    """Bytes without the zeros at their end, with them."""
    if not 0 <= length <= 1 << 24:
        raise ValueError(f"a packet of {length} bytes")
    return bytes.fromhex(data).ljust(length, b"\0")
