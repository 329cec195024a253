"""Messages in both directions of one connection: when they left and what became of them, against tshark and the lists
that the plan drew.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zstandard
from netwarp.core.types import Cell, Flow, reversed_flow
from netwarp.testbed.layout import make_layout
from netwarp.testbed.message_files import rows_of
from support.chain_kit import Checkout, two_hosts
from support.run_files import RunFiles

SPEC = two_hosts(
    """
[factor.protocol]
levels = ["tcp", "mptcp", "sctp"]
sets = "flow.bulk.protocol"
[factor.pattern]
levels = ["signalling", "requests"]
[factor.pattern.level.signalling.flow.bulk]
messages = { gaps = { exponential = "50 ms" }, sizes = "100 B" }
reverse = { gaps = { exponential = "50 ms" }, sizes = { uniform = ["60 B", "300 B"] } }
[factor.pattern.level.requests.flow.bulk]
messages = { think = { exponential = "60 ms" }, sizes = "100 B" }
reverse = { think = "5 ms", sizes = { pareto = { least = "1 kB", shape = "1.3" } } }
""",
    name="messages",
    duration="8 s",
    delay="10 ms",
    flow='sender.nodelay = true\nreceiver.nodelay = true\nlate = "20 ms"',
)
MARGIN_NS = 20_000
"""From an instant to its packet in a capture: a program wakes 1 us after the instant, and reads clocks."""


@pytest.fixture(scope="module")
def done(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFiles]:
    yield checkout.run_spec(tmp_path_factory.mktemp("messages"), SPEC, "--no-report")


def payloads(run: RunFiles, cell: Cell, node: str, source: str, tmp_path: Path) -> list[tuple[int, int]]:
    """(ns from T0, payload bytes) of the packets with data that a capture has from a host, by tshark."""
    packed = (run.root / "cells" / cell.id / "capture" / f"{node}-p1.pcap.zst").read_bytes()
    plain = tmp_path / f"{node}.pcap"
    plain.write_bytes(zstandard.ZstdDecompressor().stream_reader(packed).read())
    sctp = cell.flows[0].protocol == "sctp"
    fields = ["frame.time_epoch", "sctp.chunk_length" if sctp else "tcp.len"]
    shown = f"ip.src == {source} && " + ("sctp.data_tsn" if sctp else "tcp.len > 0")
    command = ["tshark", "-n", "-r", str(plain), "-Y", shown, "-T", "fields", "-E", "separator=;"]
    text = subprocess.run([*command, *(word for field in fields for word in ("-e", field))], check=True, text=True,
                          capture_output=True).stdout  # fmt: skip
    found = []
    for line in text.splitlines():
        time, lengths = line.split(";")
        seconds, _, fraction = time.partition(".")
        size = max(int(length) for length in lengths.split(",")) - (16 if sctp else 0)
        found.append(((int(seconds) - 1_700_000_000) * 10**9 + int(fraction.ljust(9, "0")), size))
    return found


def cell_of(run: RunFiles, protocol: str, pattern: str) -> Cell:
    return run.completed().cell(protocol=protocol, pattern=pattern).cell


def values(run: RunFiles, cell: Cell, flow: str) -> dict[str, float | None]:
    rows = (row for row in run.table("measurements") if row["cell_id"] == cell.id and row["flow"] == flow)
    return {row["metric"]: float(row["value"]) if row["value"] else None for row in rows}


def source_of(cell: Cell, flow: Flow) -> str:
    """The address of a flow's sender."""
    return make_layout(cell).interface(flow.sender, "p1").ip


@pytest.mark.parametrize("protocol", ["tcp", "mptcp", "sctp"])
def test_both_ends_send_what_was_drawn_when_it_was_drawn(done: RunFiles, protocol: str, tmp_path: Path) -> None:
    """Each message leaves as a packet of its own within microseconds of its instant, and takes the link's delay and its
    own sending time (tshark's times and lengths).
    """
    cell = cell_of(done, protocol, "signalling")
    for flow in (cell.flows[0], reversed_flow(cell.flows[0])):
        sent = payloads(done, cell, flow.sender, source_of(cell, flow), tmp_path)
        rows = rows_of(cell, flow)
        left_out = len(rows) - len(sent)
        assert 0 <= left_out <= 3, "only what was due before the connection was up"
        late = np.array([at for at, _ in sent]) - np.array([at for at, _, _ in rows[left_out:]])
        assert (late >= 0).all()
        assert late.max() < MARGIN_NS
        assert [size for _, size in sent] == [size for _, size, _ in rows[: len(sent)]], "sizes are never left out"
        measured = values(done, cell, flow.name)
        assert measured["messages"] == len(sent)
        assert 0.010 < (measured["message_delay_p50_s"] or 0) < 0.012
        arrived = payloads(done, cell, flow.receiver, source_of(cell, flow), tmp_path)
        delays = np.array([at for at, _ in arrived]) - np.array([at for at, _, _ in rows[left_out:]])[: len(arrived)]
        assert measured["longest_message_delay_s"] == pytest.approx(delays.max() / 1e9, abs=1e-9)
        assert measured["message_delay_mean_s"] == pytest.approx(delays.mean() / 1e9, abs=1e-9)
        assert measured["late_messages"] == (delays > 20_000_000).sum() == 0


@pytest.mark.parametrize("protocol", ["tcp", "sctp"])
def test_a_request_waits_for_its_answer_and_the_time_to_think(done: RunFiles, protocol: str, tmp_path: Path) -> None:
    cell = cell_of(done, protocol, "requests")
    asks, answers = cell.flows[0], reversed_flow(cell.flows[0])
    sent = payloads(done, cell, "a", source_of(cell, asks), tmp_path)
    came = payloads(done, cell, "a", source_of(cell, answers), tmp_path)
    thinks, sizes = [at for at, _, _ in rows_of(cell, asks)], [size for _, size, _ in rows_of(cell, answers)]
    whole = np.cumsum([size for _, size in came])
    assert len(sent) > 40
    for number in range(1, len(sent) - 1):
        last = int(np.searchsorted(whole, sum(sizes[:number])))
        assert 0 <= sent[number][0] - came[last][0] - thinks[number] < 300_000, (
            "answers of several packets are read late"
        )
    measured = values(done, cell, "bulk")
    assert measured["messages"] == len(sent)
    assert (measured["message_delay_p50_s"] or 0) == pytest.approx(0.010 + 0.0006, abs=0.0006)
    back = values(done, cell, "bulk.back")
    assert len(sent) - 1 <= (back["messages"] or 0) <= len(sent)
