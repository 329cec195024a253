"""The kinds of values that a key of a spec may hold, the check of a value against its kind, and what it means."""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from ..core.names import LONGEST_TEXT, NAME
from ..core.units import EXAMPLES, WORDS, Kind, Quantity, QuantityError, format_quantity, parse_quantity
from .problems import Problems, nearest
from .toml_positions import Item

ALIASES: dict[str, tuple[str, ...]] = {
    "delay": ("one_way_delay", "at"),
    "latency": ("one_way_delay",),
    "bandwidth": ("rate",),
    "speed": ("rate",),
    "capacity": ("rate",),
    "limit": ("queue",),
    "buffer": ("queue",),
    "plr": ("loss",),
    "size": ("bytes",),
    "length": ("for",),
    "duration": ("for", "stop"),
    "time": ("at", "duration"),
    "from": ("between",),
    "to": ("between",),
    "nodes": ("between",),
    "src": ("from",),
    "dst": ("to",),
    "sysctls": ("sysctl",),
    "runs": ("repetitions",),
    "values": ("levels",),
    "until": ("for",),
    "congestion": ("sender",),
    "mss": ("sender",),
    "nodelay": ("sender",),
    "sndbuf": ("sender",),
    "rcvbuf": ("receiver",),
}
"""Words of other tools and texts -> keys of a spec: the first of these that the table has is suggested."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?![\d,.])", re.ASCII)
PLACEHOLDER = re.compile(r"\{(?!(?<=\{\{)[^{}\s]*\}\})([^{}\s]*)\}")
"""`{name}`, but not the inner part of `{{name}}`."""
ESCAPED = re.compile(r"\{(\{[^{}\s]*\})\}")
"""`{{name}}`, which stands for `{name}` in a program's arguments."""
LONGEST_LEVEL = 64
Type = Literal[
    "quantity", "choice", "name", "names", "text", "texts", "integer", "switch", "levels", "table", "tables", "map",
    "open",
]  # fmt: skip
Value = Quantity | str | int | bool | tuple[str, ...] | dict[str, tuple[str, ...]]
T = TypeVar("T", bound=Value)
Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True)
class Field:
    """One key: the type of its value, a correct example (TOML), and limits in base units.

    names: list of texts, among which tables of `fields` may stand. texts: one text or a list of texts. levels: factor
    -> level or list of levels. map: name -> table of `fields`. open: checked by the code that reads it; its table may
    have `fields`. A `choice` may also be a table or list where the code that reads it says so, and a
    `quantity` one of the words in `choices`, or a table where it has `fields`. pattern: a name that may have `*` for
    any letters.
    """

    type: Type
    example: str
    kinds: tuple[Kind, ...] = ()
    choices: tuple[str, ...] = ()
    answers: Mapping[str, str] | None = None
    """What to say of words that are no choice, where people expect them."""
    low: float | None = None
    high: float | None = None
    fields: Mapping[str, Field] | None = None
    pattern: bool = False


def quantity(
    *kinds: Kind,
    example: str = "",
    low: float | None = None,
    high: float | None = None,
    fields: Mapping[str, Field] | None = None,
) -> Field:
    """A dimensional value: text with its unit."""
    return Field("quantity", example or EXAMPLES[kinds[0]].split(" or ")[0], kinds, low=low, high=high, fields=fields)


def is_open(text: str) -> bool:
    """True if a text still holds a `{placeholder}`."""
    return PLACEHOLDER.search(text) is not None


def check_keys(item: Item, fields: Mapping[str, Field], problems: Problems, *, fill: bool = False) -> None:
    """Check a table, its keys and all tables below it. fill: skip values with placeholders; they are checked after they
    are filled in.
    """
    if not isinstance(item.value, dict):
        problems.add(item, f"must be a table, with keys like {', '.join(list(fields)[:3])}")
        return
    for key, child in item.value.items():
        field = fields.get(key)
        if field is None:
            known = next((name for name in ALIASES.get(key, ()) if name in fields), key)
            problems.add(child, f'unknown key "{key}"{_instead(key, child.value, known, fields)}')
        else:
            decode(child, field, problems, fill=fill)


