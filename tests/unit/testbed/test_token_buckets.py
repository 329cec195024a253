"""Policers, the burst of a rate, and slots: what a spec may say, what the kernel is asked, and what its dump shows."""

from __future__ import annotations

import struct

import msgspec
import pytest
from netwarp.core.frozen import from_json, to_json
from netwarp.core.link_types import AckThinning, Policer, Slots
from netwarp.core.types import Cell
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.netem import Netem
from netwarp.testbed.policers import Police, decode_policers, police
from netwarp.testbed.qdiscs import Fifo, Tbf, attribute, attributes_of
from support.specs import BASE, cell_of, only, replaced

QUEUE = 'queue = "50 packets"'


def with_keys(*lines: str) -> str:
    return replaced(QUEUE, "\n".join((QUEUE, *lines)))


def commands_of(cell: Cell) -> str:
    return "\n".join(step.command for step in compile_cell(cell, Clock(t0_realtime_ns=0)).steps if step.command)


def test_a_policer_is_where_packets_come_into_the_hop() -> None:
    cell = cell_of(BASE + '[link.p1.forward]\npolicer = { rate = "5 Mbit/s", burst = "30 kB" }\n')
    assert cell.links[0].forward.policer == Policer(5_000_000, 30_000)
    assert cell.links[0].backward.policer is msgspec.UNSET
    assert from_json(to_json(cell), Cell) == cell
    said = "dev a ingress pref 1 matchall action police rate 5000000bit burst 30000b conform-exceed drop/ok"
    assert f"ip netns exec p1.hop tc filter add {said}" in commands_of(cell)
    dumps = [asked for asked in compile_cell(cell, Clock(t0_realtime_ns=0)).dumps.values() if asked.label == "policer"]
    assert len(dumps) == 1


def test_a_link_between_routers_gets_a_hop_for_its_policer() -> None:
    text = BASE.replace(
        "[flow.f]",
        """[node.r1]
kind = "router"
[node.r2]
kind = "router"
[link.x]
between = ["a", "r1"]
[link.m]
between = ["r1", "r2"]
backward = { policer = { rate = "5 Mbit/s", burst = "30 kB" } }
[link.y]
between = ["r2", "b"]
[flow.f]""",
    )
    assert "ip netns exec m.hop tc filter add dev b ingress" in commands_of(cell_of(text))


@pytest.mark.parametrize("rate", [1_000_000, 5_000_000, 40_000_000_000])
@pytest.mark.parametrize("header", [0, 14])
def test_a_dump_shows_the_policer(rate: int, header: int) -> None:
    asked = police(Policer(rate, 30_000), header)
    # 30,000 bytes last as long as the bucket, or up to a tick less
    assert 0 <= asked.burst_ticks * 64 - 30_000 * 8 * 10**9 / rate < 64 + 1
    action = attribute(1, b"police\0") + attribute(2, asked.encode())
    counters = attribute(1, struct.pack("=QI", 99, 7)) + attribute(3, struct.pack("=IIIII", 0, 0, 3, 0, 0))
    actions = attribute(2, attribute(1, action + attribute(4, counters)))
    dumped = bytes(36) + attribute(1, b"matchall\0") + attribute(2, actions)
    assert list(decode_policers([dumped])) == [(asked, 7, 3)]
    assert Police.decode(attributes_of(asked.encode())) == asked


