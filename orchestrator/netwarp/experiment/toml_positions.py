"""TOML with the file and line of every key: values by tomllib, lines by tree-sitter-toml; explains syntax errors."""

from __future__ import annotations

import codecs
import contextlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tree_sitter
import tree_sitter_toml

from .problems import Problems

LARGEST_FILE_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 15
"""A key of a hundred thousand dots would take a parser minutes."""
DEEPEST = 16
TWICE = ("Cannot overwrite a value", "Cannot declare", "Cannot mutate")
"""The beginning of tomllib's message about a key or table that stands there twice."""
_HINTS = (
    ("Expected newline", 'a line holds one key and its value; a quote inside a text is written \\"'),
    ("Unclosed array", 'a list needs its ] and a comma after each value, here or above; for example ["0 s", "5 s"]'),
    ("Unclosed inline table", 'its } is missing; for example { kind = "chain", hops = 3 }'),
    ("Illegal character '\\n'", 'the closing quote is missing; for example "10 s"'),
    ("Unterminated string", 'the closing quotes are missing; for example "10 s"'),
    ("Expected ']' at the end of a table", "a table begins with its name in brackets; for example [link.p1]"),
    ("Expected ']]' at the end of an array", "for example [[claim]]"),
    ("Unescaped '\\' in a string", "write it twice, or use single quotes"),
    ("Invalid statement", 'a line is a table, [link.p1], or a key and its value, rate = "1 Mbit/s"'),
    ("Expected '=' after a key", 'for example rate = "1 Mbit/s"'),
)
_QUOTES = "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{DOUBLE LOW-9 QUOTATION MARK}"
"""Quotation marks that a word processor makes of "."""
_COLON = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*:\s*(\S[^=]{0,200})", re.ASCII)
_PAIR = re.compile(r"""\s*([A-Za-z0-9_.-]+)\s*=\s*([^"'\s#=][^"'#=]{0,200})(?:#.*)?""", re.ASCII)
T = TypeVar("T", bound=str)
Scalar = str | int | float | bool
Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A value of a TOML document with its position. `key`: its dotted path from the top of the file.

    note: added to a problem's message if the value replaced a parameter or level: where it is used, or how it is
    written there. used: the item that this value replaced, at the position where the value is used. turn: the turn of
    a loop that made it (loops.py).
    """

    value: dict[str, Item] | list[Item] | Scalar
    file: str
    line: int
    key: str
    note: str = ""
    used: Item | None = None
    turn: str = ""

    def table(self) -> dict[str, Item]:
        """The value as a table; empty if it is of another type (the grammar check reports that)."""
        return self.value if isinstance(self.value, dict) else {}

    def items(self) -> list[Item]:
        """The value as a list; empty if it is of another type."""
        return self.value if isinstance(self.value, list) else []

    def get(self, *keys: str) -> Item | None:
        """The item under these keys, or None."""
        item: Item | None = self
        for key in keys:
            item = item.table().get(key) if item is not None else None
        return item

    def under(self, *keys: str) -> dict[str, Item]:
        """The table under these keys; empty if there is none."""
        return item.table() if (item := self.get(*keys)) is not None else {}

    def listed(self, *keys: str) -> list[Item]:
        """The list under these keys; empty if there is none."""
        return item.items() if (item := self.get(*keys)) is not None else []

    def texts(self, *keys: str) -> tuple[str, ...]:
        """The text under these keys, or the texts of a list there; the grammar check reports what else stands there."""
        item = self.get(*keys)
        parts = [] if item is None else item.items() or [item]
        return tuple(part.value for part in parts if isinstance(part.value, str))

    def text(self, key: str, default: str = "") -> str:
        """The text under a key; `default` if there is none."""
        return next(iter(self.texts(key)), default)

    def choice(self, key: str, known: Sequence[T], default: T) -> T:
        """Which of these words stands under a key; the grammar check refuses others."""
        return next((word for word in known if word == self.text(key)), default)

    def integer(self, key: str) -> int | None:
        """The whole number under a key."""
        value = item.value if (item := self.get(key)) is not None else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def switch(self, key: str) -> bool:
        """True if `true` stands under a key."""
        return (item := self.get(key)) is not None and item.value is True

    def levels(self, *keys: str) -> dict[str, tuple[str, ...]]:
        """The selector under these keys: factor -> levels."""
        return {factor: levels.texts() for factor, levels in self.under(*keys).items()}

    def with_place(self, other: Item) -> Item:
        """The same value at the position of another."""
        return Item(self.value, other.file, other.line, other.key, turn=other.turn)

    def part(self, text: str) -> Item:
        """The last element of a list that equals this text, which has its own line; the list itself if there is
        none.
        """
        return next((child for child in reversed(self.items()) if child.value == text), self)

    def with_value(self, value: dict[str, Item] | list[Item] | Scalar) -> Item:
        """Another value at the same position."""
        return Item(value, self.file, self.line, self.key, turn=self.turn)


def parse_toml(text: bytes, file: str, problems: Problems) -> Item | None:
    """Parse a file's bytes; adds an error to `problems` with its line, and returns None."""
    text = text.removeprefix(codecs.BOM_UTF8)  # editors of Windows write one
    try:
        values = _values(text)
    except _Unreadable as wrong:
        problems.add_at(file, *wrong.args)
        return None
    lines: dict[Steps, int] = {}
    _Lines(lines).document(_tree(text))
    return _build(values, (), lines, file, 1, problems)


