"""netem, complete: one nla class for both ways, written from linux/pkt_sched.h (6.12).

pyroute2's own netem lacks 64-bit times and rates, the loss models and the seed. Here every attribute is always sent
and read back, in nanoseconds and byte/s, so that what was asked can be compared with what is in force.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from pyroute2.netlink import nla

from ..core.types import Frozen, GilbertElliott, LinkImpairment
from .delays import distribution_of, spread_ns, table
from .size_table import size_table, size_text

PROBABILITY_ONE = 0xFFFFFFFF
TICK_NS = 64
"""psched tick (PSCHED_SHIFT 6); only the legacy 32-bit fields count in it."""
ETHERNET_HEADER_BYTES = 14
UNLIMITED_PACKETS = 1_000_000
"""Limit of a delay line: far more packets than any of our links holds, so that it never drops."""
ORDERING_BYTE_S = 1 << 50
"""A rate at which no packet takes a nanosecond. With a rate, any, netem lets no packet leave before the one before it
(sch_netem.c: netem_enqueue); without one its delay line sorts by the time each packet is due, so jitter reorders."""


class netem_options(nla):  # type: ignore[misc]
    """TCA_OPTIONS of netem: struct tc_netem_qopt, then attributes."""

    fields = (("latency", "I"), ("limit", "I"), ("loss", "I"), ("gap", "I"), ("duplicate", "I"), ("jitter", "I"))
    nla_map: ClassVar[Any] = (
        ("TCA_NETEM_UNSPEC", "none"),
        ("TCA_NETEM_CORR", "corr"),
        ("TCA_NETEM_DELAY_DIST", "cdata"),
        ("TCA_NETEM_REORDER", "probability"),
        ("TCA_NETEM_CORRUPT", "probability"),
        ("TCA_NETEM_LOSS", "loss_model"),
        ("TCA_NETEM_RATE", "rate"),
        ("TCA_NETEM_ECN", "uint32"),
        ("TCA_NETEM_RATE64", "uint64"),
        ("TCA_NETEM_PAD", "cdata"),
        ("TCA_NETEM_LATENCY64", "int64"),
        ("TCA_NETEM_JITTER64", "int64"),
        ("TCA_NETEM_SLOT", "slot"),
        ("TCA_NETEM_SLOT_DIST", "cdata"),
        ("TCA_NETEM_PRNG_SEED", "uint64"),
    )

    class corr(nla):  # type: ignore[misc]
        """struct tc_netem_corr."""

        fields = (("delay_corr", "I"), ("loss_corr", "I"), ("dup_corr", "I"))

    class probability(nla):  # type: ignore[misc]
        """struct tc_netem_reorder, tc_netem_corrupt."""

        fields = (("probability", "I"), ("correlation", "I"))

    class rate(nla):  # type: ignore[misc]
        """struct tc_netem_rate; `rate` in byte/s, all ones where TCA_NETEM_RATE64 carries it."""

        fields = (("rate", "I"), ("packet_overhead", "i"), ("cell_size", "I"), ("cell_overhead", "i"))

    class slot(nla):  # type: ignore[misc]
        """struct tc_netem_slot, nanoseconds."""

        fields = (
            ("min_delay", "q"),
            ("max_delay", "q"),
            ("max_packets", "i"),
            ("max_bytes", "i"),
            ("dist_delay", "q"),
            ("dist_jitter", "q"),
        )

    class loss_model(nla):  # type: ignore[misc]
        """TCA_NETEM_LOSS: one of the two loss models."""

        nla_map: ClassVar[Any] = (
            ("NETEM_LOSS_UNSPEC", "none"),
            ("NETEM_LOSS_GI", "cdata"),
            ("NETEM_LOSS_GE", "gemodel"),
        )

        class gemodel(nla):  # type: ignore[misc]
            """struct tc_netem_gemodel: p, r, h = 1 - loss in bad, k1 = 1 - k = loss in good."""

            fields = (("p", "I"), ("r", "I"), ("h", "I"), ("k1", "I"))


class Netem(Frozen, frozen=True):
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

    kind: ClassVar[str] = "netem"

    def attributes(self) -> tuple[tuple[int, bytes], ...]:
        """The size table beside TCA_OPTIONS."""
        return size_table(self.size_overhead_bytes)

    def as_shown(self) -> Netem:
        """This one as a dump shows it."""
        return self

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS."""
        options = netem_options()
        options["limit"] = self.limit_packets
        options["latency"] = min(self.latency_ns // TICK_NS, 0xFFFFFFFF)
        options["jitter"] = min(self.jitter_ns // TICK_NS, 0xFFFFFFFF)
        options["loss"] = self.loss
        options["gap"] = self.gap
        options["duplicate"] = self.duplicate
        wide = self.rate_byte_s >= 1 << 32
        attrs: list[tuple[str, Any]] = [
            ("TCA_NETEM_LATENCY64", self.latency_ns),
            ("TCA_NETEM_JITTER64", self.jitter_ns),
            (
                "TCA_NETEM_CORR",
                {"delay_corr": self.delay_correlation, "loss_corr": self.loss_correlation, "dup_corr": 0},
            ),
            ("TCA_NETEM_REORDER", {"probability": self.reorder, "correlation": 0}),
            ("TCA_NETEM_CORRUPT", {"probability": self.corrupt, "correlation": 0}),
            (
                "TCA_NETEM_RATE",
                {
                    "rate": 0xFFFFFFFF if wide else self.rate_byte_s,
                    "packet_overhead": self.packet_overhead_bytes,
                    "cell_size": 0,
                    "cell_overhead": 0,
                },
            ),
            ("TCA_NETEM_PRNG_SEED", self.seed),
        ]
        if wide:
            attrs.append(("TCA_NETEM_RATE64", self.rate_byte_s))
        if self.gilbert_elliott is not None:
            p, r, h, k1 = self.gilbert_elliott
            attrs.append(("TCA_NETEM_LOSS", {"attrs": [("NETEM_LOSS_GE", {"p": p, "r": r, "h": h, "k1": k1})]}))
        if self.distribution != "uniform":
            attrs.append(("TCA_NETEM_DELAY_DIST", table(self.distribution)))
        options["attrs"] = attrs
        options.encode()
        return bytes(options.data[4:])

    @classmethod
    def decode(cls, body: bytes, *, distribution: str = "uniform", size_overhead_bytes: int = 0) -> Netem:
        """Read TCA_OPTIONS of a dump. The kernel never dumps a delay distribution, so the caller names it."""
        length = len(body) + 4
        options = netem_options(length.to_bytes(2, "little") + b"\0\0" + body)
        options.decode()
        attr: dict[str, Any] = dict(options["attrs"])
        corr = attr.get("TCA_NETEM_CORR", {"delay_corr": 0, "loss_corr": 0})
        rate = attr.get("TCA_NETEM_RATE", {"rate": 0, "packet_overhead": 0})
        model = dict(attr["TCA_NETEM_LOSS"]["attrs"]).get("NETEM_LOSS_GE") if "TCA_NETEM_LOSS" in attr else None
        return cls(
            limit_packets=options["limit"],
            latency_ns=attr.get("TCA_NETEM_LATENCY64", options["latency"] * TICK_NS),
            jitter_ns=attr.get("TCA_NETEM_JITTER64", options["jitter"] * TICK_NS),
            delay_correlation=corr["delay_corr"],
            distribution=distribution,
            loss=options["loss"],
            loss_correlation=corr["loss_corr"],
            gilbert_elliott=(model["p"], model["r"], model["h"], model["k1"]) if model else None,
            duplicate=options["duplicate"],
            corrupt=attr.get("TCA_NETEM_CORRUPT", {"probability": 0})["probability"],
            reorder=attr.get("TCA_NETEM_REORDER", {"probability": 0})["probability"],
            gap=options["gap"],
            rate_byte_s=attr.get("TCA_NETEM_RATE64", rate["rate"]),
            packet_overhead_bytes=rate["packet_overhead"],
            seed=attr.get("TCA_NETEM_PRNG_SEED", 0),
            size_overhead_bytes=size_overhead_bytes,
        )

    def remark(self) -> str:
        """The part that tc(8) cannot express, as a comment; "" if there is nothing."""
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
        size_overhead_bytes=-ETHERNET_HEADER_BYTES if shape.token_bucket and shape.layer == "ip" else 0,
    )


def rate_stage(shape: LinkImpairment, seed: int) -> Netem | None:
    """Child qdisc: rate and queue. None if the direction has no rate.

    netem's limit also counts the packet that is being sent, so a queue of N waiting packets is limit N + 1.
    """
    if shape.rate_bit_s is None:
        return None
    waiting = UNLIMITED_PACKETS if shape.queue_packets is None else shape.queue_packets
    return Netem(
        limit_packets=waiting + 1,
        rate_byte_s=shape.rate_bit_s // 8,
        packet_overhead_bytes=-ETHERNET_HEADER_BYTES if shape.layer == "ip" else 0,
        seed=seed,
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
