"""netem, complete, both ways, written from linux/pkt_sched.h (6.12).

pyroute2's own netem lacks 64-bit times and rates, the loss models and the seed. Here every attribute is always sent
and read back, in nanoseconds and byte/s, so that what was asked can be compared with what is in force.

Distributions of a delay are tables of equally likely values, in jitters, scaled by 8192: netem adds
jitter x value / 8192 to the delay, the value drawn from the table for each packet. The names are those of tc(8) and the
tables those of iproute2, made by its formulas (netem/pareto.c, netem/paretonormal.c; normal from the inverse of the
distribution function). `overtake(k)` is our own: k of 4096 packets are not delayed at all.
"""

from __future__ import annotations

import functools
import re
import statistics
import struct
from typing import ClassVar

import msgspec

from ..core.link_types import GilbertElliott, LinkImpairment, Slots
from ..core.wire import ETHERNET_HEADER_BYTES
from .qdiscs import TICK_NS, QdiscStage, attribute, attributes_of, size_table, size_text

PROBABILITY_ONE = 0xFFFFFFFF
UNLIMITED_PACKETS = 1_000_000
"""Limit of a delay line: far more packets than any of our links holds, so that it never drops."""
ORDERING_BYTE_S = 1 << 50
"""A rate at which no packet takes a nanosecond. With a rate, any, netem lets no packet leave before the one before it
(sch_netem.c: netem_enqueue); without one its delay line sorts by the time each packet is due, so jitter reorders."""


_QOPT = struct.Struct("=IIIIII")
"""struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter."""
_CORR, _DELAY_DIST, _REORDER, _CORRUPT, _LOSS, _RATE, _RATE64, _LATENCY64, _JITTER64, _SLOT, PRNG_SEED = (
    1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 14,
)  # fmt: skip
_SLOT_SPEC = struct.Struct("=qqiiqq")
"""struct tc_netem_slot: least and greatest delay (ns), most packets, most bytes (0: any), a distribution (unused)."""
_LOSS_GE = 2
_RATE_SPEC = struct.Struct("=IiIi")
"""struct tc_netem_rate: byte/s (all ones where TCA_NETEM_RATE64 has it), packet overhead, cell size and overhead."""


