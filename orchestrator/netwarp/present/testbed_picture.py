"""A drawing of a testbed: hosts, router hops, what each direction of a link does, faults, and flows as arrows.

Nodes stand in columns, by their distance from the senders. Between two columns each link has a lane of its own with its
label; what leads from a node to a lane lies beside the labels. So no label meets a node, a line or another label.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from .letter_widths import fitted, text_width
from .stylesheets import STYLES

SIZE, BASELINE, LINE = 12, 11, 16
"""Of a label's text: its height, from the top of its line to its baseline, and from line to line, in px."""
LABEL, NAME = 164, 104
"""The width at which labels of links, and names of nodes, wrap."""
FAN, PAD, MARGIN, APART = 30, 9, 8, 14
"""Between a column and the labels; around a name in its box; around the drawing; between two nodes, or two lanes."""
PORT, HOP, HEAD = 9, 11, 7
"""Between two lines that leave a node; the side of a hop; the length of an arrow's head."""
ALIKE = 3
"""So many leaves that differ in their names alone are drawn as one."""
MOST_FLOWS = 12
BAND = 30
"""Of a picture from top to bottom: the room of a line beside its label."""
SAMPLE = 22
"""The length of an arrow beside its words."""
BESIDE = 4
"""Between a link's line and that of the flows over it."""
TALL, SIDE_BY_SIDE = 326, 2
"""The width of a picture from top to bottom, and of how many links, or nodes, beside each other there is room for."""
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node. notes: faults of the host."""

    name: str
    kind: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A link from `a` to `b`. there, back: what its directions do, a text each property. notes: faults. hop: whether a
    router in its middle shapes it. shaping: its ends whose interfaces do.
    """

    name: str
    a: str
    b: str
    there: tuple[str, ...]
    back: tuple[str, ...]
    notes: tuple[str, ...] = ()
    hop: bool = False
    shaping: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DrawnFlow:
    """Flows that differ in their names alone. ways: links of their paths at the sender and at the receiver."""

    sender: str
    receiver: str
    text: str
    notes: tuple[str, ...] = ()
    ways: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, by its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    kind: str = ""

    def meets(self, other: Box) -> bool:
        """Whether they have a place in common."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text in its box, from its left end."""

    text: str
    box: Box
    bold: bool = False


@dataclass
class Picture:
    """What is drawn. lines: (kind, points)."""

    words: str
    width: float = 0
    height: float = 0
    nodes: list[Box] = field(default_factory=list)
    hops: list[Box] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    lines: list[tuple[str, tuple[tuple[float, float], ...]]] = field(default_factory=list)

    def write(self, x: float, y: float, texts: Sequence[str], kind: str = "", *, bold: bool = False) -> None:
        """Lines of text from the place of their upper left corner."""
        for number, text in enumerate(texts):
            box = Box(x, y + number * LINE, text_width(text, SIZE, bold=bold), LINE, kind)
            self.labels.append(Label(text, box, bold))


def draw(
    nodes: Sequence[DrawnNode], links: Sequence[DrawnLink], flows: Sequence[DrawnFlow], room: float = 0
) -> Picture:
    """The picture of a testbed, from left to right. room: for the labels of all links in a row, which wrap at LABEL at
    the least.
    """
    picture, columns, links, members, named = _begun(nodes, links, flows)
    drawn = _Graph(picture, columns, links, max(LABEL, room / max(len(columns) - 1, 1))).draw()
    _end(picture, drawn, _directions(links, flows, members, named), links, flows)
    return picture


def draw_tall(nodes: Sequence[DrawnNode], links: Sequence[DrawnLink], flows: Sequence[DrawnFlow]) -> Picture | None:
    """The same from top to bottom, as wide as a phone; None where more links lie side by side than there is room for,
    or one joins two nodes of one distance.
    """
    picture, columns, links, members, named = _begun(nodes, links, flows)
    row = {node.name: number for number, column in enumerate(columns) for node in column}
    lanes = Counter(min(row[link.a], row[link.b]) for link in links)
    if max(lanes.values()) > SIDE_BY_SIDE or any(row[link.a] == row[link.b] for link in links):
        return None
    if max(map(len, columns)) > SIDE_BY_SIDE:
        return None
    drawn = _Rows(picture, columns, links).draw()
    _end(picture, drawn, _directions(links, flows, members, named), links, flows)
    return picture


