"""Numbers in packet headers: IP protocols, TCP flags, MPTCP subtypes, SCTP chunk types and error causes. The only place
in Python that has them.
"""

from __future__ import annotations

ICMP, TCP, UDP, ICMPV6, SCTP = 1, 6, 17, 58, 132
IP_PROTOCOLS = {"tcp": TCP, "mptcp": TCP, "sctp": SCTP, "udp": UDP, "quic": UDP, "icmp": ICMP}
"""A flow's protocol -> the protocol number in the IP header (over IPv6 icmp is ICMPV6)."""

ETHERNET_HEADER_BYTES = 14
FIN, SYN, RST, PSH, ACK, ECE, CWR = 1, 2, 4, 8, 16, 64, 128
"""Flags of the TCP header (RFC 9293 3.1, RFC 3168 6.1)."""
ECN_MASK, CE = 3, 3
"""The low two bits of IP's TOS, and "congestion experienced" (RFC 3168 5)."""

MP_CAPABLE, MP_JOIN, DSS, ADD_ADDR, REMOVE_ADDR, MP_PRIO, MP_FAIL, MP_FASTCLOSE, MP_TCPRST = range(9)
"""Subtypes of the MPTCP option (RFC 8684 8.2)."""
MPTCP_SUBTYPE_NAMES = (
    "MP_CAPABLE", "MP_JOIN", "DSS", "ADD_ADDR", "REMOVE_ADDR", "MP_PRIO", "MP_FAIL", "MP_FASTCLOSE", "MP_TCPRST",
)  # fmt: skip

DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, SHUTDOWN = range(8)
SHUTDOWN_ACK, ERROR, COOKIE_ECHO, COOKIE_ACK, SHUTDOWN_COMPLETE = 8, 9, 10, 11, 14
I_DATA, FORWARD_TSN, I_FORWARD_TSN = 64, 192, 194
ASCONF_ACK, RE_CONFIG, ASCONF = 128, 130, 193
UNORDERED, FIRST, LAST = 4, 2, 1
"""Flags of DATA and I-DATA (RFC 9260 3.3.1, RFC 8260 2.1)."""
USER_INITIATED = 12
"""Cause of an ABORT that the application asked for (RFC 9260 3.3.10.12)."""

CHUNK_NAMES = {
    DATA: "DATA",
    INIT: "INIT",
    INIT_ACK: "INIT ACK",
    SACK: "SACK",
    HEARTBEAT: "HEARTBEAT",
    HEARTBEAT_ACK: "HEARTBEAT ACK",
    ABORT: "ABORT",
    SHUTDOWN: "SHUTDOWN",
    SHUTDOWN_ACK: "SHUTDOWN ACK",
    ERROR: "ERROR",
    COOKIE_ECHO: "COOKIE ECHO",
    COOKIE_ACK: "COOKIE ACK",
    12: "ECNE",
    13: "CWR",
    SHUTDOWN_COMPLETE: "SHUTDOWN COMPLETE",
    15: "AUTH",
    I_DATA: "I-DATA",
    ASCONF_ACK: "ASCONF-ACK",
    RE_CONFIG: "RE-CONFIG",
    132: "PAD",
    FORWARD_TSN: "FORWARD TSN",
    ASCONF: "ASCONF",
    I_FORWARD_TSN: "I-FORWARD-TSN",
}
"""RFC 9260 3.2; AUTH RFC 4895, I-DATA RFC 8260, ASCONF RFC 5061, RE-CONFIG RFC 6525, PAD RFC 4820, FORWARD TSN
RFC 3758.
"""

CAUSE_NAMES = {
    1: "Invalid Stream Identifier",
    2: "Missing Mandatory Parameter",
    3: "Stale Cookie",
    4: "Out of Resource",
    5: "Unresolvable Address",
    6: "Unrecognized Chunk Type",
    7: "Invalid Mandatory Parameter",
    8: "Unrecognized Parameters",
    9: "No User Data",
    10: "Cookie Received While Shutting Down",
    11: "Restart of an Association with New Addresses",
    12: "User-Initiated Abort",
    13: "Protocol Violation",
    0xA0: "Request to Delete Last Remaining IP Address",
    0xA1: "Operation Refused Due to Resource Shortage",
    0xA2: "Request to Delete Source IP Address",
    0xA3: "Association Aborted Due to Illegal ASCONF-ACK",
    0xA4: "Request Refused - No Authorization",
    0x105: "Unsupported HMAC Identifier",
}
"""RFC 9260 3.3.10; from 0xA0 on RFC 5061 4.3 and RFC 4895 4."""

PAYLOAD_NAMES = {
    1: "IUA", 2: "M2UA", 3: "M3UA", 4: "SUA", 5: "M2PA", 6: "V5UA", 7: "H.248", 8: "BICC", 10: "DUA", 13: "H.323",
    18: "S1AP", 19: "RUA", 20: "HNBAP", 24: "SBc-AP", 25: "NBAP", 27: "X2AP", 29: "LCS-AP", 31: "SABP", 43: "M2AP",
    44: "M3AP", 46: "Diameter", 47: "Diameter in DTLS", 50: "WebRTC control", 51: "WebRTC text", 53: "WebRTC binary",
    60: "NGAP", 61: "XnAP", 62: "F1AP", 66: "NGAP in DTLS",
}  # fmt: skip
"""SCTP's payload protocol identifiers, of IANA's registry."""


def chunk_name(kind: int) -> str:
    """The name of a chunk type; "type <number>" where none is assigned."""
    return CHUNK_NAMES.get(kind, f"type {kind}")


def cause_name(code: int) -> str:
    """The name of an error cause; "cause <number>" where none is assigned."""
    return CAUSE_NAMES.get(code, f"cause {code}")


def mptcp_subtype_name(subtype: int) -> str:
    """The name of an MPTCP option's subtype; "subtype <number>" where none is assigned."""
    return MPTCP_SUBTYPE_NAMES[subtype] if subtype < len(MPTCP_SUBTYPE_NAMES) else f"subtype {subtype}"
