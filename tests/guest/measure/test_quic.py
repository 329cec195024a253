"""Debian's ngtcp2 as flows of QUIC beside TCP, and over IPv6: exact losses, tshark, the kernel's counters, the
program's own qlog; equal cells have equal captures.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.core.unpacked import UNPACKED_PACKAGES
from support.chain_kit import Checkout, captures
from support.quic_kit import assert_headers_are_tsharks, by_tshark
from support.run_files import RunFiles
from support.tshark import tshark

LOST = [40, 41, 90]
"""Packets of the direction from a to b, counted from the cell's start."""
ADDRESS = {"a": "10.0.0.1", "b": "10.0.0.129"}
SPEC = f"""\
format = 1
name = "quic"
duration = "4 s"
repetitions = 1
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "8 Mbit/s"
queue = "200 packets"
one_way_delay = "15 ms"
forward = {{ drop = {LOST} }}
[measure]
windows = "500 ms"
[default.flow]
from = "a"
to = "b"
paths = ["p1"]
[flow.quic]
protocol = "quic"
bytes = "300 kB"
[flow.own]
protocol = "quic"
start = "1 s"
stop = "3 s"
[flow.own.program]
listens = "sender"
interrupt = true
sender = [
    "{{unpacked}}/usr/sbin/gtlsserver", "-q", "--qlog-dir=apps", "--max-dyn-length={{total_bytes}}",
    "{{from}}", "{{port}}", "{{tls_key}}", "{{tls_certificate}}",
]
receiver = [
    "{{unpacked}}/usr/bin/gtlsclient", "-q", "--no-quic-dump", "--no-http-dump",
    "{{from}}", "{{port}}", "https://localhost/{{total_bytes}}",
]
[flow.tcp]
protocol = "tcp"
start = "1 s"
stop = "3 s"
"""
ALONE = SPEC[: SPEC.index("[flow.own]")].replace('duration = "4 s"', 'duration = "1 s"')
"""The first flow and no other."""
OVER_IPV6 = ALONE.replace("[link.p1]", '[link.p1]\nfamily = "ipv6"')
SPECS = {"ipv4": SPEC, "ipv6": OVER_IPV6}
FAMILIES = pytest.mark.parametrize("family", SPECS)


@pytest.fixture(scope="module")
def runs(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFiles]:
    if not (UNPACKED_PACKAGES / "usr/sbin/gtlsserver").exists():
        pytest.skip("ngtcp2 is not unpacked: make programs")
    return {
        family: checkout.run_spec(tmp_path_factory.mktemp(family), spec, "--no-report").completed()
        for family, spec in SPECS.items()
    }


@pytest.fixture(scope="module")
def done(runs: dict[str, RunFiles]) -> RunFiles:
    return runs["ipv4"]


@pytest.fixture(scope="module")
def metrics(done: RunFiles) -> dict[str, dict[str, float]]:
    return {flow: done.measured(flow)[0][1] for flow in ("quic", "quic.back", "own", "tcp", "")}


@FAMILIES
def test_an_equal_cell_has_equal_captures(
    runs: dict[str, RunFiles], checkout: Checkout, tmp_path: Path, family: str
) -> None:
    again = checkout.run_spec(tmp_path, SPECS[family], "--no-report").completed()
    assert captures(again.root) == captures(runs[family].root)


def test_losses_are_those_that_the_link_was_told(metrics: dict[str, dict[str, float]]) -> None:
    assert metrics["quic"]["lost_packets"] + metrics["own"]["lost_packets"] == len(LOST)
    assert metrics["quic"]["loss_ratio"] > 0
    assert metrics["quic.back"]["lost_packets"] == 0


def test_losses_over_ipv6_are_those_that_the_link_was_told(runs: dict[str, RunFiles]) -> None:
    ((_, quic),) = runs["ipv6"].measured("quic")
    assert quic["lost_packets"] == len(LOST)


@FAMILIES
@pytest.mark.parametrize("node", ["a", "b"])
def test_headers_are_as_tshark_reads_them(runs: dict[str, RunFiles], family: str, node: str) -> None:
    cell = runs[family].cell()
    (capture,) = cell.captures(node)
    for flow in cell.cell.flows:
        if flow.protocol == "quic":
            assert_headers_are_tsharks(capture, flow.port)


