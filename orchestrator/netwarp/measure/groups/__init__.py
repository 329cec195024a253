"""The functions that compute the catalogue's groups of metrics (core/metrics) from the observation of one flow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from ...core.metrics.catalogue import METRICS
from ...core.types import Flow
from ..observation import FlowObservation
from .failover import failover_metrics
from .head_of_line import head_of_line_metrics
from .mptcp import mptcp_metrics
from .pages import page_metrics
from .physics import physics_metrics
from .recovery import recovery_metrics
from .retransmission import retransmission_metrics
from .timers import timer_metrics
from .traffic import traffic_metrics
from .window_growth import window_growth_metrics

GROUP_FUNCTIONS: dict[str, Callable[..., Mapping[str, float | None]]] = {
    "retransmission": retransmission_metrics,
    "traffic": traffic_metrics,
    "recovery": recovery_metrics,
    "window_growth": window_growth_metrics,
    "failover": failover_metrics,
    "head_of_line": head_of_line_metrics,
    "mptcp": mptcp_metrics,
    "physics": physics_metrics,
    "pages": page_metrics,
    "timers": timer_metrics,
}
"""Group -> its function, in the order of computation: a keyword-only parameter is a metric of a group before it. What
flows share (flow_sharing) is computed from all flows of a cell; aqm from what its qdiscs counted (queue_management).
"""


def needs_of(function: Callable[..., Mapping[str, float | None]]) -> list[str]:
    """The metrics of other groups that a group's function needs: the names of its keyword-only parameters."""
    return inspect.getfullargspec(function).kwonlyargs


def flow_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Every metric of one flow, except those that compare flows; None if there is nothing to measure."""
    metrics = without_values(observation.flow)
    for function in GROUP_FUNCTIONS.values():
        metrics |= function(observation, **{name: metrics[name] for name in needs_of(function)})
    return metrics


def without_values(flow: Flow) -> dict[str, float | None]:
    """The metrics that every flow of its protocol has, each None."""
    always = ("every",) if flow.is_datagrams else ("every", "connection")
    return {name: None for name, metric in METRICS.items() if metric.flows in always}
