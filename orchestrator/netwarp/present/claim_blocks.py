"""Claims as the page shows them: a block per claim, a line per condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..core.numbers import decimals, fixed, given, readable, scale
from ..core.outputs import Amendment, Claim, Overlap
from ..plan.types import Outputs
from ..store.tables import number
from .run_data import MetricHeading, Row, RunData, metric_names
from .style import IN_FEW, IN_OVERLAP

# Meaning of the number compared, by kind of claim: kinds that give a relative one. Of
# several comparisons the one is shown that speaks most against the claim.
_STATISTICS = {
    "greater": "smallest lead",
    "less": "largest difference",
    "mean_greater": "mean lead",
    "equal": "largest difference",
    "gain": "mean gain",
    "mean_gain": "mean of the gains",
    "pooled_gain": "gain of the means",
    "mean": "mean",
    "constant": "variation",
    "varies": "variation",
    "increasing": "smallest step",
    "decreasing": "smallest step",
}
# Kinds whose number must lie around an expected one.
_AROUND = (
    "equal",
    "value",
    "every",
    "elasticity",
    "difference",
    "gain",
    "mean_gain",
    "pooled_gain",
    "mean",
)


WEAKER = "weaker, same direction"
JUDGED = ("holds", WEAKER, "does not hold", "inconclusive")
"""Verdicts on what is measured."""
NAMED = 2
"""Combinations of levels that are named one by one."""


@dataclass(frozen=True, slots=True)
class Value:
    """The number of a claim in one source, and the verdict of its rule on it. interval: "[12, 21]"; empty: none.

    name: its column of claims.csv. kind: "paper", "source", "own" or "column": what is measured, under the claim's own
    levels or under those of a column. exact: in the base unit.
    """

    name: str
    title: str
    number: str
    unit: str
    interval: str
    verdict: str
    kind: str
    exact: float | None

    @property
    def short(self) -> str:
        """ "paper" of the source that makes the claims, otherwise the title."""
        return "paper" if self.kind == "paper" else self.title

    @property
    def text(self) -> str:
        """ "+16 % [12, 21]"."""
        return " ".join(part for part in (self.number or "no number", self.number and self.unit, self.interval) if part)


@dataclass(frozen=True, slots=True)
class Tested:
    """A claim under one condition. levels: titles of factors and levels in which it differs from the claim's own
    levels; none for the claim's own. why: the reason of the verdict.
    """

    id: str
    levels: tuple[tuple[str, str], ...]
    verdict: str
    measured: str
    expected: str
    unit: str
    why: str
    exact: str
    values: tuple[Value, ...] = ()
    """The same statistic of each source's numbers, of this kernel's, and of it under the levels of each column."""
    left_out: bool = False
    """True if it was not tested because its condition is of the robustness part, which is not in this run."""

    @property
    def condition(self) -> str:
        """ "reading: RTT and failover: RFC 4960"."""
        return " and ".join(f"{factor}: {level}" for factor, level in self.levels)

    @property
    def alone(self) -> tuple[str, str] | None:
        """The only level in which it differs."""
        return self.levels[0] if len(self.levels) == 1 and " or " not in self.levels[0][1] else None


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim, with its own test first. statistic: the kind of number ("mean gain"). source: where it is claimed.

    distance: relative distance of the measured number from the claimed one; None if no number is claimed.
    """

    id: str
    text: str
    source: str
    statistic: str
    tests: tuple[Tested, ...]
    claim_class: str = "own"
    ko: str = ""
    en: str = ""
    amendments: tuple[Amendment, ...] = ()
    distance: float | None = None
    levels: tuple[tuple[str, str], ...] = ()
    """Title and level of each factor under the claim's own conditions."""
    overlap: Overlap | None = None
    first: str = ""
    """The verdict by the rule of before an amendment."""

    @property
    def own(self) -> Tested:
        """The test under the claim's own conditions."""
        return self.tests[0]

    @property
    def shown(self) -> str:
        """The verdict as it is shown: "holds" alone only where it holds in half of the conditions or more, by a number
        that no opposite word of the paper fits.
        """
        measured = self._measured
        return self._shown(self.own.verdict, measured.exact if measured else None, in_few=self._in_few)

    @property
    def measured_verdict(self) -> str:
        """The verdict of its rule on what is measured, whatever the paper's own numbers say."""
        measured = self._measured
        return measured.verdict if measured is not None and measured.verdict else self.own.verdict

    def shown_of(self, value: Value) -> str:
        """The same of a source's number, or of one measured."""
        return self._shown(value.verdict, value.exact, in_few=self._in_few and value.kind == "own")

    def _shown(self, verdict: str, exact: float | None, *, in_few: bool) -> str:
        if verdict != "holds":
            return verdict
        if in_few:
            return IN_FEW
        overlap = self.overlap
        if overlap is not None and exact is not None and overlap.low < abs(exact) <= overlap.high:
            return IN_OVERLAP
        return verdict

    @property
    def _measured(self) -> Value | None:
        """The number measured under its own conditions."""
        return next((value for value in self.own.values if value.kind == "own"), None)

    @property
    def _in_few(self) -> bool:
        return 2 * self._times_held < len(self._judged)

    @property
    def sureness(self) -> str:
        """The certainty of its verdict, in words: an interval of so many repetitions, one repetition, or no chance."""
        why = self.own.why
        if self.own.verdict in ("not tested", "not testable here"):
            return ""
        if self.own.verdict == "its own source refutes it":
            own = self._measured
            added = {"holds": "; {} does", WEAKER: "; {} does, but less", "does not hold": "; nor does {}"}
            also = added.get(own.verdict, "").format(own.title) if own else ""
            return f"the paper's own numbers do not show it{also}"
        if why.startswith("deterministic"):
            return "exact: nothing here is random"
        if why.startswith("95 % interval"):
            return f"95 % interval of {why.rpartition(' = ')[2]} repetitions"
        if why.startswith("one repetition"):
            return "one repetition does not decide it"
        if why.startswith("one draw"):
            if self.own.verdict == "inconclusive":
                return "one repetition, and repeated ones scatter too much to decide it"
            return "one repetition, clear by more than repeated ones scatter"
        return (
            why.partition(", farthest")[0]
            .replace("draws", "repetitions")
            .replace("values are", "repetitions are")
            .replace("outside", "outside the bounds")
        )

    @property
    def others(self) -> tuple[Tested, ...]:
        """The tests under other conditions that this run was meant to have."""
        return tuple(test for test in self.tests[1:] if not test.left_out)

    @property
    def left_out(self) -> int:
        """The number of its conditions that only `--only robustness` runs."""
        return sum(test.left_out for test in self.tests[1:])

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Every verdict that it has under some condition."""
        return tuple(dict.fromkeys(test.verdict for test in self.tests))

    @property
    def _judged(self) -> list[Tested]:
        """Its tests under the own and other conditions that came to a verdict of what is measured."""
        return [test for test in self.tests if test.verdict in JUDGED]

    @property
    def _times_held(self) -> int:
        return sum(test.verdict == "holds" for test in self._judged)

    @property
    def held(self) -> str:
        """ "4 of 6": the conditions under which it holds; "" if there is only one."""
        judged = len(self._judged)
        return f"{self._times_held} of {judged}" if judged > 1 else ""

    @property
    def turned(self) -> str:
        """The conditions under which it has another verdict, by the levels that all of them have in common: "failover:
        RFC 4960"; what one draw cannot decide has not turned.
        """
        others = [test for test in self._judged[1:] if not (test.alone and test.alone[0] in self.ranges)]
        left = [test for test in others if test.verdict not in (self.own.verdict, "inconclusive")]
        said = []
        for level, _ in Counter(level for test in left for level in test.levels).most_common():
            with_it = [test for test in left if level in test.levels]
            if with_it and all(test.verdict != self.own.verdict for test in others if level in test.levels):
                said.append(": ".join(level))
                left = [test for test in left if test not in with_it]
        said += [test.condition for test in left[:NAMED]]
        return "; ".join([*said, *([f"{len(left) - NAMED} other combinations"] if left[NAMED:] else [])])

    @property
    def robustness(self) -> str:
        """Under how many of its conditions it holds, and those with another verdict; "" if there is only one
        condition.
        """
        if not self.held:
            return ""
        today = " with today's stack" if any(value.kind == "column" for value in self.own.values) else ""
        said = [f"holds in {self.held} conditions{today}"]
        # where all levels have one verdict, the count has said it
        said += [f"by {title}: {text}" for title, text in self.ranges.items() if text.count(" for ") > 1]
        otherwise = "not with" if self.own.verdict == "holds" else "it does with"
        return "; ".join([*said, *([f"{otherwise} {self.turned}"] if self.turned else [])])

    @property
    def needed(self) -> str:
        """ "> 5 %": what the rule asks of the number; "" where no number is judged."""
        shown = self.own.expected and any(value.number for value in self.own.values)
        return f"{self.own.expected} {self.own.unit}".rstrip() if shown else ""

    @property
    def sure(self) -> str:
        """The certainty of the verdict, and the number of conditions under which it holds."""
        return "; ".join(part for part in (self.sureness, self.robustness) if part)

    @property
    def ranges(self) -> dict[str, str]:
        """Title of a factor of which at least three levels were tested, all else being equal -> the levels with each
        verdict: "holds for 5 s, 8 s, does not hold for 2 s".
        """
        tried: dict[str, list[tuple[str, str]]] = {}
        for test in self.tests[1:]:
            if test.alone:
                tried.setdefault(test.alone[0], []).append((test.alone[1], test.verdict))
        said = {}
        for title, levels in tried.items():
            own = [(level, self.own.verdict) for name, level in self.levels if name == title]
            if len(levels) < 2 or not own:
                continue
            ordered = sorted([*own, *levels], key=lambda pair: quantity_order(pair[0]))
            verdicts = dict.fromkeys(("holds", *(verdict for _, verdict in ordered)))
            by_verdict = {name: [level for level, verdict in ordered if verdict == name] for name in verdicts}
            said[title] = ", ".join(f"{name} for {', '.join(titles)}" for name, titles in by_verdict.items() if titles)
        return said


def quantity_order(level: str) -> tuple[float, str]:
    """Sorts levels by the number that they begin with; those without one come last, by name."""
    value = number(level.partition(" ")[0])
    return (float("inf") if value is None else value, level)


def statements(data: RunData) -> tuple[Statement, ...]:
    """The claims of a run."""
    return statements_of(data.plan, data.claims, data.claim_details, data.system)


def statements_of(
    plan: Outputs, rows: Sequence[Row], claim_details: Sequence[Row], system: str
) -> tuple[Statement, ...]:
    """The rows of claims.csv, put together by statement. claim_details: of the table of that name. system: what was
    measured.
    """
    known = {claim.name: claim for claim in plan.claims}
    details = {_name(row): row for row in claim_details}
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row["claim"], []).append(row)
    of = _Claims(plan, system, metric_names(plan, {}))
    return tuple(_statement(of, base, own, known, details) for base, own in grouped.items())


@dataclass(frozen=True, slots=True)
class _Claims:
    """What the rows of claims.csv refer to."""

    plan: Outputs
    system: str
    metrics: Mapping[str, MetricHeading]


def _name(row: Row) -> str:
    """The claim's name (Claim.name) that a row is of."""
    return f"{row['claim']} {row['condition']}".rstrip()


