"""Sentences about the results of a run, for terminal and report: conclusions, counts of claims, key numbers."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.metrics.catalogue import HEADLINE
from ..core.numbers import decimals, fixed, scale
from ..core.units import counted
from .claim_blocks import Statement, Value
from .run_data import Metric
from .style import VERDICT_WORDS, verdict_counted, verdict_shown

CLASSES = {
    "conclusion": ("conclusion", "conclusions"),
    "number": ("number", "numbers"),
    "cause": ("cause", "causes"),
    "own": ("check of our own", "checks of our own"),
}
"""Class -> its name, one and several."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A sentence: the statement, its numbers in every source, and the verdict."""

    claim: Statement
    values: str

    @property
    def numbers(self) -> tuple[Value, ...]:
        """Its number in each source that has one, on this kernel, and on it under the levels of each column."""
        return tuple(value for value in self.claim.own.values if value.number)

    @property
    def needed(self) -> str:
        """ "needed: > 5 %": what the rule asks of the number; "" where no number is judged."""
        own = self.claim.own
        return f"needed: {own.expected} {own.unit}".rstrip() if self.numbers and own.expected else ""

    @property
    def sure(self) -> str:
        """The certainty of the verdict, and the number of conditions under which it holds."""
        return "; ".join(part for part in (self.claim.sureness, self.claim.robustness) if part)

    @property
    def text(self) -> str:
        """ "C6 With an outage SCTP beats TCP: smallest lead: paper +7.7 %, Linux 6.12 +5 %: holds"; where it was tested
        over levels of a factor, also those: "; by outage: holds for 5 s, 10 s".
        """
        said = f"{self.claim.id} {self.claim.text.rstrip('.')}"
        ranges = "".join(f"; by {title}: {text}" for title, text in self.claim.ranges.items())
        return ": ".join(part for part in (said, self.values, verdict_shown(self.claim.own.verdict)) if part) + ranges


def conclusions(
    claims: Sequence[Statement], claim_class: str = "conclusion", first: Sequence[str] = ()
) -> tuple[Conclusion, ...]:
    """A sentence for each claim of a class: those named first, then as they come; what was not tested last."""
    order = {name: number for number, name in enumerate(first)}
    own = sorted(
        (claim for claim in claims if claim.claim_class == claim_class),
        key=lambda claim: (claim.own.verdict == "not tested", order.get(claim.id, len(order))),
    )
    return tuple(Conclusion(claim, _values(claim)) for claim in own)


def main_claims(claims: Sequence[Statement], first: Sequence[str] = ()) -> tuple[Conclusion, ...]:
    """The conclusions; of a run without any (it tests no paper) its own claims."""
    return conclusions(claims, first=first) or conclusions(claims, "own", first)


def counts(claims: Sequence[Statement], system: str) -> tuple[str, ...]:
    """The claims counted by the verdict under their own conditions, separately per class."""
    sentences: list[str] = []
    several = len({claim.claim_class for claim in claims}) > 1
    for name, (singular, plural) in CLASSES.items():
        own = [claim for claim in claims if claim.claim_class == name]
        if own:
            words = ("claim", "claims") if name == "own" and not several else (singular, plural)
            verdicts = verdict_words(Counter(claim.own.verdict for claim in own))
            sentences.append(f"Of {counted(len(own), *words)}, {verdicts} on {system}.")
    return tuple(sentences)


def distances(claims: Sequence[Statement]) -> str:
    """The distance of the measured numbers from those that the paper prints; "" if none is compared."""
    numbers = [claim for claim in claims if claim.claim_class == "number"]
    known = sorted((abs(claim.distance), claim.id) for claim in numbers if claim.distance is not None)
    if len(known) < 2:
        return ""
    sizes = [size for size, _ in known]
    low, middle, high = (fixed(100 * size, 1) for size in statistics.quantiles(sizes, n=4, method="inclusive"))
    return (
        f"{len(known)} printed numbers compared: the median lies {middle} % from the paper's (quartiles {low} and"
        f" {high} %), the farthest {fixed(100 * sizes[-1], 0)} % ({known[-1][1]})."
    )


def verdict_words(verdicts: Counter[str]) -> str:
    """ "2 hold, 1 does not hold"."""
    names = [*VERDICT_WORDS, *(name for name in verdicts if name not in VERDICT_WORDS)]
    return ", ".join(verdict_counted(name, verdicts[name]) for name in names if verdicts[name])


def _values(claim: Statement) -> str:
    """ "smallest lead: Choi, Lee 2009 +7.7 %, Linux 6.12 +5 % [4, 6]"."""
    values = ", ".join(f"{value.title} {value.text}" for value in claim.own.values if value.number)
    return f"{claim.statistic}: {values}" if claim.statistic and values else values


SHOWN = 3
"""Metrics of a flow."""


def key_numbers(
    cells: int, measured: Iterable[tuple[str, str, float | None]], metrics: Mapping[str, Metric]
) -> tuple[str, ...]:
    """ "bulk: goodput 1.933 Mbit/s", of several cells "bulk, 6 cells: goodput 1.711 to 1.933 Mbit/s, outage ...".

    cells: how many completed; measured: (flow, metric, value) of all of them.
    """
    values: dict[str, dict[str, array[float]]] = {}
    for flow, metric, value in measured:
        if flow and value is not None and metric in HEADLINE:
            values.setdefault(flow, {}).setdefault(metric, array("d")).append(value)
    among = "" if cells == 1 else f", {counted(cells, 'cell')}"
    return tuple(f"{flow}{among}: {', '.join(_ranges(metrics, known))}" for flow, known in values.items())


def _ranges(metrics: Mapping[str, Metric], known: Mapping[str, Sequence[float]]) -> Iterator[str]:
    for name in [name for name in HEADLINE if name in known][:SHOWN]:
        divisor, unit = scale(known[name], metrics[name].unit)
        least, most = min(known[name]) / divisor, max(known[name]) / divisor
        places = 0 if unit == "packets" else decimals((least, most))
        low, high = fixed(least, places), fixed(most, places)
        said = high if low == high else f"{low} to {high}"
        title = metrics[name].title
        yield f"{title} {said}" if unit in ("", *title.split()) else f"{title} {said} {unit}"