def _instead(key: str, value: object, known: str, fields: Mapping[str, Field]) -> str:
    """The key that was meant; of an option of a flow's end, how it is written there."""
    if known in ("sender", "receiver") and known != key and isinstance(value, str | int | bool):
        return f"; it is an option of an end: {known} = {{ {key} = {json.dumps(value, ensure_ascii=False)} }}"
    return nearest(known, fields)


def decode(item: Item, field: Field, problems: Problems, *, fill: bool = False) -> Value | None:
    """What a value means; None if it is wrong (the problem is collected), or a table, which is checked only."""
    if fill and isinstance(item.value, str) and is_open(item.value):
        return None
    match field.type:
        case "quantity":
            if item.value in field.choices:
                return str(item.value)
            if field.fields is None or not isinstance(item.value, dict):
                return read_quantity(item, field, problems)
            check_keys(item, field.fields, problems, fill=fill)
        case "names":
            return read_names(item, field, problems)
        case "texts":
            return read_texts(item, field, problems)
        case "integer":
            return read_integer(item, field, problems)
        case "choice" | "name" | "text":
            return read_text(item, field, problems)
        case "levels":
            return read_levels(item, field, problems)
        case "switch" if isinstance(item.value, bool):
            return item.value
        case "switch":
            problems.add(item, f"must be true or false; for example {field.example}")
        case "table" if not isinstance(item.value, dict):
            problems.add(item, f"must be a table; for example {field.example}")
        case "table":
            check_keys(item, field.fields or {}, problems, fill=fill)
        case "tables":
            if not isinstance(item.value, list):
                problems.add(item, f"must be a list of tables; for example {field.example}")
            for child in item.items():
                check_keys(child, field.fields or {}, problems, fill=fill)
        case "map":
            _check_map(item, field, problems, fill)
    return None


def _check_map(item: Item, field: Field, problems: Problems, fill: bool) -> None:
    if not isinstance(item.value, dict):
        problems.add(item, f"must be a table; for example {field.example}")
        return
    fields = field.fields or {}
    if item.value and all(name in fields and not isinstance(v.value, dict) for name, v in item.value.items()):
        problems.add(item, f"[{item.key}] has no name; for example {field.example}")
        return
    for name, child in item.value.items():
        if not NAME.fullmatch(name):
            problems.add(
                child,
                f'"{name[:40]}" is no name: a name is 1 to 32 of a-z 0-9 _ - (not first); for example {field.example}',
            )
        if child.items() and all(isinstance(each.value, dict) for each in child.items()):
            problems.add(child, f"stands in single brackets, [{child.key}]; for example {field.example}")
            continue
        check_keys(child, fields, problems, fill=fill)


def read_quantity(item: Item, field: Field, problems: Problems) -> Quantity | None:
    """The quantity, or None if it is wrong (the problem is collected)."""
    kind = field.kinds[0] if len(field.kinds) == 1 else None
    wanted = f"; write for example {field.example}"
    words = " or ".join(WORDS[kind] for kind in field.kinds)
    if not isinstance(item.value, str):
        shown = f"{item.value} is a bare number" if isinstance(item.value, (int, float)) else "is no quantity"
        problems.add(item, f"{shown}; {words} is text with its unit{wanted}")
        return None
    try:
        quantity = _parsed(item.value, kind)
    except QuantityError as error:
        text = str(error)
        if comma := _decimal_comma(item.value):
            problems.add(item, comma)
            return None
        problems.add(item, text if field.example in text else text.split("; write for example")[0] + wanted)
        return None
    if quantity.kind not in field.kinds:
        problems.add(item, f"'{item.value}' is {WORDS[quantity.kind]}, but {words} is wanted{wanted}")
        return None
    if quantity.kind == field.kinds[0]:
        for limit, wrong, word in ((field.low, -1, "least"), (field.high, 1, "most")):
            if limit is not None and (quantity.value - limit) * wrong > 0:
                whole = quantity.kind not in ("ratio", "frequency")
                bound = format_quantity(Quantity(quantity.kind, int(limit) if whole else limit))
                problems.add(item, f"'{item.value}' is out of range: at {word} {bound}{wanted}")
                return None
    return quantity


