"""Many flows in one process: `sender --flows FILE` and `receiver --flows FILE`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.apps_kit import WALL_LIMIT_S, free_ports, records, summary_of
from support.checkout import ROOT

PROGRAMS = ROOT / "build" / "bin"
"""Not the sanitised ones: ASan does not follow a program that changes its stack."""


def test_forty_flows_in_a_process_at_each_end(tmp_path: Path) -> None:
    """Each with a token, records and bytes of its own, both ways; more than the socket buffers hold."""
    ports = free_ports(40)
    receivers, senders = [], []
    for number, port in enumerate(ports):
        both = f"--port {port} --token {number + 1} --duplex --message-bytes 1000"
        receivers.append(f"{tmp_path}/{number}.receiver --protocol tcp --bind 127.0.0.1 {both} --total-bytes 700000\n")
        senders.append(
            f"{tmp_path}/{number}.sender --protocol tcp --to 127.0.0.1 {both} "
            f"--total-bytes {900_000 + number} --peer-total-bytes 700000\n"
        )
    (tmp_path / "r").write_text("".join(receivers))
    (tmp_path / "s").write_text("".join(senders))
    command = [str(PROGRAMS / "receiver"), "--flows", str(tmp_path / "r")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiving:
        assert receiving.stdout is not None
        assert '"listening"' in receiving.stdout.readline()
        sent = subprocess.run(
            [str(PROGRAMS / "sender"), "--flows", str(tmp_path / "s")], timeout=WALL_LIMIT_S, capture_output=True,
            text=True,
        )  # fmt: skip
        assert receiving.wait(WALL_LIMIT_S) == 0
    assert (sent.returncode, sent.stderr) == (0, "")
    for number in range(len(ports)):
        there = summary_of(records((tmp_path / f"{number}.receiver").read_text()))
        here = summary_of(records((tmp_path / f"{number}.sender").read_text()))
        assert (there["unique_bytes"], there["corrupt_bytes"]) == (900_000 + number, 0)
        assert (here["arrived"]["unique_bytes"], here["arrived"]["corrupt_bytes"]) == (700_000, 0)


@pytest.mark.parametrize("text", ["", "\n", "x --protocol tcp"])
def test_a_file_that_has_no_flows_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s").write_text(text)
    command = [str(PROGRAMS / "sender"), "--flows", str(tmp_path / "s")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
