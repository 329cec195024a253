"""The eBPF program of a direction whose packets leave at delivery opportunities: when each leaves is known as it comes.

It runs for each packet that is about to enter the line's last qdisc, fq, which holds it until the time that the program
gives it. The queue is the program's own: it knows when the first byte of every packet that waits is sent. The rules are
mahimahi's (frontend/link_queue.cc): an opportunity that finds nothing waiting is lost, and so is what is left of one
when nothing waits any more; a packet that does not fit goes on with the next opportunity and leaves when its last byte
is sent; from its first byte on it is no longer in the queue. What comes at the instant of an opportunity is too late
for it.

settings: u64 the line's generation (another one: what waited is gone), then u32 each of the opportunities' times in ms
from T0, filled up to a power of 2. state: u64 each, the names below, then of each of the last packets when its first
byte is sent and, where the queue is in bytes, how much had come before it.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ..core.frozen import Frozen
from ..core.link_types import Opportunities
from ..core.wire import ETHERNET_HEADER_BYTES
from .bpf import assemble
from .packet_program import MARKS, SETTINGS, STATE

MARK = MARKS << 16
"""Of packets that have come through the line."""
T0, GENERATION, NEXT, BASE, LAST, LEFT, FLOOR, ACCEPTED, BYTES, DROPPED, ENDED, NAMES = (8 * n for n in range(12))
MS = 1_000_000
NEVER_MS = 0xFFFFFFFF
LARGEST_RING = 1 << 16
SMALLEST_PACKET_BYTES = 28
SET_TSTAMP, MONOTONIC = 192, 1
"""bpf_skb_set_tstamp and its clock."""
FRAME_SIZE, FRAME_STARTS = -8, -16


class Delivered(Frozen, frozen=True):
    """Counters: packets that were given a time, packets for which the queue had no room, packets after the last
    opportunity.
    """

    packets: int
    dropped: int
    after_the_end: int


@dataclass(frozen=True, slots=True)
class DeliveryProgram:
    """A direction's program: its bytes, its opportunities, and how large its state is."""

    code: bytes
    table: bytes
    state_bytes: int

    def state(self, seed: int) -> bytes:
        """The state before the first packet; it draws nothing. cell-init writes T0 into it."""
        return bytes(self.state_bytes)

    def settings(self, generation: int) -> bytes:
        """Its opportunities, for the queue of that generation."""
        return struct.pack("=Q", generation) + self.table

    def counts(self, state: bytes) -> Delivered:
        """Read a state."""
        accepted, _, dropped, ended = struct.unpack_from("=4Q", state, ACCEPTED)
        return Delivered(accepted, dropped, ended)


def ring_size(packets: int | None, size_bytes: int | None, overhead_bytes: int) -> int:
    """The number of packets whose begin it keeps: a power of 2, more than can wait."""
    most = packets if packets is not None else (size_bytes or 0) // (SMALLEST_PACKET_BYTES + overhead_bytes) + 1
    return int(min(LARGEST_RING, 1 << (most + 1).bit_length()))


def delivery_program(traced: Opportunities, packets: int | None, size_bytes: int | None) -> DeliveryProgram:
    """Write the program. packets, size_bytes: the queue, of which one is given.

    r6: the packet, r7: now in ns from T0, r8: the settings, r9: the state. Answers: 0 pass, 2 drop, -1 the next filter
    (of what has not come through the line yet).
    """
    times = list(itertools.accumulate(traced.gaps_ms))
    padded = 1 << len(times).bit_length()
    table = struct.pack(f"={padded}I", *times, *[NEVER_MS] * (padded - len(times)))
    ring = ring_size(packets, size_bytes, traced.overhead_bytes)
    entry = 8 if packets is not None else 16
    parts = [
        _begin(traced, padded),
        _room_in_packets(packets, ring) if packets is not None else _room_in_bytes(size_bytes or 0, ring),
        _departure(traced, len(times)),
        _placed(ring, entry),
    ]
    return DeliveryProgram(assemble("\n".join(parts)), table, NAMES + ring * entry)