_parsed = functools.lru_cache(maxsize=1 << 14)(parse_quantity)
"""A text is decoded once, however many cells have it."""


def read_span(item: Item, example: str, problems: Problems, *, least_ns: int = 0) -> tuple[int, int] | None:
    """Two times in ns, from and to, at least so far apart; None if they are wrong (the problem is collected)."""
    field = Field("quantity", '"45 s"', ("time",))
    times = [read_quantity(child, field, problems) for child in item.items()]
    known = [int(time.value) for time in times if time is not None]
    if len(times) != 2:
        problems.add(item, f"must be two times, from and to; for example {example}")
    elif len(known) == 2 and known[1] - known[0] < least_ns:
        problems.add(item, f"ends before it begins; for example {example}")
    elif len(known) == 2:
        return known[0], known[1]
    return None


def _decimal_comma(text: str) -> str:
    """The message about a decimal comma ("0,5 ms") with the correction; "" if there is none."""
    match = _DECIMAL_COMMA.match(text.strip())
    if match is None or len(text) > LONGEST_LEVEL:
        return ""
    number, rest = match[0], text.strip()[match.end() :]
    point = f'"{number.replace(",", ".") if not number.startswith(",") else "0" + number.replace(",", ".")}{rest}"'
    if re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", number, re.ASCII):  # thousands, or thousandths?
        point = f'"{number.replace(",", "")}{rest}" or {point}'
    return f"'{text}' has a comma in its number; write {point}"


def read_text(item: Item, field: Field, problems: Problems) -> str | None:
    """A text, name or one of the field's choices; None if it is wrong (the problem is collected)."""
    example = f"; for example {field.example}"
    if not isinstance(item.value, str):
        problems.add(item, f"must be text{example}")
        return None
    text = item.value
    if field.type == "choice" and text not in field.choices:
        problems.add(item, _no_choice(text, field))
    elif field.type == "name" and not NAME.fullmatch(text.replace("*", "_") if field.pattern else text):
        problems.add(item, f'"{text[:40]}" is no name: a name is 1 to 32 of a-z 0-9 _ - (not first){example}')
    elif len(text) > LONGEST_TEXT or not text.replace("\n", " ").isprintable():
        problems.add(item, f"must be printable text of at most {LONGEST_TEXT} characters{example}")
    else:
        return text
    return None


def _no_choice(text: str, field: Field) -> str:
    if field.answers is not None and text in field.answers:
        return f'"{text}" is none of {", ".join(field.choices)}: {field.answers[text]}'
    near = difflib.get_close_matches(text.casefold(), field.choices, n=1)
    example = f', did you mean "{near[0]}"?' if near else f"; for example {field.example}"
    return f'"{text[:40]}" is none of {", ".join(field.choices)}{example}'


def read_integer(item: Item, field: Field, problems: Problems) -> int | None:
    """A count (a number without a dimension); text only where a placeholder stood, whose values are texts."""
    low, high = field.low if field.low is not None else 0, field.high if field.high is not None else 2**63 - 1
    if item.used is not None and isinstance(item.value, str) and re.fullmatch(r"\d{1,18}", item.value, re.ASCII):
        item = item.with_value(int(item.value))
    if isinstance(item.value, bool) or not isinstance(item.value, int) or not low <= item.value <= high:
        problems.add(item, f"must be a whole number from {int(low)} to {int(high)}; for example {field.example}")
        return None
    return item.value


