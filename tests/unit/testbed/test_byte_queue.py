"""A queue in bytes: the request for tbf, and the decoding of its dump."""

from __future__ import annotations

import struct

import pytest
from netwarp.core.frozen import from_json, to_json
from netwarp.core.types import Cell
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.netem import Netem
from netwarp.testbed.qdiscs import Tbf, attributes_of, overhead_of, sending_ns, size_table, tbf_stage
from support.specs import BASE, cell_of, problems_of, replaced

TEXT = replaced('queue = "50 packets"', 'queue = "64 KiB"')


def test_a_queue_in_bytes_is_a_token_bucket_of_one_packet() -> None:
    cell = cell_of(TEXT)
    shape = cell.links[0].forward
    assert (shape.queue_bytes, shape.queue_packets) == (65536, None)
    assert from_json(to_json(cell), Cell) == cell
    compiled = compile_cell(cell, Clock(t0_realtime_ns=0))
    root, child = compiled.installed[:2]
    assert isinstance(root.stage, Netem)
    assert root.stage.size_overhead_bytes == -14  # the rate counts IP packets
    assert child.stage == tbf_stage(shape, 1500)
    assert isinstance(child.stage, Tbf)
    assert (child.stage.limit_bytes, child.stage.burst_bytes, child.stage.rate_byte_s) == (65536, 1500, 125_000)
    commands = "\n".join(step.command for step in compiled.steps if step.command)
    assert "handle 1: stab overhead -14 linklayer ethernet netem" in commands
    assert "handle 2: tbf rate 1000000bit burst 1500b limit 65536b" in commands
    frames = cell_of(TEXT.replace("one_way_delay", 'layer = "ethernet"\none_way_delay')).links[0].forward
    assert tbf_stage(frames, 1500).burst_bytes == 1514


@pytest.mark.parametrize("rate_byte_s", [1200, 125_000, 10**9, 2**33])
def test_a_dump_shows_the_requested_queue(rate_byte_s: int) -> None:
    ticks = sending_ns(1500, rate_byte_s) // 64
    asked = Tbf(rate_byte_s, 65536, ticks, 1500)
    there = attributes_of(asked.encode())
    # the kernel puts the bucket's time, in ticks, where it was asked for bytes
    shown = there[1][:28] + struct.pack("=I", ticks) + there[1][32:]
    assert Tbf.decode({**there, 1: shown}) == asked.as_shown()
    wrong = there[1][:24] + struct.pack("=II", 65535, ticks) + there[1][32:]
    assert Tbf.decode({**there, 1: wrong}) != asked.as_shown()


def test_the_size_table() -> None:
    assert size_table(0) == ()
    ((number, value),) = size_table(-14)
    assert number == 8
    assert overhead_of(attributes_of(value)) == -14
    assert overhead_of({}) == 0


@pytest.mark.parametrize("rate", [1_200, 125_000, 12_500_000, 125_000_000, 1_250_000_000])
def test_the_kernels_arithmetic_is_nearly_division(rate: int) -> None:
    assert sending_ns(1500, rate) == pytest.approx(1500 * 10**9 / rate, rel=1e-8, abs=1)


def test_a_change_from_packets_to_bytes_replaces_both() -> None:
    change = '[event.e]\naction = "change"\nlink = "p1"\nat = "1 s"\nfor = "1 s"\nqueue = "32 KiB"\n'
    for text, kinds in ((BASE + change, ["netem", "tbf", "netem"]), (TEXT + change, ["htb", "htb", "htb"])):
        compiled = compile_cell(cell_of(text), Clock(t0_realtime_ns=0))
        states = [compiled.installed, *compiled.events.values()]
        assert [state[1].stage.kind for state in states] == kinds
        handles = [state[1].handle for state in states]
        assert len(set(handles)) == (1 if kinds[0] == "htb" else 3)


@pytest.mark.parametrize("queue", ["1499 B", "2 GiB", "3 MB/s"])
def test_the_queue_holds_a_packet_and_can_be_counted(queue: str) -> None:
    assert problems_of(replaced('queue = "50 packets"', f'queue = "{queue}"'))
