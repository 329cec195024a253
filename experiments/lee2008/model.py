"""lee2008's model: its equations, the paper's Table 3 beside them, and the search for the reading that misses it least.

    .venv/bin/python experiments/lee2008/model.py --loss 1% --rate 40kbit/s --rtt 256ms    a condition
    .venv/bin/python experiments/lee2008/model.py [--reading NAME] [--read SWITCH=VALUE]   Table 3
    .venv/bin/python experiments/lee2008/model.py --search 200                             the search
    .venv/bin/python experiments/lee2008/model.py --published                              rows of published.csv

Y.-J. Lee: Mean Response Delay Estimation for HTTP over SCTP in Wireless Internet (J. Korea Contents Association 8(6),
2008, pp. 43-53): equations (1) to (18) and Figure 4. Several losses, none repaired by fast retransmit. The names of the
functions' arguments are the paper's symbols: p, rtt (s), s = mtu / mu (s, one packet on the link), x, y, b, th
(packets), k = 1, 2, ... (the loss). The cost is O(alpha), so at most O(packets): a loop over the losses expected, each
step of it constant. model.md says what is found with this file. It is one file so that it runs as it is.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args, get_type_hints

import numpy as np
import numpy.typing as npt
from netwarp.core.errors import NetwarpError, SpecError
from netwarp.core.numbers import fixed, percent
from netwarp.core.units import Kind, QuantityError, parse_quantity
from netwarp.measure.models import throughput_models as rates

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
    prints, and the default. The flags are those of the list in model.md.
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

# The best that the search of model.py came to for Table 3 with its columns read as B there.
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
        lost = rates.any_lost(p, left)
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


Columns = Literal["A", "B", "C"]
COLUMNS: dict[Columns, str] = {
    "A": "columns as printed",
    "B": "model and testbed swapped in the rows of p",
    "C": "model and testbed swapped in the rows of mu and rtt",
}
"""Three rows of Table 3 (p = 1 %, mu = 40 kbit/s, rtt = 256 ms) are one condition and print different values, so its
columns are taken in three ways."""

NAMED_READINGS: dict[str, Readings] = {
    "printed": PRINTED,
    "corrected": CORRECTED,
    "A": replace(
        BEST_FOR_B, exponent="log2(th+1)", before_loss="closed form", floor="2 mtu in bits", avoidance="rtt a packet",
        rest_window="one",
    ),
    "B": BEST_FOR_B,
    "C": Readings(
        rounded="ceil", left="window once", exponent="figure 4", window_size="first window", cap="none",
        before_loss="sum", negative_b="zero", stalls="floor", windows="first window", floor="2 mtu in bits",
        losses="round", rest_window="initial without loss", scope="objects in turn", mtu_is="packet",
        kilobyte="1024 B", timeout="at least 200 ms",
    ),
}  # fmt: skip
"""A, B, C: for each way to read the columns the best that the search came to."""


@dataclass(frozen=True)
class Row:
    """A printed row: its condition, and the four times in s."""

    varied: Literal["p", "mu", "rtt"]
    loss: float
    rate_bit_s: float
    rtt_s: float
    model_tcp_s: float
    model_sctp_s: float
    testbed_tcp_s: float
    testbed_sctp_s: float

    @property
    def level(self) -> str:
        """The level of what its block varies, as spec.toml and published.csv write it."""
        if self.varied == "mu":
            mega = self.rate_bit_s >= 1e6
            return f"{fixed(self.rate_bit_s / (1e6 if mega else 1e3), 0)} {'M' if mega else 'k'}bit/s"
        return percent(self.loss) if self.varied == "p" else f"{fixed(self.rtt_s * 1e3, 0)} ms"


TABLE3 = (
    Row("p", 0.004, 40e3, 0.256, 20.76, 20.25, 18.19, 18.11),
    Row("p", 0.01, 40e3, 0.256, 20.33, 20.30, 18.22, 18.13),
    Row("p", 0.02, 40e3, 0.256, 21.26, 20.75, 18.49, 18.34),
    Row("mu", 0.01, 40e3, 0.256, 18.27, 18.13, 21.33, 20.82),
    Row("mu", 0.01, 400e3, 0.256, 4.91, 4.41, 5.09, 4.58),
    Row("mu", 0.01, 3000e3, 0.256, 3.69, 3.28, 3.99, 3.48),
    Row("rtt", 0.01, 40e3, 0.055, 14.78, 14.72, 13.71, 13.60),
    Row("rtt", 0.01, 40e3, 0.080, 14.86, 14.76, 14.55, 14.47),
    Row("rtt", 0.01, 40e3, 0.256, 18.22, 18.13, 21.33, 20.82),
)


def printed_model(row: Row, columns: Columns) -> tuple[float, float]:
    """The paper's model for TCP and SCTP, as its columns are read."""
    swapped = (columns == "B" and row.varied == "p") or (columns == "C" and row.varied != "p")
    return (row.testbed_tcp_s, row.testbed_sctp_s) if swapped else (row.model_tcp_s, row.model_sctp_s)


