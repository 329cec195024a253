"""Outputs of an experiment as frozen types: tables, figures, claims and answers; and selectors of cells by level.

A run keeps them in outputs.json, and reading refuses unknown fields: with a field renamed, removed, or added without a
default, existing runs cannot be read any more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import msgspec

from .frozen import Frozen
from .names import InnerName, Name

Levels = dict[str, tuple[str, ...]]
"""A selector: factor -> the levels it may have ("-": where the factor does not apply). All must match.

EXPERIMENT in place of a factor: the experiments that may have asked for the cell.
"""
EXPERIMENT = "experiment"
ANY_LEVEL = "*"
"""In a selector: every level of a schedule (core/schedule_levels.py), but not where it does not apply."""

FLOW = "flow"
"""The flows of a cell are a dimension as factors are: axes and the selectors of claims may name it, no factor does."""

MOMENTS = (
    "fault",
    "first_retransmission",
    "first_other_path",
    "first_arrival_other_path",
    "repair",
    "first_on_repaired_path",
    "first_arrival_on_repaired_path",
    "heartbeat",
    "heartbeat_ack",
)
"""Moments of a flow around its first fault that an event table may show (docs/spec.md)."""
MOST_PACKETS = 10
"""Packets on either side of a moment that a cell keeps."""

ClaimKind = Literal[
    "greater", "less", "equal", "mean_greater", "difference", "gain",
    "mean_gain", "pooled_gain", "mean", "value", "every", "constant", "varies", "elasticity", "increasing",
    "decreasing", "later", "untestable",
]  # fmt: skip
ClaimClock = Literal["any", "wall"]
"""Clocks that a claim can be tested on: the wall's only, where work of a CPU decides it."""
ClaimClass = Literal["conclusion", "number", "cause", "own"]
"""Classes of claims: what the paper tells its reader, a number it prints, a "because" of it, or a check of our own."""
Verdict = Literal[
    "holds", "weaker, same direction", "does not hold", "inconclusive", "its own source refutes it",
    "not testable here", "not tested",
]  # fmt: skip
SourceKind = Literal["paper", "simulator", "other"]
"""Kind of a source: the paper that makes the claims, a simulator run again, or something else."""


class Metric(Frozen, frozen=True):
    """A metric that the spec defines by an expression or by the numbers of a source, or one of the catalogue that a
    table uses (which has neither).
    """

    name: InnerName
    title: str
    unit: str
    expression: str = ""
    source: str = ""


Statistic = Literal["mean", "min", "median", "p95", "p99", "max"]
"""A number of several repetitions; the percentiles are one of the draws (the inverse of their distribution)."""


class Table(Frozen, frozen=True):
    """A table with one number per combination of the row and column factors. flows: as `Figure.flows`.

    beside: metrics of the same cells shown next to it, as published numbers are (those of a model, for example).
    """

    name: Name
    title: str
    metric: str
    flows: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    where: Levels
    beside: tuple[str, ...] = ()
    statistic: Statistic = "mean"

    @property
    def axes(self) -> tuple[str, ...]:
        """The factors (and FLOW) that identify one number, in the order of its columns."""
        return (*self.rows, *self.columns)


FigureKind = Literal["line", "heatmap", "cdf", "box"]


