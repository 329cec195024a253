"""More flows than have a process each: one process carries those of a host and role."""

from __future__ import annotations

from pathlib import Path

from support.chain_kit import Checkout, two_hosts

COUNT = 70
SPEC = two_hosts(
    name="many",
    duration="4 s",
    rate="100 Mbit/s",
    queue="500 packets",
    flow=f'count = {COUNT}\nbytes = "20 kB"\nreverse = {{ gaps = "20 ms", sizes = "100 B", bytes = "500 B" }}',
)


def test_seventy_flows_share_two_processes_and_are_measured_each(checkout: Checkout, tmp_path: Path) -> None:
    run = checkout.run_spec(tmp_path, SPEC, "--no-report").completed()
    (cell,) = run.cells.values()
    steps = (cell.root / "steps.txt").read_text()
    assert steps.count("bin/sender") == steps.count("bin/receiver") == 1
    received = {
        row["flow"]: float(row["value"]) for row in run.table("measurements") if row["metric"] == "payload_bytes"
    }
    assert {name: bytes_ for name, bytes_ in received.items() if name.startswith("bulk") and name != "bulk"} == {
        **{f"bulk{number}": 20_000.0 for number in range(1, COUNT + 1)},
        **{f"bulk{number}.back": 500.0 for number in range(1, COUNT + 1)},
    }
