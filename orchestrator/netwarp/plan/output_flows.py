"""The flows, groups of flows and links that outputs name, by names and patterns, among those of the cells of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..core.metrics.catalogue import CELL_METRICS, METRICS
from ..core.subjects import OF_LINKS, groups_of, links_of
from ..core.types import Cell
from ..core.units import listed
from ..experiment.flow_groups import ANY, matching
from ..experiment.problems import Problems, nearest
from ..experiment.toml_positions import Item

_AXES = 'rows = ["flow"]'


class OutputFlows:
    """What a column `flow` may hold in the cells of a run. Mistakes are collected."""

    def __init__(self, cells: Iterable[Cell], problems: Problems) -> None:
        self._problems = problems
        self._flows: dict[str, None] = {}
        self._groups: Counter[str] = Counter()
        self._links: dict[str, None] = {}
        for cell in cells:
            self._flows |= dict.fromkeys(flow.name for flow in cell.flows)
            self._links |= dict.fromkeys(links_of(cell))
            self._groups |= Counter({name: len(flows) for name, flows in groups_of(cell).items()})

    def of_output(
        self, item: Item, metric: str, named: tuple[str, ...], *, along: bool, pooled: bool = False
    ) -> tuple[str, ...]:
        """The flows of an output; exactly one, unless they are along one of its axes. "": for a metric of the whole
        cell. pooled: the flows of a group stand together.
        """
        if metric in CELL_METRICS:
            if along:
                said = f"{metric} is a metric of the whole cell, which has no flow; leave it out of the axes"
                self._problems.add(item, said)
            return ("",)
        known = self._known(metric)
        chosen = tuple(dict.fromkeys(one for name in named for one in self._named(item, metric, name, known, pooled)))
        if along:
            return chosen
        if len(chosen) > 1:
            said = f"names {len(chosen)} flows, and none of its axes tells them apart; for example {_AXES}"
            self._problems.add(item, said)
        if not named and len(known) > 1:
            self._problems.add(item, f"{_question(known)}, or {_AXES} for all")
        return chosen[:1] or tuple(known[:1]) or ("",)

    def of_claim(self, metric: str, flow: str) -> tuple[str, str]:
        """The flow of a claim's selectors that name none, and the question where that is not known."""
        if metric in CELL_METRICS:
            return "", ""
        known = self._known(metric)
        only = flow or (known[0] if len(known) == 1 else "")
        return only, "" if only or not known else _question(known)

    def problem_of_selector(self, metric: str, chosen: Sequence[str], shown: str) -> str:
        """What is wrong with the flows that a claim's selector names; "" if nothing is."""
        if len(chosen) > 1:
            return f"the selector {shown} names {len(chosen)} flows; it must name one"
        if chosen and metric in CELL_METRICS:
            return f"{metric} is a metric of the whole cell, which has no flow; leave it out"
        return next((said for name in chosen if (said := self._wrong(metric, name, self._known(metric)))), "")

    def _known(self, metric: str) -> list[str]:
        """The names that may have a metric."""
        of = METRICS[metric].flows if metric in METRICS else "every"
        if of == "group":
            return list(self._groups)
        return [*(self._flows if of != "link" else ()), *(self._links if of in OF_LINKS else ())]

    def _named(self, item: Item, metric: str, name: str, known: Sequence[str], pooled: bool) -> list[str]:
        """The flows that a name or a pattern means."""
        if ANY in name:
            found = matching(name, known)
            if not found:
                self._problems.add(item, f'no flow of these cells fits "{name}"{nearest(name, known)}')
            return found
        if not (pooled and name in self._groups) and (wrong := self._wrong(metric, name, known)):
            self._problems.add(item, wrong)
        return [name]

    def _wrong(self, metric: str, name: str, known: Sequence[str]) -> str:
        if name in known:
            return ""
        if name in self._groups:
            return f'"{name}" is {self._groups[name]} flows; write "{name}*" for all, or one of them'
        if name in self._links:
            return f'"{name}" is a link, and {metric} is of flows{nearest(name, known)}'
        if name in self._flows:
            what = "groups of flows" if METRICS[metric].flows == "group" else "links"
            return f'"{name}" is a flow, and {metric} is of {what}{nearest(name, known)}'
        return ""  # of a part of the experiments that this run has not


def _question(known: Sequence[str]) -> str:
    return f'of which flow? name one: {listed(known)}; for example flow = "{known[0]}"'