def model_times(readings: Readings) -> Values:
    """The model in each row of Table 3: columns TCP and SCTP, in s."""
    loss, rate, rtt = (np.array([getattr(row, name) for row in TABLE3]) for name in ("loss", "rate_bit_s", "rtt_s"))
    return np.column_stack(
        [
            response_time_s(loss, rate, rtt, protocol="tcp", readings=readings),
            response_time_s(loss, rate, rtt, protocol="sctp", readings=readings),
        ]
    )


def published_rows() -> Iterator[str]:
    """The rows of published.csv of which the metrics lee2008_time_s and lee2008_corrected_s are made."""
    for metric, name in (("lee2008_time_s", "B"), ("lee2008_corrected_s", "corrected")):
        for row, times in zip(TABLE3, model_times(NAMED_READINGS[name]), strict=True):
            levels = {"p": "", "mu": "", "rtt": "", row.varied: row.level}
            for protocol, time_s in zip(("tcp", "sctp"), times.tolist(), strict=True):
                words = ("paper_model", metric, row.varied, protocol, *levels.values(), repr(time_s))
                yield ",".join((*words, f"computed here: model.py --reading {name}"))


@dataclass(frozen=True)
class Miss:
    """The distance of a reading from Table 3: root mean square and largest of 18 relative differences."""

    rms: float
    largest: float


def miss(readings: Readings, columns: Columns) -> Miss:
    """The distance of that reading from the table with those columns."""
    printed = np.array([printed_model(row, columns) for row in TABLE3])
    relative = np.abs(model_times(readings) / printed - 1)
    return Miss(rms=float(np.sqrt(np.mean(relative**2))), largest=float(relative.max()))


@dataclass(frozen=True)
class Yardsticks:
    """The duration of the same transfer by other models, in s. None of them knows the rate of a link: on_link_s is the
    sending time of the packets alone, and each of the others is at least that.
    """

    cardwell_s: float
    pftk_s: float
    mathis_s: float
    on_link_s: float


def yardsticks(loss: float, rate_bit_s: float, rtt_s: float, readings: Readings = PRINTED) -> Yardsticks:
    """Cardwell, PFTK and Mathis for the paper's page over TCP: R_TO = 3/2 rtt, a window of what the path holds (at
    least 1), an acknowledgement for two packets, without handshake. Without loss PFTK and Mathis give no rate, so the
    link's replaces theirs.
    """
    check_condition(loss, rate_bit_s, rtt_s)
    page = Page()
    packets, times = packets_of(page, "tcp", readings)
    packets *= times
    rtt_s = round_trip_s(rtt_s, readings)
    packet_s = 8 * (page.mtu_bytes + (HEADER_BYTES["tcp"] if readings.mtu_is == "payload" else 0)) / rate_bit_s
    window, timeout_s = float(np.ceil(rtt_s / packet_s) + 1), 1.5 * rtt_s
    on_link = packets * packet_s
    cardwell = cardwell_s(
        packets, loss, rtt_s, timeout_s=timeout_s, window_packets=window, initial_window=INITIAL_WINDOW["tcp"]
    )
    pftk = mathis = 0.0
    if loss > 0:
        pftk = packets / rates.pftk_packets_s(loss, rtt_s, timeout_s, window, b=2)
        mathis = packets / rates.mathis_packets_s(loss, rtt_s, b=2)
    return Yardsticks(max(cardwell, on_link), max(pftk, on_link), max(mathis, on_link), on_link)


