"""The NDJSON reader is strict, and the back end takes no records from a file it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import StoreError
from netwarp.sandbox.cell_verdict import records_left
from netwarp.store.ndjson import last, read_ndjson


def test_a_half_written_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "init.ndjson"
    path.write_bytes(b'{"record":"a","n":1}\n{"record":"a","n":2}\n{"record":"end","n":3')
    records = read_ndjson(path)
    assert [record["n"] for record in records] == [1, 2]
    assert last(records, "a") == {"record": "a", "n": 2}
    assert last(records, "end") is None
    assert records_left(path) == records


@pytest.mark.parametrize("line", [b"{", b"[]", b"1", b'{"a":"\xff"}', b"Kernel panic"])
def test_a_whole_line_that_is_no_object_is_refused(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "init.ndjson"
    path.write_bytes(b'{"record":"start"}\n' + line + b"\n" + b'{"record":"end"}\n')
    with pytest.raises(StoreError, match=r"init\.ndjson: not NDJSON"):
        read_ndjson(path)
    assert records_left(path) == []


def test_a_missing_file_is_refused_and_a_back_end_finds_no_records(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        read_ndjson(tmp_path / "init.ndjson")
    assert records_left(tmp_path / "init.ndjson") == []
