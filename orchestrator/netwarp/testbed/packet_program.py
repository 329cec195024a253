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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.packet_kinds import KINDS, PACKET
from ..core.types import Flow, Frozen, LinkImpairment, PacketRule
from .bpf import FRAME, Assembler

ETHERNET_HEADER_BYTES = 14
NO_LIMIT = 1 << 32
LENGTH_BITS = 16
"""An IP packet is at most 65,535 bytes."""
ONE = 1 << 32
"""Survival 1 in the program's fixed point."""
MARKS = 0x6E77
"""Upper half of the mark of packets that the program has seen already: 'nw'."""
SETTINGS, STATE = 0, 1
GENERATOR, PACKETS, BIT_ERRORS, TOO_LONG, DROPPED, DUPLICATED, DELAYED, COUNTERS = range(8)
_LEN, _MARK, _PROTOCOL, _IFINDEX = 0, 8, 16, 40
"""Offsets in struct __sk_buff."""
_LOAD_BYTES, _CLONE_REDIRECT = 26, 13
_PASS, _DROP, _NEXT_FILTER = 0, 2, -1
_CTX, _LENGTH, _VERDICT, _STATE = 6, 7, 8, 9
_DRAW, _IP, _L4, _L4_LENGTH, _PORTS, _KINDS, _CHUNK, _ROUND = -8, -32, -40, -48, -56, -64, -72, -80
_TCP, _SCTP = 6, 132
_IP_NUMBERS = {"tcp": _TCP, "mptcp": _TCP, "sctp": _SCTP, "udp": 17}
_DROPS, _DUPLICATES, _DELAY_SHIFT, _NO_DELAY = 1, 2, 8, 255
_MOST_CHUNKS = 94
"""Of 16 bytes in 1500."""


class Counts(Frozen, frozen=True):
    """What a program has counted: packets."""

    packets: int
    bit_errors: int
    too_long: int
    dropped: int
    duplicated: int
    delayed: int


@dataclass(frozen=True, slots=True)
class PacketProgram:
    """A direction's program: its bytes, the delays (ns) its delay lines have, and how many counters its state has."""

    code: bytes
    delays_ns: tuple[int, ...]
    counters: int

    def state(self, seed: int) -> bytes:
        """The state before the first packet; seed is never 0."""
        return struct.pack(f"={COUNTERS + self.counters}Q", seed, *[0] * (COUNTERS - 1 + self.counters))

    def mark(self, number: int) -> int:
        """The mark of packets that go through delay line `number`."""
        return (MARKS << 16) + number + 1


def counts(state: bytes) -> Counts:
    """Read a state."""
    return Counts(*struct.unpack_from("=6Q", state, 8 * PACKETS))


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
    header = ETHERNET_HEADER_BYTES if shape.layer == "ethernet" else 0
    factors = [max(1, round(ONE * math.exp(byte * length))) for length in (header, *(2**k for k in range(LENGTH_BITS)))]
    return [factors[0], *(min(ONE - 1, factor) for factor in factors[1:])]  # ONE times ONE is no u64


def packet_program(rules: Sequence[PacketRule], flows: Sequence[Flow], *, errors: bool) -> PacketProgram:
    """Write the program."""
    code = Assembler()
    delays = tuple(sorted({rule.delay_ns for rule in rules if rule.action == "delay"}))
    verdicts = {"drop": _DROPS, "duplicate": _DUPLICATES}

    def verdict(rule: PacketRule) -> int:
        return verdicts.get(rule.action) or (delays.index(rule.delay_ns) + 1) << _DELAY_SHIFT

    code.op_reg("mov", _CTX, 1)
    if any(rule.action != "drop" for rule in rules):  # what it sent on itself comes by a second time
        code.load(4, 1, _CTX, _MARK)
        code.op("rsh", 1, 16)
        code.jump_if("ne", 1, MARKS, "new")
        _set_mark(code, 0)
        code.leave(_PASS)
        code.label("new")
    code.map_value(_STATE, STATE)
    _count(code, PACKETS)
    code.op("mov", _VERDICT, 0)
    if errors:  # one draw a packet, whatever becomes of it: variants meet the same ones
        _draw(code)
    by_number: dict[int, int] = {}
    for rule in rules:
        if not rule.kind:
            _add_verdict(by_number, rule, verdict(rule))
    if by_number:
        code.load(8, 1, _STATE, 8 * PACKETS)
        _compare(code, "link", by_number)
    slots = _by_kind(code, [(rule, verdict(rule)) for rule in rules if rule.kind], flows)
    code.label("verdict")
    _decide(code, errors, duplicates=any(rule.action == "duplicate" for rule in rules), delays=delays)
    return PacketProgram(code.encode(), delays, slots)


