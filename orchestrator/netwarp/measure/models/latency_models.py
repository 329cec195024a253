"""Models of the duration of a short TCP transfer: Cardwell's latency, and size divided by the rates of PFTK and Mathis.

None of them knows the rate of a link: `on_link_s` is the sending time of the packets alone, and no transfer can be
faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .throughput_models import (
    any_lost,
    backed_off,
    mathis_packets_s,
    pftk_packets_s,
    pftk_received_packets_s,
    timeout_share,
)


@dataclass(frozen=True)
class Yardsticks:
    """Predicted durations of one transfer in s, each at least on_link_s."""

    cardwell_s: float
    pftk_s: float
    mathis_s: float
    on_link_s: float


def yardsticks(
    packets: int,
    p: float,
    rtt_s: float,
    *,
    packet_s: float,
    timeout_s: float,
    window_packets: float,
    initial_window: int = 1,
    b: int = 2,
) -> Yardsticks:
    """The durations for `packets` data packets that take packet_s each on the link. p: loss ratio; without loss PFTK
    and Mathis give no rate, so the link's rate replaces theirs. b: data packets per acknowledgement. Without terms for
    the delayed acknowledgement or the handshake.
    """
    on_link = packets * packet_s
    cardwell = cardwell_s(
        packets, p, rtt_s, timeout_s=timeout_s, window_packets=window_packets, initial_window=initial_window, b=b
    )
    pftk = mathis = 0.0
    if p > 0:
        pftk = packets / pftk_packets_s(p, rtt_s, timeout_s, window_packets, b)
        mathis = packets / mathis_packets_s(p, rtt_s, b)
    return Yardsticks(max(cardwell, on_link), max(pftk, on_link), max(mathis, on_link), on_link)


def cardwell_s(
    packets: int, p: float, rtt_s: float, *, timeout_s: float, window_packets: float, initial_window: int, b: int = 2
) -> float:
    """N. Cardwell, S. Savage, T. Anderson: Modeling TCP Latency (INFOCOM 2000), section 3, without its terms for the
    handshake and the first delayed acknowledgement: slow start (eq. 5, 11, 15), the loss that ends it (16 to 20),
    congestion avoidance for the rest, at the rate at which PFTK's packets arrive (21 to 23).
    """
    growth = 1 + 1 / b
    lost = any_lost(p, packets)
    in_slow_start = float(packets) if p == 0 else min(packets, lost * (1 - p) / p + 1)
    reached = in_slow_start * (growth - 1) / growth + initial_window / growth
    if reached > window_packets:
        doubling = math.log(max(1.0, window_packets / initial_window), growth) + 1
        at_the_limit = in_slow_start - (growth * window_packets - initial_window) / (growth - 1)
        slow_start = rtt_s * (doubling + max(0.0, at_the_limit) / window_packets)
    else:
        slow_start = rtt_s * math.log(in_slow_start * (growth - 1) / initial_window + 1, growth)
    if p == 0:
        return slow_start
    by_timeout = timeout_share(p, reached)
    loss = lost * (by_timeout * backed_off(p) * timeout_s / (1 - p) + (1 - by_timeout) * rtt_s)
    rest = packets - in_slow_start
    return slow_start + loss + rest / pftk_received_packets_s(p, rtt_s, timeout_s, window_packets, b)
