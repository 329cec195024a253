"""Reads the `trace` of a direction: delivery opportunities, or values over time, which become events of the link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ..core.link_types import LinkImpairment, Opportunities
from ..experiment.fields import Reader
from ..experiment.grammar import DIRECTION, TRACE
from ..experiment.traces import MS, TraceContent, find_trace, read_trace

OPPORTUNITY_BYTES, OVERHEAD_BYTES = 1504, 4
"""mahimahi's: a packet of 1,500 bytes and the 4 bytes that a TUN device puts before it (frontend/link_queue.cc)."""
FIELDS = {"rate": "rate_bit_s", "one_way_delay": "one_way_delay_ns", "loss": "loss_ratio"}
"""Column -> field of the shape."""
MOST_ROWS = 10_000
MOST_WAITING = (1 << 16) - 2
"""Packets in a queue before opportunities: of so many their program keeps when each begins (testbed:
delivery_program.LARGEST_RING).
"""
LINGER_MS = 10_000
"""A cell ends at most so long after its duration."""
CONSTANT = "belongs to a rate that does not change"
EXAMPLE = 'trace = { file = "lte.trace", window = "100 ms" }'


@dataclass(frozen=True, slots=True)
class ValueTrace:
    """Values over time: (ns, field -> value), the first at 0. period_ns: then they begin anew; None: the last stay.
    mean_bit_s: of the rate, over the period or up to the last row; None if there is no rate.
    """

    rows: tuple[tuple[int, Mapping[str, Any]], ...]
    period_ns: int | None
    mean_bit_s: int | None

    def shapes(self, shape: LinkImpairment, until_ns: int) -> Iterator[tuple[int, LinkImpairment]]:
        """(ns from T0, the direction from then on) of every change after its beginning."""
        base_ns, before = 0, shape
        while True:
            for at_ns, values in self.rows:
                if base_ns + at_ns >= until_ns:
                    return
                now = msgspec.structs.replace(shape, **values)
                if now != before:
                    yield base_ns + at_ns, now
                before = now
            if self.period_ns is None:
                return
            base_ns += self.period_ns


@dataclass(frozen=True, slots=True)
class Traced:
    """What a trace says of a direction: fields of its shape at the beginning, and what changes later."""

    says: frozenset[str]
    """Keys that it takes the place of."""
    begins: Mapping[str, Any]
    trace: ValueTrace | None


def read_traced(reader: Reader, files: Mapping[str, bytes]) -> Traced | None:
    """The trace of a direction; None if there is none, or it is wrong (the problem is collected)."""
    item = reader.item.get("trace")
    if item is None:
        return None
    if isinstance(item.value, str):
        item = item.with_value({"file": item})
    elif not isinstance(item.value, dict):
        reader.problem("trace", f"is a file, or a table with one; for example trace = {DIRECTION['trace'].example}")
        return None
    inner = reader.below(item, TRACE)
    before = len(reader.problems)
    for key in item.table():
        if key not in TRACE:
            inner.problem(key, f'unknown key "{key[:40]}"; a trace has {", ".join(TRACE)}')
    name = inner.text("file") if inner.need("file") else None
    content = find_trace(name, files) if name else None
    if name and content is None:
        said = f'there is no file "{name[:80]}" beside the spec, nor a trace of that name with netwarp'
        reader.problem("trace", f"{said}; for example trace = {DIRECTION['trace'].example}")
    if content is None or len(reader.problems) > before:
        return None
    try:
        read = read_trace(content)
    except ValueError as error:  # UnicodeDecodeError is one
        reader.problem("trace", f"{name} {error}")
        return None
    if read.rows:
        return _values(read, inner, reader)
    window_ns = inner.whole("window")
    if window_ns is not None:
        return _rates(read, window_ns, inner, reader)
    return _opportunities(str(name), read, inner, reader)


def _refuse(keys: Iterator[str] | tuple[str, ...], why: str, reader: Reader) -> None:
    for key in keys:
        if reader.has(key):
            reader.problem(key, f"{why}; leave {key} out")


def _after(inner: Reader, default: str, known: tuple[str, ...]) -> str:
    after = inner.text("after") or default
    if after not in known:
        inner.problem("after", f'is one of {", ".join(known)} for such a trace; for example after = "{default}"')
    return after


