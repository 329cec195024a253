"""A run in words, for terminal, report and READMEs: the answer, the grid of claims, counts, key numbers."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.errors import SpecError
from ..core.metrics.catalogue import HEADLINE
from ..core.numbers import MINUS, decimals, fixed, given, scale, with_unit
from ..core.outputs import Placeholder, placeholders
from ..core.units import counted
from ..plan.types import Outputs
from .claim_blocks import Statement, Value
from .run_data import MetricHeading
from .style import IN_FEW, IN_OVERLAP, IN_PART, UNTESTED, VERDICT_WORDS, verdict_counted, verdict_shown

CLASSES = {
    "conclusion": ("conclusion", "conclusions"),
    "number": ("number", "numbers"),
    "cause": ("cause", "causes"),
    "own": ("check of our own", "checks of our own"),
}
"""Class -> its name, one and several."""


@dataclass(frozen=True, slots=True)
class Field:
    """What a source says of a claim. verdict: of its number by the claim's rule; "": none."""

    verdict: str
    text: str
    kind: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ClaimGrid:
    """Claims as rows, sources as columns. first: what the paper says first; rest: its other conclusions; causes: its
    "because". columns: (name of the column of claims.csv, title).
    """

    columns: tuple[tuple[str, str], ...]
    first: tuple[Statement, ...]
    rest: tuple[Statement, ...]
    causes: tuple[Statement, ...]

    @property
    def qualified(self) -> tuple[tuple[str, str], ...]:
        """What is shown in place of "holds" in some field, and its meaning behind "as claimed, not, undecided"."""
        claims = (*self.first, *self.rest, *self.causes)
        shown = {field.verdict for claim in claims for field in self.row(claim)}
        return tuple((name, meaning) for name, meaning in QUALIFIED.items() if name in shown)

    @property
    def measured(self) -> bool:
        """Whether a claim that is shown has a number."""
        claims = (*self.first, *self.rest, *self.causes)
        return any(value.number for claim in claims for value in claim.own.values)

    def row(self, claim: Statement) -> tuple[Field, ...]:
        """A field a column."""
        values = {value.name: value for value in claim.own.values}
        return tuple(_field(claim, name, values.get(name)) for name, _ in self.columns)


QUALIFIED = {
    IN_FEW: "as claimed, but in less than half of its conditions",
    IN_OVERLAP: "as claimed, but the paper also uses the opposite word for such a number",
}
NO_BREAK = "\u00a0"
"""Between a number of a text and its unit."""
SHOWN_FIRST = 6
"""Claims of a run that names no headline."""
WITHOUT_A_NUMBER = "says so"
OPEN = (*UNTESTED, "inconclusive")
"""Verdicts that speak neither for a claim nor against it."""
NOT_BORNE_OUT = {
    False: "This run does not bear out the experiment's own summary",
    True: "This run does not decide all that the experiment's own summary rests on",
}
"""Whether what the summary presumes is still open -> the sentence in its place."""


def claim_grid(plan: Outputs, claims: Sequence[Statement]) -> ClaimGrid:
    """The conclusions (of a run without any, which tests no paper, its own claims): the headline first, then as they
    come, what was not tested last.
    """
    order = {name: number for number, name in enumerate(plan.headline)}
    main = [claim for claim in claims if claim.claim_class == "conclusion"] or [
        claim for claim in claims if claim.claim_class == "own"
    ]
    main.sort(key=lambda claim: (claim.own.verdict == "not tested", order.get(claim.id, len(order))))
    first = sum(claim.id in order for claim in main) or SHOWN_FIRST
    causes = tuple(claim for claim in claims if claim.claim_class == "cause")
    values = [value for claim in (*main, *causes) for value in claim.own.values if value.number or value.kind == "own"]
    titles = {value.name: value.short for value in values}
    papers = [(source.name, "paper") for source in plan.sources if source.kind == "paper"]
    names = [*(source.name for source in plan.sources), *(column.name for column in plan.columns)]
    others = [(name, titles[name]) for name in names if name in titles]
    measured = [("measured", titles["measured"])] if "measured" in titles else []
    sources = [column for column in others if column[0] in {source.name for source in plan.sources}]
    columns = dict([*papers, *sources, *measured, *others])
    return ClaimGrid(tuple(columns.items()), tuple(main[:first]), tuple(main[first:]), causes)


