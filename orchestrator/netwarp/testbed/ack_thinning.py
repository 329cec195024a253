"""The part of a packet program that thins TCP's acknowledgements, as modems and WiFi drivers do.

Of a flow's acknowledgements without data that acknowledge anything new, each n-th passes at once, and the others are
held in a delay line; what comes out of it is lost if a newer one has come since. So the last of a burst always arrives,
late by the hold. What acknowledges nothing new (duplicates, window updates) passes at once. (RFC 3449 5.2 has the kinds
of it; cake's ack_filter thins by what waits in its queue.)
"""

from __future__ import annotations

from .packet_classifier import KINDS_SEEN, kind_bits, load_bytes

NEWEST, COUNTED, THINNED, SLOTS = 0, 8, 16, 3
"""Of a flow, in its state: its newest acknowledgement and 2^32 (0: none yet), how many since one has passed, how many
were lost; and how many numbers these are."""


def thinning(flow: str, offset: int, every: int, held: int, again: int) -> str:
    """For a packet of that flow. offset: of its state. held: the verdict that leads into the delay line. again: the bit
    of the verdict of what has come out of it, whose way ends here.

    r6: the packet, r8: its verdict, r9: the state, frame -40: the offset of the transport header.
    """
    return f"""
    r1 = {kind_bits("ack")} ll
    r2 = *(u64 *)(r10 + {KINDS_SEEN})
    r1 &= r2
    if r1 == 0 goto unthinned-{flow}
    r2 = *(u64 *)(r10 + -40)
    r2 += 8
{load_bytes(-72, 4, f"unthinned-{flow}")}
    r1 = *(u32 *)(r10 + -72)
    r1 = be32 r1
    r3 = *(u64 *)(r9 + {offset + NEWEST})
    r5 = {1 << 32} ll
    r4 = r1
    r4 |= r5
    r2 = r8
    r2 &= {again}
    if r2 == 0 goto coming-{flow}
    r0 = 0
    if r4 == r3 goto newest-{flow}
    r1 = *(u64 *)(r9 + {offset + THINNED})
    r1 += 1
    *(u64 *)(r9 + {offset + THINNED}) = r1
    r0 = 2
    exit
newest-{flow}:
    *(u64 *)(r9 + {offset + COUNTED}) = 0
    exit
coming-{flow}:
    if r3 == 0 goto first-{flow}
    r1 -= r3
    r1 <<= 32
    if r1 == 0 goto unthinned-{flow}
    r1 >>= 63
    if r1 != 0 goto unthinned-{flow}
    *(u64 *)(r9 + {offset + NEWEST}) = r4
    r1 = *(u64 *)(r9 + {offset + COUNTED})
    r1 += 1
    *(u64 *)(r9 + {offset + COUNTED}) = r1
    if r1 < {every} goto hold-{flow}
    *(u64 *)(r9 + {offset + COUNTED}) = 0
    goto unthinned-{flow}
first-{flow}:
    *(u64 *)(r9 + {offset + NEWEST}) = r4
    goto unthinned-{flow}
hold-{flow}:
    r8 |= {held}
unthinned-{flow}:"""
