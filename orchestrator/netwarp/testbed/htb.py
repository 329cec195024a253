"""htb and its queue: the rate of a direction whose rate changes while packets wait.

netem computes when a packet leaves as it comes, so what waits keeps the old rate; a change of tbf fills its bucket
(net/sched/sch_tbf.c: tbf_change). htb charges its class for a packet when it takes it from the queue: its time at the
rate of then, in ns (sch_htb.c: htb_charge_class), and a change of the class leaves that debt and the queue alone
(htb_change_class). Written from linux/pkt_sched.h. Lengths are those of the root's size table, as for tbf.
"""

from __future__ import annotations

import struct
from typing import ClassVar

from ..core.types import Frozen, LinkImpairment
from .size_table import LINKLAYER_ETHERNET, attribute
from .tbf import RATESPEC, TICK_NS

CLASS = 1
"""Minor number of the only class."""
_PARMS, _INIT, _DIRECT_QLEN, _RATE64, _CEIL64 = 1, 2, 5, 6, 7
_GLOBAL = struct.Struct("=IIIII")
"""struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts."""
_VERSION, _RATE_TO_QUANTUM, _QUANTUM_BYTES = 3, 10, 1500
_LIMITS = struct.Struct("=IIIII")
"""The end of struct tc_htb_opt: buffer, cbuffer, quantum, level, prio."""


class Htb(Frozen, frozen=True):
    """htb with one class, as configured and as a dump of its classes shows it.

    credit_ticks (of 64 ns): by how much a packet may begin before the ones sent earlier are paid for, so that a timer
    that is late takes nothing from the rate. An idle link saves up as much.
    """

    rate_byte_s: int = 0
    credit_ticks: int = 0

    kind: ClassVar[str] = "htb"

    def attributes(self) -> tuple[tuple[int, bytes], ...]:
        """Nothing beside TCA_OPTIONS."""
        return ()

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS of the qdisc. What meets it before its class is there is dropped."""
        start = attribute(_INIT, _GLOBAL.pack(_VERSION, _RATE_TO_QUANTUM, CLASS, 0, 0))
        return start + attribute(_DIRECT_QLEN, struct.pack("=I", 0))

    def encode_class(self) -> bytes:
        """The body of TCA_OPTIONS of its class."""
        wide = self.rate_byte_s >= 1 << 32
        rate = RATESPEC.pack(0, LINKLAYER_ETHERNET, 0, 0, 0, 0xFFFFFFFF if wide else self.rate_byte_s)
        limits = _LIMITS.pack(self.credit_ticks, self.credit_ticks, _QUANTUM_BYTES, 0, 0)
        more = struct.pack("=Q", self.rate_byte_s)
        body = attribute(_PARMS, rate + rate + limits)
        return body + (attribute(_RATE64, more) + attribute(_CEIL64, more) if wide else b"")

    @classmethod
    def decode_class(cls, attributes: dict[int, bytes]) -> Htb:
        """From the attributes inside a class's TCA_OPTIONS; rate 0 if its two rates or credits are not the same.

        Raises KeyError, struct.error for what is no htb's.
        """
        parms = attributes[_PARMS]
        rates = [RATESPEC.unpack_from(parms, offset)[-1] for offset in (0, RATESPEC.size)]
        for place, number in enumerate((_RATE64, _CEIL64)):
            if number in attributes:
                (rates[place],) = struct.unpack_from("=Q", attributes[number])
        credit, ceiling_credit, *_ = _LIMITS.unpack_from(parms, 2 * RATESPEC.size)
        return cls(rates[0] if rates[0] == rates[1] and credit == ceiling_credit else 0, credit)

    def as_shown(self) -> Htb:
        """This one as a dump of qdiscs shows it: without its class."""
        return Htb()

    def remark(self) -> str:
        """Nothing that tc has no words for."""
        return ""

    def text(self) -> str:
        """The qdisc as arguments of tc(8)."""
        return f"htb default {CLASS} direct_qlen 0"

    def class_text(self) -> str:
        """The class as arguments of tc(8), which takes no burst of 0 bytes."""
        burst = max(1, self.credit_ticks * TICK_NS * self.rate_byte_s // 10**9)
        rate = self.rate_byte_s * 8
        return f"htb rate {rate}bit ceil {rate}bit burst {burst}b cburst {burst}b quantum {_QUANTUM_BYTES}"


class Fifo(Frozen, frozen=True):
    """The drop-tail queue below htb; `limit` in packets, or in bytes."""

    limit: int
    in_bytes: bool

    @property
    def kind(self) -> str:
        """Its name in the kernel."""
        return "bfifo" if self.in_bytes else "pfifo"

    def attributes(self) -> tuple[tuple[int, bytes], ...]:
        """Nothing beside TCA_OPTIONS."""
        return ()

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS: struct tc_fifo_qopt."""
        return struct.pack("=I", self.limit)

    @classmethod
    def decode(cls, kind: str, body: bytes) -> Fifo:
        """From the body of TCA_OPTIONS. Raises struct.error if it is too short."""
        return cls(struct.unpack_from("=I", body)[0], kind == "bfifo")

    def as_shown(self) -> Fifo:
        """This one as a dump shows it."""
        return self

    def remark(self) -> str:
        """Nothing that tc has no words for."""
        return ""

    def text(self) -> str:
        """The same as arguments of tc(8)."""
        return f"{self.kind} limit {self.limit}"


def htb_stage(shape: LinkImpairment, credit_ns: int) -> Htb:
    """Child qdisc of a direction whose rate changes, at the layer its rate counts."""
    assert shape.rate_bit_s is not None
    return Htb(shape.rate_bit_s // 8, credit_ns // TICK_NS)


def fifo_stage(shape: LinkImpairment) -> Fifo:
    """The drop-tail queue below it."""
    limit = shape.queue_packets if shape.queue_bytes is None else shape.queue_bytes
    assert limit is not None
    return Fifo(limit, shape.queue_bytes is not None)
