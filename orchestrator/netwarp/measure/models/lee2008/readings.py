"""Readings of lee2008's equations: a named switch for each step that its text leaves open or prints wrongly.

The first value of each switch is what the paper prints. "Flag" numbers are those of the list in docs/lee2008-model.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, get_args, get_type_hints

from ....core.errors import SpecError

EqualIs = Literal["congestion avoidance", "slow start"]
SentBeforeLoss = Literal["with the lost packet", "without the lost packet"]
Rounding = Literal["none", "ceil", "floor", "round"]
Left = Literal["window added again", "window once"]
Exponent = Literal["log2(th+1)", "log2(th)+1", "figure 4", "floor"]
SumCase = Literal["printed", "swapped"]
WindowNumber = Literal["closed form", "least number"]
WindowSize = Literal["window of one", "first window"]
Cap = Literal["threshold", "none"]
BeforeLoss = Literal["closed form", "sum", "without the lost packet"]
NegativeB = Literal["kept", "zero"]
Stalls = Literal["ceil", "floor"]
Windows = Literal["printed", "first window"]
Halved = Literal["stage", "window"]
Floor = Literal["2 packets", "2 mtu in bits"]
Avoidance = Literal["rtt a packet", "rtt a window"]
CongestionSent = Literal["x + 1", "x"]
Losses = Literal["ceil", "round", "floor"]
RestWindow = Literal["one", "initial without loss"]
Scope = Literal["object", "objects together", "objects in turn", "page together"]
MtuIs = Literal["both", "payload", "packet"]
Kilobyte = Literal["1000 B", "1024 B"]
RttIs = Literal["rtt", "one-way delay"]
Timeout = Literal["3/2 rtt", "at least 200 ms", "at least 1 s"]
SetUp = Literal["none", "request", "handshake and request"]


@dataclass(frozen=True)
class Readings:
    """A reading of each open step. As built without arguments: the paper as printed."""

    equal_is: EqualIs = "congestion avoidance"  # flag 1: x(k) = A_th(k) (section II.1; after Figure 1 once x > A_th)
    sent_before_loss: SentBeforeLoss = "with the lost packet"  # flag 2: (4); the text says "without"
    rounded: Rounding = "none"  # flag 12: x(k) is not said to be rounded
    left: Left = "window added again"  # flag 3: (5) adds y - b + 1 to N - x, which holds them already
    exponent: Exponent = "log2(th+1)"  # flag 4: E of (6), three forms in print; "floor" is right
    sum_case: SumCase = "printed"  # flag 4: (6) has the sums of initial windows 1 and 2 the wrong way round
    window_number: WindowNumber = "closed form"  # flag 5: (7), k = 1: ceil(log2 x) is not the least j
    window_size: WindowSize = "window of one"  # flag 6: (8) holds for an initial window of 1 only
    cap: Cap = "threshold"  # flag 11: y <= th, which (9) does not know
    before_loss: BeforeLoss = "closed form"  # flag 7: (9), two expressions that differ; the third counts no lost packet
    negative_b: NegativeB = "kept"  # flag 7: b can turn negative
    stalls: Stalls = "ceil"  # flag 8: Q of (10), (11), (14); Kurose and Ross have floor
    windows: Windows = "printed"  # flag 8: U - 1 of (10)
    halved: Halved = "stage"  # flag 9: (13), (17) halve all that the stage sent; (1) halves the window
    floor: Floor = "2 packets"  # flag 9: 2 mtu is in bits and is compared with packets
    avoidance: Avoidance = "rtt a packet"  # flag 10: (3), (16)
    congestion_sent: CongestionSent = "x + 1"  # flag 11: (16)
    losses: Losses = "ceil"  # alpha
    rest_window: RestWindow = "one"  # flag 12: R uses (11) also where nothing was lost
    scope: Scope = "object"  # flag 13: what is sent: one object, or all five, together or one after another
    mtu_is: MtuIs = "both"  # flag 13: 536 B is payload and packet alike; or one of them, with headers
    kilobyte: Kilobyte = "1000 B"  # flag 13
    rtt_is: RttIs = "rtt"  # choi2009, of the same author, prints the one-way delay as RTT
    timeout: Timeout = "3/2 rtt"  # flag 13: R_TO without a minimum
    set_up: SetUp = "none"  # flag 13: no term for handshake and request

    @staticmethod
    def choices() -> dict[str, tuple[str, ...]]:
        """Each switch with its values, what the paper prints first."""
        hints = get_type_hints(Readings)
        return {field.name: get_args(hints[field.name]) for field in fields(Readings)}

    def read(self, **switches: str) -> Readings:
        """These readings with others in their place. SpecError: a switch or value that there is not."""
        known = self.choices()
        for name, value in switches.items():
            if name not in known:
                raise SpecError(f'there is no switch "{name}"; there are {", ".join(known)}')
            if value not in known[name]:
                raise SpecError(f'{name} cannot be "{value}"; it is one of {", ".join(map(repr, known[name]))}')
        return replace(self, **switches)  # type: ignore[arg-type]  # checked above


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

_NEAR = PRINTED.read(
    rounded="ceil",
    left="window once",
    window_number="least number",
    stalls="floor",
    windows="first window",
    halved="window",
    losses="round",
    scope="objects together",
    set_up="request",
)
"""The choices that the best readings for A and B share. `round` makes alpha 1, 1 and 3 at the table's 126 packets."""

BEST: dict[str, Readings] = {
    "corrected": CORRECTED,
    "A": _NEAR.read(negative_b="zero", floor="2 mtu in bits"),
    "B": _NEAR.read(
        exponent="log2(th)+1", before_loss="sum", negative_b="zero", avoidance="rtt a window",
        rest_window="initial without loss",
    ),
    "C": PRINTED.read(
        rounded="ceil", left="window once", exponent="figure 4", window_size="first window", cap="none",
        before_loss="sum", negative_b="zero", stalls="floor", windows="first window", floor="2 mtu in bits",
        losses="round", rest_window="initial without loss", scope="objects in turn", mtu_is="packet",
        kilobyte="1024 B", timeout="at least 200 ms",
    ),
}  # fmt: skip
"""`corrected`, and for each way to read Table 3's columns the best that benchmarks/lee2008_readings.py came to."""
