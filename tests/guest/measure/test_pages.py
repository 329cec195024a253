"""Pages as flows: whose objects wait for a lost packet, by the client's captures and by its own word."""

from __future__ import annotations

import pytest
from support.chain_kit import Checkout
from support.run_files import Record, RunFiles

PAGES = """
format = 1
name = "pages"
duration = "60 s"
[node.server]
[node.client]
[link.p1]
between = ["server", "client"]
rate = "2 Mbit/s"
queue = "100 packets"
one_way_delay = "20 ms"
[link.p1.forward]
drop = { data = [12] }
[flow.web]
from = "server"
to = "client"
protocol = "tcp"
paths = ["p1"]
start = "1 s"
[flow.web.page]
html = "2904 B"
objects = { count = 4, size = "14520 B" }
[factor.variant]
levels = ["tcp", "tcp6", "http2", "pages", "one", "streams", "rr", "prio", "idata", "large"]
[factor.variant.level.tcp6]
flow.web.page.connections = 6
[factor.variant.level.http2]
flow.web.page = { multiplexed = true, frame = "2 KiB" }
[factor.variant.level.pages]
flow.web.page = { pages = 3, think = "2 s", keep = true }
[factor.variant.level.one]
flow.web = { protocol = "sctp", page.streams = 1 }
[factor.variant.level.streams]
flow.web = { protocol = "sctp" }
[factor.variant.level.rr]
flow.web = { protocol = "sctp", page.order = "rr" }
[factor.variant.level.prio]
flow.web = { protocol = "sctp", page.order = "prio" }
[factor.variant.level.idata]
flow.web = { protocol = "sctp", page = { order = "rr", message = "14520 B", interleave = true } }
[factor.variant.level.large]
flow.web = { protocol = "sctp", page = { order = "rr", objects = { count = 3, size = "400 kB" } } }
"""


@pytest.fixture(scope="module")
def pages(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """The first object loses a packet in every variant."""
    return checkout.run_spec(tmp_path_factory.mktemp("pages"), PAGES, "--no-report")


def objects(run: RunFiles, variant: str) -> list[Record]:
    return list(run.cell(variant=variant).read("derived/pages.json")["web"])


def waited(run: RunFiles, variant: str) -> set[int]:
    """The objects that were complete before they could be delivered."""
    return {int(each["object"]) for each in objects(run, variant) if each["delivered_s"] > each["complete_s"]}


def test_who_waits_for_the_lost_packet_of_the_first_object(pages: RunFiles) -> None:
    """On one connection or stream the object behind it; on a connection or stream of its own none."""
    for variant in ("tcp", "one"):
        assert waited(pages, variant) == {2}, variant
        first, second = objects(pages, variant)[1:3]
        assert second["delivered_s"] == first["delivered_s"] == first["complete_s"]
    for variant in ("tcp6", "streams", "rr", "prio", "idata"):
        assert waited(pages, variant) == set(), variant


def test_connections_and_streams_are_as_asked(pages: RunFiles) -> None:
    used = {
        variant: {(each["port"], each["stream"]) for each in objects(pages, variant)}
        for variant in ("tcp", "tcp6", "pages", "one", "streams", "idata")
    }
    assert {variant: len(places) for variant, places in used.items()} == {
        "tcp": 1, "tcp6": 4, "pages": 1, "one": 1, "streams": 5, "idata": 5,
    }  # fmt: skip


def test_in_turn_all_objects_end_late_and_in_order_one_after_another(pages: RunFiles) -> None:
    """With messages of one packet round robin does what I-DATA does with whole objects."""
    names = ("streams", "rr", "prio", "idata")
    ends = {name: [each["complete_s"] for each in objects(pages, name)][1:] for name in names}
    for variant in ("streams", "prio"):
        assert ends[variant][1] < ends[variant][2] - 0.05 < ends[variant][3] - 0.1, variant
    for variant in ("rr", "idata"):
        assert max(ends[variant][1:]) - min(ends[variant][1:]) < 0.02
        assert min(ends[variant]) > min(ends["streams"]) + 0.02


def test_objects_take_turns_while_the_send_buffer_is_full(pages: RunFiles) -> None:
    """Objects larger than the buffer: none is passed over (the second began 2.8 s after the third, by turns lost)."""
    first, second, third = objects(pages, "large")[1:]
    assert abs(second["complete_s"] - third["complete_s"]) < 0.05
    assert max(each["first_s"] - each["requested_s"] for each in (first, second, third)) < 0.3


def test_in_frames_objects_take_turns_and_share_the_wait(pages: RunFiles) -> None:
    """HTTP/2's frames over one connection: the first objects end later than one after another; what is behind a hole
    waits for its owner.
    """
    assert objects(pages, "http2")[0]["waited_for"] is None
    ends, in_order = ([each["complete_s"] for each in objects(pages, name)][1:] for name in ("http2", "tcp"))
    assert min(ends) > in_order[1]
    first, second, *_ = objects(pages, "tcp")[1:]
    assert (first["waited_for"], second["waited_for"]) == (None, 1), "the packet that was lost is the first object's"
    told = pages.cell(variant="http2").app("web.receiver")
    pieces = {
        each["object"]: [tuple(map(int, piece.split(":"))) for piece in each["pieces"].split(",")]
        for each in told
        if each["record"] == "object"
    }
    placed = sorted((start, number) for number, found in pieces.items() if number for start, _ in found)
    assert [number for _, number in placed] == [1, 2, 3, 4] * 8, "one frame of each in turn"


def test_the_clients_word_is_the_wires(pages: RunFiles) -> None:
    """Within 10 us, every byte as asked for; pages of one connection keep it."""
    for variant in ("tcp", "tcp6", "http2", "pages", "one", "streams", "rr", "prio", "idata"):
        cell = pages.cell(variant=variant)
        for each in objects(pages, variant):
            assert 0 <= each["told_s"] - each["delivered_s"] < 1e-5
            assert each["opened_s"] < each["requested_s"] < each["first_s"] < each["complete_s"]
        summary = cell.summary("web.receiver")
        number = 3 if variant == "pages" else 1
        assert (summary["pages"], summary["corrupt_bytes"]) == (number, 0)
        heads = 9 * (2 + 4 * 8) if variant == "http2" else 0
        assert summary["unique_bytes"] == number * (2904 + 4 * 14520) + heads
        assert cell.summary("web.sender")["connections"] == (4 if variant == "tcp6" else 1)


def test_the_metrics_of_a_page(pages: RunFiles) -> None:
    found = {row["variant"]: metrics for row, metrics in pages.measured("web")}
    (html, *rest) = objects(pages, "tcp")
    end = max(each["delivered_s"] for each in rest)
    assert found["tcp"]["response_time_s"] == pytest.approx(end - html["requested_s"])
    assert found["tcp"]["page_time_s"] == pytest.approx(end - html["opened_s"])
    assert found["tcp"]["object_waited_ratio"] == pytest.approx(1 / 5)
    assert (found["pages"]["pages_complete"], found["pages"]["objects"]) == (3, 15)
