"""The eBPF program of one direction of a link: bit errors, rules for single packets, and the longest that passes.

It sits before the direction's qdiscs (clsact, egress of the hop) and sees every packet that comes to the link. A packet
that a rule delays goes through a delay line of its own and comes back to the link's own qdiscs.

settings: u64 the longest packet that passes (IP bytes), then u64 each of `survival_factors`.
state: u64 each: generator, packets, lost by bit errors, too long, dropped, duplicated, delayed, then one counter for
each (flow, kind) that a rule counts.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..core.frozen import Frozen
from ..core.ip_families import IPV4, IpFamily
from ..core.link_types import AckThinning, LinkImpairment, PacketRange, PacketRule
from ..core.types import Flow
from ..core.wire import ETHERNET_HEADER_BYTES, IP_PROTOCOLS
from .ack_thinning import SLOTS as THINNING_SLOTS
from .ack_thinning import THINNED, thinning
from .bpf import assemble
from .packet_classifier import IP_PROTOCOL, KINDS_SEEN, PORTS, classify, kind_bits

NO_LIMIT = 1 << 32
LENGTH_BITS = 16
"""An IP packet is at most 65,535 bytes."""
ONE = 1 << 32
"""Survival 1 in the program's fixed point."""
MARKS = 0x6E77
"""Upper half of the mark of packets that the program has seen already: 'nw'."""
SETTINGS, STATE = 0, 1
GENERATOR, PACKETS, BIT_ERRORS, TOO_LONG, DROPPED, DUPLICATED, DELAYED, COUNTERS = range(8)
_DROPS, _DUPLICATES, _AGAIN, _DELAY_SHIFT = 1, 2, 4, 8
"""A verdict: bits of what to do, above them the number of the delay line and 1."""


class Counts(Frozen, frozen=True):
    """The counters of a program: packets."""

    packets: int
    bit_errors: int
    too_long: int
    dropped: int
    duplicated: int
    delayed: int
    thinned: int
    """Acknowledgements that were lost."""


@dataclass(frozen=True, slots=True)
class PacketProgram:
    """A direction's program: its bytes, the delays (ns) its delay lines have, and how many counters its state has."""

    code: bytes
    delays_ns: tuple[int, ...]
    counters: int
    thinned: tuple[int, ...] = ()
    """Offsets of the numbers of acknowledgements that were lost, in the state."""

    def state(self, seed: int) -> bytes:
        """The state before the first packet; seed is never 0."""
        return struct.pack(f"={COUNTERS + self.counters}Q", seed, *[0] * (COUNTERS - 1 + self.counters))

    def counts(self, state: bytes) -> Counts:
        """Read a state."""
        thinned = sum(struct.unpack_from("=Q", state, offset)[0] for offset in self.thinned)
        packets, bit_errors, too_long, dropped, duplicated, delayed = struct.unpack_from("=6Q", state, 8 * PACKETS)
        return Counts(packets, bit_errors, too_long, dropped, duplicated, delayed, thinned)

    def mark(self, number: int) -> int:
        """The mark of packets that go through delay line `number`."""
        return (MARKS << 16) + number + 1


def settings(shape: LinkImpairment, longest_bytes: int | None) -> bytes:
    """The settings of a shape, and of a fault that lets only packets up to a length pass."""
    longest = NO_LIMIT if longest_bytes is None else longest_bytes
    return struct.pack(f"={2 + LENGTH_BITS}Q", longest, *survival_factors(shape))


def survival_factors(shape: LinkImpairment) -> list[int]:
    """Probabilities, in units of 2^-32, that the headers which the rate counts before IP come through whole, and then
    that 2^k bytes do; zeros where there are no errors.

    An IP packet of L bytes survives with the product of the first and of those of L's bits: (1 - BER)^(8 L), to 1e-8.
    """
    if not shape.bit_error_ratio and not shape.byte_error_ratio:
        return [0] * (1 + LENGTH_BITS)
    byte = 8 * math.log1p(-shape.bit_error_ratio) if shape.bit_error_ratio else math.log1p(-shape.byte_error_ratio)
    factors = [
        max(1, round(ONE * math.exp(byte * length)))
        for length in (shape.header_bytes, *(2**k for k in range(LENGTH_BITS)))
    ]
    return [factors[0], *(min(ONE - 1, factor) for factor in factors[1:])]  # ONE times ONE is no u64


