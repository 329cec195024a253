"""The features of a machine's kernel: each is tried by using it, in namespaces or sockets that then go."""

from __future__ import annotations

import array
import ctypes
import os
import platform
import socket
import struct
import subprocess

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