def _values(read: TraceContent, inner: Reader, reader: Reader) -> Traced:
    """Rows of a CSV."""
    _refuse(("window", "opportunity", "overhead"), "is for a trace of opportunities", inner)
    after = _after(inner, "hold", ("hold", "repeat"))
    columns = read.rows[0][1]
    if "rate" in columns:
        _refuse(("rate",), "stands in the trace", reader)
        _refuse(("burst", "slots"), CONSTANT, reader)
    if "loss" in columns:
        _refuse(("burst_loss",), "netem has one loss model, and the trace has losses", reader)
    rows = list(read.rows)
    period_ns = rows[-1][0] if after == "repeat" else None
    if after == "repeat":
        last = rows.pop()
        if not rows or last[1] != rows[0][1]:
            said = "repeats from its last row on, which has to say what the first says"
            inner.problem("after", f'{said}; for example after = "hold"')
            rows = rows or [last]
    lowest = DIRECTION["rate"].low or 0
    if any(values.get("rate", lowest) < lowest for _, values in rows):
        said = 'has a rate below 1 kbit/s, at which a packet takes seconds; an outage is an event, action = "blackhole"'
        reader.problem("trace", said)
    return _traced(tuple(_fields(rows)), period_ns, reader)


def _fields(rows: list[tuple[int, Mapping[str, float]]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for at_ns, values in rows:
        yield at_ns, {FIELDS[key]: float(value) if key == "loss" else int(value) for key, value in values.items()}


def _traced(rows: tuple[tuple[int, Mapping[str, Any]], ...], period_ns: int | None, reader: Reader) -> Traced:
    if len(rows) > MOST_ROWS:
        reader.problem("trace", f"has {len(rows)} rows, at most {MOST_ROWS}; let each hold for longer")
    mean = None
    if "rate_bit_s" in rows[0][1]:
        ends = [at_ns for at_ns, _ in rows[1:]] + ([period_ns] if period_ns is not None else [])
        spans = [end - at_ns for (at_ns, _), end in zip(rows, ends, strict=False)]
        bits = sum(values["rate_bit_s"] * span for (_, values), span in zip(rows, spans, strict=False))
        mean = bits // sum(spans) if spans else rows[0][1]["rate_bit_s"]
    says = frozenset(key for key, field in FIELDS.items() if field in rows[0][1])
    return Traced(says, rows[0][1], ValueTrace(rows, period_ns, mean))


def _rates(read: TraceContent, window_ns: int, inner: Reader, reader: Reader) -> Traced:
    """Opportunities as rates, each the mean of a window; a window without any is part of the next that has one."""
    after = _after(inner, "repeat", ("repeat", "hold"))
    _refuse(("rate",), "stands in the trace", reader)
    _refuse(("burst", "slots"), CONSTANT, reader)
    _refuse(("overhead",), "is of opportunities", inner)
    size = inner.whole("opportunity") or OPPORTUNITY_BYTES - OVERHEAD_BYTES
    times = read.opportunities_ms
    period_ns = times[-1] * MS
    rows: list[tuple[int, Mapping[str, Any]]] = []
    begins_ns, taken = 0, 0
    while begins_ns < period_ns:
        ends_ns = begins_ns
        count = 0
        while not count and ends_ns < period_ns:
            ends_ns = min(ends_ns + window_ns, period_ns)
            while taken + count < len(times) and times[taken + count] * MS <= ends_ns:
                count += 1
        rows.append((begins_ns, {"rate_bit_s": max(1000, count * size * 8 * 10**9 // (ends_ns - begins_ns))}))
        begins_ns, taken = ends_ns, taken + count
    return _traced(tuple(rows), period_ns if after == "repeat" else None, reader)


def _opportunities(name: str, read: TraceContent, inner: Reader, reader: Reader) -> Traced:
    after = _after(inner, "repeat", ("repeat", "end"))
    _refuse(("rate",), "opportunities are in place of a rate", reader)
    said = f"stands before a rate, and opportunities are none; use them as rates, {EXAMPLE}, or leave aqm out"
    if reader.has("aqm"):
        reader.problem("aqm", said)
    _refuse(("burst", "slots"), "opportunities are in place of a rate", reader)
    times = read.opportunities_ms
    size = inner.whole("opportunity") or OPPORTUNITY_BYTES
    overhead = inner.whole("overhead")
    gaps = tuple(now - before for before, now in zip((0, *times), times, strict=False))
    traced = Opportunities(
        file=name, sha256=read.sha256, gaps_ms=gaps, period_ms=times[-1] if after == "repeat" else None,
        bytes=size, overhead_bytes=OVERHEAD_BYTES if overhead is None else overhead,
        mean_bit_s=max(1, len(times) * size * 8 * 1000 // times[-1]),
    )  # fmt: skip
    return Traced(frozenset({"rate"}), {"opportunities": traced}, None)


def within(shape: LinkImpairment, duration_ns: int) -> LinkImpairment:
    """The shape with the opportunities that a cell of that duration can reach."""
    traced = shape.opportunities
    if not isinstance(traced, Opportunities):
        return shape
    at_ms, reach_ms = 0, duration_ns // MS + LINGER_MS
    for number, gap in enumerate(traced.gaps_ms):
        at_ms += gap
        if at_ms > reach_ms:
            kept = msgspec.structs.replace(traced, gaps_ms=traced.gaps_ms[: number + 1])
            return msgspec.structs.replace(shape, opportunities=kept)
    return shape