def _statement(
    data: _Claims, base: str, rows: Sequence[Row], known: dict[str, Claim], details: dict[str, Row]
) -> Statement:
    claim = known.get(base)
    return Statement(
        id=base,
        text=claim.text if claim else base,
        source=rows[0].get("source") or "",
        statistic=_statistic(data, claim) if claim else "",
        tests=tuple(_tested(data, row, known.get(_name(row)), details.get(_name(row), {})) for row in rows),
        claim_class=claim.claim_class if claim else "own",
        ko=claim.sentence.ko if claim and claim.sentence else "",
        en=claim.sentence.en if claim and claim.sentence else "",
        amendments=claim.amendments if claim else (),
        distance=_distance(claim, number(rows[0].get("measured"))),
        levels=tuple(_own_levels(data, claim)) if claim else (),
        overlap=claim.overlap if claim else None,
        first=rows[0].get("first_verdict") or "",
    )


def _own_levels(data: _Claims, claim: Claim) -> Iterator[tuple[str, str]]:
    """Factors that have one level in every selector of a claim."""
    for factor in claim.a[0] if claim.a else ():
        levels = {tuple(selector.get(factor, ())) for selector in (*claim.a, *claim.b)}
        if len(levels) == 1 and len(combination := next(iter(levels))) == 1:
            yield data.plan.factor_title(factor), data.plan.level_title(factor, combination[0])


