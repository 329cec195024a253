"""ACK thinning: which acknowledgements pass, and when, predicted from those that were sent, over both families."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from support import cell_init_kit as kit
from support.chain_kit import Checkout, unpacked
from support.run_files import RunFiles
from support.specs import two_hosts

MS, US = 10**6, 10**3
DELAY, HOLD, EVERY = 10 * MS, 4 * MS, 4
NEAR = 10 * US
SPEC = two_hosts(
    'name = "thinning"\nduration = "4 s"',
    f'rate = "8 Mbit/s"\nqueue = "40 packets"\none_way_delay = "10 ms"\nbackward = {{ rate = "1 Gbit/s", '
    f'ack_thinning = {{ every = "{EVERY} packets", hold = "{HOLD // MS} ms" }} }}',
    """
[flow.f]
protocol = "tcp"
stop = "3 s"
[factor.family]
levels = ["ipv4", "ipv6"]
sets = "link.p1.family"
""",
)


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """A cell of each family."""
    return checkout.run_spec(tmp_path_factory.mktemp("thinning"), SPEC, "--no-report").completed()


def acks(capture: Path) -> list[tuple[int, int, bytes]]:
    """(ns, acknowledgement number, segment) of every packet from b whose only flag is ACK and which has no data."""
    plain = capture.with_suffix("")
    plain.write_bytes(unpacked(capture.read_bytes()))
    found = []
    for packet in kit.read_pcap(plain):
        data = packet.data
        six = data[12:14] == b"\x86\xdd"
        at, protocol = (54, data[20]) if six else (14 + 4 * (data[14] & 15), data[23])
        if protocol != 6:
            continue
        (source,), (number,), flags = (
            struct.unpack_from("!H", data, at), struct.unpack_from("!I", data, at + 8), data[at + 13]
        )  # fmt: skip
        if source == 5001 and flags == 0x10 and len(data) == at + 4 * (data[at + 12] >> 4):
            found.append((packet.t_ns, number, data[at:]))
    plain.unlink()
    return found


def is_newer(number: int, than: int) -> bool:
    """True if it acknowledges more."""
    return 0 < (number - than) % (1 << 32) < 1 << 31


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_each_fourth_passes_and_the_last_of_a_burst(run: RunFiles, family: str) -> None:
    cell = run.cell(family=family)
    (sender,), (receiver,) = (cell.captures(node, "p1") for node in "ba")
    (end,) = cell.init("end")
    sent = acks(sender)
    came = {segment: t_ns for t_ns, _, segment in acks(receiver)}
    newer = [
        next((at for at, number, _ in sent[place + 1 :] if is_newer(number, own)), 1 << 62)
        for place, (_, own, _) in enumerate(sent)
    ]
    newest, counted, late, gone, wrong = -1, 0, 0, 0, []
    releases: list[int] = []
    for (at, number, segment), next_at in zip(sent, newer, strict=True):
        while releases and releases[0] <= at:  # one that came through the line begins the count anew
            releases.pop(0)
            counted = 0
        due: int | None = at
        if newest < 0 or is_newer(number, newest):
            counted += newest >= 0
            if newest >= 0 and counted < EVERY:
                held = next_at > at + HOLD
                due = at + HOLD if held else None
                releases += [at + HOLD] * held
                late, gone = late + held, gone + (not held and at + HOLD < end["t_ns"])
            elif newest >= 0:
                counted = 0
            newest = number
        if at + DELAY + HOLD > end["t_ns"]:
            continue  # may still be under way
        got = came.get(segment)
        if (due is None) != (got is None) or (due is not None and got is not None and abs(got - due - DELAY) > NEAR):
            wrong.append((at, number, due, got))
    assert wrong == []
    assert late > 3
    assert gone > 500
    (program,) = cell.environment["network"]["packet_programs"]
    assert program["counts"]["thinned"] == gone
