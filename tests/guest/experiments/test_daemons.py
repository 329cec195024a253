"""experiments/daemons and experiments/usrsctp in guests: a packaged daemon whose host restarts, and usrsctp beside the
kernel.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.captures.sctp.settings import infer_settings
from netwarp.core.unpacked import UNPACKED_PACKAGES
from support.chain_kit import Checkout
from support.chain_packets import Frame, frames, from_host
from support.checkout import ROOT
from support.run_files import RunFiles

S = 1_000_000_000
FAULT, UP = 20 * S, 30 * S
# experiments/daemons/spec.toml
NEAR = 1_000_000
INIT, INIT_ACK = 1, 2
KERNEL = {"heartbeat_interval": 30.0, "sack_delay": 0.2, "rto_min": 1.0, "rto_initial": 3.0}
# net/sctp/protocol.c: osmo-stp sets none of them


def ran(checkout: Checkout, place: Path, experiment: str, program: str, *given: str) -> RunFiles:
    if not (UNPACKED_PACKAGES / "usr/bin" / program).exists():
        pytest.skip(f"{program} is not unpacked: make programs")
    return checkout.run_spec(
        place, ROOT / "experiments" / experiment / "spec.toml", "--no-report", "--repetitions", "1", *given
    )


def test_a_daemon_restarts_with_its_host(checkout: Checkout, tmp_path: Path) -> None:
    """Its host is silent, knows nothing afterwards, and the same program is there again for a new association.

    Which packet reaches the host first afterwards, and so whether it has to abort the old association (RFC 9260, 8.4),
    is the daemons' affair: they draw from what differs between machines. Nothing but an ABORT goes on with it.
    """
    fault = "fault=server's host restarts"
    run = ran(checkout, tmp_path, "daemons", "osmo-stp", "--where", "program=osmo-stp", "--where", fault)
    cell = run.cell()
    ((_, metrics),) = run.measured("signalling")
    assert metrics["associations"] == 2
    old: set[int] = set()
    after: list[Frame] = []
    for link in ("p1", "p2"):
        (capture,) = cell.captures("b", link)
        sent = from_host("b", frames(capture))
        assert not [frame for frame in sent if FAULT + NEAR < frame.t_ns < UP]
        old |= {frame.tag for frame in sent if frame.t_ns < FAULT and frame.tag}
        after += [frame for frame in sent if frame.t_ns > UP]
    assert old and after
    assert not [frame for frame in after if frame.tag in old]
    assert [frame for frame in after if INIT_ACK in frame.chunks or INIT in frame.chunks]
    (again,) = (cell.root / "apps").glob("signalling.receiver.2.stderr")
    assert again.read_text()
    capture = read_captures([path for node in "a" for link in ("p1", "p2") for path in cell.captures(node, link)])
    for flow in range(len(capture.flows)):
        for known in infer_settings(capture, flow):
            value = KERNEL.get(known.name)
            assert value is None or (known.low or 0) <= value <= (known.high or value), known


@pytest.mark.parametrize(("sender", "receiver"), [("usrsctp", "kernel"), ("kernel", "usrsctp")])
def test_usrsctp_and_the_kernel_understand_each_other(
    checkout: Checkout, tmp_path: Path, sender: str, receiver: str
) -> None:
    """Over UDP (RFC 6951), without a fault."""
    given = ("--where", f"sender={sender}", "--where", f"receiver={receiver}", "--where", "fault=none")
    run = ran(checkout, tmp_path, "usrsctp", "sctp-peer", *given)
    ((_, metrics),) = run.measured("messages")
    assert metrics["associations"] == 1 and metrics["retransmitted_packets"] == 0
    assert metrics["data_chunks"] > 400  # a message every 300 ms for 150 s
    assert metrics["chunks_per_packet_ratio"] == 1