def _count(code: Assembler, slot: int) -> None:
    code.load(8, 1, _STATE, 8 * slot)
    code.op("add", 1, 1)
    code.store(8, _STATE, 8 * slot, 1)


def _set_mark(code: Assembler, mark: int) -> None:
    code.op("mov", 1, mark)
    code.store(4, _CTX, _MARK, 1)


def _draw(code: Assembler) -> None:
    """xorshift64* (Vigna, 2016); its upper 32 bits."""
    code.load(8, 1, _STATE, 8 * GENERATOR)
    for shift, by in (("rsh", 12), ("lsh", 25), ("rsh", 27)):
        code.op_reg("mov", 2, 1)
        code.op(shift, 2, by)
        code.op_reg("xor", 1, 2)
    code.store(8, _STATE, 8 * GENERATOR, 1)
    code.constant(2, 2685821657736338717)
    code.op_reg("mul", 1, 2)
    code.op("rsh", 1, 32)
    code.store(8, FRAME, _DRAW, 1)


def _add_verdict(verdicts: dict[int, int], rule: PacketRule, value: int) -> None:
    for number in rule.numbers:
        verdicts[number] = verdicts.get(number, 0) | value


def _compare(code: Assembler, place: str, verdicts: Mapping[int, int]) -> None:
    """Add to the verdict where the number in r1 is listed; of two delays the longer counts."""
    for number, value in sorted(verdicts.items()):
        other = f"{place} not {number}"
        code.jump_if("ne", 1, number, other)
        code.op("or", _VERDICT, value & _NO_DELAY)
        if value > _NO_DELAY:
            code.op_reg("mov", 2, _VERDICT)
            code.op("rsh", 2, _DELAY_SHIFT)
            code.jump_if("ge", 2, value >> _DELAY_SHIFT, other)
            code.op("and", _VERDICT, _NO_DELAY)
            code.op("or", _VERDICT, value & ~_NO_DELAY)
        code.label(other)


def _load_bytes(code: Assembler, offset: int | None, to: int, size: int, otherwise: str) -> None:
    """Bytes of the packet at an offset (None: already in r2) into the frame."""
    code.op_reg("mov", 1, _CTX)
    if offset is not None:
        code.op("mov", 2, offset)
    code.op_reg("mov", 3, FRAME)
    code.op("add", 3, to)
    code.op("mov", 4, size)
    code.call(_LOAD_BYTES)
    code.jump_if("ne", 0, 0, otherwise)


def _by_kind(code: Assembler, rules: Sequence[tuple[PacketRule, int]], flows: Sequence[Flow]) -> int:
    """Rules by flow and kind; returns how many counters they have."""
    lists: dict[str, dict[str, dict[int, int]]] = {}
    for flow in flows:
        for rule, value in rules:
            if flow.protocol in _IP_NUMBERS:
                _add_verdict(lists.setdefault(flow.name, {}).setdefault(rule.kind, {}), rule, value)
    if not lists:
        return 0
    _classify(code)
    slot = COUNTERS
    for flow in flows:
        if flow.name not in lists:
            continue
        other = f"not {flow.name}"
        code.load(1, 1, FRAME, _IP + 9)
        code.jump_if("ne", 1, _IP_NUMBERS[flow.protocol], other)
        for offset in (0, 2):
            code.load(2, 1, FRAME, _PORTS + offset)
            code.swap16(1)
            code.jump_if("eq", 1, flow.port, f"of {flow.name}")
        code.jump(other)
        code.label(f"of {flow.name}")
        for kind, numbers in lists[flow.name].items():
            place = f"{flow.name} {kind}"
            code.constant(1, _bits(kind))
            code.load(8, 2, FRAME, _KINDS)
            code.op_reg("and", 1, 2)
            code.jump_if("eq", 1, 0, f"no {place}")
            _count(code, slot)
            _compare(code, place, numbers)
            code.label(f"no {place}")
            slot += 1
        code.jump("verdict")
        code.label(other)
    return slot - COUNTERS


