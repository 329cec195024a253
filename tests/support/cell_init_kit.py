"""Hand-made cells for cell-init: a directory, its steps, a guest, the files it leaves."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import select
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from netwarp.doctor.finding import Finding
from netwarp.doctor.host import namespaces as doctor_namespaces
from netwarp.store.console import HALTED
from netwarp.store.init_records import DECODER
from netwarp.testbed import messages
from netwarp.testbed.messages import Device, Request
from netwarp.testbed.netem import Netem
from netwarp.testbed.steps import Step, step, to_text

from support.checkout import BUILD, make_apps

MS, S = 1_000_000, 1_000_000_000
T0 = 1_700_000_000 * S
WALL_LIMIT_S = 300
"""What hangs must not hang the tests; a busy machine takes long for what is well, and that is no failure."""
GONE_S = 60
PROGRAMS = ("bin/cell-init", "bin/guest-exec", "bin/netns-exec", "lib/seed.so")


@functools.cache
def built() -> Path:
    """build/, with the programs and the tests' tool made up to date."""
    make_apps(*(f"../build/{name}" for name in PROGRAMS))
    tool, source = BUILD / "test" / "udp_tool", Path(__file__).with_name("udp_tool.c")
    with open(BUILD / "test" / "udp_tool.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tool.exists() or tool.stat().st_mtime < source.stat().st_mtime:
            subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-static", "-o", str(tool), str(source)], check=True)
    return BUILD


@functools.cache
def _user_namespaces() -> Finding:
    return doctor_namespaces()


def needs_user_namespaces() -> None:
    """Skips the test where the kernel refuses them to this user (in a chroot: to everybody), and says so."""
    found = _user_namespaces()
    if found.state != "ok":
        pytest.skip(f"user namespaces are refused to this user; {found.remedy}")


def may_mount() -> list[str]:
    """unshare(1) for a command that mounts something for itself alone. Skips the test where this user may not."""
    if os.geteuid() == 0:
        return ["unshare", "--mount"]
    needs_user_namespaces()
    return ["unshare", "--map-root-user", "--mount"]


@dataclass(frozen=True)
class Packet:
    """One record of a capture: nanoseconds from T0, bytes on the wire, what was kept of them."""

    t_ns: int
    length: int
    data: bytes


def read_pcap(path: Path, t0_ns: int = T0) -> list[Packet]:
    """Every packet of a nanosecond pcap; asserts that the file is whole and as docs/formats.md says."""
    raw = path.read_bytes()
    assert struct.unpack_from("<IHHiIII", raw) == (0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    at, packets = 24, []
    while at < len(raw):
        seconds, nanoseconds, captured, length = struct.unpack_from("<IIII", raw, at)
        assert nanoseconds < S
        assert at + 16 + captured <= len(raw)
        packets.append(Packet(seconds * S + nanoseconds - t0_ns, length, raw[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return packets


def udp_number(packet: Packet) -> int | None:
    """The number that udp_tool wrote into this datagram; None for anything else."""
    if packet.data[12:14] != b"\x08\x00" or packet.data[23] != 17:
        return None
    return int(struct.unpack_from("<q", packet.data, 42)[0])


@dataclass
class Result:
    """What a cell left behind."""

    directory: Path
    status: int
    stderr: str
    wall: bool = False

    @property
    def text(self) -> str:
        """init.ndjson as it stands."""
        path = self.directory / "init.ndjson"
        return path.read_text() if path.exists() else ""

    @property
    def console(self) -> str:
        """console.txt."""
        return (self.directory / "console.txt").read_text(errors="replace")

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Every record, or those of one kind; each has to be as netwarp.store has its type."""
        DECODER.decode_lines(self.text[: self.text.rfind("\n") + 1])
        found = [json.loads(line) for line in self.text.splitlines()]
        return [record for record in found if kind is None or record["record"] == kind]

    @property
    def end(self) -> dict[str, Any]:
        """The end record; asserts that it is the one and last line."""
        assert self.text.endswith("\n"), (self.text[-300:], self.console)
        records = self.records()
        assert [record["record"] for record in records].count("end") == 1, self.console
        assert records[-1]["record"] == "end"
        return records[-1]

    def completed(self) -> Result:
        """Asserts that the cell completed."""
        assert self.end["reason"] == "completed", (self.end, self.console)
        # On the wall clock a timer's signal can come after the power-off, when the kernel has no task any more to
        # handle it in (arch/um/os-Linux/main.c says so of itself): it then aborts, with all files written.
        halted = self.wall and self.status == -signal.SIGABRT and HALTED in self.console
        assert self.status == 0 or halted, (self.status, self.stderr, self.console)
        return self

    def packets(self, name: str, t0_ns: int = T0) -> list[Packet]:
        """The packets of capture/NAME.pcap."""
        return read_pcap(self.directory / "capture" / f"{name}.pcap", t0_ns)


def prepare(directory: Path, steps: Iterable[Step] | str) -> Path:
    """The cell's directory: init, the tool, steps.txt."""
    build = built()
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(build / "bin" / "cell-init", directory / "init")
    shutil.copy(build / "test" / "udp_tool", directory / "udp_tool")
    (directory / "steps.txt").write_text(steps if isinstance(steps, str) else to_text(steps))
    return directory


def guest_command(kernel: Path, directory: Path, *options: str, seed: int = 1) -> list[str]:
    """The command that runs that directory in a guest."""
    program = str(built() / "bin" / "guest-exec")
    return [program, "--kernel", str(kernel), "--dir", str(directory), "--seed", str(seed), *options]


def run_guest(kernel: Path, directory: Path, steps: Iterable[Step] | str, *options: str, seed: int = 1) -> Result:
    """Play the steps in a guest of that directory."""
    prepare(directory, steps)
    done = subprocess.run(
        guest_command(kernel, directory, *options, seed=seed),
        timeout=WALL_LIMIT_S,
        check=False,
        capture_output=True,
        text=True,
    )
    return Result(directory, done.returncode, done.stderr, wall="wall" in options)


def fails(kernel: Path, directory: Path, steps: list[Step], *, at: int | None = None) -> dict[str, Any]:
    """Run; asserts that step `at` (its place in the list; the last) failed. Returns the end record."""
    end = run_guest(kernel, directory, steps).end
    assert end["reason"] == "failed"
    assert end["step"] == (len(steps) + 1 if at is None else at + 2)
    return end


def opening(*, setup_ns: int = 9 * S, after_t0_ns: int = 3600 * S, wall: bool = False) -> list[Step]:
    """The first steps of a guest's cell."""
    clock = step("clock", t0_after_ready_ns=100 * MS) if wall else step("clock", t0_realtime_ns=T0)
    setup_ns = 60 * S if wall else setup_ns  # a busy machine may take long
    return [step("sandbox", kind="guest"), clock, step("deadline", setup_ns=setup_ns, after_t0_ns=after_t0_ns)]


def netlink(ns: int, request: Request | bytes, at_ns: int | None = None) -> Step:
    """One netlink step."""
    data = request if isinstance(request, bytes) else request.data
    return step("netlink", ns=ns, data=data.hex(), at_ns=at_ns)


def mac(number: int) -> str:
    """The MAC address of interface `number`."""
    return f"02:00:00:00:00:{number:02x}"


QUIET = ("net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6")


def namespaces(*names: str) -> list[Step]:
    """Namespaces 0, 1, ... without IPv6."""
    made = [step("ns", index=number, name=name) for number, name in enumerate(names)]
    quiet = [step("sysctl", ns=number, path=path, value="1") for number in range(len(names)) for path in QUIET]
    return made + quiet


def veth(near: int, far: int, name: str, ifindex: int, *, subnet: int, mtu: int = 1500) -> list[Step]:
    """A veth `name` from namespace near (10.0.subnet.1) to far (.2), both with that ifindex, ready for traffic."""
    ends = [Device(name, ifindex, ns, mac(2 * subnet + number)) for number, ns in enumerate((near, far))]
    steps = [netlink(near, messages.veth(ends[0], ends[1], mtu, "far"))]
    for number, end in enumerate(ends):
        requests = (
            messages.address(end, f"10.0.{subnet}.{number + 1}", 24),
            messages.set_link(end, up=True),
            messages.neighbour(end, f"10.0.{subnet}.{2 - number}", ends[1 - number].mac),
        )
        steps += [step("offload", ns=end.namespace, iface=name)]
        steps += [netlink(end.namespace, request) for request in requests]
    steps += [step("operstate", ns=end.namespace, ifindex=ifindex, timeout_ns=60 * S) for end in ends]
    return steps


def delay(ns: int, name: str, ifindex: int, one_way_ns: int, at_ns: int | None = None, **more: int) -> Step:
    """A root netem that delays what leaves that interface."""
    shaper = Netem(limit_packets=100_000, latency_ns=one_way_ns, **more)
    replace = at_ns is None
    return netlink(ns, messages.qdisc(Device(name, ifindex), shaper, handle=1, parent=None, replace=replace), at_ns)


def capture(ns: int, name: str, ifindex: int, node: str, **more: int) -> Step:
    """Capture that interface to capture/NODE-NAME.pcap."""
    return step("capture", ns=ns, ifindex=ifindex, iface=name, mtu=1500, file=f"capture/{node}-{name}.pcap", **more)


def tool(ident: str, ns: int, *arguments: object, at_ns: int | None = None, flow: int = 1) -> Step:
    """Run udp_tool."""
    words = ["./udp_tool", *(str(argument) for argument in arguments)]
    files = {"stdout": f"apps/{ident}.out", "stderr": f"apps/{ident}.err"}
    return step("spawn", id=ident, ns=ns, flow=flow, arg=words, at_ns=at_ns, **files)


def ending(at_ns: int, *, early: bool = True, grace_ns: int = S) -> Step:
    """The end step."""
    return step("end", at_ns=at_ns, early=int(early), grace_ns=grace_ns)


def busy() -> list[Step]:
    """A guest that starts one process after the other, then one that never gives the CPU back: it is there until it is
    killed, however late that is.
    """
    many = [tool(f"p{number}", 0, "env", flow=0) for number in range(200)]
    spins = step("spawn", id="spins", ns=0, stdout="o", stderr="e", arg=["/bin/sh", "-c", "while :; do :; done"])
    return [*opening(), *namespaces("a"), tool("deaf", 0, "stubborn"), *many, spins, step("ready"), ending(500 * S)]


def members(directory: Path) -> list[int]:
    """Every process of the guest of that directory: they all work there."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(directory):
                found.append(int(name))
        except OSError:
            continue
    return found


def outlived(directory: Path) -> list[str]:
    """Wait until each of them is gone; those that are not within 10 s are named, and ended."""
    left = []
    for pid in members(directory):
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(GONE_S * 1000):
            left.append((Path("/proc") / str(pid) / "stat").read_text())
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)
    return left


def wait_ns(process: subprocess.Popen[bytes], ns: int) -> None:
    """Until the process ends, or for that long: whichever comes first."""
    handle = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.poll(ns / 1e6)
    os.close(handle)
