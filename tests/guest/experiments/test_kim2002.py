"""Cells of experiments/kim2002 in guests: each mechanism seen in the captures, and payload whole in every one."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from netwarp.measure.cell_records import kernel_counters
from netwarp.store.init_records import Proc
from support.chain_kit import Checkout
from support.checkout import ROOT
from support.packet_difference import plain_captures
from support.run_files import CellFiles, RunFiles
from support.tcp_segments import AGAIN, DUPLICATE, segments
from support.tshark import tshark

SPEC = ROOT / "experiments" / "kim2002" / "spec.toml"
TODAY = ("--where", "stack=today")
MTCP_LOSSY = ("--only", "snoop", "--where", "network=mtcp", "--where", "errors=1e-5 of bits", "--where", "sack=off")
BIT_ERRORS, FULL_BYTES = 1e-5, 1500
# when a handover begins, as in spec.toml
HANDOVER_S = 5
SYN_FROM_A = "tcp.flags.syn == 1 && tcp.flags.ack == 0"


def run(checkout: Checkout, place: Path, *arguments: str) -> RunFiles:
    """A part of the experiment, each cell once: all COMPLETED, and every byte that was read was the right one."""
    found = checkout.run_spec(place, SPEC, "--repetitions", "1", "--no-report", *arguments).completed()
    for cell in found.cells.values():
        checks = [check for name, check in cell.checks.items() if name.startswith(("pattern", "payload"))]
        assert len(checks) >= 2, cell.cell.id
        assert all(check["ok"] for check in checks), checks
    return found


def counters(cell: CellFiles) -> dict[str, int]:
    """What the sender's kernel counted."""
    return kernel_counters(msgspec.convert(cell.init("proc"), list[Proc]), [node.name for node in cell.cell.nodes])["a"]


def fields(cell: CellFiles, node: str, place: Path, names: list[str], condition: str) -> list[list[list[str]]]:
    """tshark's fields of a host's packets."""
    plain = place / f"{node}.pcap"
    (capture,) = (data for name, data in plain_captures(cell.root) if name.startswith(f"{node}-"))
    plain.write_bytes(capture)
    return tshark([plain], place, names, condition)


def test_windows_are_what_the_factor_says(checkout: Checkout, tmp_path: Path) -> None:
    """64 KB: no window scaling in the SYN, nothing larger offered. 20 packets: never more under way. 725 KB: more."""
    where = ("--where", "network=sat_sym", "--where", "reading=590 ms round trip", "--where", "run_length=8 s")
    found = run(checkout, tmp_path, "--only", "window", *TODAY, *where)
    largest = {}
    for window in ("20 packets", "64 KB", "725 KB"):
        cell = found.cell(window=window)
        ((scale,),) = fields(cell, "a", tmp_path, ["tcp.options.wscale.shift"], SYN_FROM_A)
        assert bool(scale) is (window != "64 KB")
        packets = segments(cell, "a", tmp_path)
        highest = under_way = 0
        for packet in packets:
            if packet.source == packets[0].source:
                highest = max(highest, packet.seq + packet.length)
            elif packet.ack:
                under_way = max(under_way, highest - packet.ack)
        largest[window] = under_way
    assert largest["20 packets"] <= 20 * 1460 < largest["64 KB"] <= 65_535 < largest["725 KB"]


def test_a_middle_link_of_1000_bytes_makes_fragments_or_says_so(checkout: Checkout, tmp_path: Path) -> None:
    found = run(checkout, tmp_path, "--only", "fragments", *TODAY, "--where", "packet_size=1460 B")
    for middle, fragments, said in (("1000 B, fragments", True, False), ("1000 B, path MTU discovery", False, True)):
        cell = found.cell(middle=middle)
        assert bool(fields(cell, "b", tmp_path, ["ip.id"], "ip.flags.mf == 1")) is fragments
        assert bool(fields(cell, "a", tmp_path, ["ip.id"], "icmp.type == 3 && icmp.code == 4")) is said
    assert not fields(found.cell(middle="as the others"), "b", tmp_path, ["ip.id"], "ip.flags.mf == 1")


def test_acknowledgements_are_delayed_or_not(checkout: Checkout, tmp_path: Path) -> None:
    where = ("--where", "network=wired", "--where", "run_length=8 s", "--where", "initial_window=10")
    found = run(checkout, tmp_path, "--only", "acknowledgements", *where)
    ratios = {row["acks"]: m["ack_packets"] / m["data_packets"] for row, m in found.measured("ftp")}
    assert ratios["every packet"] == pytest.approx(1, abs=0.02)
    assert ratios["delayed"] < 0.85  # after the first packets, which are acknowledged at once


def test_late_packets_are_told_to_the_sender_by_dsack(checkout: Checkout, tmp_path: Path) -> None:
    """The packet program held back five; with DSACK the sender hears of each that came twice."""
    found = run(checkout, tmp_path, "--only", "dsack", "--where", "network=wired")
    for dsack, late in (("off", "none"), ("off", "5"), ("on", "none"), ("on", "5")):
        cell = found.cell(dsack=dsack, late=late)
        heard = counters(cell)["TcpExt.TCPDSACKRecv"]
        assert (heard > 0) is (dsack == "on" and late == "5"), heard
        if late == "5":
            (counts,) = (p["counts"] for p in cell.environment["network"]["packet_programs"])
            assert counts["delayed"] == 5


