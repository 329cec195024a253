"""Qdiscs below the root of a direction whose rate is not netem's: tbf where the queue is in bytes, htb with a queue
of its own where the rate changes; the size table by which they count IP packets. Written from linux/pkt_sched.h.

tbf: netem's limit counts packets only. A token bucket of one packet of the MTU: a busy link sends packets bytes / rate
apart, as netem does. But a packet that meets a full bucket leaves at once, while netem holds it for its sending time.
So with tbf a packet is gone when its sending begins, and packets waiting for their turn count as queued.

htb: netem computes when a packet leaves as it comes, so what waits keeps the old rate; a change of tbf fills its bucket
(net/sched/sch_tbf.c: tbf_change). htb charges its class for a packet when it takes it from the queue: its time at the
rate of then, in ns (sch_htb.c: htb_charge_class), and a change of the class leaves that debt and the queue alone
(htb_change_class).
"""

from __future__ import annotations

import struct
from typing import ClassVar

from ..core.frozen import Frozen
from ..core.link_types import LinkImpairment

TCA_STAB = 8
_BASE = 1
_SIZESPEC = struct.Struct("=BBhiIIII")
"""struct tc_sizespec: cell_log, size_log, cell_align, overhead, linklayer, mpu, mtu, tsize. The kernel accepts a size
table at the root only; the child sees packets with the length that the root gave them.
"""
LINKLAYER_ETHERNET = 1


def attribute(number: int, value: bytes) -> bytes:
    """One netlink attribute, padded."""
    return struct.pack("=HH", len(value) + 4, number) + value + bytes(-len(value) % 4)


