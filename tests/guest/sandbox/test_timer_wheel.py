"""The lateness of the guest kernel's timers, against timer_wheel.py: T1-init of SCTP on a link that takes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.core.timer_wheel import slot_s
from support.chain_kit import HOSTS, Checkout, cells, written

INIT = 1
PHASES_MS = (0, 11, 22, 33, 44, 55)
"""Starts of the flows: the timers begin at different places of a slot of 64 ms."""


@pytest.mark.parametrize("rto_ms", [500, 506])
def test_levels_of_the_timer_wheel_begin_as_in_the_table(rto_ms: int, checkout: Checkout, tmp_path: Path) -> None:
    """500 ms is in the level of 8 ms slots; 506 ms, above 504 and below 512 ms, is in that of 64 ms slots."""
    text = HOSTS.format(name="wheel", duration="3 s") + (
        '[link.p1]\nbetween = ["a", "b"]\nrate = "10 Mbit/s"\nqueue = "50 packets"\none_way_delay = "1 ms"\n'
        '[event.gone]\naction = "blackhole"\nlink = "p1"\nat = "0 s"\n'
    )
    for number, phase in enumerate(PHASES_MS):
        text += (
            f'[flow.f{number}]\nfrom = "a"\nto = "b"\nprotocol = "sctp"\npaths = ["p1"]\nstart = "{1000 + phase} ms"\n'
            f'sender = {{ rto_initial = "{rto_ms} ms", rto_min = "{rto_ms} ms", rto_max = "{rto_ms} ms" }}\n'
        )
    run = tmp_path / "x"
    checkout.run("run", written(tmp_path / "spec.toml", text), "--no-report", "--out", run, cwd=tmp_path)
    (cell_id,) = cells(run)
    capture = read_captures(sorted((run / "cells" / cell_id / "capture").glob("a-p1.pcap*")))
    inits = capture.chunks[capture.chunks["type"] == INIT]
    late_s = []
    for flow in sorted(set(inits["flow"].tolist())):
        first, second = inits["time_ns"][inits["flow"] == flow][:2].tolist()
        late_s.append((second - first - rto_ms * 1_000_000) / 1e9)
    assert len(late_s) == len(PHASES_MS)
    slot = slot_s(rto_ms / 1e3)
    assert slot == (0.064 if rto_ms > 504 else 0.008)
    # never early, late by at most a slot; the phases are 11 ms apart, so that one of them is late by most of it
    assert 0 <= min(late_s) <= max(late_s) <= slot + 1e-4, late_s
    assert max(late_s) > slot - 0.012, late_s
