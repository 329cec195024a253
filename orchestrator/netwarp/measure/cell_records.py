"""Reads init.ndjson (docs/formats.md) for the analysis: T0 on both clocks, cell-init's record of each capture, and the
kernel's counters of each host's namespace at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..core.errors import CaptureError, StoreError
from ..store.ndjson import Record, last, read_ndjson
from ..testbed.compile import COUNTERS


class CaptureRecord(msgspec.Struct):
    """The record `capture` of one capture file."""

    file: str
    packets: int
    bytes: int
    dropped: int
    truncated: int
    errno: int
    fsync_errno: int


class TraceRecord(msgspec.Struct):
    """The record `trace`: events written, and events lost because the kernel's buffer was full."""

    events: int
    lost: int
    errno: int


class CellRecords(msgspec.Struct):
    """T0 on both clocks (ns), the records of the captures by file name, and the record of the trace (None: no
    trace).
    """

    t0_realtime_ns: int
    t0_monotonic_ns: int
    captures: dict[str, CaptureRecord]
    trace: TraceRecord | None = None
    proc: list[Record] = []
    """Files of /proc as the hosts saw them at the end: what kernel_counters() reads."""
    qdiscs: list[Record] = []
    """Dumps of qdiscs, in the order of the cell."""
    rules: list[Record] = []
    """Dumps of the agents' rules, at its end."""
    clock_error_ns: int = 0
    """By how much times of two machines may be wrong against each other; 0 on one machine."""
    event_error_ns: int = 0
    """The longest that a command of the user's took which made a fault or a repair."""


msgspec.json.Decoder(CellRecords)  # what convert() needs is made here, in one thread (model.from_json says why)


def read_cell_records(path: Path) -> CellRecords:
    """Read init.ndjson. Raises CaptureError: unreadable, without a record `ready` (no T0), or of another version."""
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
                **{key: ready.get(key, 0) for key in ("clock_error_ns", "event_error_ns")},
                "captures": {record.get("file"): record for record in records if record.get("record") == "capture"},
                "trace": last(records, "trace"),
                "proc": [record for record in records if record.get("record") == "proc"],
                "qdiscs": [record for record in records if record.get("label") == "qdisc"],
                "rules": [record for record in records if record.get("label") == "rules"],
            },
            CellRecords,
        )
    except msgspec.ValidationError as error:
        raise CaptureError(f"{path}: {error}") from error


def kernel_counters(init_records: Sequence[Record], namespaces: Sequence[str]) -> dict[str, dict[str, int]]:
    """Namespace (node) -> "Group.Name" -> count, from /proc/net/snmp, netstat and sctp/snmp: Tcp.RetransSegs,
    TcpExt.TCPDSACKRecv, Sctp.SctpT3Retransmits, ... init_records: of init.ndjson; namespaces: names by number.

    A file that this kernel does not have gives no counters. For SCTP the group is "Sctp" and the names are the
    kernel's.
    """
    counters: dict[str, dict[str, int]] = {}
    for record in init_records:
        if record.get("record") != "proc" or record.get("path") not in COUNTERS:
            continue
        counts = counters.setdefault(namespaces[record["ns"]], {})
        text = record.get("text") or ""
        counts.update(_sctp(text) if record["path"] == "net/sctp/snmp" else _groups(text))
    return counters


def _groups(text: str) -> dict[str, int]:
    """Pairs of lines: "Tcp: A B" and "Tcp: 1 2"."""
    lines = [line.split() for line in text.splitlines() if ":" in line]
    counts: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        group = names[0].rstrip(":")
        counts |= {f"{group}.{name}": int(value) for name, value in zip(names[1:], values[1:], strict=True)}
    return counts


def _sctp(text: str) -> dict[str, int]:
    """Lines of a name and a number."""
    pairs = (line.split() for line in text.splitlines())
    return {f"Sctp.{name}": int(value) for name, value in pairs}
