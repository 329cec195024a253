"""The functions that compute the catalogue's groups of metrics (core/metrics) from the observation of one flow."""

from __future__ import annotations

from collections.abc import Callable

from ...core.metrics.catalogue import METRICS
from ...core.types import Flow
from ..observation import FlowObservation
from .failover import failover_metrics
from .head_of_line import head_of_line_metrics
from .messages import message_metrics
from .mptcp import mptcp_metrics
from .pages import page_metrics
from .physics import physics_metrics
from .recovery import recovery_metrics
from .retransmission import retransmission_metrics
from .timers import timer_metrics
from .traffic import traffic_metrics
from .window_growth import window_growth_metrics

GROUP_FUNCTIONS: dict[str, Callable[[FlowObservation], dict[str, float | None]]] = {
    "retransmission": retransmission_metrics,
    "traffic": traffic_metrics,
    "recovery": recovery_metrics,
    "window_growth": window_growth_metrics,
    "failover": failover_metrics,
    "messages": message_metrics,
    "head_of_line": head_of_line_metrics,
    "mptcp": mptcp_metrics,
    "physics": physics_metrics,
    "pages": page_metrics,
    "timers": timer_metrics,
}
"""Group -> its function. What flows share (flow_sharing) is computed from all flows of a cell; aqm from what its qdiscs
counted (counters.py).
"""


def flow_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Every metric of one flow, except those that compare flows; None if there is nothing to measure."""
    metrics = without_values(observation.flow)
    for function in GROUP_FUNCTIONS.values():
        metrics |= observation.once(function)
    return metrics


def without_values(flow: Flow) -> dict[str, float | None]:
    """The metrics that every flow of its protocol has, each None."""
    always = ("every", "TCP") if flow.is_datagrams else ("every", "TCP", "connection")
    always = (*always, "QUIC") if flow.protocol == "quic" else always
    return {name: None for name, metric in METRICS.items() if metric.flows in always}