class _Unreadable(Exception):
    """Line, key and message of what makes a file no TOML."""


def _values(text: bytes) -> dict[str, Any]:
    if len(text) > LARGEST_FILE_BYTES:
        raise _Unreadable(1, "", f"larger than {LARGEST_FILE_BYTES} bytes")
    for number, line in enumerate(text.split(b"\n"), 1):
        if len(line) > LONGEST_LINE_BYTES:
            raise _Unreadable(number, "", f"a line longer than {LONGEST_LINE_BYTES} bytes")
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in text[:2]:
        raise _Unreadable(1, "", "UTF-16 text; save the file as UTF-8")
    try:
        values = tomllib.loads(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        line_of_error = 1 + text[: error.start].count(b"\n")
        raise _Unreadable(line_of_error, "", "not UTF-8 text; save the file as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise _Unreadable(*_syntax_problem(error, text)) from error
    except (ValueError, RecursionError) as error:  # a number of a million digits, a thousand nested brackets
        raise _Unreadable(1, "", f"not TOML that netwarp can read: {error}") from error
    if _depth(values) > 2 * DEEPEST:
        raise _Unreadable(1, "", f"nested deeper than {DEEPEST} levels")
    return values


def _tree(text: bytes) -> tree_sitter.Node:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language())).parse(text).root_node


def _syntax_problem(error: tomllib.TOMLDecodeError, text: bytes) -> tuple[int, str, str]:
    """Line, key and message for a document that tomllib refuses."""
    message, _, place = str(error).rpartition(" (at ")
    line = _line_of(place, text)
    if message.startswith(TWICE):
        lines = _Lines({})
        with contextlib.suppress(RecursionError):  # a key of ten thousand dots
            lines.document(_tree(text))
        if lines.twice is not None:
            path, second, first = lines.twice
            return second, dotted(path), f"stands in line {first} already; leave one of the two out"
    texts = text.decode("utf-8").split("\n")
    message = message or str(error)
    return line, "", f"not TOML: {message}{_hint(message, texts[min(line, len(texts)) - 1])}"


def _hint(said: str, line: str) -> str:
    """The correction to add to tomllib's message about a line, or ""."""
    pair = _PAIR.fullmatch(line)
    if pair is not None and (quoted := _quoted(pair[2].strip())):
        return f"; text stands in quotes; for example {pair[1]} = {quoted}"
    if (colon := _COLON.fullmatch(line)) is not None:
        return f"; for example {colon[1]} = {colon[2].strip()}"
    return next((f"; {words}" for begins, words in _HINTS if said.startswith(begins)), "")


def _quoted(text: str) -> str:
    """The value with its quotes: a text, or a list of texts; "" where it is neither."""
    if not text.startswith("["):
        return f'"{text.strip(_QUOTES)}"'
    if not text.endswith("]") or "[" in text[1:]:
        return ""
    parts = [f'"{part.strip().strip(_QUOTES)}"' for part in text[1:-1].split(",") if part.strip()]
    return f"[{', '.join(parts)}]" if parts else ""


def read_bounded(path: Path) -> bytes:
    """A file's bytes, at most one more than parse_toml() accepts, so that a huge file is refused without being read."""
    with path.open("rb") as file:
        return file.read(LARGEST_FILE_BYTES + 1)


def _depth(value: Any) -> int:
    """The depth of nested lists and tables, without recursion."""
    deepest, level = 0, [value]
    while level:
        deepest += 1
        inner = [list(v.values()) if isinstance(v, dict) else v for v in level if isinstance(v, (dict, list))]
        level = [child for children in inner for child in children]
    return deepest


