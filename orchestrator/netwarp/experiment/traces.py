"""Reads traces of links: files beside the spec, or of netem-profiles/traces, that `trace` names.

Two formats. Delivery opportunities, as mahimahi has them: a line an opportunity, its time in ms from the trace's start;
one time may stand on several lines; the last one is the trace's length. Values over time: CSV whose header names `time`
and some of `rate`, `one_way_delay`, `loss`; a unit stands behind each number, or behind the name: `rate [Mbit/s]`. A
row holds from its time until the next row's.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.inside import InsidePath
from ..core.units import Kind, QuantityError, parse_quantity
from .problems import Problems
from .profiles import PROFILES
from .side_files import refused_link
from .toml_positions import Item

SHIPPED = PROFILES / "traces"
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}", re.ASCII)
LARGEST_BYTES = 16 << 20
MS = 1_000_000
COLUMNS: dict[str, Kind] = {"time": "time", "rate": "rate", "one_way_delay": "time", "loss": "ratio"}
_HEADER = re.compile(r"\s*([a-z_]+)\s*(?:\[([^\]]*)\])?\s*")
EXAMPLE = "time,rate,one_way_delay,loss and a row like 0 s,12 Mbit/s,20 ms,0 %"
LONGEST_MS = 2**31 - 1
LONGEST_DIGITS = 20
"""Of one time, leading zeros included."""


@dataclass(frozen=True, slots=True)
class TraceContent:
    """A trace as its file has it: opportunities_ms, or rows (time in ns, column -> value in its base unit)."""

    sha256: str
    opportunities_ms: tuple[int, ...] = ()
    rows: tuple[tuple[int, Mapping[str, float]], ...] = ()


@functools.lru_cache(maxsize=64)
def read_trace(content: bytes) -> TraceContent:
    """Read either format. Raises ValueError with the line that is wrong."""
    digest = hashlib.sha256(content).hexdigest()
    lines = content.decode("utf-8-sig").splitlines()
    if not lines:
        raise ValueError("is empty")
    if lines[0].strip().isdigit():
        return TraceContent(digest, opportunities_ms=tuple(_opportunities(lines)))
    try:
        return TraceContent(digest, rows=tuple(_rows(lines)))
    except csv.Error as error:
        raise ValueError(f"is no CSV: {error}") from error


def _opportunities(lines: list[str]) -> Iterator[int]:
    before = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not (text.isascii() and text.isdigit()) or len(text) > LONGEST_DIGITS or int(text) > LONGEST_MS:
            raise ValueError(f"line {number}: '{line[:20]}' is no time in whole ms")
        if int(text) < before:
            raise ValueError(f"line {number}: {text} comes after {before}; times do not go back")
        before = int(text)
        yield before
    if not before:
        raise ValueError("its last line is 0: a trace lasts at least 1 ms")


def _rows(lines: list[str]) -> Iterator[tuple[int, Mapping[str, float]]]:
    header = [_HEADER.fullmatch(name) for name in lines[0].split(",")]
    names = [match[1] if match else "" for match in header]
    units = [(match[2] or "") if match else "" for match in header]
    wrong = next((name for name, read in zip(lines[0].split(","), names, strict=True) if read not in COLUMNS), None)
    if wrong is not None or names[0] != "time" or len(names) < 2 or len(set(names)) < len(names):
        said = "its first column is not time" if wrong is None else f"there is no column '{wrong.strip()[:30]}'"
        raise ValueError(f"line 1: {said}; for example {EXAMPLE}")
    before = -1
    for number, row in enumerate(csv.reader(lines[1:]), 2):
        if not row:
            continue
        if len(row) != len(names):
            raise ValueError(f"line {number}: {len(row)} fields, but the header has {len(names)}")
        values: dict[str, float] = {}
        for name, unit, field in zip(names, units, row, strict=True):
            try:
                values[name] = parse_quantity(f"{field.strip()} {unit}".strip(), COLUMNS[name]).value
            except QuantityError as error:
                raise ValueError(f"line {number}, {name}: {error}") from error
        at_ns = int(values.pop("time"))
        if at_ns <= before or (before < 0 and at_ns):
            raise ValueError(f"line {number}: times begin with 0 s and rise from row to row")
        before = at_ns
        yield at_ns, values
    if before < 0:
        raise ValueError("has a header and no row")


def with_trace_files(document: Item, folder: Path, files: dict[str, bytes], problems: Problems) -> None:
    """Reads every file beside the spec that a document with a `trace` names anywhere (also by the level of a factor)
    into `files`.
    """
    if not _has_trace(document):
        return
    for item in _texts(document):
        name = str(item.value)
        if name in files or "." not in name or not FILE_NAME.fullmatch(name):
            continue
        path = InsidePath.at(folder, folder / name)
        if not refused_link(item, path, problems) and path.is_file():
            if path.stat().st_size > LARGEST_BYTES:
                problems.add(item, f"{name} is larger than {LARGEST_BYTES} bytes")
            else:
                files[name] = path.read_bytes()


def find_trace(name: str, files: Mapping[str, bytes]) -> bytes | None:
    """The content of a trace: of the spec's files, or one that netwarp ships; None if there is none of that name."""
    if not FILE_NAME.fullmatch(name):
        return None
    shipped = SHIPPED / name
    return files.get(name) or (shipped.read_bytes() if shipped.is_file() else None)


def _has_trace(item: Item) -> bool:
    return "trace" in item.table() or any(_has_trace(child) for child in (*item.table().values(), *item.items()))


def _texts(item: Item) -> Iterator[Item]:
    if isinstance(item.value, str):
        yield item
    for child in (*item.table().values(), *item.items()):
        yield from _texts(child)
