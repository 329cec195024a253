"""Captures of the kernel that runs this, for benchmarks/causes.py, with the kernel's counters beside them.

Three network namespaces, each held by a `cat` that ends with this process: sender - middle - receiver. The middle is
the kernel's own router (losses by nftables), or causes_hop.py between one or two pairs of interfaces (delay, chosen
losses). Needs root, iproute2, nftables, ethtool, tcpdump. In a guest: `causes_host.py DIR NAME...`.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from causes_conditions import CONDITIONS, Condition
from causes_hop import Way, open_end, start

CLONE_NEWNET = 0x40000000
TCP_INFO = struct.Struct("=8B24I4Q6I4Q2I2Q6I2HI")
"""struct tcp_info of linux/tcp.h (Linux 6.7 and later), up to tcpi_total_rto_time."""
INFO_FIELDS = (
    "state", "ca_state", "retransmits", "probes", "backoff", "options", "wscale", "flags", "rto", "ato", "snd_mss",
    "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets", "last_data_sent", "last_ack_sent", "last_data_recv",
    "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh", "snd_cwnd", "advmss", "reordering",
    "rcv_rtt", "rcv_space", "total_retrans", "pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received",
    "segs_out", "segs_in", "notsent_bytes", "min_rtt", "data_segs_in", "data_segs_out", "delivery_rate", "busy_time",
    "rwnd_limited", "sndbuf_limited", "delivered", "delivered_ce", "bytes_sent", "bytes_retrans", "dsack_dups",
    "reord_seen", "rcv_ooopack", "snd_wnd", "rcv_wnd", "rehash", "total_rto", "total_rto_recoveries",
    "total_rto_time",
)  # fmt: skip
MARKER = b"netwarp-causes-end-of-capture"
PORT = 5001
SCTP, SCTP_GET_ASSOC_STATS = 132, 112
ASSOC_STATS = struct.Struct("=136x15Q")
"""struct sctp_assoc_stats of linux/sctp.h."""
STATS_FIELDS = (
    "max_rto_ms", "sacks_in", "sacks_out", "packets_out", "packets_in", "retransmitted_chunks",
    "out_of_sequence_tsns_in", "duplicate_chunks_in", "gap_acks_in", "unordered_chunks_out", "unordered_chunks_in",
    "ordered_chunks_out", "ordered_chunks_in", "control_chunks_out", "control_chunks_in",
)  # fmt: skip
MESSAGE = 1400
LIMIT_S = 60.0
"""A transfer that takes longer has failed."""


class Namespace:
    """A network namespace that ends with this object or this process."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        stack.callback(self.holder.wait)
        stack.callback(self.holder.stdin.close)  # type: ignore[union-attr]
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == own:  # until unshare(2) is done
            time.sleep(0.001)
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *words: str) -> list[str]:
        """A command inside, which ends with its parent."""
        return ["nsenter", "-t", str(self.holder.pid), "-n", "setpriv", "--pdeathsig", "KILL", *words]

    def run(self, *words: str) -> str:
        """Run a command inside; its output."""
        return subprocess.run(self.command(*words), check=True, capture_output=True, text=True).stdout

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread is inside: the sockets that it makes belong here."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/proc/self/task/{threading.get_native_id()}/ns/net") as home:
            with open(f"/proc/{self.holder.pid}/ns/net") as there:
                if libc.setns(there.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                libc.setns(home.fileno(), CLONE_NEWNET)

    def counters(self) -> dict[str, int]:
        """TcpExt, IpExt and Tcp of /proc/net/netstat and snmp, as nstat(8) names them."""
        found: dict[str, int] = {}
        sctp = Path(f"/proc/{self.holder.pid}/net/sctp/snmp")
        if sctp.exists():
            found = {name: int(value) for name, value in map(str.split, sctp.read_text().splitlines())}
        for name in ("netstat", "snmp"):
            lines = Path(f"/proc/{self.holder.pid}/net/{name}").read_text().splitlines()
            for names, values in zip(lines[::2], lines[1::2], strict=True):
                group, _, keys = names.partition(": ")
                pairs = zip(keys.split(), values.partition(": ")[2].split(), strict=True)
                found |= {group.removesuffix("Ext") + key if group == "Ip" else key: int(value) for key, value in pairs}
        return found


def _veth(one: Namespace, name: str, other: Namespace, far: str, *, offloads: bool) -> None:
    subprocess.run(
        ["ip", "link", "add", name, "netns", str(one.holder.pid), "type", "veth",
         "peer", "name", far, "netns", str(other.holder.pid)],
        check=True,
    )  # fmt: skip
    for space, end in ((one, name), (other, far)):
        space.run("sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1")
        space.run("ip", "link", "set", end, "up")
        if not offloads:
            space.run("ethtool", "-K", end, "tso", "off", "gso", "off", "gro", "off", "tx-sctp-segmentation", "off")


@dataclasses.dataclass(frozen=True)
class Network:
    """points: (namespace, interface) by point of capture. lost: ends the hop; the number of packets lost on the way."""

    sender: Namespace
    receiver: Namespace
    points: dict[str, tuple[Namespace, str]]
    lost: Callable[[], int]


def _network(c: Condition, stack: contextlib.ExitStack, folder: Path) -> Network:
    sender, middle, receiver = (Namespace(stack) for _ in range(3))
    _veth(sender, "s0", middle, "m0", offloads=c.offloads)
    _veth(middle, "m1", receiver, "r0", offloads=c.offloads)
    points = {"sender": (sender, "s0"), "middle": (middle, "m1"), "receiver": (receiver, "r0")}
    sender.run("ip", "address", "add", "10.9.1.1/24", "dev", "s0")
    if not c.hop:
        receiver.run("ip", "address", "add", "10.9.2.1/24", "dev", "r0")
        for space, end, net in ((middle, "m0", "1"), (middle, "m1", "2")):
            space.run("ip", "address", "add", f"10.9.{net}.2/24", "dev", end)
        sender.run("ip", "route", "add", "default", "via", "10.9.1.2")
        receiver.run("ip", "route", "add", "default", "via", "10.9.2.2")
        middle.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        points["middle"] = (middle, "m0")
        if c.lost:
            chance = f"numgen random mod {c.lost} < 1" if c.burst == 1 else f"numgen inc mod {c.lost} < {c.burst}"
            rule = f"ip saddr 10.9.1.1 ip protocol {{ tcp, sctp }} meta length > 200 {chance} counter name lost drop"
            hook = "type filter hook forward priority 0"
            middle.run("nft", f"table inet t {{ counter lost {{ }}; chain f {{ {hook}; {rule}; }}; }}")
    else:
        receiver.run("ip", "address", "add", "10.9.1.3/24", "dev", "r0")
        pairs = [("m0", "m1")]
        if c.split:
            _veth(middle, "x0", middle, "x1", offloads=c.offloads)
            pairs = [("m0", "x0"), ("x1", "m1")]
            points["middle"] = (middle, "x0")
        one_way = c.rtt_ms / 2000 / len(pairs)

        def ways() -> dict[socket.socket, Way]:
            table = {}
            with middle.entered():
                for number, (near, far) in enumerate(pairs, 1):
                    a, b = open_end(near), open_end(far)
                    here = number == max(1, c.split)
                    table[a] = Way(b, one_way, c.rate if here else 0, c.queue_bytes, c.loss if here else None)
                    table[b] = Way(a, one_way, loss=c.loss if here else None)
            return table

        stop = start(ways, sum(c.name.encode()), folder / "lost")
        stack.callback(stop)
    for space, end, text in ((sender, "s0", c.qdisc), (middle, "m1", c.router_qdisc)):
        for place, qdisc in zip(("root handle 1:", "parent 1:1"), text.split(";"), strict=False):
            if qdisc:
                space.run("tc", "qdisc", "add", "dev", end, *place.split(), *qdisc.split())
    for key, value in c.sysctl:
        sender.run("sysctl", "-qw", f"{key}={value}")
        receiver.run("sysctl", "-qw", f"{key}={value}")

    def lost() -> int:
        if c.hop:
            return stop()
        if not c.lost:
            return 0
        rules = json.loads(middle.run("nft", "-j", "list", "counter", "inet", "t", "lost"))["nftables"]
        return int(next(row["counter"]["packets"] for row in rules if "counter" in row))

    return Network(sender, receiver, points, lost)


class Tcpdump:
    """A capture that runs until `finish`."""

    def __init__(self, point: tuple[Namespace, str], path: Path, snaplen: int, stack: contextlib.ExitStack) -> None:
        space, interface = point
        self.path = path
        self.process = subprocess.Popen(
            space.command("tcpdump", "-i", interface, "-s", str(snaplen), "--time-stamp-precision=nano", "-U", "-n",
                          "--immediate-mode", "-Z", "root", "-B", "65536", "-w", str(path),
                          "tcp or sctp or udp port 9"),
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.callback(self.process.wait)
        stack.callback(self.process.kill)
        for line in self.process.stderr or ():
            if "listening on" in line:
                return
        raise RuntimeError("tcpdump did not start")

    def finish(self, mark: Callable[[], object]) -> int:
        """Call `mark`, which sends a packet with MARKER through all captures (a qdisc may lose it), until this one has
        it; remove it from the file. The number of packets that the capture lost.
        """
        until = time.monotonic() + LIMIT_S
        while MARKER not in self.path.read_bytes()[-65536:]:
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError(f"{self.path}: the packet that ends the capture was not seen")
            mark()
            time.sleep(0.05)  # nothing tells when tcpdump has written
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate()[1]
        data = self.path.read_bytes()
        kept, at = [data[:24]], 24
        while at < len(data):
            after = at + 16 + struct.unpack_from("<I", data, at + 8)[0]
            kept.append(b"" if MARKER in data[at:after] else data[at:after])
            at = after
        self.path.write_bytes(b"".join(kept))
        return sum(int(line.split()[0]) for line in said.splitlines() if "dropped by" in line)


def _send(connection: socket.socket, c: Condition, into: list[dict[str, Any]], trouble: list[str]) -> None:
    """Send as the condition says, wait until the other end has read everything; then the kernel's words on it."""
    try:
        block = bytes(c.block or (1 << 17 if c.protocol == "tcp" else MESSAGE))
        until, sent = time.monotonic() + c.seconds, 0
        while (sent < c.size) if c.size else (time.monotonic() < until):
            for at in range(0, len(block), MESSAGE) if c.protocol == "sctp" else (0,):
                connection.sendall(block[at : at + MESSAGE] if c.protocol == "sctp" else block)
            sent += len(block)
            if c.pause_s:
                time.sleep(c.pause_s)  # the application's own behaviour
        if c.protocol == "sctp":  # has no half-closed state: a message of one byte is the last
            connection.sendall(b".")
            connection.recv(1)
            raw = connection.getsockopt(SCTP, SCTP_GET_ASSOC_STATS, ASSOC_STATS.size)
            into.append(dict(zip(STATS_FIELDS, ASSOC_STATS.unpack(raw), strict=True)))
        else:
            if not c.reset:
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
            raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size).ljust(TCP_INFO.size, b"\0")
            info = dict(zip(INFO_FIELDS, TCP_INFO.unpack(raw), strict=True))
            into.append(info | {"port": connection.getsockname()[1]})
        if c.reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    except OSError as error:
        trouble.append(str(error))


def _receive(listener: socket.socket, c: Condition, trouble: list[str]) -> None:
    """Read everything, answer the end by one byte."""
    try:
        connection, _ = listener.accept()
        connection.settimeout(LIMIT_S)
        buffer, began, read = bytearray(1 << 18), time.monotonic(), 0
        size = min(len(buffer), max(1, c.reader // 50)) if c.reader else len(buffer)
        with memoryview(buffer) as view:
            while count := connection.recv_into(view[:size]):
                read += count
                if c.protocol == "sctp" and count == 1:
                    break
                if c.reader and (early := began + read / c.reader - time.monotonic()) > 0:
                    time.sleep(early)  # the application's own rate
        connection.sendall(b"!")
        if c.protocol == "sctp":
            connection.recv(1)  # the association goes with the first end that closes, and its statistics with it
        connection.close()
    except OSError as error:
        if not c.reset:
            trouble.append(str(error))


def capture(c: Condition, folder: Path) -> None:
    """Make the captures of a condition and counters.json in a new folder. Raises RuntimeError if it failed."""
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        network = _network(c, stack, folder)
        sender, receiver = network.sender, network.receiver
        dumps = [Tcpdump(network.points[name], folder / f"{name}.pcap", c.snaplen, stack) for name in c.points]
        before, before_receiver = sender.counters(), receiver.counters()
        infos: list[dict[str, Any]] = []
        trouble: list[str] = []
        with receiver.entered():
            kind = (socket.AF_INET, socket.SOCK_STREAM, SCTP if c.protocol == "sctp" else 0)
            listener = stack.enter_context(socket.socket(*kind))
            if c.receive_buffer:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, c.receive_buffer)
            to = ("10.9.1.3" if c.hop else "10.9.2.1", PORT)
            listener.bind(to)
            listener.listen(64)
        listener.settimeout(LIMIT_S)
        threads = [threading.Thread(target=_receive, args=(listener, c, trouble)) for _ in range(c.flows)]
        for thread in threads:
            thread.start()
        for _ in range(c.flows):
            with sender.entered():
                connection = socket.socket(*kind)
            connection.settimeout(LIMIT_S)
            if c.protocol == "tcp":
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, c.congestion.encode())
            if c.send_buffer:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, c.send_buffer)
            if c.pacing:
                connection.setsockopt(socket.SOL_SOCKET, 47, struct.pack("=Q", c.pacing))  # SO_MAX_PACING_RATE
            connection.connect(to)
            threads.append(threading.Thread(target=_send, args=(connection, c, infos, trouble)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        counters = {
            "sender": _delta(before, sender.counters()),
            "receiver": _delta(before_receiver, receiver.counters()),
            "tcp_info" if c.protocol == "tcp" else "sctp_stats": infos,
            "qdisc": json.loads(sender.run("tc", "-j", "-s", "qdisc", "show", "dev", "s0")),
        }
        with sender.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as marker:
            mark = functools.partial(marker.sendto, MARKER, (to[0], 9))
            dropped = {dump.path.stem: dump.finish(mark) for dump in dumps}
        counters["lost"] = network.lost()
    if trouble or any(dropped.values()):
        raise RuntimeError(f"{c.name}: {trouble}, dropped by the captures {dropped}")
    (folder / "counters.json").write_text(json.dumps(counters, indent=1))
    about = dataclasses.asdict(c) | {"kernel": os.uname().release, "dimensions": c.dimensions()}
    (folder / "about.json").write_text(json.dumps(about, indent=1))


def _delta(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}


def main() -> int:
    """Make the captures of these conditions, one after another."""
    folder, *names = sys.argv[1:]
    failed = 0
    for c in CONDITIONS:
        if c.name in names:
            try:
                capture(c, Path(folder) / c.name)
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                print(f"{c.name}: {error}", file=sys.stderr)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