@FAMILIES
def test_the_handshake_and_the_rate_are_those_of_tsharks_packets(runs: dict[str, RunFiles], family: str) -> None:
    """The receiver is the end that connects: from its first packet to 1-RTT packets of both; what comes until it ends,
    behind the first datagram, over that time.
    """
    cell = runs[family].cell()
    (capture,) = cell.captures("b")
    fields = ["frame.time_epoch", "udp.srcport", "quic.header_form", "ip.len", "ipv6.plen"]
    packets = by_tshark(capture, 5001, fields)
    at_s = [float(packet["frame.time_epoch"][0].split(".")[1]) / 1e9 for packet in packets]
    from_a = [packet["udp.srcport"] == ["5001"] for packet in packets]
    short = ["0" in packet["quic.header_form"] for packet in packets]
    sizes = [sum(map(int, packet["ip.len"])) or int(packet["ipv6.plen"][0]) + 40 for packet in packets]
    ((_, quic),) = runs[family].measured("quic")
    first_short = [
        next(t for t, a, s in zip(at_s, from_a, short, strict=True) if s and a is way) for way in (True, False)
    ]
    assert quic["setup_time_s"] == pytest.approx(max(first_short) - at_s[0], abs=1e-9)
    end_s = at_s[0] + quic["transfer_time_s"]
    came = [(t, size) for t, a, size in zip(at_s, from_a, sizes, strict=True) if a and t <= end_s + 1e-9]
    assert sum(size for _, size in came) == quic["wire_bytes"] > 300e3
    rate = sum(size for _, size in came[1:]) * 8 / (end_s - came[0][0])
    assert quic["throughput_bit_s"] == pytest.approx(rate, rel=1e-6)


def test_the_transfer_and_its_handshake_take_what_the_link_needs(metrics: dict[str, dict[str, float]]) -> None:
    """A handshake is a round trip; 300 kB and 3 % of headers at 8 Mbit/s take 0.31 s, slow start some round trips."""
    quic = metrics["quic"]
    assert 0.030 < quic["setup_time_s"] < 0.045
    assert 0.31 + 0.060 < quic["completion_time_s"] < 0.8
    assert 300e3 < quic["wire_bytes"] < 1.08 * 300e3
    assert "goodput_bit_s" not in quic, "what is new cannot be told without keys"
    assert "spin_rtt_min_s" not in quic, "ngtcp2 0.12 does not spin"
    assert quic["queue_delay_max_s"] < 200 * 1500 * 8 / 8e6


def test_shares_of_quic_and_tcp_are_of_the_throughput(metrics: dict[str, dict[str, float]]) -> None:
    both = [metrics[name]["throughput_bit_s"] for name in ("own", "tcp")]
    assert sum(both) == pytest.approx(8e6, rel=0.06)
    of_all = [metrics[name]["throughput_bit_s"] for name in ("quic", "own", "tcp")]
    assert metrics[""]["jain_index"] == pytest.approx(sum(of_all) ** 2 / (3 * sum(each**2 for each in of_all)))


@pytest.mark.parametrize(("node", "number"), [("a", 0), ("b", 1)])
def test_the_kernel_counts_the_datagrams_that_the_captures_show(
    done: RunFiles, tmp_path: Path, node: str, number: int
) -> None:
    """Udp of /proc/net/snmp. (What a sends, it counts by calls: one may be several datagrams, GSO.)"""
    texts = [each["text"] for each in done.cell().init("proc") if (each["path"], each["ns"]) == ("net/snmp", number)]
    names, numbers = (line.split()[1:] for line in texts[0].splitlines() if line.startswith("Udp:"))
    kernel = dict(zip(names, map(int, numbers), strict=True))
    arrived = tshark(done.cell().captures(node), tmp_path, ["udp.length"], f"udp && !icmp && ip.dst == {ADDRESS[node]}")
    assert kernel["InDatagrams"] + kernel["NoPorts"] + kernel["RcvbufErrors"] == len(arrived) > 100


def test_the_programs_own_log_has_as_many_packets_as_were_seen_to_leave(done: RunFiles) -> None:
    (log,) = (done.cell().root / "apps").glob("*.sqlog")
    events = [json.loads(line) for line in log.read_text().replace("\x1e", "").splitlines() if line.strip()]
    sent = [event for event in events if event.get("name") == "transport:packet_sent"]
    seen = read_captures(done.cell().captures("a"), ("packets", "quic")).quic
    assert (seen["source_port"] == 5002).sum() == len(sent)
