"""Loads the C analyser through ctypes: its table layouts, and one handle per capture point.

The layouts come from the library itself (the X-macros of netwarp_analyzer.h), so the dtypes here cannot differ from the
rows there. Every call releases the GIL; a handle is used by one thread at a time.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.checkout import CHECKOUT
from ..core.errors import CaptureError, StoreError, os_words
from ..core.inside import InsidePath
from ..core.limits import limits

ABI = 14  # NWA_ABI of apps/analyzer/netwarp_analyzer.h, which these constants must equal
UNKNOWN = int(np.iinfo(np.int64).min)  # The value "not known" in any 64-bit signed column
NONE = 0xFFFFFFFF  # The value "none" in any id column
CHECKSUMS, SORT, LEAVE_COPIES, UNFINISHED, GO_ON, MOST_SHIFT = 1, 2, 4, 8, 16, 24
MALLOPT_TRIM_THRESHOLD, MALLOPT_MMAP_THRESHOLD = -1, -3  # mallopt(3)
LIBRARY_NAME = "libnetwarp_analyzer.so"
LIBRARY_VARIABLE = "NETWARP_ANALYZER_LIBRARY"

TagPair = tuple[tuple[int, int], tuple[int, int]]
"""Port and verification tag of each end of an association."""
Rows = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class _Field(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("offset", ctypes.c_uint32),
        ("values", ctypes.c_uint32),
    ]


class _Memory:
    """Rows in the memory of the C library as NumPy sees them. It keeps the handle alive as long as an array refers to
    them.
    """

    def __init__(self, handle: CoreHandle, address: int, rows: int, row_bytes: int) -> None:
        self.handle = handle
        self.__array_interface__ = {
            "version": 3,
            "shape": (rows,),
            "typestr": f"|V{row_bytes}",
            "data": (address, True),
        }


def library_path() -> Path:
    """The path of the library: $NETWARP_ANALYZER_LIBRARY, or build/lib of this checkout."""
    given = os.environ.get(LIBRARY_VARIABLE)
    return Path(given) if given else CHECKOUT / "build" / "lib" / LIBRARY_NAME


def loaded_digest() -> str | None:
    """SHA-256 of the library that this process has loaded; None: none yet. It stays loaded when its file changes."""
    if not _loaded.cache_info().currsize:
        return None
    import hashlib  # only workers ask; the summary of a capture starts sooner without it

    return hashlib.sha256(_loaded()[1]).hexdigest()


@functools.cache
def _loaded() -> tuple[ctypes.CDLL, bytes]:
    path = library_path()
    try:
        content = path.read_bytes()
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise CaptureError(f"the analyser's core cannot be loaded: {error}. Build it: make -C apps") from error
    pointer, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    for name, result, arguments in (
        ("nwa_abi", u32, []),
        ("nwa_describe", ctypes.c_char_p, [u32, pointer, pointer, pointer]),
        ("nwa_open", pointer, [pointer, u32, u32, u32, ctypes.c_char_p, ctypes.c_int32]),
        ("nwa_join", ctypes.c_bool, [pointer, ctypes.c_uint16, u32, ctypes.c_uint16, u32]),
        ("nwa_read", ctypes.c_int, [pointer, u64]),
        ("nwa_rows", pointer, [pointer, u32, pointer]),
        ("nwa_clear", None, [pointer]),
        ("nwa_error", ctypes.c_char_p, [pointer]),
        ("nwa_trouble", ctypes.c_char_p, [pointer, u32]),
        ("nwa_close", None, [pointer]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.nwa_abi() != ABI:
        raise CaptureError(f"{path} has interface {library.nwa_abi()}, this netwarp needs {ABI}: make -C apps")
    _keep_freed_memory()
    return library, content


def _keep_freed_memory() -> None:
    """Make malloc keep the memory that NumPy frees (up to 1 GiB) for the next array. By default every large array
    returns to the kernel, and the page faults of getting it again cost more than the arithmetic (analyze_tcp: half its
    time).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return
    mallopt(MALLOPT_MMAP_THRESHOLD, 32 << 20)
    mallopt(MALLOPT_TRIM_THRESHOLD, 1 << 30)


@functools.cache
def layouts() -> dict[str, np.dtype[Any]]:
    """Name and row dtype of every table, in the order of the library's table numbers. Columns `f[2]` are by
    direction.
    """
    library = _loaded()[0]
    dtypes: dict[str, np.dtype[Any]] = {}
    row_bytes, count, fields = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.POINTER(_Field)()
    while True:
        name = library.nwa_describe(len(dtypes), ctypes.byref(row_bytes), ctypes.byref(count), ctypes.byref(fields))
        if name is None:
            return dtypes
        columns = [fields[i] for i in range(count.value)]
        dtypes[name.decode()] = np.dtype(
            {
                "names": [column.name.decode() for column in columns],
                "formats": [_format(column) for column in columns],
                "offsets": [column.offset for column in columns],
                "itemsize": row_bytes.value,
            }
        )


