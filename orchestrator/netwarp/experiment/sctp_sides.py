"""One side of an SCTP association, as `netwarp sctp check` takes it: a product of stack-profiles/, its configuration
file, or settings; `open5gs,sack_delay=40 ms` is a product with another setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import SpecError
from .options import OPTIONS, read_option
from .problems import Problems, nearest
from .profiles import ROLES, STACKS, names_in, read_stack
from .toml_positions import Item

LINUX = "linux"
"""The kernel's own values."""
LARGEST_FILE = 1_000_000
SETTINGS = tuple(
    name
    for name, option in OPTIONS.items()
    if "sctp" in option.protocols and option.field.type not in ("table", "open")  # those are no word
)
COUNTS = ("init_attempts", "association_max_retrans", "path_max_retrans", "sack_frequency", "max_burst")
"""Settings of a configuration file that are no times in ms."""
ZERO_MEANS = ("max_burst",)
"""Settings of which 0 is a value; of others it leaves what the system has."""
LONGEST_NUMBER = 20
"""Characters of a number: those of 64 bits."""
LEAST_MARKS = 3
"""A file without settings of SCTP is of a product if it has so many of the words that mark it."""


@dataclass(frozen=True, slots=True)
class Side:
    """One end. settings: option of docs/spec.md -> its value there, of an end that connects and of one that listens.

    title: for a reader. sources: setting -> where its value is from. ignored: keys of a file that name no setting.
    remarks: what a reader of the file should know.
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    sources: Mapping[str, str]
    ignored: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def options(self, *, connects: bool) -> dict[str, Any]:
        """The options of the flow's sender or receiver."""
        role = "sender" if connects else "receiver"
        return {key: value for key, value in self.settings.items() if role in OPTIONS[key].roles}


def read_side(text: str) -> Side:
    """A side by its words. Raises SpecError with what is known."""
    first, *more = (part.strip() for part in text.split(","))
    if "=" in first:
        side, more = Side("settings", "Linux with settings", {}, {}), [first, *more]
    elif first == LINUX:
        side = Side(LINUX, "Linux as it is", {}, {})
    elif first in products():
        side = _product(first)
    elif Path(first).is_file():
        side = _file(Path(first))
    else:
        near = nearest(first, (LINUX, *products()))
        raise SpecError(
            f'"{first[:60]}" is no file, no key=value and no product{near}{"" if near.endswith("?") else "."} '
            "For example: open5gs,sack_delay=40ms"
        )
    settings, sources = dict(side.settings), dict(side.sources)
    for part in more:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or key not in SETTINGS:
            raise SpecError(f'"{part[:60]}" is no setting of SCTP{nearest(key, SETTINGS)}; for example rto_min=300ms')
        settings[key], sources[key] = _typed(key, value), "the command line"
    return Side(side.name, side.title, settings, sources, side.ignored, side.remarks)


def _typed(key: str, value: str) -> object:
    """The value as a spec has it. Raises SpecError where the option takes no such value."""
    option = OPTIONS[key]
    if option.off and value == "off":
        return value
    number = value.isdecimal() and len(value) < LONGEST_NUMBER
    typed = value == "true" if value in ("true", "false") else int(value) if number else value
    problems = Problems()
    read_option(Item(typed, f"{key}={value[:40]}", 0, ""), option, problems)
    problems.check()
    return typed


def products() -> list[str]:
    """The stacks that set SCTP only, or nothing: those of products."""
    return [name for name in names_in(STACKS) if "sysctl" not in _stack(name).table()]


def _stack(name: str) -> Item:
    problems = Problems()
    stack = read_stack(STACKS / f"{name}.toml", problems)
    problems.check()
    assert stack is not None
    return stack


def _product(name: str) -> Side:
    stack = _stack(name)
    rows = [(key, row) for role in ROLES for key, row in stack.under("sctp", role).items()]
    settings = {key: row.table()["value"].value for key, row in rows}
    return Side(name, stack.text("title"), settings, {key: row.text("source") for key, row in rows})


def _file(path: Path) -> Side:
    """The product whose keys the file has most of, with the values of the file over the product's own; of a file
    without any, the product whose configuration it looks like.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(LARGEST_FILE)
    text = re.sub(r"(?m)(?:#(?!!)|//).*$", "", text)
    keys = {name: _keys(name) for name in products()}
    found = {name: _numbers(known, text) for name, known in keys.items()}
    best = max(found, key=lambda name: len(found[name]))
    if not found[best]:
        return _without_settings(path, text, keys)
    side = _product(best)
    settings, sources = dict(side.settings), dict(side.sources)
    kept = []
    for key, number in found[best].items():
        setting = keys[best][key]
        if number < 0 or (number == 0 and setting not in ZERO_MEANS):
            settings.pop(setting, None)
            kept += [key] if number == 0 else []
            continue
        settings[setting] = number if setting in COUNTS else f"{number} ms"
        sources[setting] = f"{path.name}: {key}"
    unknown = tuple(sorted(set(re.findall(r"\b(?:sctp|srto|spp|sinit)_\w+", text)) - set(keys[best])))
    remarks = (f"{', '.join(kept)}: 0 leaves the value of the system (RFC 6458 8.1)",) if kept else ()
    return Side(path.name, f"{path.name}, read as {side.title}", settings, sources, unknown, remarks)


def _without_settings(path: Path, text: str, keys: Mapping[str, Mapping[str, str]]) -> Side:
    """The product that a file without settings of SCTP is of, by the words that mark its configuration."""
    marks = {name: {mark for mark in _marks(name) if re.search(rf"\b{re.escape(mark)}\b", text)} for name in keys}
    first, second = sorted(marks, key=lambda name: -len(marks[name]))[:2]
    if len(marks[first]) < LEAST_MARKS or len(marks[first]) == len(marks[second]):
        every = sorted({key for known in keys.values() for key in known})
        raise SpecError(
            f"{path}: holds none of the keys that are known of products ({', '.join(every)}), and looks like the "
            f"configuration of none of them. Name the product instead: {', '.join(keys)}"
        )
    side = _product(first)
    remark = f"{path.name} sets nothing of SCTP, so the product's own values hold"
    return Side(path.name, f"{path.name}, read as {side.title}", side.settings, side.sources, (), (remark,))


def _marks(name: str) -> list[str]:
    """Words that stand in configurations of a product, whatever they set."""
    sctp = _stack(name).get("sctp")
    marks = sctp.get("marks") if sctp is not None else None
    return [str(mark.value) for mark in marks.value] if marks is not None and isinstance(marks.value, list) else []


def _keys(name: str) -> dict[str, str]:
    """The keys of a product's configuration file, and the settings that they are."""
    return {key: str(item.value) for key, item in _stack(name).under("sctp", "file").items()}


def _numbers(keys: Iterable[str], text: str) -> dict[str, int]:
    found = ((key, _number(key, text)) for key in keys)
    return {key: number for key, number in found if number is not None}


def _number(key: str, text: str) -> int | None:
    """The number that follows a key, in YAML, in a list of parameters or in a call."""
    match = re.search(rf"""\b{key}\b["']?\s*[:=,]\s*["']?(-?\d+)\b""", text)
    if match and len(match[1]) > LONGEST_NUMBER:
        raise SpecError(f"{key}: {match[1].removeprefix('-')[:20]}... has more digits than a setting")
    return int(match[1]) if match else None
