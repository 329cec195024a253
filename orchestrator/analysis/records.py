"""What cell-init and the apps wrote: init.ndjson and apps/<flow>.<role>.ndjson (docs/formats.md), as analysis uses it.

Times are ns from T0 once they leave this file; the apps' CLOCK_MONOTONIC is converted by T0 on both clocks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..errors import CaptureError

Record = dict[str, Any]


class CaptureRecord(msgspec.Struct):
    """cell-init's own account of one capture file."""

    file: str
    packets: int
    bytes: int
    dropped: int
    truncated: int
    errno: int
    fsync_errno: int


class CellRecords(msgspec.Struct):
    """T0 on both clocks (ns) and the captures' end records, by file name."""

    t0_realtime_ns: int
    t0_monotonic_ns: int
    captures: dict[str, CaptureRecord]


def read_ndjson(path: Path) -> list[Record]:
    """Every record of a file. Raises CaptureError: missing, or a line that is no JSON object.

    A last line without its end was being written when the writer died; it is left out.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror}") from error
    whole = data[: data.rfind(b"\n") + 1]
    try:
        return msgspec.json.Decoder(Record).decode_lines(whole)
    except msgspec.DecodeError as error:
        raise CaptureError(f"{path}: not NDJSON: {error}") from error


def last(records: list[Record], kind: str) -> Record | None:
    """The last record of a kind."""
    return next((record for record in reversed(records) if record.get("record") == kind), None)


def read_cell_records(path: Path) -> CellRecords:
    """init.ndjson. Raises CaptureError: no `ready` record (no T0 to count from), or a record of another form."""
    records = read_ndjson(path)
    ready = last(records, "ready")
    if ready is None:
        raise CaptureError(f"{path}: holds no `ready` record, so there is no T0 to count from")
    try:
        return msgspec.convert(
            {
                **{key: ready.get(key) for key in ("t0_realtime_ns", "t0_monotonic_ns")},
                "captures": {record.get("file"): record for record in records if record.get("record") == "capture"},
            },
            CellRecords,
        )
    except msgspec.ValidationError as error:
        raise CaptureError(f"{path}: {error}") from error
