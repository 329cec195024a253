"""Reads what Chromium prints into a PDF: the pages, and each letter with its place and the clip that it is drawn in."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

Box = tuple[float, float, float, float]
"""Left, bottom, right, top, in points from the page's lower left corner."""
OBJECT = re.compile(rb"(\d+) 0 obj\s*(.*?)\s*endobj", re.DOTALL)
TOKEN = re.compile(rb"<<.*?>>|<[0-9A-Fa-f]*>|\((?:\\.|[^)\\])*\)|/[^\s<>\[\]()/]+|[^\s<>\[\]()/]+", re.DOTALL)
NUMBER = re.compile(rb"-?\d*\.?\d+")
PAIR = re.compile(rb"^<([0-9A-Fa-f]+)> <([0-9A-Fa-f]+)>(?: <([0-9A-Fa-f]+)>)?$", re.MULTILINE)


@dataclass(frozen=True)
class Letter:
    """A letter (or some that are one glyph) at its origin."""

    text: str
    x: float
    y: float
    clip: Box

    @property
    def clipped(self) -> bool:
        """Whether its origin is outside the clip."""
        return not (self.clip[0] - 1 <= self.x <= self.clip[2] + 1 and self.clip[1] - 1 <= self.y <= self.clip[3] + 1)


@dataclass
class Sheet:
    """A page of the file."""

    size: Box
    letters: list[Letter] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All letters as they are drawn, without blanks."""
        return re.sub(r"\s", "", "".join(letter.text for letter in self.letters))


def read_pdf(path: Path) -> list[Sheet]:
    """The pages in their order."""
    content = path.read_bytes()
    objects = {int(number): body for number, body in OBJECT.findall(content)}
    (tree,) = (body for body in objects.values() if b"/Type /Pages" in body and b"/Parent" not in body)
    return [sheet for number in _kids(tree) for sheet in _sheets(objects, number)]


def _kids(body: bytes) -> list[int]:
    found = re.search(rb"/Kids \[(.*?)\]", body, re.DOTALL)
    return [int(number) for number in re.findall(rb"(\d+) 0 R", found[1])] if found else []


def _sheets(objects: dict[int, bytes], number: int) -> list[Sheet]:
    body = objects[number]
    if b"/Type /Pages" in body:
        return [sheet for kid in _kids(body) for sheet in _sheets(objects, kid)]
    left, bottom, right, top = (float(one) for one in re.search(rb"/MediaBox \[(.*?)\]", body)[1].split())  # type: ignore[index]
    sheet = Sheet((left, bottom, right, top))
    fonts = {name: _letters_of(objects, int(font)) for name, font in re.findall(rb"/(F\d+) (\d+) 0 R", body)}
    _draw(_stream(objects, int(re.search(rb"/Contents (\d+)", body)[1])), fonts, sheet)  # type: ignore[index]
    return [sheet]


def _stream(objects: dict[int, bytes], number: int) -> bytes:
    head, _, data = objects[number].partition(b"stream")
    data = data.lstrip(b"\r\n")
    return zlib.decompressobj().decompress(data) if b"/FlateDecode" in head else data


def _letters_of(objects: dict[int, bytes], font: int) -> dict[int, str]:
    """Glyph -> letters, from the font's /ToUnicode."""
    named = re.search(rb"/ToUnicode (\d+)", objects[font])
    found: dict[int, str] = {}
    for first, last, target in PAIR.findall(_stream(objects, int(named[1]))) if named else ():
        if not target:
            found[int(first, 16)] = bytes.fromhex(last.decode()).decode("utf-16-be")
            continue
        for step in range(int(last, 16) - int(first, 16) + 1):
            found[int(first, 16) + step] = chr(int(target, 16) + step)
    return found


def _draw(content: bytes, fonts: dict[bytes, dict[int, str]], sheet: Sheet) -> None:
    """Play the content stream: scales and shifts, clips, and text. Skia neither rotates nor skews a page's text."""
    state = ((1.0, 1.0, 0.0, 0.0), sheet.size)  # of x and y: scale, shift; and the clip
    stack = [state]
    operands: list[bytes] = []
    rectangle: Box | None = None
    font: dict[int, str] = {}
    origin = (0.0, 0.0)
    instead: list[str] = []  # what is said in the place of the next glyph ("ffi")
    for token in TOKEN.findall(content):
        (sx, sy, tx, ty), clip = state
        numbers = [float(one) for one in operands if NUMBER.fullmatch(one)]
        match token:
            case b"q":
                stack.append(state)
            case b"Q":
                state = stack.pop()
            case b"cm":
                a, _, _, d, e, f = numbers[-6:]
                state = ((sx * a, sy * d, tx + sx * e, ty + sy * f), clip)
            case b"re":
                x, y, width, height = numbers[-4:]
                ends = sorted((tx + sx * x, tx + sx * (x + width))), sorted((ty + sy * y, ty + sy * (y + height)))
                rectangle = (ends[0][0], ends[1][0], ends[0][1], ends[1][1])
            case b"W" | b"W*" if rectangle:
                box = [pick(one, two) for pick, one, two in zip((max, max, min, min), clip, rectangle, strict=True)]
                state = (state[0], (box[0], box[1], box[2], box[3]))
            case b"Tf":
                font = fonts.get(operands[-2].removeprefix(b"/"), {})
            case b"Tm":
                origin = (numbers[-2], numbers[-1])
            case b"Td":
                origin = (origin[0] + numbers[-2], origin[1] - numbers[-1])
            case b"Tj":
                glyphs = bytes.fromhex(operands[-1].strip(b"<>").decode())
                for place in range(0, len(glyphs), 2):
                    text = instead.pop() if instead else font.get(int.from_bytes(glyphs[place : place + 2]), "\ufffd")
                    sheet.letters.append(Letter(text, tx + sx * origin[0], ty + sy * origin[1], clip))
            case b"BDC":
                said = re.search(rb"/ActualText \((.*?)\)", b" ".join(operands))
                instead = [said[1].decode("latin-1")] if said else instead
            case _:
                operands.append(token)
                continue
        operands = []
