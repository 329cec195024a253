"""A guest's console: its last lines, and the kernel's reports of its own faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.store.console import SPLAT_LINES, console_tail, kinds, splats


def console(tmp_path: Path, text: str) -> Path:
    (tmp_path / "console.txt").write_text(text)
    return tmp_path / "console.txt"


HEADLINES = {
    "panic": "Kernel panic - not syncing: Segfault with no mm",
    "kasan": "BUG: KASAN: slab-use-after-free in tcp_ack+0x1f/0x200",
    "ubsan": "UBSAN: array-index-out-of-bounds in net/sctp/x.c:3:4",
    "atomic": "BUG: sleeping function called from invalid context at include/linux/sched/mm.h:321",
    "rcu": "WARNING: suspicious RCU usage",
    "lockdep": "WARNING: possible circular locking dependency detected",
    "leak": "unreferenced object 0x62a7b000 (size 192):",
    "hung task": "INFO: task kworker/0:1:12 blocked for more than 120 seconds.",
    "reference": "unregister_netdevice: waiting for lo to become free. Usage count = 2",
    "slab": "BUG kmalloc-128 (Not tainted): Poison overwritten",
    "bug": "BUG: Bad page state in process sender  pfn:0a1b2",
    "warning": "WARNING: CPU: 0 PID: 31 at net/ipv4/tcp_input.c:3 tcp_ack+0x1/0x2",
}


def test_every_kind_has_a_headline_here() -> None:
    assert HEADLINES.keys() == set(kinds())


@pytest.mark.parametrize(("kind", "line"), HEADLINES.items())
@pytest.mark.parametrize("time", ["", "[   12.345678] ", "[   12.345678][    T7] "])
def test_a_headline_is_known_with_and_without_its_time(tmp_path: Path, kind: str, line: str, time: str) -> None:
    (splat,) = splats(console(tmp_path, f"@2\n{time}======================\n{time}{line}\n{time}next\n@3\n@4\n"))
    assert (splat.kind, splat.line, splat.text, splat.mark_s) == (kind, line, (line, "next"), 2)
    assert splat.boot_s == (12.345678 if time else None)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("rcu", "rcu: INFO: rcu_sched self-detected stall on CPU"),
        ("bug", "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sender:31]"),
    ],
)
def test_a_headline_has_the_name_of_the_part_that_reports(tmp_path: Path, kind: str, line: str) -> None:
    (splat,) = splats(console(tmp_path, f"[   12.345678] {line}\n"))
    assert (splat.kind, splat.line) == (kind, line)


@pytest.mark.parametrize(
    "line",
    [
        "[    1.000000] TCP: request_sock_TCP: Possible SYN flooding on port 5001. Sending cookies.",
        "[    1.000000] a WARNING: of no importance",
        "cell-init: BUG: not the kernel's",
        "[    1.000000] kmemleak: 1 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    ],
)
def test_other_lines_are_no_reports(tmp_path: Path, line: str) -> None:
    assert splats(console(tmp_path, f"@1\n{line}\n[   20.010000] reboot: Power down\n")) == ()
    assert splats(tmp_path / "none.txt") == ()


def test_one_report_ends_where_the_next_begins(tmp_path: Path) -> None:
    text = "".join(f"[   11.00000{at}] {line}\n" for at, line in enumerate([*HEADLINES.values()][:9]))
    found = splats(console(tmp_path, text + "[   11,1] no time\n---[ end trace 0000 ]---\nafter\n"))
    assert [splat.kind for splat in found] == list(HEADLINES)[:9]
    assert found[-1].text[1:] == ("[   11,1] no time",)
    assert "after" not in found[-1].text


def test_the_tail_is_the_report_or_the_last_lines_without_times(tmp_path: Path) -> None:
    lines = "".join(f"[    1.{n:06d}] line {n}\n@{n}\n" for n in range(20))
    quiet = console(tmp_path, lines + "[   20.060000] reboot: Power down\n")
    assert console_tail(quiet, 2) == ("line 18", "line 19")
    loud = console(tmp_path, "[    2.000000] WARNING: CPU: 0 PID: 1 at x.c:1 f+0x1/0x2\n" + lines.replace("@", "at "))
    assert len(console_tail(loud)) == SPLAT_LINES
    assert console_tail(loud)[:2] == ("WARNING: CPU: 0 PID: 1 at x.c:1 f+0x1/0x2", "line 0")


def test_a_fingerprint_is_the_stack_without_the_reporter(tmp_path: Path) -> None:
    report = """\
[   11.500000] BUG: KASAN: slab-use-after-free in planted+0x83/0x200
[   11.500000] Call Trace:
[   11.500000]  [<60a1b2c3>] ? show_stack+0x1/0x2
[   11.500000]  [<60a1b2c3>] dump_stack_lvl+0x1/0x2
[   11.500000]  [<60a1b2c3>] print_report+0x1/0x2
[   11.500000]  [<60a1b2c3>] ? of_no_importance+0x1/0x2
[   11.500000]  [<60a1b2c3>] planted+0x83/0x200
[   11.500000]  [<60a1b2c3>] tcp_retransmit_timer+0x3/0x4
"""
    (splat,) = splats(console(tmp_path, report))
    assert splat.fingerprint == "planted:tcp_retransmit_timer"


RECORDED = {
    "kasan": ("kasan", "BUG: KASAN: slab-use-after-free in planted"),
    "atomic": ("lockdep", "WARNING: inconsistent lock state"),
    "lockdep": ("lockdep", "WARNING: possible circular locking dependency detected"),
    "rcu": ("rcu", "WARNING: suspicious RCU usage"),
    "leak": ("leak", "unreferenced object 0x"),
    "ubsan": ("ubsan", "UBSAN: array-index-out-of-bounds in net/ipv4/tcp_timer.c"),
    "hung-task": ("hung task", "INFO: task kworker/0:1"),
    "warning": ("warning", "WARNING: CPU: 0 PID: 0 at net/ipv4/tcp_timer.c"),
    "bug": ("bug", "BUG: failure at net/ipv4/tcp_timer.c"),
    "panic": ("panic", "Kernel panic - not syncing: Segfault with no mm"),
}
"""Consoles of a debug kernel of Linux 6.12.117 with benchmarks/debug/planted.patch, recorded from the mark before the
first report on: its kind and the beginning of its headline.
"""


@pytest.mark.parametrize(("name", "kind", "line"), [(name, *said) for name, said in RECORDED.items()])
def test_reports_of_a_real_kernel_are_read(name: str, kind: str, line: str) -> None:
    found = splats(Path(__file__).parents[2] / "data" / "consoles" / f"{name}.txt")
    assert found[0].kind == kind and found[0].line.startswith(line)
    assert found[0].boot_s is not None and found[0].boot_s > 16
    stacks = [splat.fingerprint for splat in found]
    if name not in ("hung-task", "panic", "bug"):  # its task's own stack; no frame of the fault's own
        assert any("planted" in stack for stack in stacks), stacks
    if name == "atomic":
        assert [splat.kind for splat in found] == ["lockdep", "atomic"]
        assert found[1].line.startswith("BUG: sleeping function called from invalid context")
