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

from ..core.types import Flow, Frozen, LinkImpairment, PacketRule
from .bpf import FRAME, Assembler
from .packet_classifier import (
    CONTEXT,
    ETHERNET_HEADER_BYTES,
    IP_NUMBERS,
    IP_PROTOCOL,
    KINDS_SEEN,
    LENGTH,
    PORTS,
    classify,
    kind_bits,
)

NO_LIMIT = 1 << 32
LENGTH_BITS = 16
"""An IP packet is at most 65,535 bytes."""
ONE = 1 << 32
"""Survival 1 in the program's fixed point."""
MARKS = 0x6E77
"""Upper half of the mark of packets that the program has seen already: 'nw'."""
SETTINGS, STATE = 0, 1
GENERATOR, PACKETS, BIT_ERRORS, TOO_LONG, DROPPED, DUPLICATED, DELAYED, COUNTERS = range(8)
_LEN, _MARK, _IFINDEX = 0, 8, 40
"""Offsets in struct __sk_buff."""
_CLONE_REDIRECT = 13
_PASS, _DROP, _NEXT_FILTER = 0, 2, -1
_VERDICT, _STATE = 8, 9
_DRAW = -8
_DROPS, _DUPLICATES, _DELAY_SHIFT, _NO_DELAY = 1, 2, 8, 255


class Counts(Frozen, frozen=True):
    """The counters of a program: packets."""

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

    code.op_reg("mov", CONTEXT, 1)
    if any(rule.action != "drop" for rule in rules):  # what it sent on itself comes by a second time
        code.load(4, 1, CONTEXT, _MARK)
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
    code.store(4, CONTEXT, _MARK, 1)


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


def _by_kind(code: Assembler, rules: Sequence[tuple[PacketRule, int]], flows: Sequence[Flow]) -> int:
    """Rules by flow and kind; returns how many counters they have."""
    lists: dict[str, dict[str, dict[int, int]]] = {}
    for flow in flows:
        for rule, value in rules:
            if flow.protocol in IP_NUMBERS:
                _add_verdict(lists.setdefault(flow.name, {}).setdefault(rule.kind, {}), rule, value)
    if not lists:
        return 0
    classify(code, "verdict")
    slot = COUNTERS
    for flow in flows:
        if flow.name not in lists:
            continue
        other = f"not {flow.name}"
        code.load(1, 1, FRAME, IP_PROTOCOL)
        code.jump_if("ne", 1, IP_NUMBERS[flow.protocol], other)
        for offset in (0, 2):
            code.load(2, 1, FRAME, PORTS + offset)
            code.swap16(1)
            code.jump_if("eq", 1, flow.port, f"of {flow.name}")
        code.jump(other)
        code.label(f"of {flow.name}")
        for kind, numbers in lists[flow.name].items():
            place = f"{flow.name} {kind}"
            code.constant(1, kind_bits(kind))
            code.load(8, 2, FRAME, KINDS_SEEN)
            code.op_reg("and", 1, 2)
            code.jump_if("eq", 1, 0, f"no {place}")
            _count(code, slot)
            _compare(code, place, numbers)
            code.label(f"no {place}")
            slot += 1
        code.jump("verdict")
        code.label(other)
    return slot - COUNTERS


def _decide(code: Assembler, errors: bool, *, duplicates: bool, delays: Sequence[int]) -> None:
    code.load(4, LENGTH, CONTEXT, _LEN)
    code.op("add", LENGTH, -ETHERNET_HEADER_BYTES)
    code.map_value(3, SETTINGS)
    code.load(8, 2, 3, 0)
    code.jump_if_reg("le", LENGTH, 2, "short enough")
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
        code.op_reg("mov", 1, CONTEXT)
        code.load(4, 2, CONTEXT, _IFINDEX)
        code.op("mov", 3, 0)
        code.call(_CLONE_REDIRECT)
        _set_mark(code, 0)
        code.label("single")
    if delays:
        code.op("rsh", _VERDICT, _DELAY_SHIFT)
        code.jump_if("eq", _VERDICT, 0, "pass")
        _count(code, DELAYED)
        code.op("add", _VERDICT, MARKS << 16)
        code.store(4, CONTEXT, _MARK, _VERDICT)
        code.leave(_NEXT_FILTER)
        code.label("pass")
    code.leave(_PASS)


def _survive(code: Assembler) -> None:
    """Lost where the draw is not below the product of the factors of the length's bits (settings in r3)."""
    code.load(8, 2, 3, 8)
    code.jump_if("eq", 2, 0, "whole")
    for bit in range(LENGTH_BITS):
        code.op_reg("mov", 4, LENGTH)
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
