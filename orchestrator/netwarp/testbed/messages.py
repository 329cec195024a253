"""rtnetlink requests as bytes (pyroute2 is the encoder) together with the command each one means."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from .netem import Netem
from .tbf import Tbf

NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x1, 0x4, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
CREATE = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
REPLACE = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE
CHANGE = NLM_F_REQUEST | NLM_F_ACK
RTM_NEWLINK, RTM_GETLINK, RTM_NEWADDR, RTM_GETADDR = 16, 18, 20, 22
RTM_NEWROUTE, RTM_GETROUTE, RTM_NEWNEIGH, RTM_GETNEIGH, RTM_NEWQDISC, RTM_GETQDISC = 24, 26, 28, 30, 36, 38
AF_UNSPEC, AF_INET = 0, 2
IFF_UP = 0x1
NUD_PERMANENT = 0x80
RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_UNICAST = 254, 4, 0, 1
TC_H_ROOT = 0xFFFFFFFF
NAMESPACE_FD_BASE = 200
"""cell-init holds namespace I as this file descriptor + I (docs/formats.md)."""
TCA_KIND, TCA_OPTIONS = 1, 2
Stage = Netem | Tbf
"""One qdisc of a direction."""


@dataclass(frozen=True, slots=True)
class Request:
    """One netlink message and the command it means (without `ip netns exec`)."""

    data: bytes
    command: str


@dataclass(frozen=True, slots=True)
class VethEnd:
    """One end of a veth: namespace index, name, ifindex, MAC."""

    namespace: int
    name: str
    ifindex: int
    mac: str


def _encode(message: Any, kind: int, flags: int) -> bytes:
    message["header"]["type"] = kind
    message["header"]["flags"] = flags
    message.encode()
    return bytes(message.data)


def veth(end: VethEnd, peer: VethEnd, peer_namespace_name: str, mtu_bytes: int) -> Request:
    """Create a veth pair, one end here, the other in the peer's namespace, both with chosen ifindexes."""
    message = ifinfmsg()
    message["index"] = end.ifindex
    there = {
        "index": peer.ifindex,
        "attrs": [
            ("IFLA_IFNAME", peer.name),
            ("IFLA_MTU", mtu_bytes),
            ("IFLA_ADDRESS", peer.mac),
            ("IFLA_NET_NS_FD", NAMESPACE_FD_BASE + peer.namespace),
        ],
    }
    message["attrs"] = [
        ("IFLA_IFNAME", end.name),
        ("IFLA_MTU", mtu_bytes),
        ("IFLA_ADDRESS", end.mac),
        (
            "IFLA_LINKINFO",
            {"attrs": [("IFLA_INFO_KIND", "veth"), ("IFLA_INFO_DATA", {"attrs": [("VETH_INFO_PEER", there)]})]},
        ),
    ]
    text = (
        f"ip link add {end.name} index {end.ifindex} mtu {mtu_bytes} address {end.mac} type veth "
        f"peer name {peer.name} index {peer.ifindex} mtu {mtu_bytes} address {peer.mac} netns {peer_namespace_name}"
    )
    return Request(_encode(message, RTM_NEWLINK, CREATE), text)


def set_link(name: str, ifindex: int, *, up: bool) -> Request:
    """Set an interface administratively up or down."""
    message = ifinfmsg()
    message["index"] = ifindex
    message["change"] = IFF_UP
    message["flags"] = IFF_UP if up else 0
    return Request(_encode(message, RTM_NEWLINK, CHANGE), f"ip link set dev {name} {'up' if up else 'down'}")


def address(name: str, ifindex: int, ip: str, prefix_length: int) -> Request:
    """Add an IPv4 address."""
    message = ifaddrmsg()
    message["family"] = AF_INET
    message["prefixlen"] = prefix_length
    message["index"] = ifindex
    message["attrs"] = [("IFA_LOCAL", ip), ("IFA_ADDRESS", ip)]
    return Request(_encode(message, RTM_NEWADDR, CREATE), f"ip addr add {ip}/{prefix_length} dev {name}")