def _begin(traced: Opportunities, padded: int) -> str:
    """Up to the label `busy`: the next opportunity is the first after now if nothing waits."""
    period = (
        ""
        if traced.period_ns is None
        else f"""
    r2 = {traced.period_ns} ll
    r3 /= r2
    r3 *= r2"""
    )
    return f"""
    r6 = r1
    r1 = *(u32 *)(r6 + 8)
    if r1 == {MARK} goto ours
    r0 = -1
    exit
ours:
    r1 = 0
    *(u32 *)(r6 + 8) = r1
    r1 = *(u32 *)(r6 + 0)
    r1 += {traced.overhead_bytes - ETHERNET_HEADER_BYTES}
    *(u64 *)(r10 + {FRAME_SIZE}) = r1
    call 5                          ; bpf_ktime_get_ns
    r7 = r0
    r9 = map {STATE}
    r1 = *(u64 *)(r9 + {T0})
    if r7 >= r1 goto begun
    r7 = r1
begun:
    r7 -= r1
    r8 = map {SETTINGS}
    r1 = *(u64 *)(r8 + 0)
    r2 = *(u64 *)(r9 + {GENERATION})
    if r1 == r2 goto same
    *(u64 *)(r9 + {GENERATION}) = r1
    *(u64 *)(r9 + {LAST}) = 0
    r1 = *(u64 *)(r9 + {ACCEPTED})
    *(u64 *)(r9 + {FLOOR}) = r1
same:
    r1 = *(u64 *)(r9 + {LAST})
    if r7 < r1 goto busy
    *(u64 *)(r9 + {LEFT}) = 0
    r3 = {"r7" if traced.period_ns is not None else "0"}{period}
    *(u64 *)(r9 + {BASE}) = r3
    r1 = r7
    r1 -= r3
    r1 /= {MS}
    r2 = 0{"".join(_count_until(padded))}
    *(u64 *)(r9 + {NEXT}) = r2
busy:"""


def _count_until(padded: int) -> Iterator[str]:
    """Adds to r2 how many times of the table are at most r1: a search without branches, which the kernel's verifier
    would follow one by one."""
    for bit in reversed(range(padded.bit_length() - 1)):
        yield f"""
    r3 = r2
    r3 += {(1 << bit) - 1}
    r3 &= {padded - 1}
    r3 <<= 2
    r4 = r8
    r4 += r3
    r4 = *(u32 *)(r4 + 8)
    r3 = r1
    r3 -= r4
    r3 >>= 63
    r3 ^= 1
    r3 <<= {bit}
    r2 += r3"""


def _room_in_packets(packets: int, ring: int) -> str:
    """A packet has no room if the one that came so many packets earlier has not begun."""
    return f"""
    r1 = *(u64 *)(r9 + {ACCEPTED})
    r2 = *(u64 *)(r9 + {FLOOR})
    r2 += {packets}
    if r1 < r2 goto room
    r1 += {-packets}
    r1 &= {ring - 1}
    r1 <<= 3
    r2 = r9
    r2 += r1
    r2 = *(u64 *)(r2 + {NAMES})
    if r2 <= r7 goto room
{_lost(DROPPED)}
room:"""


def _room_in_bytes(size_bytes: int, ring: int) -> str:
    """r2: how many of the last packets have not begun; what came since before the first of them waits."""
    steps = "".join(
        f"""
    r3 = r2
    r3 += {1 << bit}
    r4 = r5
    r4 -= r3
    r4 >>= 63
    r4 ^= 1                         ; it came since the queue was made
    r0 = r1
    r0 -= r3
    r0 &= {ring - 1}
    r0 <<= 4
    r3 = r9
    r3 += r0
    r3 = *(u64 *)(r3 + {NAMES})
    r0 = r7
    r0 -= r3
    r0 >>= 63                       ; it has not begun
    r0 &= r4
    r0 <<= {bit}
    r2 += r0"""
        for bit in reversed(range(ring.bit_length() - 1))
    )
    return f"""
    r1 = *(u64 *)(r9 + {ACCEPTED})
    r5 = *(u64 *)(r9 + {FLOOR})
    r0 = r1
    r0 -= r5
    r5 = r0
    r2 = 0{steps}
    r4 = 0
    if r2 == 0 goto waiting
    r1 -= r2
    r1 &= {ring - 1}
    r1 <<= 4
    r3 = r9
    r3 += r1
    r3 = *(u64 *)(r3 + {NAMES + 8})
    r4 = *(u64 *)(r9 + {BYTES})
    r4 -= r3
waiting:
    r1 = *(u64 *)(r10 + {FRAME_SIZE})
    r4 += r1
    if r4 <= {size_bytes} goto room
{_lost(DROPPED)}
room:"""


