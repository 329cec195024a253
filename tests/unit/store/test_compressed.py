"""Files kept under their name or compressed under their name and .zst: the same content by either."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from netwarp.core.errors import StoreError
from netwarp.store import compressed
from netwarp.store.init_records import Ready, Waiting, read_init_log

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


@pytest.mark.parametrize("data", [b"", b"no frame", zstandard.compress(LINES)[:-4]])
def test_a_damaged_one_is_an_error_that_names_it(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "init.ndjson.zst").write_bytes(data)
    with pytest.raises(StoreError, match=r"init\.ndjson: cannot be expanded"):
        read_init_log(tmp_path / "init.ndjson")
    with pytest.raises(StoreError, match=r"other\.ndjson: No such file"):
        read_init_log(tmp_path / "other.ndjson")
