"""Reads [answer.NAME]: questions that a report answers in words from the measurements."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.outputs import Answer, Cost, Metric, Reason
from ..core.units import Kind, QuantityError, parse_quantity
from .fields import read_names
from .grammar import ANSWER
from .problems import Problems, nearest
from .read_outputs import Names, named, read_axes, read_flows, read_metric, read_selector, read_where
from .toml_positions import Item

UNITS: dict[str, Kind] = {"s": "time", "bytes": "data", "bit/s": "rate", "ratio": "ratio", "packets": "packets"}
"""Unit of a metric -> the kind of quantity its budgets are."""
_NAME = re.compile(r"\{([^{}]*)\}")


def read_answers(document: Item, names: Names, problems: Problems) -> tuple[Answer, ...]:
    """Every [answer.NAME] in order."""
    return tuple(_answer(name, item, names, problems) for name, item in named(document, "answer"))


def _answer(name: str, item: Item, names: Names, problems: Problems) -> Answer:
    metrics = names.metrics
    metric = read_metric(item, metrics, problems)
    for key in ("settings", "budgets"):
        if (listed := item.get(key)) is None:
            problems.add(item, f"its {key} are missing; for example {key} = {ANSWER[key].example}")
        elif isinstance(listed.value, list) and not listed.value:
            problems.add(listed, f"is empty; for example {key} = {ANSWER[key].example}")
    settings, given = (read_axes(item, key, names.factors, problems) for key in ("settings", "given"))
    for factor in sorted(set(settings) & set(given)):
        problems.add(item, f'factor "{factor}" is in both `settings` and `given`')
    tempting, title = (item.get(key) for key in ("tempting", "title"))
    if tempting is not None:
        _known(tempting, str(tempting.value), metrics, problems)
    because = item.get("because")
    cost = item.get("cost")
    return Answer(
        name=name,
        title=name if title is None else str(title.value),
        metric=metric,
        flows=read_flows(item, names, problems),
        settings=settings,
        given=given,
        budgets=_budgets(item, metrics.get(metric), problems),
        where=read_selector(item, names, problems, (*settings, *given)),
        tempting="" if tempting is None else str(tempting.value),
        because=tuple(
            _reason(reason, metrics, problems) for reason in (because.items() if because is not None else ())
        ),
        cost=None
        if cost is None
        else Cost(
            read_metric(cost, metrics, problems),
            read_where(cost.get("where"), names, problems),
            _text(cost, metrics, problems),
        ),
    )


def _budgets(item: Item, metric: Metric | None, problems: Problems) -> tuple[str, ...]:
    """Quantities of the metric's kind."""
    listed = item.get("budgets")
    if listed is None or metric is None:
        return ()
    kind = UNITS.get(metric.unit)
    if kind is None:
        problems.add(item, f'a budget needs a metric in one of {", ".join(UNITS)}; "{metric.name}" is in {metric.unit}')
        return ()
    names = read_names(listed, ANSWER["budgets"], problems)
    for text in names:
        try:
            parse_quantity(text, kind)
        except QuantityError as error:
            problems.add(listed.part(text), str(error))
    return names


def _reason(item: Item, metrics: Mapping[str, Metric], problems: Problems) -> Reason:
    above = item.get("above")
    number = None
    if above is not None:
        if isinstance(above.value, int | float) and not isinstance(above.value, bool):
            number = float(above.value)
        else:
            problems.add(above, "must be a number in the metric's unit (left out: the budget); for example above = 1")
    return Reason(
        read_metric(item, metrics, problems),
        number,
        _text(item, metrics, problems),
    )


def _text(item: Item, metrics: Mapping[str, Metric], problems: Problems) -> str:
    """Checks the text: names in braces must be metrics, or `value`."""
    text = item.get("text")
    if text is None:
        problems.add(item, 'its text is missing; for example text = "it takes {theory_timeouts} timeouts in a row"')
        return ""
    for name in _NAME.findall(str(text.value)):
        if name != "value":
            _known(text, name, metrics, problems)
    return str(text.value)


def _known(item: Item, name: str, metrics: Mapping[str, Metric], problems: Problems) -> None:
    if name not in metrics:
        problems.add(item, f'unknown metric "{name}"{nearest(name, metrics)}')
