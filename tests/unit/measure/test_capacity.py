"""The capacity of a path whose rate changes, and the bytes that a path can pass: its bounds are held against links that
are computed packet by packet here.
"""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest
from netwarp.core.types import Cell
from netwarp.experiment import load_spec
from netwarp.measure.capacity import GRAIN_NS, Arrivals, CellCapacity
from netwarp.measure.passages import rate_bit_s, shapes_over_time
from netwarp.measure.planned_paths import capacity_bit_s
from netwarp.plan import make_plan
from support.specs import BASE, cell_of, replaced

S = 10**9


def slower(text: str, at: str, body: str) -> str:
    return text + f'[event.e{at[0]}]\naction = "change"\nlink = "p1"\nat = "{at}"\n{body}\n'


def capacity(cell: Cell, from_s: float, to_s: float) -> float | None:
    (flow,) = cell.flows
    return capacity_bit_s(cell, flow, flow.paths[0], round(from_s * S), round(to_s * S))


def test_without_a_change_it_is_the_bottleneck() -> None:
    for text in (BASE, slower(BASE, "2 s", 'backward = { rate = "5 Mbit/s" }'), slower(BASE, "2 s", 'loss = "1 %"')):
        assert capacity(cell_of(text), 1, 9) == 10**6


def test_it_is_the_mean_over_the_window() -> None:
    cell = cell_of(slower(slower(BASE, "2 s", 'rate = "3 Mbit/s"'), "4 s", 'rate = "1 Mbit/s"'))
    for window, mean in {(0, 10): 1.4e6, (2, 4): 3e6, (3, 5): 2e6, (5, 10): 1e6, (0, 1): 1e6}.items():
        assert capacity(cell, *window) == mean
    assert capacity(cell, 3, 3) is None


def test_of_a_trace_it_is_the_rate_of_the_time_that_the_cell_lasts(tmp_path: Path) -> None:
    """Not the mean of the whole trace, which a short cell does not reach."""
    (tmp_path / "steps.csv").write_text("time,rate\n0 s,2 Mbit/s\n20 s,500 kbit/s\n60 s,2 Mbit/s\n")
    back = 'backward = { rate = "1 Mbit/s", queue = "50 packets" }\n'
    traced = back + 'forward = { trace = "steps.csv", queue = "50 packets" }\n'
    text = BASE.replace('rate = "1 Mbit/s"\nqueue = "50 packets"\n', traced)
    text = text.replace('duration = "10 s"', 'duration = "{length}"\nparameter.length = "10 s"')
    (tmp_path / "spec.toml").write_text(text)
    for length, mean in (("10 s", 2e6), ("40 s", 1.25e6)):
        (cell,) = make_plan(load_spec(tmp_path / "spec.toml", sets={"length": length})).cells
        assert capacity(cell, 0, float(length.split()[0])) == mean


def test_a_link_has_the_mean_of_its_own_rate() -> None:
    text = slower(slower(BASE, "2 s", 'forward = { rate = "3 Mbit/s" }'), "4 s", 'forward = { rate = "1 Mbit/s" }')
    shapes = shapes_over_time(cell_of(text))
    for (from_s, to_s), mean in {(0, 10): 1.4e6, (2, 4): 3e6, (3, 5): 2e6, (5, 10): 1e6, (0, 1): 1e6}.items():
        assert rate_bit_s(shapes["p1", "forward"], from_s * S, to_s * S) == mean
    assert rate_bit_s(shapes["p1", "backward"], 0, 10 * S) == 1e6
    (at_ns, shape), *_ = shapes["p1", "backward"]
    assert rate_bit_s([(at_ns, msgspec.structs.replace(shape, rate_bit_s=None))], 0, S) is None


def test_a_route_has_the_lowest_rate_of_its_links() -> None:
    text = replaced('between = ["a", "b"]', 'between = ["a", "r"]').replace(
        'paths = ["p1"]', 'paths = [{ sender = "p1", receiver = "p2" }]'
    )
    text += '[node.r]\nkind = "router"\n[link.p2]\nlike = "p1"\nbetween = ["r", "b"]\nrate = "2 Mbit/s"\n'
    cell = cell_of(slower(text, "5 s", 'rate = "4 Mbit/s"'))
    assert capacity(cell, 0, 10) == 1.5e6


# The bytes that a path can pass


