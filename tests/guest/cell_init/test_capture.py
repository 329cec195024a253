"""cell-init's captures: every packet once, at its time, in order, complete, and lost packets counted."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest
from netwarp.testbed import messages
from netwarp.testbed.messages import Device
from netwarp.testbed.steps import Step, step
from support.cell_init_kit import (
    MS,
    WALL_LIMIT_S,
    Result,
    S,
    capture,
    delay,
    ending,
    guest_command,
    may_mount,
    namespaces,
    netlink,
    opening,
    prepare,
    run_guest,
    tool,
    udp_number,
    veth,
)

EXACT_NS = 2_000


def receiver(ns: int, ident: str = "rx", port: int = 5000) -> list[Step]:
    """Something that listens there."""
    listening = step("output", id=ident, text="listening", timeout_ns=60 * S)
    return [tool(ident, ns, "receive", port, 0, flow=0), listening]


def chain() -> list[Step]:
    """a - p1 - r - p2 - b; r forwards, delays 20 ms towards a, 30 ms towards b."""
    steps = [*namespaces("a", "r", "b"), step("sysctl", ns=1, path="net/ipv4/ip_forward", value="1")]
    steps += [*veth(0, 1, "p1", 10, subnet=1), *veth(1, 2, "p2", 11, subnet=2)]
    steps += [delay(1, "p1", 10, 20 * MS), delay(1, "p2", 11, 30 * MS)]
    steps += [
        netlink(0, messages.route("10.0.2.0", 24, "10.0.1.2", Device("p1", 10))),
        netlink(2, messages.route("10.0.1.0", 24, "10.0.2.1", Device("p2", 11))),
    ]
    return steps


def everything() -> list[Step]:
    """Capture the four interfaces of chain()."""
    ends = ((0, "p1", 10, "a"), (1, "p1", 10, "r"), (1, "p2", 11, "r"), (2, "p2", 11, "b"))
    return [*(capture(*end) for end in ends), step("capture-start")]


def agree(result: Result) -> None:
    """Every capture record says what its file holds, and lost nothing."""
    records = result.records("capture")
    assert records
    for record in records:
        name = Path(record["file"]).stem
        packets = result.packets(name)
        assert record["packets"] == len(packets)
        assert record["bytes"] == (result.directory / record["file"]).stat().st_size
        assert (record["dropped"], record["truncated"], record["errno"], record["fsync_errno"]) == (0, 0, 0, 0)
        times = [packet.t_ns for packet in packets]
        assert times == sorted(times)
        assert record["first_t_ns"] == (times[0] if times else None)
        assert record["last_t_ns"] == (times[-1] if times else None)


def test_each_packet_once_at_its_time_on_every_interface(kernel: Path, tmp_path: Path) -> None:
    count, gap = 200, 10 * MS
    steps = [
        *opening(), *chain(), *receiver(2), *everything(), step("ready"),
        tool("tx", 0, "send", "10.0.2.2", 5000, count, gap, 900, S, at_ns=S // 2), ending(9 * S, early=False),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    agree(result)
    # captured behind the qdisc: the delay of r's p2 shows between r's p1 and r's p2
    for name, offset in (("a-p1", 0), ("r-p1", 0), ("r-p2", 30 * MS), ("b-p2", 30 * MS)):
        packets = result.packets(name)
        assert [udp_number(packet) for packet in packets] == list(range(count)), name
        assert {packet.length for packet in packets} == {900 + 42}
        assert all(len(packet.data) == packet.length for packet in packets)
        for number, packet in enumerate(packets):
            assert 0 <= packet.t_ns - (S + number * gap + offset) <= EXACT_NS, (name, number)


def test_both_directions_in_one_order(kernel: Path, tmp_path: Path) -> None:
    """Requests one way, others the other way, 1 ms apart: a's file shows leaving and arriving ones by time."""
    steps = [
        *opening(), *chain(), *receiver(0, "ra"), *receiver(2, "rb"), *everything(), step("ready"),
        tool("ab", 0, "send", "10.0.2.2", 5000, 500, 2 * MS, 100, S, at_ns=S // 2),
        tool("ba", 2, "send", "10.0.1.1", 5000, 500, 2 * MS, 200, S + MS, at_ns=S // 2),
        ending(9 * S, early=False),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    agree(result)
    for name in ("a-p1", "r-p1", "r-p2", "b-p2"):
        lengths = [packet.length for packet in result.packets(name)]
        assert sorted(lengths) == [142] * 500 + [242] * 500, name


def test_nothing_is_lost_when_an_instant_holds_more_than_a_block(kernel: Path, tmp_path: Path) -> None:
    """Thousands of datagrams as fast as the sender can: the ring (4 MiB) is read while the sender runs."""
    steps = [
        *opening(), *chain(), *receiver(2), *everything(), step("ready"),
        tool("tx", 0, "flood", "10.0.2.2", 5000, 8000, 1400, S, at_ns=S // 2), ending(9 * S),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    agree(result)
    assert len(result.packets("a-p1")) == 8000


def test_a_ring_that_is_too_small_says_what_it_dropped(kernel: Path, tmp_path: Path) -> None:
    """The 41 fragments of a datagram leave a delay line in one go; two blocks of 4 KiB cannot hold them."""
    steps = [
        *opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1), *receiver(1), delay(0, "p1", 10, 5 * MS),
        capture(0, "p1", 10, "a"), capture(1, "p1", 10, "b", block_bytes=4096, blocks=2), step("capture-start"),
        step("ready"), tool("tx", 0, "send", "10.0.1.2", 5000, 10, 100 * MS, 60_000, S, at_ns=S // 2),
        ending(3 * S, early=False),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    whole, holed = result.records("capture")
    assert (whole["packets"], whole["dropped"]) == (410, 0)
    assert holed["dropped"] > 0
    assert holed["packets"] + holed["dropped"] == 410
    assert len(result.packets("b-p1")) == holed["packets"]


def test_a_vlan_tag_stays_in_its_frame(kernel: Path, tmp_path: Path) -> None:
    """The kernel takes the tag out of an arriving frame and keeps it beside it; the file holds what was on the wire."""
    steps = [
        *opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1),
        capture(0, "p1", 10, "a"), capture(1, "p1", 10, "b"), step("capture-start"), step("ready"),
        tool("tx", 0, "frame", "p1", S, at_ns=S // 2), ending(3 * S),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    agree(result)
    frame = bytes.fromhex("0200000000030200000000028100600588b5") + bytes(46)
    assert [packet.data for packet in result.packets("a-p1")] == [frame]
    assert [packet.data for packet in result.packets("b-p1")] == [frame]


def test_on_the_wall_clock(kernel: Path, tmp_path: Path) -> None:
    """The same in real time: all there, in order, never early."""
    steps = [
        *opening(wall=True), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1), delay(1, "p1", 10, 20 * MS),
        *receiver(1), capture(0, "p1", 10, "a"), capture(1, "p1", 10, "b"), step("capture-start"), step("ready"),
        tool("tx", 0, "send", "10.0.1.2", 5000, 300, MS, 900, S // 2, at_ns=S // 4), ending(60 * S),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps, "--mode", "wall").completed()
    t0 = result.records("ready")[0]["t0_realtime_ns"]
    for record, name in zip(result.records("capture"), ("a-p1", "b-p1"), strict=True):
        packets = result.packets(name, t0)
        assert [udp_number(packet) for packet in packets] == list(range(300))
        assert (record["packets"], record["dropped"]) == (300, 0)
        times = [packet.t_ns for packet in packets]
        assert times == sorted(times)
        assert all(t_ns >= S // 2 + number * MS for number, t_ns in enumerate(times))


def test_loopback_shows_each_packet_once(kernel: Path, tmp_path: Path) -> None:
    steps = [
        *opening(), *namespaces("a"), *receiver(0), capture(0, "lo", 1, "a"), step("capture-start"), step("ready"),
        tool("tx", 0, "send", "127.0.0.1", 5000, 50, MS, 100, S, at_ns=S // 2), ending(3 * S),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    agree(result)
    assert [udp_number(packet) for packet in result.packets("a-lo")] == list(range(50))


def test_a_link_that_goes_down_and_up_is_captured_again(kernel: Path, tmp_path: Path) -> None:
    restore = messages.neighbour(Device("p1", 10), "10.0.1.2", "02:00:00:00:00:03")
    steps = [
        *opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1), *receiver(1),
        capture(0, "p1", 10, "a"), capture(1, "p1", 10, "b"), step("capture-start"), step("ready"),
        tool("one", 0, "send", "10.0.1.2", 5000, 10, 10 * MS, 100, S, at_ns=S // 2),
        netlink(0, messages.set_link(Device("p1", 10), up=False), 3 * S),
        netlink(0, messages.set_link(Device("p1", 10), up=True), 4 * S),
        netlink(0, restore, 4 * S),
        tool("two", 0, "send", "10.0.1.2", 5000, 10, 10 * MS, 100, 6 * S, at_ns=5 * S), ending(9 * S),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    agree(result)
    for name in ("a-p1", "b-p1"):
        assert [udp_number(packet) for packet in result.packets(name)] == [*range(10), *range(10)]


def test_a_capture_may_end_with_its_link_down(kernel: Path, tmp_path: Path) -> None:
    steps = [
        *opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1), *receiver(1),
        capture(0, "p1", 10, "a"), capture(1, "p1", 10, "b"), step("capture-start"), step("ready"),
        tool("tx", 0, "send", "10.0.1.2", 5000, 10, 10 * MS, 100, S, at_ns=S // 2),
        netlink(0, messages.set_link(Device("p1", 10), up=False), 3 * S), ending(4 * S, early=False),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    agree(result)
    assert len(result.packets("b-p1")) == 10


def test_an_interface_must_be_up(kernel: Path, tmp_path: Path) -> None:
    steps = [
        *opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1),
        netlink(1, messages.set_link(Device("p1", 10), up=False)), capture(1, "p1", 10, "b"),
        step("capture-start"),
    ]  # fmt: skip
    end = run_guest(kernel, tmp_path, steps).end
    assert end["reason"] == "failed"
    assert end["step"] == len(steps) + 1
    assert end["message"] == "capture capture/b-p1.pcap: interface: Network is down (errno 100)"


def test_captures_of_equal_cells_are_equal_bytes(kernel: Path, tmp_path: Path) -> None:
    """Random loss and jitter included: the same for the same seed, in another directory; another for another seed."""
    shaky = {"jitter_ns": 3 * MS, "loss": 0xFFFFFFFF // 10}
    steps = [
        *opening(), *chain(), delay(1, "p2", 11, 30 * MS, **shaky), *receiver(2), *everything(), step("ready"),
        tool("tx", 0, "send", "10.0.2.2", 5000, 300, 10 * MS, 900, S, at_ns=S // 2), ending(9 * S),
    ]  # fmt: skip
    runs = [
        run_guest(kernel, tmp_path / "one", steps, seed=5).completed(),
        run_guest(kernel, tmp_path / "a" / "much" / "longer" / "directory name", steps, seed=5).completed(),
        run_guest(kernel, tmp_path / "other", steps, seed=6).completed(),
    ]
    agree(runs[0])
    files = sorted(path.name for path in (runs[0].directory / "capture").iterdir())
    assert len(files) == 4
    for name in files:
        same = [(run.directory / "capture" / name).read_bytes() for run in runs]
        assert same[0] == same[1], name
    assert runs[0].text == runs[1].text
    assert 200 < len(runs[0].packets("b-p2")) < 300
    assert runs[0].packets("b-p2") != runs[2].packets("b-p2")


def on_small_disk(kernel: Path, directory: Path, steps: list[Step], kilobytes: int) -> Result:
    """Run the cell on a tmpfs that has so much room beside its own files; what it left is copied out."""
    prepare(directory, steps)
    (directory / "left").mkdir()
    own = sum((directory / name).stat().st_size // 4096 + 1 for name in ("init", "udp_tool", "steps.txt")) * 4
    script = (
        'set -e; cd "$1"; mkdir disk; mount -t tmpfs -o size="$2"k tmpfs disk; cp init udp_tool steps.txt disk; '
        'shift 2; set +e; "$@"; status=$?; cp -r disk/* left; exit $status'
    )
    arguments = [*may_mount(), "sh", "-c", script, "sh", str(directory), str(own + kilobytes)]
    command = guest_command(kernel, directory / "disk")
    done = subprocess.run([*arguments, *command], check=False, capture_output=True, text=True, timeout=WALL_LIMIT_S)
    return Result(directory / "left", done.returncode, done.stderr)


def test_a_full_disk_ends_the_cell_and_is_said(kernel: Path, tmp_path: Path) -> None:
    steps = [
        *opening(), *chain(), *receiver(2), *everything(), step("ready"),
        tool("tx", 0, "send", "10.0.2.2", 5000, 20_000, MS, 1400, S, at_ns=S // 2), ending(60 * S),
    ]  # fmt: skip
    result = on_small_disk(kernel, tmp_path, steps, 4000)
    assert result.end["reason"] == "failed"
    assert "No space left on device (errno 28)" in result.end["message"]
    assert result.end["t_ns"] < 10 * S  # at once, not at the end
    records = result.records("capture")
    assert len(records) == 4
    assert errno.ENOSPC in [record["errno"] for record in records]
    for record in records:  # what is in the file is whole, and counted
        assert record["bytes"] == (result.directory / record["file"]).stat().st_size
        assert record["packets"] == len(result.packets(Path(record["file"]).stem))


@pytest.mark.parametrize("kilobytes", [100, 200])
def test_a_disk_too_full_for_the_records_still_gets_the_last_one(kernel: Path, tmp_path: Path, kilobytes: int) -> None:
    dump = step("dump", ns=0, label="links", data=messages.dump("link").hex())
    steps = [*opening(), *namespaces("a"), *[dump] * 300, step("ready"), ending(S)]
    result = on_small_disk(kernel, tmp_path, steps, kilobytes)
    assert result.end["reason"] == "failed"
    assert result.end["message"] == "init.ndjson: No space left on device (errno 28)"
    assert 0 < len(result.records("dump")) < 300
