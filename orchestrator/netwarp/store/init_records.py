"""The records of init.ndjson, which cell-init writes (apps/cell-init; docs/formats.md says what each member means)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from .ndjson import Record, decoder_of, read_ndjson


class InitRecord(Record, frozen=True, kw_only=True):
    """Base of the records of init.ndjson. on: the machine whose cell-init wrote it, of the back end hosts."""

    on: str | None = None


class Start(InitRecord, frozen=True):
    """The first one; kernel, kernel_version, machine: uname(2)."""

    version: int
    kernel: str
    kernel_version: str
    machine: str
    realtime_ns: int
    monotonic_ns: int


class Dump(InitRecord, frozen=True):
    """A netlink dump; replies: hexadecimal, one a datagram."""

    step: int
    label: str
    ns: int
    replies: tuple[str, ...]

    def data(self) -> list[bytes]:
        """The datagrams."""
        return [bytes.fromhex(reply) for reply in self.replies]


class Sysctl(InitRecord, frozen=True):
    """A sysctl, read back after it was set."""

    step: int
    ns: int
    path: str
    asked: str
    value: str


class Offload(InitRecord, frozen=True):
    """An interface's offloads after they were switched off: 0 or 1; left_on: features that could not be."""

    step: int
    ns: int
    iface: str
    tx: int
    rx: int
    sg: int
    tso: int
    gso: int
    gro: int
    left_on: tuple[str, ...]


class Proc(InitRecord, frozen=True):
    """A file of /proc in a namespace at the end; text None: this kernel does not have it."""

    step: int
    ns: int
    path: str
    text: str | None


class Bpf(InitRecord, frozen=True):
    """The maps of a packet program at the end, in hexadecimal; "" where one could not be read (the cell has failed)."""

    step: int
    index: int
    settings: str = ""
    state: str = ""


class Trace(InitRecord, frozen=True):
    """The tracepoints' file: events written, and events lost because the kernel's buffer was full."""

    step: int
    file: str
    events: int
    lost: int
    errno: int


class Ticks(InitRecord, frozen=True):
    """The lateness of cell-init between its steps, on the wall clock."""

    every_ns: int
    late_ns: int
    ticks: int
    late: int
    worst_ns: int


class Memory(InitRecord, frozen=True):
    """A guest's memory; kswapd_sleeps None: its kswapd was not found."""

    kswapd_sleeps: int | None
    least_free_bytes: int
    most_cached_bytes: int


class Waiting(InitRecord, frozen=True):
    """All is set up; a file is waited for."""

    file: str


class Ready(InitRecord, frozen=True):
    """T0 on both clocks.

    clock_error_ns: by how much times of two machines may be wrong against each other; 0 on one machine.
    event_error_ns: the longest that a command of the user's took which made a fault or a repair.
    """

    t0_realtime_ns: int
    t0_monotonic_ns: int
    waited_ns: int
    clock_error_ns: int = 0
    event_error_ns: int = 0


class Timeline(InitRecord, frozen=True):
    """A step of the timeline, begun at t_ns; step None: a command of the user's, which ran on the controller."""

    step: int | None
    verb: str
    at_ns: int
    t_ns: int | None
    link: str | None = None
    action: str | None = None
    ended_ns: int | None = None


class Exit(InitRecord, frozen=True):
    """The end of a process, t_ns from T0; killed: by cell-init, after the grace; cpu_ns: user and system time, on the
    wall clock.
    """

    id: str
    status: int | None
    signal: int | None
    killed: bool
    t_ns: int | None
    cpu_ns: int | None = None


class Capture(InitRecord, frozen=True):
    """A capture file at its end."""

    file: str
    iface: str
    packets: int
    bytes: int
    dropped: int
    truncated: int
    first_t_ns: int | None
    last_t_ns: int | None
    errno: int
    fsync_errno: int


class End(InitRecord, frozen=True):
    """The last one of a file that was not cut off."""

    reason: Literal["completed", "timed_out", "failed", "unsupported"]
    step: int | None
    message: str | None
    t_ns: int | None


DECODER = decoder_of(InitRecord)
"""Of one line, or of many."""


def read_init_log(path: Path, named: str = "") -> list[InitRecord]:
    """The records of an init.ndjson (of the lines with a kind's name). Raises StoreError (ndjson.read_ndjson)."""
    return read_ndjson(path, DECODER, named)