@dataclass(frozen=True)
class Hop:
    """A link of the test's own network. bucket: 0: netem's rate, which has none; late: its delay line's, drawn."""

    rate_bit_s: int
    bucket: int
    header: int
    delay_ns: int
    jitter_ns: int
    queue: int


def toml_of(hops: Sequence[Hop], cross: int) -> str:
    """A chain of the hops; the flow y joins x's way at the hop number `cross`."""
    text = 'format = 1\nname = "chain"\nduration = "10 s"\n[node.a]\n[node.b]\n'
    nodes = ["a", *(f"r{number}" for number in range(1, len(hops))), "b"]
    text += "".join(f'[node.{name}]\nkind = "router"\n' for name in nodes[1:-1])
    for number, hop in enumerate(hops):
        text += f'''[link.h{number}]
between = ["{nodes[number]}", "{nodes[number + 1]}"]
one_way_delay = "{hop.delay_ns} ns"
[link.h{number}.forward]
rate = "{hop.rate_bit_s} bit/s"
queue = "{hop.queue} packets"
layer = "{"ethernet" if hop.header else "ip"}"
'''
        text += f'burst = "{hop.bucket} B"\n' if hop.bucket else ""
        text += f'jitter = "{hop.jitter_ns} ns"\nin_order = true\n' if hop.jitter_ns else ""
    way = '{ sender = "%s", receiver = "%s" }'
    text += '[default.flow]\nto = "b"\nprotocol = "tcp"\n[flow.x]\nfrom = "a"\n'
    text += f"paths = [{way % ('h0', f'h{len(hops) - 1}')}]\n"
    if 0 < cross < len(hops):
        text += f'[node.c]\n[link.side]\nbetween = ["c", "{nodes[cross]}"]\n'
        text += f'[flow.y]\nfrom = "c"\npaths = [{way % ("side", f"h{len(hops) - 1}")}]\n'
    return text