def attributes_of(data: bytes) -> dict[int, bytes]:
    """Netlink attributes by number, payload only."""
    attributes: dict[int, bytes] = {}
    offset = 0
    while offset + 4 <= len(data):
        length, number = struct.unpack_from("=HH", data, offset)
        if length < 4 or offset + length > len(data):
            break
        attributes[number & 0x3FFF] = data[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return attributes


def size_table(overhead_bytes: int) -> tuple[tuple[int, bytes], ...]:
    """The attribute to send beside TCA_OPTIONS; nothing if no bytes are added."""
    if not overhead_bytes:
        return ()
    return ((TCA_STAB, attribute(_BASE, _SIZESPEC.pack(0, 0, 0, overhead_bytes, LINKLAYER_ETHERNET, 0, 0, 0))),)


def overhead_of(attributes: dict[int, bytes]) -> int:
    """The number of added bytes in a dumped TCA_STAB."""
    return int(_SIZESPEC.unpack_from(attributes[_BASE])[3]) if _BASE in attributes else 0


def size_text(overhead_bytes: int) -> str:
    """The same as arguments of tc(8), before the qdisc's kind."""
    return f"stab overhead {overhead_bytes} linklayer ethernet " if overhead_bytes else ""


class QdiscStage(Frozen, frozen=True):
    """One qdisc of a direction, as configured and as a dump shows it."""

    kind: ClassVar[str]

    def attributes(self) -> tuple[tuple[int, bytes], ...]:
        """Attributes beside TCA_OPTIONS."""
        return ()

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS."""
        raise NotImplementedError

    def as_shown(self) -> QdiscStage:
        """This one as a dump shows it."""
        return self

    def remark(self) -> str:
        """The part that tc(8) cannot express, as a comment; "" if there is nothing."""
        return ""

    def text(self) -> str:
        """The same as arguments of tc(8)."""
        raise NotImplementedError


_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
RATESPEC = struct.Struct("=BBHhHI")
"""struct tc_ratespec: cell_log, linklayer, overhead, cell_align, mpu, rate."""
_TBF_LIMITS = struct.Struct("=III")
"""The end of struct tc_tbf_qopt: limit, buffer, mtu."""
TICK_NS = 64


class Tbf(QdiscStage, frozen=True):
    """A tbf qdisc as configured and read back. Lengths are those of the root's size table (Netem.size_overhead_bytes).

    The kernel keeps the bucket in ticks of 64 ns (`bucket_ticks`).
    """

    rate_byte_s: int
    limit_bytes: int
    bucket_ticks: int
    burst_bytes: int = 0
    """Configured, but not shown by the kernel: 0 if it was read back."""

    kind: ClassVar[str] = "tbf"

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS."""
        wide = self.rate_byte_s >= 1 << 32
        rate = RATESPEC.pack(0, LINKLAYER_ETHERNET, 0, 0, 0, 0xFFFFFFFF if wide else self.rate_byte_s)
        parms = rate + bytes(RATESPEC.size) + _TBF_LIMITS.pack(self.limit_bytes, 0, 0)
        body = attribute(_TBF_PARMS, parms) + attribute(_TBF_BURST, struct.pack("=I", self.burst_bytes))
        return body + (attribute(_TBF_RATE64, struct.pack("=Q", self.rate_byte_s)) if wide else b"")

    @classmethod
    def decode(cls, attributes: dict[int, bytes]) -> Tbf:
        """From the attributes inside TCA_OPTIONS. Raises KeyError, struct.error for what is no tbf's."""
        parms = attributes[_TBF_PARMS]
        rate = RATESPEC.unpack_from(parms)[-1]
        if _TBF_RATE64 in attributes:
            (rate,) = struct.unpack_from("=Q", attributes[_TBF_RATE64])
        limit, bucket, _ = _TBF_LIMITS.unpack_from(parms, 2 * RATESPEC.size)
        return cls(rate_byte_s=rate, limit_bytes=limit, bucket_ticks=bucket)

    def as_shown(self) -> Tbf:
        """The kernel does not show burst_bytes."""
        return Tbf(self.rate_byte_s, self.limit_bytes, self.bucket_ticks)

    def text(self) -> str:
        """The same as arguments of tc(8)."""
        return f"tbf rate {self.rate_byte_s * 8}bit burst {self.burst_bytes}b limit {self.limit_bytes}b"


def tbf_stage(shape: LinkImpairment, mtu_bytes: int) -> Tbf:
    """Child qdisc of a direction whose queue is in bytes, or whose rate has a burst, at the layer its rate counts."""
    assert shape.rate_bit_s is not None
    burst = mtu_bytes + shape.header_bytes
    burst = shape.burst_bytes if isinstance(shape.burst_bytes, int) else burst
    rate = shape.rate_bit_s // 8
    return Tbf(
        rate_byte_s=rate,
        # of the queue it makes for itself; a qdisc below it takes the place of that
        limit_bytes=burst if shape.queue_bytes is None else shape.queue_bytes,
        bucket_ticks=sending_ns(burst, rate) // TICK_NS,
        burst_bytes=burst,
    )


def sending_ns(size_bytes: int, rate_byte_s: int) -> int:
    """The kernel's own arithmetic (net/sched/sch_generic.c: psched_ratecfg_precompute, psched_l2t_ns)."""
    factor, shift = 10**9, 0
    while not (factor // rate_byte_s & 1 << 31 or factor & 1 << 63):
        factor, shift = factor << 1, shift + 1
    return size_bytes * (factor // rate_byte_s) >> shift


CLASS = 1
"""Minor number of the only class."""
_HTB_PARMS, _HTB_INIT, _HTB_DIRECT_QLEN, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 5, 6, 7
_HTB_GLOBAL = struct.Struct("=IIIII")
"""struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts."""
_VERSION, _RATE_TO_QUANTUM, _QUANTUM_BYTES = 3, 10, 1500
_HTB_LIMITS = struct.Struct("=IIIII")
"""The end of struct tc_htb_opt: buffer, cbuffer, quantum, level, prio."""


class Htb(QdiscStage, frozen=True):
    """htb with one class, as configured and as a dump of its classes shows it.

    credit_ticks (of 64 ns): by how much a packet may begin before the ones sent earlier are paid for, so that a timer
    that is late takes nothing from the rate. An idle link saves up as much.
    """

    rate_byte_s: int = 0
    credit_ticks: int = 0

    kind: ClassVar[str] = "htb"

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS of the qdisc. What meets it before its class is there is dropped."""
        start = attribute(_HTB_INIT, _HTB_GLOBAL.pack(_VERSION, _RATE_TO_QUANTUM, CLASS, 0, 0))
        return start + attribute(_HTB_DIRECT_QLEN, struct.pack("=I", 0))

    def encode_class(self) -> bytes:
        """The body of TCA_OPTIONS of its class."""
        wide = self.rate_byte_s >= 1 << 32
        rate = RATESPEC.pack(0, LINKLAYER_ETHERNET, 0, 0, 0, 0xFFFFFFFF if wide else self.rate_byte_s)
        limits = _HTB_LIMITS.pack(self.credit_ticks, self.credit_ticks, _QUANTUM_BYTES, 0, 0)
        more = struct.pack("=Q", self.rate_byte_s)
        body = attribute(_HTB_PARMS, rate + rate + limits)
        return body + (attribute(_HTB_RATE64, more) + attribute(_HTB_CEIL64, more) if wide else b"")

    @classmethod
    def decode_class(cls, attributes: dict[int, bytes]) -> Htb:
        """From the attributes inside a class's TCA_OPTIONS; rate 0 if its two rates or credits are not the same.

        Raises KeyError, struct.error for what is no htb's.
        """
        parms = attributes[_HTB_PARMS]
        rates = [RATESPEC.unpack_from(parms, offset)[-1] for offset in (0, RATESPEC.size)]
        for place, number in enumerate((_HTB_RATE64, _HTB_CEIL64)):
            if number in attributes:
                (rates[place],) = struct.unpack_from("=Q", attributes[number])
        credit, ceiling_credit, *_ = _HTB_LIMITS.unpack_from(parms, 2 * RATESPEC.size)
        return cls(rates[0] if rates[0] == rates[1] and credit == ceiling_credit else 0, credit)

    def as_shown(self) -> Htb:
        """A dump of qdiscs does not show its class."""
        return Htb()

    def text(self) -> str:
        """The qdisc as arguments of tc(8)."""
        return f"htb default {CLASS} direct_qlen 0"

    def class_text(self) -> str:
        """The class as arguments of tc(8), which takes no burst of 0 bytes."""
        burst = max(1, self.credit_ticks * TICK_NS * self.rate_byte_s // 10**9)
        rate = self.rate_byte_s * 8
        return f"htb rate {rate}bit ceil {rate}bit burst {burst}b cburst {burst}b quantum {_QUANTUM_BYTES}"


class Fifo(QdiscStage, frozen=True):
    """The drop-tail queue below htb; `limit` in packets, or in bytes."""

    limit: int
    in_bytes: bool

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Its name in the kernel."""
        return "bfifo" if self.in_bytes else "pfifo"

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS: struct tc_fifo_qopt."""
        return struct.pack("=I", self.limit)

    @classmethod
    def decode(cls, kind: str, body: bytes) -> Fifo:
        """From the body of TCA_OPTIONS. Raises struct.error if it is too short."""
        return cls(struct.unpack_from("=I", body)[0], kind == "bfifo")

    def text(self) -> str:
        """The same as arguments of tc(8)."""
        return f"{self.kind} limit {self.limit}"


_FQ_LIMIT, _FQ_FLOW_LIMIT, _FQ_PACES, _FQ_FLOWS, _FQ_SLACK, _FQ_HORIZON = 1, 2, 5, 10, 13, 14
"""TCA_FQ_*: packets in all and of a flow, pacing by sockets, the mask of flows without a socket, timer slack (ns),
horizon (us)."""


class Fq(QdiscStage, frozen=True):
    """fq as the line of opportunities uses it: one flow, in which each packet waits for the time that it has."""

    limit: int
    slack_ns: int = 0
    horizon_us: int = 0xFFFFFFFF

    kind: ClassVar[str] = "fq"

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS."""
        numbers = (_FQ_LIMIT, _FQ_FLOW_LIMIT, _FQ_PACES, _FQ_FLOWS, _FQ_SLACK, _FQ_HORIZON)
        values = (self.limit, self.limit, 0, 0, self.slack_ns, self.horizon_us)
        return b"".join(
            attribute(number, struct.pack("=I", value)) for number, value in zip(numbers, values, strict=True)
        )

    @classmethod
    def decode(cls, attributes: dict[int, bytes]) -> Fq:
        """From the attributes inside TCA_OPTIONS; limit 0 where its two limits differ or it has several flows. Raises
        KeyError, struct.error for what is no fq's.
        """
        read = {number: struct.unpack_from("=I", attributes[number])[0] for number in (
            _FQ_LIMIT, _FQ_FLOW_LIMIT, _FQ_PACES, _FQ_FLOWS, _FQ_SLACK, _FQ_HORIZON)}  # fmt: skip
        one = read[_FQ_LIMIT] == read[_FQ_FLOW_LIMIT] and not read[_FQ_PACES] and not read[_FQ_FLOWS]
        return cls(read[_FQ_LIMIT] if one else 0, read[_FQ_SLACK], read[_FQ_HORIZON])

    def text(self) -> str:
        """The same as arguments of tc(8)."""
        return (
            f"fq limit {self.limit} flow_limit {self.limit} nopacing orphan_mask 0 timer_slack {self.slack_ns}ns "
            f"horizon {self.horizon_us}us"
        )


def htb_stage(shape: LinkImpairment, credit_ns: int) -> Htb:
    """Child qdisc of a direction whose rate changes, at the layer its rate counts."""
    assert shape.rate_bit_s is not None
    return Htb(shape.rate_bit_s // 8, credit_ns // TICK_NS)


def fifo_stage(shape: LinkImpairment) -> Fifo:
    """The drop-tail queue below it."""
    limit = shape.queue_packets if shape.queue_bytes is None else shape.queue_bytes
    assert limit is not None
    return Fifo(limit, shape.queue_bytes is not None)
