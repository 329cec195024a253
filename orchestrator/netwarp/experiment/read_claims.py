"""Reads claims.toml: the claims to test, and the sources of published numbers. Grammar: docs/spec.md, Claims."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import get_args

import msgspec

from ..core.outputs import (
    Claim,
    ClaimClock,
    ClaimKind,
    Column,
    Levels,
    Sentence,
    Source,
    SourceKind,
    Summary,
    Verdict,
    Word,
)
from ..core.units import base_values, same_value
from .claim_texts import AMENDMENT, TEXTS, WORD, read_amendments, read_class, read_sentence, read_words
from .factors import DOES_NOT_APPLY, RESERVED_COLUMNS
from .fields import Field, check_keys, read_text
from .grammar import OF_EXPERIMENT
from .loops import expand_claims, laid
from .problems import Problems, nearest
from .read_outputs import Names, read_experiment, read_flows, read_metric, read_where, with_usual
from .toml_positions import Item

KINDS: tuple[ClaimKind, ...] = get_args(ClaimKind)
GAINS = frozenset({"gain", "mean_gain", "pooled_gain"})
TWO_SIDED = frozenset({"greater", "less", "equal", "mean_greater", "difference", *GAINS})
NEEDS_OVER = frozenset({"constant", "varies", "elasticity", "increasing", "decreasing"})
ALONE = frozenset({"value", "every", "elasticity"})
NEEDS_EXPECTED = frozenset({"mean", "difference", *ALONE, *GAINS})
_TEXT = Field("text", '"Table 5"')
_OPEN = Field("open", '{ variant = "tcp" }')
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)
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
    "flow": Field("name", '"ftp"'),
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
    **TEXTS,
}
UNTESTED = ("later", "untestable")
"""Kinds without a test: not yet, and never on this instrument."""
OF_ITS_CELLS = ("experiment", "metric", "metric_b", "where", "a", "b", "over")
"""Keys that say which numbers of which cells a claim compares."""
SUMMARY = {
    "text": Field("text", '"Mostly: SCTP beats TCP in every outage, by {C6.measured} or more."'),
    "presumes": Field("open", '{ C6 = "holds", C21 = "does not hold" }'),
}
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
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

    def __init__(self, document: Item, names: Names, problems: Problems) -> None:
        document = expand_claims(document, CLAIM, (*UNTESTED, "mean"), problems)
        self._document, self._names, self._problems = document, names, problems
        self.places: dict[str, Item] = {}
        """Claim, by its name -> where it is written."""
        check_keys(document, FILE, problems)
        self._sources = document.get("source")
        self._words = read_words(document.get("word"), problems)
        self._sentences: dict[str, Sentence] = {}
        for name, item in self._sources.table().items() if self._sources is not None else ():
            if name in RESERVED_COLUMNS or name in names.factors:
                problems.add(item, f'"{name}" is a column of the tables already; call the source otherwise')

    def sources(self) -> tuple[Source, ...]:
        """Every [source.NAME] in order."""
        table = self._sources.table() if self._sources is not None else {}
        sources: list[Source] = []
        for name, item in table.items():
            kind: SourceKind = next((known for known in SOURCE_KINDS if known == self._text(item, "kind")), "other")
            if kind == "paper" and any(other.kind == kind for other in sources):
                self._problems.add(item, "a second paper: one source makes the claims, the others are of another kind")
            sources.append(Source(name, self._text(item, "title") or name, kind))
        return tuple(sources)

    def headline(self) -> tuple[str, ...]:
        """The claims that the report shows first. Call it after claims()."""
        item = self._document.get("headline")
        names = self._document.texts("headline")
        for name in names:
            if name not in self.places and item is not None:
                self._problems.add(item.part(name), f'there is no claim "{name[:40]}"{nearest(name, self.places)}')
        return names

    def summary(self) -> Summary | None:
        """The answer in a sentence, checked against the claims. Call it after claims()."""
        item = self._document.get("summary")
        if item is None:
            return None
        text, presumes = self._required(item, "text", SUMMARY), self._required(item, "presumes", SUMMARY)
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
        columns += [name for key in ("source", "column") if (part := self._document.get(key)) for name in part.table()]
        for field in found.fields:
            for said, known in ((field.name, self.places), (field.column, columns), (field.form, ("", *FORMS))):
                if said not in known:
                    self._problems.add(text, f'{field.text}: there is no "{said[:40]}"{nearest(said, known)}')
            if field.claim not in verdicts:
                why = f'says nothing of {field.claim}, which the text names; for example {field.claim} = "holds"'
                self._problems.add(presumes, why)
        return found

    def words(self) -> tuple[Word, ...]:
        """Every [word.NAME] in order."""
        return tuple(self._words.values())

    def columns(self) -> tuple[Column, ...]:
        """Every [column.NAME] in order."""
        table = self._document.get("column")
        columns: list[Column] = []
        for name, item in table.table().items() if table is not None else ():
            where = read_where(item.get("where"), self._names, self._problems)
            if not where:
                self._problems.add(item, f"its where is missing; for example where = {COLUMN['where'].example}")
            if name in RESERVED_COLUMNS or name in self._names.factors:
                self._problems.add(item, f'"{name}" is a column of the tables already; call it otherwise')
            columns.append(Column(name, self._text(item, "title") or name, where))
        return tuple(columns)

    def claims(self) -> tuple[Claim, ...]:
        """Every [[claim]], and a copy of it for each entry of its `also`."""
        claims = self._document.get("claim")
        every: list[Claim] = []
        items = self.places
        for item in claims.items() if claims is not None else ():
            claim = self._with_texts(item, self._claim(item))
            for each in [claim, *self._also(item, claim)]:
                if each.name in items:
                    self._problems.add(item, f'two claims are called "{each.name}"')
                items[each.name] = item
                every.append(each)
        self._check_means(every, items)
        return tuple(every)

    def _with_texts(self, item: Item, claim: Claim) -> Claim:
        """The claim with its quotations from the paper."""
        sentence = read_sentence(item, self._sentences, self._problems)
        if sentence is not None:
            self._sentences[claim.id] = sentence
        word = item.get("tolerance")
        return msgspec.structs.replace(
            claim,
            claim_class=read_class(item, self._problems),
            sentence=sentence,
            amendments=read_amendments(item, self._document.get("amendment"), self._problems),
            word=word.value if word is not None and isinstance(word.value, str) else "",
        )

    def _claim(self, item: Item) -> Claim:
        problems = self._problems
        self._required(item, "kind", CLAIM)
        text = item.text("kind")
        kind: ClaimKind = next((known for known in KINDS if known == text), "later")
        name, statement, source = (
            str(child.value) if (child := self._required(item, key, CLAIM)) is not None else ""
            for key in ("id", "text", "source")
        )
        if kind in UNTESTED:
            reason = self._required(item, "reason", CLAIM)
            if text == kind:
                for key in (*OF_ITS_CELLS, "of", "expected", "tolerance", "also", "clock"):
                    if (child := item.get(key)) is not None:
                        problems.add(child, f'a claim of kind "{kind}" is not tested: leave this out')
            why = str(reason.value) if reason is not None else ""
            return Claim(id=name, text=statement, source=source, kind=kind, reason=why)
        expected, tolerance = self._bound(item, kind)
        why_wall, clock = self._clock(item)
        if kind == "mean":
            for key in (*OF_ITS_CELLS, "flow"):
                if (child := item.get(key)) is not None:
                    problems.add(child, 'a claim of kind "mean" takes this from the claims it is of: leave it out')
            return Claim(
                id=name,
                text=statement,
                source=source,
                kind=kind,
                of=self._of(item),
                expected=expected,
                tolerance=tolerance,
                reason=why_wall,
                clock=clock,
            )
        if (child := item.get("of")) is not None:
            problems.add(child, f'only kind "mean" is of other claims, not "{kind}"')
        over, levels = self._over(item, kind)
        read_experiment(item, self._names, problems)
        a, b = self._selectors(item, "a"), self._selectors(item, "b")
        if not a:
            problems.add(item, f'the selector "a" is missing; for example a = {_OPEN.example}')
        if kind in TWO_SIDED and not b:
            problems.add(item, f'kind "{kind}" compares a with b, and b is missing; for example b = {_OPEN.example}')
        if (child := item.get("metric_b")) is not None and not b:
            problems.add(child, f"is the metric of b, and there is no b; for example b = {_OPEN.example}")
        if kind in ALONE and b:
            problems.add(item, f'kind "{kind}" has no b')
        return Claim(
            id=name,
            text=statement,
            source=source,
            kind=kind,
            metric=read_metric(item, self._names.metrics, problems),
            metric_b=read_metric(item, self._names.metrics, problems, "metric_b") if item.get("metric_b") else "",
            flow=next(iter(read_flows(item, self._names, problems)), ""),
            a=a,
            b=b,
            over=over,
            levels=levels,
            expected=expected,
            tolerance=tolerance,
            reason=why_wall,
            clock=clock,
        )

    def _clock(self, item: Item) -> tuple[str, ClaimClock]:
        """`reason` and `clock`: why a claim can be tested on the wall clock only."""
        reason, clock = item.get("reason"), item.get("clock")
        if clock is None:
            if reason is not None:
                self._problems.add(reason, 'belongs to a claim that is not tested, or to one with clock = "wall"')
            return "", "any"
        read_text(clock, CLAIM["clock"], self._problems)
        required = self._required(item, "reason", CLAIM)
        return "" if required is None else str(required.value), "wall"

    def _bound(self, item: Item, kind: ClaimKind) -> tuple[float | None, float]:
        """`expected` and `tolerance`."""
        problems = self._problems
        expected = self._number(child) if (child := item.get("expected")) is not None else None
        if kind in NEEDS_EXPECTED and item.get("expected") is None:
            problems.add(item, f'kind "{kind}" needs expected = a number; for example expected = 0.18')
        if kind not in NEEDS_EXPECTED and (child := item.get("expected")) is not None:
            problems.add(child, f'kind "{kind}" has no expected number')
        tolerance = self._tolerance(child) if (child := item.get("tolerance")) is not None else None
        if tolerance is None and (kind in NEEDS_EXPECTED or kind in ("equal", "constant")):
            problems.add(item, f'kind "{kind}" needs its tolerance; for example tolerance = 0.005')
        if tolerance is not None and tolerance < 0 and child is not None:
            problems.add(child, "is negative; for example tolerance = 0.005")
        return expected, max(tolerance or 0.0, 0.0)

    def _of(self, item: Item) -> tuple[str, ...]:
        child = self._required(item, "of", CLAIM)
        names = item.texts("of")
        if child is not None and not names:
            self._problems.add(child, f"is empty; for example {CLAIM['of'].example}")
        return names

    def _check_means(self, claims: list[Claim], items: Mapping[str, Item]) -> None:
        """Reports a claim of kind `mean` whose claims do not exist, or are not one number each."""
        gains = [(claim.id, claim.condition_text) for claim in claims if claim.kind in GAINS]
        for claim in claims:
            for name in claim.of:
                if (name, claim.condition_text) not in gains:
                    known = [gain for gain, condition in gains if condition == claim.condition_text]
                    under = f" under {claim.condition_text}" if claim.condition else ""
                    said = f'"{name}" is no claim of kind gain, mean_gain or pooled_gain{under}{nearest(name, known)}'
                    self._problems.add((items[claim.name].get("of") or items[claim.name]).part(name), said)

    def _over(self, item: Item, kind: ClaimKind) -> tuple[str, tuple[str, ...]]:
        over = item.get("over")
        chosen = read_where(over, self._names, self._problems, flows=True)
        if over is None and kind in NEEDS_OVER:
            self._problems.add(
                item, f'kind "{kind}" needs the levels to go over; for example over = {CLAIM["over"].example}'
            )
        if over is not None and len(chosen) != 1:
            self._problems.add(over, f"names one factor with its levels; for example {CLAIM['over'].example}")
        for factor, levels in chosen.items():
            if kind in NEEDS_OVER and len(levels) < 2 and over is not None:
                self._problems.add(over, f'kind "{kind}" needs at least two levels of "{factor}"')
            if kind == "elasticity" and over is not None and not _grows(levels):
                self._problems.add(over, f'kind "{kind}" needs levels of "{factor}" that are unlike quantities above 0')
            return factor, levels
        return "", ()

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
        experiment = read_experiment(item, self._names, self._problems)
        over = tuple(item.levels("over"))
        chosen = ({**experiment, **read_where(part, self._names, self._problems, flows=True)} for part in parts)
        return tuple(with_usual(selector, self._names, over) for selector in chosen)

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
            entry = read_where(part, self._names, self._problems, flows=True)
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

    def _required(self, item: Item, key: str, fields: Mapping[str, Field]) -> Item | None:
        child = item.get(key)
        if child is None:
            self._problems.add(item, f"its {key} is missing; for example {key} = {fields[key].example}")
        return child

    def _tolerance(self, item: Item) -> float | None:
        """A number, or the name of a [word.*], whose tolerance is used."""
        if not isinstance(item.value, str):
            return self._number(item)
        if item.value in self._words:
            return self._words[item.value].tolerance
        near = nearest(item.value, self._words) or "; for example [word.same] with tolerance = 0.143"
        self._problems.add(item, f'there is no word "{item.value[:40]}"{near}')
        return None

    def _number(self, item: Item) -> float | None:
        if isinstance(item.value, bool) or not isinstance(item.value, (int, float)) or item.value != item.value:
            self._problems.add(item, "must be a number in the metric's unit; for example 0.123")
            return None
        return float(item.value)

    def _text(self, item: Item, key: str) -> str:
        child = item.get(key)
        return str(child.value) if child is not None else ""


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