def through(hop: Hop, packets: list[tuple[int, int, str]], draw: random.Random) -> list[tuple[int, int, str]]:
    """The packets (ns, bytes, flow) behind a hop: a delay line in order, then netem's rate or a token bucket."""
    out: list[tuple[int, int, str]] = []
    due = free = last = 0
    level, at = float(hop.bucket), 0
    busy: collections.deque[int] = collections.deque()
    for came, size, flow in packets:
        due = max(due, came + hop.delay_ns + draw.randint(-hop.jitter_ns, hop.jitter_ns) if hop.jitter_ns else
                  came + hop.delay_ns)  # fmt: skip
        while busy and busy[0] <= due:
            busy.popleft()
        if len(busy) > hop.queue:
            continue
        length = size + hop.header
        if hop.bucket:
            begin = max(due, free)
            level = min(float(hop.bucket), level + (begin - at) * hop.rate_bit_s / 8e9)
            wait = max(0.0, (length - level) * 8e9 / hop.rate_bit_s)
            leaves = begin + int(np.ceil(wait))
            level, at = min(float(hop.bucket), level + (leaves - begin) * hop.rate_bit_s / 8e9) - length, leaves
            free = leaves
        else:
            leaves = free = max(due, free) + int(length * 8e9 // hop.rate_bit_s)
        last = max(last, leaves)
        busy.append(last)
        out.append((last, size, flow))
    return out


def drawn_hop(draw: random.Random) -> Hop:
    rate = int(10 ** draw.uniform(4, 9))
    bucket = min(draw.choice([0, 0, 1600, 5000, 32_000, 256_000, 32_000_000]), 30 * rate)  # 240 s: less than 275
    jitter = draw.choice([0, 0, 100_000, 5_000_000])
    return Hop(rate, bucket, draw.choice([0, 14]), 10_000_000, jitter, draw.choice([5, 50, 1000]))


@pytest.mark.parametrize("seed", range(60))
def test_no_chain_of_links_passes_more_than_its_bound(seed: int) -> None:
    draw = random.Random(seed)
    hops = [drawn_hop(draw) for _ in range(draw.randint(1, 4))]
    cross = draw.randint(0, len(hops))
    cell = cell_of(toml_of(hops, cross))
    flows: dict[str, list[tuple[int, int, str]]] = {"x": [], "y": []}
    for name, packets in flows.items():
        at = draw.randint(0, 10**6)
        for _ in range(draw.choice([2, 3, 40, 200])):
            at += draw.choice([0, 0, 0, 10**3, 10**6, draw.randint(0, 10**8)])
            packets.append((at, draw.choice([40, 52, 576, 1500, 1500]), name))
    packets = flows["x"]
    for number, hop in enumerate(hops):
        joins = flows["y"] if 0 < cross == number else []
        packets = through(hop, sorted([*packets, *joins]), draw)
    seen = [(t_ns, size) for t_ns, size, name in packets if name == "x"]
    if len(seen) < 2:
        return
    t_ns, sizes = (np.array(column, dtype=np.int64) for column in zip(*seen, strict=True))
    capacity, flow = CellCapacity(cell, None), cell.flows[0]
    pairs = list(itertools.combinations(range(len(t_ns)), 2))
    for first, last in draw.sample(pairs, min(len(pairs), 100)):
        chosen = slice(first, last + 1)
        nothing = np.zeros(last + 1 - first, dtype=np.int64)
        (check,) = capacity.checks(flow, Arrivals(t_ns[chosen], sizes[chosen], nothing))
        assert check.ok, (check.detail, hops)


@pytest.mark.parametrize(("bucket", "faster"), [(0, 1.001), (1600, 1.001), (256_000, 1.001), (32_000_000, 1.02)])
@pytest.mark.parametrize("header", [0, 14])
def test_a_link_that_is_a_little_too_fast_is_found(bucket: int, faster: float, header: int) -> None:
    """What its bucket holds takes 0.128 s on the second link: the first packet may have waited there as long."""
    asked = Hop(10_000_000, bucket, header, 10_000_000, 0, 1_000_000)
    hops = [asked, Hop(2_000_000_000, 0, 0, 50_000, 0, 1_000_000)]
    capacity = CellCapacity(cell_of(toml_of(hops, 0)), None)
    packets = [(0, 1500, "x")] * 30_000
    for rate, right in ((10_000_000, True), (round(10_000_000 * faster), False)):
        there = [Hop(rate, *_rest(asked)), hops[1]]
        seen = packets
        for hop in there:
            seen = through(hop, seen, random.Random(1))
        t_ns, sizes, _ = zip(*seen, strict=True)
        arrivals = Arrivals(np.array(t_ns), np.array(sizes), np.zeros(len(seen), dtype=np.int64))
        (check,) = capacity.checks(capacity.cell.flows[0], arrivals)
        assert check.ok is right, check.detail


def _rest(hop: Hop) -> tuple[int, int, int, int, int]:
    return hop.bucket, hop.header, hop.delay_ns, hop.jitter_ns, hop.queue


def test_a_bucket_that_is_a_tenth_too_deep_is_found() -> None:
    hops = [Hop(10_000_000, 256_000, 0, 10_000_000, 0, 1_000_000)]
    capacity = CellCapacity(cell_of(toml_of(hops, 0)), None)
    for bucket, right in ((256_000, True), (281_600, False)):
        seen = through(Hop(10_000_000, bucket, *_rest(hops[0])[1:]), [(0, 1500, "x")] * 1000, random.Random(1))
        t_ns, sizes, _ = zip(*seen, strict=True)
        arrivals = Arrivals(np.array(t_ns), np.array(sizes), np.zeros(len(seen), dtype=np.int64))
        (check,) = capacity.checks(capacity.cell.flows[0], arrivals)
        assert check.ok is right, check.detail


def test_two_packets_may_be_nearer_by_the_clocks_grain_and_no_more() -> None:
    capacity = CellCapacity(cell_of(BASE), None)
    exact = 1500 * 8 * 1000
    for early, right in ((0, True), (GRAIN_NS // 2, True), (3 * GRAIN_NS, False)):
        arrivals = Arrivals(np.array([0, exact - early]), np.array([1500, 1500]), np.array([0, 0]))
        (check,) = capacity.checks(capacity.cell.flows[0], arrivals)
        assert check.ok is right, check.detail


def test_a_rate_that_changes_bounds_each_time_by_what_it_is_then() -> None:
    text = slower(slower(BASE, "2 s", 'rate = "3 Mbit/s"'), "4 s", 'rate = "1 Mbit/s"')
    capacity = CellCapacity(cell_of(text), None)
    for (from_s, to_s), most in {(0.5, 1.5): 1e6, (2.5, 3.5): 3e6, (1.0, 5.0): 8e6}.items():
        for share, right in ((1.0, True), (1.05, False)):
            count = round(most * share / 12_000)
            t_ns = np.linspace(from_s * S, to_s * S, count + 1).astype(np.int64)
            arrivals = Arrivals(t_ns, np.full(count + 1, 1500), np.zeros(count + 1, dtype=np.int64))
            (check,) = capacity.checks(capacity.cell.flows[0], arrivals)
            assert check.ok is right, check.detail


def test_what_waited_for_a_slot_leaves_at_once() -> None:
    """1 Mbit/s for a slot of at most 48 ms: 6000 B, and two packets at its ends."""
    slots = 'slots = { after = "24 ms", to = "48 ms" }'
    capacity = CellCapacity(cell_of(replaced('queue = "50 packets"', f'queue = "50 packets"\n{slots}')), None)
    for together, right in ((1, True), (4, True), (12, False)):
        arrivals = Arrivals(
            np.zeros(together + 1, dtype=np.int64), np.full(together + 1, 1500), np.zeros(together + 1, int)
        )
        (check,) = capacity.checks(capacity.cell.flows[0], arrivals)
        assert check.ok is right, check.detail


def test_a_packet_overtakes_where_the_delay_behind_the_link_falls() -> None:
    """The packet that comes first left the link last: it paid for none of those that come after it."""
    hops = [Hop(83_000, 0, 0, 3_100_000, 0, 11), Hop(10**9, 0, 0, 91_000_000, 0, 1000)]
    text = toml_of(hops, 0)
    less = text + '[event.e]\naction = "change"\nlink = "h1"\none_way_delay = "43 ms"\nat = "1 s"\n'
    # 204 bytes left the first link behind 1500 of them, and came 28 ms earlier
    for spec, right in ((text, False), (less, True)):
        capacity = CellCapacity(cell_of(spec), None)
        t_ns = np.array([0, 48_000_000 - 204 * 8 * 10**9 // 83_000])
        arrivals = Arrivals(t_ns, np.array([204, 1500]), np.zeros(2, dtype=np.int64))
        (check,) = capacity.checks(capacity.cell.flows[0], arrivals)
        assert check.ok is right, check.detail


def test_a_policer_bounds_a_link_that_is_faster() -> None:
    text = replaced('rate = "1 Mbit/s"', 'rate = "100 Mbit/s"\npolicer = { rate = "1 Mbit/s", burst = "10 kB" }')
    capacity = CellCapacity(cell_of(text), None)
    for count, right in ((85, True), (110, False)):
        t_ns = np.linspace(0, S, count + 1).astype(np.int64)
        arrivals = Arrivals(t_ns, np.full(count + 1, 1500), np.zeros(count + 1, dtype=np.int64))
        (check,) = capacity.checks(capacity.cell.flows[0], arrivals)
        assert check.ok is right, check.detail


def test_a_packet_of_an_agent_did_not_cross_the_links_before_it() -> None:
    hops = [Hop(1_000_000, 0, 0, 10_000_000, 0, 50), Hop(100_000_000, 0, 0, 10_000_000, 0, 50)]
    text = toml_of(hops, 0)
    with_agent = text.replace('[node.r1]\nkind = "router"', '[node.r1]\nkind = "router"\nagent = "snoop"')
    arrivals = Arrivals(np.arange(10) * 200_000, np.full(10, 1500), np.zeros(10, dtype=np.int64))
    for spec, right in ((text, False), (with_agent, True)):
        capacity = CellCapacity(cell_of(spec), None)
        (check,) = capacity.checks(capacity.cell.flows[0], arrivals)
        assert check.ok is right, check.detail


def test_segments_of_a_proxy_leave_its_own_link_together() -> None:
    """Its TCP gives the queue of its own router packets of several segments (GSO), which are cut behind the queue."""
    hops = [Hop(100_000_000, 0, 0, 10_000_000, 0, 50), Hop(40_000_000, 0, 0, 10_000_000, 0, 50)]
    text = toml_of(hops, 0)
    proxy = text.replace('[node.r1]\nkind = "router"', '[node.r1]\nkind = "router"\nagent = "itcp-proxy"')
    pairs = np.repeat(np.arange(20), 2) * 600_000
    arrivals = Arrivals(pairs, np.full(40, 1500), np.zeros(40, dtype=np.int64))
    for spec, right in ((text, False), (proxy, True)):
        capacity = CellCapacity(cell_of(spec), None)
        (check,) = capacity.checks(capacity.cell.flows[0], arrivals)
        assert check.ok is right, check.detail
