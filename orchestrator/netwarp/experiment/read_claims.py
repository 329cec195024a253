"""Reads claims.toml: the claims to test with what they quote from the paper, and the sources of published numbers.
Grammar: docs/spec.md, Claims.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping
from typing import get_args

import msgspec

from ..core.outputs import (
    Amendment,
    Claim,
    ClaimClass,
    ClaimClock,
    ClaimKind,
    Column,
    Levels,
    Overlap,
    Sentence,
    Source,
    SourceKind,
    Summary,
    Verdict,
    Word,
)
from ..core.units import base_values, same_value
from .factors import DOES_NOT_APPLY, RESERVED_COLUMNS
from .fields import Field, check_keys
from .grammar import OF_EXPERIMENT
from .loops import expand_claims, laid
from .problems import nearest
from .read_outputs import OutputReader
from .toml_positions import Item

KINDS: tuple[ClaimKind, ...] = get_args(ClaimKind)
CLASSES: tuple[ClaimClass, ...] = get_args(ClaimClass)
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
GAINS = frozenset({"gain", "mean_gain", "pooled_gain"})
TWO_SIDED = frozenset({"greater", "less", "equal", "mean_greater", "difference", *GAINS})
NEEDS_OVER = frozenset({"constant", "varies", "elasticity", "increasing", "decreasing"})
ALONE = frozenset({"value", "every", "elasticity"})
NEEDS_EXPECTED = frozenset({"mean", "difference", *ALONE, *GAINS})
_TEXT = Field("text", '"Table 5"')
_OPEN = Field("open", '{ variant = "tcp" }')
SENTENCE = {"ko": Field("text", '"TCP가 가장 우수하다."'), "en": Field("text", '"TCP performs best."')}
AMENDMENT = {
    "date": Field("text", '"2026-11-22"'),
    "reason": Field("text", '"the paper says depends on"'),
    "was": Field("open", '0.05, or "C2e"'),
}
WORD = {
    "tolerance": Field("open", "0.143"),
    "source": Field("text", '"Table 6: 0.080 against 0.070"'),
    "overlaps": Field("name", '"better"'),
    "amended": Field("open", '["scale"]'),
}
SOURCE = {
    "title": Field("text", '"Choi, Lee 2009"'),
    "kind": Field("choice", '"simulator"', choices=SOURCE_KINDS),
}
COLUMN = {"title": Field("text", '"Linux, as in 2005"'), "where": Field("open", '{ stack = "linux-2.6.10-like" }')}
CLAIM = {
    "id": Field("text", '"C6"'),
    "text": Field("text", '"SCTP with two paths beats TCP at every outage."'),
    "source": _TEXT,
    "kind": Field("choice", '"greater"', choices=KINDS),
    "metric": Field("text", '"goodput_bit_s"'),
    "metric_b": Field("text", '"cwnd_initial_bytes"'),
    "flow": Field("text", '"ftp"'),
    "experiment": OF_EXPERIMENT,
    "where": _OPEN,
    "a": _OPEN,
    "b": _OPEN,
    "over": Field("levels", '{ outage = ["5 s", "10 s"] }'),
    "also": Field("open", '{ run_length = ["2 s", "5 s"] }'),
    "of": Field("names", '["C17", "C23"]'),
    "expected": _OPEN,
    "tolerance": _OPEN,
    "reason": _TEXT,
    "clock": Field("choice", '"wall"', choices=("wall",)),
    "class": Field("choice", '"conclusion"', choices=CLASSES),
    "paper": Field("open", '{ ko = "TCP가 가장 우수하다.", en = "TCP performs best." }'),
    "readings": Field("names", '["C34b", "C34c"]'),
    "amended": Field("open", '["words"] or [{ date = "2026-11-22", reason = "the paper says: depends on" }]'),
}
UNTESTED = ("later", "untestable")
"""Kinds without a test: not yet, and never on this instrument."""
OF_ITS_CELLS = ("experiment", "metric", "metric_b", "where", "a", "b", "over")
"""Keys that say which numbers of which cells a claim compares."""
SUMMARY = {
    "text": Field("text", '"Mostly: SCTP beats TCP in every outage, by {C6.measured} or more."'),
    "presumes": Field("open", '{ C6 = "holds", C21 = "does not hold" }'),
}
FORMS = ("size", "times", "interval")
"""Forms of a number in a text: without its sign, as a multiple, its interval alone."""
FILE = {
    "source": Field("map", '[source.paper] with title = "Choi, Lee 2009"', fields=SOURCE),
    "word": Field("map", "[word.same] with tolerance = 0.143", fields=WORD),
    "amendment": Field("map", '[amendment.words] with date = "2026-11-22"', fields=AMENDMENT),
    "column": Field("map", '[column.era] with where = { stack = "linux-2.6.10-like" }', fields=COLUMN),
    "headline": Field("names", '["C6", "C21"]'),
    "summary": Field("table", '{ text = "Yes, by {C6.measured}.", presumes = { C6 = "holds" } }', fields=SUMMARY),
    "claim": Field("tables", '[[claim]] with id = "C6"', fields=CLAIM),
}


class ClaimReader:
    """Reads one claims.toml against a spec's factors and metrics, and collects all mistakes."""

    def __init__(self, document: Item, known: OutputReader) -> None:
        self._known, self._problems = known, known.problems
        self._document = document = expand_claims(document, CLAIM, (*UNTESTED, "mean"), known.problems)
        self.places: dict[str, Item] = {}
        """Claim, by its name -> where it is written."""
        check_keys(document, FILE, known.problems)
        self.words = {name: self._word(name, item) for name, item in document.under("word").items()}
        for name, item in document.under("word").items():
            opposite = self.words[name].overlaps
            if opposite and (opposite == name or opposite not in self.words):
                self._problems.add(
                    item, f'overlaps: there is no other word "{opposite}"{nearest(opposite, self.words)}'
                )
        self._amended_words = {
            name: self._amendments(item) for name, item in document.under("word").items() if item.get("amended")
        }
        self._sentences: dict[str, Sentence] = {}

    def sources(self) -> tuple[Source, ...]:
        """Every [source.NAME] in order."""
        sources: list[Source] = []
        for name, item in self._document.under("source").items():
            kind = item.choice("kind", SOURCE_KINDS, "other")
            self._check_column(name, item, "the source ")
            if kind == "paper" and any(other.kind == kind for other in sources):
                self._problems.add(item, "a second paper: one source makes the claims, the others are of another kind")
            sources.append(Source(name, item.text("title", name), kind))
        return tuple(sources)

    def columns(self) -> tuple[Column, ...]:
        """Every [column.NAME] in order."""
        columns: list[Column] = []
        for name, item in self._document.under("column").items():
            where = self._known.where(item.get("where"))
            if not where:
                self._problems.add(item, f"its where is missing; for example where = {COLUMN['where'].example}")
            self._check_column(name, item, "it ")
            columns.append(Column(name, item.text("title", name), where))
        return tuple(columns)

    def _check_column(self, name: str, item: Item, what: str) -> None:
        if name in RESERVED_COLUMNS or name in self._known.factors:
            self._problems.add(item, f'"{name}" is a column of the tables already; call {what}otherwise')

    def headline(self) -> tuple[str, ...]:
        """The claims that the report shows first. Call it after claims()."""
        names = self._document.texts("headline")
        for name in names:
            if name not in self.places:
                place = (self._document.get("headline") or self._document).part(name)
                self._problems.add(place, f'there is no claim "{name[:40]}"{nearest(name, self.places)}')
        return names

    def summary(self) -> Summary | None:
        """The answer in a sentence, checked against the claims. Call it after claims()."""
        item = self._document.get("summary")
        if item is None:
            return None
        text, presumes = item.get("text"), item.get("presumes")
        for key in SUMMARY:
            self._required(item, key, SUMMARY)
        if text is None or presumes is None:
            return None
        verdicts: dict[str, Verdict] = {}
        for name, child in presumes.table().items():
            verdict = next((known for known in VERDICTS if known == child.value), None)
            if verdict is None:
                self._problems.add(child, f"is no verdict, which are: {', '.join(VERDICTS)}")
            if name not in self.places:
                self._problems.add(child, f'there is no claim "{name[:40]}"{nearest(name, self.places)}')
            verdicts[name] = verdict or "holds"
        found = Summary(str(text.value), verdicts)
        columns = ["measured", "expected", "verdict", "conditions"]
        columns += [*self._document.under("source"), *self._document.under("column")]
        for field in found.fields:
            for said, known in ((field.name, self.places), (field.column, columns), (field.form, ("", *FORMS))):
                if said not in known:
                    self._problems.add(text, f'{field.text}: there is no "{said[:40]}"{nearest(said, known)}')
            if field.name not in verdicts:
                why = f'says nothing of {field.name}, which the text names; for example "{field.name}" = "holds"'
                self._problems.add(presumes, why)
        return found

    def _word(self, name: str, item: Item) -> Word:
        tolerance = item.get("tolerance")
        value = tolerance.value if tolerance is not None else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            said = f"needs a tolerance above 0; for example tolerance = {WORD['tolerance'].example}"
            self._problems.add(tolerance or item, said)
            value = 1
        if item.get("source") is None:
            said = f"needs the place it comes from; for example source = {WORD['source'].example}"
            self._problems.add(item, said)
        return Word(name, float(value), item.text("source"), item.text("overlaps"))

    def _overlap(self, name: str) -> Overlap | None:
        """The overlap of a word with its opposite, whichever of the two names the other."""
        for word in self.words.values():
            if word.overlaps in self.words and name in (word.name, word.overlaps):
                other = self.words[word.overlaps]
                low, high = sorted((word.tolerance, other.tolerance))
                return Overlap(other.name if name == word.name else word.name, low, high)
        return None

    def claims(self) -> tuple[Claim, ...]:
        """Every [[claim]], and a copy of it for each entry of its `also`."""
        every: list[Claim] = []
        for item in self._document.listed("claim"):
            claim = self._with_texts(item, self._claim(item))
            for each in [claim, *self._also(item, claim)]:
                if each.name in self.places:
                    self._problems.add(item, f'two claims are called "{each.name}"')
                self.places[each.name] = item
                every.append(each)
        self._check_means(every)
        self._check_names(every)
        return tuple(every)

    def _with_texts(self, item: Item, claim: Claim) -> Claim:
        """The claim with its quotations from the paper."""
        sentence = self._sentence(item.get("paper"))
        if sentence is not None:
            self._sentences[claim.id] = sentence
        tolerance = item.get("tolerance")
        word = tolerance.value if tolerance is not None and isinstance(tolerance.value, str) else ""
        return msgspec.structs.replace(
            claim,
            claim_class=self._class(item),
            sentence=sentence,
            amendments=(*self._amended_words.get(word, ()), *self._amendments(item)),
            readings=item.texts("readings"),
            word=word,
            overlap=self._overlap(word),
        )

    def _class(self, item: Item) -> ClaimClass:
        """The class of a claim; by default "conclusion" if it has the paper's sentence, else "own"."""
        paper = item.get("paper")
        default: ClaimClass = "own" if paper is None else "conclusion"
        claim_class = item.choice("class", CLASSES, default)
        if claim_class != "own" and paper is None:
            example = f"for example paper = {CLAIM['paper'].example}"
            self._problems.add(item, f'class "{claim_class}" needs the paper\'s sentence; {example}')
        if claim_class == "own" and paper is not None:
            said = 'is of a claim of the paper: give it a class; for example class = "conclusion"'
            self._problems.add(paper, said)
        return claim_class

    def _sentence(self, item: Item | None) -> Sentence | None:
        """The paper's sentence: a table with its words, or the id of an earlier claim with the same sentence."""
        if item is None:
            return None
        if isinstance(item.value, str):
            if item.value not in self._sentences:
                near = nearest(item.value, self._sentences)
                self._problems.add(item, f'no claim "{item.value[:40]}" before this one has a sentence{near}')
            return self._sentences.get(item.value)
        if not isinstance(item.value, dict):
            said = f"must be a table or the id of an earlier claim; for example {CLAIM['paper'].example}"
            self._problems.add(item, said)
            return None
        check_keys(item, SENTENCE, self._problems)
        if item.get("en") is None:
            self._problems.add(item, f"its en is missing; for example en = {SENTENCE['en'].example}")
        return Sentence(item.text("ko"), item.text("en"))

    def _amendments(self, item: Item) -> tuple[Amendment, ...]:
        """Those of a claim, or of a word: each claim that it gives the tolerance has them too."""
        return tuple(made for entry in item.listed("amended") if (made := self._amendment(entry)) is not None)

    def _amendment(self, entry: Item) -> Amendment | None:
        """A change made to a claim after its first run: a table, or the name of an [amendment.NAME]."""
        known = self._document.under("amendment")
        part = known.get(entry.value) if isinstance(entry.value, str) else entry
        if part is None:
            near = nearest(str(entry.value), known)
            self._problems.add(entry, f'there is no amendment "{str(entry.value)[:40]}"{near}')
            return None
        if part is entry:
            check_keys(entry, AMENDMENT, self._problems)
        date, reason = part.text("date"), part.text("reason")
        try:
            datetime.date.fromisoformat(date)
        except ValueError:
            said = f"its date is no day; for example date = {AMENDMENT['date'].example}"
            self._problems.add(part.get("date") or part, said)
        if not reason:
            self._problems.add(part, f"its reason is missing; for example reason = {AMENDMENT['reason'].example}")
        was = part.get("was")
        if was is not None and isinstance(was.value, str):
            return Amendment(date, reason, kept_as=was.value)
        return Amendment(date, reason, self._number(was) if was is not None else None)

    def _claim(self, item: Item) -> Claim:
        problems, known = self._problems, self._known
        self._required(item, "kind")
        kind = item.choice("kind", KINDS, "later")
        name, statement, source = (self._required(item, key) for key in ("id", "text", "source"))
        if kind in UNTESTED:
            reason = self._required(item, "reason")
            if item.text("kind") == kind:
                no = f'a claim of kind "{kind}" is not tested: leave this out'
                self._refuse(item, (*OF_ITS_CELLS, "of", "expected", "tolerance", "also", "clock"), no)
            return Claim(id=name, text=statement, source=source, kind=kind, reason=reason)
        expected, tolerance = self._bound(item, kind)
        reason, clock = self._clock(item)
        claim = Claim(
            id=name,
            text=statement,
            source=source,
            kind=kind,
            expected=expected,
            tolerance=tolerance,
            reason=reason,
            clock=clock,
        )
        if kind == "mean":
            no = 'a claim of kind "mean" takes this from the claims it is of: leave it out'
            self._refuse(item, (*OF_ITS_CELLS, "flow"), no)
            return msgspec.structs.replace(claim, of=self._of(item))
        self._refuse(item, ("of",), f'only kind "mean" is of other claims, not "{kind}"')
        over, levels = self._over(item, kind)
        known.experiment(item)
        a, b = self._selectors(item, "a"), self._selectors(item, "b")
        if not a:
            problems.add(item, f'the selector "a" is missing; for example a = {_OPEN.example}')
        if kind in TWO_SIDED and not b:
            problems.add(item, f'kind "{kind}" compares a with b, and b is missing; for example b = {_OPEN.example}')
        if not b:
            self._refuse(item, ("metric_b",), f"is the metric of b, and there is no b; for example b = {_OPEN.example}")
        if kind in ALONE and b:
            problems.add(item, f'kind "{kind}" has no b')
        return msgspec.structs.replace(
            claim,
            metric=known.metric(item),
            metric_b=known.metric(item, "metric_b") if item.get("metric_b") else "",
            flow=next(iter(known.flows(item)), ""),
            a=a,
            b=b,
            over=over,
            levels=levels,
        )

    def _clock(self, item: Item) -> tuple[str, ClaimClock]:
        """`reason` and `clock`: why a claim can be tested on the wall clock only."""
        if item.get("clock") is not None:
            return self._required(item, "reason"), "wall"
        self._refuse(item, ("reason",), 'belongs to a claim that is not tested, or to one with clock = "wall"')
        return "", "any"

    def _bound(self, item: Item, kind: ClaimKind) -> tuple[float | None, float]:
        """`expected` and `tolerance`."""
        problems, child = self._problems, item.get("tolerance")
        expected = self._number(number) if (number := item.get("expected")) is not None else None
        if kind in NEEDS_EXPECTED and number is None:
            problems.add(item, f'kind "{kind}" needs expected = a number; for example expected = 0.18')
        if kind not in NEEDS_EXPECTED:
            self._refuse(item, ("expected",), f'kind "{kind}" has no expected number')
        tolerance = self._tolerance(child) if child is not None else None
        if tolerance is None and (kind in NEEDS_EXPECTED or kind in ("equal", "constant")):
            problems.add(item, f'kind "{kind}" needs its tolerance; for example tolerance = 0.005')
        if tolerance is not None and tolerance < 0:
            problems.add(child or item, "is negative; for example tolerance = 0.005")
        return expected, max(tolerance or 0.0, 0.0)

    def _of(self, item: Item) -> tuple[str, ...]:
        names = item.texts("of")
        self._required(item, "of")
        if not names and (child := item.get("of")) is not None:
            self._problems.add(child, f"is empty; for example {CLAIM['of'].example}")
        return names

    def _check_means(self, claims: list[Claim]) -> None:
        """Reports a claim of kind `mean` whose claims do not exist, or are not one number each."""
        gains: list[tuple[str, str]] = []  # a mean may be of means that stand before it
        for claim in sorted(claims, key=lambda claim: claim.kind == "mean"):
            if claim.kind in (*GAINS, "mean"):
                gains.append((claim.id, claim.condition_text))
            for name in claim.of:
                if name == claim.id or (name, claim.condition_text) not in gains:
                    known = [gain for gain, condition in gains if condition == claim.condition_text]
                    under = f" under {claim.condition_text}" if claim.condition else ""
                    said = f'"{name}" is no claim of kind gain, mean_gain or pooled_gain{under}{nearest(name, known)}'
                    place = self.places[claim.name]
                    self._problems.add((place.get("of") or place).part(name), said)

    def _check_names(self, claims: list[Claim]) -> None:
        """Reports readings and first rules that are no claims."""
        known = {claim.id for claim in claims}
        for claim in claims:
            place = self.places[claim.name]
            for name in (*claim.readings, *(made.kept_as for made in claim.amendments if made.kept_as)):
                if name not in known:
                    self._problems.add(place, f'there is no claim "{name[:40]}"{nearest(name, known)}')

    def _over(self, item: Item, kind: ClaimKind) -> tuple[str, tuple[str, ...]]:
        over, problems = item.get("over"), self._problems
        example = f"for example over = {CLAIM['over'].example}"
        if over is None:
            if kind in NEEDS_OVER:
                problems.add(item, f'kind "{kind}" needs the levels to go over; {example}')
            return "", ()
        chosen = self._known.where(over, flows=True)
        if len(chosen) != 1:
            problems.add(over, f"names one factor with its levels; {example}")
        factor, levels = next(iter(chosen.items()), ("", ()))
        if kind in NEEDS_OVER and factor and len(levels) < 2:
            problems.add(over, f'kind "{kind}" needs at least two levels of "{factor}"')
        if kind == "elasticity" and factor and not _grows(levels):
            problems.add(over, f'kind "{kind}" needs levels of "{factor}" that are unlike quantities above 0')
        return factor, levels

    def _selectors(self, item: Item, key: str) -> tuple[Levels, ...]:
        """The selectors of `a` or `b`, each laid over `where`; a side without a table of its own is `where` alone."""
        child, where = item.get(key), item.get("where")
        if child is None and (key == "a" or item.get("metric_b") is not None):
            child = where
        if child is None:
            return ()
        parts = child.items() if isinstance(child.value, list) else [child]
        if where is not None:
            parts = [laid(where, part) for part in parts]
        experiment = self._known.experiment(item)
        over = tuple(item.levels("over"))
        chosen = ({**experiment, **self._known.where(part, flows=True)} for part in parts)
        return tuple(self._known.with_usual(selector, over) for selector in chosen)

    def _also(self, item: Item, claim: Claim) -> list[Claim]:
        """The same claim under other conditions: the levels of each entry replace those of the selectors that name the
        same factors. Lists of levels stand for all their combinations, but the claim's own.

        A mean under another condition averages its claims under that condition.
        """
        also = item.get("also")
        if also is None:
            return []
        mirrored: list[Claim] = []
        for part in also.items() or [also]:
            entry = self._known.where(part, flows=True)
            for factor in entry:
                if claim.kind != "mean" and not any(_varies(s, factor) for s in (*claim.a, *claim.b)):
                    self._problems.add(part, f'"{factor}" stands in no selector of this claim')
            for levels in itertools.product(*entry.values()):
                other: Levels = {
                    factor: (level,)
                    for factor, level in zip(entry, levels, strict=True)
                    if len(entry[factor]) == 1 or not _is_own(claim, factor, level)
                }
                if other:
                    a, b = (tuple(_replaced(s, other) for s in side) for side in (claim.a, claim.b))
                    mirrored.append(msgspec.structs.replace(claim, condition=other, a=a, b=b))
        return mirrored

    def _required(self, item: Item, key: str, fields: Mapping[str, Field] = CLAIM) -> str:
        """The text under a key, which must be there."""
        if item.get(key) is None:
            self._problems.add(item, f"its {key} is missing; for example {key} = {fields[key].example}")
        return item.text(key)

    def _refuse(self, item: Item, keys: tuple[str, ...], why: str) -> None:
        for key in keys:
            if (child := item.get(key)) is not None:
                self._problems.add(child, why)

    def _tolerance(self, item: Item) -> float | None:
        """A number, or the name of a [word.*], whose tolerance is used."""
        if not isinstance(item.value, str):
            return self._number(item)
        if item.value in self.words:
            return self.words[item.value].tolerance
        near = nearest(item.value, self.words) or "; for example [word.same] with tolerance = 0.143"
        self._problems.add(item, f'there is no word "{item.value[:40]}"{near}')
        return None

    def _number(self, item: Item) -> float | None:
        if isinstance(item.value, bool) or not isinstance(item.value, (int, float)) or item.value != item.value:
            self._problems.add(item, "must be a number in the metric's unit; for example 0.123")
            return None
        return float(item.value)


def _grows(levels: tuple[str, ...]) -> bool:
    """True if the levels are quantities of one kind above 0, the first and the last of them unlike."""
    known = base_values(levels)
    return known is not None and min(known.values.values()) > 0 and not same_value(levels[0], levels[-1])


def _varies(selector: Levels, factor: str) -> bool:
    return factor in selector and selector[factor] != ("-",)


def _is_own(claim: Claim, factor: str, level: str) -> bool:
    """True if every selector that has the factor has this level of it."""
    varied = [selector[factor] for selector in (*claim.a, *claim.b) if _varies(selector, factor)]
    return bool(varied) and all(set(levels) <= {level, DOES_NOT_APPLY} for levels in varied)


def _replaced(selector: Levels, other: Levels) -> Levels:
    """Other levels in place of a selector's; where a factor need not apply, it still need not."""
    replaced: dict[str, tuple[str, ...]] = {}
    for factor, levels in selector.items():
        chosen = other[factor] if factor in other and levels != (DOES_NOT_APPLY,) else levels
        not_there = DOES_NOT_APPLY in levels and DOES_NOT_APPLY not in chosen
        replaced[factor] = (*chosen, DOES_NOT_APPLY) if not_there else chosen
    return replaced