class Netem(QdiscStage, frozen=True):
    """One netem qdisc as the kernel holds it. Both the configuration and what is read back have this form, so that they
    can be compared.

    Probabilities are the kernel's 32-bit numbers. `rate_byte_s` 0: no rate. `seed`: of the qdisc's own generator.
    """

    limit_packets: int
    latency_ns: int = 0
    jitter_ns: int = 0
    delay_correlation: int = 0
    distribution: str = "uniform"
    loss: int = 0
    loss_correlation: int = 0
    gilbert_elliott: tuple[int, int, int, int] | None = None
    duplicate: int = 0
    corrupt: int = 0
    reorder: int = 0
    gap: int = 0
    rate_byte_s: int = 0
    packet_overhead_bytes: int = 0
    seed: int = 0
    size_overhead_bytes: int = 0
    """Added to every packet's length for this qdisc and its child (a size table); the dump's TCA_STAB tells it."""
    slots: tuple[int, int, int, int] | None = None
    """Least and greatest delay of a slot (ns), its most packets and bytes (0: any)."""

    kind: ClassVar[str] = "netem"

    def attributes(self) -> tuple[tuple[int, bytes], ...]:
        """The size table beside TCA_OPTIONS."""
        return size_table(self.size_overhead_bytes)

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS."""
        wide = self.rate_byte_s >= 1 << 32
        ticks = (min(ns // TICK_NS, 0xFFFFFFFF) for ns in (self.latency_ns, self.jitter_ns))
        latency, jitter = ticks
        rate = 0xFFFFFFFF if wide else self.rate_byte_s
        body = _QOPT.pack(latency, self.limit_packets, self.loss, self.gap, self.duplicate, jitter)
        body += attribute(_LATENCY64, struct.pack("=q", self.latency_ns))
        body += attribute(_JITTER64, struct.pack("=q", self.jitter_ns))
        body += attribute(_CORR, struct.pack("=III", self.delay_correlation, self.loss_correlation, 0))
        body += attribute(_REORDER, struct.pack("=II", self.reorder, 0))
        body += attribute(_CORRUPT, struct.pack("=II", self.corrupt, 0))
        body += attribute(_RATE, _RATE_SPEC.pack(rate, self.packet_overhead_bytes, 0, 0))
        body += attribute(PRNG_SEED, struct.pack("=Q", self.seed))
        if wide:
            body += attribute(_RATE64, struct.pack("=Q", self.rate_byte_s))
        if self.slots is not None:
            body += attribute(_SLOT, _SLOT_SPEC.pack(*self.slots, 0, 0))
        if self.gilbert_elliott is not None:
            body += attribute(_LOSS, attribute(_LOSS_GE, struct.pack("=IIII", *self.gilbert_elliott)))
        if self.distribution != "uniform":
            body += attribute(_DELAY_DIST, table(self.distribution))
        return body

    @classmethod
    def decode(cls, body: bytes, *, distribution: str = "uniform", size_overhead_bytes: int = 0) -> Netem:
        """Read TCA_OPTIONS of a dump. The kernel never dumps a delay distribution, so the caller names it."""
        latency, limit, loss, gap, duplicate, jitter = _QOPT.unpack_from(body)
        there = attributes_of(body[_QOPT.size :])

        def number(of: int, form: str, otherwise: int, at: int = 0) -> int:
            return int(struct.unpack_from(form, there[of], at)[0]) if of in there else otherwise

        model = attributes_of(there.get(_LOSS, b"")).get(_LOSS_GE)
        return cls(
            limit_packets=limit,
            latency_ns=number(_LATENCY64, "=q", latency * TICK_NS),
            jitter_ns=number(_JITTER64, "=q", jitter * TICK_NS),
            delay_correlation=number(_CORR, "=I", 0),
            distribution=distribution,
            loss=loss,
            loss_correlation=number(_CORR, "=I", 0, 4),
            gilbert_elliott=struct.unpack_from("=IIII", model) if model is not None else None,
            duplicate=duplicate,
            corrupt=number(_CORRUPT, "=I", 0),
            reorder=number(_REORDER, "=I", 0),
            gap=gap,
            rate_byte_s=number(_RATE64, "=Q", number(_RATE, "=I", 0)),
            packet_overhead_bytes=number(_RATE, "=i", 0, 4),
            seed=number(PRNG_SEED, "=Q", 0),
            size_overhead_bytes=size_overhead_bytes,
            slots=_SLOT_SPEC.unpack_from(there[_SLOT])[:4] if _SLOT in there else None,
        )

    def remark(self) -> str:
        """The part that tc(8) cannot express, as a comment."""
        return f"# its delays have a table of their own: {self.distribution}" if "(" in self.distribution else ""

    def text(self) -> str:
        """The same as arguments of tc(8)."""
        words = [f"limit {self.limit_packets}"]
        if self.latency_ns or self.jitter_ns:
            words.append(f"delay {_time(self.latency_ns)}")
            if self.jitter_ns:
                words.append(f"{_time(self.jitter_ns)} {_percent(self.delay_correlation)}")
                if self.distribution != "uniform" and not self.remark():
                    words.append(f"distribution {self.distribution}")
        if self.loss:
            words.append(f"loss {_percent(self.loss)}")
            if self.loss_correlation:
                words.append(_percent(self.loss_correlation))
        if self.gilbert_elliott:
            p, r, h, k1 = self.gilbert_elliott
            # tc asks for 1-h where the kernel holds h
            words.append("loss gemodel " + " ".join(map(_percent, (p, r, PROBABILITY_ONE - h, k1))))
        for name in ("duplicate", "corrupt", "reorder"):
            if getattr(self, name):
                words.append(f"{name} {_percent(getattr(self, name))}")
        if self.rate_byte_s:
            words.append(f"rate {self.rate_byte_s * 8}bit {self.packet_overhead_bytes}")
        if self.slots is not None:
            least, most, packets, size = self.slots
            words.append(f"slot {_time(least)} {_time(most)} packets {packets} bytes {size}")
        words.append(f"seed {self.seed}")
        return size_text(self.size_overhead_bytes) + "netem " + " ".join(words)


def _time(ns: int) -> str:
    """In microseconds: netem's options are the ones for which tc(8) knows no nanoseconds."""
    return f"{ns / 1000:.3f}".rstrip("0").rstrip(".") + "us"


def _percent(probability: int) -> str:
    return f"{100 * probability / PROBABILITY_ONE:.6g}%"


def probability(ratio: float) -> int:
    """Ratio 0..1 as the kernel's 32-bit probability."""
    return round(ratio * PROBABILITY_ONE)


def delay_stage(shape: LinkImpairment, seed: int) -> Netem:
    """Root qdisc: delay, jitter and loss.

    netem's own `reorder` is not used: what it reorders skips the child qdisc, and with it the rate and the queue.
    """
    return Netem(
        limit_packets=UNLIMITED_PACKETS,
        latency_ns=shape.one_way_delay_ns,
        jitter_ns=spread_ns(shape),
        delay_correlation=probability(shape.jitter_correlation_ratio),
        distribution=distribution_of(shape),
        loss=probability(shape.loss_ratio),
        loss_correlation=probability(shape.loss_correlation_ratio),
        gilbert_elliott=_gemodel(shape.burst_loss) if shape.burst_loss else None,
        duplicate=probability(shape.duplicate_ratio),
        corrupt=probability(shape.corrupt_ratio),
        rate_byte_s=ORDERING_BYTE_S if shape.keeps_order else 0,
        seed=seed,
        # tbf takes no overhead below 0 of its own
        size_overhead_bytes=-ETHERNET_HEADER_BYTES if _counted_at_root(shape) and shape.layer == "ip" else 0,
    )


