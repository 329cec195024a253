"""The messages of a flow: `messages = { gaps = { exponential = "50 ms" }, sizes = "120 B" }`, and `reverse` with the
same keys for what the receiver sends over the same connection.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from ..core.messages import MOST_MESSAGES, Law, Messages, Row
from ..core.types import OptionValue
from .fields import Field, Reader, check_keys, quantity
from .laws import LAWS, SIZES, TIMES, read_law
from .options import LONGEST_LIST, SCHEDULE
from .problems import Problems
from .side_files import SideFile
from .toml_positions import Item

US, S = 1000, 10**9
LARGEST_MESSAGE = 16 << 20
LARGEST_FILE_BYTES = 16 << 20
MOST_ROWS = 100_000
_TIME = quantity("time", example='"50 ms"', high=3600 * S)
_SIZE = quantity("data", example='"120 B"', low=1, high=LARGEST_MESSAGE)
_GAP = quantity("time", example='"50 ms"', low=US, high=3600 * S)
EXAMPLE = '{ gaps = { exponential = "50 ms" }, sizes = "120 B" }'
MESSAGES: dict[str, Field] = {
    "gaps": Field("open", TIMES, fields=LAWS),
    "think": Field("open", '{ exponential = "1 s" }', fields=LAWS),
    "file": Field("open", '"voice.csv"'),
    "sizes": Field("open", SIZES, fields=LAWS),
    "burst": Field("integer", "3", low=1, high=LONGEST_LIST),
    "on": Field("open", '{ exponential = "1 s" }', fields=LAWS),
    "off": Field("open", '{ exponential = "1.35 s" }', fields=LAWS),
}
REVERSE: dict[str, Field] = {
    **MESSAGES,
    "bytes": quantity("data", example='"1 MB"', low=1),
    "streams": Field("integer", "2", low=1, high=65535),
}
TIMED = ("gaps", "think", "file")
"""Keys that say when messages are due; one of them, or none."""
_ROWS = "\0"
"""Begins the text that stands in place of a file's name once the file is read: no file's name has it."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a table says of one direction. message_bytes: None: sizes does not say one. options: an interval, where all
    messages are alike. messages: where they are listed one by one.
    """

    message_bytes: int | None
    options: dict[str, OptionValue]
    messages: Messages | None


def read_messages(
    item: Item, default_bytes: int, largest_bytes: int, streams: int, problems: Problems, fields: Mapping[str, Field]
) -> Described | None:
    """None if anything is wrong (the problem is collected).

    default_bytes: the size without `sizes`. largest_bytes: of one message, as protocol and buffers allow. streams: over
    which messages go round robin.
    """
    before, table = len(problems), Reader(item, fields, problems)
    check_keys(item, fields, problems)
    if len(problems) > before:
        return None
    timed = [key for key in TIMED if table.has(key)]
    if len(timed) > 1:
        table.problem(timed[1], f"{timed[0]} says when messages are due already; leave one of the two out")
    sizes = _law(table, "sizes", _SIZE, SIZES)
    wait = _law(table, "gaps", _GAP, TIMES) or _law(table, "think", _TIME, TIMES)
    on, off = (_law(table, key, _GAP, TIMES) for key in ("on", "off"))
    burst = table.integer("burst") or 1
    for key in ("burst", "on", "off"):
        if table.has(key) and not table.has("gaps"):
            table.problem(key, f"needs gaps, which say how far messages are apart; for example messages = {EXAMPLE}")
    if table.has("on") != table.has("off"):
        given, other = ("on", "off") if table.has("on") else ("off", "on")
        table.problem(given, f'needs {other} too; for example {other} = {{ exponential = "1 s" }}')
    if table.has("file") and table.has("sizes"):
        table.problem("sizes", "the file has each message's size; leave this out")
    if sizes is not None and sizes.kind != "fixed" and not timed:
        table.problem("sizes", f"drawn sizes need gaps or think; for example messages = {EXAMPLE}")
    fixed = int(sizes.scale) if sizes is not None and sizes.kind == "fixed" else None
    if fixed is not None and fixed > largest_bytes:
        table.wrong("sizes", f"a message of this flow has at most {largest_bytes} B; send smaller ones")
    rows = _rows(table, largest_bytes, streams) if table.has("file") else ()
    if len(problems) > before:
        return None
    if table.has("file"):
        largest = max(row[1] for row in rows)
        return Described(largest, {}, Messages("file", Law("fixed", float(largest)), largest_bytes, streams, rows=rows))
    if not timed or wait is None:
        return Described(fixed, {}, None)
    size = sizes or Law("fixed", float(default_bytes))
    if table.has("gaps") and wait.kind == size.kind == "fixed" and on is None:
        interval: dict[str, OptionValue] = {"interval_ns": int(wait.scale)}
        if burst > 1:
            interval["burst_bytes"] = ",".join([str(int(size.scale))] * burst)
        return Described(fixed, interval, None)
    times = "gaps" if table.has("gaps") else "think"
    listed = Messages(times, size, largest_bytes, streams, wait, burst, on, off)  # type: ignore[arg-type]
    return Described(fixed, {}, listed)


def check_count(messages: Messages, span_ns: int, cycle_ns: int, item: Item, problems: Problems) -> None:
    """Reports more messages than are listed one by one."""
    about = messages.count(span_ns, cycle_ns)
    if messages.times == "gaps" and about > MOST_MESSAGES / 2:
        many = f"{about:.0f}" if math.isfinite(about) else "very many"
        problems.add(
            item, f"about {many} messages; at most {MOST_MESSAGES // 2} can be drawn: longer gaps, or a shorter flow"
        )


def scheduled_already(sender: Item | None) -> str | None:
    """The key of a flow's sender that says when messages are sent; None without one."""
    return next((key for key in SCHEDULE if sender is not None and sender.get(key) is not None), None)


