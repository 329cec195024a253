"""`netwarp shell --backend guest` at a terminal: typing, Ctrl-C, the window's size, the end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cell_init_kit import MS, read_pcap
from support.chain_kit import STANDS, Checkout, nothing_left, written
from support.run_files import records

ANSWER_S = 300
ROWS, COLUMNS = 33, 101


class Terminal:
    """A terminal, and a netwarp that has it as its own."""

    def __init__(self, checkout: Checkout, place: Path, *arguments: object) -> None:
        self.ours, other = pty.openpty()
        self.resize(ROWS, COLUMNS)
        self.seen = b""
        self.process = subprocess.Popen(
            checkout.command("shell", *arguments), cwd=place,
            env=checkout.environment(place, TERM="xterm"), stdin=other, stdout=other, stderr=other,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        self.modes = termios.tcgetattr(other)
        self.other = other

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def until(self, pattern: str) -> str:
        """What was shown since the last call, up to the end of what fits; fails when it does not come."""
        end = time.monotonic() + ANSWER_S
        while (found := re.search(pattern.encode(), self.seen)) is None:
            assert select.select([self.ours], [], [], max(0.0, end - time.monotonic()))[0], self.seen
            try:
                self.seen += os.read(self.ours, 4096)
            except OSError:  # nobody has the other end any more
                pytest.fail(f"{pattern!r} never came: {self.seen!r}")
        shown, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return shown.decode()

    def status(self) -> int:
        """Its exit status."""
        return self.process.wait(ANSWER_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for descriptor in (self.ours, self.other):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def shell(checkout: Checkout, tmp_path: Path) -> Iterator[Terminal]:
    """A shell on node b, its prompt shown."""
    spec = written(tmp_path / "spec.toml", STANDS)
    terminal = Terminal(checkout, tmp_path, spec, "--backend", "guest", "--node", "b", "--out", tmp_path / "kept")
    try:
        terminal.until("this is b, `exit` takes it down")
        terminal.until("b# ")
        yield terminal
    finally:
        terminal.close()


def captured(place: Path) -> dict[str, dict[str, object]]:
    """The end records of the captures by file."""
    return {record["file"]: record for record in records(place / "init.ndjson") if record["record"] == "capture"}


def test_a_shell_on_a_node(shell: Terminal, tmp_path: Path) -> None:
    shell.type("ping -n -c 1 10.0.0.1\n")
    assert "1 received" in shell.until("packet loss")
    shell.type("echo node=$NETWARP_NODE at=$(pwd) uid=$(id -u)\n")
    assert f"at={tmp_path}" in shell.until("node=b at=.* uid=0")
    shell.type("ip netns exec p1.hop ip -brief link | wc -l\n")
    shell.until(r"[\r\n]3\r")
    # the size of the window, at first and when it changes
    shell.type("stty size\n")
    shell.until(rf"[\r\n]{ROWS} {COLUMNS}\r")
    shell.type("trap 'echo resized $(stty size)' WINCH\n")
    shell.until("b# ")
    shell.resize(44, 120)
    shell.type("stty size\n")
    shell.until("44 120\r")
    # Ctrl-C ends what runs in the shell, not the shell, nor netwarp
    # one process: between two bash itself gets the Ctrl-C, and loses it (24 of 300) or ends (2), with no netwarp about
    shell.type("sh -c 'echo begins; exec sleep 1000'; echo never\n")
    shell.until("[\r\n]begins\r")
    shell.type("\x03")
    shell.until("b# ")
    shell.type("echo still $((40 + 2))\n")
    assert "never" not in shell.until("still 42")
    shell.type("exit 7\n")
    shell.until("captures are kept in")
    assert shell.status() == 7
    assert termios.tcgetattr(shell.other)[:4] == shell.modes[:4], "the terminal is as it was"
    capture = tmp_path / "kept" / "capture" / "b-p1.pcap"
    times = [packet.t_ns for packet in read_pcap(capture)]
    assert len(times) == 2 and times[1] - times[0] >= 40 * MS
    assert captured(tmp_path / "kept")["capture/b-p1.pcap"]["bytes"] == capture.stat().st_size
    assert not (tmp_path / "kept" / "bin").exists()
    nothing_left(tmp_path)


def test_a_terminal_that_goes_away_ends_it_in_good_order(shell: Terminal, tmp_path: Path) -> None:
    shell.type("ping -n -c 1 10.0.0.1\n")
    shell.until("packet loss")
    os.close(shell.ours)  # the window is closed: netwarp gets SIGHUP
    assert shell.status() != 0
    capture = tmp_path / "kept" / "capture" / "b-p1.pcap"
    assert len(read_pcap(capture)) == 2
    assert captured(tmp_path / "kept")["capture/b-p1.pcap"]["bytes"] == capture.stat().st_size
    nothing_left(tmp_path)


def test_kill_9_leaves_nothing(shell: Terminal, tmp_path: Path) -> None:
    shell.type("sleep 1000\n")
    shell.until("1000")
    os.kill(shell.process.pid, signal.SIGKILL)
    assert shell.status() == -signal.SIGKILL
    shutil.rmtree(tmp_path / "kept" / ".uml")  # files of its own directory stay: nobody was left to tidy up
    nothing_left(tmp_path)


def test_a_command_on_a_terminal_and_its_status(checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", STANDS)
    place = tmp_path / "kept"
    words = ("--exec", "sh", "-c", "[ -t 0 ] && [ -t 1 ] && echo on a terminal; exit 5")
    terminal = Terminal(checkout, tmp_path, spec, "--backend", "guest", "--out", place, *words)
    try:
        terminal.until("on a terminal\r\n")
        terminal.until("captures are kept in")
        assert terminal.status() == 5
    finally:
        terminal.close()


def test_a_command_without_a_terminal(checkout: Checkout, tmp_path: Path) -> None:
    """Both outputs apart, byte for byte; a signal's status; the distribution's kernel would do as well."""
    spec = written(tmp_path / "spec.toml", STANDS)
    place = tmp_path / "kept"
    command = r"printf 'a\nb\0c'; echo apart >&2; [ -t 0 ] || kill -TERM $$"
    done = checkout.run(
        "shell", spec, "--backend", "guest", "--out", place, "--exec", "sh", "-c", command, cwd=tmp_path
    )
    assert done.status == 128 + signal.SIGTERM, done
    assert done.out == "a\nb\0c"
    assert done.err.startswith("apart\n")
    refused = checkout.run("shell", spec, "--backend", "guest", "--out", tmp_path / "none", cwd=tmp_path)
    assert refused.status == 2
    assert "wants a terminal" in refused.err
    missing = checkout.run(
        "shell", spec, "--backend", "guest", "--out", tmp_path / "x", "--exec", "no-such-program", cwd=tmp_path
    )
    assert missing.status == 127, missing
