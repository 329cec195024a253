"""The drawing of a testbed: whatever the topology, no label meets another, a node or a line, and all is in view."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from netwarp.present.setup import DrawnTestbed, drawn_testbeds
from netwarp.present.testbed_picture import Box, DrawnFlow, DrawnLink, DrawnNode, Picture, draw, draw_tall, svg
from support.checkout import ROOT
from support.specs import BASE, plan_of

PHONE = 390 - 48
"""The width of a phone's page, in px."""
SHARE = 0.01
"""Of a px: two boxes may share an edge."""
TEXTS = st.lists(
    st.sampled_from([
        "10 Mbit/s", "no rate", "20 ms one way", "queue 1000 packets", "loss 0.1 %",
        "fq_codel that marks (ECN), target 5 ms", "rate by bandwidth (0.1, 0.5, 1, 2, 5, 10 Mbit/s)",
        "opportunities-of-a-trace-with-a-very-long-name-without-any-space.down", "\ub300\uc5ed\ud3ed 10 Mbit/s",
    ]), max_size=6,
).map(tuple)  # fmt: skip
NAMES = ("a", "sender-with-a-long-name", "r", "\uc11c\uc6b8", "W" * 30, "x y")


@st.composite
def topologies(draw_: st.DrawFn) -> tuple[list[DrawnNode], list[DrawnLink], list[DrawnFlow]]:
    """A chain, dumbbell, star, parking lot, multi-path, ring or any graph, with any labels."""
    shape = draw_(st.sampled_from(("chain", "dumbbell", "star", "parking lot", "paths", "ring", "any", "apart")))
    count = draw_(st.integers(1, 5))
    ends: list[tuple[int, int]]
    if shape == "chain":
        ends = [(n, n + 1) for n in range(count)]
    elif shape == "dumbbell":
        ends = [(0, 1), *((0, 2 + n) for n in range(count)), *((1, 2 + count + n) for n in range(count))]
    elif shape == "star":
        ends = [(0, 1 + n) for n in range(count + 1)]
    elif shape == "parking lot":
        ends = [*((n, n + 1) for n in range(count)), *((n, count + 1 + n) for n in range(count + 1))]
    elif shape == "paths":
        ends = [(0, 1)] * count + [(0, 2), (2, 1)] * draw_(st.integers(0, 2))
    elif shape == "ring":
        ends = [(n, (n + 1) % (count + 2)) for n in range(count + 2)]
    elif shape == "apart":
        ends = [(2 * n, 2 * n + 1) for n in range(count)]
    else:
        ends = [(draw_(st.integers(0, n)), n + 1) for n in range(count)]
        ends += draw_(st.lists(st.tuples(st.integers(0, count), st.integers(0, count)), max_size=5))
        ends = [(a, b) for a, b in ends if a != b]
    nodes = [
        DrawnNode(f"{draw_(st.sampled_from(NAMES))}{n}", draw_(st.sampled_from(("host", "router", "switch"))),
                  draw_(TEXTS)[:1])
        for n in range(1 + max(map(max, ends)))
    ]  # fmt: skip
    links = []
    for number, (a, b) in enumerate(ends):
        ab = (a, b) if draw_(st.booleans()) else (b, a)
        there = draw_(TEXTS)
        back = there if draw_(st.booleans()) else draw_(TEXTS)
        links.append(
            DrawnLink(
                f"l{number}", *(nodes[end].name for end in ab), there, back, draw_(TEXTS)[:2], draw_(st.booleans())
            )
        )
    some = st.sampled_from([node.name for node in nodes])
    flows = [
        DrawnFlow(draw_(some), draw_(some), ", ".join(draw_(TEXTS)) or "TCP", draw_(TEXTS)[:1])
        for _ in range(draw_(st.integers(0, 15)))
    ]
    return nodes, links, flows


def crosses(box: Box, line: Sequence[tuple[float, float]]) -> bool:
    """Whether a polyline has a place in a box: each piece clipped to it (Liang and Barsky)."""
    for (x1, y1), (x2, y2) in itertools.pairwise(line):
        near, far = 0.0, 1.0
        for start, step, low, high in (
            (x1, x2 - x1, box.x + SHARE, box.x + box.width - SHARE),
            (y1, y2 - y1, box.y + SHARE, box.y + box.height - SHARE),
        ):
            if step == 0:
                if not low < start < high:
                    far = -1
                continue
            first, last = sorted(((low - start) / step, (high - start) / step))
            near, far = max(near, first), min(far, last)
        if near < far:
            return True
    return False


