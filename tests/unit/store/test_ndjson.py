"""The NDJSON reader is strict, and the back end takes no records from a file it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from netwarp.core.errors import StoreError
from netwarp.core.limits import raised
from netwarp.sandbox.cell_verdict import records_left
from netwarp.store.app_records import AppRecord, read_app_log
from netwarp.store.init_records import End, InitRecord, Memory, Waiting, read_init_log
from netwarp.store.ndjson import Record, kinds_of, last, of_kind
from support.checkout import ROOT

WAITING = b'{"record":"waiting","file":"t0"}\n'


def test_a_half_written_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "init.ndjson"
    path.write_bytes(WAITING + b'{"record":"waiting","file":"t1"}\n{"record":"end","reas')
    records = read_init_log(path)
    assert of_kind(records, Waiting) == records == [Waiting("t0"), Waiting("t1")]
    assert last(records, Waiting) == Waiting("t1")
    assert last(records, End) is None
    assert records_left(path) == records


def test_lines_without_a_kinds_name_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "init.ndjson"
    path.write_bytes(b"Kernel panic\n" + WAITING)
    assert read_init_log(path, "waiting") == [Waiting("t0")]


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"1", b'{"a":"\xff"}', b"Kernel panic", b'{"record":"sample","t_ns":1}', b'{"record":"waiting"}'],
)
def test_a_whole_line_that_is_no_record_is_refused(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "init.ndjson"
    path.write_bytes(WAITING + line + b"\n" + WAITING)
    with pytest.raises(StoreError, match=r"init\.ndjson: not the records of this version"):
        read_init_log(path)
    assert records_left(path) == []


def test_members_that_are_not_known_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "init.ndjson"
    path.write_bytes(b'{"record":"memory","kswapd_sleeps":null,"least_free_bytes":1,"most_cached_bytes":2,"new":3}\n')
    assert read_init_log(path) == [Memory(None, 1, 2)]


def test_a_missing_file_is_refused_and_a_back_end_finds_no_records(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        read_init_log(tmp_path / "init.ndjson")
    assert records_left(tmp_path / "init.ndjson") == []


def names_of(base: type[Record]) -> dict[str, set[str]]:
    """Every kind below a base, with its members."""
    return {str(kind.__struct_config__.tag): set(kind.__struct_fields__) for kind in kinds_of(base)}


def test_the_documents_have_every_record_and_member() -> None:
    text = (ROOT / "docs" / "formats.md").read_text()
    table = text.partition("### What cell-init records")[2].partition("\n- **")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE))
    kinds = names_of(InitRecord)
    assert rows.keys() == kinds.keys()
    for kind, members in kinds.items():
        assert members - {"on"} <= set(re.findall(r"`(\w+)`", rows[kind])), kind
    agents = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "agents.md").read_text()))
    assert names_of(AppRecord).keys() <= set(re.findall(r"`(\w+)`", text)) | agents


def test_a_file_of_many_small_objects_is_refused(tmp_path: Path) -> None:
    """They take many times the memory of their text."""
    path = tmp_path / "f.sender.ndjson"
    paths = ",".join('{"address":"a"}' for _ in range(99))
    path.write_text(f'{{"record":"sample","t_ns":1,"sent_bytes":1,"paths":[{paths}]}}\n')
    with raised(["objects=99"]), pytest.raises(StoreError, match=r"more than 99 JSON objects; .*--limit objects=396"):
        read_app_log(path)
    with raised(["objects=100"]):
        assert len(read_app_log(path)) == 1
