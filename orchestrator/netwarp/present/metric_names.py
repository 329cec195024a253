"""How metrics are called on the page: the contract's by name, a spec's own by the title it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.numbers import WORDLESS
from ..plan.types import Plan


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's heading, base unit, and the heading of the group it is listed in."""

    name: str
    title: str
    unit: str
    group: str = ""


_TITLES = {
    "goodput_bit_s": "goodput",
    "throughput_bit_s": "throughput",
    "utilization_ratio": "utilization",
    "completion_time_s": "completion time",
    "setup_time_s": "set-up time",
    "payload_bytes": "payload",
    "wire_bytes": "bytes on the wire",
    "packets": "packets",
    "packets_both_ways": "packets, both ways",
    "wire_bytes_both_ways": "bytes on the wire, both ways",
    "payload_share_ratio": "payload's share of the bytes on the wire",
    "data_packets": "data packets",
    "unique_data_packets": "distinct data packets",
    "ack_packets": "acknowledgement packets",
    "retransmitted_packets": "retransmitted packets",
    "retransmitted_bytes": "retransmitted bytes",
    "theory_data_packets_low": "fewest data packets by header arithmetic",
    "theory_data_packets_high": "most data packets by header arithmetic",
    "theory_ack_packets_low": "fewest acknowledgement packets by arithmetic",
    "theory_ack_packets_high": "most acknowledgement packets by arithmetic",
    "outage_s": "outage",
    "first_retransmission_other_path_s": "first retransmission, other path",
    "first_new_data_other_path_s": "first new data sent, other path",
    "failover_time_s": "failover time",
    "recovery_time_s": "recovery time",
    "response_time_s": "response time",
    "hol_blocking_s": "head-of-line delay",
    "hol_blocking_p95_s": "head-of-line delay, 95th percentile",
    "hol_blocking_max_s": "head-of-line delay, longest",
    "hol_blocked_ratio": "share that waited for something older",
    "hol_blocking_one_stream_s": "head-of-line delay, were it one stream",
    "jain_index": "Jain's fairness index",
    "jain_all_run_index": "Jain's fairness index while all run",
    "goodput_all_run_bit_s": "goodput while all run",
    "share_all_run_ratio": "share of the goodput while all run",
    "goodput_after_first_end_bit_s": "goodput after the first end",
    "after_first_end_ratio": "goodput after the first end over that before",
    "gave_up_s": "time until the transport gave the connection up (the kernel's word)",
    "cwnd_bytes": "cwnd (the kernel's word, mean)",
    "srtt_s": "smoothed RTT (the kernel's word, mean)",
    "steady_sent_bit_s": "steady rate of sending",
    "mathis_bit_s": "Mathis, C = 1.22",
    "mathis_random_bit_s": "Mathis, C = 1.31",
    "sawtooth_bit_s": "sawtooth with recovery",
    "pftk_bit_s": "PFTK, b = 1",
    "pftk_delayed_bit_s": "PFTK, b = 2",
}
_GROUPS = (
    ("Models and theory", r"theory|.*_as_theory|mathis|sawtooth|pftk|queue_|backoff_|steady|loss_event"),
    ("Flows side by side", r"jain|.*all_run|.*after_first_end|finish_place"),
    ("Head-of-line delay", r"hol_|longest_message|late_messages|response_time"),
    (
        "Outage and failover",
        r"outage|first_(retransmission|new_data|arrival)|failover|recovery|undelivered|.*repaired_path|heartbeat"
        r"|notification|unreachable|return|refill|state_changes|gave_up",
    ),
    ("Windows and round trips", r"cwnd|.*window|slow_start|rtt|srtt"),
    ("Loss and retransmission", r"retransmitted|.*retransmi|spurious|.*timeout|t3_|tail_loss|reordered"),
    (
        "Volume and speed",
        r"goodput|throughput|utilization|completion|setup|payload|wire_bytes|.*packets|ack_packets|data_|sacks|chunks",
    ),
)
"""Group -> names of the contract's metrics in it, the first that fits."""
OWN = "The experiment's own"
OTHER = "Other"
GROUP_ORDER = (OWN, *(group for group, _ in reversed(_GROUPS)), OTHER)
"""How a list of metrics is ordered: what is looked for first stands first."""
_SPELLED = {"rtt": "RTT", "rto": "RTO", "t3": "T3", "hol": "head-of-line", "sacks": "SACKs", "p95": "95th percentile"}
LISTED = ("goodput_bit_s", "outage_s", "failover_time_s", "retransmitted_packets")
"""Shown beside each cell in the list, where anything has them."""


def metric_names(plan: Plan, units: Mapping[str, str]) -> dict[str, Metric]:
    """Every metric of the plan and of the tables. units: as measurements.csv states them."""
    named = {metric.name: metric for metric in plan.metrics}
    found: dict[str, Metric] = {}
    for name in dict.fromkeys([*named, *units]):
        own = named.get(name)
        title = own.title if own and own.title and own.title != name else _TITLES.get(name, _words(name))
        found[name] = Metric(
            name, title, units.get(name) or (own.unit if own else ""), group_of(name, own=name in named)
        )
    return found


def group_of(name: str, *, own: bool = False) -> str:
    """The group a metric is listed in. own: the spec names it; what the contract does not know is then its own."""
    return next((group for group, names in _GROUPS if re.match(names, name)), OWN if own else OTHER)


def unit_beside(title: str, unit: str) -> str:
    """The unit as it stands beside a title; empty where it says nothing ("packets (packets)", "packets per second")."""
    rate = unit.endswith("/s") and title.endswith("per second")
    return "" if rate or unit in WORDLESS or unit in title.replace(",", "").split() else unit


def _words(name: str) -> str:
    """A metric's name without its unit: "paper_throughput_byte_s" -> "paper throughput"."""
    bare = re.sub(r"_(byte_s|bit_s|s|bytes|packets|ratio)$", "", name)
    return " ".join(_SPELLED.get(word, word) for word in bare.split("_"))
