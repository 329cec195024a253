"""The nftables rules of an agent on the forwarding path: TCP goes through its queue, and every packet is counted.

Two chains at the forward hook. Before: each TCP packet is counted and queued, or passes where nobody reads the queue
(bypass). After: what the agent suppresses carries a mark, and is counted and dropped; what passes is counted.
So packets that the kernel held for an agent when it died are the difference, whether or not it could say so.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from pyroute2.netlink.nfnetlink import NFNL_SUBSYS_NFTABLES
from pyroute2.netlink.nfnetlink.nftsocket import (
    NFT_MSG_DELTABLE,
    NFT_MSG_GETRULE,
    NFT_MSG_NEWCHAIN,
    NFT_MSG_NEWRULE,
    NFT_MSG_NEWTABLE,
    nft_chain_msg,
    nft_rule_msg,
    nft_table_msg,
)  # fmt: skip

from ..core.frozen import Frozen
from ..core.types import Check
from .messages import AF_INET, AF_UNSPEC, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REQUEST, Request, encode

APPEND = 0x800
FORWARD = 2
"""NF_INET_FORWARD."""
QUEUE, MARK = 1, 0x6E77
"""The queue's number, and SUPPRESSED_MARK of apps/agents/forward.h."""
TABLE, BEFORE, AFTER = "netwarp", "before", "after"
REGISTER, META_MARK, META_L4PROTO, EQUAL, BYPASS, DROP, ACCEPT = 1, 3, 16, 0, 1, 0, 1
VERDICT_REGISTER = 0
TCP = 6


class AgentRules(Frozen, frozen=True):
    """The counters of an agent's rules, in packets. offered: TCP that came to the queue's rule."""

    offered: int
    passed: int
    suppressed: int

    @property
    def lost(self) -> int:
        """Packets that the kernel held for the agent when it died (and those a full queue had no room for)."""
        return self.offered - self.passed - self.suppressed


def agent_rules() -> Request:
    """One batch: table, chains and rules."""
    mark = struct.pack("=I", MARK)
    parts = [
        _message(nft_table_msg, NFT_MSG_NEWTABLE, [("NFTA_TABLE_NAME", TABLE), ("NFTA_TABLE_FLAGS", 0)]),
        _chain(BEFORE, -1),
        _chain(AFTER, 0),
        _rule(BEFORE, *_compare(META_L4PROTO, bytes([TCP])), _expression("counter"), _queue()),
        _rule(AFTER, *_compare(META_MARK, mark), _expression("counter"), _drop()),
        _rule(AFTER, *_compare(META_L4PROTO, bytes([TCP])), _expression("counter")),
    ]
    hook = "type filter hook forward priority"
    text = (
        f"nft add table ip {TABLE}\n"
        f"nft add chain ip {TABLE} {BEFORE} '{{ {hook} -1; }}'\n"
        f"nft add chain ip {TABLE} {AFTER} '{{ {hook} 0; }}'\n"
        f"nft add rule ip {TABLE} {BEFORE} meta l4proto tcp counter queue num {QUEUE} bypass\n"
        f"nft add rule ip {TABLE} {AFTER} meta mark {MARK:#x} counter drop\n"
        f"nft add rule ip {TABLE} {AFTER} meta l4proto tcp counter"
    )
    return Request(b"".join(parts), text)


def rules_dump() -> bytes:
    """A dump request of every rule, with its counter."""
    message = nft_rule_msg()
    message["nfgen_family"] = AF_UNSPEC
    return encode(message, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, NLM_F_REQUEST | NLM_F_DUMP)


def decode_rules(replies: Iterable[bytes]) -> AgentRules | None:
    """The counters of a dump; None where the rules are not those of agent_rules()."""
    counted: dict[str, int] = {}
    for message in _rules(replies):
        expressions = dict(_expressions(message))
        if "counter" in expressions:
            name = next((what for what in ("queue", "immediate") if what in expressions), "passed")
            counts = dict(expressions["counter"]["attrs"])
            if "NFTA_COUNTER_PACKETS" in counts:
                counted[name] = int(counts["NFTA_COUNTER_PACKETS"])
    if set(counted) != {"queue", "immediate", "passed"}:
        return None
    return AgentRules(counted["queue"], counted["passed"], counted["immediate"])


