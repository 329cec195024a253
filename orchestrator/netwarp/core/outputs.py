"""Outputs of an experiment: tables, figures, claims and answers, as frozen types; selectors of cells by level."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from .types import Frozen

Levels = dict[str, tuple[str, ...]]
"""A selector: factor -> the levels it may have ("-": where the factor does not apply). All must match.

EXPERIMENT in place of a factor: the experiments that may have asked for the cell.
"""
EXPERIMENT = "experiment"

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
    "greater", "less", "equal", "mean_greater", "gain", "mean_gain", "pooled_gain", "mean", "value", "every",
    "constant", "increasing", "decreasing", "later", "untestable",
]  # fmt: skip
ClaimClass = Literal["conclusion", "number", "cause", "own"]
"""Classes of claims: what the paper tells its reader, a number it prints, a "because" of it, or a check of our own."""
SourceKind = Literal["paper", "simulator", "other"]
"""What a source is: the paper that makes the claims, a simulator run again, or something else."""


class Metric(Frozen, frozen=True):
    """A metric of the spec's own, or one of the contract's that a table uses (which has no expression)."""

    name: str
    title: str
    unit: str
    expression: str = ""


class Table(Frozen, frozen=True):
    """One number for each combination of the row and column factors. flows: as `Figure.flows`.

    beside: metrics of the same cells that stand beside it, as other sources' numbers do (a model's, say).
    """

    name: str
    title: str
    metric: str
    flows: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    where: Levels
    beside: tuple[str, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """The factors (and FLOW) that identify one number, in the order of its columns."""
        return (*self.rows, *self.columns)


FigureKind = Literal["line", "heatmap", "cdf", "box"]


class Figure(Frozen, frozen=True):
    """A figure of one metric. Factors that a kind does not use are empty.

    flows: one ("": the cell's own metric), or, with FLOW among the axes, those that are shown; none: every flow that
    has the metric.

    line: the metric over the levels of `x`, one line for each combination of `lines`. heatmap: its mean for each `x`
    and `y`, a panel for each combination of `panels`. cdf: the distribution of its values, a step for each combination
    of `lines`, pooled over the repetitions and the levels of `over`. box: the same as boxes over the levels of `x`.
    log (line only): its metric's axis is logarithmic.
    beside (line only): metrics of the same cells, drawn as other sources' numbers are (a model's, say).
    """

    name: str
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
        """Whether it shows every repetition, not their mean."""
        return self.kind in ("cdf", "box")


class TimeSeries(Frozen, frozen=True):
    """A figure over time of the cells `where`: each series of each path of each of the flows.

    window_ns: from, to; None: all.
    """

    name: str
    title: str
    flows: tuple[str, ...]
    series: tuple[str, ...]
    window_ns: tuple[int, int] | None
    where: Levels


class EventTable(Frozen, frozen=True):
    """The packets next to moments (MOMENTS) of the cells `where`: `packets` before and as many after each."""

    name: str
    title: str
    flow: str
    around: tuple[str, ...]
    packets: int
    where: Levels


class Source(Frozen, frozen=True):
    """Where other people's numbers come from; its name heads their column."""

    name: str
    title: str
    kind: SourceKind = "other"


class PublishedNumber(Frozen, frozen=True):
    """A number somebody else published for the cells `at`."""

    source: str
    metric: str
    at: Levels
    value: float
    printed: str


class Sentence(Frozen, frozen=True):
    """What the paper says, in its own words and in English. ko: empty where the paper is not in Korean."""

    ko: str
    en: str


class Word(Frozen, frozen=True):
    """A word of the paper as a tolerance, written down before the run. source: the paper's own use it comes from."""

    name: str
    tolerance: float
    source: str


class Amendment(Frozen, frozen=True):
    """A change of a claim after its first run. date: 2026-11-22."""

    date: str
    reason: str


class Column(Frozen, frozen=True):
    """Other levels under which every claim is judged again, beside its own: an era-like stack, say."""

    name: str
    title: str
    where: Levels


class Claim(Frozen, frozen=True):
    """A statement with a test. `a`, `b`: selectors, each of `a` against each of `b`; `over`: factor and its levels.

    flow: of the selectors (and levels of `over`) that name no flow themselves.

    expected, tolerance: see docs/spec.md for each kind. of: the claims a `mean` is of (under the same condition).
    reason: why a claim of kind `later` is not tested, or one of kind `untestable` never can be. condition: the levels
    of `also`, or of a column, that it is tested under instead of its own; claims that differ only in it have the same
    id. column: the name of that column. word: the word of the paper that gave the tolerance.
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
    column: str = ""

    @property
    def tested(self) -> bool:
        """Whether it has a test."""
        return self.kind not in ("later", "untestable")

    @property
    def condition_text(self) -> str:
        """`failover=rfc4960 reading=rtt`; empty for the claim's own."""
        return " ".join(f"{factor}={'|'.join(levels)}" for factor, levels in self.condition.items())

    @property
    def name(self) -> str:
        """Its id and condition: what tells it from every other claim."""
        return f"{self.id} {self.condition_text}".rstrip()


class Reason(Frozen, frozen=True):
    """A reason in words, given where the metric is above a number (None: above the budget). `{metric}` in the text is
    that metric's value in the worst cell, `{value}` this one's.
    """

    metric: str
    above: float | None
    text: str


class Cost(Frozen, frozen=True):
    """What a setting must not do: a metric that has to be 0 in the cells `where` that have the same setting."""

    metric: str
    where: Levels
    text: str


class Answer(Frozen, frozen=True):
    """A question answered in words from the measurements: which settings keep a metric within a budget.

    flows: as `Figure.flows`. settings: the factors to choose. given: the factors that are as they are. Over all other
    factors and the repetitions the worst (largest) value counts. budgets: as the spec writes them. tempting: a metric
    that looks like the answer; a setting with that within the budget, and the metric not, is called so.
    """

    name: str
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
        """Every metric it uses but those inside texts."""
        names = {self.metric, self.tempting, *(reason.metric for reason in self.because)}
        return frozenset(names | ({self.cost.metric} if self.cost else set())) - {""}


FORMULA = re.compile(r"[=@\t\r]|[+-](?!([0-9.][\w .%/]*)?\Z)")
"""A sign is harmless alone, or before one number and its unit."""


def looks_like_a_formula(text: str) -> bool:
    """Whether a spreadsheet that opens a table would compute this text: a file from elsewhere must not do that."""
    return FORMULA.match(text) is not None


def matches(factors: Mapping[str, str], where: Levels, experiments: Collection[str]) -> bool:
    """Whether a cell's levels, and one of the experiments it belongs to, satisfy a selector.

    FLOW is compared where `factors` has it: the levels of a cell alone have none.
    """
    return all(
        any(name in levels for name in experiments) if factor == EXPERIMENT else factors.get(factor, "-") in levels
        for factor, levels in where.items()
        if factor != FLOW or FLOW in factors
    )
