"""netwarp's own UDP: losses, copies, order and delays of several flows between two hosts, against tshark's list of the
packets at both ends.
"""

from __future__ import annotations

import statistics
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from support.chain_kit import Checkout, two_hosts
from support.run_files import RunFiles

SPEC = two_hosts(
    """
[measure]
links = ["p1.forward"]
[flow.poisson]
like = "bulk"
messages = { gaps = { exponential = "15 ms" }, sizes = { uniform = ["60 B", "1400 B"] } }
[flow.back]
from = "b"
to = "a"
paths = ["p1"]
protocol = "udp"
bytes = "20 kB"
sender.interval = "10 ms"
""",
    name="datagrams",
    duration="6 s",
    delay="15 ms",
    link='loss = "3 %"\nduplicate = "3 %"\njitter = "12 ms"',
    flow='protocol = "udp"\nlate = "16 ms"\n'
    'messages = { gaps = "20 ms", sizes = "172 B", on = { exponential = "500 ms" }, off = { exponential = "500 ms" } }',
)
T0 = 1_700_000_000 * 10**9
PORTS = {"bulk": 5001, "poisson": 5002, "back": 5003}


@pytest.fixture(scope="module")
def done(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFiles]:
    yield checkout.run_spec(tmp_path_factory.mktemp("datagrams"), SPEC, "--no-report").completed()


def seen(run: RunFiles, node: str, port: int, tmp_path: Path) -> list[tuple[int, str, int]]:
    """(ns since 1970, payload's first 8 bytes, IP bytes) of the datagrams to a port, by tshark."""
    (packed,) = next(iter(run.cells.values())).captures(node)
    plain = tmp_path / f"{node}.pcap"
    plain.write_bytes(zstandard.ZstdDecompressor().stream_reader(packed.read_bytes()).read())
    command = ["tshark", "-n", "-r", str(plain), "-Y", f"udp.dstport == {port}", "-T", "fields", "-E", "separator=;"]
    fields = ["-e", "frame.time_epoch", "-e", "udp.payload", "-e", "ip.len", "-o", "udp.try_heuristic_first:FALSE"]
    text = subprocess.run([*command, *fields], check=True, capture_output=True, text=True).stdout
    rows = []
    for line in text.splitlines():
        time, payload, length = line.split(";")
        seconds, _, fraction = time.partition(".")
        rows.append((int(seconds) * 10**9 + int(fraction.ljust(9, "0")), payload.replace(":", "")[:16], int(length)))
    return rows


@pytest.mark.parametrize("flow", ["bulk", "poisson", "back"])
def test_the_numbers_are_what_a_plain_loop_makes_of_tsharks_words(done: RunFiles, flow: str, tmp_path: Path) -> None:
    ends = ("b", "a") if flow == "back" else ("a", "b")
    sent, came = (seen(done, node, PORTS[flow], tmp_path) for node in ends)
    left = {head: (at, number) for number, (at, head, _) in enumerate(sent)}
    assert len(left) == len(sent) > 10, "each datagram has a number of its own"
    first: dict[str, int] = {}
    highest, reordered = -1, 0
    for at, head, _ in came:
        if head in first:
            continue
        first[head] = at
        reordered += left[head][1] < highest
        highest = max(highest, left[head][1])
    delays = [first[head] - at for head, (at, _) in left.items() if head in first]
    ((_, measured),) = done.measured(flow)
    assert measured["lost_datagrams"] == len(left) - len(first)
    assert measured["datagram_loss_ratio"] == pytest.approx(1 - len(first) / len(left))
    assert measured["repeated_datagrams"] == len(came) - len(first)
    assert measured["reordered_datagrams"] == reordered
    by_the_end = [row for row in came if row[0] <= T0 + 6 * 10**9]
    assert measured["packets"] == len(by_the_end)
    assert measured["wire_bytes"] == sum(length for _, _, length in by_the_end)
    assert measured["payload_bytes"] == sum({head: length - 28 for _, head, length in by_the_end}.values())
    assert measured["one_way_delay_min_s"] == pytest.approx(min(delays) / 1e9, abs=1e-9)
    assert measured["one_way_delay_max_s"] == pytest.approx(max(delays) / 1e9, abs=1e-9)
    assert measured["one_way_delay_mean_s"] == pytest.approx(statistics.fmean(delays) / 1e9, abs=1e-9)
    assert measured["one_way_delay_p95_s"] == pytest.approx(sorted(delays)[-(-95 * len(delays) // 100) - 1] / 1e9)
    jitter, total, before = 0.0, 0.0, None
    for head, at in first.items():
        delay = at - left[head][0]
        if before is not None:
            jitter += (abs(delay - before) - jitter) / 16
            total += jitter
        before = delay
    assert measured["jitter_s"] == pytest.approx(total / (len(first) - 1) / 1e9)
    if flow == "bulk":
        late = sum(first.get(head, at + 10**12) - at > 15_999_000 for head, (at, _) in left.items())
        assert measured["late_messages"] == pytest.approx(late, abs=1), "counted from the instant they were due"


def test_flows_between_two_hosts_are_told_apart_on_links_too(done: RunFiles) -> None:
    lost = 0.0
    for flow in PORTS:
        ((_, measured),) = done.measured(flow)
        assert measured["lost_packets"] == measured["lost_datagrams"]
        assert measured["loss_ratio"] == pytest.approx(measured["datagram_loss_ratio"])
        lost += measured["lost_packets"] * (flow != "back")
    ((_, measured),) = done.measured("p1.forward")
    assert measured["lost_packets"] == lost


def test_what_was_configured_happened(done: RunFiles) -> None:
    """3 % of losses and copies, within five standard errors over both of a's flows together."""
    counts = Counter[str]()
    for flow in ("bulk", "poisson"):
        ((_, measured),) = done.measured(flow)
        counts["lost"] += round(measured["lost_datagrams"])
        counts["sent"] += round(measured["messages"])
        counts["again"] += round(measured["repeated_datagrams"])
    error = 5 * (0.03 * 0.97 / counts["sent"]) ** 0.5
    assert counts["lost"] / counts["sent"] == pytest.approx(0.03, abs=error)
    assert counts["again"] / counts["sent"] == pytest.approx(0.03, abs=error)
