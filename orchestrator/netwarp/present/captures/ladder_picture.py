"""The ladder of a connection as text for a terminal and as SVG: the same rows, in the same words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from ...captures.ladder import Ladder, LadderRow
from ...core.lines import Line, letters
from ...core.numbers import fixed
from ...core.units import counted
from ..letter_widths import fitted, text_width
from ..stylesheets import STYLES

SIZE, BASELINE, LINE, MARGIN = 12, 12, 16, 8
"""Of a text: its height, from the top of its line to its baseline, from line to line; around the picture. In px."""
LANE, NARROW, MANY = 84, 48, 3
"""The width of a path's lane; where there are more than MANY; in px."""
APART, TEXT, HEAD, GAP = 10, 340, 6, 4
"""Between lanes; the width at which a row's text wraps; an arrow's head; between two rows. In px."""
PHONE = 320
"""The width of a picture that has its words below the arrows; in px."""
ARROW, SHORT_ARROW = 9, 5
"""The letters of an arrow in a terminal."""
FINE_S = 1.0
"""Of a shorter connection times have microseconds."""


def ladder_title(ladder: Ladder) -> list[str]:
    """What the picture shows, a line each: ends, where it was seen, and its paths."""
    lines = [f"{ladder.protocol.upper()}  {ladder.ends[0]} (left) and {ladder.ends[1]} (right)"]
    if len(ladder.lanes) > 1:
        word = "subflow" if ladder.protocol == "mptcp" else "path"
        lines += [f"{word} {number}: {name}" for number, name in enumerate(ladder.lanes, 1)]
    return [*lines, f"{counted(ladder.packets, 'packet')} seen at {ladder.point}", *ladder.lacks]


def row_times(ladder: Ladder) -> list[str]:
    """The times of the rows, as they are drawn."""
    span_s = ladder.rows[-1].until_s - ladder.rows[0].t_s if ladder.rows else 0.0
    places = 6 if span_s < FINE_S else 3
    return [f"{fixed(row.t_s, places)} s" for row in ladder.rows]


def ladder_lines(ladder: Ladder) -> Iterator[Line]:
    """The ladder as text."""
    for title in ladder_title(ladder):
        yield Line("  ", title)
    yield Line("")
    length = ARROW if len(ladder.lanes) <= MANY else SHORT_ARROW
    times = row_times(ladder)
    wide = max(map(letters, times), default=0)
    if len(ladder.lanes) > 1:
        numbers = "  ".join(_above_lane(number, length + 2) for number in range(1, len(ladder.lanes) + 1))
        yield Line(f"  {' ' * wide}  {numbers}")
    for row, time in zip(ladder.rows, times, strict=True):
        lanes = "  ".join(_cell(row, lane, length) for lane in range(len(ladder.lanes)))
        yield Line(f"  {' ' * (wide - letters(time))}{time}  {lanes}  ", row.text)


def _above_lane(number: int, width: int) -> str:
    """A lane's number in the middle of its width."""
    before = (width - letters(str(number))) // 2
    return f"{' ' * before}{number}{' ' * (width - before - letters(str(number)))}"


def _cell(row: LadderRow, lane: int, length: int) -> str:
    """One lane of a row in a terminal."""
    inside = " " * length
    if row.kind == "note":
        inside = (" -" * length)[:length] if row.lane in (lane, None) else inside
    elif row.kind == "fold":
        middle = ":" * (length - 2)
        ends = {0: (" ", ">"), 1: ("<", " "), None: ("<", ">")}[row.direction]
        inside = ends[0] + middle + ends[1] if row.lane in (lane, None) else inside
    elif row.lane == lane:
        line = "-" * (length - 1)
        inside = f"<{line}" if row.direction else f"{line}>"
    return f"|{inside}|"


@dataclass
class _Picture:
    width: float
    height: float = MARGIN
    parts: list[Markup] = field(default_factory=list)

    def write(self, x: float, y: float, text: str, kind: str, *, right: bool = False) -> None:
        end = Markup(' text-anchor="end"') if right else ""
        self.parts.append(
            Markup('<text class="ladder-{}"{} x="{}" y="{}">{}</text>').format(
                kind, end, f"{x:.1f}", f"{y + BASELINE:.1f}", text
            )
        )

    def line(self, kind: str, points: Sequence[tuple[float, float]]) -> None:
        path = " ".join(f"{'ML'[number > 0]}{x:.1f},{y:.1f}" for number, (x, y) in enumerate(points))
        self.parts.append(Markup('<path class="ladder-{}" d="{}"/>').format(kind, path))