def route(
    subnet: str,
    prefix_length: int,
    gateway: str,
    name: str,
    ifindex: int,
    initial_window_packets: int | None = None,
    quick_ack: bool = False,
) -> Request:
    """Add a static route, replacing an equal one (so that it can be restored after a link went down).

    quick_ack: TCP acknowledges every segment of connections by it (net/ipv4/tcp_input.c: tcp_in_quickack_mode).
    """
    message = rtmsg()
    message["family"] = AF_INET
    message["dst_len"] = prefix_length
    message["table"] = RT_TABLE_MAIN
    message["proto"] = RTPROT_STATIC
    message["scope"] = RT_SCOPE_UNIVERSE
    message["type"] = RTN_UNICAST
    message["attrs"] = [("RTA_DST", subnet), ("RTA_GATEWAY", gateway), ("RTA_OIF", ifindex)]
    text = f"ip route replace {subnet}/{prefix_length} via {gateway} dev {name}"
    metrics: list[tuple[str, int]] = []
    if initial_window_packets is not None:
        metrics.append(("RTAX_INITCWND", initial_window_packets))
        text += f" initcwnd {initial_window_packets}"
    if quick_ack:
        metrics.append(("RTAX_QUICKACK", 1))
        text += " quickack 1"
    if metrics:
        message["attrs"].append(("RTA_METRICS", {"attrs": metrics}))
    return Request(_encode(message, RTM_NEWROUTE, REPLACE), text)


def neighbour(name: str, ifindex: int, ip: str, mac: str) -> Request:
    """Set a permanent neighbour, so that no ARP ever crosses a shaped link."""
    message = ndmsg()
    message["family"] = AF_INET
    message["ifindex"] = ifindex
    message["state"] = NUD_PERMANENT
    message["attrs"] = [("NDA_DST", ip), ("NDA_LLADDR", mac)]
    text = f"ip neigh replace {ip} lladdr {mac} dev {name} nud permanent"
    return Request(_encode(message, RTM_NEWNEIGH, REPLACE), text)


def qdisc(name: str, ifindex: int, stage: Stage, *, handle: int, parent: int | None, replace: bool) -> Request:
    """Add or replace (`replace`) a qdisc, or else change it in place. `parent` None = root.

    A replacement under a new handle destroys the old qdisc with everything in it; a change keeps what is queued.
    """
    text_parent = "root" if parent is None else f"parent {parent:x}:1"
    verb = "replace" if replace else "change"
    data = _traffic_control(
        RTM_NEWQDISC,
        REPLACE if replace else CHANGE,
        ifindex=ifindex,
        handle=handle << 16,
        parent=TC_H_ROOT if parent is None else (parent << 16) | 1,
        attributes=((TCA_KIND, f"{stage.kind}\0".encode()), (TCA_OPTIONS, stage.encode()), *stage.attributes()),
    )
    text = f"tc qdisc {verb} dev {name} {text_parent} handle {handle:x}: {stage.text()}"
    return Request(data, "\n".join(filter(None, (text, stage.remark()))))


def _traffic_control(
    kind: int, flags: int, *, ifindex: int, handle: int, parent: int, attributes: tuple[tuple[int, bytes], ...]
) -> bytes:
    """struct tcmsg and its attributes. Packed here because pyroute2 would choose its own netem for TCA_OPTIONS."""
    body = struct.pack("=BBHiIII", AF_UNSPEC, 0, 0, ifindex, handle, parent, 0)
    for number, value in attributes:
        body += struct.pack("=HH", len(value) + 4, number) + value + bytes(-len(value) % 4)
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 0, 0) + body


def dump(kind: str) -> bytes:
    """A dump request of `link`, `address`, `route`, `neighbour` or `qdisc`."""
    flags = NLM_F_REQUEST | NLM_F_DUMP
    if kind == "link":
        return _encode(ifinfmsg(), RTM_GETLINK, flags)
    if kind == "address":
        request = ifaddrmsg()
        request["family"] = AF_INET
        return _encode(request, RTM_GETADDR, flags)
    if kind == "route":
        request = rtmsg()
        request["family"] = AF_INET
        return _encode(request, RTM_GETROUTE, flags)
    if kind == "neighbour":
        request = ndmsg()
        request["family"] = AF_INET
        return _encode(request, RTM_GETNEIGH, flags)
    if kind == "qdisc":
        return _traffic_control(RTM_GETQDISC, flags, ifindex=0, handle=0, parent=0, attributes=())
    raise ValueError(kind)