def test_a_burst_is_a_token_bucket_above_the_queue() -> None:
    cell = cell_of(with_keys('burst = "16 kB"'))
    _, rate, queue = (qdisc.stage for qdisc in compile_cell(cell, Clock(t0_realtime_ns=0)).installed[:3])
    assert isinstance(rate, Tbf)
    assert (rate.burst_bytes, rate.bucket_ticks) == (16_000, 16_000 * 8000 // 64)
    assert queue == Fifo(50, in_bytes=False)
    codel = cell_of(with_keys('burst = "16 kB"', 'aqm = { kind = "codel" }'))
    assert [qdisc.stage.kind for qdisc in compile_cell(codel, Clock(t0_realtime_ns=0)).installed[:3]] == [
        "netem", "tbf", "codel",
    ]  # fmt: skip


def test_slots_are_netems() -> None:
    cell = cell_of(with_keys('slots = { after = "2 ms", to = "5 ms", packets = "32 packets" }'))
    assert cell.links[0].forward.slots == Slots(2_000_000, 5_000_000, 32, None)
    assert cell.random
    root, child = (qdisc.stage for qdisc in compile_cell(cell, Clock(t0_realtime_ns=0)).installed[:2])
    assert isinstance(root, Netem)
    assert isinstance(child, Netem)
    assert (root.size_overhead_bytes, child.packet_overhead_bytes) == (-14, 0)
    assert Netem.decode(child.encode()) == child
    assert "slot 2000us 5000us packets 32 bytes 0" in child.text()
    assert not cell_of(with_keys('slots = { after = "2 ms" }')).random
    alone = cell_of(BASE.replace('rate = "1 Mbit/s"', 'slots = { after = "2 ms" }') + 'bytes = "1 MB"').links[0].forward
    assert (alone.rate_bit_s, alone.queue_packets) == (None, 50)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (('policer = { rate = "5 Mbit/s" }',), 'burst is missing; for example burst = "64 KiB"'),
        (('policer = { rate = "5 Mbit/s", burst = "1400 B" }',), "below 1500 B no packet of the MTU passes"),
        (('policer = "5 Mbit/s"',), 'must be a table; for example { rate = "10 Mbit/s", burst = "64 KiB" }'),
        (('burst = "1400 B"',), "must hold the largest packet, 1500 B"),
        (('burst = "35 MB"',), "takes more than 275 s at this rate"),
        (('policer = { rate = "1 kbit/s", burst = "35 kB" }',), "takes more than 275 s at this rate"),
        (('ack_thinning = { every = "4 packets" }',), 'hold is missing; for example hold = "10 ms"'),
        (('ack_thinning = { every = "1 packet", hold = "5 ms" }',), "at least 2 packets"),
        (('slots = { packets = "5 packets" }',), 'after is missing; for example after = "2 ms"'),
        (('slots = { after = "5 ms", to = "2 ms" }',), "is less than `after`"),
        (('slots = { after = "5 ms" }', 'burst = "16 kB"'), "without burst"),
        (('slots = { after = "5 ms" }', 'aqm = { kind = "codel" }'), "without aqm"),
    ],
)
def test_mistakes_are_said(lines: tuple[str, ...], said: str) -> None:
    assert said in only(with_keys(*lines))


def test_the_deepest_bucket_is_what_the_kernel_counts() -> None:
    """32 bits of 64 ns; one step more was an error of struct in the middle of a run."""
    deepest = 'policer = { rate = "1 kbit/s", burst = "34350 B" }'
    assert compile_cell(cell_of(with_keys(deepest, 'burst = "34350 kB"')), Clock(t0_realtime_ns=0)).steps


def test_a_queue_of_slots_counts_packets() -> None:
    text = BASE.replace('rate = "1 Mbit/s"', 'slots = { after = "2 ms" }')
    assert "counted in packets" in only(text.replace("50 packets", "64 KiB"))
    assert "counted in packets" in only(text.replace(QUEUE, ""))


@pytest.mark.parametrize(
    ("lines", "change", "said"),
    [
        ((), 'policer = { rate = "5 Mbit/s", burst = "30 kB" }', "no event changes a link's policer"),
        ((), 'burst = "30 kB"', "no event changes a link's burst"),
        ((), 'slots = { after = "5 ms" }', "no event changes a link's slots"),
        (('burst = "30 kB"',), 'rate = "2 Mbit/s"', "the kernel would fill its token bucket"),
        (('slots = { after = "5 ms" }',), 'rate = "2 Mbit/s"', "keeps its rate"),
    ],
)
def test_what_no_event_changes(lines: tuple[str, ...], change: str, said: str) -> None:
    event = f'[event.e]\naction = "change"\nlink = "p1"\ndirections = ["forward"]\nat = "1 s"\n{change}\n'
    assert said in only(with_keys(*lines) + event)


def test_acks_are_thinned_of_netwarps_own_tcp_flows() -> None:
    text = with_keys('backward = { ack_thinning = { every = "4 packets", hold = "5 ms" } }')
    cell = cell_of(text)
    assert cell.links[0].backward.ack_thinning == AckThinning(4, 5_000_000)
    (program,) = compile_cell(cell, Clock(t0_realtime_ns=0)).programs
    assert (program.direction, program.program.delays_ns, len(program.delay_lines)) == ("backward", (5_000_000,), 1)
    (sctp,) = compile_cell(cell_of(text.replace('"tcp"', '"sctp"')), Clock(t0_realtime_ns=0)).programs
    assert len(sctp.program.code) < len(program.program.code)


def test_other_changes_leave_them() -> None:
    event = '[event.e]\naction = "change"\nlink = "p1"\nat = "1 s"\none_way_delay = "30 ms"\n'
    cell = cell_of(with_keys('burst = "16 kB"', 'policer = { rate = "5 Mbit/s", burst = "30 kB" }') + event)
    changed = cell.timeline[0].forward
    assert changed == msgspec.structs.replace(cell.links[0].forward, one_way_delay_ns=30_000_000)