def packet_program(
    rules: Sequence[PacketRule],
    flows: Sequence[Flow],
    *,
    errors: bool,
    family: IpFamily = IPV4,
    thins: AckThinning | None = None,
) -> PacketProgram:
    """Write the program. r6: the packet, r8: its verdict, r9: the state; frame -8: the draw.

    Answers: 0 pass, 2 drop, -1 the next filter (which leads to a delay line). struct __sk_buff: len at 0, mark at 8,
    ifindex at 40.
    """
    rule_delays = {rule.delay_ns for rule in rules if rule.action == "delay"}
    hold_ns = {thins.hold_ns + (thins.hold_ns in rule_delays)} if thins is not None else set[int]()  # a line of its own
    delays = tuple(sorted(rule_delays | hold_ns))
    verdicts = {"drop": _DROPS, "duplicate": _DUPLICATES}

    def verdict(rule: PacketRule) -> int:
        return verdicts.get(rule.action) or (delays.index(rule.delay_ns) + 1) << _DELAY_SHIFT

    held = (delays.index(min(hold_ns)) + 1) << _DELAY_SHIFT if hold_ns else 0
    parts = ["    r6 = r1"]
    if thins is not None:
        parts.append(_held_already(held >> _DELAY_SHIFT))
    elif any(rule.action != "drop" for rule in rules):  # what it sent on itself comes by a second time
        parts.append(_SEEN_ALREADY)
    parts += [f"    r9 = map {STATE}", _count(PACKETS), "    r8 = 0"]
    if errors:  # one draw a packet, whatever becomes of it: variants meet the same ones
        parts.append(_DRAW)
    of_all = _Verdicts()
    for rule in rules:
        if not rule.kind:
            of_all.add(rule, verdict(rule))
    if of_all.numbers or of_all.ranges:
        parts += [f"    r1 = *(u64 *)(r9 + {8 * PACKETS})", *of_all.compare("link")]
    if thins is not None:
        parts.append("classify:")
    by_kind = [(rule, verdict(rule)) for rule in rules if rule.kind]
    text, slots, thinned = _by_kind(by_kind, flows, family, None if thins is None else (thins.every, held))
    parts += [*text, "verdict:", _ENDS_AGAIN if thins is not None else "", _SHORT_ENOUGH]
    if errors:
        parts += [_survive()]
    if any(rule.action == "duplicate" for rule in rules):
        parts.append(_DUPLICATE)
    if delays:
        parts.append(_DELAY)
    return PacketProgram(assemble("\n".join([*parts, "    r0 = 0", "    exit"])), delays, slots, thinned)


def _count(slot: int) -> str:
    return f"""
    r1 = *(u64 *)(r9 + {8 * slot})
    r1 += 1
    *(u64 *)(r9 + {8 * slot}) = r1"""


_SEEN_ALREADY = f"""
    r1 = *(u32 *)(r6 + 8)
    r1 >>= 16
    if r1 != {MARKS} goto new
    r1 = 0
    *(u32 *)(r6 + 8) = r1
    r0 = 0
    exit
new:"""
_ENDS_AGAIN = f"""
    r1 = r8
    r1 &= {_AGAIN}
    if r1 == 0 goto coming
    r0 = 0
    exit
coming:"""
_DRAW = f"""
    ; xorshift64* (Vigna, 2016); its upper 32 bits
    r1 = *(u64 *)(r9 + {8 * GENERATOR})
    r2 = r1
    r2 >>= 12
    r1 ^= r2
    r2 = r1
    r2 <<= 25
    r1 ^= r2
    r2 = r1
    r2 >>= 27
    r1 ^= r2
    *(u64 *)(r9 + {8 * GENERATOR}) = r1
    r2 = 2685821657736338717 ll
    r1 *= r2
    r1 >>= 32
    *(u64 *)(r10 + -8) = r1"""
_SHORT_ENOUGH = f"""
    r7 = *(u32 *)(r6 + 0)
    r7 += {-ETHERNET_HEADER_BYTES}
    r3 = map {SETTINGS}
    r2 = *(u64 *)(r3 + 0)
    if r7 <= r2 goto short-enough
{_count(TOO_LONG)}
    r0 = 2
    exit
short-enough:
    r1 = r8
    r1 &= {_DROPS}
    if r1 == 0 goto kept
{_count(DROPPED)}
    r0 = 2
    exit
kept:"""
_DUPLICATE = f"""
    r1 = r8
    r1 &= {_DUPLICATES}
    if r1 == 0 goto single
{_count(DUPLICATED)}
    r1 = {MARKS << 16}
    *(u32 *)(r6 + 8) = r1
    r1 = r6
    r2 = *(u32 *)(r6 + 40)
    r3 = 0
    call 13                         ; bpf_clone_redirect
    r1 = 0
    *(u32 *)(r6 + 8) = r1
single:"""
_DELAY = f"""
    r8 >>= {_DELAY_SHIFT}
    if r8 == 0 goto pass
{_count(DELAYED)}
    r8 += {MARKS << 16}
    *(u32 *)(r6 + 8) = r8
    r0 = -1
    exit
pass:"""


def _survive() -> str:
    """Lost where the draw is not below the product of the factors of the length's bits (settings in r3)."""
    factors = [
        f"""
    r4 = r7
    r4 &= {1 << bit}
    if r4 == 0 goto bit-{bit}
    r4 = *(u64 *)(r3 + {16 + 8 * bit})
    r2 *= r4
    r2 >>= 32
bit-{bit}:"""
        for bit in range(LENGTH_BITS)
    ]
    return f"""
    r2 = *(u64 *)(r3 + 8)
    if r2 == 0 goto whole
{"".join(factors)}
    r1 = *(u64 *)(r10 + -8)
    if r1 < r2 goto whole
{_count(BIT_ERRORS)}
    r0 = 2
    exit
whole:"""