def _format(column: _Field) -> Any:
    kind = column.type.decode()
    if kind == "S16":
        return "V16"
    return kind if column.values == 1 else (kind, (column.values,))


PART_PACKETS = 1 << 17
"""Read between two looks at how many connections there are."""


class CoreHandle:
    """One open capture point: all files of one node's interfaces, read as one, merged by time."""

    def __init__(
        self,
        files: Sequence[str | os.PathLike[str]],
        tables: Sequence[str],
        options: int = 0,
        *,
        packet_filter: str | None = None,
        stop_fd: int | None = None,
        associations: Sequence[TagPair] = (),
    ) -> None:
        """Open the files. `tables`: the row tables to keep beside the tables of totals (TOTAL_TABLES in capture.py).
        packet_filter: a filter in libpcap's language; other packets are skipped. stop_fd: reading ends when this
        descriptor is readable. associations: SCTP's, whose tags the capture shows in no handshake.

        Raises CaptureError: a file cannot be opened, is not a capture, or has a link type that is not supported.
        """
        self._library = _loaded()[0]
        self._open = None
        self._names: dict[str, str] = {}
        self.files = tuple(os.fspath(file) for file in files)
        names = list(layouts())
        if unknown := set(tables) - set(names):
            raise ValueError(f"no such analyser table: {sorted(unknown)}")
        table_mask = sum(1 << names.index(table) for table in set(tables))
        with contextlib.ExitStack() as opened:
            given = [self._given(file, opened) for file in files]
            array = (ctypes.c_char_p * len(given))(*map(os.fsencode, given))
            self._open = self._library.nwa_open(
                array, len(given), table_mask, options | (limits().capture_bytes.bit_length() - 1) << MOST_SHIFT,
                None if packet_filter is None else os.fsencode(packet_filter), -1 if stop_fd is None else stop_fd,
            )  # fmt: skip
        if self._open is None:
            raise CaptureError("the analyser has no memory")
        self._raise_error()
        for (port, tag), (other_port, other_tag) in associations:
            if not self._library.nwa_join(self._open, port, tag, other_port, other_tag):
                raise CaptureError("the analyser has no memory")

    def _given(self, file: str | os.PathLike[str], opened: contextlib.ExitStack) -> str:
        """The name by which the library opens a file: of one in a run directory that of a descriptor, since the library
        would follow links.
        """
        if not isinstance(file, InsidePath):
            return os.fspath(file)
        try:
            handle = file.descriptor(os.O_RDONLY)
        except (OSError, StoreError) as error:
            said = os_words(error) if isinstance(error, OSError) else str(error)
            raise CaptureError(said if str(file) in said else f"{file}: {said}") from error
        opened.callback(os.close, handle)
        name = f"/proc/self/fd/{handle}"
        self._names[name] = str(file)
        return name

    def __del__(self) -> None:
        if getattr(self, "_open", None):
            self._library.nwa_close(self._open)

    def _raise_error(self) -> None:
        if error := self._library.nwa_error(self._open).decode(errors="replace"):
            raise CaptureError(self._with_names(error))

    def _with_names(self, text: str) -> str:
        for opened, name in self._names.items():
            text = text.replace(opened, name)
        return text

    def read(self, packets: int = 0) -> bool:
        """Read that many packets (0: all), fewer where they have many rows (NWA_ROW_BYTES). True: there are more.
        Raises CaptureError, also of more connections or paths than the limits.
        """
        left, more = packets, True
        while more and (left or not packets):
            part = min(left, PART_PACKETS) if packets else PART_PACKETS
            status = int(self._library.nwa_read(self._open, part))
            if status < 0:
                self._raise_error()
            more, left = status > 0, left - part
            self._check_limits()
        return more

    def _check_limits(self) -> None:
        """What takes memory until the end. Raises CaptureError."""
        for limit, count in (
            ("connections", len(self.rows("flows"))),
            ("paths", max(len(self.rows(table)) for table in ("paths", "conversations", "tunnels"))),
            ("paths_of_one", int(np.bincount(self.rows("flow_paths")["flow"]).max(initial=0))),
        ):
            if count > getattr(limits(), limit):
                raise CaptureError(f"{self.files[0]}: has {limits().beyond(limit)}")

    def rows(self, table: str) -> Rows:
        """A table as a structured array in the library's memory. Valid after the last `read` and until `clear`."""
        layout = layouts()[table]
        count = ctypes.c_uint64()
        address = self._library.nwa_rows(self._open, list(layouts()).index(table), ctypes.byref(count))
        if not count.value:
            return np.empty(0, dtype=layout)
        memory = _Memory(self, address, count.value, layout.itemsize)
        return np.asarray(memory).view(layout)

    def clear(self) -> None:
        """Forget the rows of all tables except the totals. Arrays that `rows` returned before are invalid
        afterwards.
        """
        self._library.nwa_clear(self._open)

    def trouble(self, source: int) -> str:
        """The reason why that file was not read to a clean end; "" if it was."""
        return self._with_names(self._library.nwa_trouble(self._open, source).decode(errors="replace"))
