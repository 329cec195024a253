"""The check of a guest's memory: from the record `memory` of init.ndjson."""

from __future__ import annotations

import pytest
from netwarp.sandbox.cell_verdict import check_memory
from netwarp.store.init_records import InitRecord, Memory


def record(sleeps: int | None) -> list[InitRecord]:
    return [Memory(sleeps, 240 << 20, 1 << 20)]


@pytest.mark.parametrize("sleeps", [0, 1])
def test_nothing_was_reclaimed(sleeps: int) -> None:
    check = check_memory(record(sleeps))
    assert check.ok
    assert "240" not in check.detail, "free memory depends on the directory's name: equal cells have equal files"


def test_reclaim_makes_a_cell_invalid_and_says_what_to_do() -> None:
    check = check_memory(record(2))
    assert not check.ok
    assert "can differ" in check.detail and "fewer captures" in check.detail


@pytest.mark.parametrize("records", [[], record(None)])
def test_a_guest_that_cannot_tell_is_not_believed(records: list[InitRecord]) -> None:
    assert not check_memory(records).ok
