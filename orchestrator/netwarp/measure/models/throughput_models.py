"""Formulas of TCP's rate under loss. Pure functions; no capture is looked at.

p: loss events over data packets sent. RTT in s. b: packets that one step of the window's growth waits for: 1 where the
sender counts what is acknowledged (RFC 3465, RFC 9260 7.2.2, Linux), 2 where it counts delayed acknowledgements.
"""

from __future__ import annotations

import math


def random_over_periodic() -> float:
    """The factor between the rate that independent losses allow and that of periodic ones: 1.0695, so C = 1.3098 in
    place of 1.2247.

    With N packets between losses a window goes from w/2 to sqrt(w^2 / 4 + 2 N) in as many round trips as it grows by,
    so the stationary w^2 is the sum of 2 N_k / 4^k, k = 0, 1, ..., and a cycle takes E[w] / 2 round trips
    on the mean. Periodic losses: N = 1/p. Independent ones: N exponential; the sum is hypoexponential with the rates
    4^k, and the mean of its root is the sum of c_k Gamma(3/2) / 2^k, c_k = product over j != k of 4^j / (4^j - 4^k).
    The rate is 1/p over that time, hence the ratio: sqrt(4/3) over that mean.
    """
    rates = [4.0**k for k in range(12)]
    mean_root = 0.0
    for k, rate in enumerate(rates):
        weight = math.prod(other / (other - rate) for j, other in enumerate(rates) if j != k)
        mean_root += weight * math.gamma(1.5) / math.sqrt(rate)
    return math.sqrt(4 / 3) / mean_root


RANDOM_OVER_PERIODIC = random_over_periodic()


def mathis_packets_s(p: float, rtt_s: float, b: int = 1) -> float:
    """C / (RTT sqrt(p)), C = sqrt(3 / 2b): one loss per 1/p packets; the window grows by 1/b packets per RTT and is
    halved by a loss.

    M. Mathis, J. Semke, J. Mahdavi, T. Ott: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm (CCR
    27(3), 1997). Without timeouts and without the receiver's limit; recovery takes no time.
    """
    return per_second(math.sqrt(1.5 / (b * p)), rtt_s)


def sawtooth_packets_s(p: float, rtt_s: float) -> float:
    """The same with the one round trip that recovery takes, in which the window is halved and does not grow (b = 1).

    A cycle from w/2 to w sends 3 w^2 / 8 packets in w/2 round trips, then w/2 packets in one more; 1/p packets in all.
    """
    w = (-0.5 + math.sqrt(0.25 + 1.5 / p)) / 0.75
    return 1 / p / (rtt_s * (w / 2 + 1))


def pftk_packets_s(p: float, rtt_s: float, timeout_s: float, window_packets: float, b: int = 1) -> float:
    """Send rate of Reno without SACK: the full model with timeouts and the receiver's window.

    J. Padhye, V. Firoiu, D. Towsley, J. Kurose: Modeling TCP Throughput: A Simple Model and its Empirical Validation
    (SIGCOMM 1998), eq. 31, with E[W] of eq. 13 and f(p) of eq. 28. Packets lost behind the first of a round are lost
    with it, and a window too small for three duplicates times out.
    """
    w, share, seconds = pftk_cycle(p, rtt_s, timeout_s, window_packets, b)
    return per_second((1 - p) / p + w + share / (1 - p), seconds)


def pftk_cycle(p: float, rtt_s: float, timeout_s: float, window_packets: float, b: int) -> tuple[float, float, float]:
    """Of the time from loss to loss: the window at its end, the share of timeouts among the losses, its length in s."""
    unlimited = (2 + b) / (3 * b) + math.sqrt(8 * (1 - p) / (3 * b * p) + ((2 + b) / (3 * b)) ** 2)
    by_timeout = backed_off(p) * timeout_s / (1 - p)
    if unlimited < window_packets:
        w = unlimited
        rounds = b / 2 * w + 1
    else:
        w = window_packets
        rounds = b / 8 * w + (1 - p) / (p * w) + 2
    share = timeout_share(p, w)
    return w, share, rtt_s * rounds + share * by_timeout


def per_second(packets: float, seconds: float) -> float:
    """Without a round trip nothing is waited for: as fast as one likes."""
    return packets / seconds if seconds else math.inf


def timeout_share(p: float, w: float) -> float:
    """Share of the loss events, at a window of w packets, that end in a timeout (the same paper, Q)."""
    if w <= 3:
        return 1.0
    share = any_lost(p, 3) * (1 + (1 - p) ** 3 * any_lost(p, w - 3)) / any_lost(p, w)
    return min(1.0, share)


def any_lost(p: float, packets: float) -> float:
    """1 - (1 - p)^packets, also where p is so small that 1 - p is 1."""
    return -math.expm1(packets * math.log1p(-p))


def backed_off(p: float) -> float:
    """Mean length of a series of doubled timeouts, times (1 - p), in first timeouts (the same paper, f; eq. 28)."""
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