def _counted_at_root(shape: LinkImpairment) -> bool:
    """True if the stages below count lengths as the root's size table gives them."""
    return shape.token_bucket or isinstance(shape.slots, Slots)


def rate_stage(shape: LinkImpairment, seed: int) -> Netem | None:
    """Child qdisc: rate and queue, and slots. None if the direction has neither rate nor slots.

    netem's limit also counts the packet that is being sent, so a queue of N waiting packets is limit N + 1.
    """
    slots = shape.slots if isinstance(shape.slots, Slots) else None
    if shape.rate_bit_s is None and slots is None:
        return None
    waiting = UNLIMITED_PACKETS if shape.queue_packets is None else shape.queue_packets
    return Netem(
        limit_packets=waiting + 1,
        rate_byte_s=(shape.rate_bit_s or 0) // 8,
        packet_overhead_bytes=-ETHERNET_HEADER_BYTES if shape.layer == "ip" and slots is None else 0,
        seed=seed,
        slots=None if slots is None else (slots.least_ns, slots.most_ns, slots.packets or 0, slots.bytes or 0),
    )


def black_hole(stage: Netem) -> Netem:
    """The same qdisc, but losing every packet that enters."""
    return msgspec.structs.replace(stage, loss=PROBABILITY_ONE, loss_correlation=0, gilbert_elliott=None)


def _gemodel(model: GilbertElliott) -> tuple[int, int, int, int]:
    return (
        probability(model.p_ratio),
        probability(model.r_ratio),
        probability(1.0 - model.bad_loss_ratio),
        probability(model.good_loss_ratio),
    )


SCALE = 8192
SIZE = 4096
LIMITS = (-32768, 32767)
PARETO_SHAPE = 3.0
_OVERTAKE = re.compile(r"overtake\(([0-9]+)\)")


def overtakers(reorder_ratio: float) -> int:
    """The number of 4096 packets that overtake others. netem draws from a table, so the ratio becomes a multiple of
    1/4096, at least one.
    """
    return max(1, round(reorder_ratio * SIZE)) if reorder_ratio else 0


def distribution_of(shape: LinkImpairment) -> str:
    """The distribution of the delays: a name of tc(8)'s, or overtake(k)."""
    return f"overtake({overtakers(shape.reorder_ratio)})" if shape.reorder_ratio else shape.distribution


def spread_ns(shape: LinkImpairment) -> int:
    """The jitter to configure in netem. With overtake(k), whose table holds 0 and -1, it is the delay itself."""
    return shape.one_way_delay_ns if shape.reorder_ratio else shape.jitter_ns


@functools.cache
def quantiles(name: str) -> tuple[int, ...]:
    """The values of a distribution's table, ascending. Raises ValueError for a name without a table (uniform)."""
    inverse = statistics.NormalDist().inv_cdf
    if name == "normal":
        return tuple(_clipped(inverse((i + 0.5) / SIZE) * SCALE) for i in range(SIZE))
    if name == "pareto":
        return tuple(_pareto(SIZE - i) for i in range(SIZE))
    if name == "paretonormal":
        return tuple(_third(round(inverse((i + 0.5) / SIZE) * SCALE), _pareto(SIZE - i)) for i in range(SIZE))
    if match := _OVERTAKE.fullmatch(name):
        return (-SCALE,) * int(match[1]) + (0,) * (SIZE - int(match[1]))
    raise ValueError(f"no delay distribution '{name}'; there are: uniform, normal, pareto, paretonormal")


@functools.cache
def table(name: str) -> bytes:
    """TCA_NETEM_DELAY_DIST: the quantiles as s16."""
    return b"".join(value.to_bytes(2, "little", signed=True) for value in quantiles(name))


def _clipped(value: float) -> int:
    return max(LIMITS[0], min(LIMITS[1], round(value)))


def _pareto(number: int) -> int:
    """The quantile at 1 - number / 4096 of a Pareto distribution of shape 3, minus its mean 1.5, times 4/3."""
    return _clipped((1.0 / (number / SIZE) ** (1.0 / PARETO_SHAPE) - 1.5) * (4.0 / 3.0) * SCALE)


def _third(normal: int, pareto: int) -> int:
    """A quarter of the first and three quarters of the second, quantile by quantile."""
    return _clipped((normal + 3 * pareto) / 4)
