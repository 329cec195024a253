"""The catalogue of metrics: the rows of catalogue.csv. docs/metrics.md and the report's titles are made from it.

A new metric needs a row there, and its number in the result of its group's function (measure/groups). Then run
docs/metric_lists.py.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

CapturedAt = Literal["sender", "receiver", "both", "kernel", "model", ""]
Flows = Literal[
    "every", "connection", "TCP", "pages", "messages", "datagrams", "QUIC", "SCTP", "MPTCP", "several", "cell",
    "wall clock", "group", "link", "measured",
]  # fmt: skip
Clock = Literal["flow", "moment", "repair", "delay", "sample", "none"]

SIGNS = {"yes": True, "no": False, "": None}
"""What the column `higher_is_better` may hold."""
CATALOGUE = Path(__file__).with_name("catalogue.csv")
GROUPS = {
    "traffic": "Volume and speed",
    "retransmission": "Loss, retransmission and round trips",
    "recovery": "Outage and recovery",
    "failover": "Failover of SCTP",
    "window_growth": "Windows",
    "messages": "Messages",
    "datagrams": "Datagrams",
    "quic": "QUIC",
    "head_of_line": "Head-of-line delay",
    "mptcp": "Subflows of MPTCP",
    "flow_sharing": "Flows side by side",
    "flow_groups": "Groups of flows",
    "queues": "Queues and losses",
    "aqm": "Active queue management and policers",
    "agents": "Agents",
    "pages": "Pages and their objects",
    "physics": "Laws of physics",
    "timers": "Waits and promises",
    "cpu": "CPU time",
}
"""Group -> its heading on the page and in docs/metrics.md, in the order shown: the most wanted first."""


@dataclass(frozen=True, slots=True)
class CatalogueMetric:
    """A row of the catalogue.

    captured_at: the host whose captures the metric is computed from; "kernel": a number that the kernel reports;
    "model": arithmetic. group: the function that computes it (measure/groups). flows: the flows that have it;
    "connection": TCP, MPTCP and SCTP; "TCP": TCP and MPTCP, and no value for the others; "messages": those of them
    whose messages netwarp's own programs send; "datagrams": of netwarp's own UDP; "pages": flows with a `page`;
    "several": the flows of cells with two or more; "cell": the whole cell (its flow is empty); "wall clock": flows
    that were run on the wall clock; "group": groups of flows, made by `count` or `arrivals`, and their classes of
    sizes; "measured": the flows of cells with [measure], and its directions of links (losses and queue delays of QUIC:
    of every cell); "link": these directions alone.

    clock: the times that its value depends on, which results/tolerance.py needs for comparing two measurements.
    "moment": the time between two instants (unit s), also where one timer decides it, such as the wait for a timeout or
    the longest head-of-line delay; "repair": the same, counted from the repair of a fault; "delay": packets' delays,
    and means of them; "sample": times of the kernel's samples; "flow": the duration of the flow, for amounts and rates;
    "none": a property of the machine, which two machines need not share.

    higher_is_better: True or False where every reader takes more of it for better, or for worse; None where it means
    neither, such as an amount, a share or what a sender decides. A comparison words its changes by this.

    unit: one of tolerance.COUNTS ("packets", "events") for what is counted one by one, else "s", "bytes", "bit/s",
    "ratio": another one is free text, compared like a rate. title: the name in reports. definition: a sentence for
    docs/metrics.md.
    """

    name: str
    unit: str
    title: str
    captured_at: CapturedAt
    group: str
    flows: Flows
    clock: Clock
    higher_is_better: bool | None
    definition: str


def _read() -> dict[str, CatalogueMetric]:
    """The rows by name. A definition "=" repeats that of the row above."""
    rows: dict[str, CatalogueMetric] = {}
    definition = ""
    with open(CATALOGUE, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            definition = definition if row["definition"] == "=" else row["definition"]
            sign = SIGNS[row["higher_is_better"]]
            values = row | {"definition": definition, "higher_is_better": sign}
            metric = CatalogueMetric(**values)
            known = {"captured_at": CapturedAt, "flows": Flows, "clock": Clock}
            wrong = [
                f'{column} is "{row[column]}", not one of {", ".join(get_args(values))}'
                for column, values in known.items()
                if row[column] not in get_args(values)
            ]
            if wrong or metric.name in rows or metric.group not in GROUPS:
                why = "; ".join(wrong) or "listed twice, or of an unknown group"
                raise ValueError(f"{CATALOGUE.name}: {metric.name}: {why}")
            rows[metric.name] = metric
    return rows


METRICS = _read()
HEADLINE = ("goodput_bit_s", "completion_time_s", "outage_s", "longest_message_delay_s", "first_message_after_fault_s",
            "first_new_data_other_path_s", "recovery_time_s", "retransmitted_packets")  # fmt: skip
"""The metrics that lists and summaries show first, where they have values."""
CELL_METRICS = frozenset(name for name, metric in METRICS.items() if metric.flows == "cell")
"""Metrics of the whole cell: their flow is empty."""


def unit_of(name: str) -> str:
    """The unit of a metric; "" for a metric that is not in the catalogue."""
    return METRICS[name].unit if name in METRICS else ""
