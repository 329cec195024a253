"""Packets of a script as bytes, and captured bytes as packets, both in the script's words."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from .addresses import PORT, Addresses
from .script import Icmp, Option, Packet, Tcp, Unsupported

ECN = {"noecn": 0, "ect1": 1, "ect0": 2, "ce": 3}
_FLAGS = {"F": 0x01, "S": 0x02, "R": 0x04, "P": 0x08, ".": 0x10, "U": 0x20, "E": 0x40, "W": 0x80, "C": 0x80, "A": 0x100}
_ORDER = "SFRPUEWA."
_FIXED = {"eol": b"\0", "nop": b"\1", "sackOK": b"\4\2"}
_ACCECN0, _ACCECN1 = 172, 174
"""Kinds of AccECN's option: the first counter is that of ECT(0), of ECT(1)."""
OPTION_NAMES = {2: "mss", 3: "wscale", 5: "sack", 19: "md5", 34: "FO", _ACCECN0: "ECN", _ACCECN1: "ECN", 254: "FOEXP"}
"""Those of options with a value, as scripts write them."""
_EXPERIMENT = b"\xf9\x89"
"""Fast Open's experiment (RFC 7413, appendix A)."""
_ICMP = {
    ("unreachable", 4): 3, ("packet_too_big", 6): 2, ("unreachable", 6): 1, ("time_exceeded", 4): 11,
    ("time_exceeded", 6): 3, ("parameter_problem", 4): 12, ("parameter_problem", 6): 4, ("source_quench", 4): 4,
    ("redirect", 4): 5,
}  # fmt: skip
_CODES = {
    4: {"": 0, "net_unreachable": 0, "host_unreachable": 1, "protocol_unreachable": 2, "port_unreachable": 3,
        "frag_needed": 4, "source_route_failed": 5, "net_unknown": 6, "host_unknown": 7, "ttl_exceeded": 0},
    6: {"": 0, "no_route": 0, "admin_prohibited": 1, "addr_unreachable": 3, "port_unreachable": 4, "hop_limit": 0},
}  # fmt: skip


def option_bytes(option: Option, defines: Mapping[str, str], line: int) -> bytes:
    """One TCP option on the wire. Raises Unsupported."""
    match option.kind:
        case "nop" | "eol" | "sackOK":
            return _FIXED[option.kind]
        case "mss":
            return struct.pack(">BBH", 2, 4, *option.values)
        case "wscale":
            return struct.pack(">BBB", 3, 3, *option.values)
        case "TS":
            return struct.pack(">BBII", 8, 10, *option.values)
        case "sack":
            return struct.pack(f">BB{len(option.values)}I", 5, 2 + 4 * len(option.values), *option.values)
        case "ECN":
            kind = _ACCECN1 if option.counters[:1] == ("e1b",) else _ACCECN0
            return bytes([kind, 2 + 3 * len(option.values)]) + b"".join(v.to_bytes(3, "big") for v in option.values)
    try:
        data = bytes.fromhex(defines.get(option.text, option.text))
    except ValueError:
        raise Unsupported(line, f"the symbol {option.text}") from None
    if option.kind == "md5":
        return bytes([19, 2 + len(data)]) + data
    if option.kind == "FO":
        return bytes([34, 2 + len(data)]) + data
    return bytes([254, 4 + len(data)]) + _EXPERIMENT + data


def options_bytes(options: tuple[Option, ...], defines: Mapping[str, str], line: int) -> bytes:
    """All options of a segment. Raises Unsupported."""
    data = b"".join(option_bytes(option, defines, line) for option in options)
    if len(data) % 4 or len(data) > 40:
        raise Unsupported(line, f"TCP options of {len(data)} bytes: they must fill words of 4, at most 40")
    return data


@dataclass(frozen=True, slots=True)
class Inbound:
    """A packet to be injected. zeros: bytes of payload behind the header. isn_at: offsets of numbers that count from
    the kernel's initial sequence number; ecr_at: offset of a time stamp that echoes `ecr`, 0: none; local_port_at:
    where the kernel's port stands; sum_at: the offset of a checksum over what begins at sum_from, with a pseudo header
    of the protocol `pseudo`, 0: without one.
    """

    header: bytes
    zeros: int
    isn_at: tuple[int, ...]
    ecr_at: int
    ecr: int
    local_port_at: int
    sum_from: int
    sum_at: int
    pseudo: int


