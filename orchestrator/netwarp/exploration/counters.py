"""The counters of a kernel with gcov: read from a cell's counters.bin, added, and turned into lines by gcc's own gcov.

A file of counters (.gcda) is a header and then records of a tag, a length and content. Those of functions name a
function; those of counters have one number of 64 bits for each arc of its graph that gcc counts. The graph itself is in
the .gcno file that the compiler wrote, and only gcov reads that. Source: gcc/gcov-io.h; the kernel writes the same
(kernel/gcov/gcc_4_7.c).
"""

from __future__ import annotations

import json
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.errors import StoreError
from ..core.executables import find_executable
from ..store import compressed

Counts = NDArray[np.uint64]
_MAGIC = b"adcg"
_ARCS = 0x01A10000
_BYTES_FROM = 12
"""From this gcc on, a record's length is in bytes; before, in words of four. The header has one more word, too."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a cell's kernel left. files: name of the source's object, as "net/sctp/input" -> its .gcda.

    texts: the other entries: `waited_ns`, `sctp`, `sockets`, `slabs`.
    """

    files: Mapping[str, bytes]
    texts: Mapping[str, str]


def read_kept(path: Path, known: Iterable[str]) -> Kept:
    """Read a counters.bin, compressed or not. known: the objects that the kernel counts, as "net/sctp/input".

    Raises StoreError if it is cut short.
    """
    objects = {f"/{name}.gcda": name for name in known}
    files: dict[str, bytes] = {}
    texts: dict[str, str] = {}
    for name, content in _entries(compressed.read(path), path):
        if name.endswith(".gcda"):
            ending = next((each for each in objects if name.endswith(each)), None)
            if ending is not None:
                files[objects[ending]] = content
        else:
            texts[name] = content.decode(errors="replace")
    return Kept(files, texts)


def _entries(data: bytes, path: Path) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        name, _, length = data[at:end].decode(errors="replace").rpartition(" ")
        if end < 0 or not length.isdigit() or end + 1 + int(length) > len(data):
            raise StoreError(f"{path}: is cut short")
        at = end + 1 + int(length)
        yield name, data[end + 1 : at]


@dataclass(frozen=True, slots=True)
class _Record:
    """A record of arc counters. begin, end: of its content. A record whose counters are all 0 may have no content."""

    begin: int
    end: int
    number: int


def _records(data: bytes) -> list[_Record]:
    """The records of arc counters of a .gcda. Raises StoreError if it is none."""
    if data[:4] != _MAGIC:
        raise StoreError("no counters of gcov")
    unit = 1 if _in_bytes(data) else 4
    at, found = (16 if _in_bytes(data) else 12), []
    while at + 8 <= len(data):
        tag, length = struct.unpack_from("<Ii", data, at)
        at += 8
        end = at + max(length, 0) * unit
        if tag == _ARCS:
            found.append(_Record(at, end, abs(length) * unit // 8))
        at = end
    return found


def _in_bytes(data: bytes) -> bool:
    """True if lengths are in bytes. The version is "B22*" for gcc 12.2, the other way round in the file."""
    version = data[7:3:-1].decode(errors="replace")
    major = (ord(version[0]) - ord("A")) * 10 + int(version[1]) if version[0].isalpha() else int(version[0])
    return major >= _BYTES_FROM


def counts(data: bytes) -> Counts:
    """All arc counters of a .gcda, in the order of the file. Of one kernel the same place is always the same arc."""
    parts = [
        np.frombuffer(data, "<u8", each.number, each.begin).astype(np.uint64)
        if each.end > each.begin
        else np.zeros(each.number, np.uint64)
        for each in _records(data)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def with_counts(data: bytes, numbers: Counts) -> bytes:
    """A .gcda with other numbers in its places."""
    parts, copied, done = [], 0, 0
    for each in _records(data):
        content = numbers[done : done + each.number].astype("<u8").tobytes()
        head = struct.pack("<I", _ARCS) + struct.pack("<i", len(content) if _in_bytes(data) else len(content) // 4)
        parts += [data[copied : each.begin - 8], head, content]
        copied, done = each.end, done + each.number
    return b"".join([*parts, data[copied:]])


@dataclass(frozen=True, slots=True)
class Function:
    """A function and what of it has run. lines: number of its lines that have code -> times."""

    file: str
    name: str
    first_line: int
    calls: int
    lines: Mapping[int, int]

    @property
    def reached(self) -> int:
        """How many of its lines have run."""
        return sum(times > 0 for times in self.lines.values())


def lines_of(files: Mapping[str, bytes], notes: Path) -> list[Function]:
    """What gcov makes of counters: every function of these files with its lines.

    files: object, as "net/sctp/input" -> its .gcda. notes: the directory with the .gcno files of these objects. Lines
    of headers belong to the functions that they are part of, and are left out. Raises StoreError if gcov fails.
    """
    gcov = find_executable("gcov")
    if gcov is None:
        raise StoreError("there is no gcov, which comes with gcc; `make setup` installs it")
    with tempfile.TemporaryDirectory(prefix="netwarp-gcov-") as folder:
        names = {}
        for name, data in files.items():
            place = Path(folder) / f"{name.replace('/', '#')}.gcda"
            place.write_bytes(data)
            place.with_suffix(".gcno").symlink_to((notes / f"{name}.gcno").absolute())
            names[name] = place.name
        command = [gcov, "--json-format", "--stdout", *names.values()]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        raise StoreError(f"gcov failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return [function for text in done.stdout.splitlines() if text for function in _functions(json.loads(text))]


def _functions(document: dict[str, object]) -> Iterator[Function]:
    own = str(document["data_file"]).rpartition("/")[2].removesuffix(".gcda").replace("#", "/")
    for file in document["files"]:  # type: ignore[attr-defined]
        name = str(file["file"]).removeprefix("./")
        if not name.endswith(".c") or name.rpartition("/")[2].removesuffix(".c") != own.rpartition("/")[2]:
            continue
        lines: dict[str, dict[int, int]] = {}
        for line in file["lines"]:
            of = lines.setdefault(str(line.get("function_name", "")), {})
            of[int(line["line_number"])] = max(of.get(int(line["line_number"]), 0), int(line["count"]))
        for each in file["functions"]:
            known = lines.get(str(each["name"]), {})
            yield Function(f"{own}.c", str(each["name"]), int(each["start_line"]), int(each["execution_count"]), known)
