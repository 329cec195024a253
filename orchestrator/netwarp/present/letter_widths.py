"""The width of a text in a picture, by the letters of DejaVu Sans: fonts of browsers are narrower, or as wide."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

_EM = 64
_WITH_UNIT = re.compile(r"(\d)[ \n](?=[a-zA-Z%]{1,2}(it/s)?\b|[kMG]bit/s|packets?\b|bytes?\b)")
"""A number and its unit stay on one line."""
WIDE = 1.05
"""Of an em: a letter that the font lacks, such as a Korean one."""


@functools.cache
def _import_matplotlib() -> None:
    """matplotlib makes a folder in the home directory when it is imported, unless MPLCONFIGDIR names another."""
    if "MPLCONFIGDIR" in os.environ:
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MPLCONFIGDIR"] = folder
        try:
            import matplotlib  # noqa: F401  for what its import does
        finally:
            del os.environ["MPLCONFIGDIR"]


@functools.cache
def _font(bold: bool) -> FT2Font:
    _import_matplotlib()
    from matplotlib import get_data_path
    from matplotlib.ft2font import FT2Font

    font = FT2Font(f"{get_data_path()}/fonts/ttf/DejaVuSans{'-Bold' if bold else ''}.ttf")
    font.set_size(_EM, 72)
    return font


@functools.cache
def _letter(letter: str, bold: bool) -> float:
    font = _font(bold)
    from matplotlib.ft2font import LoadFlags

    if not font.get_char_index(ord(letter)):
        return WIDE
    return float(font.load_char(ord(letter), flags=LoadFlags.NO_HINTING).linearHoriAdvance) / 65536 / _EM


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """In the units of `size`, the height of the font."""
    return size * sum(_letter(letter, bold) for letter in text)


def fitted(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """The text in lines of at most this width; a word that is wider is broken, a number stays with its unit."""
    lines = [""]
    for word in _WITH_UNIT.sub("\\1\u00a0", text).split(" "):
        joined = f"{lines[-1]} {word}".strip()
        if text_width(joined, size, bold=bold) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for letter in word:
            if lines[-1] and text_width(lines[-1] + letter, size, bold=bold) > width:
                lines.append("")
            lines[-1] += letter
    return lines