Columns = list[list[DrawnNode]]


def _begun(
    nodes: Sequence[DrawnNode], links: Sequence[DrawnLink], flows: Sequence[DrawnFlow]
) -> tuple[Picture, Columns, list[DrawnLink], dict[str, str], dict[str, str]]:
    """An empty picture; nodes in columns, and links, those that are alike as one; each node, and each link -> the one
    that is drawn for it.
    """
    words = "; ".join(f"{link.name} from {link.a} to {link.b}" for link in links)
    nodes, links, members, named = _alike(nodes, links, flows)
    columns = _ordered(_columns(nodes, links, [(members[f.sender], members[f.receiver]) for f in flows]), links)
    return Picture(f"Testbed: {words}"), columns, links, members, named


def _end(
    picture: Picture,
    drawn: Mapping[str, tuple[Points, bool]],
    used: Iterable[tuple[str, bool]],
    links: Sequence[DrawnLink],
    flows: Sequence[DrawnFlow],
) -> None:
    """Flows as arrows beside the links that they use, and the words below. drawn: link -> its line, and whether that
    begins at `a`.
    """
    for name, from_a in used:
        if name in drawn:
            line, begins_at_a = drawn[name]
            picture.lines += _flow_arrow(line, forward=from_a == begins_at_a)
    _list_flows(picture, flows)
    if any(link.hop or link.shaping for link in links):
        _legend(picture)
    picture.height += MARGIN


def _directions(
    links: Sequence[DrawnLink], flows: Sequence[DrawnFlow], members: Mapping[str, str], named: Mapping[str, str]
) -> list[tuple[str, bool]]:
    """(link, whether from its `a`) of the data of all flows."""
    used: dict[tuple[str, bool], None] = {}
    for flow in flows:
        sender, receiver = members[flow.sender], members[flow.receiver]
        if sender == receiver:
            continue
        for first, last in flow.ways or (("", ""),):
            used |= dict.fromkeys(_route(links, sender, receiver, named.get(first, first), named.get(last, last)))
    return list(used)


def _route(links: Sequence[DrawnLink], sender: str, receiver: str, first: str, last: str) -> list[tuple[str, bool]]:
    """The shortest way that leaves by the link `first` and arrives by `last` ("": any); [] if there is none."""
    seen = {sender}
    front: list[tuple[str, list[tuple[str, bool]]]] = [(sender, [])]
    while front:
        following = []
        for near, way in front:
            for link in links:
                if near not in (link.a, link.b) or (first and not way and link.name != first):
                    continue
                far = link.b if near == link.a else link.a
                taken = [*way, (link.name, near == link.a)]
                if far == receiver and (not last or link.name == last):
                    return taken
                if far not in seen and far != receiver:
                    seen.add(far)
                    following.append((far, taken))
        front = following
    return []


def _flow_arrow(line: Points, *, forward: bool) -> list[tuple[str, Points]]:
    """A flow's line beside that of a link, to the right of the way that it goes, with its head at the end."""
    (start, *_, end) = line[1:-1]
    tall = abs(end[1] - start[1]) > abs(end[0] - start[0])
    down = (end[1] > start[1]) if tall else (end[0] > start[0])
    side = (BESIDE if down == forward else -BESIDE) * (-1 if tall else 1)
    moved = tuple((x + side, y) if tall else (x, y + side) for x, y in line)
    way = moved if forward else moved[::-1]
    (x1, y1), (x2, y2) = way[-3:-1]
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    dx, dy = (x2 - x1) / length * HEAD, (y2 - y1) / length * HEAD
    wing = HEAD / 2 / HEAD
    head = ((x2 - dx - dy * wing, y2 - dy + dx * wing), (x2, y2), (x2 - dx + dy * wing, y2 - dy - dx * wing))
    return [("flow", way), ("flow", head)]