def _field(claim: Statement, name: str, value: Value | None) -> Field:
    own = name == "measured"
    if value is None or not value.number:
        if own:
            return Field(claim.shown, verdict_shown(claim.shown), "own")
        return Field("", WITHOUT_A_NUMBER if value is None and name == "paper" else "", "source")
    shown = claim.shown_of(value)
    few = "only " if shown == IN_FEW else ""
    notes = [f"holds in {few}{claim.held} conditions"] if own and claim.turned else []
    if own and shown == IN_OVERLAP and claim.overlap is not None:
        notes.append(f"\u201c{claim.overlap.opposite}\u201d fits, too")
    return Field(shown, f"{value.number} {value.unit}".rstrip(), value.kind, "; ".join(notes))


def answer(plan: Outputs, claims: Sequence[Statement], system: str) -> str:
    """The answer to the question of the title: the spec's own sentence, unless a verdict that it presumes is another
    here; else the conclusions counted. "" of a run without claims.
    """
    if plan.summary is None:
        return next(iter(counts(claims, system)), "")
    verdicts = {test.id: test.verdict for claim in claims for test in claim.tests}
    others = [
        (name, verdicts.get(name, "not tested"))
        for name, verdict in plan.summary.presumes.items()
        if verdicts.get(name, "not tested") != verdict
    ]
    if not others:
        try:
            return filled(plan.summary.text, claims)
        except SpecError as error:  # a number that this run could not measure
            return " ".join((f"{NOT_BORNE_OUT[True]} ({error}).", *counts(claims, system)[:1]))
    said = [
        f"{NOT_BORNE_OUT[open_yet]} ({', '.join(f'{name}: {verdict_shown(verdict)}' for name, verdict in mine)})."
        for open_yet in (False, True)
        if (mine := [(name, verdict) for name, verdict in others if (verdict in OPEN) is open_yet])
    ]
    return " ".join((*said, *counts(claims, system)[:1]))


def filled(text: str, claims: Sequence[Statement]) -> str:
    """A template over claims (docs/spec.md, The answer) with their numbers. Raises SpecError: a claim has
    no such number.
    """
    for field in placeholders(text):
        text = text.replace(field.text, _said(field, claims).replace(" ", NO_BREAK))
    return text


def _said(field: Placeholder, claims: Sequence[Statement]) -> str:
    claim = next((claim for claim in claims if claim.id == field.claim), None)
    test = next((test for test in claim.tests if test.id == field.name), None) if claim is not None else None
    if claim is None or test is None:
        raise SpecError(f"{field.text}: there is no such claim")
    if field.column == "conditions":
        return claim.held or "1 of 1"
    if field.column == "verdict":
        return verdict_shown(claim.shown if test is claim.own else test.verdict)
    if field.column == "expected":
        return f"{test.expected} {test.unit}".rstrip()
    value = next((value for value in test.values if value.name == field.column), None)
    if value is None or value.exact is None:
        raise SpecError(f"{field.text}: the claim has no such number")
    if field.form == "interval":
        return value.interval
    if field.form == "times":
        return given(1 + value.exact, 2)
    number = value.number.lstrip(f"+{MINUS}") if field.form == "size" else value.number
    return f"{number} {value.unit}".rstrip()


def counts(claims: Sequence[Statement], system: str) -> tuple[str, ...]:
    """The claims counted by the verdict under their own conditions, separately per class."""
    sentences: list[str] = []
    several = len({claim.claim_class for claim in claims}) > 1
    for name, (singular, plural) in CLASSES.items():
        own = [claim for claim in claims if claim.claim_class == name]
        if own:
            words = ("claim", "claims") if name == "own" and not several else (singular, plural)
            found, of = Counter(claim.shown for claim in own), counted(len(own), *words)
            tested = Counter({name: count for name, count in found.items() if name not in UNTESTED})
            if "not tested" not in found:
                sentences.append(f"Of {of}, {verdict_words(found)} on {system}.")
            elif not tested:
                sentences.append(f"None of {of} was tested on {system}.")
            else:
                were, rest = counted(tested.total(), "was", "were"), verdict_words(found - tested)
                sentences.append(f"Of {of}, {were} tested on {system}: {verdict_words(tested)}; {rest}.")
    return tuple(sentences)


