"""The HEARTBEATs of an SCTP flow that stand in a file (`heartbeats = { file = "beats.csv" }`): sent at these instants,
in place of those that the kernels would send.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from ..core.types import Heartbeat, Heartbeats
from .fields import Field, Reader, check_keys, quantity
from .problems import Problems, nearest
from .read_messages import LARGEST_FILE_BYTES, MOST_ROWS, TIME_UNITS, S
from .side_files import SideFile
from .toml_positions import Item

HEARTBEATS: dict[str, Field] = {
    "file": Field("open", '"beats.csv"'),
    "until": quantity("time", example='"50 s"'),
}
EXAMPLE = '{ file = "beats.csv" }'
ROLES = ("sender", "receiver")
_READ = "\0"
"""Begins the text that stands in place of the file's name once the file is read: no file's name has it."""


def read_heartbeats(item: Item, paths: Sequence[str], start_ns: int, problems: Problems) -> Heartbeats:
    """In the order of their times; mistakes are collected. paths, start_ns: of the flow."""
    table = Reader(item, HEARTBEATS, problems)
    check_keys(item, HEARTBEATS, problems)
    file = item.get("file") if table.need("file") else None
    text = "" if file is None else str(file.value)
    if file is not None and not text.startswith(_READ):
        table.wrong("file", f"has to stand where the flow is written; for example heartbeats = {EXAMPLE}")
    beats = []
    for word in text[1:].split():
        at_ns, end, path = word.split(":")
        beats.append(Heartbeat(int(at_ns), "sender" if end == ROLES[0] else "receiver", path))
    for path in sorted({beat.path for beat in beats} - set(paths)):
        table.wrong("file", f'"{path}" is no path of this flow{nearest(path, paths)}')
    until = table.whole("until")
    if until is not None and until < start_ns:
        table.wrong("until", "is before the start of the flow")
    return Heartbeats(tuple(beats), until)


def read_heartbeat_file(content: bytes) -> str:
    """What stands in place of the file's name. Raises ValueError, with the line."""
    words: list[str] = []
    before_ns = 0
    try:
        lines = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        header = [name.strip() for name in next(lines, [])]
        unit = TIME_UNITS.get(header[0]) if header else None
        if unit is None or header[1:] != ["end", "path"]:
            raise ValueError("begins with no such column names: time_s,end,path (also time_ms, time_us)")
        for cells in filter(None, lines):
            if len(words) >= MOST_ROWS:
                raise ValueError(f"has more than {MOST_ROWS} heartbeats")
            at_ns, word = _heartbeat([cell.strip() for cell in cells], unit, lines.line_num)
            if at_ns < before_ns:
                raise ValueError(f"line {lines.line_num}: is before the line above")
            before_ns = at_ns
            words.append(word)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"is no CSV: {error}") from error
    return _READ + " ".join(words)


def _heartbeat(cells: Sequence[str], unit: int, line: int) -> tuple[int, str]:
    if len(cells) != 3:
        raise ValueError(f"line {line}: has {len(cells)} values in place of 3")
    at, end, path = cells
    try:
        time = Decimal(at)
    except InvalidOperation:
        raise ValueError(f"line {line}: has no time") from None
    if not time.is_finite() or not 0 <= time * unit <= 86400 * S:
        raise ValueError(f"line {line}: a time is from 0 to a day")
    if end not in ROLES:
        raise ValueError(f"line {line}: an end is sender or receiver")
    if not path or set(path) & set(": \t\n"):
        raise ValueError(f"line {line}: has no name of a path")
    return int(time * unit), f"{int(time * unit)}:{end}:{path}"


HEARTBEAT_FILE = SideFile(("heartbeats",), "file", ("csv",), "beats.csv", LARGEST_FILE_BYTES, read_heartbeat_file)