def _statistic(data: _Claims, claim: Claim) -> str:
    """The quantity that is compared: of a claim in a metric's own unit the metric."""
    if claim.kind in ("value", "every", "difference"):
        metric = data.metrics.get(claim.metric)
        return metric.title if metric is not None else claim.metric
    single = not claim.over and len(claim.a) == len(claim.b) == 1
    plain = single and claim.kind in ("greater", "less", "equal")
    statistic = "difference" if plain else _STATISTICS.get(claim.kind, "")
    metric = data.metrics.get(claim.metric)
    timed = metric is not None and metric.unit == "s"  # less is better, which the sign alone does not say
    return f"{statistic} of the {metric.title}" if timed and metric is not None and statistic else statistic


def _distance(claim: Claim | None, measured: float | None) -> float | None:
    """The distance; for a gain, that of the ratio: 1.16 for 1.18."""
    if claim is None or claim.expected is None or measured is None:
        return None
    offset = 0.0 if claim.kind in ("value", "every", "difference") else 1.0
    return (measured + offset) / (claim.expected + offset) - 1 if claim.expected + offset else None


def _tested(data: _Claims, row: Row, claim: Claim | None, detail: Row) -> Tested:
    measured, expected, unit = row.get("measured") or "", row.get("expected") or "", row.get("unit") or ""
    relative = claim is not None and claim.kind in _STATISTICS
    divisor, shown_unit = (1.0, "%") if relative else scale([number(measured), number(expected)], unit)
    measured_text = _percent(measured, claim) if relative else _scaled(measured, divisor)
    expected_text = _bound(expected, 0.01 if relative else divisor) + _tolerance(claim, 0.01 if relative else divisor)
    return Tested(
        id=_name(row),
        levels=_condition(data.plan, claim)
        if claim
        else (("condition", row["condition"]),)
        if row["condition"]
        else (),
        verdict=row["verdict"],
        measured=measured_text,
        expected=expected_text,
        unit=shown_unit,
        why=detail.get("reason") or (claim.reason if claim else ""),
        exact=f"{measured} {unit}".strip() if measured else "",
        values=_values(data, row, claim if relative else None, divisor, shown_unit),
        left_out=row["verdict"] == "not tested" and claim is not None and _of_robustness(data, claim),
    )


