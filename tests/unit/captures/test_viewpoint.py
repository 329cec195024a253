"""Where and how a capture was taken: inferred, told in one line, and said by somebody."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures import FileSummary, summarise_points
from netwarp.captures.explanation import explain
from netwarp.core.errors import CaptureError
from support.captures import recorded, summary
from support.tcp_story import MSS, Story

CASES = Path(__file__).resolve().parents[2] / "data" / "cases"


def case(name: str, *captured_at: str) -> FileSummary:
    (file,) = summarise_points([[CASES / f"{name}.pcap.zst"]], captured_at=captured_at)
    return file


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("1-one-path", "captured at 10.9.0.1 (by the round trips of 1 handshake)"),
        ("1c-mid-association", "captured at an unknown point (--captured-at says it)"),
        ("6-one-goes-silent", "captured at 10.9.6.1 and 10.9.6.3 (by the round trips of 1 handshake)"),
        ("cookie-ack-not-captured", "captured between the ends (by the round trips of 1 handshake)"),
        ("one-way-client", "captured at an unknown point (--captured-at says it); of 1 connection one direction alone"),
        (
            "capture-lost-records",
            "captured at 192.0.2.1 (by the round trips of 1 handshake); of 1 connection not all packets",
        ),
    ],
)  # fmt: skip
def test_what_is_told_of_a_capture(name: str, words: str) -> None:
    assert case(name).viewpoint.words == words


def test_copies_and_a_clock_are_told_with_the_rest() -> None:
    copies, clock = case("dup-v6-3").viewpoint, case("clock-set-back").viewpoint
    assert copies.words == "captured at 2001:db8::1 (by the round trips of 1 handshake); 610 copies left out"
    assert clock.words.endswith("; its clock set back by 2 s")
    assert clock.as_json()["captured_at"] == ["192.0.2.1"]


def test_what_somebody_says_makes_the_senders_settings_known() -> None:
    """The association of 1c was captured at its initiator, whose handshake the capture lacks."""
    truth = {"rto_min": 0.7, "rto_max": 4.0}
    (explained,) = explain([case("1c-mid-association", "10.9.0.1")], 1)
    known = {setting.name: setting for setting in explained.settings}
    for name, value in truth.items():
        assert known[name].low is not None and known[name].low <= value <= (known[name].high or 0)
    words = case("1c-mid-association", "10.9.0.1").viewpoint.words
    assert words == "captured at 10.9.0.1 (as --captured-at says)"


def test_it_says_where_data_are_reordered(tmp_path: Path) -> None:
    """At the receiver segments may come out of order; at the sender none can."""
    story = Story().handshake().data(50, 1).data(51, 1 + 2 * MSS).data(52, 1 + MSS).ack(90, 1 + 3 * MSS)
    for address, there in (("10.0.0.1", False), ("10.0.0.2", True)):
        found = summary(tmp_path, story.packets[3:], captured_at=[address])
        assert (found.connections[0].totals["out_of_order_packets"] is not None) == there


def test_an_address_of_no_packet_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"--captured-at 192\.0\.2\.77: .* has no packet from or to it"):
        case("1-one-path", "192.0.2.77")


def test_both_ends_of_a_recorded_association() -> None:
    for node, address in (("a", "10.1.1.1"), ("b", "10.1.2.1")):
        (file,) = summarise_points([recorded("tcp", node, ["p1"])])
        assert file.viewpoint.by == 1
        assert len(file.viewpoint.captured_at) == 1
        assert file.viewpoint.captured_at[0].startswith(address.rsplit(".", 2)[0])
