"""Text from outside (a file of a stranger's, a program's output) before a terminal, CSV, JUnit or Markdown has it: what
acts on a reader's screen is shown as an escape. Standard library only.
"""

from __future__ import annotations

import re

_LINES = "\t\n"
_ACTS = (
    "\0-\x1f\x7f-\x9f"  # control characters, C1 among them: some terminals take U+009B as ESC [
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # directions, line ends and what is not seen
    "\ufff9-\ufffb\U000e0000-\U000e0fff"  # annotations, tags
    "\ud800-\udfff"  # half a character: no file takes it
)
_ALL = re.compile(f"[{_ACTS}]")
_BUT_LINES = re.compile(f"(?![{_LINES}])[{_ACTS}]")
_MARKDOWN = re.compile(r"([\\`*{}\[\]<>|#~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
"""An underscore within a word means nothing in Markdown."""


def one_line(text: str) -> str:
    """A text that is one line whatever is in it: "a\\x1b[2J" with a backslash, letters and digits in place of ESC."""
    return _ALL.sub(_escape, text)


def visible(text: str) -> str:
    """The same of whole lines: their ends and tabs stay."""
    return _BUT_LINES.sub(_escape, text)


def visible_json(text: str) -> str:
    """JSON in which nothing acts on a terminal: escaped as JSON has it, so that its values stay."""
    return _BUT_LINES.sub(_json_escape, text)


def markdown(text: str) -> str:
    """A text as one field of a table of Markdown, or a part of its line."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def markdown_code(text: str) -> str:
    """A text as code in a field of a table of Markdown: in more backticks than it has itself."""
    shown = one_line(text).replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{ticks} {shown} {ticks}" if "`" in shown else f"{ticks}{shown}{ticks}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 65536:
        return f"\\u{code:04x}"
    code -= 65536
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 1023):04x}"
