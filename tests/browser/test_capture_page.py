"""The page of `netwarp analyze --html` in a real browser: self-contained, drawn, and harmless."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from netwarp import analyze_captures
from netwarp.present.captures.page_sections import write_page
from support.captures import pcap, recorded, segment
from support.chromium import Page

CHARTS = "document.querySelectorAll('[data-chart]')"


def page_of(tmp_path: Path, *captures: Path, join: bool = False, merge: bool = False) -> str:
    """The address of the page of these captures."""
    analyzed = analyze_captures(captures, join=join, merge=merge)
    write_page(tmp_path / "page.html", analyzed.files, analyzed.join)
    return (tmp_path / "page.html").as_uri()


def draw_all(page: Page) -> int:
    """Scroll to each chart, as a reader does; how many there are."""
    count = int(page.evaluate(f"{CHARTS}.length"))
    for place in range(count):
        page.evaluate(f"{CHARTS}[{place}].scrollIntoView()")
        page.wait(f"{CHARTS}[{place}].dataset.drawn")
    return count


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "light"), (1280, "dark")])
def test_joined_captures_are_drawn_offline(page: Page, tmp_path: Path, width: int, scheme: str) -> None:
    page.emulate(width=width, height=900, mobile=width < 600, scheme=scheme)
    address = page_of(tmp_path, *recorded("tcp", "a", ["p1"]), *recorded("tcp", "b", ["p1"]), join=True)
    page.open(address)
    assert draw_all(page) == 3
    assert page.requests == [address]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert "cannot draw" not in page.evaluate("document.body.innerText")
    panels = page.evaluate("netwarp.data.charts['file0-flow1'].panels.map((one) => one.title)")
    assert panels[:2] == ["goodput", "progress"]
    marks = page.evaluate(
        "netwarp.data.charts['file0-flow1'].panels.flatMap((one) => one.lines).filter((one) => one.style === 'marks')"
    )
    assert [len(one["t"]) for one in marks] == [10]


CASES = Path(__file__).parents[1] / "data" / "cases"
LADDER = """
(() => {
    const pictures = [...document.querySelectorAll("svg.ladder")].filter((one) => one.getClientRects().length)
    const picture = pictures[0], frame = picture.getBoundingClientRect(), box = picture.parentElement
    const texts = [...picture.querySelectorAll("text")].map((one) => [one.textContent, one.getBoundingClientRect()])
    const found = pictures.length === 1 ? [] : [`${pictures.length} pictures`]
    texts.forEach(([text, one], at) => {
        if (one.left < frame.left - 1 || one.right > frame.right + 1 || one.bottom > frame.bottom + 1)
            found.push(`cut: ${text}`)
        for (const [other, two] of texts.slice(at + 1))
            if (one.left < two.right - 1 && two.left < one.right - 1
                && one.top < two.bottom - 3 && two.top < one.bottom - 3)
                found.push(`${text} over ${other}`)
    })
    const arrows = picture.querySelectorAll("path:not(.ladder-line)").length
    return { found, arrows, texts: texts.length, scrolls: box.scrollWidth > box.clientWidth + 1 }
})()
"""
"""What overlaps or is cut in the ladder that is shown."""


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("1-one-path", "NGAP AMFConfigurationUpdate"), ("pmtu-a", "data 1 to 1448 again"),
        ("one-way-client", "no packet of 192.0.2.2:80 is in the capture"),
        ("1c-mid-association", "the capture begins after the handshake"),
        ("2-two-paths-pf1", "T3 of 10.9.1.1:40002 expires"),
        ("mid-multihomed", "path 4: 192.0.2.1 > 192.0.2.5"),
    ],
)  # fmt: skip
def test_nothing_overlaps_or_is_cut_in_a_ladder(page: Page, tmp_path: Path, case: str, says: str, width: int) -> None:
    """Of NGAP, a black hole of the path MTU, one direction, associations from their middle on, and several paths."""
    page.emulate(width=width, height=900, mobile=width < 600)
    page.open(page_of(tmp_path, CASES / f"{case}.pcap.zst"))
    seen = page.evaluate(LADDER)
    assert seen["found"] == [] and seen["arrows"] > 20 and seen["texts"] > 20
    assert not seen["scrolls"], "a reader of a phone sees the words without moving the picture"
    shown = page.evaluate(
        "[...document.querySelectorAll('svg.ladder')].find((one) => one.getClientRects().length).textContent"
    )
    assert says.replace(" ", "") in shown.replace(" ", "").replace("\u00a0", "")


def test_zoom(page: Page, tmp_path: Path) -> None:
    page.open(page_of(tmp_path, *recorded("sctp", "a", ["p1", "p2"]), merge=True))
    draw_all(page)
    before = page.evaluate(f"{CHARTS}[0].layout.xaxis.range")
    page.click(".moves .controls-button:nth-of-type(2)")
    page.wait(f"{CHARTS}[0].layout.xaxis.range[0] > {before[0]}")
    page.click(".moves .controls-button:nth-of-type(1)")
    page.wait(f"{CHARTS}[0].layout.xaxis.range[0] === {before[0]}")


def test_numbers_are_there_without_scripts(page: Page, tmp_path: Path) -> None:
    page.command("Emulation.setScriptExecutionDisabled", value=True)
    address = page_of(tmp_path, *recorded("tcp", "a", ["p1"]))
    page.open(address)
    page.command("Emulation.setScriptExecutionDisabled", value=False)
    text = page.evaluate("document.body.innerText")
    assert "10 (2.77\u202f%)" in text or "10 (2.77 %)" in text
    assert "Scripts are off" in text


def test_hostile_names_do_nothing(page: Page, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>&<script>alert(2)<!--"
    path = tmp_path / f"{name.replace('/', '')}.pcap"
    path.write_bytes(recorded_plain())
    page.open(page_of(tmp_path, path))
    draw_all(page)
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert name in page.evaluate("document.querySelector('h1').textContent")


def recorded_plain() -> bytes:
    start = 1_700_000_000_000_000_000
    return pcap([(start + i * 1_000_000, segment(1000 + 100 * i, 100)) for i in range(50)])


def test_a_large_capture_makes_no_large_page(page: Page, tmp_path: Path) -> None:
    start = 1_700_000_000_000_000_000
    path = tmp_path / "large.pcap"
    one = segment(0, 100)  # scapy is slow: the other segments are this one with another number
    numbered = (one[:38] + struct.pack("!I", 1000 + 100 * i) + one[42:] for i in range(60_000))
    path.write_bytes(pcap([(start + i * 10_000, packet) for i, packet in enumerate(numbered)]))
    page.open(page_of(tmp_path, path))
    assert (tmp_path / "page.html").stat().st_size < 2_600_000
    draw_all(page)
    assert "are thinned" in page.evaluate("document.body.innerText")
    lines = page.evaluate("netwarp.data.charts['file0-flow1'].panels.flatMap((one) => one.lines)")
    sent = next(line for line in lines if line["name"] == "sequence")
    assert sent["of"] == 60_000
    assert len(sent["t"]) <= 3002
    assert (sent["v"][0], sent["v"][-1]) == (100, 6_000_000)


def test_the_analysers_own_tables_are_there(page: Page, tmp_path: Path) -> None:
    """Paths with their shares of SACKs and data, head-of-line delay by stream, chunks of every type."""
    page.open(page_of(tmp_path, *recorded("sctp", "b", ["p1", "p2"]), merge=True))
    captions = page.evaluate("[...document.querySelectorAll('summary')].map((one) => one.innerText)")
    assert {"Paths (4)", "Chunks (11)", "Streams (1)"} <= set(captions)
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    text = page.evaluate("document.body.innerText")
    assert "HEARTBEAT ACK" in text
    assert re.search(r"First\s+20\d\d-\d\d-\d\d \d\d:", text)


@pytest.mark.parametrize(("name", "links"), [("sctp", ["p1", "p2"]), ("mptcp", ["p1", "p2"]), ("bundle", ["p1"])])
def test_no_table_is_cut_off(page: Page, tmp_path: Path, name: str, links: list[str]) -> None:
    """At 1300 px every table is there whole: one with thirty columns has them as rows."""
    page.emulate(width=1300, height=900)
    page.open(page_of(tmp_path, *recorded(name, "a", links), merge=True))
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    wide = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth)"
    assert page.evaluate(f"{wide}.map((one) => one.getAttribute('aria-label'))") == []
