"""The kinds of packets that a rule of a link may name, and the bit of each in a packet program (eBPF)."""

from __future__ import annotations

PACKET = "packet"
"""Any packet of a flow."""
KINDS: dict[str, tuple[int, ...]] = {
    "data": (0, 16),
    "init": (1,),
    "init_ack": (2,),
    "sack": (3,),
    "heartbeat": (4,),
    "heartbeat_ack": (5,),
    "abort": (6,),
    "shutdown": (7,),
    "shutdown_ack": (8,),
    "error": (9,),
    "cookie_echo": (10,),
    "cookie_ack": (11,),
    "shutdown_complete": (14,),
    "asconf_ack": (32,),
    "re_config": (34,),
    "forward_tsn": (48, 50),
    "asconf": (49,),
    "syn": (56,),
    "syn_ack": (57,),
    "ack": (58,),
    "fin": (59,),
    "rst": (60,),
    PACKET: (62,),
}
"""Of an SCTP chunk: (type >> 6) << 4 | type & 15, the I- forms with the plain ones. From 56 on: of TCP's flags."""