ALONE = """
svg { color: #1b1f24; background: #ffffff; }
@media screen and (prefers-color-scheme: dark) { svg { color: #e6e6e6; background: #0d1117; } }
"""
"""Of a picture in a file of its own, which has no page around it."""


def ladder_svgs(ladder: Ladder) -> Markup:
    """The ladder for a page: beside its words, and for a phone above them; the page shows one of the two."""
    return ladder_svg(ladder) + ladder_svg(ladder, below=True)


def ladder_svg(ladder: Ladder, *, alone: bool = False, below: bool = False) -> Markup:
    """The ladder as SVG; alone: as a file; below: the words of a row stand below its arrow, not beside it."""
    times = row_times(ladder)
    begin = MARGIN + max((text_width(time, SIZE) for time in times), default=0) + GAP * 3
    lane = LANE if len(ladder.lanes) <= MANY else NARROW
    lanes = [(begin + number * (lane + APART), begin + number * (lane + APART) + lane)
             for number in range(len(ladder.lanes))]  # fmt: skip
    text_x = begin if below else lanes[-1][1] + GAP * 3
    picture = _Picture(max(PHONE, lanes[-1][1] + MARGIN) if below else text_x + TEXT + MARGIN)
    text_width_px = picture.width - MARGIN - text_x
    for number, title in enumerate(ladder_title(ladder)):
        for text in fitted(title, picture.width - 2 * MARGIN, SIZE, bold=number == 0):
            picture.write(MARGIN, picture.height, text, "bold" if number == 0 else "soft")
            picture.height += LINE
    picture.height += GAP
    if len(lanes) > 1:
        for number, (left, right) in enumerate(lanes, 1):
            middle = (left + right - text_width(str(number), SIZE)) / 2
            picture.write(middle, picture.height, str(number), "bold")
        picture.height += LINE + GAP
    top = picture.height
    for row, time in zip(ladder.rows, times, strict=True):
        picture.write(begin - GAP * 3, picture.height, time, "soft", right=True)
        middle = picture.height + LINE / 2
        for number, (left, right) in enumerate(lanes):
            _draw(picture, row, number, left, right, middle)
        look = row.what
        if below:
            for x in (x for sides in lanes for x in sides):
                picture.line("line", [(x, picture.height), (x, picture.height + LINE)])
            picture.height += LINE
        for text in fitted(row.text, text_width_px, SIZE):
            picture.write(text_x, picture.height, text, look)
            picture.height += LINE
        picture.height += GAP
    for sides in lanes:
        for x in () if below else sides:
            picture.line("line", [(x, top), (x, picture.height)])
    picture.height += MARGIN
    return _svg(picture, ladder, alone, "alone" if alone else "below" if below else "beside")


def _draw(picture: _Picture, row: LadderRow, lane: int, left: float, right: float, y: float) -> None:
    if row.lane not in (lane, None):
        return
    look = row.what
    if row.kind == "note":
        picture.line(f"rule ladder-{look}", [(left, y), (right, y)])
        return
    picture.line(f"fold ladder-{look}" if row.kind == "fold" else look, [(left, y), (right, y)])
    for tip, inward, ways in ((right, -1, (0, None)), (left, 1, (1, None))):
        if row.direction in ways:
            back = tip + inward * HEAD
            picture.line(look, [(back, y - HEAD / 2), (tip, y), (back, y + HEAD / 2)])


def _svg(picture: _Picture, ladder: Ladder, alone: bool, layout: str) -> Markup:
    width, height = round(picture.width, 1), round(picture.height, 1)
    style = Markup((STYLES / "ladder.css").read_text(encoding="utf-8") + ALONE)
    parts = [Markup("<style>{}</style>").format(style)] if alone else []
    name = Markup(' xmlns="http://www.w3.org/2000/svg"') if alone else ""
    words = f"Sequence diagram of {ladder.ends[0]} and {ladder.ends[1]}, {counted(len(ladder.rows), 'row')}"
    return Markup(
        '<svg{} class="ladder ladder-{}" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">{}</svg>'
        "\n"
    ).format(name, layout, words, width, height, width, height, Markup("\n").join([*parts, *picture.parts]))