def test_pacing_spreads_what_slow_start_sends_at_once(checkout: Checkout, tmp_path: Path) -> None:
    """Of the packets 11 to 60 (the first ten are never paced: net/ipv4/tcp_output.c, tcp_update_skb_after_send): paced,
    pairs (tcp_min_tso_segs) are 15 to 30 ms apart; unpaced only a round trip parts them.
    """
    where = ("--where", "network=sat_sym", "--where", "window=725 KB")
    found = run(checkout, tmp_path, "--only", "later", *where, "--where", "later=paced", "--where", "later=Linux 6.12")
    apart = {}
    for level in ("Linux 6.12", "paced"):
        packets = segments(found.cell(later=level), "a", tmp_path)
        sent = [packet.t_s for packet in packets if packet.source == packets[0].source and packet.length][10:60]
        apart[level] = sum(after - before > 10e-3 for before, after in pairwise(sent))
    assert apart["Linux 6.12"] <= 3
    assert apart["paced"] > 15


@pytest.fixture(scope="module")
def lossy(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return run(checkout, tmp_path_factory.mktemp("lossy"), *MTCP_LOSSY)


def test_bit_errors_lose_by_their_formula(lossy: RunFiles) -> None:
    """Packets behind node m are of full size but for the first and last: within 4 sigma of the formula."""
    ratio = 1 - (1 - BIT_ERRORS) ** (8 * FULL_BYTES)
    for cell in lossy.cells.values():
        (counts,) = (p["counts"] for p in cell.environment["network"]["packet_programs"])
        packets = counts["packets"]
        assert packets > 1500
        assert abs(counts["bit_errors"] - packets * ratio) < 4 * math.sqrt(packets * ratio * (1 - ratio)) + 1


def test_snoop_mends_losses_out_of_the_senders_sight(lossy: RunFiles, tmp_path: Path) -> None:
    """The receiver asks for hundreds of segments; the sender hears of a few, sends those again, and gets more than
    twice as much across."""
    alone, mended = (lossy.cell(proxy=proxy) for proxy in ("none", "snoop"))
    asked = {packet.ack for packet in segments(mended, "b", tmp_path, DUPLICATE)}
    heard = {packet.ack for packet in segments(mended, "a", tmp_path, DUPLICATE)}
    again = segments(mended, "a", tmp_path, AGAIN)
    assert len(asked) > 200
    assert len(heard) < len(asked) / 10
    assert len(again) < len(segments(alone, "a", tmp_path, AGAIN)) / 5
    rates = {row["proxy"]: metrics["payload_bytes"] for row, metrics in lossy.measured("ftp")}
    assert rates["snoop"] > 2 * rates["none"]


def test_snoop_repeats_little_where_nothing_can_be_lost_twice(checkout: Checkout, tmp_path: Path) -> None:
    """9.6 kbit/s: its timer learns how slow the last hop is."""
    where = ("--where", "setting=9.6 kbit/s, 200 ms", "--where", "errors=1e-6 of bits")
    found = run(checkout, tmp_path, "--only", "snoop_amount", *where)
    summary = found.cell(proxy="snoop").summary("m.agent")
    assert summary["packets"] > 100
    assert summary["retransmitted"] < 15


@pytest.fixture(scope="module")
def handovers(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return run(checkout, tmp_path_factory.mktemp("handovers"), "--only", "handovers")


@pytest.mark.parametrize("handover", ["0.1 s", "1 s", "5 s"])
def test_the_split_connection_hides_a_handover(handovers: RunFiles, handover: str, tmp_path: Path) -> None:
    """I-TCP: the base station acknowledges what the mobile host does not have; the fixed host sends nothing again."""
    cell = handovers.cell(split="itcp-proxy", handover=handover)
    at_a, at_b = (segments(cell, node, tmp_path) for node in ("a", "b"))
    fixed = at_a[0].source
    until = HANDOVER_S + float(handover.split()[0])
    acknowledged = max(packet.ack for packet in at_a if packet.source != fixed and packet.t_s < until)
    arrived = max(packet.seq + packet.length for packet in at_b if packet.source == fixed and packet.t_s < until)
    assert acknowledged > arrived
    assert not [packet for packet in segments(cell, "a", tmp_path, AGAIN) if packet.source == fixed and packet.length]
    alone = handovers.cell(split="none", handover=handover)
    assert [packet for packet in segments(alone, "a", tmp_path, AGAIN) if packet.source == fixed and packet.length]


@pytest.mark.parametrize("handover", ["1 s", "5 s"])
def test_the_supervisor_host_closes_the_window_for_a_handover(
    handovers: RunFiles, handover: str, tmp_path: Path
) -> None:
    """M-TCP: a window of zero while the mobile host is away, opened at its return; data flows within 50 ms, long before
    the sender alone begins again."""
    until = HANDOVER_S + float(handover.split()[0])
    packets = segments(handovers.cell(split="mtcp", handover=handover), "a", tmp_path)
    fixed = packets[0].source
    closed = [packet for packet in packets if packet.source != fixed and packet.window == 0 and packet.t_s < until]
    assert closed
    assert closed[0].t_s > 5
    opened = next(p for p in packets if p.source != fixed and p.window and p.t_s > closed[0].t_s)
    assert opened.t_s == pytest.approx(until, abs=0.02)
    recovery = {
        row["split"]: metrics["recovery_time_s"]
        for row, metrics in handovers.measured("ftp")
        if row["handover"] == handover
    }
    assert recovery["mtcp"] < 0.05 < 0.5 < recovery["none"]
