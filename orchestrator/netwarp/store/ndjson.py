"""Reads NDJSON as cell-init and the apps write it (docs/formats.md). Nothing else parses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import StoreError
from . import compressed

Record = dict[str, Any]


def read_ndjson(path: Path) -> list[Record]:
    """Every record of a file, plain or compressed.

    Raises StoreError if it cannot be read or a complete line is not a JSON object. A last line without a line feed was
    being written when the writer died, and is left out.
    """
    try:
        data = compressed.read(path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    return _decoded(path, data[: data.rfind(b"\n") + 1])


def read_records(path: Path, kind: str) -> list[Record]:
    """The records of one kind: a line without its name is not decoded. Raises the same as `read_ndjson`."""
    name = b'"%s"' % kind.encode()
    try:
        lines = compressed.read(path).split(b"\n")[:-1]
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    found = _decoded(path, b"\n".join(line for line in lines if name in line))
    return [record for record in found if record.get("record") == kind]


def _decoded(path: Path, lines: bytes) -> list[Record]:
    try:
        return msgspec.json.Decoder(Record).decode_lines(lines)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: not NDJSON: {error}") from error


def last(records: list[Record], kind: str) -> Record | None:
    """The last record of a kind."""
    return next((record for record in reversed(records) if record.get("record") == kind), None)
