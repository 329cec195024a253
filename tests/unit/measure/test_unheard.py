"""When a receiver hears no more all that arrives for a flow."""

from __future__ import annotations

import pytest
from netwarp.measure.planned_paths import unheard_ns
from support.specs import BASE, cell_of

MS = 10**6


@pytest.mark.parametrize(("event", "flow", "wanted_ms"), [
    ("", "", None),
    ('action = "address"\nlink = "p1"\nnode = "b"\nat = "2 s"\nfor = "1 s"', "", 2000),
    ('action = "address"\nlink = "p1"\nnode = "a"\nat = "2 s"', "", None),
    ('action = "stop_reading"\nflow = "f"\nat = "2 s"\nfor = "1 s"', "", None),
    ('action = "stop_reading"\nflow = "f"\nat = "2 s"\nfor = "1 s"', 'stop = "2.5 s"\n', 2000),
    ('action = "stop_reading"\nflow = "f"\nat = "2 s"', 'bytes = "1 MB"\n', 2000),
])  # fmt: skip
def test_from_when_what_arrives_may_not_be_read(event: str, flow: str, wanted_ms: int | None) -> None:
    cell = cell_of(BASE + flow + (f"[event.e]\n{event}\n" if event else ""))
    found = unheard_ns(cell, cell.flows[0])
    assert found == (None if wanted_ms is None else wanted_ms * MS)