def check_rules(node: str, counted: AgentRules | None, dies: bool) -> Check:
    """The rules stand, and every packet is accounted for; only an agent that dies may lose what was held for it."""
    name = f"packets through the agent of {node}"
    if counted is None:
        return Check(name, False, "its nftables rules do not stand as they were set up")
    detail = f"{counted.offered} offered, {counted.passed} passed, {counted.suppressed} suppressed, {counted.lost} lost"
    return Check(name, counted.lost == 0 or (dies and counted.lost > 0), detail)


def _rules(replies: Iterable[bytes]) -> Iterable[Any]:
    """The rules of a dump."""
    for reply in replies:
        offset = 0
        while offset + 16 <= len(reply):
            length, kind = struct.unpack_from("=IH", reply, offset)
            if kind == NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE:
                message = nft_rule_msg(reply[offset : offset + length])
                message.decode()
                yield message
            offset += max(16, length + 3 & ~3)


def _expressions(message: Any) -> Iterable[tuple[str, Any]]:
    for expression in dict(message["attrs"])["NFTA_RULE_EXPRESSIONS"]:
        attributes = dict(expression["attrs"])
        yield attributes["NFTA_EXPR_NAME"], attributes.get("NFTA_EXPR_DATA")


def _message(
    kind: Any, number: int, attributes: list[tuple[str, Any]], flags: int = 0, *, remove: bool = False
) -> bytes:
    message = kind()
    message["nfgen_family"] = AF_INET
    message["attrs"] = attributes
    flags |= NLM_F_REQUEST | NLM_F_ACK | (0 if remove else NLM_F_CREATE)
    return encode(message, NFNL_SUBSYS_NFTABLES << 8 | number, flags)


def _chain(name: str, priority: int, hook_number: int = FORWARD, policy: int = ACCEPT) -> bytes:
    hook = {"attrs": [("NFTA_HOOK_HOOKNUM", hook_number), ("NFTA_HOOK_PRIORITY", priority)]}
    attributes = [
        ("NFTA_CHAIN_TABLE", TABLE), ("NFTA_CHAIN_NAME", name), ("NFTA_CHAIN_HOOK", hook),
        ("NFTA_CHAIN_POLICY", policy), ("NFTA_CHAIN_TYPE", "filter"),
    ]  # fmt: skip
    return _message(nft_chain_msg, NFT_MSG_NEWCHAIN, attributes)


def _rule(chain: str, *expressions: dict[str, Any]) -> bytes:
    attributes = [
        ("NFTA_RULE_TABLE", TABLE), ("NFTA_RULE_CHAIN", chain), ("NFTA_RULE_EXPRESSIONS", list(expressions)),
    ]  # fmt: skip
    return _message(nft_rule_msg, NFT_MSG_NEWRULE, attributes, APPEND)


def _expression(name: str, **values: Any) -> dict[str, Any]:
    data = [(f"NFTA_{name.upper()}_{key.upper()}", value) for key, value in values.items()]
    return {"attrs": [("NFTA_EXPR_NAME", name), ("NFTA_EXPR_DATA", {"attrs": data})]}


