"""An explained connection as text: its course, the network's part, the settings of both ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...captures.course import Moment
from ...captures.explanation import Explanation, Known
from ...core.lines import Line, columns, lines_text
from ...core.numbers import fixed, given, plain, scale, with_unit
from ...core.units import counted

MOST_MOMENTS = 40
MOST_STREAMS = 20
NAMES = {
    "sctp": (
        "rto_initial", "rto_min", "rto_max", "init_attempts", "init_max_timeout", "failover_threshold",
        "association_max_retrans", "heartbeat_interval", "initial_window", "max_burst", "sack_delay", "sack_frequency",
    ),
    "tcp": (
        "mss", "sack_permitted", "timestamps", "window_shift", "syn_timeout", "syn_retries", "initial_window",
        "rto_min", "rto_max", "ack_delay", "ack_frequency",
    ),
}  # fmt: skip
"""The settings of docs/spec.md that a capture may show; failover_threshold: T3 expiries in a row after which new data
still stays on its path (pf_retrans or path_max_retrans).
"""


def explanation_text(explained: Explanation, width: int | None = None) -> str:
    """The whole, as wide as a terminal of so many letters; None: a line each statement."""
    return lines_text(explanation_lines(explained), width)


def explanation_lines(explained: Explanation) -> Iterator[Line]:
    """Its course, the network's part, and what each end was set to."""
    connection = explained.connection
    yield Line("", f"{connection.protocol.upper()}  {connection.ends[0]} > {connection.ends[1]}")
    others = [point for point in explained.points if point != explained.point]
    also = f"; settings also from {', '.join(others)}" if others else ""
    yield Line("  ", f"seen at {explained.point}{also}")
    yield Line("")
    yield Line("  ", "What happened")
    first, last = explained.moments[: MOST_MOMENTS - 1], explained.moments[-1:]
    left_out = len(explained.moments) - MOST_MOMENTS
    shown = [_moment(moment) for moment in (explained.moments if left_out <= 0 else first)]
    if left_out > 0:
        shown.append(("", f"... {counted(left_out, 'more moment')} (--json has all)"))
        shown += [_moment(moment) for moment in last]
    yield from columns(shown, right={0}, indent="    ")
    if explained.network:
        yield Line("")
        yield Line("  ", "The network's part")
        for sentence in explained.network:
            yield Line("    ", sentence)
    if len(explained.streams) > 1 or any(row["message_delay_max_s"] is not None for row in explained.streams):
        yield Line("")
        yield Line("  ", "Streams")
        yield from _streams(explained)
    for end in (0, 1):
        mine = [known for known in explained.settings if known.end == end]
        if connection.protocol in NAMES and (mine or connection.protocol == "sctp"):
            yield Line("")
            yield Line("  ", f"{connection.ends[end]} was set to")
            yield from _settings(mine, NAMES[connection.protocol])


def _streams(explained: Explanation) -> Iterator[Line]:
    """A row each stream and direction; columns that are unknown in all rows are left out."""
    heads = {
        "stream": "stream", "messages": "messages", "new_user_bytes": "bytes", "retransmitted_chunks": "sent again",
        "hol_blocking_mean_s": "waits (mean)", "hol_blocking_max_s": "waits (max)",
        "message_delay_mean_s": "delay (mean)", "message_delay_max_s": "delay (max)",
    }  # fmt: skip
    rows = explained.streams[:MOST_STREAMS]
    names = [name for name in heads if any(row[name] is not None for row in rows)]
    texts = [("from", *(heads[name] for name in names))]
    for row in rows:
        values = [with_unit(row[name], "s") if name.endswith("_s") else fixed(row[name], 0) for name in names]
        texts.append((explained.connection.ends[row["direction"]], *values))
    yield from columns(texts, right=set(range(1, len(names) + 1)), indent="    ")
    if len(explained.streams) > len(rows):
        yield Line("    ", f"... {counted(len(explained.streams) - len(rows), 'more stream')} (--json has all)")


def _moment(moment: Moment) -> tuple[str, str]:
    return f"{fixed(moment.t_s, 3)} s", moment.text


def _settings(known: list[Known], names: Sequence[str]) -> Iterator[Line]:
    whys = ("; ".join(dict.fromkeys(reason for _, reason in each.because)) for each in known)
    yield from columns([(each.name, interval(each), why) for each, why in zip(known, whys, strict=True)], indent="    ")
    found = {each.name for each in known}
    if missing := [name for name in names if name not in found]:
        yield Line("    unknown: ", ", ".join(missing))


def interval(known: Known) -> str:
    """What is known, with its unit: "440 to 500 ms", "at least 3", "unknown"."""
    divisor, shown = scale([known.low, known.high], known.unit) if known.unit == "s" else (1.0, known.unit)
    low, high = (None if value is None else value / divisor for value in (known.low, known.high))
    unit = f" {shown}" if shown else ""
    if low is None and high is None:
        return "unknown"
    if low is not None and high is not None and plain(low, 3) == plain(high, 3):
        return f"{given(low, 3)}{unit}"
    if not low:
        return f"at most {given(high or 0, 3)}{unit}"
    if high is None:
        return f"at least {given(low, 3)}{unit}"
    return f"{given(low, 3)} to {given(high, 3)}{unit}"
