"""The words of a link's impairment: no field of it is left out."""

from __future__ import annotations

import msgspec
import pytest
from netwarp.core.link_types import (
    AckThinning,
    Aqm,
    GilbertElliott,
    LinkImpairment,
    Opportunities,
    PacketRange,
    PacketRule,
    Policer,
    Slots,
)
from netwarp.present.setup import _impairment, in_words, losses, others

VALUES = {
    "one_way_delay_ns": (20_000_000, "one way delay 20 ms"),
    "jitter_ns": (5_000_000, "jitter 5 ms"),
    "jitter_correlation_ratio": (0.25, "jitter correlation 25 %"),
    "distribution": ("normal", "distribution normal"),
    "loss_ratio": (0.01, "loss 1 %"),
    "loss_correlation_ratio": (0.5, "loss correlation 50 %"),
    "burst_loss": (GilbertElliott(0.01, 0.3), "burst loss p=0.01 r=0.3 bad=1 good=0"),
    "duplicate_ratio": (0.02, "duplicate 2 %"),
    "corrupt_ratio": (0.001, "corrupt 0.1 %"),
    "reorder_ratio": (0.03, "reorder 3 %"),
    "rate_bit_s": (1_500_000, "rate 1.5 Mbit/s"),
    "queue_packets": (1, "queue 1 packet"),
    "layer": ("ethernet", "layer ethernet"),
    "keeps_order": (True, "keeps order"),
    "queue_bytes": (65_536, "queue 64 KiB"),
    "bit_error_ratio": (1e-5, "bit error 1\u00d710\u207b\u2075"),
    "byte_error_ratio": (0.001, "byte error 0.001"),
    "packet_rules": (
        (
            PacketRule("drop", (3, 7), ranges=(PacketRange(20, 30, 1), PacketRange(1000, None, 1000))),
            PacketRule("delay", (1,), "data", 2_000_000),
        ),
        "drop packets 3, 7, 20 to 30, from 1000 on every 1000; delay data packets 1 by 2 ms",
    ),
    "aqm": (Aqm("codel", True, {}), "codel that marks (ECN)"),
    "policer": (Policer(10_000_000, 65_536), "policer of 10 Mbit/s and 64 KiB"),
    "burst_bytes": (16_384, "burst 16 KiB"),
    "opportunities": (
        Opportunities("lte.trace", "0" * 64, (1, 2), 3, 1504, 4, 5_000_000),
        "opportunities of lte.trace, 5 Mbit/s in the mean",
    ),
    "ack_thinning": (AckThinning(4, 10_000_000), "each 4. ACK, others held for 10 ms"),
    "slots": (Slots(2_000_000, 5_000_000, 32, None), "slots of 32 packets after 2 ms to 5 ms"),
}


@pytest.mark.parametrize("field", LinkImpairment.__struct_fields__)
def test_every_field_is_said_in_the_report(field: str) -> None:
    """By the set-up's line and by the cell's page, in words of its own."""
    value, words = VALUES[field]
    shape = msgspec.structs.replace(LinkImpairment(), **{field: value})
    assert in_words(shape) == {field: words}
    if field == "one_way_delay_ns":
        assert _impairment(shape) == "no rate, 20 ms one way"
        return
    assert words.removeprefix("rate ") in _impairment(shape)
    assert (losses(in_words(shape)) == words) != (others(in_words(shape), ()) == words)


def test_what_loses_packets_is_no_loss_of_none() -> None:
    shape = LinkImpairment(bit_error_ratio=1e-5, packet_rules=(PacketRule("drop", (3,)),))
    assert losses(in_words(shape)) == "bit error 1\u00d710\u207b\u2075, drop packets 3"
    assert losses(in_words(LinkImpairment())) == "none"