def cardwell_s(
    packets: int, p: float, rtt_s: float, *, timeout_s: float, window_packets: float, initial_window: int, b: int = 2
) -> float:
    """N. Cardwell, S. Savage, T. Anderson: Modeling TCP Latency (INFOCOM 2000), section 3, without its terms for the
    handshake and the first delayed acknowledgement: slow start (eq. 5, 11, 15), the loss that ends it (16 to 20),
    congestion avoidance for the rest, at the rate at which PFTK's packets arrive (21 to 23). b: packets per ACK.
    """
    growth = 1 + 1 / b
    lost = rates.any_lost(p, packets)
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
    by_timeout = rates.timeout_share(p, reached)
    loss = lost * (by_timeout * rates.backed_off(p) * timeout_s / (1 - p) + (1 - by_timeout) * rtt_s)
    # eq. 22: of a window that loses packets half arrives, of a series of timeouts one packet
    w, share, seconds = rates.pftk_cycle(p, rtt_s, timeout_s, window_packets, b)
    return slow_start + loss + (packets - in_slow_start) / rates.per_second((1 - p) / p + w / 2 + share, seconds)


def choices() -> dict[str, tuple[str, ...]]:
    """Each switch with its values, what the paper prints first."""
    hints = get_type_hints(Readings)
    return {field.name: get_args(hints[field.name]) for field in fields(Readings)}


def read(readings: Readings, switches: Mapping[str, str]) -> Readings:
    """A reading with some steps read otherwise. SpecError: a switch or value that there is not."""
    known = choices()
    for name, value in switches.items():
        if name not in known:
            raise SpecError(f'there is no switch "{name}"; there are {", ".join(known)}')
        if value not in known[name]:
            raise SpecError(f'{name} cannot be "{value}"; it is one of {", ".join(map(repr, known[name]))}')
    return replace(readings, **switches)  # type: ignore[arg-type]  # checked above


def search(starts: int, seed: int, with_losses: bool) -> None:
    """Prints the best of what descents by single switches and pairs of them, from random starts, came to: no more than
    that. with_losses: alpha = ceil(delta p), as printed, at each start.
    """
    draw = random.Random(seed)
    for columns in COLUMNS:
        tried: dict[Readings, float] = {}
        results = []
        for number in range(starts):
            switches = {name: draw.choice(values) for name, values in choices().items()} if number else {}
            if with_losses:
                switches["losses"] = "ceil"
            results.append(_descend(read(PRINTED, switches), columns, tried))
        best, readings = min(results, key=lambda pair: pair[0])
        largest = miss(readings, columns).largest
        print(f"{columns}: {len(tried)} readings tried, best rms {best:.4f}, largest {largest:.4f}")
        for name, value in vars(readings).items():
            print(f"    {name} = {value!r}" + ("" if value == getattr(PRINTED, name) else "   # not as printed"))


def _descend(start: Readings, columns: Columns, tried: dict[Readings, float]) -> tuple[float, Readings]:
    """The reading from which no change of one or two switches leads to a smaller miss."""

    def rms(readings: Readings) -> float:
        if readings not in tried:
            try:
                tried[readings] = miss(readings, columns).rms
            except (ValueError, OverflowError):
                tried[readings] = math.inf
        return tried[readings]

    best, at = rms(start), start
    while True:
        single = [{name: value} for name, values in choices().items() for value in values if value != getattr(at, name)]
        pairs = [a | b for a, b in itertools.combinations(single, 2) if a.keys() != b.keys()]
        near = [read(at, switches) for switches in single + pairs]
        value, candidate = min(((rms(one), one) for one in near), key=lambda pair: pair[0])
        if value >= best - 1e-12:
            return best, at
        best, at = value, candidate


def _print_condition(readings: Readings, name: str, loss: float, rate_bit_s: float, rtt_s: float) -> None:
    """The response times of a condition, the yardsticks, and what Table 3 prints of it."""
    tcp, sctp = (
        float(response_time_s(loss, rate_bit_s, rtt_s, protocol=protocol, readings=readings))
        for protocol in ("tcp", "sctp")
    )
    beside = yardsticks(loss, rate_bit_s, rtt_s, readings)
    for title, value in (
        ("E(T_tcp)", tcp),
        ("E(T_sctp)", sctp),
        ("Cardwell, TCP", beside.cardwell_s),
        ("PFTK, TCP", beside.pftk_s),
        ("Mathis, TCP", beside.mathis_s),
        ("the packets on the link", beside.on_link_s),
    ):
        print(f"{title:<24} {fixed(value, 2)} s")
    for row in TABLE3:
        if (row.loss, row.rate_bit_s, row.rtt_s) == (loss, rate_bit_s, rtt_s):
            model = f"{fixed(row.model_tcp_s, 2)} and {fixed(row.model_sctp_s, 2)} s"
            testbed = f"{fixed(row.testbed_tcp_s, 2)} and {fixed(row.testbed_sctp_s, 2)} s"
            print(f"Table 3, row of {row.varied:<3}      TCP and SCTP: model {model}, testbed {testbed}")
    least = {key: min(miss(each, columns).rms for columns in COLUMNS) for key, each in NAMED_READINGS.items()}
    asked = min(miss(readings, columns).rms for columns in COLUMNS)
    best = min(least, key=least.__getitem__)
    print(
        f'No reading fits Table 3: "{name}" misses it by {percent(asked)} (rms, columns taken as suits it best), '
        f'the best, "{best}", by {percent(least[best])}.'
    )


