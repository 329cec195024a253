"""Calibrates policers, bursts of a rate, slots and delivery opportunities: each packet's fate and time against the
rule, written down a second time here. Datagrams of four sizes, with bursts of full ones.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from ...core.link_types import Link, LinkImpairment, Opportunities, Policer, Slots
from ...store.probe_rows import ProbeRow
from .datagram_probes import MS, PORTS, START_NS, S, probe_cell, send_words, sending_flow
from .datagrams import Probe, Way

DELAY_NS = 5 * MS
RATE_BIT_S, BURST_BYTES, QUEUE = 5_130_000, 30_000, 20
SIZES = (1500, 1500, 700, 300)
COUNT, APART_NS = 1200, 700_013
BURST_NS, BURST_COUNT, BURST_APART_NS = (S, 2 * S), 40, 100_000
AFTER_T0_NS = 50_000
"""No packet comes near a whole ms, at which an opportunity may be."""
BOUND_NS = 20_000
CLOSE_NS = 2000
"""Fates that so little time decides are not judged."""
SLOTS = Slots(5 * MS, 5 * MS, 8, None)
TIMES_MS = tuple(itertools.accumulate((0, 1, 1, 0, 2, 3, 1, 0, 0, 1, 2) * 40))
TRACE = Opportunities("made", "", tuple(b - a for a, b in itertools.pairwise((0, *TIMES_MS))), TIMES_MS[-1], 1504, 4, 1)
SHAPES = {
    "policer": LinkImpairment(one_way_delay_ns=DELAY_NS, policer=Policer(RATE_BIT_S, BURST_BYTES)),
    "burst of a rate": LinkImpairment(
        one_way_delay_ns=DELAY_NS, rate_bit_s=RATE_BIT_S, burst_bytes=BURST_BYTES, queue_packets=QUEUE
    ),
    "slots": LinkImpairment(one_way_delay_ns=DELAY_NS, queue_packets=QUEUE, slots=SLOTS),
    "opportunities": LinkImpairment(one_way_delay_ns=DELAY_NS, queue_packets=QUEUE, opportunities=TRACE),
}
Fates = Iterator[tuple[int | None, bool]]
"""Of each packet: when it leaves (ns; None: never), and if its fate can be judged."""


def bucket_probes(program: Path, seed: int = 1) -> tuple[Probe, ...]:
    """Every cell."""
    probes = []
    for name, shape in SHAPES.items():
        moments = [at + AFTER_T0_NS + number * BURST_APART_NS for at in BURST_NS for number in range(BURST_COUNT)]
        begins, until = START_NS + AFTER_T0_NS, START_NS + 3 * S
        send = send_words(PORTS[0], SIZES, COUNT, APART_NS, begins, until, moments)
        link = Link("p1", "a", "b", shape, LinkImpairment(one_way_delay_ns=MS))
        flow = sending_flow("datagrams", "a", "b", PORTS[0], program, send, "sink", until)
        cell = probe_cell(f"{name} packets", link, (flow,), until + S, seed, random=False)
        probes.append(Probe(f"buckets: {name}", cell, ("buckets",)))
    return tuple(probes)


def judge_buckets(probe: Probe, way: Way, t0_ns: int, late_s: float) -> Iterator[ProbeRow]:
    """Rows of one probe. Times from T0; late_s: by how much a time may be late."""
    shape = probe.cell.links[0].forward
    sizes = [int(size) for size in way.ip_bytes]
    sent = [int(at) - t0_ns for at in way.sent_ns]
    left = [int(way.arrived_ns[row]) - t0_ns if came else None for row, came in zip(way.arrival, way.came, strict=True)]
    if isinstance(shape.policer, Policer):
        fates = _policed(sent, sizes, left)
    elif isinstance(shape.slots, Slots):
        fates = _slotted([at + DELAY_NS for at in sent], left)
    elif isinstance(shape.opportunities, Opportunities):
        fates = _delivered([at + DELAY_NS for at in sent], sizes)
    else:
        fates = _shaped([at + DELAY_NS for at in sent], sizes, left)
    other, unjudged, farthest = 0, 0, 0
    for (asked, judged), got in zip(fates, left, strict=True):
        if not judged:
            unjudged += 1
        elif (asked is None) != (got is None):
            other += 1
        elif asked is not None and got is not None:
            farthest = max(farthest, abs(got - asked))
    lost = sum(each is None for each in left)
    yield ProbeRow.of(probe.name, "packets with another fate", 0, other, 0, "packets")
    yield ProbeRow.of(probe.name, "farthest from its time", 0, farthest / 1e9, BOUND_NS / 1e9 + late_s, "s")
    yield ProbeRow.of(probe.name, "packets that the rule leaves open", 0, unjudged, len(sent) // 50, "packets")
    yield ProbeRow.of(probe.name, "packets lost (some, not all)", 1, float(20 < lost < len(sent) - 500), 0, "ratio")


def _needs_ns(size: int) -> int:
    return 8 * S * size // RATE_BIT_S


def _policed(sent: list[int], sizes: list[int], left: list[int | None]) -> Fates:
    """A bucket without a queue."""
    full = _needs_ns(BURST_BYTES)
    tokens, since = full, -S
    for at, size, got in zip(sent, sizes, left, strict=True):
        after = min(full, tokens + at - since) - _needs_ns(size)
        yield (at + DELAY_NS if after >= 0 else None), abs(after) > CLOSE_NS
        if got is not None:
            tokens, since = after, at


def _shaped(came: list[int], sizes: list[int], left: list[int | None]) -> Fates:
    """A bucket behind a queue; it goes on from when each packet really left, which is late by a timer's step."""
    full = _needs_ns(BURST_BYTES)
    tokens, since = full, -S
    waiting: deque[int] = deque()
    for at, size, got in zip(came, sizes, left, strict=True):
        close = any(abs(each - at) < CLOSE_NS for each in waiting)
        while waiting and waiting[0] <= at:
            waiting.popleft()
        due = max(at, since, since + _needs_ns(size) - tokens)
        yield (due if len(waiting) < QUEUE else None), not close
        if got is not None:
            waiting.append(got)
            tokens, since = min(full, tokens + got - since) - _needs_ns(size), got