def _bits(kind: str) -> int:
    return sum(1 << bit for bit in KINDS[kind])


def _classify(code: Assembler) -> None:
    """IP header, ports and the kinds the packet is of, a bit each, into the frame; no flow's packet: to the verdict."""
    code.load(4, 1, _CTX, _PROTOCOL)
    code.jump_if("ne", 1, 0x0008, "verdict")  # ETH_P_IP in network byte order
    _load_bytes(code, ETHERNET_HEADER_BYTES, _IP, 20, "verdict")
    code.load(2, 1, FRAME, _IP + 6)
    code.swap16(1)
    code.op("and", 1, 0x1FFF)
    code.jump_if("ne", 1, 0, "verdict")  # a later fragment has no ports
    code.load(1, 1, FRAME, _IP)
    code.op("and", 1, 0x0F)
    code.op("lsh", 1, 2)
    code.load(2, 2, FRAME, _IP + 2)
    code.swap16(2)
    code.op_reg("mov", 3, 2)
    code.op_reg("sub", 3, 1)
    code.store(8, FRAME, _L4_LENGTH, 3)
    code.op("add", 1, ETHERNET_HEADER_BYTES)
    code.store(8, FRAME, _L4, 1)
    code.op_reg("mov", 2, 1)
    _load_bytes(code, None, _PORTS, 4, "verdict")
    code.constant(1, _bits(PACKET))
    code.store(8, FRAME, _KINDS, 1)
    code.load(1, 1, FRAME, _IP + 9)
    code.jump_if("eq", 1, _TCP, "tcp")
    code.jump_if("eq", 1, _SCTP, "sctp")
    _add_kind(code, "data")
    code.jump("kinds")
    code.label("tcp")
    _classify_tcp(code)
    code.label("sctp")
    _classify_sctp(code)
    code.label("kinds")


def _add_kind(code: Assembler, kind: str) -> None:
    code.load(8, 4, FRAME, _KINDS)
    code.constant(5, 1 << KINDS[kind][0])
    code.op_reg("or", 4, 5)
    code.store(8, FRAME, _KINDS, 4)


def _classify_tcp(code: Assembler) -> None:
    code.load(8, 2, FRAME, _L4)
    code.op("add", 2, 12)
    _load_bytes(code, None, _CHUNK, 2, "kinds")
    code.load(1, 1, FRAME, _CHUNK + 1)
    code.jump_if("set", 1, 0x02, "tcp syn")
    for flag, kind in ((0x04, "rst"), (0x01, "fin")):
        code.op_reg("mov", 2, 1)
        code.op("and", 2, flag)
        code.jump_if("eq", 2, 0, f"tcp no {kind}")
        _add_kind(code, kind)
        code.label(f"tcp no {kind}")
    code.load(1, 2, FRAME, _CHUNK)
    code.op("rsh", 2, 4)
    code.op("lsh", 2, 2)
    code.load(8, 3, FRAME, _L4_LENGTH)
    code.jump_if_reg("le", 3, 2, "tcp empty")
    _add_kind(code, "data")
    code.jump("kinds")
    code.label("tcp empty")
    code.jump_if("set", 1, 0x05, "kinds")
    _add_kind(code, "ack")
    code.jump("kinds")
    code.label("tcp syn")
    code.jump_if("set", 1, 0x10, "tcp syn ack")
    _add_kind(code, "syn")
    code.jump("kinds")
    code.label("tcp syn ack")
    _add_kind(code, "syn_ack")
    code.jump("kinds")


