"""tables/schedules.csv: the time that each schedule of packets cost, and the timer that was waited for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..plan.schedules import ScheduledCell, scheduled_cells
from ..plan.types import Plan
from .rows import Field, Rows
from .run_results import Results

NAME = "schedules"
COLUMNS = ("cell_id", "experiment", "factor", "flow", "schedule", "packets", "cost_s", "waited_s", "cause", "outcome")
LEAST_S = 0.001
"""A cost or wait below this is none."""
SETUP, TIMEOUT, PROBE, FAST, ACK, CLOSE, NONE, OTHER = (
    "timer of the set-up (SYN, INIT, COOKIE ECHO)",
    "retransmission timer (RTO, T3)",
    "tail loss probe",
    "fast retransmission",
    "delayed acknowledgement",
    "timer of the close (FIN, SHUTDOWN), after the last byte",
    "nothing",
    "no timer: fewer packets in flight",
)
WAITS = {
    "setup_repeat_wait_s": SETUP,
    "data_repeat_wait_s": TIMEOUT,
    "acknowledgement_wait_s": ACK,
}
RTO_MIN_S = 0.2
"""TCP's; a fast retransmission does not take so long on paths with less."""
TIMEOUTS = ("timeouts", "t3_expiries")


def has_schedules(plan: Plan) -> bool:
    """True if the run has schedules of packets."""
    return any(factor.schedule is not None for factor in plan.factors)


def schedule_rows(results: Results) -> Rows:
    """One row for each schedule and flow. cost_s: how much later than in the cell without a schedule the last byte
    came, or, of a flow with a fault, how much longer its outage was, whichever is more. waited_s: how much longer the
    wait was that grew most. Empty where a cell did not complete or the flow did not.
    """
    cells = scheduled_cells(results.plan)
    roots = {each.combination: each for each in cells if each.size == 0}
    rows = [row for each in cells for row in _rows(results, each, roots.get(each.combination))]
    return Rows(NAME, (*COLUMNS, *(factor.name for factor in results.plan.factors)), rows)


def _rows(results: Results, each: ScheduledCell, root: ScheduledCell | None) -> Iterator[tuple[Field, ...]]:
    if each.size == 0 or root is None:
        return
    cell, name = each.cell, results.name(each.cell)
    outcome = results.outcomes.get(name)
    ended = "NOT_RUN" if outcome is None else str(outcome.outcome)
    for flow in cell.flows:
        before, after = (_values(results, results.name(content), flow.name) for content in (root.cell, cell))
        cost = _more(before, after, ("completion_time_s", "outage_s"))
        waited, cause = _cause(before, after, cost)
        level = cell.factors[each.factor]
        yield (
            *(name, cell.experiment, each.factor, flow.name, level, each.size, cost, waited, cause, ended),
            *cell.factors.values(),
        )


def _values(results: Results, name: str, flow: str) -> dict[str, float | None]:
    names = ("completion_time_s", "outage_s", *WAITS, "close_repeat_wait_s", "tail_loss_probes", *TIMEOUTS)
    return {metric: results.value(name, flow, metric) for metric in names}


def _more(
    before: Mapping[str, float | None], after: Mapping[str, float | None], metrics: tuple[str, ...]
) -> float | None:
    """The largest increase; None if none of them is known in both cells."""
    known = [(before[metric], after[metric]) for metric in metrics]
    return max((b - a for a, b in known if a is not None and b is not None), default=None)


def _cause(
    before: Mapping[str, float | None], after: Mapping[str, float | None], cost: float | None
) -> tuple[float | None, str]:
    """The wait that grew most, and by how much."""
    if cost is None:
        return None, ""
    if cost < LEAST_S:
        close = _more(before, after, ("close_repeat_wait_s",)) or 0.0
        return (close, CLOSE) if close >= LEAST_S else (0.0, NONE)
    grown = {name: _more(before, after, (metric,)) or 0.0 for metric, name in WAITS.items()}
    name = max(grown, key=lambda factor: grown[factor])
    if grown[name] < LEAST_S:
        return 0.0, OTHER
    if name == TIMEOUT and (_more(before, after, TIMEOUTS) or 0.0) <= 0:
        probed = (_more(before, after, ("tail_loss_probes",)) or 0.0) > 0
        name = PROBE if probed else FAST if grown[TIMEOUT] < RTO_MIN_S else TIMEOUT
        return grown[TIMEOUT], name
    return grown[name], name