def _print_table3(readings: Readings, name: str) -> None:
    """Table 3 beside the reading, and how far it and the named ones miss the table."""
    left, groups = " " * 16, ("paper's model", "this reading", "paper's testbed")
    print(left + "  ".join(f"{group:>14}" for group in groups))
    print(left + "  ".join(f"{'TCP':>7}{'SCTP':>7}" for _ in groups))
    for row, (tcp, sctp) in zip(TABLE3, model_times(readings), strict=True):
        head = f"{row.varied:<3} {row.level:<12}"
        shown = (*printed_model(row, "A"), float(tcp), float(sctp), row.testbed_tcp_s, row.testbed_sctp_s)
        print(head + "  ".join("".join(f"{fixed(value, 2):>7}" for value in shown[at : at + 2]) for at in (0, 2, 4)))
    print()
    print("rms and largest relative difference over the 18 numbers, by how the columns are read:")
    for title, each in {name: readings, **NAMED_READINGS}.items():
        far = {columns: miss(each, columns) for columns in COLUMNS}
        words = "  ".join(f"{columns} {percent(off.rms)} ({percent(off.largest)})" for columns, off in far.items())
        print(f"  {title:<22} {words}")
    for columns, title in COLUMNS.items():
        print(f"  {columns}: {title}")
    print("No reading fits: A, B and C are the best that --search came to for those columns.")


def _number(text: str, option: str, kind: Kind) -> float:
    try:
        return float(parse_quantity(text, kind).value)
    except QuantityError as error:
        raise SpecError(f"{option}: {error}") from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SpecError(f'"{text}" is no SWITCH=VALUE; for example --read stalls=floor')
    return name, value


def main(argv: list[str] | None = None) -> None:
    """The condition asked for; without one, Table 3. Ends with status 2 where the arguments are wrong."""
    parser = argparse.ArgumentParser(description="mean response time of HTTP over TCP and SCTP by lee2008's model")
    parser.add_argument("--loss", help='ratio of packets lost, such as "1%%"')
    parser.add_argument("--rate", help='link rate, such as "40kbit/s"')
    parser.add_argument("--rtt", help='round-trip time, such as "256ms"')
    parser.add_argument("--reading", default="printed", choices=[*NAMED_READINGS], help="default: printed")
    parser.add_argument(
        "--read", action="append", default=[], metavar="SWITCH=VALUE", help="one step read otherwise; may be repeated"
    )
    parser.add_argument("--switches", action="store_true", help="list the switches and their values")
    parser.add_argument("--published", action="store_true", help="print the rows of published.csv")
    parser.add_argument("--search", type=int, metavar="STARTS", help="look for the reading that misses Table 3 least")
    parser.add_argument("--seed", type=int, default=1, help="of the search's starts (default: 1)")
    parser.add_argument("--with-losses", action="store_true", help="of the search: alpha = ceil(delta p), as printed")
    args = parser.parse_args(argv)
    try:
        readings = read(NAMED_READINGS[args.reading], dict(_pair(text) for text in args.read))
        name = args.reading + (" with --read" if args.read else "")
        given = {"--loss": args.loss, "--rate": args.rate, "--rtt": args.rtt}
        if args.switches:
            for switch, values in choices().items():
                print(f"{switch:<18} {' | '.join(values)}")
        elif args.published:
            print("\n".join(published_rows()))
        elif args.search:
            search(args.search, args.seed, args.with_losses)
        elif all(given.values()):
            kinds: tuple[Kind, ...] = ("ratio", "rate", "time")
            loss, rate, rtt_ns = (
                _number(text, option, kind) for (option, text), kind in zip(given.items(), kinds, strict=True)
            )
            _print_condition(readings, name, loss, rate, rtt_ns / 1e9)
        elif any(given.values()):
            raise SpecError(
                "a condition is --loss, --rate and --rtt; for example --loss 1% --rate 40kbit/s --rtt 256ms"
            )
        else:
            _print_table3(readings, name)
    except NetwarpError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