class Figure(Frozen, frozen=True):
    """A figure of one metric. Members that its kind does not use are empty.

    flows: the flow whose metric is shown ("": the cell's own metric); with FLOW among the axes, the flows that are
    shown; empty: every flow that has the metric.

    line: the metric over the levels of `x`, one line per combination of `lines`. heatmap: its mean per `x` and `y`, one
    panel per combination of `panels`. cdf: the distribution of its values, one step curve per combination of `lines`,
    over all repetitions and all levels of `over`. box: the same values as boxes over the levels of `x`. log (line
    only): logarithmic axis. beside (line only): metrics of the same cells, drawn as published numbers are (those of a
    model, for example).
    """

    name: Name
    title: str
    metric: str
    flows: tuple[str, ...]
    x: str
    lines: tuple[str, ...]
    where: Levels
    kind: FigureKind = "line"
    y: str = ""
    panels: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    log: bool = False
    beside: tuple[str, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """The factors (and FLOW) that identify one number, in the order of its table's columns."""
        return tuple(factor for factor in (*self.panels, *self.lines, self.y, self.x, *self.over) if factor)

    @property
    def distribution(self) -> bool:
        """True if the figure shows each repetition and not their mean."""
        return self.kind in ("cdf", "box")


SAMPLED = (
    "cwnd_bytes", "srtt_s", "ssthresh_bytes", "bbr_bw_bit_s", "bbr_min_rtt_s", "bbr_pacing_gain", "bbr_cwnd_gain",
)  # fmt: skip
"""Series of a cell that are the kernel's own word: samples that the flow's sender asks it for."""


OF_WINDOWS = {
    "share_ratio": "ratio",
    "retransmitted_packets": "packets",
    "lost_packets": "packets",
    "loss_ratio": "ratio",
    "queue_delay_mean_s": "s",
    "queue_delay_p95_s": "s",
    "utilization_ratio": "ratio",
    "jain_index": "ratio",
    "running_flows": "flows",
}
"""Series that a cell has by windows of time alone -> unit."""
SERIES = {
    "cwnd_bytes": "bytes",
    "srtt_s": "s",
    "ssthresh_bytes": "bytes",
    "bbr_bw_bit_s": "bit/s",
    "bbr_min_rtt_s": "s",
    "bbr_pacing_gain": "ratio",
    "bbr_cwnd_gain": "ratio",
    "goodput_bit_s": "bit/s",
    "throughput_bit_s": "bit/s",
    "packets_s": "packets/s",
    "data_packets_s": "packets/s",
    "control_packets_s": "packets/s",
    **OF_WINDOWS,
}
"""Series of a cell (derived/series.json, windows.json) -> unit. Those of SAMPLED: the kernel's own word (SCTP's
threshold: traced).
"""
OF_THE_CELL = ("jain_index", "running_flows")
"""Series of a whole cell, without a flow."""


class TimeSeries(Frozen, frozen=True):
    """A figure over time of the cells that match `where`: each series of each path of each of the flows.

    window_ns: (from, to) in ns from T0; None: the whole cell. flows: also groups, whose flows are drawn alike. panels:
    a panel for each combination of their levels. log: logarithmic axis. windows: the numbers by windows of time of
    [measure].
    """

    name: Name
    title: str
    flows: tuple[str, ...]
    series: tuple[str, ...]
    window_ns: tuple[int, int] | None
    where: Levels
    panels: tuple[str, ...] = ()
    log: bool = False
    windows: bool = False


class EventTable(Frozen, frozen=True):
    """A list of the packets around moments (MOMENTS) of the cells that match `where`: `packets` before and as many
    after each moment.
    """

    name: Name
    title: str
    flow: str
    around: tuple[str, ...]
    packets: int
    where: Levels


class Source(Frozen, frozen=True):
    """A source of published numbers (a paper, a model); its name is the title of their column."""

    name: Name
    title: str
    kind: SourceKind = "other"


class PublishedNumber(Frozen, frozen=True):
    """A number that a source has published for the cells with the levels `at`."""

    source: str
    metric: str
    at: Levels
    value: float
    printed: str
    digit: float = 0.0
    """The unit of the last digit that is printed; 0: the number is exact."""


class Sentence(Frozen, frozen=True):
    """A sentence of the paper, in its own language and in English. ko: empty if the paper is not Korean."""

    ko: str
    en: str


class Word(Frozen, frozen=True):
    """A word of the paper ("similar") as a numeric tolerance, fixed before the run. source: where the paper itself uses
    the word with numbers. overlaps: an opposite word that the paper uses for numbers within this one's tolerance.
    """

    name: str
    tolerance: float
    source: str
    overlaps: str = ""


class Overlap(Frozen, frozen=True):
    """The numbers, above low and up to high, that both a claim's word and its opposite fit."""

    opposite: str
    low: float
    high: float


class Amendment(Frozen, frozen=True):
    """A change of a claim after its first run. date: 2026-11-22. tolerance: the claim's before it, if that is what
    changed; kept_as: the claim that keeps the rule of before it.
    """

    date: str
    reason: str
    tolerance: float | None = None
    kept_as: str = ""


class Column(Frozen, frozen=True):
    """A further column of the claims table: levels under which every claim is judged again (a stack of then)."""

    name: Name
    title: str
    where: Levels


class Claim(Frozen, frozen=True):
    """A statement with a test. `a`, `b`: selectors of cells; each cell of `a` is compared with each of `b`. `over`: a
    factor and its levels.

    flow: used by selectors (and levels of `over`) that name no flow.

    expected, tolerance: docs/spec.md explains them per kind. of: the claims that a claim of kind `mean` averages (under
    the same condition). reason: why a claim of kind `later` is not tested yet, or one of kind `untestable` never can
    be, or why one with clock "wall" cannot be in virtual time. condition: levels of `also` or of a column, under which
    the claim is tested instead of its own levels; claims that differ only in it have the same id. column: the name of
    that column. readings: the other claims that take the same printed number by another formula. word: the paper's word
    that gave the tolerance; overlap: with its opposite.
    """

    id: str
    text: str
    source: str
    kind: ClaimKind
    metric: str = ""
    flow: str = ""
    a: tuple[Levels, ...] = ()
    b: tuple[Levels, ...] = ()
    over: str = ""
    levels: tuple[str, ...] = ()
    expected: float | None = None
    tolerance: float = 0.0
    of: tuple[str, ...] = ()
    metric_b: str = ""
    """Of b; empty: the same as of a."""
    reason: str = ""
    condition: Levels = msgspec.field(default_factory=dict)
    claim_class: ClaimClass = "own"
    sentence: Sentence | None = None
    amendments: tuple[Amendment, ...] = ()
    word: str = ""
    overlap: Overlap | None = None
    column: str = ""
    readings: tuple[str, ...] = ()
    clock: ClaimClock = "any"
    combinations: tuple[int, ...] = ()
    """Of a claim about every schedule: the number of combinations of levels that fit each selector of `a` in the whole
    spec, schedules aside; a run of a part of it has fewer. Empty in runs of before 2026-11-23.
    """

    @property
    def of_schedules(self) -> bool:
        """True if it is about every schedule of packets that fits, not about one combination of levels."""
        return any(ANY_LEVEL in levels for selector in self.a for levels in selector.values())

    @property
    def first_tolerance(self) -> float | None:
        """The tolerance of before its first amendment that changed it; None: none did."""
        made = sorted(self.amendments, key=lambda amendment: amendment.date)
        return next((amendment.tolerance for amendment in made if amendment.tolerance is not None), None)

    @property
    def tested(self) -> bool:
        """True if the claim has a test."""
        return self.kind not in ("later", "untestable")

    @property
    def condition_text(self) -> str:
        """The condition as text, `failover=rfc4960 reading=rtt`; empty for the claim's own levels."""
        return " ".join(f"{factor}={'|'.join(levels)}" for factor, levels in self.condition.items())

    @property
    def name(self) -> str:
        """Id and condition, which together are unique among the claims."""
        return f"{self.id} {self.condition_text}".rstrip()


class Summary(Frozen, frozen=True):
    """The answer to the question of the title, in a sentence. text: a template over claims (docs/spec.md, The answer).
    presumes: claim -> the verdict without which the text would be wrong.
    """

    text: str
    presumes: dict[str, Verdict]

    @property
    def fields(self) -> tuple[Placeholder, ...]:
        """What the text names of claims."""
        return placeholders(self.text)


class Placeholder(Frozen, frozen=True):
    """ "{C6.measured.size @ outage=5 s}": a number or a word of a claim, as it stands in `text`."""

    text: str
    claim: str
    column: str
    form: str = ""
    condition: str = ""

    @property
    def name(self) -> str:
        """Of the claim (Claim.name)."""
        return f"{self.claim} {self.condition}".rstrip()


_PLACEHOLDER = re.compile(r"\{([^{}.\s]+)\.(\w+)(?:\.(\w+))?(?: @ ([^{}]+))?\}")


def placeholders(text: str) -> tuple[Placeholder, ...]:
    """Every placeholder of a template over claims."""
    return tuple(
        Placeholder(match[0], match[1], match[2], match[3] or "", match[4] or "")
        for match in _PLACEHOLDER.finditer(text)
    )


class Reason(Frozen, frozen=True):
    """A text shown as reason where a metric is above a number (None: above the budget). In the text `{metric}` is
    replaced by that metric's value in the worst cell, `{value}` by this metric's value.
    """

    metric: str
    above: float | None
    text: str


class Cost(Frozen, frozen=True):
    """A side effect that a setting must not have: a metric that has to be 0 in the cells that match `where` and have
    the setting.
    """

    metric: str
    where: Levels
    text: str


class Answer(Frozen, frozen=True):
    """A question that is answered from the measurements: which settings keep a metric within a budget.

    flows: as `Figure.flows`. settings: the factors to choose. given: the factors that are fixed by the situation. Over
    all other factors and the repetitions the worst (largest) value counts. budgets: as the spec writes them. tempting:
    a more obvious but misleading metric; a setting that keeps this metric within the budget, but not the real one, is
    reported as sufficient only in appearance.
    """

    name: Name
    title: str
    metric: str
    flows: tuple[str, ...]
    settings: tuple[str, ...]
    given: tuple[str, ...]
    budgets: tuple[str, ...]
    where: Levels
    tempting: str = ""
    because: tuple[Reason, ...] = ()
    cost: Cost | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """The factors (and FLOW) that identify one choice, in the order of its table's columns."""
        return (*self.given, *self.settings)

    @property
    def metrics(self) -> frozenset[str]:
        """Every metric that the answer uses, except those named inside texts."""
        names = {self.metric, self.tempting, *(reason.metric for reason in self.because)}
        return frozenset(names | ({self.cost.metric} if self.cost else set())) - {""}


FORMULA = re.compile(r"[=@\t\r]|[+-](?!([0-9.][\w .%/]*)?\Z)")
"""Beginnings that a spreadsheet takes for a formula. A sign is harmless alone, or before one number and its unit."""


def looks_like_a_formula(text: str) -> bool:
    """True if a spreadsheet would evaluate this text as a formula when it opens a table. Text from outside must not be
    able to do that.
    """
    return FORMULA.match(text) is not None


def matches(factors: Mapping[str, str], where: Levels, experiments: Collection[str]) -> bool:
    """True if a cell matches a selector: its levels, and one of the experiments it belongs to.

    FLOW is compared only if `factors` contains it: the levels of a cell alone do not.
    """
    return all(
        any(name in levels for name in experiments) if factor == EXPERIMENT else _has(factors.get(factor, "-"), levels)
        for factor, levels in where.items()
        if factor != FLOW or FLOW in factors
    )


def _has(level: str, levels: tuple[str, ...]) -> bool:
    return level in levels or (ANY_LEVEL in levels and level != "-")


def expression_of(
    metric: Metric, levels: Mapping[str, str], experiment: str, published: Iterable[PublishedNumber]
) -> str:
    """The metric's expression in a cell of these levels: of a source its only number for it. "": there is none."""
    if not metric.source:
        return metric.expression
    numbers = [
        number.value
        for number in published
        if (number.source, number.metric) == (metric.source, metric.name) and matches(levels, number.at, (experiment,))
    ]
    return repr(numbers[0]) if len(numbers) == 1 else ""