def _departure(traced: Opportunities, count: int) -> str:
    """When its first byte is sent, into the frame, and its last, into LAST."""
    repeats = traced.period_ns is not None
    return f"""
    r1 = *(u64 *)(r10 + {FRAME_SIZE})
    r2 = *(u64 *)(r9 + {LEFT})
    if r2 == 0 goto fresh
    r3 = *(u64 *)(r9 + {LAST})
    *(u64 *)(r10 + {FRAME_STARTS}) = r3
    if r2 < r1 goto more
    r2 -= r1
    *(u64 *)(r9 + {LEFT}) = r2
    goto placed
more:
    r1 -= r2
    goto take
fresh:
    r2 = *(u64 *)(r9 + {NEXT})
{_time_of(traced, count, "first")}
    *(u64 *)(r10 + {FRAME_STARTS}) = r2
take:
    r5 = r1
    r5 += {traced.bytes - 1}
    r5 /= {traced.bytes}            ; opportunities that it needs
    r2 = *(u64 *)(r9 + {NEXT})
    r2 += r5
    r2 += -1
    r5 *= {traced.bytes}
    r5 -= r1                        ; what is left of the last of them
    r0 = r2{
        f'''
    r0 %= {count}
    r0 += 1'''
        if repeats
        else '''
    r0 += 1'''
    }
{_time_of(traced, count, "last")}
    *(u64 *)(r9 + {NEXT}) = r0
    *(u64 *)(r9 + {LEFT}) = r5
    *(u64 *)(r9 + {LAST}) = r2
    *(u64 *)(r9 + {BASE}) = r3
placed:"""


def _time_of(traced: Opportunities, count: int, label: str) -> str:
    """r2, the number of an opportunity from the period's begin, becomes its time; r3: the begin of its own period.
    Uses r4.
    """
    if traced.period_ns is None:
        wraps = f"""
    r3 = *(u64 *)(r9 + {BASE})"""
    else:
        wraps = f"""
    r3 = r2
    r3 /= {count}
    r4 = {traced.period_ns} ll
    r3 *= r4
    r4 = *(u64 *)(r9 + {BASE})
    r3 += r4
    r2 %= {count}"""
    return f"""{wraps}
    if r2 < {count} goto {label}
{_lost(ENDED)}
{label}:
    r2 <<= 2
    r4 = r8
    r4 += r2
    r2 = *(u32 *)(r4 + 8)
    r2 *= {MS}
    r2 += r3"""


def _placed(ring: int, entry: int) -> str:
    """Keeps its begin, and gives it its time."""
    before = (
        ""
        if entry == 8
        else f"""
    r4 = *(u64 *)(r9 + {BYTES})
    *(u64 *)(r2 + {NAMES + 8}) = r4"""
    )
    return f"""
    r1 = *(u64 *)(r9 + {ACCEPTED})
    r3 = r1
    r3 += 1
    *(u64 *)(r9 + {ACCEPTED}) = r3
    r1 &= {ring - 1}
    r1 <<= {3 if entry == 8 else 4}
    r2 = r9
    r2 += r1
    r3 = *(u64 *)(r10 + {FRAME_STARTS})
    *(u64 *)(r2 + {NAMES}) = r3{before}
    r4 = *(u64 *)(r9 + {BYTES})
    r3 = *(u64 *)(r10 + {FRAME_SIZE})
    r4 += r3
    *(u64 *)(r9 + {BYTES}) = r4
    r2 = *(u64 *)(r9 + {LAST})
    r1 = *(u64 *)(r9 + {T0})
    r2 += r1
    r1 = r6
    r3 = {MONOTONIC}
    call {SET_TSTAMP}
    r0 = 0
    exit"""


def _lost(counter: int) -> str:
    return f"""    r1 = *(u64 *)(r9 + {counter})
    r1 += 1
    *(u64 *)(r9 + {counter}) = r1
    r0 = 2
    exit"""
