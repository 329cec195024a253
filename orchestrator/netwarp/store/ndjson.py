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
    whole = data[: data.rfind(b"\n") + 1]
    try:
        return msgspec.json.Decoder(Record).decode_lines(whole)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: not NDJSON: {error}") from error


def last(records: list[Record], kind: str) -> Record | None:
    """The last record of a kind."""
    return next((record for record in reversed(records) if record.get("record") == kind), None)
