"""The times in a cell: T0, the timeline, the end, deadlines."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.testbed import messages
from netwarp.testbed.messages import Device
from netwarp.testbed.steps import Step, step
from support.cell_init_kit import (
    MS,
    T0,
    S,
    capture,
    delay,
    ending,
    namespaces,
    netlink,
    opening,
    run_guest,
    tool,
    udp_number,
    veth,
)

EXACT_NS = 2_000
"""The lateness that "at T0 + at" allows in virtual time."""
LEAD_NS = 1_000
"""A step is begun so much early, so that an app that wakes at the same instant finds it done."""


def pair() -> list[Step]:
    """Namespaces a and b and the veth p1 between them."""
    return [*namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1)]


def receiver() -> list[Step]:
    """Something that listens in b."""
    return [tool("rx", 1, "receive", 5000, 0, flow=0), step("output", id="rx", text="listening", timeout_ns=S)]


def test_an_empty_cell_completes(kernel: Path, tmp_path: Path) -> None:
    result = run_guest(kernel, tmp_path, [step("sandbox", kind="guest")]).completed()
    assert [record["record"] for record in result.records()] == ["start", "end"]
    assert result.end == {"record": "end", "reason": "completed", "step": None, "message": None, "t_ns": None}
    assert {path.name for path in tmp_path.iterdir()} <= {
        "init", "udp_tool", "steps.txt", "init.ndjson", "console.txt", ".uml",
    }  # fmt: skip


def test_start_says_what_runs(kernel: Path, tmp_path: Path) -> None:
    start = run_guest(kernel, tmp_path, [step("sandbox", kind="guest")]).completed().records("start")[0]
    assert start["kernel"].startswith("6.")
    assert start["kernel_version"].startswith("#")
    assert start["machine"] == "x86_64"
    assert T0 - 10 * S < start["realtime_ns"] < T0 - 9 * S
    assert 0 < start["monotonic_ns"] < S


def test_timeline_is_exact_however_many_steps_share_an_instant(kernel: Path, tmp_path: Path) -> None:
    """Twenty steps an instant, while a flow sends and progress is due: each is begun within 1 us of it."""
    dump = messages.dump("qdisc").hex()
    instants = [0, 1, 100 * MS, 3 * S, 3 * S + 1, 7 * S + 123_456_789]
    timeline = []
    for at_ns in instants:
        timeline += [delay(0, "p1", 10, 5 * MS, at_ns=at_ns) for _ in range(10)]
        timeline += [netlink(1, messages.set_link(Device("p1", 10), up=True), at_ns) for _ in range(6)]
        timeline += [step("dump", ns=number % 2, label="qdisc", data=dump, at_ns=at_ns) for number in range(4)]
    traffic = tool("tx", 0, "send", "10.0.1.2", 5000, 10_000, MS, 100, 0, flow=0)
    steps = [
        *opening(), step("progress", every_ns=S), *pair(), delay(0, "p1", 10, 5 * MS), *receiver(),
        step("ready"), *timeline, ending(9 * S),
    ]  # fmt: skip
    steps.insert(-len(timeline) - 2, traffic)
    result = run_guest(kernel, tmp_path, steps).completed()
    records = result.records("timeline")
    assert len(records) == len(timeline)
    assert [record["at_ns"] for record in records] == [item.at_ns for item in timeline]
    for record in records:
        assert abs(record["t_ns"] - record["at_ns"]) <= LEAD_NS, record
    assert len(result.records("dump")) == 4 * len(instants)
    assert result.console.splitlines()[:9] == [f"@{second}" for second in range(1, 10)]


def test_at_equal_times_the_timeline_goes_before_the_apps(kernel: Path, tmp_path: Path) -> None:
    """A datagram sent at the very instant at which the delay changes has the new delay, although its timer is older."""
    steps = [
        *opening(), *pair(), delay(0, "p1", 10, 10 * MS), *receiver(), capture(1, "p1", 10, "b"), step("capture-start"),
        step("ready"), tool("tx", 0, "send", "10.0.1.2", 5000, 6, S, 100, S, at_ns=500 * MS),
        delay(0, "p1", 10, 20 * MS, at_ns=3 * S), delay(0, "p1", 10, 30 * MS, at_ns=5 * S), ending(12 * S, early=False),
    ]  # fmt: skip
    packets = run_guest(kernel, tmp_path, steps).completed().packets("b-p1")
    assert [udp_number(packet) for packet in packets] == list(range(6))
    delays = [packet.t_ns - (number + 1) * S for number, packet in enumerate(packets)]
    for found, wanted in zip(delays, (10, 10, 20, 20, 30, 30), strict=True):
        assert 0 <= found - wanted * MS <= EXACT_NS


def test_t0_is_on_both_clocks(kernel: Path, tmp_path: Path) -> None:
    result = run_guest(kernel, tmp_path, [*opening(), step("ready"), ending(S)]).completed()
    ready = result.records("ready")[0]
    start = result.records("start")[0]
    assert ready["t0_realtime_ns"] == T0
    difference = start["realtime_ns"] - start["monotonic_ns"]
    assert abs(ready["t0_realtime_ns"] - ready["t0_monotonic_ns"] - difference) <= 512
    assert 9 * S < ready["waited_ns"] < 10 * S
    assert result.end["t_ns"] - S in range(EXACT_NS)


def test_t0_after_ready(kernel: Path, tmp_path: Path) -> None:
    steps = [step("sandbox", kind="guest"), step("clock", t0_after_ready_ns=1234 * MS), step("ready"), ending(S)]
    result = run_guest(kernel, tmp_path, steps).completed()
    ready = result.records("ready")[0]
    assert ready["waited_ns"] == 1234 * MS
    assert ready["t0_realtime_ns"] - result.records("start")[0]["realtime_ns"] < 1300 * MS


def test_lateness_for_t0_is_reported(kernel: Path, tmp_path: Path) -> None:
    steps = [step("sandbox", kind="guest"), step("clock", t0_realtime_ns=T0 - 20 * S), step("ready"), ending(S)]
    end = run_guest(kernel, tmp_path, steps).end
    assert (end["reason"], end["step"]) == ("failed", 4)
    assert end["message"].startswith("T0 was 100000") and end["message"].endswith("ns ago: the set-up took too long")


@pytest.mark.parametrize(("early", "ends_at"), [(True, 2 * S), (False, 8 * S)])
def test_early_end(kernel: Path, tmp_path: Path, early: bool, ends_at: int) -> None:
    """With early=1 the cell ends with its last flow, also one that the timeline started; what is no flow is stopped."""
    steps = [
        *opening(), *pair(), *receiver(), tool("one", 0, "exit", 0, 1), step("ready"),
        tool("two", 0, "exit", 3, S, at_ns=S), ending(8 * S, early=early),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    exits = {record["id"]: record for record in result.records("exit")}
    assert abs(result.end["t_ns"] - ends_at) < MS
    assert (exits["two"]["status"], exits["two"]["signal"]) == (3, None)
    assert abs(exits["two"]["t_ns"] - 2 * S) < MS
    assert (exits["rx"]["status"], exits["rx"]["signal"], exits["rx"]["killed"]) == (None, 15, False)
    assert not any("cpu_ns" in record for record in exits.values()), "in virtual time computing takes no time"


def test_a_stubborn_process_is_killed_after_the_grace_and_said_to_be(kernel: Path, tmp_path: Path) -> None:
    steps = [*opening(), *namespaces("a"), tool("deaf", 0, "stubborn"), step("ready"), ending(S, grace_ns=700 * MS)]
    result = run_guest(kernel, tmp_path, steps).completed()
    record = result.records("exit")[0]
    assert (record["signal"], record["killed"]) == (9, True)
    assert abs(record["t_ns"] - 1700 * MS) < MS


def test_a_set_up_that_takes_too_long_times_out(kernel: Path, tmp_path: Path) -> None:
    steps = [
        *opening(setup_ns=2 * S), *namespaces("a"), tool("slow", 0, "say", "ready", 5 * S),
        step("output", id="slow", text="ready", timeout_ns=8 * S), step("ready"), ending(S),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps)
    assert result.end["reason"] == "timed_out"
    assert result.end["step"] == 9
    assert result.end["message"] == "the set-up was not over at its deadline"
    assert abs(result.end["t_ns"] - (-8 * S)) < MS
    assert result.records("exit")[0]["killed"] is True


def test_a_cell_that_does_not_end_times_out(kernel: Path, tmp_path: Path) -> None:
    steps = [
        *opening(after_t0_ns=3 * S), *namespaces("a"), tool("deaf", 0, "stubborn"), step("ready"),
        ending(2 * S, grace_ns=60 * S), step("dump", ns=0, label="after", data=messages.dump("link").hex()),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps)
    assert (result.end["reason"], result.end["message"]) == ("timed_out", "still running at the deadline")
    assert abs(result.end["t_ns"] - 3 * S) < MS
    assert result.records("dump") == []


def test_steps_after_the_end_see_the_final_state(kernel: Path, tmp_path: Path) -> None:
    steps = [
        *opening(), *pair(), *receiver(), step("ready"),
        tool("tx", 0, "send", "10.0.1.2", 5000, 5, MS, 100, S, at_ns=S // 2),
        ending(4 * S), step("sysctl", ns=0, path="net/ipv4/ip_forward", value="1"),
        step("dump", ns=0, label="link", data=messages.dump("link").hex()),
    ]  # fmt: skip
    records = run_guest(kernel, tmp_path, steps).completed().records()
    assert [record["record"] for record in records[-4:]] == ["sysctl", "dump", "memory", "end"]
    assert records[-4]["value"] == "1"
    assert records[-3]["label"] == "link"
