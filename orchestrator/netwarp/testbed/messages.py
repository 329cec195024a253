"""rtnetlink requests as bytes (encoded by pyroute2), each with the ip or tc command that does the same."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from ..core.ip_families import IPV6, IpFamily, family_of
from .qdiscs import CLASS, Htb, QdiscStage, attribute
from .steps import Step, step

NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x1, 0x4, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
CREATE = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
REPLACE = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE
CHANGE = NLM_F_REQUEST | NLM_F_ACK
DUMP_FLAGS = NLM_F_REQUEST | NLM_F_DUMP
RTM_NEWLINK, RTM_GETLINK, RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 16, 18, 20, 21, 22
RTM_NEWROUTE, RTM_GETROUTE, RTM_NEWNEIGH, RTM_GETNEIGH, RTM_NEWQDISC, RTM_GETQDISC = 24, 26, 28, 30, 36, 38
RTM_NEWTCLASS, RTM_GETTCLASS = 40, 42
RTM_NEWTFILTER, RTM_GETTFILTER = 44, 46
AF_UNSPEC, AF_INET, AF_BRIDGE = 0, 2, 7
IFF_UP, IFF_NOARP, IFF_MULTICAST = 0x1, 0x80, 0x1000
IFA_F_NODAD = 0x02
NUD_NOARP, NUD_PERMANENT, NTF_MASTER = 0x40, 0x80, 0x04
RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_UNICAST = 254, 4, 0, 1
RTPROT_KERNEL, IP6_RT_PRIO_ADDRCONF = 2, 256
RTM_NEWRULE, RTM_GETRULE, FR_ACT_TO_TBL, RT_SCOPE_HOST, RTN_LOCAL = 32, 34, 1, 254, 2
RT_SCOPE_LINK = 253
LOOPBACK_IFINDEX, IPPROTO_TCP = 1, 6
RELAY_TABLE = 100
"""The routing table of a router whose agent relays connections."""
TC_H_ROOT = 0xFFFFFFFF
TC_H_CLSACT, CLSACT_HANDLE, INGRESS, EGRESS = 0xFFFFFFF1, 0xFFFF0000, 0xFFFFFFF2, 0xFFFFFFF3
ETH_P_ALL = 0x0003
PROGRAM_FD_BASE = 1200
"""cell-init holds packet program I as this file descriptor + 3 I (docs/formats.md)."""
TCA_BPF_FD, TCA_BPF_NAME, TCA_BPF_FLAGS, TCA_BPF_TAG = 6, 7, 8, 10
TCA_FW_ACT, TCA_MATCHALL_ACT, TCA_ACT_KIND, TCA_ACT_OPTIONS, TCA_MIRRED_PARMS = 4, 2, 1, 2, 2
TCA_FW_CLASSID, TCA_SKBEDIT_PARMS, TCA_SKBEDIT_MARK = 1, 2, 5
TC_ACT_PIPE, TC_ACT_STOLEN, TCA_EGRESS_REDIR = 3, 4, 1
NAMESPACE_FD_BASE = 200
"""cell-init holds namespace I as this file descriptor + I (docs/formats.md)."""
TCA_KIND, TCA_OPTIONS = 1, 2
NLA_F_NESTED = 0x8000


@dataclass(frozen=True, slots=True)
class Request:
    """One netlink message and the command it means (without `ip netns exec`)."""

    data: bytes
    command: str


@dataclass(frozen=True, slots=True)
class Device:
    """A network device: name, ifindex, number of its namespace, MAC address ("": the kernel's choice)."""

    name: str
    ifindex: int
    namespace: int = 0
    mac: str = ""


def netlink_step(namespace: int, node: str, request: Request, at_ns: int | None = None, **more: str | int) -> Step:
    """The step that sends a request in a node's namespace."""
    lines = request.command.split("\n")
    command = "\n".join(line if line.startswith("#") else f"ip netns exec {node} {line}" for line in lines)
    return step("netlink", ns=namespace, **more, data=request.data.hex(), command=command, at_ns=at_ns)


def encode(message: Any, kind: int, flags: int) -> bytes:
    """A netlink message of pyroute2 as bytes."""
    message["header"]["type"] = kind
    message["header"]["flags"] = flags
    message.encode()
    return bytes(message.data)


def _encode(of: Any, kind: int, how: int, attrs: Sequence[tuple[str, Any]] = (), /, **fields: int) -> bytes:
    message = of()
    for name, value in fields.items():
        message[name] = value
    if attrs:
        message["attrs"] = list(attrs)
    return encode(message, kind, how)


def _link_kind(kind: str, **data: Any) -> tuple[str, Any]:
    attributes = {"attrs": list(data.items())}
    return "IFLA_LINKINFO", {"attrs": [("IFLA_INFO_KIND", kind), ("IFLA_INFO_DATA", attributes)]}


def veth(end: Device, peer: Device, mtu_bytes: int, peer_node: str = "") -> Request:
    """Create a veth pair with chosen ifindexes, one end here, the other in the peer's namespace; peer_node: its name
    ("": here too).
    """

    def named(each: Device) -> list[tuple[str, Any]]:
        mac = [("IFLA_ADDRESS", each.mac)] if each.mac else []
        return [("IFLA_IFNAME", each.name), ("IFLA_MTU", mtu_bytes), *mac]

    def words(each: Device) -> str:
        text = f"{each.name} index {each.ifindex} mtu {mtu_bytes}"
        return f"{text} address {each.mac}" if each.mac else text

    elsewhere = [("IFLA_NET_NS_FD", NAMESPACE_FD_BASE + peer.namespace)] if peer_node else []
    there = {"index": peer.ifindex, "attrs": [*named(peer), *elsewhere]}
    text = f"ip link add {words(end)} type veth peer name {words(peer)}" + (f" netns {peer_node}" if peer_node else "")
    attrs = [*named(end), _link_kind("veth", VETH_INFO_PEER=there)]
    return Request(_encode(ifinfmsg, RTM_NEWLINK, CREATE, attrs, index=end.ifindex), text)


def bridge(device: Device) -> Request:
    """Create a bridge: a switch that learns where addresses are, without spanning tree (a segment here has no loop)."""
    attrs = [("IFLA_IFNAME", device.name), _link_kind("bridge", IFLA_BR_STP_STATE=0)]
    data = _encode(ifinfmsg, RTM_NEWLINK, CREATE, attrs, index=device.ifindex)
    return Request(data, f"ip link add {device.name} index {device.ifindex} type bridge stp_state 0")


def make_port(device: Device, of: Device) -> Request:
    """Make an interface a port of a bridge."""
    data = _encode(ifinfmsg, RTM_NEWLINK, CHANGE, [("IFLA_MASTER", of.ifindex)], index=device.ifindex)
    return Request(data, f"ip link set dev {device.name} master {of.name}")


def behind_port(device: Device, mac: str) -> Request:
    """Tell a bridge that an address is behind this port: it does not learn it where no ARP is sent, and would send the
    packets to an address that never sends to every port.
    """
    data = _encode(
        ndmsg, RTM_NEWNEIGH, CREATE, [("NDA_LLADDR", mac)],
        family=AF_BRIDGE, ifindex=device.ifindex, state=NUD_NOARP, flags=NTF_MASTER,
    )  # fmt: skip
    return Request(data, f"bridge fdb add {mac} dev {device.name} master static")


def set_link(device: Device, *, up: bool) -> Request:
    """Set an interface administratively up or down."""
    data = _encode(ifinfmsg, RTM_NEWLINK, CHANGE, index=device.ifindex, change=IFF_UP, flags=IFF_UP if up else 0)
    return Request(data, f"ip link set dev {device.name} {'up' if up else 'down'}")


def set_mtu(device: Device, mtu_bytes: int) -> Request:
    """Set the MTU of an interface."""
    data = _encode(ifinfmsg, RTM_NEWLINK, CHANGE, [("IFLA_MTU", mtu_bytes)], index=device.ifindex)
    return Request(data, f"ip link set dev {device.name} mtu {mtu_bytes}")


def keep_quiet(device: Device) -> Request:
    """Let an interface neither ask for neighbours nor join multicast groups: the kernel would send packets for both
    (RFC 4861, RFC 3810)."""
    data = _encode(
        ifinfmsg, RTM_NEWLINK, CHANGE, index=device.ifindex, change=IFF_NOARP | IFF_MULTICAST, flags=IFF_NOARP
    )
    return Request(data, f"ip link set dev {device.name} arp off multicast off")


def address(device: Device, ip: str, prefix_length: int) -> Request:
    """Add an address; one of IPv6 is not tested for duplicates."""
    family = family_of(ip)
    flags, nodad = (IFA_F_NODAD, " nodad") if family == IPV6 else (0, "")
    attrs = [("IFA_LOCAL", ip), ("IFA_ADDRESS", ip)]
    data = _encode(
        ifaddrmsg, RTM_NEWADDR, CREATE, attrs,
        family=family.number, prefixlen=prefix_length, index=device.ifindex, flags=flags,
    )  # fmt: skip
    return Request(data, f"{family.ip} addr add {ip}/{prefix_length} dev {device.name}{nodad}")


def remove_address(device: Device, ip: str, prefix_length: int) -> Request:
    """Remove an address; with an interface's last one the kernel removes its routes, too."""
    family, attrs = family_of(ip), [("IFA_LOCAL", ip), ("IFA_ADDRESS", ip)]
    where = {"family": family.number, "prefixlen": prefix_length, "index": device.ifindex}
    data = _encode(ifaddrmsg, RTM_DELADDR, CHANGE, attrs, **where)
    return Request(data, f"{family.ip} addr del {ip}/{prefix_length} dev {device.name}")


def route(
    subnet: str,
    prefix_length: int,
    gateway: str,
    device: Device,
    initial_window_packets: int | None = None,
    quick_ack: bool = False,
    *,
    mtu_bytes: int | None = None,
    connected: bool = False,
) -> Request:
    """Add a static route, replacing an equal one (so that it can be restored after a link went down).

    mtu_bytes: packets forwarded by it are at most so long (net/ipv4/route.c: ip_dst_mtu_maybe_forward). connected: as
    the kernel's own, to the subnet of an interface.

    gateway: "" where the destination is on the interface's segment. quick_ack: TCP acknowledges every segment of
    connections by it (net/ipv4/tcp_input.c: tcp_in_quickack_mode).
    """
    attrs: list[tuple[str, Any]] = [("RTA_DST", subnet), ("RTA_GATEWAY", gateway), ("RTA_OIF", device.ifindex)]
    via = f"via {gateway} dev {device.name}"
    if not gateway:
        del attrs[1]
        via = f"dev {device.name} scope link"
    family = family_of(subnet)
    if connected and family == IPV6:  # another priority would be another route
        attrs.append(("RTA_PRIORITY", IP6_RT_PRIO_ADDRCONF))
    text = f"{family.ip} route replace {subnet}/{prefix_length} {via}"
    metrics: list[tuple[str, int]] = []
    if initial_window_packets is not None:
        metrics.append(("RTAX_INITCWND", initial_window_packets))
        text += f" initcwnd {initial_window_packets}"
    if quick_ack:
        metrics.append(("RTAX_QUICKACK", 1))
        text += " quickack 1"
    if mtu_bytes is not None:
        metrics.append(("RTAX_MTU", mtu_bytes))
        text += f" mtu {mtu_bytes}"
    if metrics:
        attrs.append(("RTA_METRICS", {"attrs": metrics}))
    data = _encode(
        rtmsg, RTM_NEWROUTE, REPLACE, attrs, family=family.number, dst_len=prefix_length, table=RT_TABLE_MAIN,
        proto=RTPROT_KERNEL if connected else RTPROT_STATIC,
        scope=RT_SCOPE_UNIVERSE if gateway else RT_SCOPE_LINK, type=RTN_UNICAST,
    )  # fmt: skip
    return Request(data, text)


def relay_rule(name: str, source: str | None, destination: str | None, priority: int) -> Request:
    """TCP that comes in by the interface, from or to ports ("first:last"), is looked up in table RELAY_TABLE."""
    attrs: list[tuple[str, Any]] = [
        ("FRA_IIFNAME", name), ("FRA_PRIORITY", priority), ("FRA_TABLE", RELAY_TABLE), ("FRA_IP_PROTO", IPPROTO_TCP),
    ]  # fmt: skip
    text = f"ip rule add pref {priority} iif {name} ipproto tcp"
    for key, word, ports in (("FRA_SPORT_RANGE", "sport", source), ("FRA_DPORT_RANGE", "dport", destination)):
        if ports is not None:
            attrs.append((key, ports))
            text += f" {word} {ports.replace(':', '-')}"
    data = _encode(fibmsg, RTM_NEWRULE, CREATE, attrs, family=AF_INET, table=RELAY_TABLE, action=FR_ACT_TO_TBL)
    return Request(data, f"{text} lookup {RELAY_TABLE}")


def all_local() -> Request:
    """Whatever is looked up in table RELAY_TABLE is for this node itself."""
    data = _encode(
        rtmsg, RTM_NEWROUTE, CREATE, [("RTA_OIF", LOOPBACK_IFINDEX), ("RTA_TABLE", RELAY_TABLE)],
        family=AF_INET, table=RELAY_TABLE, proto=RTPROT_STATIC, scope=RT_SCOPE_HOST, type=RTN_LOCAL,
    )  # fmt: skip
    return Request(data, f"ip route add local default dev lo table {RELAY_TABLE}")


def neighbour(device: Device, ip: str, mac: str) -> Request:
    """Set a permanent neighbour, so that no ARP or neighbour solicitation ever crosses a shaped link."""
    family, attrs = family_of(ip), [("NDA_DST", ip), ("NDA_LLADDR", mac)]
    data = _encode(
        ndmsg, RTM_NEWNEIGH, REPLACE, attrs, family=family.number, ifindex=device.ifindex, state=NUD_PERMANENT
    )
    return Request(data, f"{family.ip} neigh replace {ip} lladdr {mac} dev {device.name} nud permanent")


def qdisc(device: Device, stage: QdiscStage, *, handle: int, parent: int | None, replace: bool) -> Request:
    """Add or replace (`replace`) a qdisc, or else change it in place. `parent` None = root.

    A replacement under a new handle destroys the old qdisc with everything in it; a change keeps what is queued.
    """
    text_parent = "root" if parent is None else f"parent {parent:x}:1"
    verb = "replace" if replace else "change"
    options = TCA_OPTIONS | (NLA_F_NESTED if stage.kind == "dualpi2" else 0)  # the older ones do without the flag
    data = _traffic_control(
        RTM_NEWQDISC, REPLACE if replace else CHANGE, device.ifindex, handle=handle << 16,
        parent=TC_H_ROOT if parent is None else (parent << 16) | 1,
        attributes=((TCA_KIND, f"{stage.kind}\0".encode()), (options, stage.encode()), *stage.attributes()),
    )  # fmt: skip
    text = f"tc qdisc {verb} dev {device.name} {text_parent} handle {handle:x}: {stage.text()}"
    return Request(data, "\n".join(filter(None, (text, stage.remark()))))


def htb_class(device: Device, stage: Htb, *, handle: int, create: bool) -> Request:
    """Create the class of an htb qdisc, or change it in place."""
    data = _traffic_control(
        RTM_NEWTCLASS, CREATE if create else CHANGE, device.ifindex, handle=handle << 16 | CLASS, parent=handle << 16,
        attributes=((TCA_KIND, b"htb\0"), (TCA_OPTIONS, stage.encode_class())),
    )  # fmt: skip
    verb = "add" if create else "change"
    text = f"tc class {verb} dev {device.name} parent {handle:x}: classid {handle:x}:{CLASS} {stage.class_text()}"
    return Request(data, text)


def class_dump(ifindex: int, handle: int) -> bytes:
    """A dump request of the classes of one qdisc of an interface; handle 0: of all."""
    return _traffic_control(RTM_GETTCLASS, DUMP_FLAGS, ifindex, parent=handle << 16)


def clsact(device: Device, *, there: bool = False) -> Request:
    """The place for classifiers before the root qdisc; there: it may exist already."""
    data = _traffic_control(
        RTM_NEWQDISC, CREATE & ~NLM_F_EXCL if there else CREATE, device.ifindex,
        handle=CLSACT_HANDLE, parent=TC_H_CLSACT, attributes=((TCA_KIND, b"clsact\0"),),
    )  # fmt: skip
    return Request(data, f"tc qdisc add dev {device.name} clsact")


def attach_program(device: Device, program: int, text: str) -> Request:
    """Run packet program `program` for every packet that leaves by the interface; its answer is the verdict."""
    options = attribute(TCA_BPF_FD, struct.pack("=I", PROGRAM_FD_BASE + 3 * program))
    options += attribute(TCA_BPF_NAME, f"{text}\0".encode()) + attribute(TCA_BPF_FLAGS, struct.pack("=I", 1))
    data = _filter(device, 1, handle=1, kind="bpf", options=options)
    command = f"tc filter add dev {device.name} egress pref 1 handle 1 bpf da fd # packet program {program}"
    return Request(data, command)


def redirect_mark(device: Device, mark: int, to: Device, priority: int) -> Request:
    """Send packets with that mark, which are about to leave by the interface, out by another interface."""
    data = _filter(device, priority, handle=mark, kind="fw", options=attribute(TCA_FW_ACT, _redirect(to)))
    command = (
        f"tc filter add dev {device.name} egress pref {priority} handle {mark:#x} fw action mirred egress redirect"
    )
    return Request(data, f"{command} dev {to.name}")


def redirect_all(device: Device, to: Device, *, mark: int = 0, leaving: bool = False, priority: int = 1) -> Request:
    """Send whatever comes in by the interface (`leaving`: is about to leave by it) out by another one, marked so."""
    where, side = (EGRESS, "egress") if leaving else (INGRESS, "ingress")
    options = attribute(TCA_MATCHALL_ACT, _redirect(to, mark))
    data = _filter(device, priority, handle=1, kind="matchall", options=options, parent=where)
    words = f"tc filter add dev {device.name} {side} pref {priority} matchall"
    words += f" action skbedit mark {mark:#x} pipe" if mark else ""
    return Request(data, f"{words} action mirred egress redirect dev {to.name}")


def pass_mark(device: Device, mark: int) -> Request:
    """Packets with that mark, which are about to leave by the interface, meet no later filter."""
    data = _filter(device, 1, handle=mark, kind="fw", options=attribute(TCA_FW_CLASSID, struct.pack("=I", 1)))
    return Request(data, f"tc filter add dev {device.name} egress pref 1 handle {mark:#x} fw classid :1")


def act_on_all(device: Device, actions: bytes, words: str) -> Request:
    """Actions (the body of TCA_MATCHALL_ACT, as an attribute) on whatever comes in by the interface."""
    data = _filter(device, 1, handle=1, kind="matchall", options=actions, parent=INGRESS)
    return Request(data, f"tc filter add dev {device.name} ingress pref 1 matchall action {words}")


def _redirect(to: Device, mark: int = 0) -> bytes:
    parms = struct.pack("=IIiiiiI", 0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, to.ifindex)
    actions = [("mirred", attribute(TCA_MIRRED_PARMS, parms))]
    if mark:
        edit = attribute(TCA_SKBEDIT_PARMS, struct.pack("=IIiii", 0, 0, TC_ACT_PIPE, 0, 0))
        actions.insert(0, ("skbedit", edit + attribute(TCA_SKBEDIT_MARK, struct.pack("=I", mark))))
    return b"".join(
        attribute(number, attribute(TCA_ACT_KIND, f"{kind}\0".encode()) + attribute(TCA_ACT_OPTIONS, options))
        for number, (kind, options) in enumerate(actions, 1)
    )


def filter_dump(ifindex: int, parent: int = EGRESS) -> bytes:
    """A dump request of the filters at an interface's egress, or ingress."""
    return _traffic_control(RTM_GETTFILTER, DUMP_FLAGS, ifindex, parent=parent)


def _filter(device: Device, priority: int, *, handle: int, kind: str, options: bytes, parent: int = EGRESS) -> bytes:
    # tcm_info: priority, and the protocol in network byte order
    info = priority << 16 | int.from_bytes(ETH_P_ALL.to_bytes(2, "big"), "little")
    return _traffic_control(
        RTM_NEWTFILTER, CREATE, device.ifindex, handle=handle, parent=parent, info=info,
        attributes=((TCA_KIND, f"{kind}\0".encode()), (TCA_OPTIONS, options)),
    )  # fmt: skip


def _traffic_control(
    kind: int,
    flags: int,
    ifindex: int,
    *,
    handle: int = 0,
    parent: int = 0,
    attributes: tuple[tuple[int, bytes], ...] = (),
    info: int = 0,
) -> bytes:
    """struct tcmsg and its attributes. Packed here because pyroute2 would choose its own netem for TCA_OPTIONS."""
    body = struct.pack("=BBHiIII", AF_UNSPEC, 0, 0, ifindex, handle, parent, info)
    for number, value in attributes:
        body += attribute(number, value)
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 0, 0) + body


DUMPS = {
    "link": (ifinfmsg, RTM_GETLINK),
    "address": (ifaddrmsg, RTM_GETADDR),
    "route": (rtmsg, RTM_GETROUTE),
    "rule": (fibmsg, RTM_GETRULE),
    "neighbour": (ndmsg, RTM_GETNEIGH),
}
"""What is dumped -> the message that asks for it and answers, and its number."""


def dump(kind: str, families: Collection[IpFamily] = ()) -> bytes:
    """A dump request of a kind of DUMPS, or of `qdisc`; families: of the addresses, routes and neighbours (of IPv4
    alone if there are none).
    """
    if kind == "qdisc":
        return _traffic_control(RTM_GETQDISC, DUMP_FLAGS, 0)
    message, number = DUMPS[kind]
    every = kind == "link" or (kind != "rule" and IPV6 in families)
    return _encode(message, number, DUMP_FLAGS, family=AF_UNSPEC if every else AF_INET)