def _alike(
    nodes: Sequence[DrawnNode], links: Sequence[DrawnLink], flows: Sequence[DrawnFlow]
) -> tuple[list[DrawnNode], list[DrawnLink], dict[str, str], dict[str, str]]:
    """Nodes and links with a node for many leaves that are alike; each node, and each link -> the one that is drawn for
    it.
    """
    senders, receivers = {flow.sender for flow in flows}, {flow.receiver for flow in flows}
    groups: dict[object, list[tuple[DrawnNode, DrawnLink]]] = {}
    for node in nodes:
        mine = [link for link in links if node.name in (link.a, link.b)]
        if len(mine) == 1 and node.kind == "host":
            (link,) = mine
            other = link.b if link.a == node.name else link.a
            roles = (node.name in senders, node.name in receivers)
            key = (other, link.a == other, link.there, link.back, link.notes, link.hop, node.notes, roles)
            groups.setdefault(key, []).append((node, link))
    kept_nodes, kept_links = list(nodes), list(links)
    members, named = {node.name: node.name for node in nodes}, {link.name: link.name for link in links}
    for group in groups.values():
        if len(group) < ALIKE:
            continue
        (first, first_link), (last, last_link) = group[0], group[-1]
        name = f"{first.name} \u2026 {last.name} ({len(group)} hosts)"
        for node, link in group:
            members[node.name] = name
            named[link.name] = f"{first_link.name} \u2026 {last_link.name}, each"
            kept_nodes.remove(node)
            kept_links.remove(link)
        kept_nodes.append(DrawnNode(name, first.kind, first.notes))
        ends = [name if end == first.name else end for end in (first_link.a, first_link.b)]
        kept_links.append(replace(first_link, name=named[first_link.name], a=ends[0], b=ends[1]))
    order = {node.name: place for place, node in enumerate(nodes)}
    kept_nodes.sort(key=lambda node: order.get(node.name, len(order)))
    return kept_nodes, kept_links, members, named


def _columns(
    nodes: Sequence[DrawnNode], links: Sequence[DrawnLink], flows: Sequence[tuple[str, str]]
) -> list[list[DrawnNode]]:
    """Nodes by their distance from the sender of the first flow, and from hosts on the same router that it does not
    send to. The ends of a link are in one column, or in two that are beside each other.
    """
    beside: dict[str, list[str]] = {node.name: [] for node in nodes}
    for link in links:
        beside[link.a].append(link.b)
        beside[link.b].append(link.a)
    first = flows[0][0] if flows else nodes[0].name
    start = {first}
    receivers = {receiver for sender, receiver in flows if sender == first}
    for router in beside[first]:
        if len(beside[router]) > 2:
            leaves = {name for name in beside[router] if set(beside[name]) == {router}}
            senders = {sender for sender, receiver in flows if receiver not in leaves}
            start |= (leaves & senders) - receivers
    distance: dict[str, int] = {}
    for begin in ([node.name for node in nodes if node.name in start], *([name] for name in beside)):
        front = [name for name in begin if name not in distance]
        distance |= dict.fromkeys(front, 0)
        while front:
            front = [other for near in front for other in beside[near] if _farther(distance, near, other)]
    count = max(distance.values()) + 1
    return [[node for node in nodes if distance[node.name] == number] for number in range(count)]


def _farther(distance: dict[str, int], near: str, other: str) -> bool:
    """Give `other` its distance, if it has none yet."""
    if other in distance:
        return False
    distance[other] = distance[near] + 1
    return True


def _ordered(columns: list[list[DrawnNode]], links: Sequence[DrawnLink]) -> list[list[DrawnNode]]:
    """Nodes of each column in the order of their neighbours, so that few lines cross."""
    beside: dict[str, list[str]] = {}
    for link in links:
        beside.setdefault(link.a, []).append(link.b)
        beside.setdefault(link.b, []).append(link.a)
    for sweep in (1, -1, 1):
        place: dict[str, float] = {}
        for column in columns[::sweep]:
            known = {
                node.name: [place[other] for other in beside.get(node.name, ()) if other in place] for node in column
            }
            own = {node.name: (number + 0.5) / len(column) for number, node in enumerate(column)}
            column.sort(
                key=lambda node, known=known, own=own: (  # type: ignore[misc]
                    sum(known[node.name]) / len(known[node.name]) if known[node.name] else own[node.name]
                )
            )
            place |= {node.name: (number + 0.5) / len(column) for number, node in enumerate(column)}
    return columns


