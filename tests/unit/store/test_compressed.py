"""Files kept under their name or compressed under their name and .zst: the same content by either."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from netwarp.core.errors import StoreError
from netwarp.measure.kernel_samples import read_trace
from netwarp.store import compressed
from netwarp.store.app_records import read_app_log
from netwarp.store.init_records import Ready, Waiting, read_init_log
from netwarp.store.run_dir import read_json

LINES = b'{"record":"waiting","file":"t0"}\n{"record":"ready","t0_realtime_ns":1,"t0_monotonic_ns":2,"waited_ns":3}\n'


def test_what_is_compressed_reads_as_before(tmp_path: Path) -> None:
    path = tmp_path / "init.ndjson"
    assert not compressed.exists(path)
    path.write_bytes(LINES)
    before = read_init_log(path)
    assert compressed.exists(path) and compressed.read(path) == LINES
    compressed.compress(path)
    assert [left.name for left in tmp_path.iterdir()] == ["init.ndjson.zst"]
    assert compressed.exists(path) and compressed.read(path) == LINES
    assert read_init_log(path) == before == [Waiting("t0"), Ready(1, 2, 3)]
    assert zstandard.ZstdDecompressor().decompress((tmp_path / "init.ndjson.zst").read_bytes()) == LINES


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    compressed.compress(tmp_path / "a")
    assert compressed.read(tmp_path / "a") == b""


def like_a_capture(count: int) -> bytes:
    """So many bytes, of which most were there before."""
    draw = random.Random(count)
    parts, made, known = [], 0, draw.randbytes(300)
    while made < count:
        parts.append(draw.randbytes(draw.randrange(10, 60)) + known * draw.randrange(5))
        made += len(parts[-1])
    return b"".join(parts)[:count]


@pytest.mark.parametrize("piece", [262_144, 99_991])
@pytest.mark.parametrize("count", [0, 24, 2 << 20, (2 << 20) + 1, (2 << 20) + 262_144, 9_000_001])
def test_a_growing_file_has_the_bytes_of_a_whole_one(count: int, piece: int, tmp_path: Path) -> None:
    data = like_a_capture(count)
    (tmp_path / "whole").write_bytes(data)
    compressed.compress(tmp_path / "whole")
    growing = compressed.GrowingFile(os.open(tmp_path, os.O_RDONLY), "growing")
    for begin in range(0, count, piece):
        with memoryview(data) as view:
            growing.write(view[begin : begin + piece])
    growing.close()
    assert growing.bytes == count
    assert sorted(left.name for left in tmp_path.iterdir()) == ["growing.zst", "whole.zst"]
    assert (tmp_path / "growing.zst").read_bytes() == (tmp_path / "whole.zst").read_bytes()


@pytest.mark.slow
def test_a_growing_file_of_4_gib(tmp_path: Path) -> None:
    """Its length takes 8 bytes in the frame, not 4. (A file of zeros has no blocks on the disk.)"""
    count = 1 << 32
    with open(tmp_path / "whole", "wb") as whole:
        whole.truncate(count)
    compressed.compress(tmp_path / "whole")
    growing, zeros = compressed.GrowingFile(os.open(tmp_path, os.O_RDONLY), "growing"), bytes(16 << 20)
    for _ in range(count // len(zeros)):
        growing.write(zeros)
    growing.close()
    assert sorted(left.name for left in tmp_path.iterdir()) == ["growing.zst", "whole.zst"]
    assert (tmp_path / "growing.zst").read_bytes() == (tmp_path / "whole.zst").read_bytes()


@pytest.mark.parametrize("data", [b"", b"no frame", zstandard.compress(LINES)[:-4]])
def test_a_damaged_one_is_an_error_that_names_it(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "init.ndjson.zst").write_bytes(data)
    with pytest.raises(StoreError, match=r"init\.ndjson: cannot be expanded"):
        read_init_log(tmp_path / "init.ndjson")
    with pytest.raises(StoreError, match=r"other\.ndjson: No such file"):
        read_init_log(tmp_path / "other.ndjson")


def test_a_file_that_is_larger_than_it_may_expand_to_is_not_read(tmp_path: Path) -> None:
    """A run directory from elsewhere may hold a file of terabytes that takes no room (a sparse one)."""
    path = tmp_path / "series.json.zst"
    path.touch()
    os.truncate(path, 1 << 42)
    with pytest.raises(OSError, match=r"has more than 128 MiB; .*--limit file-bytes="):
        compressed.read(tmp_path / "series.json")


READS: dict[str, Callable[[Path], object]] = {
    "apps' records": read_app_log,
    "init's records": read_init_log,
    "JSON": lambda path: read_json(path, dict[str, str]),
    "a trace": read_trace,
}


@pytest.mark.parametrize("what", READS)
def test_what_is_decoded_is_refused_beyond_the_limit_of_a_file(what: str, tmp_path: Path) -> None:
    """Decoded it takes several times as much memory."""
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, (128 << 20) + 1)
    with pytest.raises(StoreError, match=r"has more than 128 MiB; .*--limit file-bytes="):
        READS[what](path)
