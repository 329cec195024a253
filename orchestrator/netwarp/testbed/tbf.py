"""tbf, the rate and queue of a direction whose queue is in bytes: netem's limit counts packets only.

A token bucket of one packet of the MTU: a busy link sends packets bytes / rate apart, as netem does. But a packet that
meets a full bucket leaves at once, while netem holds it for its sending time. So with tbf a packet is gone when its
sending begins, and packets waiting for their turn count as queued. Written from linux/pkt_sched.h and
net/sched/sch_tbf.c.
"""

from __future__ import annotations

import struct
from typing import ClassVar

from ..core.types import Frozen, LinkImpairment
from .size_table import LINKLAYER_ETHERNET, attribute

_PARMS, _RATE64, _BURST = 1, 4, 6
RATESPEC = struct.Struct("=BBHhHI")
"""struct tc_ratespec: cell_log, linklayer, overhead, cell_align, mpu, rate."""
_LIMITS = struct.Struct("=III")
"""The end of struct tc_tbf_qopt: limit, buffer, mtu."""
ETHERNET_HEADER_BYTES = 14
TICK_NS = 64


class Tbf(Frozen, frozen=True):
    """A tbf qdisc as configured and read back. Lengths are those of the root's size table (Netem.size_overhead_bytes).

    The kernel keeps the bucket in ticks of 64 ns (`bucket_ticks`).
    """

    rate_byte_s: int
    limit_bytes: int
    bucket_ticks: int
    burst_bytes: int = 0
    """Configured, but not shown by the kernel: 0 if it was read back."""

    kind: ClassVar[str] = "tbf"

    def attributes(self) -> tuple[tuple[int, bytes], ...]:
        """Nothing beside TCA_OPTIONS."""
        return ()

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS."""
        wide = self.rate_byte_s >= 1 << 32
        rate = RATESPEC.pack(0, LINKLAYER_ETHERNET, 0, 0, 0, 0xFFFFFFFF if wide else self.rate_byte_s)
        parms = rate + bytes(RATESPEC.size) + _LIMITS.pack(self.limit_bytes, 0, 0)
        body = attribute(_PARMS, parms) + attribute(_BURST, struct.pack("=I", self.burst_bytes))
        return body + (attribute(_RATE64, struct.pack("=Q", self.rate_byte_s)) if wide else b"")

    @classmethod
    def decode(cls, attributes: dict[int, bytes]) -> Tbf:
        """From the attributes inside TCA_OPTIONS. Raises KeyError, struct.error for what is no tbf's."""
        parms = attributes[_PARMS]
        rate = RATESPEC.unpack_from(parms)[-1]
        if _RATE64 in attributes:
            (rate,) = struct.unpack_from("=Q", attributes[_RATE64])
        limit, bucket, _ = _LIMITS.unpack_from(parms, 2 * RATESPEC.size)
        return cls(rate_byte_s=rate, limit_bytes=limit, bucket_ticks=bucket)

    def as_shown(self) -> Tbf:
        """This one as a dump shows it."""
        return Tbf(self.rate_byte_s, self.limit_bytes, self.bucket_ticks)

    def remark(self) -> str:
        """Nothing that tc has no words for."""
        return ""

    def text(self) -> str:
        """The same as arguments of tc(8)."""
        return f"tbf rate {self.rate_byte_s * 8}bit burst {self.burst_bytes}b limit {self.limit_bytes}b"


def tbf_stage(shape: LinkImpairment, mtu_bytes: int) -> Tbf:
    """Child qdisc of a direction whose queue is in bytes, at the layer its rate counts."""
    assert shape.rate_bit_s is not None
    burst = mtu_bytes + (ETHERNET_HEADER_BYTES if shape.layer == "ethernet" else 0)
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
