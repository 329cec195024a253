"""Programs of the user's own: ping, iperf3 and a busy loop, in virtual time and on the wall clock."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from netwarp.core.types import Outcome
from support.chain_kit import HOSTS, Checkout, in_a_guest, in_time, tables, written
from support.packet_difference import plain_captures
from support.run_files import CellFiles, load_run
from support.tshark import tshark

SPEC = """\
format = 1
name = "own"
duration = "4 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "8 Mbit/s"
queue = "50 packets"
one_way_delay = "30 ms"
backward = {{ one_way_delay = "70 ms" }}
[flow.own]
from = "a"
to = "b"
protocol = "{protocol}"
paths = ["p1"]
{program}
"""
PING_BYTES = 20 + 8 + 56
"""IP and ICMP header (RFC 791, RFC 792) and what ping sends by default."""


def ran(
    checkout: Checkout, place: Path, backend: str, program: str, protocol: str = "tcp"
) -> tuple[CellFiles, dict[str, float]]:
    """The one cell of a run, and its metrics."""
    spec = written(place / "spec.toml", SPEC.format(protocol=protocol, program=program))
    done = checkout.run("run", spec, "--backend", backend, "--no-report", "--out", place / "run", cwd=place)
    assert done.status in (0, 1), done
    run = load_run(place / "run")
    ((_, metrics),) = run.measured("own")
    return run.cell(), metrics


def test_ping_in_virtual_time_tells_the_configured_delays(checkout: Checkout, tmp_path: Path) -> None:
    cell, measured = ran(checkout, tmp_path, "virtual", 'program = "ping"\nstart = "0.5 s"', "icmp")
    assert cell.outcome.outcome is Outcome.COMPLETED, cell.outcome
    text = (cell.root / "apps/own.sender.stdout").read_text()
    # replies to those sent at 0.5, 1.5, 2.5 and 3.5 s
    assert "4 packets transmitted, 4 received, 0% packet loss" in text
    found = re.search(r"rtt min/avg/max/mdev = ([\d.]+)/[\d.]+/([\d.]+)/", text)
    assert found is not None, text
    configured_ms = 30 + 70 + 2 * PING_BYTES * 8 / 8e6 * 1000
    for value in found.groups():
        assert float(value) == pytest.approx(configured_ms, abs=0.003), "to some microseconds"
    assert float(measured["packets"]) == 4
    assert float(measured["wire_bytes"]) == 4 * PING_BYTES
    assert set(measured) == {"packets", "wire_bytes", "throughput_bit_s", "utilization_ratio"}
    assert cell.environment["programs"]["ping"]["version"].startswith("ping from iputils")


@pytest.mark.parametrize("protocol", ["tcp", "sctp", "udp"])
def test_iperf3_in_virtual_time_counts_what_the_wire_carried(checkout: Checkout, tmp_path: Path, protocol: str) -> None:
    """iperf3's own count is the oracle; equal runs have equal captures, although its cookie is random."""
    cell, measured = ran(checkout, tmp_path, "virtual", 'program = "iperf3"\nstop = "3 s"', protocol)
    assert cell.outcome.outcome is Outcome.COMPLETED, cell.outcome
    end = cell.read("apps/own.sender.stdout")["end"]
    if protocol == "udp":
        assert end["sum_sent"]["seconds"] == pytest.approx(3, abs=0.01)
        assert measured["throughput_bit_s"] == pytest.approx(end["sum_sent"]["bits_per_second"], rel=0.03)
    else:
        # its receiver counts to its own end, some round trips after the flow's stop
        assert 0.6 < measured["payload_bytes"] / end["sum_received"]["bytes"] < 1.01
        assert 0.3 < measured["utilization_ratio"] <= 1.01
    again, _ = ran(checkout, tmp_path / "again", "virtual", 'program = "iperf3"\nstop = "3 s"', protocol)
    assert dict(plain_captures(again.root)) == dict(plain_captures(cell.root))


SPINS = """import time
end = time.monotonic() + 2
while time.monotonic() < end:
    pass
print(f"{time.monotonic() - end:.6f}")
"""


def test_a_program_that_spins_on_the_clock_is_put_to_sleep(checkout: Checkout, tmp_path: Path) -> None:
    """Two seconds of reading the clock end two sleeps of 1 ms later at most; the cell's checks say that it spun."""
    script = written(tmp_path / "spins.py", SPINS)
    cell, _ = ran(checkout, tmp_path, "virtual", f'program = {{ sender = ["python3", "{script}"] }}')
    assert cell.outcome.outcome is Outcome.COMPLETED, cell.outcome
    assert 0 <= float((cell.root / "apps/own.sender.stdout").read_text()) <= 0.0022
    (check,) = [check for check in cell.environment["checks"] if check["check"] == "clock of own.sender"]
    assert check["ok"] and check["detail"].startswith("python3 read the clock without sleeping from ")


@pytest.mark.parametrize("protocol", ["tcp", "sctp", "udp"])
def test_iperf3_in_a_guest_on_the_wall_clock(checkout: Checkout, tmp_path: Path, protocol: str) -> None:
    cell = in_time(
        lambda place: ran(checkout, place, "guest", 'program = "iperf3"\nstop = "3 s"', protocol)[0], tmp_path
    )
    measured = load_run(cell.root.parents[1]).metrics("own")  # own.back has some bytes of its control connection
    said = cell.read("apps/own.sender.stdout")
    assert "error" not in said, said
    assert cell.read("apps/own.receiver.stdout")["start"]["accepted_connection"]
    end = said["end"]["sum"] if protocol == "udp" else said["end"]["sum_received"]
    assert end["seconds"] == pytest.approx(3, abs=0.5)
    if protocol == "udp":  # 1 Mbit/s of payload is iperf3's own default
        assert float(measured["throughput_bit_s"]) == pytest.approx(1e6, rel=0.1)
        return
    # iperf3 counts to its own end, which is some round trips after the flow's stop
    assert float(measured["payload_bytes"]) < end["bytes"] * 1.01
    assert float(measured["payload_bytes"]) > end["bytes"] * 0.6
    assert 0.3 < float(measured["utilization_ratio"]) <= 1.01


