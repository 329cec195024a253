"""Reads that block in the kernel until there is much: the same packets, and the receiver's records of them.

A receiver that is woken for each packet (`--read-each`) reads its clock each time, and in virtual time a read costs
256 ns: so instants differ by some of these, and nothing else may.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Event
from support.apps_lab import MS, Run, S, make_cell, run, with_arguments

LOSSY = LinkImpairment(rate_bit_s=10_000_000, one_way_delay_ns=10 * MS, queue_packets=50, loss_ratio=0.01)
CLEAN = LinkImpairment(rate_bit_s=10_000_000, one_way_delay_ns=10 * MS, queue_packets=50)
WIRE = {
    "sctp": [
        "ip.src",
        "ip.len",
        "sctp.chunk_type",
        "sctp.data_tsn",
        "sctp.sack_cumulative_tsn_ack",
        "sctp.sack_a_rwnd",
    ],
    "tcp": ["ip.src", "ip.len", "tcp.seq", "tcp.ack", "tcp.window_size"],
}
EACH = with_arguments("receiver", lambda words: [*words, "--read-each"])


@pytest.mark.parametrize(("protocol", "message_bytes"), [("sctp", 1452), ("sctp", 100), ("sctp", 8192), ("tcp", 1460)])
def test_the_wire_is_that_of_a_receiver_that_reads_each_packet(
    kernel: Path, tmp_path: Path, protocol: str, message_bytes: int
) -> None:
    """Every packet, its addresses, sequence numbers and windows; with loss, so that payload waits for a gap."""
    cell = make_cell(protocol, shape=LOSSY, total_bytes=1_000_000, message_bytes=message_bytes)
    bulk = run(kernel, tmp_path / "bulk", cell).well()
    each = run(kernel, tmp_path / "each", cell, change=EACH).well()
    assert (bulk.one("receiver", "options")["read_each"], each.one("receiver", "options")["read_each"]) == (False, True)
    for capture in ("a-p1", "b-p1"):
        rows = [done.tshark(capture, protocol, *WIRE[protocol]) for done in (bulk, each)]
        assert rows[0] == rows[1]
        assert len(rows[0]) > 500
        times = [done.times(capture, protocol) for done in (bulk, each)]
        assert max(abs(one - other) for one, other in zip(*times, strict=True)) < MS
    same(bulk, each)


@pytest.mark.parametrize("shape", [LOSSY, CLEAN], ids=["losses", "no losses"])
def test_a_window_clamps_receiver_has_the_very_packets_of_one_that_reads_each(
    kernel: Path, tmp_path: Path, shape: LinkImpairment
) -> None:
    """It waits in the read instead of in epoll, and reads its clock as often: the captures are equal, byte for byte."""
    cell = make_cell("tcp", shape=shape, total_bytes=1_000_000, receiver={"window_clamp_bytes": 65_700})
    blocking = run(kernel, tmp_path / "blocking", cell).well()
    each = run(kernel, tmp_path / "each", cell, change=EACH).well()
    for name in ("a-p1", "b-p1"):
        files = [done.result.directory / "capture" / f"{name}.pcap" for done in (blocking, each)]
        assert files[0].read_bytes() == files[1].read_bytes()
        assert files[0].stat().st_size > 100_000
    assert blocking.of("receiver", "summary") == each.of("receiver", "summary")


@pytest.mark.parametrize("stall_deadline_ns", [None, 2 * S], ids=["no deadline", "deadline of 2 s"])
def test_a_window_clamps_receiver_ends_when_asked_or_at_its_deadline(
    kernel: Path, tmp_path: Path, stall_deadline_ns: int | None
) -> None:
    """The path is cut for good in the middle of a flow."""
    options: dict[str, int | str | bool] = {"window_clamp_bytes": 65_700}
    if stall_deadline_ns is not None:
        options["stall_deadline_ns"] = stall_deadline_ns
    hole = [Event(3 * S, "hole", "cut", "p1")]
    cell = make_cell("tcp", shape=CLEAN, duration_ns=8 * S, stop_ns=20 * S, timeline=hole, receiver=options)
    done = run(kernel, tmp_path, cell)
    if stall_deadline_ns is None:
        assert (done.got["reason"], done.exits()["receiver"]["status"]) == ("terminated", 0)
    else:
        assert done.one("receiver", "error")["message"].endswith("no new payload for --stall-deadline-ns")
        assert 4.9 * S < done.one("receiver", "error")["t_ns"] < 5.1 * S


def same(bulk: Run, each: Run) -> None:
    """The receivers' own words: equal counts, and instants that agree."""
    for key in ("unique_bytes", "messages", "out_of_order", "corrupt_bytes", "gap_bytes", "reason", "status"):
        assert bulk.got[key] == each.got[key]
    assert abs(bulk.got["first_t_ns"] - each.got["first_t_ns"]) < 20_000
    assert abs(bulk.got["last_t_ns"] - each.got["last_t_ns"]) < MS
    told = [[(r["type"], r.get("state")) for r in done.of("receiver", "notification")] for done in (bulk, each)]
    assert told[0] == told[1]


@pytest.mark.parametrize("protocol", ["sctp", "tcp"])
def test_sigterm_ends_a_read_that_blocks(kernel: Path, tmp_path: Path, protocol: str) -> None:
    """The path is cut for good in the middle of a flow: the read would wait for ever."""
    cell = make_cell(
        protocol, shape=CLEAN, duration_ns=8 * S, stop_ns=20 * S, timeline=[Event(3 * S, "hole", "cut", "p1")]
    )
    done = run(kernel, tmp_path, cell)
    assert done.got["reason"] == "terminated"
    assert done.exits()["receiver"]["status"] == 0
    # the link carries 10 Mbit/s for 2.5 s; what a read held when the signal came is counted
    assert 2_000_000 < done.got["unique_bytes"] < 3_200_000
    assert done.got["corrupt_bytes"] == 0
    assert 2.9 * S < done.got["last_t_ns"] < 3.1 * S


def test_a_notification_has_its_own_time(kernel: Path, tmp_path: Path) -> None:
    """One in the middle of what a read waits for: the sender's shutdown is told when it comes."""
    cell = make_cell("sctp", shape=CLEAN, total_bytes=200_000)
    done = run(kernel, tmp_path, cell).well()
    (arrived,) = done.times("b-p1", "sctp.chunk_type == 7")
    (told,) = [r["t_ns"] for r in done.of("receiver", "notification") if r["type"] == "SHUTDOWN_EVENT"]
    assert 0 <= told - arrived < 5000