def sentences(claims: Sequence[Statement]) -> Counter[str]:
    """The sentences of a paper that conclude something, counted by verdict, however many claims stand for each."""
    of_each: dict[tuple[str, str], list[str]] = {}
    for claim in claims:
        if claim.claim_class == "conclusion":
            of_each.setdefault((claim.ko, claim.en), []).append(claim.shown)
    return Counter(_together(shown) for shown in of_each.values())


def _together(shown: Sequence[str]) -> str:
    """The verdict on a sentence, by those of its claims."""
    if len(set(shown)) == 1:
        return shown[0]
    if any(verdict in ("holds", IN_FEW, IN_OVERLAP) for verdict in shown):
        return IN_PART
    return next(verdict for verdict in ("does not hold", "inconclusive", *shown) if verdict in shown)


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


OF_BREAKS = ("broken_connections", "gave_up_s", "undelivered_bytes", "setup_time_s")
"""What the sentence of a flow that ended badly is made of."""
SHOWN_BROKEN = 5


def broken_flows(measured: Iterable[tuple[str, str, str, float | None]]) -> tuple[str, ...]:
    """A sentence for each flow whose connection ended before its own end: "dies gave up after 12.4 s, 1.9 MB not
    delivered (in 2 of 6 cells; the first)". measured: (cell, flow, metric, value) of all that completed.
    """
    flows: dict[str, dict[str, dict[str, float | None]]] = {}
    for cell, flow, metric, value in measured:
        if metric in OF_BREAKS:
            flows.setdefault(flow, {}).setdefault(cell, {})[metric] = value
    sentences = []
    for flow, cells in flows.items():
        broken = [metrics for metrics in cells.values() if metrics.get("broken_connections")]
        if not broken:
            continue
        first = broken[0]
        gave_up, missing = first.get("gave_up_s"), first.get("undelivered_bytes")
        never = first.get("setup_time_s") is None
        how = f"gave up after {with_unit(gave_up, 's')}" if gave_up is not None else "was cut off before its end"
        how = "was never answered" if never else how
        lost = f", {with_unit(missing, 'bytes')} not delivered" if missing else ""
        share = "" if len(cells) == 1 else f" (in {len(broken)} of {counted(len(cells), 'cell')}; the first)"
        sentences.append(f"{flow} {how}{lost}{share}")
    more = len(sentences) - SHOWN_BROKEN
    said = f"{counted(more, 'more flow')} ended badly (metric broken_connections)"
    return (*sentences[:SHOWN_BROKEN], *([said] if more > 0 else []))


SHOWN = 3
"""Metrics of a flow."""


def key_numbers(
    cells: int,
    measured: Iterable[tuple[str, str, float | None]],
    metrics: Mapping[str, MetricHeading],
    groups: Mapping[str, str],
) -> tuple[str, ...]:
    """ "bulk: goodput 1.933 Mbit/s", of several cells "bulk, 6 cells: goodput 1.711 to 1.933 Mbit/s, outage ...".

    cells: how many completed; measured: (flow, metric, value) of all of them. groups: flow -> the group it belongs to,
    whose flows have one sentence.
    """
    sizes = Counter(groups.values())
    values: dict[str, dict[str, array[float]]] = {}
    for flow, metric, value in measured:
        if flow and value is not None and metric in HEADLINE:
            values.setdefault(groups.get(flow, flow), {}).setdefault(metric, array("d")).append(value)
    among = "" if cells == 1 else f", {counted(cells, 'cell')}"
    named = {flow: f"{flow}, {counted(sizes[flow], 'flow')}" if flow in sizes else flow for flow in values}
    return tuple(f"{named[flow]}{among}: {', '.join(_ranges(metrics, known))}" for flow, known in values.items())


def _ranges(metrics: Mapping[str, MetricHeading], known: Mapping[str, Sequence[float]]) -> Iterator[str]:
    for name in [name for name in HEADLINE if name in known][:SHOWN]:
        divisor, unit = scale(known[name], metrics[name].unit)
        least, most = min(known[name]) / divisor, max(known[name]) / divisor
        places = 0 if unit == "packets" else decimals((least, most))
        low, high = fixed(least, places), fixed(most, places)
        said = high if low == high else f"{low} to {high}"
        title = metrics[name].title
        yield f"{title} {said}" if unit in ("", *title.split()) else f"{title} {said} {unit}"
