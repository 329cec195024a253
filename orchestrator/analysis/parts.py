"""One capture point of any size: its totals always, its rows only if they are few enough for memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from .capture import ROW_TABLES, TOTAL_TABLES, Capture
from .native import Handle, Rows, layouts

PACKETS_IN_MEMORY = 1_000_000
"""A file with more packets is read for totals and binned series only, unless asked otherwise: a packet with its
segment or chunks takes about 250 bytes as rows, and as much again while it is worked on."""


PART_PACKETS = 65536
"""As many rows at a time as stay in the processor's caches."""


def read_point(files: Sequence[str | os.PathLike[str]], *, full: bool) -> tuple[Capture, bool]:
    """The tables of one capture point, and whether the row tables are there (else: empty). Raises CaptureError."""
    handle = Handle(files, ROW_TABLES)
    whole = not handle.read(0 if full else PACKETS_IN_MEMORY)
    more = not whole
    while more:
        handle.clear()
        more = handle.read(PART_PACKETS)
    if not whole:
        handle.clear()
    return _capture(handle, (*TOTAL_TABLES, *ROW_TABLES) if whole else TOTAL_TABLES), whole


def _capture(handle: Handle, tables: Sequence[str]) -> Capture:
    return Capture(
        files=handle.files,
        trouble=tuple(handle.trouble(source) for source in range(len(handle.files))),
        **{name: handle.rows(name) if name in tables else handle.rows(name)[:0] for name in layouts()},
    )


def packets_in_parts(capture: Capture, whole: bool) -> Iterator[Rows]:
    """The `packets`, all at once if they are in memory, else read again in parts (each valid until the next)."""
    if whole:
        yield capture.packets
        return
    handle = Handle(capture.files, ("packets",))
    more = True
    while more:
        more = handle.read(PART_PACKETS)
        yield handle.rows("packets")
        handle.clear()
