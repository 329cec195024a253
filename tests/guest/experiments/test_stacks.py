"""Stack profiles on the real kernel: what it reads back, and what its packets show."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.experiment.profiles import STACKS, names_in
from netwarp.experiment.sctp_sides import products
from support.chain_kit import Checkout

SPEC = """\
format = 1
name = "stacks"
duration = "60 s"
[node.a]
[node.b]
[link.l]
between = ["a", "b"]
rate = "2 Mbit/s"
queue = "100 packets"
one_way_delay = "50 ms"
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["l"]
bytes = "300 kB"
message_size = "1452 B"
[factor.stack]
usual = "today"
sets = ["node.a.stack", "node.b.stack"]
levels = ["today", "linux-2.6.6-like", "linux-2.6.10-like", "linux-2.6.32-like", "ns-2.29-like"]
[factor.protocol]
sets = "flow.f.protocol"
levels = ["tcp", "sctp"]
"""


@pytest.fixture(scope="module")
def measured(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, float]]:
    """Every cell completed: sysctls, routes and options were read back as asked."""
    place = tmp_path_factory.mktemp("stacks")
    (place / "spec.toml").write_text(SPEC)
    run = checkout.run_spec(place, place / "spec.toml", "--no-report")
    return {(levels["stack"], levels["protocol"]): metrics for levels, metrics in run.measured()}


def test_every_stack_has_a_level_here() -> None:
    assert all(f'"{name}"' in SPEC for name in names_in(STACKS) if name not in products())


def test_initial_windows(measured: dict[tuple[str, str], dict[str, float]]) -> None:
    windows = {stack: m["initial_window_packets"] for (stack, protocol), m in measured.items() if protocol == "tcp"}
    assert windows == {
        "today": 10,
        "linux-2.6.6-like": 3,
        "linux-2.6.10-like": 3,
        "linux-2.6.32-like": 3,
        "ns-2.29-like": 2,
    }


def test_acknowledgements(measured: dict[tuple[str, str], dict[str, float]]) -> None:
    per_ack = {place: m["data_packets"] / m["ack_packets"] for place, m in measured.items()}
    assert per_ack["ns-2.29-like", "tcp"] < 1.05, "an ACK a packet"
    assert per_ack["linux-2.6.6-like", "sctp"] < 1.1, "a SACK a packet"
    assert per_ack["today", "tcp"] > 1.1, "delayed but at the beginning of a connection"
    assert per_ack["today", "sctp"] > 1.5


def test_the_kernel_takes_the_settings_of_every_product(checkout: Checkout, tmp_path: Path) -> None:
    """As it connects and as it listens: what it does not take, or reads back otherwise, ends the cell."""
    levels = ", ".join(f'"{name}"' for name in products())
    text = SPEC.replace('"linux-2.6.10-like", "linux-2.6.32-like", "ns-2.29-like"', levels)
    run = checkout.run_spec(tmp_path, text, "--no-report", "--where", "protocol=sctp")
    assert {row["outcome"] for row in run.table("cells")} == {"COMPLETED"}
