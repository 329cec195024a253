"""The page of two runs compared: one file without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.version import __version__
from ...results.compared_numbers import OF_AGREEMENT, ComparedNumber, Verdict
from ...results.run_comparison import RunComparison
from ...results.tolerance import EXPLAINED
from ..comparison_words import amount, gap_words, interval_words, levels_words, sentences
from ..html import environment
from ..stylesheets import stylesheet

CLASSES: dict[Verdict, tuple[str, str]] = {
    **dict.fromkeys(("agree", "same", "unresolved", "within noise"), ("\u2713", "holds")),
    **dict.fromkeys(("differ", "changed"), ("\u2717", "fails")),
    **dict.fromkeys(("not comparable", "only in A", "only in B"), ("\u2013", "untested")),
    "unclear": ("\u2248", "unsure"),
}
"""Sign and CSS class of a verdict."""
OF_CHANGE: tuple[Verdict, ...] = (
    "changed", "unclear", "within noise", "unresolved", "same", "only in A", "only in B",
)  # fmt: skip
WIDTH, HEIGHT, REACH = 360.0, 30.0, 2.0
"""Of a strip, in its own units; how many bounds it reaches to either side."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A number on its metric's strip: x in the strip's units, the verdict's class, and what it says."""

    x: float
    y: float
    css: str
    text: str


def comparison_page(compared: RunComparison) -> bytes:
    """Its bytes. The numbers must have been compared."""
    numbers = compared.numbers
    assert numbers is not None
    sides = (compared.a, compared.b)
    names = [side.name for side in sides]
    by_metric: dict[str, list[ComparedNumber]] = {}
    for number in numbers.numbers:
        by_metric.setdefault(number.metric, []).append(number)
    verdicts = OF_AGREEMENT if numbers.bounded else OF_CHANGE
    named: Sequence[Verdict] = [verdict for verdict in verdicts if CLASSES[verdict][1] != "holds"]
    return (
        environment()
        .get_template("comparison.html.j2")
        .render(
            compared=compared,
            numbers=numbers,
            sides=sides,
            names=names,
            sentences=sentences(numbers, names),
            verdicts=[(verdict, numbers.counts[verdict], *CLASSES[verdict]) for verdict in verdicts],
            metrics=[(metric, dots(by_metric[metric.metric])) for metric in numbers.metrics()],
            apart={verdict: numbers.of(verdict) for verdict in named},
            divergences={
                levels: [divergence.words(*names) for divergence in divergences]
                for levels, divergences in compared.divergences.items()
            },
            explained=EXPLAINED,
            amount=amount,
            interval=interval_words,
            gap=gap_words,
            levels=levels_words,
            strip=(WIDTH, HEIGHT, REACH),
            style=stylesheet("comparison"),
            version=__version__,
        )
        .encode()
    )


def dots(numbers: Sequence[ComparedNumber]) -> list[Dot]:
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