def _condition(plan: Outputs, claim: Claim) -> tuple[tuple[str, str], ...]:
    """Titles of the factors and levels of a claim's condition."""
    return tuple(
        (plan.factor_title(factor), " or ".join(plan.level_title(factor, level) for level in levels))
        for factor, levels in claim.condition.items()
    )


def _of_robustness(data: _Claims, claim: Claim) -> bool:
    """True if a condition has another level than the usual one of a factor that the source does not state."""
    usual = {factor.name: factor.usual for factor in data.plan.factors if factor.unstated}
    return any(level != usual.get(name, level) for name, levels in claim.condition.items() for level in levels)


def _values(data: _Claims, row: Row, relative: Claim | None, divisor: float, unit: str) -> tuple[Value, ...]:
    """The numbers of every source, this kernel and every column (of this kernel also if there is none)."""

    def shown(text: str) -> str:
        return _percent(text, relative) if relative else _scaled(text, divisor)

    def value(name: str, title: str, kind: str) -> Value:
        text = row.get(name) or ""
        verdict = row.get(f"{name}_verdict") or ""
        return Value(name, title, shown(text), unit, "", verdict, kind, number(text))

    sources = [
        value(source.name, source.title, "paper" if source.kind == "paper" else "source")
        for source in data.plan.sources
        if row.get(source.name)
    ]
    columns = [value(column.name, column.title, "column") for column in data.plan.columns if row.get(column.name)]
    low, high = row.get("ci95_low") or "", row.get("ci95_high") or ""
    interval = f"[{shown(low).lstrip('+')}, {shown(high).lstrip('+')}]" if low and high else ""
    return (*sources, replace(value("measured", data.system, "own"), interval=interval), *columns)


def _percent(text: str, claim: Claim | None) -> str:
    """A relative number in percent, with a sign unless it is a variation."""
    value = number(text)
    if value is None:
        return text
    if abs(value) < 5e-6:  # of a sum that other segments make up: no difference that a reader has to see
        return "0"
    text = fixed(value * 100, min(4, max(1, decimals([value * 100], 2))))
    return f"+{text}" if value > 0 and claim is not None and claim.kind not in ("constant", "varies") else text


def _scaled(text: str, divisor: float) -> str:
    value = number(text)
    return text if value is None else readable(value / divisor)


def _bound(text: str, divisor: float) -> str:
    """The expected value or bound with the digits of the spec: "0.18", "> 0", "≤ 0.0084"."""
    comparison, _, rest = text.rpartition(" ")
    value = number(rest)
    if value is None:
        return text
    sign = {"<=": "\u2264", ">=": "\u2265"}.get(comparison, comparison)
    return f"{sign} {given(value / divisor)}".strip()


def _tolerance(claim: Claim | None, divisor: float) -> str:
    """The tolerance of a claim of a number: " ± 0.02"."""
    if claim is None or not claim.tolerance or claim.kind not in _AROUND:
        return ""
    return f" \u00b1 {given(claim.tolerance / divisor)}"