def _law(table: Reader, key: str, value: Field, example: str) -> Law | None:
    item = table.item.get(key)
    return None if item is None else read_law(item, value, example, table.problems)


def _rows(table: Reader, largest_bytes: int, streams: int) -> tuple[Row, ...]:
    item = table.item.get("file")
    text = str(item.value) if item is not None else ""
    if not text.startswith(_ROWS):
        table.wrong("file", 'has to stand where the messages are written; for example messages.file = "voice.csv"')
        return ()
    rows = tuple(_row(word) for word in text[1:].split())
    if largest := max((row[1] for row in rows if row[1] > largest_bytes), default=0):
        table.wrong("file", f"has a message of {largest} B; a message of this flow has at most {largest_bytes} B")
    if highest := max((row[2] for row in rows if row[2] >= streams), default=0):
        table.wrong("file", f"has a message on stream {highest}; the flow has the streams 0 to {streams - 1}")
    return rows


def _row(word: str) -> Row:
    at_ns, size, stream = word.split(":")
    return int(at_ns), int(size), int(stream)


TIME_UNITS = {"time_s": S, "time_ms": 10**6, "time_us": US}
COLUMNS = "time_s,bytes or time_s,bytes,stream (also time_ms, time_us)"


def read_message_file(text: bytes) -> list[Row]:
    """The messages of a CSV file with a line of column names. Raises ValueError, with the line."""
    try:
        lines = csv.reader(io.StringIO(text.decode("utf-8-sig"), newline=""), strict=True)
        header = [name.strip() for name in next(lines, [])]
        unit = TIME_UNITS.get(header[0]) if header else None
        if unit is None or header[1:] not in (["bytes"], ["bytes", "stream"]):
            raise ValueError(f"begins with no such column names: {COLUMNS}")
        rows: list[Row] = []
        for cells in lines:
            if not cells:
                continue
            if len(rows) >= MOST_ROWS:
                raise ValueError(f"has more than {MOST_ROWS} messages")
            rows.append(_message(cells, len(header), unit, lines.line_num))
            if len(rows) > 1 and rows[-1][0] < rows[-2][0]:
                raise ValueError(f"line {lines.line_num}: is due before the line above")
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"is no CSV: {error}") from error
    if not rows:
        raise ValueError("has no message")
    return rows


def _message(cells: list[str], columns: int, unit: int, line: int) -> Row:
    if len(cells) != columns:
        raise ValueError(f"line {line}: has {len(cells)} values in place of {columns}")
    try:
        time = Decimal(cells[0].strip())
        size, stream = int(cells[1]), int(cells[2]) if columns > 2 else 0
    except (InvalidOperation, ValueError):
        raise ValueError(f"line {line}: has no numbers") from None
    if not time.is_finite() or not 0 <= time * unit <= 86400 * S:
        raise ValueError(f"line {line}: a time is from 0 to a day")
    if not 1 <= size <= LARGEST_MESSAGE or not 0 <= stream <= 65535:
        raise ValueError(f"line {line}: a message has 1 to {LARGEST_MESSAGE} bytes and a stream from 0 to 65535")
    return int(time * unit), size, stream


def _text_of_messages(content: bytes) -> str:
    return _ROWS + " ".join(f"{at}:{size}:{stream}" for at, size, stream in read_message_file(content))


MESSAGE_FILE = SideFile(("messages", "reverse"), "file", ("csv",), "voice.csv", LARGEST_FILE_BYTES, _text_of_messages)