def _compare(key: int, value: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    data = {"attrs": [("NFTA_DATA_VALUE", value)]}
    return _expression("meta", dreg=REGISTER, key=key), _expression("cmp", sreg=REGISTER, op=EQUAL, data=data)


def _queue() -> dict[str, Any]:
    return _expression("queue", num=QUEUE, total=1, flags=BYPASS)


def _drop() -> dict[str, Any]:
    verdict = {"attrs": [("NFTA_DATA_VERDICT", {"attrs": [("NFTA_VERDICT_CODE", DROP)]})]}
    return _expression("immediate", dreg=VERDICT_REGISTER, data=verdict)


PREROUTING, OUTPUT, FIRST = 0, 3, -500
"""Hooks, and a priority before that of everything else in the kernel."""
CT_STATE, INVALID, NOT_EQUAL = 0, 1, 1
TCP_RESET, ICMPX_UNREACHABLE, PORT_UNREACHABLE = 1, 2, 1
CONNTRACK, GET, DELETE = 1, 1, 2
"""NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET and _DELETE (linux/netfilter/nfnetlink_conntrack.h)."""
NFPROTO_INET = 1
NFGENMSG = bytes(4)
"""struct nfgenmsg: of any family."""


def silence() -> Request:
    """One batch that drops whatever a host sends and gets."""
    parts = [
        _message(nft_table_msg, NFT_MSG_NEWTABLE, [("NFTA_TABLE_NAME", TABLE), ("NFTA_TABLE_FLAGS", 0)]),
        _chain("in", FIRST, PREROUTING, DROP),
        _chain("out", FIRST, OUTPUT, DROP),
    ]
    hooks = (("in", "prerouting"), ("out", "output"))
    text = [f"nft add table inet {TABLE}"] + [
        f"nft add chain inet {TABLE} {name} '{{ type filter hook {hook} priority {FIRST}; policy drop; }}'"
        for name, hook in hooks
    ]
    return Request(b"".join(map(_of_both_families, parts)), "\n".join(text))


def _of_both_families(message: bytes) -> bytes:
    """The message about a table of IPv4 and IPv6 (nfgen_family, behind struct nlmsghdr)."""
    return message[:16] + bytes([NFPROTO_INET]) + message[17:]


def no_silence() -> Request:
    """The end of silence()."""
    message = _message(nft_table_msg, NFT_MSG_DELTABLE, [("NFTA_TABLE_NAME", TABLE)], remove=True)
    return Request(_of_both_families(message), f"nft delete table inet {TABLE}")


def firewall(unknown: str) -> Request:
    """One batch: what belongs to no connection that is tracked is dropped, or refused: TCP by an RST, the rest by ICMP.

    Connections are opened from both sides; net/netfilter/nf_conntrack_proto_{tcp,sctp}.c say by which packets.
    """
    refuse = [_rule("forward", *_invalid(), _expression("counter"), _drop())]
    if unknown == "reject":
        tcp = _compare(META_L4PROTO, bytes([TCP]))
        reset = _expression("reject", type=TCP_RESET, icmp_code=0)
        unreachable = _expression("reject", type=ICMPX_UNREACHABLE, icmp_code=PORT_UNREACHABLE)
        refuse = [
            _rule("forward", *_invalid(), *tcp, _expression("counter"), reset),
            _rule("forward", *_invalid(), _expression("counter"), unreachable),
        ]
    parts = [
        _message(nft_table_msg, NFT_MSG_NEWTABLE, [("NFTA_TABLE_NAME", TABLE), ("NFTA_TABLE_FLAGS", 0)]),
        _chain("forward", 0),
        *refuse,
    ]
    what = ("drop",) if unknown == "drop" else ("meta l4proto tcp counter reject with tcp reset", "counter reject")
    text = [
        f"nft add table inet {TABLE}",
        f"nft add chain inet {TABLE} forward '{{ type filter hook forward priority 0; }}'",
    ]
    text += [f"nft add rule inet {TABLE} forward ct state invalid {verdict}" for verdict in what]
    return Request(b"".join(map(_of_both_families, parts)), "\n".join(text))


def _invalid() -> tuple[dict[str, Any], ...]:
    mask, zero = (
        {"attrs": [("NFTA_DATA_VALUE", struct.pack("=I", value))]} for value in (INVALID, 0)
    )  # fmt: skip
    return (
        _expression("ct", dreg=REGISTER, key=CT_STATE),
        _expression("bitwise", sreg=REGISTER, dreg=REGISTER, len=4, mask=mask, xor=zero),
        _expression("cmp", sreg=REGISTER, op=NOT_EQUAL, data=zero),
    )


def forget() -> Request:
    """Flush the table of connections."""
    flags = NLM_F_REQUEST | NLM_F_ACK
    data = struct.pack("=IHHII", 16 + len(NFGENMSG), CONNTRACK << 8 | DELETE, flags, 0, 0) + NFGENMSG
    return Request(data, "conntrack -F")


def connections_dump() -> bytes:
    """A dump request of the table of connections."""
    flags = NLM_F_REQUEST | NLM_F_DUMP
    return struct.pack("=IHHII", 16 + len(NFGENMSG), CONNTRACK << 8 | GET, flags, 0, 0) + NFGENMSG


def refused(replies: Iterable[bytes]) -> int:
    """Packets that a firewall has dropped or refused, from a dump of its rules."""
    return sum(
        int(dict(values["attrs"])["NFTA_COUNTER_PACKETS"])
        for message in _rules(replies)
        for name, values in _expressions(message)
        if name == "counter"
    )
