"""The messages of one direction of a flow: when each is due, its size and its stream, drawn from the cell's seed.

Draws follow from the seed, the flow's name and what is drawn alone, by the inverse of each law's distribution function
over `random.Random.random()`, so that every variant of a cell sends the same messages at the same times. Times are in
whole microseconds.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Iterator
from statistics import NormalDist
from typing import Literal

import msgspec

US = 1000
MOST_MESSAGES = 1_000_000
"""In one direction of one flow, of those that are listed one by one."""
LawKind = Literal["fixed", "uniform", "exponential", "lognormal", "pareto"]
Times = Literal["gaps", "think", "file"]
Row = tuple[int, int, int]
"""Time in ns (from the flow's start, or after the peer's message), bytes, stream."""


class Law(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A distribution of times (ns) or of sizes (bytes).

    Both numbers are floats, also where they are whole: a cell's JSON must not change when it is read back.
    scale: the value of `fixed`, the lower end of `uniform`, the mean of `exponential`, the median of `lognormal`, the
    least value of `pareto`. shape: the upper end of `uniform`, the standard deviation of the logarithm (`lognormal`),
    the exponent (`pareto`; the mean is scale * shape / (shape - 1)).
    """

    kind: LawKind
    scale: float
    shape: float = 0.0

    @property
    def mean(self) -> float:
        """The mean of the values, before any bound on them; infinite for a Pareto law with a shape of at most 1."""
        match self.kind:
            case "uniform":
                return (self.scale + self.shape) / 2
            case "lognormal":
                return self.scale * math.exp(self.shape**2 / 2)
            case "pareto":
                return self.scale * self.shape / (self.shape - 1) if self.shape > 1 else math.inf
        return self.scale

    def draws(self, source: random.Random) -> Iterator[float]:
        """Values without end."""
        if self.kind == "fixed":
            return itertools.repeat(self.scale)
        return (self.at(source.random()) for _ in itertools.repeat(None))

    def at(self, u: float) -> float:
        """The value below which a share u (0 <= u < 1) of all lie."""
        match self.kind:
            case "fixed":
                return self.scale
            case "uniform":
                return self.scale + u * (self.shape - self.scale)
            case "exponential":
                return -self.scale * math.log1p(-u)
            case "lognormal":
                return self.scale * math.exp(self.shape * NormalDist().inv_cdf(u)) if u > 0 else 0.0
        return float(self.scale * (1 - u) ** (-1 / self.shape))


class Messages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The messages of one direction, where they are listed one by one.

    times: `gaps`: each is due a gap after the one before, the first a gap after the flow's start; `think`: a time after
    a message of the other end has arrived; `file`: `rows` has them. wait: the gaps or the thinking times. burst: that
    many are due at each instant. on, off: gaps pass in turn during a time `on` and stand still during a time `off`.
    largest_bytes, least_bytes: other sizes are cut to these. streams: of SCTP, round robin.
    """

    times: Times
    sizes: Law
    largest_bytes: int
    streams: int = 1
    wait: Law | None = None
    burst: int = 1
    on: Law | None = None
    off: Law | None = None
    rows: tuple[Row, ...] = ()
    least_bytes: int = 1

    @property
    def random(self) -> bool:
        """True if anything of them is drawn."""
        laws = (self.sizes, self.wait, self.on, self.off)
        return self.times != "file" and any(law is not None and law.kind != "fixed" for law in laws)

    def count(self, span_ns: int, cycle_ns: int = 0) -> float:
        """About how many there are in span_ns. cycle_ns: the time of flight there and back, for thinking times."""
        if self.times == "file":
            return len(self.rows)
        assert self.wait is not None
        mean = self.wait.mean + (cycle_ns if self.times == "think" else 0)
        share = 1.0
        if self.on is not None and self.off is not None and math.isfinite(self.off.mean):
            share = self.on.mean / (self.on.mean + self.off.mean) if math.isfinite(self.on.mean) else 1.0
        return self.burst * (1 + share * span_ns / max(mean, US))


def message_rows(messages: Messages, seed: int, flow: str, span_ns: int, cycle_ns: int = 0) -> list[Row]:
    """The messages of a direction (`flow`: its name) in the order in which they are sent.

    span_ns: from the flow's start to its end. cycle_ns: the least time from a message to its answer: thinking times are
    drawn for as many as fit, which is more than can be sent.
    """
    if messages.times == "file":
        return list(messages.rows)
    assert messages.wait is not None
    draw = {what: _source(seed, flow, what) for what in ("times", "sizes", "on", "off")}
    waits = messages.wait.draws(draw["times"])
    if messages.times == "think":
        most = min(MOST_MESSAGES, span_ns // max(cycle_ns, US) + 1)
        times: Iterator[int] = (_whole_us(wait) for wait in itertools.islice(waits, most))
    else:
        times = _due(messages, waits, draw, span_ns)
    least, most = messages.least_bytes, messages.largest_bytes
    sizes = (min(most, max(least, round(size))) for size in messages.sizes.draws(draw["sizes"]))
    streams = itertools.cycle(range(messages.streams))
    return list(zip(times, sizes, streams))  # noqa: B905  sizes and streams have no end


def _due(messages: Messages, waits: Iterator[float], draw: dict[str, random.Random], span_ns: int) -> Iterator[int]:
    """The instants up to span_ns, each as often as messages are due then."""
    gaps = (max(US, _whole_us(wait)) for wait in waits)
    active = itertools.accumulate(gaps)  # in time that counts only while the source is on
    on, off = messages.on, messages.off
    if on is None or off is None:
        instants: Iterator[int] = active
    else:
        instants = _with_pauses(active, on.draws(draw["on"]), off.draws(draw["off"]))
    upto = itertools.takewhile(lambda instant: instant < span_ns, instants)
    return itertools.islice((instant for instant in upto for _ in range(messages.burst)), MOST_MESSAGES)


def _with_pauses(active: Iterator[int], on: Iterator[float], off: Iterator[float]) -> Iterator[int]:
    """Instants of a clock that stands still during pauses, by a clock that does not."""
    until, paused = _whole_us(next(on)), 0
    for instant in active:
        while instant > until:
            until += max(US, _whole_us(next(on)))
            paused += _whole_us(next(off))
        yield instant + paused


def _whole_us(time_ns: float) -> int:
    return round(min(time_ns, 1e18) / US) * US


def _source(seed: int, flow: str, what: str) -> random.Random:
    digest = hashlib.sha256(b"%d\0messages\0%b\0%b" % (seed, flow.encode(), what.encode())).digest()
    return random.Random(int.from_bytes(digest[:8]))
