"""Values of the symbols that scripts write: this machine's Python knows most, the rest is Linux' own on x86-64."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import termios
from collections.abc import Mapping

from .script import Expression, Name, Operation, Unsupported

_MODULES = (socket, errno, select, os, fcntl, termios)
_MORE = {
    "NULL": 0,
    "EPOLL_CTL_ADD": 1, "EPOLL_CTL_DEL": 2, "EPOLL_CTL_MOD": 3,
    "IP_FREEBIND": 15, "IP_MTU_DISCOVER": 10, "IP_MTU": 14, "IP_RECVERR": 11, "IPV6_RECVERR": 25,
    "SOL_IPV6": 41, "IPV6_TCLASS": 67, "IPV6_HOPLIMIT": 52,
    "IP_PMTUDISC_DONT": 0, "IP_PMTUDISC_WANT": 1, "IP_PMTUDISC_DO": 2, "IP_PMTUDISC_PROBE": 3,
    "MSG_ZEROCOPY": 0x4000000, "MSG_FASTOPEN": 0x20000000,
    "SCM_TIMESTAMPING": 37, "SO_TIMESTAMPING": 37, "SCM_TIMESTAMPING_OPT_STATS": 54, "SO_ZEROCOPY": 60,
    "SO_MEMINFO": 55, "SO_TXTIME": 61, "SO_MAX_PACING_RATE": 47, "SO_INCOMING_NAPI_ID": 56, "SO_COOKIE": 57,
    "SCM_TSTAMP_SND": 0, "SCM_TSTAMP_SCHED": 1, "SCM_TSTAMP_ACK": 2, "SCM_TSTAMP_COMPLETION": 3,
    "SIOCINQ": 0x541B, "SIOCOUTQ": 0x5411, "SIOCOUTQNSD": 0x894B, "FIONREAD": 0x541B,
    "SO_EE_ORIGIN_NONE": 0, "SO_EE_ORIGIN_LOCAL": 1, "SO_EE_ORIGIN_ICMP": 2, "SO_EE_ORIGIN_ICMP6": 3,
    "SO_EE_ORIGIN_TXSTATUS": 4, "SO_EE_ORIGIN_TIMESTAMPING": 4, "SO_EE_ORIGIN_ZEROCOPY": 5, "SO_EE_ORIGIN_TXTIME": 6,
    "SO_EE_CODE_ZEROCOPY_COPIED": 1,
    "SOF_TIMESTAMPING_TX_HARDWARE": 1, "SOF_TIMESTAMPING_TX_SOFTWARE": 2, "SOF_TIMESTAMPING_RX_HARDWARE": 4,
    "SOF_TIMESTAMPING_RX_SOFTWARE": 8, "SOF_TIMESTAMPING_SOFTWARE": 16, "SOF_TIMESTAMPING_RAW_HARDWARE": 64,
    "SOF_TIMESTAMPING_OPT_ID": 128, "SOF_TIMESTAMPING_TX_SCHED": 256, "SOF_TIMESTAMPING_TX_ACK": 512,
    "SOF_TIMESTAMPING_OPT_CMSG": 1024, "SOF_TIMESTAMPING_OPT_TSONLY": 2048, "SOF_TIMESTAMPING_OPT_STATS": 4096,
    "SOF_TIMESTAMPING_OPT_ID_TCP": 1 << 16, "SOF_TIMESTAMPING_TX_COMPLETION": 1 << 18,
    "TCP_COOKIE_TRANSACTIONS": 15, "TCP_MD5SIG": 14, "TCP_FASTOPEN_CONNECT": 30, "TCP_FASTOPEN_KEY": 33,
    "TCP_FASTOPEN_NO_COOKIE": 34, "TCP_SAVE_SYN": 27, "TCP_SAVED_SYN": 28, "TCP_ZEROCOPY_RECEIVE": 35,
    "TCP_INQ": 36, "TCP_CM_INQ": 36, "TCP_TX_DELAY": 37, "TCP_RTO_MAX_MS": 44,
}  # fmt: skip
_STATES = ("ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT",
           "LAST_ACK", "LISTEN", "CLOSING")  # fmt: skip
_OPTIONS = ("TIMESTAMPS", "SACK", "WSCALE", "ECN", "ECN_SEEN", "SYN_DATA", "USEC_TS", "TFO_CHILD")
CODE = {
    **{f"TCP_{name}": value for value, name in enumerate(_STATES, 1)},
    **{f"TCP_CA_{name}": value for value, name in enumerate(("Open", "Disorder", "CWR", "Recovery", "Loss"))},
    **{f"TCPI_OPT_{name}": 1 << bit for bit, name in enumerate(_OPTIONS)},
}
"""Names that code blocks use: states of TCP and of its congestion control, bits of tcpi_options."""


def symbol(name: str) -> int | None:
    """The value of a symbol, None if nobody knows it."""
    if name in _MORE:
        return _MORE[name]
    for module in _MODULES:
        value = getattr(module, name, None) if name.isupper() or "_" in name else None
        if isinstance(value, int):
            return int(value)
    return None


def number(value: Expression, line: int, defines: Mapping[str, str]) -> int:
    """The number that an expression is. defines: the runner's own symbols. Raises Unsupported."""
    match value:
        case int():
            return value
        case Name(text):
            known = symbol(defines.get(text, text))
            if known is None:
                raise Unsupported(line, f"the symbol {text}")
            return known
        case Operation("|", left, right):
            return number(left, line, defines) | number(right, line, defines)
        case Operation("~", _, right):
            return ~number(right, line, defines)
    raise Unsupported(line, "a value that is no number, where a number belongs")
