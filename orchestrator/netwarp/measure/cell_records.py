"""init.ndjson (docs/formats.md), as analysis uses it: T0 on both clocks, and what cell-init says of each capture."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..core.errors import CaptureError, StoreError
from ..store.ndjson import Record, last, read_ndjson


class CaptureRecord(msgspec.Struct):
    """cell-init's own account of one capture file."""

    file: str
    packets: int
    bytes: int
    dropped: int
    truncated: int
    errno: int
    fsync_errno: int


class TraceRecord(msgspec.Struct):
    """cell-init's own account of the tracepoints: events written, events the kernel had no room for."""

    events: int
    lost: int
    errno: int


class CellRecords(msgspec.Struct):
    """T0 on both clocks (ns), the captures' end records by file name, and the trace's (None: nothing was traced)."""

    t0_realtime_ns: int
    t0_monotonic_ns: int
    captures: dict[str, CaptureRecord]
    trace: TraceRecord | None = None
    proc: list[Record] = []
    """Files of /proc as the hosts saw them at the end: what kernel_counters() reads."""


msgspec.json.Decoder(CellRecords)  # what convert() needs is made here, in one thread (model.from_json says why)


def read_cell_records(path: Path) -> CellRecords:
    """init.ndjson. Raises CaptureError: unreadable, no `ready` record (no T0 to count from), or one of another form."""
    try:
        records = read_ndjson(path)
    except StoreError as error:
        raise CaptureError(str(error)) from error
    ready = last(records, "ready")
    if ready is None:
        raise CaptureError(f"{path}: holds no `ready` record, so there is no T0 to count from")
    try:
        return msgspec.convert(
            {
                **{key: ready.get(key) for key in ("t0_realtime_ns", "t0_monotonic_ns")},
                "captures": {record.get("file"): record for record in records if record.get("record") == "capture"},
                "trace": last(records, "trace"),
                "proc": [record for record in records if record.get("record") == "proc"],
            },
            CellRecords,
        )
    except msgspec.ValidationError as error:
        raise CaptureError(f"{path}: {error}") from error