def faults(picture: Picture) -> list[str]:
    """What is not as it should be."""
    found = []
    nodes = picture.nodes
    for number, label in enumerate(picture.labels):
        inside = [node for node in nodes if node.meets(label.box)]
        if label.box.kind in ("name", "fault") and len(inside) == 1:
            (node,) = inside  # its own name, or its fault
            if not (node.x <= label.box.x + SHARE and label.box.x + label.box.width <= node.x + node.width + SHARE):
                found.append(f"{label.text} sticks out of its node")
        elif inside:
            found.append(f"{label.text} meets a node")
        found += [f"{label.text} meets {other.text}" for other in picture.labels[:number] if label.box.meets(other.box)]
        found += [f"{label.text} meets a hop" for hop in picture.hops if label.box.meets(hop)]
        found += [f"{label.text} meets a line" for _, line in picture.lines if crosses(label.box, line)]
        box = label.box
        if box.x < 0 or box.y < 0 or box.x + box.width > picture.width or box.y + box.height > picture.height:
            found.append(f"{label.text} is out of view")
    for number, node in enumerate(nodes):
        found += ["two nodes meet" for other in nodes[:number] if node.meets(other)]
        found += [
            "a line goes through a node" for kind, line in picture.lines if kind == "link" and crosses(node, line)
        ]
    points = [point for _, line in picture.lines for point in line]
    found += ["a line is out of view" for x, y in points if not (0 <= x <= picture.width and 0 <= y <= picture.height)]
    return found


@given(topologies())
def test_nothing_overlaps_and_all_is_in_view(made: tuple[list[DrawnNode], list[DrawnLink], list[DrawnFlow]]) -> None:
    picture = draw(*made)
    assert faults(picture) == []
    tall = draw_tall(*made)
    assert tall is None or (faults(tall) == [] and tall.width <= PHONE)
    root = ElementTree.fromstring(str(svg(picture, alone=True)))
    assert root.attrib["viewBox"] == f"0 0 {round(picture.width, 1)} {round(picture.height, 1)}"


@given(topologies())
def test_every_link_and_property_is_there(made: tuple[list[DrawnNode], list[DrawnLink], list[DrawnFlow]]) -> None:
    nodes, links, flows = made
    text = " ".join(label.text for label in draw(nodes, links, flows).labels).replace("\u00a0", " ")
    squeezed = re.sub(r"[\s,]", "", text)
    hidden = re.search(r"\(\d+ hosts\)", text) is not None
    tall = draw_tall(nodes, links, flows)
    also = squeezed if tall is None else re.sub(r"[\s,]", "", " ".join(label.text for label in tall.labels))
    also = also.replace("\u00a0", "")
    for link in links:
        for words in () if hidden else (link.name, *link.there, *link.back, *link.notes):
            assert re.sub(r"[\s,]", "", words) in squeezed
            assert re.sub(r"[\s,]", "", words) in also


def test_many_leaves_that_are_alike_are_one() -> None:
    hosts = [DrawnNode(f"s{n}", "host") for n in range(50)]
    links = [DrawnLink(f"l{n}", f"s{n}", "r", ("1 Mbit/s",), ("1 Mbit/s",), hop=True) for n in range(50)]
    picture = draw([*hosts, DrawnNode("r", "router")], links, [DrawnFlow(f"s{n}", "r", "TCP") for n in range(50)])
    text = " ".join(label.text for label in picture.labels)
    assert "s0" in text and "s49" in text and "(50" in text and "s25" not in text
    assert len(picture.nodes) == 2 and faults(picture) == []


def drawn(text: str) -> tuple[DrawnTestbed, str]:
    """The testbed of a spec, and the words of its drawing."""
    plan = plan_of(text)
    ((_, found),) = drawn_testbeds(plan, plan.cells)
    picture = draw(found.nodes, found.links, found.flows)
    assert faults(picture) == []
    return found, " ".join(label.text for label in picture.labels).replace("\u00a0", " ")


def test_what_is_varied_has_the_factors_name_and_its_levels() -> None:
    found, text = drawn(
        BASE + '[factor.speed]\ntitle = "access rate"\nsets = "link.p1.rate"\nlevels = ["500 kbit/s", "2 Mbit/s"]\n'
        '[event.down]\naction = "cut"\nlink = "p1"\nat = "3 s"\nfor = "2 s"\n'
        '[factor.length]\ntitle = "outage"\nsets = "event.down.for"\nlevels = ["1 s", "2 s", "3 s"]\n'
    )
    assert "rate by access rate (500 kbit/s, 2 Mbit/s)" in text and "20 ms one way" in text
    assert "cut at 3 s, length by outage (1, 2, 3 s)" in text
    assert " or " not in " ".join(how for _, _, how in found.rows)


def test_a_factor_of_many_levels_is_said_by_its_ends() -> None:
    levels = ", ".join(f'"{n} ms"' for n in range(1, 31))
    _, text = drawn(BASE + f'[factor.far]\nsets = "link.p1.one_way_delay"\nlevels = [{levels}]\n')
    assert "one-way delay by far (1 to 30 ms, 30 levels)" in text


def test_directions_that_differ_are_told_apart() -> None:
    _, text = drawn(BASE.replace('queue = "50 packets"', 'queue = "50 packets"\nbackward.rate = "9 Mbit/s"'))
    assert "\u2192 1 Mbit/s" in text and "\u2190 9 Mbit/s" in text and "hop" in text


def test_the_pictures_of_the_documentation_are_what_the_plans_give() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "testbed_pictures.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
