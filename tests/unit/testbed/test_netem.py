"""netem: encoding and decoding agree, and so do the kernel's headers."""

from __future__ import annotations

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.core.link_types import GilbertElliott, LinkImpairment
from netwarp.testbed.netem import PROBABILITY_ONE, Netem, black_hole, delay_stage, probability, rate_stage, table
from netwarp.testbed.qdiscs import attributes_of

u32 = st.integers(0, 0xFFFFFFFF)
netems = st.builds(
    Netem,
    limit_packets=u32,
    latency_ns=st.integers(0, 2**62),
    jitter_ns=st.integers(0, 2**62),
    delay_correlation=u32,
    distribution=st.sampled_from(["uniform", "normal"]),
    loss=u32,
    loss_correlation=u32,
    gilbert_elliott=st.none() | st.tuples(u32, u32, u32, u32),
    duplicate=u32,
    corrupt=u32,
    reorder=u32,
    gap=u32,
    rate_byte_s=st.integers(0, 2**40).filter(lambda rate: rate != 0xFFFFFFFF),
    packet_overhead_bytes=st.integers(-100, 100),
    seed=st.integers(0, 2**64 - 1),
)


@given(netems)
def test_decode_gives_back_what_was_encoded(netem: Netem) -> None:
    assert Netem.decode(netem.encode(), distribution=netem.distribution) == netem


def test_layout_is_that_of_pkt_sched_h() -> None:
    body = Netem(limit_packets=51, latency_ns=200_000_001, loss=7, rate_byte_s=62500, seed=9).encode()
    # struct tc_netem_qopt: latency in 64 ns ticks, limit, loss, gap, duplicate, jitter
    assert struct.unpack_from("=IIIIII", body) == (200_000_001 // 64, 51, 7, 0, 0, 0)
    attributes = attributes_of(body[24:])
    assert struct.unpack("=q", attributes[10]) == (200_000_001,)  # TCA_NETEM_LATENCY64
    assert struct.unpack("=IiIi", attributes[6]) == (62500, 0, 0, 0)  # TCA_NETEM_RATE
    assert struct.unpack("=Q", attributes[14]) == (9,)  # TCA_NETEM_PRNG_SEED


def test_stages_of_a_shape() -> None:
    shape = LinkImpairment(
        one_way_delay_ns=5,
        loss_ratio=0.5,
        rate_bit_s=8_000,
        queue_packets=50,
        burst_loss=GilbertElliott(0.1, 0.2, bad_loss_ratio=0.75, good_loss_ratio=0.0),
    )
    root, child = delay_stage(shape, 3), rate_stage(shape, 4)
    assert child is not None
    assert (root.latency_ns, root.loss, root.seed, root.rate_byte_s) == (5, probability(0.5), 3, 0)
    assert root.gilbert_elliott == (probability(0.1), probability(0.2), probability(0.25), 0)
    # N waiting packets and the one being sent
    assert (child.limit_packets, child.rate_byte_s, child.packet_overhead_bytes, child.loss) == (51, 1000, -14, 0)
    assert rate_stage(LinkImpairment(one_way_delay_ns=5), 1) is None
    frames = rate_stage(msgspec.structs.replace(shape, layer="ethernet"), 4)
    assert frames is not None and frames.packet_overhead_bytes == 0
    hole = black_hole(root)
    assert hole.loss == PROBABILITY_ONE and hole.gilbert_elliott is None and hole.latency_ns == 5


def test_normal_distribution_is_symmetric_with_unit_deviation() -> None:
    values = struct.unpack("=4096h", table("normal"))
    assert sum(values) == 0
    deviation = (sum(value * value for value in values) / len(values)) ** 0.5 / 8192
    assert deviation == pytest.approx(1.0, abs=0.002)
    assert list(values) == sorted(values)


def test_unknown_distribution_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="uniform, normal"):
        table("weibull")