@dataclass
class _Lane:
    """A link between two columns, or in the gap to the right of the column that both of its ends are in."""

    link: DrawnLink
    left: str
    right: str
    above: list[tuple[str, list[str]]]
    below: list[tuple[str, list[str]]]
    bent: bool

    @property
    def heights(self) -> tuple[float, float]:
        """Of the text above its line, and below it."""
        above, below = (LINE * sum(len(texts) for _, texts in parts) for parts in (self.above, self.below))
        return above + HOP / 2 + 2, max(below, HOP / 2) + HOP / 2 + HEAD / 2

    @property
    def width(self) -> float:
        """Of its widest text."""
        return max(
            (
                text_width(text, SIZE, bold=kind == "name")
                for kind, texts in (*self.above, *self.below)
                for text in texts
            ),
            default=0,
        )


def _shaping(link: DrawnLink, start: tuple[float, float], end: tuple[float, float], at_start: str) -> Iterator[Box]:
    """Squares on a line from one end of a link to the other: in its middle, or at the ends that shape it."""
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    near = HOP / 2 / length
    shares = [0.5] if link.hop else [near if name == at_start else 1 - near for name in link.shaping]
    for share in shares:
        x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
        yield Box(x - HOP / 2, y - HOP / 2, HOP, HOP)


