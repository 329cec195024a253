"""Profiles as text: each configured number beside the measured one (netem-profiles/README.md, `netwarp profiles`)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..core.invocation import command
from ..core.numbers import given
from ..core.types import LinkImpairment
from ..experiment import list_profiles
from ..experiment.problems import Problems
from ..experiment.profiles import PROFILES, read_profile
from ..measure.calibration.datagram_probes import read_link
from ..measure.calibration.expected import delays_of
from ..store.calibration import Row

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


def profile_table(rows: Sequence[Row]) -> str:
    """Markdown, with the marks around it. A number is `configured → measured`; "?" where nothing was measured."""
    lines = [BEGIN, HEAD, "| --- " * HEAD.count(" | ") + "| --- |\n"]
    for profile in list_profiles():
        lines += profile_lines(profile, [row for row in rows if row.probe == profile])
    lines.append("\n")
    for profile, title in list_profiles().items():
        order = f"; delays {_order(profile)}" if _order(profile) else ""
        words = f"- **{profile}**: {title}{order}. Source: {source_of(profile)}."
        lines += [f"{line}\n" for line in textwrap.wrap(words, 150, subsequent_indent="  ", break_on_hyphens=False)]
    return "".join([*lines, END])


def source_of(profile: str) -> str:
    """The source of a profile's numbers, as it states it."""
    item = read_profile(PROFILES / f"{profile}.toml", Problems())
    source = item.get("source") if item is not None else None
    return "" if source is None else str(source.value)


def events_of(profile: str) -> dict[str, str]:
    """Name -> what a profile's own events say, as in its file."""
    item = read_profile(PROFILES / f"{profile}.toml", Problems())
    events = item.get("event") if item is not None else None
    table = events.table() if events is not None else {}
    return {
        name: ", ".join(f"{key} = {child.value}" for key, child in event.table().items())
        for name, event in table.items()
    }


def _order(profile: str) -> str:
    forward = read_link(profile, 1)[0].forward
    return f"{forward.distribution}, {'in order' if forward.keeps_order else 'not'}" if forward.jitter_ns else ""


def profile_lines(profile: str, rows: Sequence[Row]) -> list[str]:
    """One line each way."""
    link, _ = read_link(profile, 1)
    lines = []
    for name, shape in (("there", link.forward), ("back", link.backward)):
        cells = [_cell(column, name, shape, rows) for column in COLUMNS]
        lines.append(f"| {profile if name == 'there' else ''} | {name} | {' | '.join(cells)} |\n")
    return lines


def _cell(column: _Column, way: str, shape: LinkImpairment, rows: Sequence[Row]) -> str:
    configured = column.configured(shape)
    if configured is None:
        return ""
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


def profile_words(name: str, title: str, rows: Sequence[Row]) -> list[str]:
    """A profile as lines of text; after each number the measured one, or how to measure it."""
    heads = [head.strip() for head in HEAD.strip("|\n").split("|")][2:]
    lines = [f"{name}: {title}"]
    mine = [row for row in rows if row.probe == name]
    for line in profile_lines(name, mine):
        _, way, *cells = (cell.strip() for cell in line.strip("|\n").split("|"))
        words = [f"{head} {cell.replace(' → ?', '')}" for head, cell in zip(heads, cells, strict=True) if cell]
        lines.append(f"  {way}: {'; '.join(words)}")
    lines += [f"  event {event}: {words}" for event, words in events_of(name).items()]
    if mine:
        lines.append("  configured → measured here (of jitter: what its distribution comes to)")
    else:
        lines.append(f"  not measured on this machine yet: {command('calibrate', name)}")
    return [*lines, f"  source: {source_of(name)}"]