def _classify_sctp(code: Assembler) -> None:
    """Every chunk of the packet: bit ((type >> 6) << 4 | type & 15)."""
    code.load(8, _LENGTH, FRAME, _L4)
    code.op("add", _LENGTH, 12)
    code.store_constant(8, FRAME, _ROUND, 0)
    code.label("chunk")
    code.op_reg("mov", 2, _LENGTH)
    _load_bytes(code, None, _CHUNK, 4, "kinds")
    code.load(1, 1, FRAME, _CHUNK)
    code.op_reg("mov", 2, 1)
    code.op("rsh", 2, 6)
    code.op("lsh", 2, 4)
    code.op("and", 1, 15)
    code.op_reg("or", 1, 2)
    code.op("mov", 2, 1)
    code.op_reg("lsh", 2, 1)
    code.load(8, 3, FRAME, _KINDS)
    code.op_reg("or", 3, 2)
    code.store(8, FRAME, _KINDS, 3)
    code.load(2, 1, FRAME, _CHUNK + 2)
    code.swap16(1)
    code.jump_if("lt", 1, 4, "kinds")
    code.op("add", 1, 3)
    code.op("and", 1, 0xFFFC)
    code.op_reg("add", _LENGTH, 1)
    code.load(8, 1, FRAME, _L4)
    code.load(8, 2, FRAME, _L4_LENGTH)
    code.op_reg("add", 1, 2)
    code.jump_if_reg("ge", _LENGTH, 1, "kinds")
    code.load(8, 1, FRAME, _ROUND)
    code.op("add", 1, 1)
    code.store(8, FRAME, _ROUND, 1)
    code.jump_if("lt", 1, _MOST_CHUNKS, "chunk")


def _decide(code: Assembler, errors: bool, *, duplicates: bool, delays: Sequence[int]) -> None:
    code.load(4, _LENGTH, _CTX, _LEN)
    code.op("add", _LENGTH, -ETHERNET_HEADER_BYTES)
    code.map_value(3, SETTINGS)
    code.load(8, 2, 3, 0)
    code.jump_if_reg("le", _LENGTH, 2, "short enough")
    _count(code, TOO_LONG)
    code.leave(_DROP)
    code.label("short enough")
    code.op_reg("mov", 1, _VERDICT)
    code.op("and", 1, _DROPS)
    code.jump_if("eq", 1, 0, "not dropped")
    _count(code, DROPPED)
    code.leave(_DROP)
    code.label("not dropped")
    if errors:
        _survive(code)
    if duplicates:
        code.op_reg("mov", 1, _VERDICT)
        code.op("and", 1, _DUPLICATES)
        code.jump_if("eq", 1, 0, "single")
        _count(code, DUPLICATED)
        _set_mark(code, MARKS << 16)
        code.op_reg("mov", 1, _CTX)
        code.load(4, 2, _CTX, _IFINDEX)
        code.op("mov", 3, 0)
        code.call(_CLONE_REDIRECT)
        _set_mark(code, 0)
        code.label("single")
    if delays:
        code.op("rsh", _VERDICT, _DELAY_SHIFT)
        code.jump_if("eq", _VERDICT, 0, "pass")
        _count(code, DELAYED)
        code.op("add", _VERDICT, MARKS << 16)
        code.store(4, _CTX, _MARK, _VERDICT)
        code.leave(_NEXT_FILTER)
        code.label("pass")
    code.leave(_PASS)


def _survive(code: Assembler) -> None:
    """Lost where the draw is not below the product of the factors of the length's bits (settings in r3)."""
    code.load(8, 2, 3, 8)
    code.jump_if("eq", 2, 0, "whole")
    for bit in range(LENGTH_BITS):
        code.op_reg("mov", 4, _LENGTH)
        code.op("and", 4, 1 << bit)
        code.jump_if("eq", 4, 0, f"bit {bit}")
        code.load(8, 4, 3, 16 + 8 * bit)
        code.op_reg("mul", 2, 4)
        code.op("rsh", 2, 32)
        code.label(f"bit {bit}")
    code.load(8, 1, FRAME, _DRAW)
    code.jump_if_reg("lt", 1, 2, "whole")
    _count(code, BIT_ERRORS)
    code.leave(_DROP)
    code.label("whole")
