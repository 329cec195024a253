"""A small part of experiments/min2013 in guests: sizes, packets and streams as its README states."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from support.chain_kit import Checkout
from support.checkout import ROOT
from support.run_files import Measured, load_run

SPEC = ROOT / "experiments" / "min2013" / "spec.toml"
TODAY = ["--where", "stack=today", "--where", "stack=-"]
TRANSFER = 548 * 730  # 548 whole messages: a shorter last one would fit beside another


def measure(checkout: Checkout, place: Path, *arguments: object) -> Measured:
    """Every cell's metrics; all of them completed, so every byte of every file was the right one."""
    given = ["--set", f"transfer={TRANSFER} B", "--repetitions", "1", "--no-report", *TODAY]
    return checkout.run_spec(place, SPEC, *given, *arguments).measured()


@pytest.fixture(scope="module")
def wired(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measure(checkout, tmp_path_factory.mktemp("wired"), "--only", "mss-wired")


def test_packets_are_the_arithmetic_of_headers(wired: Measured) -> None:
    fits = {
        ("tcp", "-"): (1448, 718, 353),
        ("sctp", "chunk"): (1452, 730, 3 * 365),
        ("sctp", "packet"): (1452, 720, 464),
    }
    assert len(wired) == 9
    for levels, metrics in wired:
        size = fits[levels["protocol"], levels["reading"]][("1460 B", "730 B", "365 B").index(levels["mss"])]
        least = math.ceil(TRANSFER / size)
        assert metrics["payload_bytes"] == TRANSFER
        assert metrics["retransmitted_bytes"] == 0
        if size < 3 * 365:
            assert metrics["data_packets"] == least, levels
        else:  # some leave before there are more messages to fill them
            assert least <= metrics["data_packets"] < least * 1.06, levels


def test_two_messages_of_730_bytes_do_not_share_a_packet_and_three_of_365_do(wired: Measured) -> None:
    chunks = {levels["mss"]: m["chunks_per_packet_ratio"] for levels, m in wired if levels["reading"] == "chunk"}
    assert chunks["730 B"] == pytest.approx(1, rel=0.01)
    assert 2.8 < chunks["365 B"] <= 3


def test_this_kernel_takes_no_maxseg_below_that_of_a_512_byte_packet(checkout: Checkout, tmp_path: Path) -> None:
    where = ["--only", "mss-wired", "--where", "protocol=sctp", "--where", "reading=chunk", "--where", "mss=1460 B"]
    short = ["--set", "duration=3 s", "--repetitions", "1", "--no-report", *TODAY]
    for mss, status in (("460 B", 1), ("464 B", 0)):
        size = ["--set", f"flow.file.sender.mss={mss}", "--set", f"transfer={TRANSFER} B"]
        done = checkout.run("run", SPEC, *where, *short, *size, "--out", tmp_path / mss[:3], cwd=tmp_path)
        assert done.status == status, done
    (cell,) = load_run(tmp_path / "460").table("cells")
    assert "SCTP_MAXSEG: Invalid argument" in cell["reason"]


def test_streams_shorten_the_wait_and_a_stream_alone_saves_nothing(checkout: Checkout, tmp_path: Path) -> None:
    where = [word for pair in ("loss=10 %", "streams=1", "streams=5") for word in ("--where", pair)]
    one, five = (metrics for _, metrics in measure(checkout, tmp_path, "--only", "loss-sctp", *where))
    assert one["hol_blocking_s"] == one["hol_blocking_one_stream_s"] > 0
    assert 0 < five["hol_blocking_s"] < five["hol_blocking_one_stream_s"]
    assert five["hol_blocked_ratio"] < five["hol_blocked_one_stream_ratio"]
    assert five["hol_blocking_least_stream_s"] <= five["hol_blocking_s"] <= five["hol_blocking_most_stream_s"]
    assert one["retransmitted_bytes"] > 0.05 * TRANSFER
