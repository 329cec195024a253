"""Profiles as text: each configured number beside the measured one (netem-profiles/README.md, `netwarp profiles`)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.invocation import command
from ..core.link_types import LinkImpairment, Opportunities
from ..core.numbers import given
from ..core.outside_text import markdown
from ..experiment import list_profiles
from ..experiment.problems import Problems
from ..experiment.profiles import PROFILES, read_profile
from ..measure.calibration.datagram_probes import read_link
from ..measure.calibration.datagrams import delays_of
from ..store.probe_rows import ProbeRow

BEGIN, END = "<!-- made by `netwarp calibrate --markdown` -->\n", "<!-- end of what is made -->\n"
HEAD = (
    "| profile | way | rate | one-way delay, mean | its standard deviation | loss | packets lost in a row | queue |\n"
)


@dataclass(frozen=True, slots=True)
class _Column:
    """configured: of a shape, None where there is none. quantity: beginning of the row's, with {} for the direction."""

    quantity: str
    unit: str
    scale: float
    configured: Callable[[LinkImpairment], float | None]


COLUMNS = (
    _Column("rate {}", "Mbit/s", 1e-6, lambda shape: shape.rate_bit_s),
    _Column("one-way delay {}, ", "ms", 1e3, lambda shape: delays_of(shape).mean_s),
    _Column("one-way delay {}, standard deviation", "ms", 1e3, lambda shape: delays_of(shape).deviation_s or None),
    _Column("loss {} ", "%", 100.0, lambda shape: _loss(shape) or None),
    _Column("mean run of losses {}", "", 1.0, lambda s: None if s.burst_loss is None else 1 / s.burst_loss.r_ratio),
    _Column("queue {}, most ever waiting", "packets", 1.0, lambda shape: shape.queue_packets),
)


def profile_table(rows: Sequence[ProbeRow]) -> str:
    """Markdown, with the marks around it. A number is `configured → measured`; "?" where nothing was measured."""
    lines = [BEGIN, HEAD, "| --- " * HEAD.count(" | ") + "| --- |\n"]
    for profile in list_profiles():
        lines += profile_lines(profile, [row for row in rows if row.probe == profile])
    lines.append("\n")
    for profile, title in list_profiles().items():
        order = f"; delays {_order(profile)}" if _order(profile) else ""
        words = f"- **{profile}**: {markdown(title)}{order}. Source: {markdown(source_of(profile))}."
        lines += [f"{line}\n" for line in textwrap.wrap(words, 150, subsequent_indent="  ", break_on_hyphens=False)]
    return "".join([*lines, END])


def _item(profile: str, key: str) -> Any:
    """What a profile's file has for a key; None if it has nothing."""
    item = read_profile(PROFILES / f"{profile}.toml", Problems())
    return None if item is None else item.get(key)


def source_of(profile: str) -> str:
    """The source of a profile's numbers, as it states it."""
    source = _item(profile, "source")
    return "" if source is None else str(source.value)


def _order(profile: str) -> str:
    forward = read_link(f'profile = "{profile}"')[0].forward
    return f"{forward.distribution}, {'in order' if forward.keeps_order else 'not'}" if forward.jitter_ns else ""


def profile_lines(profile: str, rows: Sequence[ProbeRow]) -> list[str]:
    """One line of the table for each way."""
    return [
        f"| {profile if way == 'there' else ''} | {way} | {' | '.join(cells)} |\n"
        for way, cells in _ways(profile, rows).items()
    ]


def _ways(profile: str, rows: Sequence[ProbeRow]) -> dict[str, list[str]]:
    """Way -> the text of each column."""
    link, _ = read_link(f'profile = "{profile}"')
    ways = {"there": link.forward, "back": link.backward}
    return {way: [_cell(column, way, shape, rows) for column in COLUMNS] for way, shape in ways.items()}


def _cell(column: _Column, way: str, shape: LinkImpairment, rows: Sequence[ProbeRow]) -> str:
    configured = column.configured(shape)
    traced = shape.opportunities
    if isinstance(traced, Opportunities) and column.quantity == "rate {}":
        return f"{given(traced.mean_bit_s * column.scale, 4)} {column.unit} (trace)"
    if configured is None:
        return ""
    if isinstance(traced, Opportunities):  # `netwarp calibrate buckets` measures them
        return f"{given(configured * column.scale, 4)} {column.unit}".rstrip()
    start = column.quantity.format(way)
    row = next((row for row in rows if row.quantity.startswith(start)), None)
    measured = "?" if row is None or row.measured is None else given(row.measured * column.scale, 4)
    return f"{given(configured * column.scale, 4)} → {measured} {column.unit}".rstrip()


def _loss(shape: LinkImpairment) -> float:
    model = shape.burst_loss
    if model is None:
        return shape.loss_ratio
    good, bad = model.r_ratio, model.p_ratio
    return (bad * model.bad_loss_ratio + good * model.good_loss_ratio) / (good + bad)


def profile_words(name: str, title: str, rows: Sequence[ProbeRow]) -> list[str]:
    """A profile as lines of text; after each number the measured one, or how to measure it."""
    heads = [head.strip() for head in HEAD.strip("|\n").split("|")][2:]
    lines = [f"{name}: {title}"]
    mine = [row for row in rows if row.probe == name]
    for way, cells in _ways(name, mine).items():
        words = [f"{head} {cell.replace(' → ?', '')}" for head, cell in zip(heads, cells, strict=True) if cell]
        lines.append(f"  {way}: {'; '.join(words)}")
    events = _item(name, "event")
    for event, item in (events.table() if events is not None else {}).items():
        lines.append(f"  event {event}: {', '.join(f'{key} = {child.value}' for key, child in item.table().items())}")
    if mine:
        lines.append("  configured → measured here (of jitter: what its distribution comes to)")
    elif isinstance(read_link(f'profile = "{name}"')[0].forward.opportunities, Opportunities):
        lines.append(f"  opportunities are measured by {command('calibrate', 'buckets')}")
    else:
        lines.append(f"  not measured on this machine yet: {command('calibrate', name)}")
    return [*lines, f"  source: {source_of(name)}"]
