"""The page of an agreement of two runs: one file without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ...core.version import __version__
from ...results.agreement import VERDICTS, Agreed, Agreement, MetricAgreement, Verdict
from ...results.compare import Levels
from ...results.tolerance import EXPLAINED
from ..agreement_words import amount, gap_words, interval_words, levels_words, sentences
from ..html import environment
from .build import STATIC

CLASSES: dict[Verdict, tuple[str, str]] = {
    "agree": ("\u2713", "holds"),
    "differ": ("\u2717", "fails"),
    "unclear": ("\u2248", "unsure"),
    "not comparable": ("\u2013", "untested"),
}
WIDTH, HEIGHT, REACH = 360.0, 30.0, 2.0
"""Of a strip, in its own units; how many bounds it reaches to either side."""


@dataclass(frozen=True, slots=True)
class SideFacts:
    """One of the two runs. late: in words, how late the host let its cells wake; again: cells that were rerun."""

    name: str
    backend: str
    kernel: str
    outcomes: str
    jobs: int
    load: float
    started_utc: str
    again: tuple[str, ...]
    late: str = ""


@dataclass(frozen=True, slots=True)
class AgreementPage:
    """The contents of the page. first_divergences: by place, the first packets that differ, in words."""

    title: str
    part: str
    sides: Sequence[SideFacts]
    agreement: Agreement
    first_divergences: Mapping[Levels, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Dot:
    """A number on its metric's strip: x in the strip's units, the verdict's class, and what it says."""

    x: float
    y: float
    css: str
    text: str


def agreement_page(page: AgreementPage) -> bytes:
    """Its bytes."""
    names = [side.name for side in page.sides]
    not_agreeing = {
        verdict: sorted(
            (number for number in page.agreement.numbers if number.verdict == verdict),
            key=lambda number: -abs(number.difference or 0.0) / (number.bound or 1.0),
        )
        for verdict in ("differ", "unclear", "not comparable")
    }
    by_metric: dict[str, list[Agreed]] = {}
    for number in page.agreement.numbers:
        by_metric.setdefault(number.metric, []).append(number)
    return (
        environment()
        .get_template("agreement.html.j2")
        .render(
            page=page,
            names=names,
            sentences=sentences(page.agreement, names),
            verdicts=[(verdict, page.agreement.count(verdict), *CLASSES[verdict]) for verdict in VERDICTS],
            metrics=[(metric, dots(metric, by_metric[metric.metric])) for metric in page.agreement.metrics()],
            not_agreeing=not_agreeing,
            explained=EXPLAINED,
            amount=amount,
            interval=interval_words,
            gap=gap_words,
            levels=levels_words,
            strip=(WIDTH, HEIGHT, REACH),
            style=Markup((STATIC / "report.css").read_text()),
            version=__version__,
        )
        .encode()
    )


def dots(metric: MetricAgreement, numbers: Sequence[Agreed]) -> list[Dot]:
    """Each place of a metric as a dot: its difference in units of its bound; larger ones at the strip's edge. The dots
    are spread over the height in the order of the plan.
    """
    result = []
    for place, number in enumerate(numbers):
        if number.difference is None or not number.bound:
            continue
        out = max(-REACH, min(REACH, number.difference / number.bound))
        text = f"{levels_words(number.levels)}: {interval_words(number)}, bound {amount(number.bound, number.unit)}"
        x = WIDTH / 2 * (1 + out / REACH * 0.97)
        y = 5 + (HEIGHT - 10) * ((place * 7) % 11) / 10
        result.append(Dot(round(x, 1), round(y, 1), CLASSES[number.verdict][1], text))
    return result
