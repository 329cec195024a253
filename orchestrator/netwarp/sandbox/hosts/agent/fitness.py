"""The checks that a machine, its interfaces and its kernel can be used for cells: asked before anything is changed. A
feature of the kernel is tried by using it, in namespaces or sockets that then go.
"""

from __future__ import annotations

import array
import ctypes
import json
import os
import platform
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from typing import Any

from .controller import Refused
from .interfaces import read


def shown(*words: str) -> Any:
    """The JSON that a tool of iproute2 prints."""
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout or b"[]")


def addresses(name: str) -> list[str]:
    """Its addresses, but for link-local ones of IPv6."""
    every = [entry for link in shown("ip", "-j", "address", "show", "dev", name) for entry in link.get("addr_info", [])]
    return [entry["local"] for entry in every if entry.get("scope") != "link"]


def check_interface(name: str) -> Iterator[tuple[str, str]]:
    """The reason why an interface cannot be given to a cell, and a remedy."""
    if not os.path.isdir("/sys/class/net/" + name):
        there = ", ".join(sorted(set(os.listdir("/sys/class/net")) - {"lo"}))
        yield "there is no interface " + name, f"the machine has: {there}; correct the inventory"
        return
    link = shown("ip", "-j", "-d", "link", "show", "dev", name)[0]
    kind = link.get("linkinfo", {}).get("info_kind")
    if kind:
        yield f"{name} is a {kind}, which a namespace destroys", "use a real interface"
    if link.get("master"):
        yield f"{name} belongs to {link['master']}", f"ip link set dev {name} nomaster"
    own = addresses(name)
    if own:
        yield (
            f"{name} has the address {own[0]}: somebody uses it",
            f"give netwarp an interface that nothing else uses, or `ip address flush dev {name}`",
        )
    queues = shown("tc", "-j", "qdisc", "show", "dev", name)
    if any(entry.get("handle", "0:") != "0:" and entry.get("root") for entry in queues):
        yield f"{name} has a qdisc of somebody's", f"tc qdisc del dev {name} root"


def check_machine(directory: str, room_bytes: int) -> Iterator[tuple[str, str]]:
    """The reason why a machine cannot run cells, and a remedy."""
    if not os.path.isdir(directory):
        yield "there is no directory " + directory, "set netwarp_directory in the inventory"
        return
    free = os.statvfs(directory).f_bavail * os.statvfs(directory).f_frsize
    if free < room_bytes:
        text = f"{directory} has room for {free // 1_000_000} MB only"
        yield text, "make room, or set netwarp_directory in the inventory"


def facts(interfaces: list[str]) -> dict[str, Any]:
    """The known facts of those that are there."""
    known = {}
    for name in interfaces:
        place = "/sys/class/net/" + name
        if os.path.isdir(place):
            known[name] = {
                "mac": read(place + "/address"),
                "ifindex": int(read(place + "/ifindex") or 0),
                "driver": os.path.basename(os.path.realpath(place + "/device/driver")),
                "speed_mbit_s": read(place + "/speed"),
            }
    return known


def need_tools() -> None:
    """Raises Refused where those of iproute2 are not there."""
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            raise Refused(f"there is no `{tool}`", "apt-get install iproute2")


IPPROTO_SCTP, IPPROTO_MPTCP = 132, 262
TCP_CONGESTION = 13
QDISCS = {
    "netem": "delay 1ms",
    "tbf": "rate 1mbit burst 10kb limit 10kb",
    "red": "limit 100000 min 10000 max 30000 avpkt 1000",
}
"""Options of those that need some."""
SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD, BPF_PROG_TYPE_SCHED_CLS = 5, 3
RETURN_0 = struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
"""r0 = 0; exit"""
NETLINK_NETFILTER, NFT_GETGEN, NLM_F_REQUEST, NLMSG_ERROR = 12, 10 << 8 | 16, 1, 2


def missing(names: list[str]) -> list[str]:
    """Those of these features that are not there."""
    return [name for name in names if not has(name)]


def has(name: str) -> bool:
    """True if the kernel can do this."""
    kind, _, value = name.partition(":")
    try:
        return bool(TRIED[kind](value))
    except OSError:
        return False


def _socket(protocol: int) -> bool:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol).close()
    return True


def _congestion(name: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as handle:
        handle.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
    return True


def _qdisc(kind: str) -> bool:
    words = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", kind, *QDISCS.get(kind, "").split()]
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _packet_programs(_: str) -> bool:
    code, license_text = array.array("B", RETURN_0), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "=IIQQ", BPF_PROG_TYPE_SCHED_CLS, len(RETURN_0) // 8, code.buffer_info()[0], ctypes.addressof(license_text)
    ).ljust(128, b"\0")
    number = SYS_BPF.get(platform.machine())
    if number is None:
        return False
    handle = ctypes.CDLL(None, use_errno=True).syscall(number, BPF_PROG_LOAD, attributes, len(attributes))
    if handle >= 0:
        os.close(handle)
    return bool(handle >= 0)


def _packet_filter(_: str) -> bool:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as handle:
        handle.settimeout(5)
        handle.send(struct.pack("=IHHIIBBH", 20, NFT_GETGEN, NLM_F_REQUEST, 1, 0, 0, 0, 0))
        answer = handle.recv(4096)
    return bool(struct.unpack_from("=H", answer, 4)[0] != NLMSG_ERROR)


def _sysctl(name: str) -> bool:
    return os.path.exists("/proc/sys/" + name)


TRIED = {
    "sctp": lambda _: _socket(IPPROTO_SCTP),
    "mptcp": lambda _: _socket(IPPROTO_MPTCP),
    "congestion": _congestion,
    "qdisc": _qdisc,
    "packet programs": _packet_programs,
    "packet filter": _packet_filter,
    "sysctl": _sysctl,
}