def plain(value: str | float | bool | list[Any] | dict[str, Any], file: str, line: int, key: str) -> Item:
    """An Item for a value that is in no file (from a named shape or --set)."""
    if isinstance(value, dict):
        return Item(
            {name: plain(v, file, line, f"{key}.{name}".strip(".")) for name, v in value.items()}, file, line, key
        )
    if isinstance(value, list):
        return Item([plain(v, file, line, f"{key}[{n}]") for n, v in enumerate(value)], file, line, key)
    return Item(value, file, line, key)


def _line_of(place: str, text: bytes) -> int:
    words = place.replace(",", " ").split()
    if "line" in words:
        return int(words[words.index("line") + 1])
    return 1 + text.rstrip(b"\n").count(b"\n")


def _build(value: Any, path: Steps, lines: dict[Steps, int], file: str, line: int, problems: Problems) -> Item:
    line = lines.get(path, line)
    key = dotted(path)
    if len(path) > DEEPEST:
        problems.add_at(file, line, key, f"nested deeper than {DEEPEST} levels")
        return Item("", file, line, key)
    if isinstance(value, dict):
        return Item({k: _build(v, (*path, k), lines, file, line, problems) for k, v in value.items()}, file, line, key)
    if isinstance(value, list):
        parts = [_build(v, (*path, n), lines, file, line, problems) for n, v in enumerate(value)]
        return Item(parts, file, line, key)
    if isinstance(value, (str, int, float, bool)):
        return Item(value, file, line, key)
    problems.add_at(file, line, key, 'a date is not a value of any key; write text, for example "10 s"')
    return Item("", file, line, key)


def dotted(path: Steps) -> str:
    """`("a", "b c", 1)` -> `a."b c"[1]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            bare = step != "" and all(c.isalnum() or c in "_-" for c in step)
            text += ("." if text else "") + (step if bare else f'"{step}"')
    return text


class _Lines:
    """The first line of every path of a syntax tree."""

    def __init__(self, lines: dict[Steps, int]) -> None:
        self._lines = lines
        self._arrays: dict[Steps, int] = {}
        self._tables: set[Steps] = set()
        self.twice: tuple[Steps, int, int] | None = None
        """The first path with two values, or two table headers; its second and its first line."""

    def document(self, root: tree_sitter.Node) -> None:
        """Every pair and table of the file."""
        for node in root.named_children:
            if node.type == "pair":
                self._pair(node, ())
            elif node.type in ("table", "table_array_element"):
                head, *pairs = node.named_children
                prefix = self._header(self._keys(head), node)
                for pair in pairs:
                    if pair.type == "pair":
                        self._pair(pair, prefix)

    def _header(self, keys: list[str], node: tree_sitter.Node) -> Steps:
        path: Steps = ()
        for key in keys[:-1]:
            path = (*path, key)
            self._note(path, node)
            if path in self._arrays:
                path = (*path, self._arrays[path])
        path = (*path, keys[-1])
        if node.type == "table" and path in self._tables:
            self._again(path, node)
        self._tables.add(path)
        self._note(path, node)
        if node.type == "table_array_element":
            self._arrays[path] = self._arrays.get(path, -1) + 1
            path = (*path, self._arrays[path])
            self._note(path, node)
        return path

    def _pair(self, node: tree_sitter.Node, prefix: Steps) -> None:
        key, value = [child for child in node.named_children if child.type != "comment"][:2]
        path = prefix
        names = self._keys(key)
        for place, name in enumerate(names, 1):
            path = (*path, name)
            if place == len(names) and path in self._lines:
                self._again(path, node)
            self._tables.add(path)
            self._note(path, node)
        self._value(value, path)

    def _value(self, node: tree_sitter.Node, path: Steps) -> None:
        if len(path) > DEEPEST + 2:
            return
        if node.type == "inline_table":
            for pair in node.named_children:
                if pair.type == "pair":
                    self._pair(pair, path)
        elif node.type == "array":
            values = [child for child in node.named_children if child.type != "comment"]
            for number, child in enumerate(values):
                self._note((*path, number), child)
                self._value(child, (*path, number))

    def _again(self, path: Steps, node: tree_sitter.Node) -> None:
        self.twice = self.twice or (path, node.start_point[0] + 1, self._lines[path])

    def _note(self, path: Steps, node: tree_sitter.Node) -> None:
        self._lines.setdefault(path, node.start_point[0] + 1)

    def _keys(self, node: tree_sitter.Node) -> list[str]:
        if node.type == "dotted_key":
            return [name for child in node.named_children for name in self._keys(child)]
        text = (node.text or b"").decode("utf-8", "replace")
        return [next(iter(tomllib.loads(f"{text} = 0")))] if node.type == "quoted_key" else [text]
