"""analyze_tcp against judges nobody here wrote: the kernel's counters, tshark and tcptrace, on flows in real guests.

The captures of the sender are before the qdisc that drops. Where definitions differ the test says how.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from netwarp.captures.tcp import TcpConnection
from netwarp.core.types import Cell, Event
from support.apps_lab import MS, S
from support.tcp_lab import LINK, Lab, play, tcp_cell

LOSSY = replace(LINK, loss_ratio=0.02)
WORSE = replace(LINK, loss_ratio=0.15)
JITTERY = replace(LINK, jitter_ns=5 * MS)
FAR = replace(LINK, one_way_delay_ns=600 * MS)
CUT = (Event(4 * S, "gap", "cut", "p1"), Event(7 * S, "gap", "repair", "p1"))
FARTHER = (Event(3 * S, "far", "change", "p1", forward=FAR), Event(6 * S, "far", "change", "p1", forward=LINK))
NO_FAST = {
    "net.ipv4.tcp_reordering": "300",
    "net.ipv4.tcp_max_reordering": "300",
    "net.ipv4.tcp_recovery": "0",
    "net.ipv4.tcp_early_retrans": "0",
    "net.ipv4.tcp_frto": "0",
}
"""No number of duplicates suffices: a loss waits for a timeout, while reports of what came behind it come in."""
CELLS: dict[str, Cell] = {
    "loss": tcp_cell(LOSSY),
    "hard": tcp_cell(WORSE),
    "acks": tcp_cell(WORSE, WORSE, seed=2),
    "tail": tcp_cell(WORSE, total_bytes=30_000, stop_s=None, seed=3),
    "one": tcp_cell(replace(LINK, loss_ratio=0.4), total_bytes=1000, stop_s=None, seed=2),
    "noprobe": tcp_cell(
        replace(LINK, loss_ratio=0.4),
        total_bytes=1000,
        stop_s=None,
        seed=2,
        sysctls={"net.ipv4.tcp_early_retrans": "0"},
    ),
    "jitter": tcp_cell(JITTERY),
    "cut": tcp_cell(events=CUT),
    "farther": tcp_cell(events=FARTHER),
    "nosack": tcp_cell(LOSSY, sysctls={"net.ipv4.tcp_sack": "0"}),
    "nostamps": tcp_cell(LOSSY, sysctls={"net.ipv4.tcp_timestamps": "0"}),
    "norack": tcp_cell(LOSSY, sysctls={"net.ipv4.tcp_recovery": "0"}),
    "nofast": tcp_cell(LOSSY, sysctls=NO_FAST),
    "doubled": tcp_cell(replace(LINK, duplicate_ratio=0.02)),
    "ecn": tcp_cell(sysctls={"net.ipv4.tcp_ecn": "1"}),
}
ACKS_LOST = ("acks",)
OVERTAKING = ("jitter", "farther")
"""A delay that becomes shorter lets packets overtake."""


@pytest.fixture(scope="module")
def labs(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Lab]]:
    base = tmp_path_factory.mktemp("tcp")
    yield {name: play(kernel, base / name, cell) for name, cell in CELLS.items()}


@pytest.fixture(scope="module")
def sent(labs: dict[str, Lab]) -> dict[str, TcpConnection]:
    return {name: lab.connection("a") for name, lab in labs.items()}


def test_causes_of_retransmissions_equal_the_kernels_counters(
    labs: dict[str, Lab], sent: dict[str, TcpConnection]
) -> None:
    """fast: TCPFastRetrans (sent in Recovery); after timeout: TCPSlowStartRetrans (in Loss); timeouts: TCPTimeouts.

    Where ACKs are lost, RTOs may be spurious: the kernel stays in Loss where it does not find out, we end with what
    timestamps show, so only the sum of the two must agree. TCPTimeouts counts those of SYNs; TCPLossProbes those with
    new data. Of one segment outstanding a sender without probes looks the same: there it was a timeout.
    """
    total = defaultdict(int)
    for name, lab in labs.items():
        ours, kernel = sent[name].totals, lab.netstat
        fast, after = ours["fast_retransmitted_packets"], ours["after_timeout_retransmitted_packets"]
        assert isinstance(fast, int)
        assert isinstance(after, int)
        assert ours["retransmitted_packets"] == lab.info["total_retrans_packets"], name
        assert ours["retransmitted_bytes"] == lab.info["bytes_retrans"], name
        probes, timeouts = ours["tail_loss_probes"], ours["timeouts"]
        assert isinstance(probes, int)
        assert isinstance(timeouts, int)
        if name == "noprobe":
            timeouts, probes = timeouts + probes, 0
        assert timeouts == kernel["TCPTimeouts"] - kernel["TCPSynRetrans"], name
        assert timeouts == lab.info["total_rto"] - kernel["TCPSynRetrans"], name
        assert fast + after == kernel["TCPFastRetrans"] + kernel["TCPSlowStartRetrans"], name
        if name not in ACKS_LOST:
            assert (fast, after) == (kernel["TCPFastRetrans"], kernel["TCPSlowStartRetrans"]), name
        assert probes <= kernel["TCPLossProbes"], name
        assert ours["unknown_retransmitted_packets"] == 0, name
        for key in (
            "fast_retransmitted_packets",
            "timeouts",
            "after_timeout_retransmitted_packets",
            "tail_loss_probes",
        ):
            total[key] += ours[key]  # type: ignore[operator]
    assert min(total.values()) > 0
    assert total["fast_retransmitted_packets"] > 200
    assert total["timeouts"] >= 5


def test_dsacks_and_reordering_are_what_the_kernels_counted(
    labs: dict[str, Lab], sent: dict[str, TcpConnection]
) -> None:
    """Where the network doubles packets the kernel ignores some DSACKs: there the receiver's capture is the judge."""
    for name, lab in labs.items():
        ours, kernel = sent[name].totals, lab.netstat
        if name != "doubled":
            assert ours["dsacks"] == kernel["TCPDSACKRecv"] + kernel["TCPDSACKOfoRecv"], name
            assert ours["spurious_by_dsack_packets"] in (None, lab.info["dsack_dups"]), name
        there = lab.connection("b").totals
        assert (there["timeouts"] or 0) <= kernel["TCPTimeouts"], name
        assert there["initial_window_packets"] is ours["reordered_packets"] is None
        if name == "jitter":
            assert there["reordered_packets"] > 1000  # type: ignore[operator]
            assert lab.info["reord_seen"] > 0
        elif name not in ("nostamps", *OVERTAKING):
            assert there["reordered_packets"] == 0, name
    doubled = labs["doubled"]
    assert sent["doubled"].totals["spurious_retransmitted_packets"] == 0
    assert doubled.connection("b").totals["retransmitted_packets"] == sent["doubled"].totals["dsacks"]


