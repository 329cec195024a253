"""Standard output and error through the one escape of text (core/outside_text.py), whoever prints. Standard library
only: what is imported before anything is installed prints through it too.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

from ..core.outside_text import visible, visible_json


class EscapedStream:
    """A text stream that writes no character that acts on a terminal. plain: the stream itself, for what makes
    sequences of its own and escapes its text before (cli/output.py).
    """

    def __init__(self, plain: TextIO) -> None:
        self.plain = plain

    def write(self, text: str) -> int:
        """Write the text, escaped."""
        self.plain.write(visible(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write texts, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's."""
        return getattr(self.plain, name)


def escaped_json(text: bytes) -> bytes:
    """JSON whose strings hold no character that acts on a terminal; equal values."""
    return text if text.isascii() and b"\x7f" not in text else visible_json(text.decode()).encode()


def indented(text: str) -> str:
    """A message whose further lines never look like one of netwarp's own."""
    return re.sub(r"\n(?=\S)", "\n  ", text)


def plain_stream(stream: TextIO) -> TextIO:
    """The stream below an EscapedStream."""
    return stream.plain if isinstance(stream, EscapedStream) else stream


@contextlib.contextmanager
def escaped_streams() -> Iterator[None]:
    """Within the block what is printed is escaped, and a character that the terminal's encoding lacks is no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    out, err = (cast(TextIO, EscapedStream(plain_stream(stream))) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
