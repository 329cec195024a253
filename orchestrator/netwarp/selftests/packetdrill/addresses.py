"""The addresses and the kernel runner's settings of a case: ipv4, ipv6, ipv4-mapped-ipv6 (ksft_runner.sh)."""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass, field
from typing import Literal

Version = Literal["ipv4", "ipv6", "ipv4-mapped-ipv6"]
VERSIONS: tuple[Version, ...] = ("ipv4", "ipv6", "ipv4-mapped-ipv6")
PORT = 8080
"""Both ends': where a script binds, and where it connects to."""
FIRST_REMOTE_PORT = 50_001
"""The remote port of the first connection that comes in; the next has the next."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of a case. family: of sockets; local, remote_ip: on the wire."""

    version: Version
    local: str
    remote_ip: str
    gateway: str
    prefix: int
    mtu: int
    defines: dict[str, str] = field(default_factory=dict)

    @property
    def wire(self) -> int:
        """4 or 6."""
        return 6 if self.version == "ipv6" else 4

    @property
    def family(self) -> int:
        """AF_INET or AF_INET6."""
        return int(socket.AF_INET if self.version == "ipv4" else socket.AF_INET6)

    def _sockaddr(self, text: str) -> bytes:
        if self.version == "ipv4":
            return struct.pack("<H", socket.AF_INET) + struct.pack(">H4s8x", PORT, socket.inet_aton(text))
        mapped = f"::ffff:{text}" if self.wire == 4 else text
        return struct.pack("<H", socket.AF_INET6) + struct.pack(
            ">HI16sI", PORT, 0, ipaddress.IPv6Address(mapped).packed, 0
        )

    @property
    def bound(self) -> bytes:
        """The sockaddr that bind() is given."""
        return self._sockaddr(self.local)

    @property
    def remote(self) -> bytes:
        """The sockaddr that connect() is given."""
        return self._sockaddr(self.remote_ip)

    def packed(self) -> tuple[bytes, bytes]:
        """Local and remote address on the wire."""
        return ipaddress.ip_address(self.local).packed, ipaddress.ip_address(self.remote_ip).packed

    def set_up(self) -> list[str]:
        """The commands that give the device its address and the remote host its route."""
        kind = f"-{self.wire}"
        return [
            *([f"ip link set dev tun0 mtu {self.mtu}"] if self.mtu != 1500 else []),
            "ip link set dev tun0 up",
            f"ip {kind} addr add {self.local}/{self.prefix} dev tun0",
            f"ip {kind} route add {self.remote_ip} dev tun0 via {self.gateway}",
        ]


def addresses_of(version: Version) -> Addresses:
    """The addresses, and the symbols that the runner defines."""
    errors = "SOL_IP IP_RECVERR" if version == "ipv4" else "SOL_IPV6 IPV6_RECVERR"
    level, kind = errors.split()
    cookies = (
        ("c1d1e9742a47a9bc", "82af1a8f9a205c34") if version == "ipv6" else ("3021b9d889017eeb", "b7c12350a90dc8f5")
    )
    defines = {
        "CMSG_LEVEL_IP": level, "CMSG_TYPE_RECVERR": kind, "TFO_COOKIE": cookies[0], "TFO_COOKIE_ZERO": cookies[1],
    }  # fmt: skip
    if version == "ipv6":
        return Addresses(version, "fd3d:a0b:17d6::1", "fd3d:fa7b:d17d::1", "fd3d:a0b:17d6:8888::1", 48, 1520, defines)
    return Addresses(version, "192.168.0.1", "192.0.2.1", "192.168.0.1", 16, 1500, defines)