def read_names(item: Item, field: Field, problems: Problems) -> tuple[str, ...]:
    """A list of texts; where the field has `fields` tables may stand among them, which are checked only."""
    tables = [child for child in item.items() if isinstance(child.value, dict)] if field.fields else []
    texts = [child for child in item.items() if not (field.fields and isinstance(child.value, dict))]
    wrong = [child for child in texts if not isinstance(child.value, str)]
    if wrong or not isinstance(item.value, list):
        problems.add(wrong[0] if wrong else item, f"must be a list of texts; for example {field.example}")
        return ()
    for table in tables:
        check_keys(table, field.fields or {}, problems)
    names = tuple(str(child.value) for child in texts)
    seen: set[str] = set()
    for child, name in zip(texts, names, strict=True):
        if field.choices and name not in field.choices and not is_open(name):
            problems.add(child, _no_choice(name, field))
        if name in seen:
            problems.add(child, f'"{name[:40]}" stands there twice; for example {field.example}')
        seen.add(name)
    return names


def read_texts(item: Item, field: Field, problems: Problems) -> tuple[str, ...]:
    """One text, or a list of at least one."""
    if isinstance(item.value, str):
        return (item.value,)
    if not item.items():
        wrong = "is empty" if item.value == [] else "must be a text or a list of texts"
        problems.add(item, f"{wrong}; for example {field.example}")
        return ()
    return read_names(item, field, problems)


def read_levels(item: Item, field: Field, problems: Problems) -> dict[str, tuple[str, ...]]:
    """A selector: factor -> one level or a list of levels, each a text."""
    if not isinstance(item.value, dict):
        problems.add(item, f"must be a table of factor = level; for example {field.example}")
        return {}
    chosen: dict[str, tuple[str, ...]] = {}
    for factor, child in item.value.items():
        levels = child.items() if isinstance(child.value, list) else [child]
        if not levels or any(not isinstance(level.value, str) for level in levels):
            problems.add(child, f"must be a level (text) or a list of levels; for example {field.example}")
        chosen[factor] = tuple(str(level.value) for level in levels)
    return chosen


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the values of a table whose placeholders are filled in. Mistakes are collected, not raised."""

    item: Item
    fields: Mapping[str, Field]
    problems: Problems

    def problem(self, key: str, text: str) -> None:
        """Report a mistake in a key (in the whole table, if the key is missing)."""
        item = self.item.get(key) or self.item
        self.problems.add(item.used or item, text)

    def wrong(self, key: str, text: str) -> None:
        """Report a mistake in a key's value, at the position of the parameter or level if the value was filled in from
        one.
        """
        self.problems.add(self.item.get(key) or self.item, text)

    def has(self, key: str) -> bool:
        """True if the key is there."""
        return self.item.get(key) is not None

    def need(self, key: str) -> bool:
        """True if the key is there; reports it if it is not."""
        if not self.has(key):
            self.problem(key, f"{key} is missing; for example {key} = {self.fields[key].example}")
        return self.has(key)

    def _value(self, key: str, kind: type[T]) -> T | None:
        item = self.item.get(key)
        value = decode(item, self.fields[key], self.problems) if item is not None else None
        return value if isinstance(value, kind) else None

    def quantity(self, key: str) -> Quantity | None:
        """A quantity with its kind."""
        return self._value(key, Quantity)

    def whole(self, key: str) -> int | None:
        """A time, amount or rate in its base unit."""
        return None if (quantity := self.quantity(key)) is None else int(quantity.value)

    def ratio(self, key: str) -> float:
        """A ratio 0..1; 0 if there is none."""
        return 0.0 if (quantity := self.quantity(key)) is None else float(quantity.value)

    def text(self, key: str) -> str | None:
        """A text, name or choice."""
        return self._value(key, str)

    def choice(self, key: str, known: Sequence[Word], default: Word) -> Word:
        """Which of these words stands there."""
        text = self.text(key)
        return next((word for word in known if word == text), default)

    def switch(self, key: str) -> bool | None:
        """True or false."""
        return self._value(key, bool)

    def integer(self, key: str) -> int | None:
        """A count."""
        return self._value(key, int)

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        return self._value(key, tuple) or ()

    def below(self, item: Item, fields: Mapping[str, Field] | None = None) -> Reader:
        """A reader of a table inside this one."""
        return Reader(item, fields or self.fields, self.problems)