class _Graph:
    """Places nodes, lanes and lines."""

    def __init__(
        self, picture: Picture, columns: list[list[DrawnNode]], links: Sequence[DrawnLink], label: float
    ) -> None:
        self._picture = picture
        self._columns = columns
        self._label = label
        self._column = {node.name: number for number, column in enumerate(columns) for node in column}
        self._gaps: list[list[_Lane]] = [[] for _ in columns]
        for link in links:
            lane = self._lane(link)
            self._gaps[self._column[lane.left]].append(lane)
        self._boxes: dict[str, Box] = {}
        self._drawn: dict[str, tuple[Points, bool]] = {}

    def _lane(self, link: DrawnLink) -> _Lane:
        """Its label: the direction to the right above the line, the other below it."""
        a, b = self._column[link.a], self._column[link.b]
        left, right = (link.a, link.b) if a <= b else (link.b, link.a)
        there, back = (link.there, link.back) if left == link.a else (link.back, link.there)
        bent = a == b
        arrows = (f"{left} \u2192 {right}: ", f"{right} \u2192 {left}: ") if bent else ("\u2192 ", "\u2190 ")
        above = [("name", fitted(link.name, self._label, SIZE, bold=True))]
        below: list[tuple[str, list[str]]] = []
        if there == back:
            above.append(("way", _wrapped("\u21c4 ", there, self._label)))
        else:
            above.append(("way", _wrapped(arrows[0], there, self._label)))
            below.append(("way", _wrapped(arrows[1], back, self._label)))
        below += [("fault", fitted(f"\u2715 {note}", self._label, SIZE)) for note in link.notes]
        return _Lane(link, left, right, above, below, bent)

    def draw(self) -> dict[str, tuple[Points, bool]]:
        """Draws all; returns the line of each link between two columns, and whether it begins at its `a`."""
        names = [[fitted(node.name, NAME, SIZE, bold=True) for node in column] for column in self._columns]
        notes = [
            [[fitted(f"\u2715 {note}", NAME, SIZE) for note in node.notes] for node in column]
            for column in self._columns
        ]
        heights = [
            [self._height(node, name, note) for node, name, note in zip(column, of_names, of_notes, strict=True)]
            for column, of_names, of_notes in zip(self._columns, names, notes, strict=True)
        ]
        whole = max(
            *(sum(column) + APART * (len(column) - 1) for column in heights),
            *(sum(sum(lane.heights) for lane in gap) + APART * (len(gap) - 1) for gap in self._gaps),
            0.0,
        )
        x = float(MARGIN)
        lefts = []
        for number, column in enumerate(self._columns):
            texts = [text for of_node in names[number] for text in of_node]
            plain = [text for of_node in notes[number] for note in of_node for text in note]
            wide = [text_width(text, SIZE, bold=True) for text in texts] + [text_width(text, SIZE) for text in plain]
            width = max(wide) + 2 * PAD
            for node, name, note, (top, height) in zip(
                column, names[number], notes[number], _spread(heights[number], whole), strict=True
            ):
                box = Box(x, MARGIN + top, width, height, node.kind)
                self._boxes[node.name] = box
                self._name(box, name, [text for each in note for text in each])
            x += width
            lefts.append(x)
            gap = self._gaps[number]
            if gap:
                x += 2 * FAN + max(lane.width for lane in gap)
        self._picture.width = x + MARGIN
        self._picture.height = whole + 2 * MARGIN
        for left, gap in zip(lefts, self._gaps, strict=True):
            self._lanes(left, gap, whole)
        return self._drawn

    def _height(self, node: DrawnNode, name: Sequence[str], notes: Sequence[Sequence[str]]) -> float:
        text = LINE * (len(name) + sum(map(len, notes))) + PAD
        ends = [(lane.left, lane.right, lane.bent) for gap in self._gaps for lane in gap]
        right = sum((left == node.name) + (bent and other == node.name) for left, other, bent in ends)
        left = sum(other == node.name and not bent for _, other, bent in ends)
        return max(text, PORT * (max(left, right) + 1))

    def _name(self, box: Box, name: Sequence[str], notes: Sequence[str]) -> None:
        self._picture.nodes.append(box)
        top = box.y + (box.height - LINE * (len(name) + len(notes))) / 2
        for number, text in enumerate((*name, *notes)):
            bold = number < len(name)
            left = box.x + (box.width - text_width(text, SIZE, bold=bold)) / 2
            self._picture.write(left, top + LINE * number, [text], "name" if bold else "fault", bold=bold)

    def _lanes(self, left: float, gap: list[_Lane], whole: float) -> None:
        """Those of one gap, in the order of the nodes at their ends."""
        middle = {name: box.y + box.height / 2 for name, box in self._boxes.items()}
        gap.sort(key=lambda lane: (middle[lane.left] + middle[lane.right], middle[lane.left]))
        width = max((lane.width for lane in gap), default=0)
        start, end = left + FAN, left + FAN + width
        outgoing = {
            name: sum((lane.left == name) + (lane.bent and lane.right == name) for lane in gap) for name in middle
        }
        incoming = {name: sum(lane.right == name and not lane.bent for lane in gap) for name in middle}
        taken: dict[tuple[str, bool], int] = {}

        def port(name: str, *, goes: bool) -> tuple[float, float]:
            box, count = self._boxes[name], (outgoing if goes else incoming)[name]
            number = taken[name, goes] = taken.get((name, goes), -1) + 1
            apart = min(box.height / (count + 1), 3 * PORT)
            x = box.x + box.width if goes else box.x
            return x, box.y + box.height / 2 + (number - (count - 1) / 2) * apart

        for lane, (top, _) in zip(gap, _spread([sum(lane.heights) for lane in gap], whole), strict=True):
            y = MARGIN + top + lane.heights[0]
            points = [port(lane.left, goes=True), (start, y), (end, y)]
            if lane.bent:
                self._picture.lines.append(("link", (port(lane.right, goes=True), (start, y))))
            else:
                points.append(port(lane.right, goes=False))
                self._drawn[lane.link.name] = tuple(points), lane.left == lane.link.a
            self._picture.lines.append(("link", tuple(points)))
            self._picture.hops += _shaping(lane.link, (start, y), (end, y), lane.left)
            if lane.link.notes:
                self._picture.lines += _cross((start + end) / 2 + HOP + 5, y)
            self._texts(lane, start, width, y)

    def _texts(self, lane: _Lane, start: float, width: float, y: float) -> None:
        place = y - lane.heights[0]
        for kind, texts in lane.above:
            for text in texts:
                left = start + (width - text_width(text, SIZE, bold=kind == "name")) / 2
                self._picture.write(left, place, [text], kind, bold=kind == "name")
                place += LINE
        place = y + HOP / 2 + HEAD / 2
        for kind, texts in lane.below:
            for text in texts:
                self._picture.write(start + (width - text_width(text, SIZE)) / 2, place, [text], kind)
                place += LINE


