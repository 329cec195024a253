"""Laws that everybody knows, in a few cells of experiments/physics: those that are no matter of chance hold exactly,
those that are hold within three standard errors of the seeds run here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean, stdev

import pytest
from netwarp.captures import read_captures
from support.chain_kit import Checkout
from support.checkout import ROOT
from support.run_files import CellFiles, RunFiles

SPEC = ROOT / "experiments" / "physics" / "spec.toml"
SENDER = "10.0.0.1"
Run = Callable[..., RunFiles]
Cells = dict[tuple[str, ...], list[dict[str, float]]]


@pytest.fixture
def run(checkout: Checkout, tmp_path: Path) -> Run:
    """Run cells of one experiment."""

    def start(experiment: str, *arguments: object) -> RunFiles:
        return checkout.run_spec(tmp_path, SPEC, "--only", experiment, *arguments, "--jobs", "1", "--no-report")

    return start


def cells(run: RunFiles, *factors: str) -> Cells:
    """The flow's metrics of every cell, by its levels of some factors."""
    found: Cells = {}
    for row, metrics in run.measured():
        found.setdefault(tuple(row[factor] for factor in factors), []).append(metrics)
    return found


def test_a_queue_is_lindleys_packet_by_packet_and_no_packet_is_unaccounted_for(run: Run) -> None:
    done = run("queue", "--where", "queue=10 packets", "--where", "queue=42 packets", "--set", "duration=12 s")
    found = cells(done, "transport", "queue")
    assert len(found) == 4
    for (_, queue), (one,) in found.items():
        assert one["queue_error_s"] <= 2e-6
        assert one["queue_drop_errors"] == 0
        assert one["queue_drops"] >= 20  # or nothing was asked of the queue
        assert -1 <= one["queue_wait_max_s"] * 10e6 / 12000 - int(queue.split()[0]) <= 0.01
    for cell in done.cells.values():
        assert_conserved(cell)


def assert_conserved(cell: CellFiles) -> None:
    """At the hop: what came from one host = what went to the other + what the qdiscs dropped + what they still hold."""
    dumps = cell.environment["network"]["qdiscs"]
    last = [dump["qdiscs"] for dump in dumps if dump["namespace"] == "p1.hop"][-1]
    back, forth = sorted((one for one in last if one["netem"] and one["parent"] is None), key=lambda q: q["ifindex"])
    (sent, returned), (arrived, answered) = (seen(cell, node) for node in "ab")
    for came, went, qdisc in ((sent, arrived, forth), (answered, returned, back)):
        assert went == qdisc["sent_packets"] > 100
        assert came == went + qdisc["dropped_packets"] + qdisc["queued_packets"]


def seen(cell: CellFiles, node: str) -> tuple[int, int]:
    """Packets of a host's capture: from a, and to it."""
    capture = read_captures(cell.captures(node, "p1"))
    found = [0, 0]
    for row, path in enumerate(capture.paths):
        flip = capture.address(row, 0) != SENDER
        for direction in (0, 1):
            found[direction ^ flip] += int(path["packets"][direction])
    return found[0], found[1]


def test_slow_start_doubles_for_tcp_and_grows_by_half_for_sctp(run: Run) -> None:
    found = cells(run("start"), "transport")
    assert found["tcp",][0]["slow_start_growth_ratio"] == pytest.approx(2, abs=0.001)
    assert found["sctp",][0]["slow_start_growth_ratio"] == pytest.approx(1.5, abs=0.035)


def test_a_window_is_what_a_round_trip_carries(run: Run) -> None:
    where = ("--where", "window=8 KiB", "--where", "window=64 KiB")
    for (transport, _), (one,) in cells(run("window", *where), "transport", "window").items():
        assert one["goodput_bit_s"] < one["window_ceiling_bit_s"]
        if transport == "tcp":  # SCTP's cwnd stops short of the window: docs/physics.md
            assert one["goodput_bit_s"] > one["window_floor_bit_s"]


def test_timeouts_double(run: Run) -> None:
    for one in cells(run("backoff", "--repetitions", "2"), "transport")["tcp",]:
        assert one["backoff_timeouts"] >= 8
        assert one["backoff_outside"] == 0
        assert 1.7 < one["backoff_ratio_min"] <= 2 <= one["backoff_ratio_max"] < 2.3


def test_rate_is_as_the_root_of_losses_and_the_round_trip(run: Run) -> None:
    """p about 0.003, four seeds: between the sawtooth of periodic losses and C = 1.31 of independent ones."""
    done = run("loss", "--where", "loss=0.3 %", "--repetitions", "4")
    for (transport,), found in cells(done, "transport").items():
        for one in found:  # SCTP sends a chunk again once; where that copy is lost too it waits for T3
            assert one["loss_events"] > 20 and one.get("timeouts", one.get("t3_expiries", 0)) <= 2
        least, error = _ratio(found, "sawtooth_bit_s")
        assert least + 3 * error > 1, transport
        most, error = _ratio(found, "mathis_random_bit_s")
        assert most - 3 * error < 1, transport
        delayed, error = _ratio(found, "pftk_delayed_bit_s")
        assert delayed - 3 * error > 1.2, transport  # windows grow by what is acknowledged, not by ACKs
        assert max(least, 1 / most) < 1.15  # the two bounds are that near, so this decides


def _ratio(found: list[dict[str, float]], model: str) -> tuple[float, float]:
    """Mean of measured / model over the seeds, and its standard error."""
    ratios = [_over(one, model) for one in found]
    return mean(ratios), stdev(ratios) / math.sqrt(len(ratios))


def _over(one: Mapping[str, float], model: str) -> float:
    return one["steady_sent_bit_s"] / one[model]
