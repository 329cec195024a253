"""cell-init's waits: by events, to the microsecond, and with a limit."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from netwarp.testbed import messages
from netwarp.testbed.messages import Device
from netwarp.testbed.steps import step
from support.cell_init_kit import MS, S, ending, fails, namespaces, netlink, opening, run_guest, tool, veth


def test_an_operstate_that_does_not_come(kernel: Path, tmp_path: Path) -> None:
    ends = [Device("p1", 10, ns, f"02:00:00:00:00:0{ns}") for ns in (0, 1)]
    steps = [
        *opening(), *namespaces("a", "b"), netlink(0, messages.veth(ends[0], ends[1], 1500, "b")),
        netlink(0, messages.set_link(Device("p1", 10), up=True)), step("operstate", ns=0, ifindex=10, timeout_ns=3 * S),
    ]  # fmt: skip
    end = fails(kernel, tmp_path, steps)
    assert re.fullmatch(r"interface 10 is not up after 3000000000 ns \(operstate \d\)", str(end["message"]))
    assert abs(int(str(end["t_ns"])) - (-7 * S)) < 100 * MS
    steps[-1] = step("operstate", ns=0, ifindex=99, timeout_ns=3 * S)
    assert f"(errno {errno.ENODEV})" in str(fails(kernel, tmp_path / "none", steps)["message"])


def test_an_operstate_that_comes_is_waited_for_by_event(kernel: Path, tmp_path: Path) -> None:
    """The kernel's link watch takes its time (up to a second); the wait ends with it."""
    steps = [*opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1), step("ready"), ending(S)]
    waited = run_guest(kernel, tmp_path, steps).completed().records("ready")[0]["waited_ns"]
    assert 8 * S < waited < 10 * S


def test_output_is_seen_as_it_is_written(kernel: Path, tmp_path: Path) -> None:
    """A text that comes in two writes, 3 s apart: the wait ends with the second one, to the microsecond."""
    steps = [
        *opening(), *namespaces("a"), tool("x", 0, "say", "now: listening here", 3 * S),
        step("output", id="x", text="listening", timeout_ns=5 * S), step("ready"), ending(S),
    ]  # fmt: skip
    waited = run_guest(kernel, tmp_path, steps).completed().records("ready")[0]["waited_ns"]
    assert 7 * S - 100 * MS < waited < 7 * S


def test_output_that_does_not_come(kernel: Path, tmp_path: Path) -> None:
    start = [*opening(), *namespaces("a")]
    quiet = [*start, tool("x", 0, "say", "ab", S), step("output", id="x", text="abc", timeout_ns=4 * S)]
    end = fails(kernel, tmp_path / "quiet", quiet)
    assert end["message"] == "apps/x.out: not written within 4000000000 ns"
    gone = [*start, tool("x", 0, "exit", 0, S), step("output", id="x", text="abc", timeout_ns=4 * S)]
    end = fails(kernel, tmp_path / "gone", gone)
    assert end["message"] == "x ended before it wrote 'abc'"
    assert abs(int(str(end["t_ns"])) - (-9 * S)) < 100 * MS


def test_a_file_is_waited_for(kernel: Path, tmp_path: Path) -> None:
    """`file` ends when something in the guest makes it."""
    make = step("spawn", id="sh", ns=0, stdout="o", stderr="e", arg=["/bin/sh", "-c", "sleep 2; echo x > made/it"])
    steps = [
        *opening(),
        *namespaces("a"),
        make,
        step("file", path="made/it", timeout_ns=5 * S),
        step("ready"),
        ending(S),
    ]
    waited = run_guest(kernel, tmp_path, steps).completed().records("ready")[0]["waited_ns"]
    assert 8 * S - 100 * MS < waited < 8 * S
    late = [*opening(), *namespaces("a"), step("file", path="made/it", timeout_ns=S)]
    assert fails(kernel, tmp_path / "late", late)["message"] == "made/it: not there within 1000000000 ns"