def inbound(
    packet: Packet, addresses: Addresses, remote_port: int, defines: Mapping[str, str], line: int, remote_isn: int
) -> Inbound:
    """The bytes of a packet from the remote host. remote_isn: what its sequence numbers count from (0 for a SYN's)."""
    local, remote = addresses.packed()
    if isinstance(packet.body, Icmp):
        return _icmp(packet.body, addresses, remote_port, line)
    tcp = packet.body
    options = options_bytes(tcp.options or (), defines, line)
    bits = flag_bits(tcp)
    head = struct.pack(
        ">HHIIHHHH", remote_port, PORT, (tcp.seq + remote_isn) & 0xFFFFFFFF, tcp.ack or 0,
        (5 + len(options) // 4) << 12 | bits, tcp.window or 0, 0, tcp.urgent or 0,
    )  # fmt: skip
    ip = _ip_header(packet, addresses, remote, local, 6, len(head) + len(options) + tcp.length)
    at = len(ip)
    isn_at = [at + 8] if "." in tcp.flags else []
    ecr_at = ecr = 0
    offset = at + 20
    for option in tcp.options or ():
        if option.kind == "sack":
            isn_at += [offset + 2 + 4 * n for n in range(len(option.values))]
        if option.kind == "TS" and "." in tcp.flags:
            ecr_at, ecr = offset + 6, option.values[1]
        offset += len(option_bytes(option, defines, line))
    return Inbound(ip + head + options, tcp.length, tuple(isn_at), ecr_at, ecr, at + 2, at, at + 16, 6)


def flag_bits(tcp: Tcp) -> int:
    """The nine bits of a segment's flags."""
    bits = sum(_FLAGS[letter] for letter in set(tcp.flags))
    if tcp.ace is not None:
        bits |= (tcp.ace & 4) << 6 | (tcp.ace & 3) << 6
    return bits


def _ip_header(packet: Packet, addresses: Addresses, source: bytes, target: bytes, protocol: int, length: int) -> bytes:
    tos = packet.tos if packet.tos is not None else ECN.get(packet.ecn, 0)
    ttl = 255 if packet.ttl is None else packet.ttl
    if addresses.wire == 6:
        return struct.pack(">IHBB", 6 << 28 | tos << 20, length, protocol, ttl) + source + target
    if 20 + length > 0xFFFF:
        raise Unsupported(0, "a packet of more than 65535 bytes")
    head = struct.pack(">BBHHHBBH", 0x45, tos, 20 + length, 0, 0x4000, ttl, protocol, 0) + source + target
    return head[:10] + checksum(head).to_bytes(2, "big") + head[12:]


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _icmp(icmp: Icmp, addresses: Addresses, remote_port: int, line: int) -> Inbound:
    """An error that echoes a segment which the kernel sent."""
    local, remote = addresses.packed()
    kind = _ICMP.get((icmp.kind, addresses.wire))
    code = _CODES[addresses.wire].get(icmp.code)
    if kind is None or code is None:
        raise Unsupported(line, f"icmp {icmp.kind} {icmp.code} in IPv{addresses.wire}")
    seq, length = icmp.echoed or (0, 0)
    echoed_ip = _ip_header(Packet(False, icmp), addresses, local, remote, 6, 20 + length)
    echoed_tcp = struct.pack(">HHI", PORT, remote_port, seq & 0xFFFFFFFF)
    if addresses.wire == 6:
        echoed_tcp += bytes(12)
    head = struct.pack(">BBHI", kind, code, 0, icmp.mtu or 0)
    protocol = 58 if addresses.wire == 6 else 1
    body = head + echoed_ip + echoed_tcp
    ip = _ip_header(Packet(True, icmp), addresses, remote, local, protocol, len(body))
    at = len(ip) + 8 + len(echoed_ip)
    return Inbound(
        ip + body, 0, (at + 4,), 0, 0, at, len(ip), len(ip) + 2, protocol if addresses.wire == 6 else 0
    )  # fmt: skip


# --- what was captured ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """A TCP segment as captured. flags: the nine bits; options: (kind, data) each; ip_ok, zeros: whether the IP
    checksum is right, and whether the payload is zeros.
    """

    tos: int
    ttl: int
    flags: int
    reserved: int
    seq: int
    ack: int
    window: int
    urgent: int
    options: tuple[tuple[int, bytes], ...]
    length: int
    ip_ok: bool
    zeros: bool
    options_length: int


def parse(data: bytes) -> Seen | None:
    """Read an IP packet; None if it holds no whole TCP segment."""
    if len(data) < 40:
        return None
    version = data[0] >> 4
    if version == 4:
        at, protocol, tos, ttl = 4 * (data[0] & 15), data[9], data[1], data[8]
        end, ip_ok = int.from_bytes(data[2:4], "big"), checksum(data[:at]) == 0
    elif version == 6:
        word = int.from_bytes(data[:4], "big")
        at, protocol, tos, ttl = 40, data[6], word >> 20 & 255, data[7]
        end, ip_ok = 40 + int.from_bytes(data[4:6], "big"), True
    else:
        return None
    if protocol != 6 or len(data) < at + 20:
        return None
    if end in (at, 40 if version == 6 else 0):  # a jumbo super-packet says no length
        end = len(data)
    _, _, seq, ack, offset, window, _, urgent = struct.unpack_from(">HHIIHHHH", data, at)
    start = at + (offset >> 12) * 4
    if end > len(data) or start > end or offset >> 12 < 5:
        return None
    payload = data[start:end]
    options = options_of(data[at + 20 : start])
    return Seen(
        tos, ttl, offset & 0x1FF, offset >> 9 & 7, seq, ack, window, urgent, options, len(payload), ip_ok,
        not payload.strip(b"\0"), start - at - 20,
    )  # fmt: skip


def options_of(data: bytes) -> tuple[tuple[int, bytes], ...]:
    """(kind, data) of each TCP option; kind -1: bytes that are none."""
    found, at = [], 0
    while at < len(data):
        kind = data[at]
        length = 1 if kind < 2 else data[at + 1] if at + 1 < len(data) else 0
        if length < 1 or (kind >= 2 and length < 2) or at + length > len(data):
            found.append((-1, data[at:]))
            break
        found.append((kind, data[at + 2 : at + length] if kind >= 2 else b""))
        at += length
    return tuple(found)


def text_of(seen: Seen, *, ace: bool = False, ecn: bool = False) -> str:
    """A captured segment (of sequence numbers in the script's terms) in the script's words."""
    letters = "".join(letter for letter in _ORDER if seen.flags & _FLAGS[letter] and not (ace and letter in "EWA"))
    if ace:
        letters += str(seen.flags >> 6 & 7)
    prefix = f"[{next(name for name, value in ECN.items() if value == seen.tos & 3)}] " if ecn else ""
    end = (seen.seq + seen.length) & 0xFFFFFFFF
    words = [f"> {prefix}{letters or '-'} {seen.seq}:{end}({seen.length})"]
    if seen.flags & _FLAGS["."]:
        words.append(f"ack {seen.ack}")
    words.append(f"win {seen.window}")
    if seen.urgent:
        words.append(f"urg {seen.urgent}")
    if seen.options:
        words.append(f"<{','.join(_option_text(kind, data) for kind, data in seen.options)}>")
    return " ".join(words)


def _option_text(kind: int, data: bytes) -> str:
    match kind:
        case 0 | 1 | 4:
            return {0: "eol", 1: "nop", 4: "sackOK"}[kind]
        case 2 if len(data) == 2:
            return f"mss {int.from_bytes(data, 'big')}"
        case 3 if len(data) == 1:
            return f"wscale {data[0]}"
        case 8 if len(data) == 8:
            return "TS val {} ecr {}".format(*struct.unpack(">II", data))
        case 5 if data and len(data) % 8 == 0:
            edges = struct.unpack(f">{len(data) // 4}I", data)
            return "sack " + " ".join(f"{a}:{b}" for a, b in zip(edges[::2], edges[1::2], strict=True))
        case 19:
            return f"md5 {data.hex()}"
        case 34:
            return f"FO {data.hex()}".strip()
        case 172 | 174 if len(data) % 3 == 0:
            names = ("e0b", "ceb", "e1b") if kind == _ACCECN0 else ("e1b", "ceb", "e0b")
            values = [int.from_bytes(data[at : at + 3], "big") for at in range(0, len(data), 3)]
            return "ECN " + " ".join(f"{name} {value}" for name, value in zip(names, values, strict=False))
    return f"option {kind} {data.hex()}".strip()
