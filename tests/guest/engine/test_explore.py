"""Exploring on a kernel that counts its lines: the same cells and numbers however many run at once."""

from __future__ import annotations

import csv
import json

import pytest
from netwarp.engine.explore import explore
from netwarp.guestkernel.cache import find_named

KERNEL = "6.12+gcov-sctp"
CELLS = 6
pytestmark = pytest.mark.skipif(
    find_named(KERNEL) is None, reason="needs netwarp kernel build --coverage 'net/sctp/*.c'"
)


def explored(place, **options):
    explore(
        "schedules", files=["net/sctp/*.c"], cells=CELLS, only=["handshake"], where={"variant": "sctp2"},
        out=place, **options,
    )  # fmt: skip
    return json.loads((place / "explore.json").read_bytes())


def test_equal_seeds_try_and_reach_the_same(tmp_path):
    one, two = explored(tmp_path / "one", jobs=1, seed=5), explored(tmp_path / "two", jobs=2, seed=5)
    assert one == two and one["cells"] == CELLS
    functions = [(tmp_path / name / "functions.csv").read_text() for name in ("one", "two")]
    assert functions[0] == functions[1]
    rows = {row["function"]: row for row in csv.DictReader(functions[0].splitlines())}
    assert int(rows["sctp_sf_do_5_1B_init"]["calls"]) >= 1, "an INIT came"
    assert int(rows["sctp_assoc_update"]["calls"]) == 0 or len(one["corpus"]) > 1, "nobody restarts by itself"
    assert one["corpus"][0]["changes"] == []


def test_plain_schedules_lose_packet_after_packet(tmp_path):
    plain = explored(tmp_path / "plain", jobs=2, plain=True)
    names = [[change["name"] for change in each["changes"]] for each in plain["corpus"]]
    assert names[:3] == [[], ["INIT"], ["INIT ACK"]]


def test_what_an_earlier_exploration_kept_runs_again(tmp_path):
    first = explored(tmp_path / "first", jobs=2, seed=5)
    again = explored(tmp_path / "again", jobs=2, again=tmp_path / "first")
    assert {each["cell"] for each in again["corpus"]} == {each["cell"] for each in first["corpus"]}
    assert again["lines"]["reached"] <= first["lines"]["reached"]