def test_spurious_retransmissions_bring_nothing_new(labs: dict[str, Lab], sent: dict[str, TcpConnection]) -> None:
    """Each retransmission shown to be spurious brought the receiver nothing new: its capture is the judge."""
    shown = 0
    for name, lab in labs.items():
        found = sent[name].directions[0].retransmissions
        assert found is not None
        there = lab.connection("b").directions[0].data
        fresh = there.payload_bytes > 0
        for place in np.flatnonzero(found.spurious).tolist():
            number = sent[name].directions[0].data.seq[found.segment[place]]
            at = sent[name].directions[0].data.time_ns[found.segment[place]]
            holds = fresh & (there.seq <= number) & (number < there.end)
            assert there.time_ns[holds & (there.new_bytes > 0)].min() < at + 700 * MS
            shown += 1
    assert shown > 5


def test_reordered_and_repaired_segments(labs: dict[str, Lab]) -> None:
    """Reordered or repaired by timestamps, against the sender's capture: was that number sent once, before it came?"""
    told = 0
    for name in ("loss", "hard", "jitter", "cut"):
        lab = labs[name]
        one = lab.connection("b").directions[0]
        assert one.arrivals is not None
        again = lab.connection("a").directions[0].data
        again_seqs = set(again.seq[again.is_retransmission].tolist())
        for place, reordered, repaired in zip(
            one.arrivals.segment, one.arrivals.reordered, one.arrivals.repaired, strict=True
        ):
            assert not (reordered and repaired)
            if repaired:
                assert int(one.data.seq[place]) in again_seqs, name
            if reordered:
                sent_ns = again.time_ns[again.seq == one.data.seq[place]].min()
                assert one.data.time_ns[place] - sent_ns < 200 * MS
            told += 1
    assert told > 1000


def fields(lab: Lab, node: str, *names: str) -> list[list[str]]:
    """One row a frame."""
    return lab.run.tshark(f"{node}-p1", "tcp", *names)


def flagged(rows: list[list[str]], column: int) -> set[int]:
    """Frame numbers less one."""
    return {place for place, row in enumerate(rows) if row[column]}


def test_tshark_agrees_frame_by_frame(labs: dict[str, Lab], sent: dict[str, TcpConnection]) -> None:
    """Retransmissions (it calls some out-of-order), duplicate ACKs, window updates, zero windows, bytes in flight.

    Its bytes_in_flight subtracts SACKed bytes: compared where the last ACK before carries no SACK block.
    """
    names = ("retransmission", "out_of_order", "duplicate_ack", "window_update", "zero_window", "bytes_in_flight")
    flights = duplicates = 0
    for name, lab in labs.items():
        rows = fields(lab, "a", *(f"tcp.analysis.{field}" for field in names))
        one = sent[name].directions[0]
        data, acks = one.data, one.acks
        assert len(rows) == len(data) + len(acks)
        assert set(data.row[data.is_retransmission].tolist()) == flagged(rows, 0) | flagged(rows, 1), name
        assert set(acks.row[one.reports.duplicate].tolist()) == flagged(rows, 2), name
        assert set(acks.row[one.windows.update].tolist()) == flagged(rows, 3), name
        assert set(acks.row[one.windows.zero].tolist()) == flagged(rows, 4), name
        una = np.concatenate([[1], np.maximum(1, acks.highest_ack)])[data.before]
        plain = np.concatenate([[True], acks.sack_blocks == 0])[data.before] & (data.payload_bytes > 0)
        ours = (data.highest_end - una)[plain]
        theirs = [int(rows[row][5]) for row in data.row[plain].tolist()]
        if name not in ("tail", "one", "noprobe"):  # they end with a FIN, which tshark counts as a byte
            assert ours.tolist() == theirs, name
            flights += len(theirs)
        duplicates += int(one.reports.duplicate.sum())
    assert flights > 5000
    assert duplicates > 500


