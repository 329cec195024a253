"""Explains TOML syntax errors: names the key and shows a correct line."""

from __future__ import annotations

import re

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


def hint(said: str, line: str) -> str:
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