def _slotted(came: list[int], left: list[int | None]) -> Fates:
    """netem's slots (sch_netem.c: netem_dequeue, get_slot_next), whose limit counts one packet more."""
    opens, room, now = -S, SLOTS.packets or 0, -S
    waiting: deque[int] = deque()
    for at, got in zip(came, left, strict=True):
        close = any(abs(each - at) < CLOSE_NS for each in waiting)
        while waiting and waiting[0] <= at:
            waiting.popleft()
        full = len(waiting) > QUEUE
        if got is None:
            yield (None if full else at), not close
            continue
        waiting.append(got)
        now = max(now, at)
        if opens < at:
            opens, room = now + SLOTS.least_ns, SLOTS.packets or 0
        now = max(now, opens)
        yield (None if full else now), not close
        now, room = got, room - 1
        if not room:
            opens, room = now + SLOTS.least_ns, SLOTS.packets or 0


def _delivered(came: list[int], sizes: list[int]) -> Fates:
    """mahimahi's link (frontend/link_queue.cc)."""
    times = (at * MS + period * TIMES_MS[-1] * MS for period in itertools.count() for at in TIMES_MS)
    queue: deque[list[int]] = deque()
    leaves: dict[int, int] = {}
    moment = next(times)
    begun = 0

    def serve(until: int) -> None:
        nonlocal moment, begun
        while moment <= until:
            room = TRACE.bytes
            while room and queue:
                begun = 1
                served = min(room, queue[0][1])
                queue[0][1] -= served
                room -= served
                if not queue[0][1]:
                    leaves[queue.popleft()[0]] = moment
                    begun = 0
            moment = next(times)

    for number, (at, size) in enumerate(zip(came, sizes, strict=True)):
        serve(at)
        if len(queue) - begun < QUEUE:
            queue.append([number, size + TRACE.overhead_bytes])
    serve(came[-1] + 100 * S)
    yield from ((leaves.get(number), True) for number in range(len(came)))