class _Rows:
    """Places nodes in rows, and links as lines from one row to the next with their label to the right."""

    def __init__(self, picture: Picture, rows: list[list[DrawnNode]], links: Sequence[DrawnLink]) -> None:
        self._picture = picture
        self._rows = rows
        self._row = {node.name: number for number, row in enumerate(rows) for node in row}
        self._links = links
        self._boxes: dict[str, Box] = {}
        self._drawn: dict[str, tuple[Points, bool]] = {}

    def draw(self) -> dict[str, tuple[Points, bool]]:
        """Draws all; returns each link's line, and whether it begins at its `a`."""
        y = float(MARGIN)
        tops = []
        for row in self._rows:
            width = (TALL - APART * (len(row) - 1)) / len(row)
            texts = [
                (
                    fitted(node.name, width - 2 * PAD, SIZE, bold=True),
                    [line for note in node.notes for line in fitted(f"\u2715 {note}", width - 2 * PAD, SIZE)],
                )
                for node in row
            ]
            height = max(LINE * (len(name) + len(notes)) for name, notes in texts) + PAD
            for number, (node, (name, notes)) in enumerate(zip(row, texts, strict=True)):
                box = Box(MARGIN + number * (width + APART), y, width, height, node.kind)
                self._boxes[node.name] = box
                self._picture.nodes.append(box)
                top = y + (height - LINE * (len(name) + len(notes))) / 2
                for line, text in enumerate((*name, *notes)):
                    bold = line < len(name)
                    left = box.x + (width - text_width(text, SIZE, bold=bold)) / 2
                    kind = "name" if bold else "fault"
                    self._picture.write(left, top + LINE * line, [text], kind, bold=bold)
            y += height
            tops.append(y)
            y = self._gap(len(tops) - 1, y)
        self._picture.width = TALL + 2 * MARGIN
        self._picture.height = y + MARGIN
        for number, bottom in enumerate(tops[:-1]):
            self._lines(number, bottom)
        return self._drawn

    def _of_gap(self, number: int) -> list[DrawnLink]:
        """The links that lead down from a row, in the order of their ends."""
        mine = [link for link in self._links if min(self._row[link.a], self._row[link.b]) == number]
        order = {node.name: place for row in self._rows for place, node in enumerate(row)}
        return sorted(mine, key=lambda link: order[link.a] + order[link.b])

    def _gap(self, number: int, y: float) -> float:
        """The labels of its links; returns where the next row begins."""
        mine = self._of_gap(number)
        lowest = y
        slot = TALL / max(len(mine), 1)
        for place, link in enumerate(mine):
            upper = link.a if self._row[link.a] == number else link.b
            there, back = (link.there, link.back) if upper == link.a else (link.back, link.there)
            room = slot - BAND - PAD
            texts = [("name", text) for text in fitted(link.name, room, SIZE, bold=True)]
            if there == back:
                texts += [("way", text) for text in _wrapped("\u21c5 ", there, room)]
            else:
                texts += [("way", text) for text in _wrapped("\u2193 ", there, room)]
                texts += [("way", text) for text in _wrapped("\u2191 ", back, room)]
            texts += [("fault", text) for note in link.notes for text in fitted(f"\u2715 {note}", room, SIZE)]
            for line, (kind, text) in enumerate(texts):
                left = MARGIN + place * slot + BAND
                self._picture.write(left, y + FAN / 2 + LINE * line, [text], kind, bold=kind == "name")
            lowest = max(lowest, y + FAN + LINE * len(texts))
        return lowest

    def _lines(self, number: int, top: float) -> None:
        """The lines of a gap."""
        mine = self._of_gap(number)
        slot = TALL / max(len(mine), 1)
        for place, link in enumerate(mine):
            upper, lower = (link.a, link.b) if self._row[link.a] == number else (link.b, link.a)
            x = MARGIN + place * slot + BAND / 2
            bottom = self._boxes[lower].y
            boxes = self._boxes[upper], self._boxes[lower]
            ends = [min(max(x, box.x + PORT), box.x + box.width - PORT) for box in boxes]
            points = ((ends[0], top), (x, top + PORT), (x, bottom - PORT), (ends[1], bottom))
            self._picture.lines.append(("link", points))
            self._drawn[link.name] = points, upper == link.a
            self._picture.hops += _shaping(link, points[1], points[2], upper)
            if link.notes:
                self._picture.lines += _cross(x, (top + bottom) / 2 + HOP + 7)


def _wrapped(arrow: str, texts: Sequence[str], room: float) -> list[str]:
    """As many of the texts in a line as there is room for; a long one has lines of its own."""
    lines = [arrow.rstrip() if not texts else arrow + texts[0]]
    for number, text in enumerate(texts[1:], 2):
        if text_width(f"{lines[-1]}, {text}{',' if number < len(texts) else ''}", SIZE) <= room:
            lines[-1] += f", {text}"
        else:
            lines[-1] += ","
            lines.append(text)
    return [part for line in lines for part in fitted(line, room, SIZE)]