def test_a_program_that_fails_says_why(checkout: Checkout, tmp_path: Path) -> None:
    cell, _ = ran(checkout, tmp_path, "virtual", 'program = { sender = ["ping", "-I", "{to}", "{to}"] }', "icmp")
    assert cell.outcome.outcome is Outcome.FAILED
    assert cell.outcome.reason.startswith("own.sender ended with status 2: ping: ")


def test_iperf3_and_ping_side_by_side_in_namespaces(kernel: Path, checkout: Checkout, tmp_path: Path) -> None:
    beside = 'program = "iperf3"\nstop = "3 s"\n[flow.ping]\nlike = "own"\nprotocol = "icmp"\nprogram = "ping"\n'
    spec = written(tmp_path / "spec.toml", SPEC.format(protocol="tcp", program=beside))

    def play(place: Path) -> CellFiles:
        command = ("run", str(spec), "--backend", "netns", "--no-report", "--out", "/run/cell/run", "--json")
        return load_run(in_a_guest(kernel, checkout, place, *command).directory / "run").cell()

    cell = in_time(play, tmp_path)
    said = cell.read("apps/own.sender.stdout")
    assert "error" not in said, said
    # the two share a queue of 50 packets, which iperf3 may overflow: what ping lost is what the wire lost
    received = re.search(r"(\d+) received", (cell.root / "apps/ping.sender.stdout").read_text())
    assert received is not None
    (plain,) = (data for name, data in plain_captures(cell.root) if name.startswith("a-"))
    capture = tmp_path / "a.pcap"
    capture.write_bytes(plain)
    assert int(received[1]) == len(tshark([capture], tmp_path, ["icmp.seq"], "icmp.type == 0")) > 0


def test_ping_is_the_same_in_every_table_and_capture_of_two_runs(checkout: Checkout, tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        cell, _ = ran(checkout, tmp_path / name, "virtual", 'program = "ping"', "icmp")
        assert cell.outcome.outcome is Outcome.COMPLETED, cell.outcome
        series = cell.read("derived/series.json")["flows"]["own"]["paths"]["p1"]["throughput_bit_s"]
        assert sum(series) > 0
        captures = {path.name: path.read_bytes() for path in cell.captures("*")}
        found.append((captures, tables(tmp_path / name / "run"), (cell.root / "apps/own.sender.stdout").read_bytes()))
    assert found[0] == found[1]


SCTP_TEST = """\
[link.p1]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = "50 packets"
one_way_delay = "20 ms"
[link.p2]
like = "p1"
[flow.theirs]
from = "a"
to = "b"
protocol = "sctp"
paths = PATHS
[flow.theirs.program]
sender = [
    "sctp_test", "-s", "-H", "{from}", "-B{from_others}", "-P", "{port}",
    "-C{to_all}", "-p", "{port}", "-c", "5", "-x", "20",
]
receiver = ["sctp_test", "-l", "-H", "{to}", "-B{to_others}", "-P", "{port}"]
ready = "Receiving packets"
[event.down]
action = "link"
link = "p1"
end = { hop = "b" }
at = "10 s"
for = "40 s"
"""
SENT_BYTES = 20 * 10 * 32768
"""-x 20 times ten messages of case 5."""


def sctp_test_through_a_link_down(checkout: Checkout, place: Path, paths: str) -> tuple[CellFiles, dict[str, str]]:
    spec = HOSTS.format(name="sctp-test", duration="80 s") + SCTP_TEST.replace("PATHS", paths)
    run = checkout.run_spec(place, spec, "--no-report")
    return run.cell(), {row["metric"]: row["value"] for row in run.table("measurements")}


def test_sctp_software_of_the_distribution_fails_over(checkout: Checkout, tmp_path: Path) -> None:
    """lksctp-tools' sctp_test, told all addresses of both ends, through a link that goes down under it."""
    cell, measured = sctp_test_through_a_link_down(checkout, tmp_path, '["p1", "p2"]')
    assert float(measured["payload_bytes"]) == SENT_BYTES, "every byte, counted on the wire"
    # the primary's RTO (1 s at least, RFC 9260 16) and what is left of a round trip
    assert 1.0 < float(measured["first_retransmission_other_path_s"]) < 1.2
    assert 1.0 < float(measured["first_useful_arrival_other_path_s"]) < 1.5
    assert float(measured["outage_s"]) < 1.5
    paths = cell.read("derived/series.json")["flows"]["theirs"]["paths"]
    assert all(sum(paths[name]["throughput_bit_s"]) > 0 for name in ("p1", "p2"))
    # a program tells no notification, and nobody knows its socket options: no theory of them, and no zero
    assert {measured.get(name, "") for name in ("notification_time_s", "state_changes")} == {""}
    assert {value for name, value in measured.items() if name.startswith("theory_")} <= {""}


def test_over_one_path_the_same_program_waits_for_the_repair(checkout: Checkout, tmp_path: Path) -> None:
    _, measured = sctp_test_through_a_link_down(checkout, tmp_path, '["p1"]')
    assert float(measured["outage_s"]) > 40
    assert measured["first_useful_arrival_other_path_s"] == ""
