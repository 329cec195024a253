"""IPv4 and IPv6: what differs between them for a cell, in one place. A link carries one of them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

FamilyName = Literal["ipv4", "ipv6"]


@dataclass(frozen=True, slots=True)
class IpFamily:
    """One family. number: AF_ of Linux; ether_type: of its frames; header_bytes: of its header without options."""

    name: FamilyName
    title: str
    number: int
    ether_type: int
    header_bytes: int
    least_mtu_bytes: int
    """RFC 791 (every module forwards 68 B), RFC 8200 5."""
    subnet_length: int
    """Of the subnets that netwarp gives to links."""
    address_length: int
    loopback: str
    ip: str
    """The command that configures it: `ip` or `ip -6`."""


IPV4 = IpFamily("ipv4", "IPv4", 2, 0x0800, 20, 68, 26, 32, "127.0.0.1", "ip")
IPV6 = IpFamily("ipv6", "IPv6", 10, 0x86DD, 40, 1280, 64, 128, "::1", "ip -6")
FAMILIES: dict[FamilyName, IpFamily] = {"ipv4": IPV4, "ipv6": IPV6}

_OFF = {"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"}
_QUIET = {
    "net.ipv6.conf.default.disable_ipv6": "1",
    **{
        f"net.ipv6.conf.default.{name}": value
        for name, value in (
            ("accept_ra", "0"), ("autoconf", "0"), ("router_solicitations", "0"), ("accept_dad", "0"),
            ("dad_transmits", "0"), ("addr_gen_mode", "1"),
        )
    },
}  # fmt: skip


def family_of(address: str) -> IpFamily:
    """The family of an address written as text."""
    return IPV6 if ":" in address else IPV4


def canonical(address: str) -> str:
    """An address as the kernel and captures write it (RFC 5952)."""
    return str(ipaddress.ip_address(address))


def quiet_sysctls(families: Iterable[IpFamily]) -> dict[str, str]:
    """The sysctls of a namespace, before it has an interface, by which the kernel sends no packet of its own.

    families: of its links. Without IPv6 it is off. With it, interfaces come without IPv6, and with nothing to say once
    `ipv6_on` has switched it on: no router is solicited or listened to, no address is made up or tested (RFC 4862).
    """
    return dict(_QUIET if IPV6 in families else _OFF)


def ipv6_on(interface: str) -> dict[str, str]:
    """The sysctls that switch IPv6 on for an interface: names with slashes, since interfaces may have dots."""
    return {f"net/ipv6/conf/{interface}/disable_ipv6": "0"}


FORWARDS_IPV4 = {"net.ipv4.ip_forward": "1"}
FORWARDS_IPV6 = {"net.ipv6.conf.all.forwarding": "1"}
"""The sysctls of a router. IPv6's comes after its interfaces are without multicast: one that has it would join the
group of all routers, and report that (net/ipv6/addrconf.c: dev_forward_change).
"""
