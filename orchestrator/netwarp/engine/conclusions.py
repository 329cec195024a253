"""What `netwarp sctp check`, `sctp advise` and `search` conclude, in sentences: terminal and report show the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..core.metrics.catalogue import METRICS
from ..core.numbers import in_short, percent
from ..core.units import counted
from ..store.conclusion import Conclusion, Part, Sentence

if TYPE_CHECKING:
    from .sctp_advice import SctpAdvice, Shown
    from .sctp_bounds import SctpBudget
    from .sctp_check import Finding, SctpCheck
    from .search import SearchResult, Tried

SHOWN = 5
"""Points of a search, the best first."""


def check_conclusion(checked: SctpCheck) -> Conclusion:
    """What is wrong with the settings of two ends, the worst first, then what is well."""
    about = []
    for name, side in (("A", checked.a), ("B", checked.b)):
        said = ", ".join(f"{key} {_word(value)}" for key, value in side.settings.items()) or "nothing is set"
        about.append(Sentence(f"{side.title}: {said}", name))
        if side.ignored:
            about.append(Sentence(f"not looked at: {', '.join(side.ignored)}"))
        about += map(Sentence, side.remarks)
        about += [Sentence(trap.words) for trap in checked.traps[name]]
    cells = counted(len(checked.run.plan.cells), "cell")
    wrong = len(checked.findings)
    answer = f"{counted(wrong, 'thing is', 'things are')} wrong, found in {cells}." if wrong else (
        f"Nothing is wrong in these {cells}."
    )  # fmt: skip
    parts = []
    if checked.findings:
        parts.append(Part("What is wrong, worst first", tuple(map(_finding, checked.findings)), numbered=True))
    if checked.good:
        parts.append(Part("What is well", tuple(Sentence(each.text, cells=each.cells) for each in checked.good)))
    return Conclusion(command="sctp check", answer=answer, about=tuple(about), parts=tuple(parts))


def _finding(finding: Finding) -> Sentence:
    return Sentence(finding.text, remedy=finding.remedy, cells=finding.cells)


def advice_conclusion(advice: SctpAdvice) -> Conclusion:
    """How many of the settings that were run keep the budget, and what was measured with each."""
    budget, run = advice.budget, len(advice.shown)
    keeping = sum(each.keeps(budget) for each in advice.shown)
    answer = (
        f"{keeping} of {counted(run, 'pair')} of settings that {'was' if run == 1 else 'were'} run "
        f"{'keeps' if keeping == 1 else 'keep'} the budget; {advice.considered} keep it by their timers alone."
    )
    back, survive, spare, rtt = (
        in_short(value / 1e9, "s") for value in (budget.back_ns, budget.survive_ns, budget.spare_ns, budget.rtt_ns)
    )
    asked = [
        f"new data after at most {back}",
        *([f"data back on a repaired path after at most {spare}"] if budget.paths > 1 else []),
        f"outages of {survive} survived",
        f"at most {percent(budget.needless, 2)} of messages sent twice",
        f"round trip {rtt}, {counted(budget.paths, 'path')}, both ends alike",
    ]
    return Conclusion(
        command="sctp advise",
        answer=answer,
        about=(Sentence("; ".join(asked), "budget"),),
        parts=tuple(_candidate(each, budget) for each in advice.shown),
    )


def _candidate(shown: Shown, budget: SctpBudget) -> Part:
    from .sctp_advice import limit_text  # here: that module imports this one

    options = ", ".join(f"{key} = {_word(value)}" for key, value in shown.settings.options(budget.paths).items())
    sentences = []
    if budget.paths > 1:
        text = _worst(shown.moves_ns, shown.computed_moves_ns)
        sentences.append(f"new data on the other path after the one in use fails: {text}")
        text = _worst(shown.spare_ns, shown.computed_spare_ns)
        sentences.append(f"data on a path again after its repair: {text}")
    every = " of both paths" if budget.paths > 1 else ""
    sentences.append(f"new data after a repair{every}: {_worst(shown.back_ns, shown.computed_back_ns)}")
    limit = limit_text(shown.survives_ns, up=False)
    survived = f"{shown.outages - shown.lost} of {shown.outages} outages survived"
    sentences.append(f"{survived}; computed: any outage{every} shorter than {limit}")
    needless = "unknown" if shown.needless is None else percent(shown.needless, 2)
    sentences.append(f"messages sent twice without need: {needless}")
    title = f"{'keeps it' if shown.keeps(budget) else 'does not keep it'}: {options}"
    return Part(title, tuple(map(Sentence, sentences)))


def _worst(measured_ns: float | None, computed_ns: float | None) -> str:
    """Measured beside computed."""
    if measured_ns is None or computed_ns is None:
        return "unknown (a cell did not complete, or nothing came)"
    measured, computed = (in_short(each / 1e9, "s") for each in (measured_ns, computed_ns))
    if measured_ns > computed_ns:
        return f"measured at worst {measured}, more than the {computed} that were computed, so the bound does not hold"
    gap = percent((computed_ns - measured_ns) / computed_ns, 2)
    return f"measured at worst {measured}, computed at worst {computed} (gap {gap})"


def _word(value: object) -> str:
    """A setting's value as a spec has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def search_conclusion(result: SearchResult) -> Conclusion:
    """The best point of a search, those that follow, and how much of the box was seen."""
    searched = result.searched
    asked, ranked = searched.asked, searched.ranked
    whose = f" of {asked.flow}" if asked.flow else ""
    title = METRICS[asked.metric].title if asked.metric in METRICS else asked.metric
    if not ranked:
        answer = f"No point has a value of {title}{whose}."
    else:
        value = in_short(ranked[0][1].value, searched.unit)
        answer = f"The {'largest' if asked.largest else 'smallest'} {title}{whose} is {value}, at "
        answer += f"{levels_text(ranked[0][1])}."
    return Conclusion(command="search", answer=answer, parts=(Part("", tuple(_points(result))),))


def _points(result: SearchResult) -> Iterator[Sentence]:
    searched, ranked = result.searched, result.searched.ranked
    seen = len(searched.tried)
    if ranked:
        number, best = ranked[0]
        how = "drawn by chance" if best.drawn else "chosen by TPE from those before"
        yield Sentence(f"as point {number} of {seen}, {how}", "found", cells=best.cells)
        near, of = result.neighbours
        worse = ", none is worse" if near else ""
        beside = f"{near} of its {counted(of, 'neighbour')} (one factor, one step) measured{worse}"
        yield Sentence(beside, "beside it")
        for rank, (number, each) in enumerate(ranked[1:SHOWN], 2):
            text = f"{in_short(each.value, searched.unit)} at {levels_text(each)} (point {number})"
            yield Sentence(text, f"{rank}.", cells=each.cells)
    part = f"{percent(seen / searched.points)} of the box; of the rest nothing is known"
    whole = "all of the box" if seen == searched.points else part
    yield Sentence(f"{seen} of {counted(searched.points, 'point')}: {whole}", "seen")
    if without := [each for each in searched.tried if each.why]:
        text = f"{counted(len(without), 'point')}; the first: {without[0].why}"
        yield Sentence(text, "no value", cells=without[0].cells)


def levels_text(tried: Tried) -> str:
    """The levels of a point in a sentence."""
    return ", ".join(f"{factor} {level}" for factor, level in tried.levels.items())
