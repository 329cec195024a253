"""Settings of the SCTP stacks of experiments/daemons and experiments/usrsctp, read from the captures of a run, beside
those in their source; and numbers of that run: writes both into the experiment's README.

    .venv/bin/python experiments/wire_settings.py RUN...

An interval is what every capture of a program permits together. Where they permit nothing together, some of them are
shown: the setting changes, or was inferred wrongly.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import netwarp
from netwarp.captures.sctp.settings import LINUX
from netwarp.core.numbers import fixed
from netwarp.core.units import parse_quantity
from netwarp.experiment.sctp_sides import products, read_side

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- measured -->", "<!-- end -->"
USRSCTP = LINUX | {"rto_initial": 1.0, "failover_threshold": 5}
"""usrsctplib/netinet/sctp_constants.h, lines 595 to 616, as of October 2025: newer than the packaged library. Its pf
threshold is off, so that path_max_retrans decides."""
TEXTS = {
    "rto_initial": "s",
    "rto_min": "s",
    "rto_max": "s",
    "heartbeat_interval": "s",
    "sack_delay": "s",
    "init_max_timeout": "s",
}
QUEUES = ("sctp_test",)
"""Programs that send as fast as they can: their round trips are those of the queue, from which no timer is told."""
Bounds = tuple[float, float]


def by_source(program: str) -> Mapping[str, float]:
    """What its source says, over Linux' own values."""
    if program == "usrsctp":
        return USRSCTP
    said = read_side(program).settings if program in products() else {}
    values = dict(LINUX)
    for name, value in said.items():
        if name in values:
            values[name] = (
                float(parse_quantity(value, "time").value) / 1e9 if isinstance(value, str) else float(str(value))
            )
    return values


def seen(run: Path) -> dict[tuple[str, str, str], list[Bounds]]:
    """(program, end, setting) -> an interval of each association that bounds it."""
    with (run / "tables" / "cells.csv").open() as file:
        cells = list(csv.DictReader(file))
    found: dict[tuple[str, str, str], list[Bounds]] = defaultdict(list)
    for cell in cells:
        if cell["outcome"] != "COMPLETED":
            continue
        for connection in netwarp.explain_captures([run / "cells" / cell["cell_id"]]).connections:
            told = connection.as_json()
            client = told["ends"][0]
            for known in told["settings"]:
                role = "client" if known["end"] == client else "server"
                program = cell["program"] if "program" in cell else cell["sender" if role == "client" else "receiver"]
                high = float("inf") if known["high"] is None else known["high"]
                found[program, role, known["name"]].append((known["low"] or 0.0, high))
    return found


def settings_table(run: Path) -> Iterator[str]:
    """A row for each program, end and setting that captures bound from both sides, or beside its source."""
    yield "| program | end | setting | from the wire | captures | its source says | |"
    yield "| --- | --- | --- | --- | ---: | --- | --- |"
    for (program, role, name), intervals in sorted(seen(run).items()):
        source = by_source(program).get(name)
        if source is None or program in QUEUES:
            continue
        low, high = max(low for low, _ in intervals), min(high for _, high in intervals)
        within = sum(low <= source <= high for low, high in intervals)
        if high == float("inf") and within == len(intervals):
            continue  # "at least": it says little
        unit = f" {TEXTS[name]}" if name in TEXTS else ""
        text = _between(low, high) + unit
        agrees = "agrees" if within == len(intervals) else f"{len(intervals) - within} of {len(intervals)} differ"
        if low > high:
            text = ", ".join(_between(*each) for each in sorted(set(intervals))[:3]) + unit
        yield f"| {program} | {role} | `{name}` | {text} | {len(intervals)} | {_short(source)}{unit} | {agrees} |"


def _between(low: float, high: float) -> str:
    return f"at least {_short(low)}" if high == float("inf") else f"{_short(low)} to {_short(high)}"


def _short(value: float) -> str:
    return fixed(value, 0) if value == int(value) else f"{value:.3g}"


TABLES = {
    "outage_s": "Longest time without new payload at the server, in s",
    "recovery_time_s": "From the repair (or from when the host is up) until the first new payload at the server, in s",
    "associations": "Associations that came up, the first one included",
    "first_new_data_other_path_s": "From the fault until new data on the other path, in s",
}


def number_table(run: Path, metric: str) -> Iterator[str]:
    """A metric of every cell: the faults down, the programs across."""
    with (run / "tables" / "cells.csv").open() as file:
        cells = {cell["cell_id"]: cell for cell in csv.DictReader(file)}
    values: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    with (run / "tables" / "measurements.csv").open() as file:
        for row in csv.DictReader(file):
            if row["metric"] == metric and not row["flow"].endswith(".back"):
                cell = cells[row["cell_id"]]
                values[cell["fault"], _program(cell)].append(float(row["value"]) if row["value"] else None)
    faults, programs = (list(dict.fromkeys(key[place] for key in values)) for place in (0, 1))
    yield f"| fault | {' | '.join(programs)} |"
    yield f"| --- |{' ---: |' * len(programs)}"
    for fault in faults:
        yield f"| {fault} | {' | '.join(_drawn(values[fault, program]) for program in programs)} |"


def _drawn(values: Sequence[float | None]) -> str:
    """The values of the repetitions: the least and the largest where they differ; a dash where there is none."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return "-" if values else "failed"
    text = _short(known[0]) if _short(known[0]) == _short(known[-1]) else f"{_short(known[0])} to {_short(known[-1])}"
    return text if len(known) == len(values) else f"{text}, or -"


def _program(cell: Mapping[str, str]) -> str:
    return cell["program"] if "program" in cell else f"{cell['sender']} to {cell['receiver']}"


def written(run: Path) -> None:
    """The README of the run's experiment, with the tables of the run."""
    with (run / "tables" / "cells.csv").open() as file:
        name = "daemons" if "program" in next(csv.reader(file)) else "usrsctp"
    page = ROOT / "experiments" / name / "README.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = []
    for metric, title in TABLES.items():
        lines = list(number_table(run, metric))
        if len(lines) > 2:
            parts.append("\n".join([f"**{title}**", "", *lines]))
    parts.append("\n".join(["**Settings, from the wire**", "", *settings_table(run)]))
    page.write_text(before + BEGIN + "\n\n".join(["", *parts, ""]) + END + after)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        written(Path(each))
