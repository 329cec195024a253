"""The streams of an association: counts that add up to its totals, waits, and delays between two captures."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures import summarise_points
from netwarp.captures.explanation import Explanation, explain
from netwarp.present.captures.explanation_words import explanation_text
from support.captures import ISN, T, data_chunk, pcap, sctp
from support.sctp_story import MS, Packet, at_receiver, handshake, sack

CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"


def explained(*files: Path) -> Explanation:
    (found,) = explain(summarise_points([[file] for file in files]), 10)
    return found


def written(folder: Path, name: str, packets: list[Packet]) -> Path:
    file = folder / f"{name}.pcap"
    file.write_bytes(pcap([(T + at, packet) for at, packet in packets]))
    return file


def data(at_ms: float, tsn: int, stream: int, ssn: int) -> Packet:
    return round(at_ms * MS), sctp(22, data_chunk(ISN + tsn, 100, stream=stream, ssn=ssn))


@pytest.mark.parametrize("name", ["bundle-a-p1", "sctp-a-p1", "osmo-a-p1", "usrsctp-a-p1", "sctptest-a-p1"])
def test_streams_add_up_to_the_totals(name: str) -> None:
    for found in explain(summarise_points([[CAPTURES / f"{name}.pcap.zst"]]), 10):
        totals = found.connection.totals
        way = totals["data_direction"]
        for direction, prefix in ((way, ""), (1 - way, "reverse_")):
            rows = [row for row in found.streams if row["direction"] == direction]
            for column, total in (("messages", "messages"), ("retransmitted_chunks", "retransmitted_chunks")):
                assert sum(row[column] for row in rows) == (totals.get(prefix + total) or 0)
            assert sum(row["new_user_bytes"] for row in rows) == (totals.get(f"{prefix}new_user_bytes") or 0)


def test_a_lost_message_delays_its_own_stream_alone(tmp_path: Path) -> None:
    """One way takes 50 ms; message 0 of stream 1 is lost and comes 400 ms later."""
    there = [data(250, 0, 1, 0), data(260, 1, 2, 0), data(270, 2, 1, 1), data(650, 0, 1, 0), sack(750, 2)]
    sent = written(tmp_path, "a", [*handshake(), *there])
    come = [data(310, 1, 2, 0), data(320, 2, 1, 1), data(700, 0, 1, 0), sack(700, 2)]
    got = written(tmp_path, "b", [(at + 50 * MS * (number < 4), packet)
                                  for number, (at, packet) in enumerate(at_receiver(*come))])  # fmt: skip
    found = explained(sent, got)
    one, two = found.streams
    assert (one["stream"], one["messages"], one["new_user_bytes"], one["retransmitted_chunks"]) == (1, 2, 200, 1)
    assert (two["stream"], two["messages"], two["new_user_bytes"], two["retransmitted_chunks"]) == (2, 1, 100, 0)
    assert one["hol_blocking_max_s"] == pytest.approx(0.38)
    assert two["hol_blocking_max_s"] == 0
    assert one["message_delay_max_s"] == pytest.approx(0.45)
    assert one["message_delay_mean_s"] == pytest.approx((0.45 + 0.43) / 2)
    assert two["message_delay_mean_s"] == two["message_delay_max_s"] == pytest.approx(0.05)
    text = explanation_text(found)
    assert "sent again" in text and "450 ms" in text


def test_clocks_that_differ_show_no_delay(tmp_path: Path) -> None:
    files = [CAPTURES / "bundle-a-p1.pcap.zst", CAPTURES / "bundle-b-p1.pcap.zst"]
    (row,) = explained(*files).streams
    assert row["message_delay_mean_s"] > row["hol_blocking_mean_s"] > 0
    (alone,) = explained(files[0]).streams
    assert alone["message_delay_mean_s"] is None and alone["hol_blocking_mean_s"] is None
    there = [data(250, 0, 1, 0), sack(350, 0)]
    early = [data(210, 0, 1, 0), sack(210, 0)]  # an earlier clock
    sent, got = written(tmp_path, "a", [*handshake(), *there]), written(tmp_path, "b", at_receiver(*early))
    (row,) = explained(sent, got).streams
    assert row["message_delay_max_s"] is None