@dataclass(slots=True)
class _Verdicts:
    """What becomes of which numbers of one count."""

    numbers: dict[int, int] = field(default_factory=dict)
    ranges: list[tuple[PacketRange, int]] = field(default_factory=list)

    def add(self, rule: PacketRule, value: int) -> None:
        """The verdict of one rule."""
        for number in rule.numbers:
            self.numbers[number] = self.numbers.get(number, 0) | value
        self.ranges += [(each, value) for each in rule.spans]

    def compare(self, place: str) -> Iterator[str]:
        """Adds to the verdict where the number in r1 is listed, or in a range."""
        for number, value in sorted(self.numbers.items()):
            other = f"{place}-not-{number}"
            yield f"    if r1 != {number} goto {other}"
            yield from _add(value, other)
        for place_number, (each, value) in enumerate(self.ranges):
            other = f"{place}-not-range-{place_number}"
            yield f"    if r1 < {each.first} goto {other}"
            if each.last is not None:
                yield f"    if r1 > {each.last} goto {other}"
            if each.step > 1:
                yield f"    r2 = r1\n    r2 += {-each.first}\n    r2 %= {each.step}\n    if r2 != 0 goto {other}"
            yield from _add(value, other)


def _held_already(line: int) -> str:
    """What comes out of that delay line is asked for its flow again, other packets with a mark are not."""
    return f"""
    r1 = *(u32 *)(r6 + 8)
    r2 = r1
    r1 >>= 16
    if r1 != {MARKS} goto new
    r2 &= 0xffff
    r1 = 0
    *(u32 *)(r6 + 8) = r1
    if r2 == {line} goto held
    r0 = 0
    exit
held:
    r9 = map {STATE}
    r8 = {_AGAIN}
    goto classify
new:"""


def _add(value: int, other: str) -> Iterator[str]:
    """Adds a value to the verdict; of two delays the longer counts."""
    others = (1 << _DELAY_SHIFT) - 1
    yield f"    r8 |= {value & others}"
    if value > others:
        yield f"""
    r2 = r8
    r2 >>= {_DELAY_SHIFT}
    if r2 >= {value >> _DELAY_SHIFT} goto {other}
    r8 &= {others}
    r8 |= {value & ~others}"""
    yield f"{other}:"


def _by_kind(
    rules: Sequence[tuple[PacketRule, int]],
    flows: Sequence[Flow],
    family: IpFamily,
    thins: tuple[int, int] | None,
) -> tuple[list[str], int, tuple[int, ...]]:
    """The rules by flow and kind, how many counters they have, and the offsets of what was lost by thinning.

    thins: each so many-th acknowledgement passes, and the verdict for the others; of netwarp's own flows of TCP, which
    are one connection.
    """
    lists: dict[str, dict[str, _Verdicts]] = {}
    for flow in flows:
        for rule, value in rules:
            if flow.protocol != "icmp":
                lists.setdefault(flow.name, {}).setdefault(rule.kind, _Verdicts()).add(rule, value)
    single = [flow.name for flow in flows if flow.protocol == "tcp" and flow.program is None and not flow.is_page]
    thinned: list[int] = []
    if not lists and not (thins and single):
        return [], 0, ()
    parts, slot = [classify(family)], COUNTERS
    for flow in flows:
        if flow.name not in lists and not (thins and flow.name in single):
            continue
        parts.append(f"""
    r1 = *(u8 *)(r10 + {IP_PROTOCOL})
    if r1 != {IP_PROTOCOLS[flow.protocol]} goto not-{flow.name}
    r1 = *(u16 *)(r10 + {PORTS})
    r1 = be16 r1
    if r1 == {flow.port} goto of-{flow.name}
    r1 = *(u16 *)(r10 + {PORTS + 2})
    r1 = be16 r1
    if r1 == {flow.port} goto of-{flow.name}
    goto not-{flow.name}
of-{flow.name}:""")
        if thins and flow.name in single:
            parts.append(thinning(flow.name, 8 * slot, *thins, _AGAIN))
            thinned.append(8 * slot + THINNED)
            slot += THINNING_SLOTS
        for kind, verdicts in lists.get(flow.name, {}).items():
            place = f"{flow.name}-{kind}"
            parts.append(f"""
    r1 = {kind_bits(kind)} ll
    r2 = *(u64 *)(r10 + {KINDS_SEEN})
    r1 &= r2
    if r1 == 0 goto no-{place}
{_count(slot)}""")
            parts += [*verdicts.compare(place), f"no-{place}:"]
            slot += 1
        parts.append(f"    goto verdict\nnot-{flow.name}:")
    return parts, slot - COUNTERS, tuple(thinned)
