"""Bundles from anywhere: what is no file of a run, and what is larger than its limits, is refused before it is read."""

from __future__ import annotations

import contextlib
import io
import lzma
import os
import resource
import subprocess
import sys
import tarfile
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from netwarp.core.errors import StoreError
from netwarp.core.limits import raised
from netwarp.store.bundle_files import OF_THE_RUN, unpack_bundle
from support.checkout import ROOT

MEMORY, MOST_S = 1 << 30, 60


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """As tar has it, also of sizes and kinds that Python would not write."""
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.size = size
    return entry.tobuf(tarfile.GNU_FORMAT)


def archive(path: Path, blocks: Iterable[bytes]) -> Path:
    """A compressed archive of these blocks, written as they come."""
    with lzma.open(path, "wb", preset=0) as file:
        for block in blocks:
            file.write(block)
    return path


def entry(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE) -> bytes:
    return header(name, len(content), kind) + content + bytes(-len(content) % 512)


END = bytes(1024)
ZEROS = bytes(1 << 20)
Blocks = Callable[[], Iterable[bytes]]
BOMBS: dict[str, tuple[Blocks, str]] = {
    "a pax header of 6 GiB": (lambda: (header("x", 6 << 30, tarfile.XHDTYPE), *[ZEROS] * 8), "a header in it claims"),
    "a GNU name of 6 GiB": (lambda: (header("x", 6 << 30, tarfile.GNUTYPE_LONGNAME), *[ZEROS] * 8), "is no file"),
    "a negative size": (lambda: (header("plan.json", -512), END), "a negative size"),
    "a member of 896 MiB": (lambda: (header("plan.json", 896 << 20), *[ZEROS] * 8), "--limit file-bytes"),
    "a header without a name": (lambda: (header("x", 0, tarfile.XHDTYPE), END), "is empty"),
    "a header before a header": (lambda: 2 * (entry("x", b"15 path=tables\n", tarfile.XHDTYPE),), "is no file"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_within_a_minute_and_a_gigabyte(tmp_path: Path, name: str) -> None:
    """In a process of its own, whose memory is measured."""
    blocks, said = BOMBS[name]
    path = archive(tmp_path / "bomb.tar.xz", blocks())
    (tmp_path / "tmp").mkdir()
    started = time.monotonic()
    done = subprocess.Popen(
        [sys.executable, "-m", "netwarp", "archive", "verify", str(path)], cwd=ROOT, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    assert done.stderr is not None
    errors = done.stderr.read()
    done.stderr.close()
    _, status, used = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    assert done.returncode == 1 and said in errors and "Traceback" not in errors, errors
    assert used.ru_maxrss * 1024 < MEMORY and time.monotonic() - started < MOST_S
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_dictionary_of_xz_is_no_bomb(tmp_path: Path) -> None:
    """An xz header may ask for 1.5 GiB before the first byte."""
    path = tmp_path / "x.tar.xz"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1536 << 20}]
    data = bytearray(lzma.compress(entry("plan.json") + END, filters=[filters[0] | {"dict_size": 4096}]))
    place = data.index(b"\x21\x01") + 2  # the properties of LZMA2: the size of its dictionary
    data[place] = 39
    data[20:24] = zlib.crc32(data[12:20]).to_bytes(4, "little")
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(StoreError, match="is no bundle that can be read"):
        unpack_bundle(path, tmp_path / "out")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 << 10


ODD = (
    *("/etc/x", "../x", "cells/../../x", "cells/x/../../../y", "cells//cell.json", ".lock", "cells/.partial/cell.json"),
    *("cells/x/capture/a-p1.pcap", "report/index.html", "cells/x/cell.json/y", "spec", "spec/..", "tables/./x", ""),
    *("plan.json\n", "plan.json/", "./plan.json", "tables/a\x1bb", "spec/a/b/c/d/e/f"),
)
NAMES = st.sampled_from(ODD) | st.text(max_size=30).filter(lambda name: "\0" not in name)


@settings(max_examples=100, deadline=None)
@given(name=NAMES)
def test_no_other_name_is_written(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    """Whatever a member is called: a file of a run inside, or nothing at all."""
    place = tmp_path_factory.mktemp("bundle")
    out = place / "a" / "b" / "out"
    out.mkdir(parents=True)
    encoded = name.encode("utf-8", errors="replace")
    assume(len(encoded) <= 100)
    raw = bytearray(header("x", 0))
    raw[:100] = encoded[:100].ljust(100, b"\0")
    raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + 8 * 32 + sum(raw[156:]))
    path = archive(place / "x.tar.xz", [bytes(raw), END])
    with contextlib.suppress(StoreError):
        unpack_bundle(path, out)
    files = [str(found.relative_to(out)) for found in out.rglob("*") if not found.is_dir()]
    assert files in ([], [name])
    assert all(found.split("/")[0] in (*OF_THE_RUN, "spec", "tables", "cells") for found in files)
    assert sorted(found.name for found in place.iterdir()) == ["a", "x.tar.xz"]


def test_a_limit_is_raised(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.tar.xz", [entry("plan.json", bytes(5000)), entry("outputs.json", bytes(5000)), END])
    for limit in ("file-bytes=4 KiB", "bytes=8 KiB", "members=1"):
        (tmp_path / limit).mkdir()
        name = limit.partition("=")[0]
        with raised([limit]), pytest.raises(StoreError, match=f"--limit {name}="):
            unpack_bundle(path, tmp_path / limit)
    with raised(["file-bytes=5 KiB", "bytes=10 KiB", "members=2"]):
        (tmp_path / "out").mkdir()
        unpack_bundle(path, tmp_path / "out")
    assert (tmp_path / "out" / "plan.json").read_bytes() == bytes(5000)


def test_it_unpacks_what_tarfile_packs(tmp_path: Path) -> None:
    """Names above 100 bytes included."""
    files = {"plan.json": b"{}", f"tables/{'x' * 120}.csv": b"a" * 513, f"cells/{'y' * 100}/derived/checks.json": b""}
    with tarfile.open(tmp_path / "x.tar.xz", "w:xz", format=tarfile.PAX_FORMAT) as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    unpack_bundle(tmp_path / "x.tar.xz", tmp_path / "out")
    found = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {str(path.relative_to(tmp_path / "out")): path.read_bytes() for path in found} == files
