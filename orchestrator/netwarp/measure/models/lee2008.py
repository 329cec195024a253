"""lee2008's model of the mean response time of HTTP over SCTP and TCP: equations (1) to (18) and Figure 4.

Y.-J. Lee: Mean Response Delay Estimation for HTTP over SCTP in Wireless Internet (J. Korea Contents Association 8(6),
2008, pp. 43-53). Several losses, none repaired by fast retransmit. Two metrics of pages are its predictions; the rest,
its Table 3 and other readings, is in experiments/lee2008/. The names of the functions' arguments are the paper's
symbols: p, rtt (s), s = mtu / mu (s, one packet on the link), x, y, b, th (packets), k = 1, 2, ... (the loss).
The cost is O(alpha), so at most O(packets): a loop over the losses expected, each step of it constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...core.errors import SpecError
from .throughput_models import any_lost

Protocol = Literal["tcp", "sctp"]
Rounding = Literal["none", "ceil", "floor", "round"]
Values = npt.NDArray[np.float64]

OBJECT_KB, MTU_BYTES, OBJECTS = 13.5, 536, 5
INITIAL_WINDOW = {"tcp": 1, "sctp": 2}  # packets; TCP's is implied: "differs from SCTP's"
HEADER_BYTES = {"tcp": 40, "sctp": 48}  # IP and transport, SCTP's DATA chunk header too
ROUND_TRIPS_BEFORE = {"tcp": 1, "sctp": 2}  # of the handshake, before the request can leave


@dataclass(frozen=True)
class Readings:
    """A reading of each step that the text leaves open or prints wrongly. The first value of each is what the paper
    prints, and the default. The flags are those of the list in experiments/lee2008/model.md.
    """

    equal_is: Literal["congestion avoidance", "slow start"] = "congestion avoidance"  # flag 1
    sent_before_loss: Literal["with the lost packet", "without the lost packet"] = "with the lost packet"  # flag 2
    rounded: Rounding = "none"  # flag 12
    left: Literal["window added again", "window once"] = "window added again"  # flag 3
    exponent: Literal["log2(th+1)", "log2(th)+1", "figure 4", "floor"] = "log2(th+1)"  # flag 4
    sum_case: Literal["printed", "swapped"] = "printed"  # flag 4
    window_number: Literal["closed form", "least number"] = "closed form"  # flag 5
    window_size: Literal["window of one", "first window"] = "window of one"  # flag 6
    cap: Literal["threshold", "none"] = "threshold"  # flag 11
    before_loss: Literal["closed form", "sum", "without the lost packet"] = "closed form"  # flag 7
    negative_b: Literal["kept", "zero"] = "kept"  # flag 7
    stalls: Literal["ceil", "floor"] = "ceil"  # flag 8
    windows: Literal["printed", "first window"] = "printed"  # flag 8
    halved: Literal["stage", "window"] = "stage"  # flag 9
    floor: Literal["2 packets", "2 mtu in bits"] = "2 packets"  # flag 9
    avoidance: Literal["rtt a packet", "rtt a window"] = "rtt a packet"  # flag 10
    congestion_sent: Literal["x + 1", "x"] = "x + 1"  # flag 11
    losses: Literal["ceil", "round", "floor"] = "ceil"
    rest_window: Literal["one", "initial without loss"] = "one"  # flag 12
    scope: Literal["object", "objects together", "objects in turn", "page together"] = "object"  # flag 13
    mtu_is: Literal["both", "payload", "packet"] = "both"  # flag 13
    kilobyte: Literal["1000 B", "1024 B"] = "1000 B"  # flag 13
    rtt_is: Literal["rtt", "one-way delay"] = "rtt"
    timeout: Literal["3/2 rtt", "at least 200 ms", "at least 1 s"] = "3/2 rtt"  # flag 13
    set_up: Literal["none", "request", "handshake and request"] = "none"  # flag 13


PRINTED = Readings()

# Every flag read as textbooks have it (Kurose and Ross for the stalls, RFC 2960, the paper's [1], for window and
# threshold). x is without the lost packet, b with it: then y - b + 1 are the lost one and those behind it.
CORRECTED = Readings(
    sent_before_loss="without the lost packet",
    left="window once",
    exponent="floor",
    sum_case="swapped",
    window_number="least number",
    window_size="first window",
    cap="threshold",
    before_loss="sum",
    negative_b="zero",
    stalls="floor",
    windows="first window",
    halved="window",
    avoidance="rtt a window",
    rest_window="initial without loss",
    scope="objects together",
    mtu_is="payload",
)

# The best that the search of experiments/lee2008/model.py came to for Table 3 with its columns read as B there.
# `round` makes alpha 1, 1 and 3 at the table's 126 packets.
BEST_FOR_B = Readings(
    rounded="ceil",
    left="window once",
    exponent="log2(th)+1",
    window_number="least number",
    before_loss="sum",
    negative_b="zero",
    stalls="floor",
    windows="first window",
    halved="window",
    avoidance="rtt a window",
    losses="round",
    rest_window="initial without loss",
    scope="objects together",
    set_up="request",
)


@dataclass(frozen=True)
class Page:
    """The objects that are fetched."""

    object_kb: float = OBJECT_KB
    objects: int = OBJECTS
    mtu_bytes: int = MTU_BYTES


@dataclass(frozen=True)
class Stage:
    """The state behind one loss: the time of the stage, the packets left, the next threshold."""

    time_s: float
    left: float
    threshold: float


def response_time_s(
    loss: npt.ArrayLike,
    rate_bit_s: npt.ArrayLike,
    rtt_s: npt.ArrayLike,
    *,
    protocol: Protocol = "sctp",
    readings: Readings = PRINTED,
    page: Page = Page(),
) -> Values:
    """E(T_sctp) or E(T_tcp), (2), in s; the three arguments are broadcast against each other."""
    arrays = np.broadcast_arrays(*(np.asarray(values, dtype=float) for values in (loss, rate_bit_s, rtt_s)))
    check_condition(*arrays)
    points = zip(*(np.ravel(array).tolist() for array in arrays), strict=True)
    times = [_page_s(p, rate, rtt, protocol, readings, page) for p, rate, rtt in points]
    return np.array(times).reshape(arrays[0].shape)


def check_condition(loss: npt.ArrayLike, rate_bit_s: npt.ArrayLike, rtt_s: npt.ArrayLike) -> None:
    """Raises SpecError: a number out of range."""
    if np.any(np.less(loss, 0)) or np.any(np.greater_equal(loss, 1)):
        raise SpecError("loss is at least 0 and below 1")
    if np.any(np.less_equal(rate_bit_s, 0)) or np.any(np.less(rtt_s, 0)):
        raise SpecError("a rate is above 0, an RTT at least 0")


def round_trip_s(rtt_s: float, readings: Readings) -> float:
    """The round trip for an RTT as printed."""
    return rtt_s * (2 if readings.rtt_is == "one-way delay" else 1)


def packets_of(page: Page, protocol: Protocol, readings: Readings) -> tuple[int, int]:
    """delta of (5), and how often that many are sent one after another."""
    kilo = 1024 if readings.kilobyte == "1024 B" else 1000
    payload = page.mtu_bytes - (HEADER_BYTES[protocol] if readings.mtu_is == "packet" else 0)
    size = page.object_kb * kilo
    match readings.scope:
        case "objects together":
            return math.ceil(size * page.objects / payload), 1
        case "page together":  # the HTML is taken to be as large as an object: the paper does not say
            return math.ceil(size * (page.objects + 1) / payload), 1
        case "objects in turn":
            return math.ceil(size / payload), page.objects
        case _:
            return math.ceil(size / payload), 1


def _page_s(p: float, rate: float, rtt: float, protocol: Protocol, readings: Readings, page: Page) -> float:
    rtt = round_trip_s(rtt, readings)
    on_the_link = page.mtu_bytes + (HEADER_BYTES[protocol] if readings.mtu_is == "payload" else 0)
    delta, times = packets_of(page, protocol, readings)
    time = times * object_s(p, rtt, 8 * on_the_link / rate, delta, INITIAL_WINDOW[protocol], readings)
    if readings.set_up != "none":
        time += rtt
    if readings.set_up == "handshake and request":
        time += ROUND_TRIPS_BEFORE[protocol] * rtt
    return time


def object_s(p: float, rtt: float, s: float, delta: int, initial: int, readings: Readings) -> float:
    """(2) by Figure 4, s: delta packets from an initial window of 1 or 2."""
    if initial not in (1, 2):
        raise SpecError("the paper has equations for an initial window of 1 or 2 packets only")
    alpha = int(_rounded(delta * p, readings.losses))
    timeout = max(1.5 * rtt, {"3/2 rtt": 0.0, "at least 200 ms": 0.2, "at least 1 s": 1.0}[readings.timeout])
    left, threshold, total = float(delta), math.inf, 0.0
    for k in range(1, alpha + 1):
        window = initial if k == 1 else 1
        x = sent_before_loss(p, left, readings)
        reached = sum_to_threshold(threshold, k, readings)
        slow = x <= reached if readings.equal_is == "slow start" else x < reached
        if slow:
            stage = slow_start_stage(x, left, threshold, window, rtt, s, readings)
        else:
            stage = congestion_stage(x, left, threshold, reached, rtt, s, readings)
        total += stage.time_s + timeout
        left, threshold = max(0.0, stage.left), stage.threshold
    window = initial if alpha == 0 and readings.rest_window == "initial without loss" else 1
    return total + rest_s(left, threshold, alpha + 1, window, rtt, s, readings)


def sent_before_loss(p: float, left: float, readings: Readings) -> float:
    """x(k), (4): packets sent before the loss."""
    if p == 0:
        x = left
    else:
        lost = any_lost(p, left)
        x = lost / p + 1 - lost
        if readings.sent_before_loss == "without the lost packet":
            x = lost * (1 - p) / p
    return _rounded(x, readings.rounded)


def _rounded(value: float, rounding: Rounding) -> float:
    if math.isclose(value, round(value), rel_tol=1e-12):
        return float(round(value))  # 100 packets at 7 % are 7.000000000000001
    match rounding:
        case "ceil":
            return float(math.ceil(value))
        case "floor":
            return float(math.floor(value))
        case "round":
            return float(round(value))
    return value


def sum_to_threshold(th: float, k: int, readings: Readings) -> float:
    """A_th(k), (6): packets sent until the threshold."""
    if math.isinf(th):
        return math.inf
    power_of_two = math.log2(th).is_integer()
    match readings.exponent:
        case "log2(th)+1":
            e = math.ceil(math.log2(th) + 1)
        case "floor":
            e = math.floor(math.log2(th)) + 1
        case "figure 4" if not power_of_two:
            e = math.ceil(math.log2(th - 1))
        case _:
            e = math.ceil(math.log2(th + 1))
    less = (1 if k == 1 else 2) if readings.sum_case == "printed" else (2 if k == 1 else 1)
    return 2.0**e - less + (0 if power_of_two else th)


def slow_start_stage(x: float, left: float, th: float, window: int, rtt: float, s: float, readings: Readings) -> Stage:
    """A loss in slow start: (7) to (9), (12) without R_TO, (5), (13)."""
    c = window_number(x, window, readings)
    y = window_size(left, c, window, readings)
    if readings.cap == "threshold":
        y = min(y, th)
    b = sent_in_window(x, c, window, readings)
    again = y - b + 1
    sent = max(1.0, x + again)
    return Stage(
        time_s=stalled_s(sent, window, rtt, s, readings) + sent * s,
        left=left - x + (again if readings.left == "window added again" else 0),
        threshold=_halved(sent if readings.halved == "stage" else y, readings),
    )


def window_number(x: float, window: int, readings: Readings) -> int:
    """C(k), (7): number of the window that holds packet x."""
    if window == 1:
        return max(1, math.ceil(math.log2(x + 1)))
    if readings.window_number == "least number":
        return max(1, math.ceil(math.log2(x + 2)) - 1)
    return max(1, math.ceil(math.log2(max(1.0, x))))


def window_size(left: float, c: int, window: int, readings: Readings) -> float:
    """y(k), (8): packets in that window, fewer where the data end in it."""
    if window == 2 and readings.window_size == "first window":
        return left - 2.0**c + 2 if left < 2.0 ** (c + 1) - 2 else 2.0**c
    return 2.0 ** (c - 1) - (2.0**c - left) + 1 if left < 2.0**c else 2.0 ** (c - 1)


def sent_in_window(x: float, c: int, window: int, readings: Readings) -> float:
    """b(k), (9): packets of that window sent before the loss."""
    before = 2.0**c - 2 if window == 2 else 2.0 ** (c - 1) - 1  # the sum in (9)
    match readings.before_loss:
        case "sum":
            b = x + 1 - before
        case "without the lost packet":
            b = x - before
        case _:
            b = x - 2.0**c if window == 2 else x + 1 - 2.0 ** (c - 1)
    return max(0.0, b) if readings.negative_b == "zero" else b


def congestion_stage(
    x: float, left: float, th: float, reached: float, rtt: float, s: float, readings: Readings
) -> Stage:
    """A loss in congestion avoidance: (14), (15), (16) without R_TO, (18), (17)."""
    rounds = _avoidance_rounds(x - reached, th, readings)
    sent = x + 1 if readings.congestion_sent == "x + 1" else x
    return Stage(
        time_s=stalled_s(reached, 1, rtt, s, readings) + sent * s + rounds * rtt,
        left=left - x,
        threshold=_halved(x + 1 if readings.halved == "stage" else th + rounds, readings),
    )


def stalled_s(packets: float, window: int, rtt: float, s: float, readings: Readings) -> float:
    """ST(X), (10), (11), (14): how long the server waits for acknowledgements while its window doubles."""
    to_whole = math.floor if readings.stalls == "floor" else math.ceil
    if window == 2:
        q = to_whole(math.log2(2 + rtt / s))
        exact = readings.windows == "first window"
        u_less_one = math.ceil(math.log2(packets + 2)) - 2 if exact else math.ceil(math.log2(packets + 1) - 1)
    else:
        q = to_whole(math.log2(1 + rtt / s)) + 1
        u_less_one = math.ceil(math.log2(packets + 1)) - 1
    rho = max(0, min(q, u_less_one))
    return rho * (rtt + window * s) - window * (2.0**rho - 1) * s


def rest_s(left: float, th: float, k: int, window: int, rtt: float, s: float, readings: Readings) -> float:
    """R, (3): the packets left after the last loss."""
    reached = sum_to_threshold(th, k, readings)
    if left < reached:
        return stalled_s(left, window, rtt, s, readings) + left * s
    return stalled_s(reached, 1, rtt, s, readings) + left * s + _avoidance_rounds(left - reached, th, readings) * rtt


def _avoidance_rounds(packets: float, th: float, readings: Readings) -> float:
    """Round trips of so many packets in congestion avoidance: one each, or windows of th + 1, th + 2, ... packets."""
    if readings.avoidance == "rtt a packet" or packets <= 0:
        return packets
    return math.ceil(math.sqrt((th + 0.5) ** 2 + 2 * packets) - (th + 0.5))


def _halved(packets: float, readings: Readings) -> float:
    """th(k+1), (13), (17)."""
    least = 2.0 if readings.floor == "2 packets" else 2.0 * 8 * MTU_BYTES
    return max(float(math.ceil(packets / 2)), least)
