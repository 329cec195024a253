"""The part of init.ndjson that the analysis needs: T0 on both clocks, cell-init's record of each capture, and the
kernel's counters of each host's namespace at the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import CaptureError, StoreError
from ..store.init_records import Capture, Dump, Exit, Offload, Proc, Ready, Ticks, Trace, read_init_log
from ..store.ndjson import last, of_kind
from ..testbed.compile import COUNTERS


@dataclasses.dataclass(frozen=True)
class CellRecords:
    """ready: T0 on both clocks (ns). captures: by file name. trace: None without one.

    proc: files of /proc as the hosts saw them at the end, which kernel_counters() reads. qdiscs: dumps of them, in the
    order of the cell; addresses: of those; rules: of the agents' rules, policers: of theirs, at its end.
    exits: program -> its end.
    checksums_left: an interface leaves TCP checksums to its card, which cannot do
    without. late_ns: by how much the sandbox woke late at most, on the wall clock; None on the virtual clock.
    """

    ready: Ready
    captures: dict[str, Capture]
    trace: Trace | None
    proc: list[Proc]
    qdiscs: list[Dump]
    addresses: list[Dump]
    rules: list[Dump]
    policers: list[Dump]
    exits: dict[str, Exit]
    checksums_left: bool
    late_ns: int | None = None


def read_cell_records(path: Path) -> CellRecords:
    """Read init.ndjson. Raises CaptureError: unreadable, without a record `ready` (no T0), or of another version."""
    try:
        records = read_init_log(path)
    except StoreError as error:
        raise CaptureError(str(error)) from error
    ready = last(records, Ready)
    if ready is None:
        raise CaptureError(f"{path}: holds no `ready` record, so there is no T0 to count from")
    dumps = of_kind(records, Dump)
    return CellRecords(
        ready=ready,
        captures={capture.file: capture for capture in of_kind(records, Capture)},
        trace=last(records, Trace),
        proc=of_kind(records, Proc),
        qdiscs=[dump for dump in dumps if dump.label == "qdisc"],
        addresses=[dump for dump in dumps if dump.label == "address"],
        rules=[dump for dump in dumps if dump.label == "rules"],
        policers=[dump for dump in dumps if dump.label == "policer"],
        exits={ended.id: ended for ended in of_kind(records, Exit)},
        checksums_left=any(
            name.startswith("tx-checksum") for offload in of_kind(records, Offload) for name in offload.left_on
        ),
        late_ns=max((ticks.worst_ns for ticks in of_kind(records, Ticks)), default=None),
    )


def kernel_counters(files: Sequence[Proc], namespaces: Sequence[str]) -> dict[str, dict[str, int]]:
    """Namespace (node) -> "Group.Name" -> count, from /proc/net/snmp, netstat and sctp/snmp: Tcp.RetransSegs,
    TcpExt.TCPDSACKRecv, Sctp.SctpT3Retransmits, ... namespaces: names by number.

    A file that this kernel does not have gives no counters. For SCTP the group is "Sctp" and the names are the
    kernel's.
    """
    counters: dict[str, dict[str, int]] = {}
    for file in files:
        if file.path not in COUNTERS:
            continue
        counts = counters.setdefault(namespaces[file.ns], {})
        text = file.text or ""
        counts.update(_sctp(text) if file.path == "net/sctp/snmp" else _groups(text))
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
