"""The drawing of a testbed as Chromium sets it: its own fonts, on the page, alone as a file, and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.present.testbed_picture import DrawnFlow, DrawnLink, DrawnNode, draw, svg
from support.chromium import Page

WIDE = ("rate by bandwidth (0.1, 0.5, 1, 2, 5, 10 Mbit/s)", "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW", "20 ms one way")
KOREAN = ("\ub300\uc5ed\ud3ed 10 Mbit/s", "queue 1000 packets")
FAULTS = """(() => {
  const root = document.querySelector("svg"), view = root.getBoundingClientRect(), found = [];
  const box = (one) => one.getBoundingClientRect(), near = 0.5, leading = 3;
  const texts = [...root.querySelectorAll("text")], nodes = [...root.querySelectorAll(".testbed-node")];
  const beside = (a, b) => a.left < b.right - near && b.left < a.right - near;
  const meet = (a, b) => beside(a, b) && a.top < b.bottom - leading && b.top < a.bottom - leading;
  const inside = (a, b) => a.left >= b.left - near && a.right <= b.right + near;
  texts.forEach((text, number) => {
    const mine = box(text), say = (what) => found.push(`${text.textContent} ${what}`);
    for (const other of texts.slice(0, number)) if (meet(mine, box(other))) say(`meets ${other.textContent}`);
    for (const node of nodes) if (meet(mine, box(node)) && !inside(mine, box(node))) say("is over a node's edge");
    if (!inside(mine, view) || mine.top < view.top - near || mine.bottom > view.bottom + near) say("is out of view");
  });
  return { found, texts: texts.length };
})()"""


def dumbbell() -> str:
    """Four hosts around two routers, a second path, faults and flows."""
    nodes = [DrawnNode(name, "host") for name in ("sender-one", "s2", "d1", "WWWWWWWWWWWW")]
    nodes += [DrawnNode("r1", "router"), DrawnNode("r2", "switch", ("restart at 20 s for 5 s",))]
    links = [
        DrawnLink("a1", "sender-one", "r1", WIDE, KOREAN, ("cut at 50 s, length by outage (5, 10, 20 s)",), True),
        DrawnLink("a2", "s2", "r1", KOREAN, KOREAN, hop=True),
        DrawnLink("core", "r1", "r2", WIDE, WIDE),
        DrawnLink("core 2", "r1", "r2", WIDE, KOREAN, ("blackhole at 3 s",)),
        DrawnLink("b1", "d1", "r2", KOREAN, WIDE, hop=True),
        DrawnLink("b2", "WWWWWWWWWWWW", "r2", KOREAN, KOREAN, hop=True),
    ]
    flows = [DrawnFlow("sender-one", "d1", "flow f, TCP cubic, over a1-b1, until 30 s"), DrawnFlow("d1", "s2", "SCTP")]
    return str(svg(draw(nodes, links, flows), alone=True))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_texts_are_apart_in_the_fonts_of_a_browser(page: Page, tmp_path: Path, width: int, scheme: str) -> None:
    page.emulate(width=width, height=800, scheme=scheme)
    (tmp_path / "picture.svg").write_text(dumbbell())
    page.open((tmp_path / "picture.svg").as_uri())
    seen = page.evaluate(FAULTS)
    assert seen["texts"] > 30
    assert seen["found"] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_set_up_of_a_report_is_in_its_own_box(page: Page, small: str, width: int) -> None:
    page.emulate(width=width, height=800)
    page.open(small)
    assert page.evaluate(FAULTS)["found"] == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_on_paper_it_is_as_wide_as_the_page_at_most(page: Page, small: str) -> None:
    page.emulate(width=500, height=800, media="print")
    page.open(small)
    assert page.evaluate(
        "[...document.querySelectorAll('svg.testbed')].every((one) => one.getBoundingClientRect().right <= innerWidth)"
    )