def _spread(heights: Sequence[float], whole: float) -> Iterator[tuple[float, float]]:
    """(top, height) of things below each other, with the room that is left between them."""
    free = (whole - sum(heights)) / len(heights) if heights else 0
    top = free / 2
    for height in heights:
        yield top, height
        top += height + free


def _cross(x: float, y: float) -> list[tuple[str, tuple[tuple[float, float], ...]]]:
    """The mark of a fault on a line."""
    return [("fault", ((x - 4, y - 4), (x + 4, y + 4))), ("fault", ((x - 4, y + 4), (x + 4, y - 4)))]


def _list_flows(picture: Picture, flows: Sequence[DrawnFlow]) -> None:
    """What the arrows are, below the testbed."""
    y = picture.height
    room = max(picture.width, 2 * LABEL) - 2 * MARGIN
    picture.width = room + 2 * MARGIN
    left = MARGIN + SAMPLE + PAD
    for flow in flows[:MOST_FLOWS]:
        texts = fitted(flow.text, room - SAMPLE - PAD, SIZE)
        notes = [line for note in flow.notes for line in fitted(f"\u2715 {note}", room - SAMPLE - PAD, SIZE)]
        middle = y + LINE / 2
        points = ((MARGIN, middle), (MARGIN, middle), (MARGIN + SAMPLE, middle), (MARGIN + SAMPLE, middle))
        picture.lines += [
            (kind, tuple((x, at - BESIDE) for x, at in line)) for kind, line in _flow_arrow(points, forward=True)
        ]
        picture.write(left, y, texts, "flow")
        picture.write(left, y + LINE * len(texts), notes, "fault")
        y += LINE * (len(texts) + len(notes)) + 5
    if more := flows[MOST_FLOWS:]:
        texts = fitted(f"and {len(more)} more kinds of flows, listed below", room, SIZE)
        picture.write(MARGIN, y, texts, "flow")
        y += LINE * len(texts)
    picture.height = y


SQUARE = "\u25a0 where a link's rate, delay and queue are set: a router hop, or a router's interface"


def _legend(picture: Picture) -> None:
    texts = fitted(SQUARE, picture.width - 2 * MARGIN, SIZE)
    picture.write(MARGIN, picture.height, texts, "soft")
    picture.height += LINE * len(texts)


ALONE = """
svg { color: #1b1f24; background: #ffffff; }
@media screen and (prefers-color-scheme: dark) { svg { color: #e6e6e6; background: #0d1117; } }
"""
"""Of a picture in a file of its own, which has no page around it."""


def svg(picture: Picture, *, alone: bool = False) -> Markup:
    """The picture as SVG; alone: as a file."""
    width, height = round(picture.width, 1), round(picture.height, 1)
    style = Markup((STYLES / "testbed.css").read_text(encoding="utf-8") + ALONE)
    parts = [Markup("<style>{}</style>").format(style)] if alone else []
    for kind, points in picture.lines:
        path = " ".join(f"{'ML'[number > 0]}{x:.1f},{y:.1f}" for number, (x, y) in enumerate(points))
        parts.append(Markup('<path class="testbed-{}" d="{}"/>').format(kind, path))
    for box in picture.hops:
        parts.append(_rectangle(Markup('class="testbed-hop"'), box, 0))
    for box in picture.nodes:
        kind = Markup('class="testbed-node testbed-{}"').format(box.kind)
        parts.append(_rectangle(kind, box, {"host": 5, "router": 14}.get(box.kind, 0)))
    for label in picture.labels:
        bold = Markup(" testbed-bold") if label.bold else ""
        parts.append(
            Markup('<text class="testbed-{}{}" x="{}" y="{}">{}</text>').format(
                label.box.kind, bold, f"{label.box.x:.1f}", f"{label.box.y + BASELINE:.1f}", label.text
            )
        )
    name = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
    return Markup(
        '<svg{} class="testbed" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">{}</svg>'
    ).format(Markup(name), picture.words, width, height, width, height, Markup("\n").join(parts))


def _rectangle(kind: Markup, box: Box, rounded: int) -> Markup:
    sides = (f"{value:.1f}" for value in (box.x, box.y, box.width, box.height))
    return Markup('<rect {} x="{}" y="{}" width="{}" height="{}" rx="{}"/>').format(kind, *sides, rounded)
