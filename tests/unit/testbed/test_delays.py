"""Delay tables: tc's, and one of our own for reordering."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from netwarp.core.link_types import LinkImpairment
from netwarp.testbed.netem import ORDERING_BYTE_S, delay_stage, overtakers, quantiles, rate_stage, table

MS = 10**6
IPROUTE2 = [folder for place in ("/usr/lib", "/usr/share") for folder in Path(place).rglob("pareto.dist")]


@pytest.mark.parametrize(("name", "off"), [("normal", 0.35), ("pareto", 0.0), ("paretonormal", 0.09)])
def test_tables_are_iproute2s(name: str, off: float) -> None:
    """normal and paretonormal differ in the outermost few of 4096 values: iproute2 steps through x."""
    ours = quantiles(name)
    assert len(ours) == 4096
    assert list(ours) == sorted(ours)
    assert struct.unpack("=4096h", table(name)) == ours
    if not IPROUTE2:
        pytest.skip("iproute2's tables are not on this machine")
    text = IPROUTE2[0].with_name(f"{name}.dist").read_text()
    theirs = sorted(int(word) for line in text.splitlines() if not line.startswith("#") for word in line.split())
    away = [abs(one - other) / 8192 for one, other in zip(ours, theirs, strict=True)]
    assert max(away) <= off
    assert sum(one > 0.005 for one in away) <= 60


def test_overtaking_packets_have_no_delay_and_the_others_all_of_it() -> None:
    stage = delay_stage(
        LinkImpairment(one_way_delay_ns=10 * MS, reorder_ratio=0.01, rate_bit_s=8_000, queue_packets=5), 1
    )
    assert (stage.reorder, stage.gap, stage.latency_ns, stage.jitter_ns) == (0, 0, 10 * MS, 10 * MS)
    values = quantiles(stage.distribution)
    assert values.count(-8192) == overtakers(0.01) == 41
    assert values.count(0) == 4096 - 41
    assert overtakers(1e-9) == 1
    assert overtakers(0) == 0
    assert "# its delays have a table of their own: overtake(41)" in stage.remark()
    assert "distribution" not in stage.text()


def test_order_is_kept_by_a_rate_at_which_nothing_takes_time() -> None:
    shape = LinkImpairment(one_way_delay_ns=10 * MS, jitter_ns=MS, rate_bit_s=8_000, queue_packets=5, keeps_order=True)
    stage, child = delay_stage(shape, 1), rate_stage(shape, 2)
    assert stage.rate_byte_s == ORDERING_BYTE_S
    assert 65_535 * 10**9 // ORDERING_BYTE_S == 0  # ns; packet_time_ns of sch_netem.c
    assert child is not None
    assert child.rate_byte_s == 1000
    assert delay_stage(LinkImpairment(jitter_ns=MS), 1).rate_byte_s == 0
