"""Figures over time and tables of events that a spec asks for, read from its [figure.*] and [table.*]."""

from __future__ import annotations

from ..core.outputs import EventTable, TimeSeries
from .fields import Field, read_quantity
from .grammar import FIGURE, TABLE
from .problems import Problems, nearest
from .read_outputs import Names, named, read_flows, read_selector, read_title
from .toml_positions import Item

SERIES: dict[str, str] = {
    "cwnd_bytes": "bytes",
    "srtt_s": "s",
    "ssthresh_bytes": "bytes",
    "goodput_bit_s": "bit/s",
    "throughput_bit_s": "bit/s",
    "packets_s": "packets/s",
    "data_packets_s": "packets/s",
    "control_packets_s": "packets/s",
}
"""Series of a cell (derived/series.json) -> unit. The first three: the kernel's own word (SCTP's threshold: traced)."""
PACKETS = 4


def read_time_series(document: Item, names: Names, problems: Problems) -> tuple[TimeSeries, ...]:
    """Every [figure.NAME] that has `series`."""
    figures: list[TimeSeries] = []
    for name, item in named(document, "figure"):
        series = item.get("series")
        if series is None:
            if (child := item.get("window")) is not None:
                problems.add(child, f"belongs to a figure over time; for example series = {FIGURE['series'].example}")
            continue
        _refuse(item, ("metric", "x", "lines"), "a figure over time has `series` and `where`", problems)
        shown = series.texts()
        for unknown in (column for column in shown if column not in SERIES):
            problems.add(series.part(unknown), f'unknown series "{unknown}"{nearest(unknown, SERIES)}')
        if not shown:
            problems.add(series, f"is empty; for example {FIGURE['series'].example}")
        where = read_selector(item, names, problems)
        window = _window(item.get("window"), problems)
        flows = read_flows(item, names, problems)
        units = dict.fromkeys(SERIES[column] for column in shown if column in SERIES)
        if len(units) > 1:
            problems.add(series, f"have one axis and {len(units)} units: {', '.join(units)}; make a figure of each")
        figures.append(TimeSeries(name, read_title(item, name), flows, shown, window, where))
    return tuple(figures)


def read_event_tables(document: Item, names: Names, problems: Problems) -> tuple[EventTable, ...]:
    """Every [table.NAME] that has `around`."""
    tables: list[EventTable] = []
    for name, item in named(document, "table"):
        around = item.get("around")
        if around is None:
            if (child := item.get("packets")) is not None:
                problems.add(child, f"belongs to a table of events; for example around = {TABLE['around'].example}")
            continue
        _refuse(
            item, ("metric", "rows", "columns"), "a table of events has `around`, `experiment` and `where`", problems
        )
        moments = around.texts()
        if not moments:
            problems.add(around, f"is empty; for example {TABLE['around'].example}")
        number = item.integer("packets")
        where = read_selector(item, names, problems)
        flows = read_flows(item, names, problems)
        if len(flows) > 1 and (child := item.get("flow")) is not None:
            problems.add(child, f'a table of events is of one flow; for example flow = "{flows[0]}"')
        flow = next(iter(flows), "")
        tables.append(EventTable(name, read_title(item, name), flow, moments, number or PACKETS, where))
    return tuple(tables)


def _refuse(item: Item, keys: tuple[str, ...], why: str, problems: Problems) -> None:
    for key in keys:
        if (child := item.get(key)) is not None:
            problems.add(child, f"{why}, and no {key}; leave this out")


def _window(item: Item | None, problems: Problems) -> tuple[int, int] | None:
    if item is None:
        return None
    example = f"; for example {FIGURE['window'].example}"
    if not isinstance(item.value, list) or len(item.value) != 2:
        problems.add(item, f"must be two times, from and to{example}")
        return None
    field = Field("quantity", '"45 s"', ("time",))
    times = [read_quantity(child, field, problems) for child in item.items()]
    low, high = (int(time.value) if time is not None else None for time in times)
    if low is None or high is None:
        return None
    if low >= high:
        problems.add(item, f"ends before it begins{example}")
        return None
    return low, high
