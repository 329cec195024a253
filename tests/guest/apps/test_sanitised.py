"""The apps under UBSan and valgrind in guests, where the protocols are (ASan cannot run there: 39-bit addresses)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from netwarp.core.executables import find_executable
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Event
from netwarp.testbed.steps import Step
from support.apps_lab import FLOW, MS, Options, S, make_cell, run

LOSSY = LinkImpairment(one_way_delay_ns=10 * MS, rate_bit_s=5_000_000, queue_packets=100, loss_ratio=0.01)

KNOBS: Options = {
    "rto_min_ns": 200 * MS, "rto_initial_ns": 500 * MS, "path_max_retrans": 3, "pf_retrans": 1, "ps_retrans": 2,
    "heartbeat_interval_ns": S, "sack_frequency": 1, "max_burst": 2, "path_mtu_bytes": 1000, "streams": 3,
    "scheduler": "wfq", "stream_values": "1,2,3", "unordered": True, "ppid": 60, "max_retransmissions": 9,
    "interval_ns": 40 * MS, "burst_bytes": "700,1,2000",
}  # fmt: skip

VALGRIND = (
    "/usr/bin/valgrind",
    "--error-exitcode=9",
    "--leak-check=full",
    "--show-leak-kinds=all",
    "--errors-for-leak-kinds=all",
    "--track-fds=yes",
)


@pytest.mark.parametrize("protocol", ["tcp", "sctp", "mptcp"])
@pytest.mark.parametrize("end", ["stop", "total"])
def test_no_undefined_behaviour(kernel: Path, tmp_path: Path, protocol: str, end: str) -> None:
    sctp = protocol == "sctp"
    cell = make_cell(
        protocol,
        shape=LOSSY,
        paths=2 if sctp else 1,
        duration_ns=60 * S,
        stop_ns=15 * S if end == "stop" else None,
        total_bytes=400_000 if end == "total" else None,
        message_bytes=700,
        sysctls={"net.sctp.pf_expose": "2"},
        sender={"sample_interval_ns": 100 * MS, "stall_deadline_ns": 50 * S, **({"streams": 5} if sctp else {})},
        receiver={"window_clamp_bytes": 65_700} if protocol == "tcp" else {},
        switches=[(8 * S, "p2")] if sctp else [],
        timeline=[Event(9 * S, "hole", "cut", "p1"), Event(10 * S, "hole", "repair", "p1")],
    )
    done = run(kernel, tmp_path, cell, kind="ubsan").well()
    assert done.got["corrupt_bytes"] == 0
    if end == "total":
        assert done.got["unique_bytes"] == 400_000
    else:
        assert done.got["unique_bytes"] > 400_000


def test_no_undefined_behaviour_with_every_knob(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell(
        "sctp", shape=LOSSY, paths=2, duration_ns=20 * S, stop_ns=15 * S, message_bytes=2000, sender=KNOBS,
        receiver={"sack_delay_ns": 30 * MS, "sack_frequency": 4, "no_heartbeats": True},
        timeline=[Event(5 * S, "hole", "cut", "p1"), Event(8 * S, "hole", "repair", "p1")],
    )  # fmt: skip
    done = run(kernel, tmp_path, cell, kind="ubsan").well()
    assert done.got["corrupt_bytes"] == 0
    assert done.got["unique_bytes"] > 500_000


def under_valgrind(item: Step) -> Step:
    """The same program, below valgrind."""
    if item.verb != "spawn":
        return item
    (program, *rest) = [value for key, value in item.fields if key == "arg"]
    role = next(value for key, value in item.fields if key == "id").removeprefix(f"{FLOW}.")
    words = [*VALGRIND, f"--log-file=apps/{role}.valgrind", program, *rest]
    fields = [(key, value) for key, value in item.fields if key != "arg"]
    # its own files go where the guest may write
    return replace(item, fields=(*fields, ("env", "TMPDIR=/run/cell/apps"), *(("arg", word) for word in words)))


@pytest.mark.parametrize("protocol", ["sctp", "mptcp"])
def test_no_wrong_access_and_no_leak(kernel: Path, tmp_path: Path, protocol: str) -> None:
    assert find_executable("valgrind") == "/usr/bin/valgrind"
    cell = make_cell(
        protocol,
        shape=LOSSY,
        paths=2 if protocol == "sctp" else 1,
        duration_ns=20 * S,
        start_ns=1 * S,
        total_bytes=100_000,
        message_bytes=700,
        sender={"sample_interval_ns": 100 * MS, **(KNOBS if protocol == "sctp" else {})},
    )
    done = run(kernel, tmp_path, cell, kind="dynamic", change=under_valgrind).well()
    assert done.got["unique_bytes"] == 100_000
    for role in ("sender", "receiver"):
        assert "ERROR SUMMARY: 0 errors" in (tmp_path / "apps" / f"{role}.valgrind").read_text()