def test_tshark_agrees_on_every_round_trip(labs: dict[str, Lab], sent: dict[str, TcpConnection]) -> None:
    """Each of our samples is tshark's ack_rtt of that frame; what it has beside them follows a retransmission."""
    samples = 0
    for name, lab in labs.items():
        theirs: dict[int, list[int]] = defaultdict(list)
        for time, rtt in fields(lab, "a", "frame.time_epoch", "tcp.analysis.ack_rtt"):
            if rtt:
                theirs[int(time.replace(".", ""))].append(round(float(rtt) * 1e9))
        ours = sent[name].directions[0].rtt
        for time_ns, rtt_ns in zip(ours.time_ns.tolist(), ours.rtt_ns.tolist(), strict=True):
            assert any(abs(rtt_ns - value) <= 1 for value in theirs[time_ns]), (name, time_ns)
        samples += len(ours.rtt_ns)
        again = sent[name].totals["retransmitted_packets"]
        assert isinstance(again, int)
        if not again:
            assert sum(map(len, theirs.values())) - len(ours.rtt_ns) <= 2, name  # the handshake's ACK, and the FIN's
    assert samples > 5000


def test_tcptrace_agrees(labs: dict[str, Lab], sent: dict[str, TcpConnection]) -> None:
    """tcptrace -lr of the sender's capture: counts, RTT samples (its post-loss ACKs are none of ours), initial window.

    It has no rule for what a closing FIN acknowledges: RTTs are compared of the timed flows. Where ACKs are lost, one
    covers more: it then takes those of segments that were sent after another one of the covered had been sent again.
    Where packets overtake each other its initial window goes on to the first ACK that advances, and its RTT samples
    are others.
    """
    for name, lab in labs.items():
        file = lab.run.result.directory / "capture" / "a-p1.pcap"
        text = subprocess.run(
            ["tcptrace", "-lrn", str(file)],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
            env=dict(os.environ),
        ).stdout
        told = {key.strip(): value for key, value in re.findall(r"^ *([^:\n]+): +([0-9.]+|Y|N)", text, re.MULTILINE)}
        totals = sent[name].totals
        wanted: dict[str, object] = {
            "rexmt data pkts": totals["retransmitted_packets"],
            "rexmt data bytes": totals["retransmitted_bytes"],
            "actual data pkts": totals["data_packets"],
            "actual data bytes": totals["payload_bytes"],
            "unique bytes sent": totals["new_bytes"],
            "pure acks sent": totals["pure_ack_packets"],
            "mss requested": totals["mss_initiator_bytes"],
            "zwnd probe pkts": totals["zero_window_probes"],
            "initial window": totals["initial_window_packets"],
        }
        if CELLS[name].flows[0].total_bytes is None:
            wanted["RTT samples"] = totals["rtt_samples"]
        else:
            del wanted["rexmt data bytes"]  # a FIN that is sent again is a byte to tcptrace
        found = {key: int(told[key]) for key in wanted}
        if name in OVERTAKING:
            for key in ("initial window", "RTT samples"):
                del wanted[key], found[key]
        if name in ACKS_LOST:
            assert wanted.pop("RTT samples") < found.pop("RTT samples")  # type: ignore[operator]
        assert found == wanted, name
        if totals["rtt_samples"]:
            assert float(told["RTT min"]) == pytest.approx(totals["rtt_min_s"] * 1000, abs=0.051), name  # type: ignore[operator]


def test_ecn_was_agreed_on_and_marked(labs: dict[str, Lab], sent: dict[str, TcpConnection]) -> None:
    assert sent["ecn"].totals["ecn"] == 1
    assert sent["loss"].totals["ecn"] == 0
    # new data alone is ECT (RFC 3168 6.1.5: not what is sent again)
    totals = sent["ecn"].totals
    data = sent["ecn"].directions[0].data
    assert totals["ect_packets"] == int(((data.payload_bytes > 0) & ~data.is_retransmission).sum())
    rows = fields(labs["ecn"], "a", "ip.dsfield.ecn")
    assert totals["ect_packets"] == sum(row[0] == "2" for row in rows)


def test_the_kernel_and_the_wire_measure_one_round_trip(labs: dict[str, Lab], sent: dict[str, TcpConnection]) -> None:
    """TCP_INFO's min_rtt against ours: to the kernel's microseconds. It takes SACKs for samples too, so may be less."""
    for name, lab in labs.items():
        ours = sent[name].totals["rtt_min_s"]
        if lab.info.get("min_rtt_us") and isinstance(ours, float):
            assert lab.info["min_rtt_us"] / 1e6 <= ours + 2e-6, name
