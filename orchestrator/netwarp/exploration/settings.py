"""The settings that an exploration changes: values that change what a protocol does, none that only makes a cell slow.

Options of the apps come with their limits from the grammar (experiment/options.py); a value here is one of its words.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.types import Cell, Flow
from ..experiment.options import OPTIONS

Value = str | int | bool
POOLS: Mapping[str, tuple[Value, ...]] = {
    "rcvbuf": ("4 KiB", "16 KiB", "64 KiB", "1 MiB"),
    "sndbuf": ("8 KiB", "32 KiB", "1 MiB"),
    "congestion": ("reno", "cubic", "bbr", "dctcp", "vegas"),
    "mss": ("88 B", "536 B", "1000 B"),
    "nodelay": (True,),
    "streams": (1, 2, 10, 100),
    "rto_initial": ("100 ms", "1 s"),
    "rto_min": ("10 ms", "200 ms"),
    "rto_max": ("1 s", "5 s"),
    "path_max_retrans": (1, 2, 3, 10),
    "association_max_retrans": (1, 2, 4, 20),
    "pf_retrans": (0, 1, 2, 10),
    "ps_retrans": (0, 1, 3),
    "heartbeat_interval": ("100 ms", "500 ms", "5 s", "off"),
    "sack_delay": ("1 ms", "50 ms", "500 ms"),
    "sack_frequency": (1, 2, 5),
    "max_burst": (0, 1, 16),
    "path_mtu": ("512 B", "600 B", "1280 B"),
    "init_attempts": (1, 2, 4),
    "init_max_timeout": ("200 ms", "1 s"),
    "scheduler": ("fcfs", "prio", "rr", "fc", "wfq"),
    "unordered": (True,),
    "lifetime": ("20 ms", "200 ms", "2 s"),
    "max_retransmissions": (0, 1, 3),
    "connect": ("connect", "connectx"),
    "any_address": (True,),
    "close": ("abort", "graceful"),
    "separate_sends": (True,),
    "no_fragments": (True,),
    "window_clamp": ("4 KiB", "16 KiB"),
    "interval": ("1 ms", "20 ms", "200 ms", "1 s"),
    "initial_window": ("1 packets", "4 packets", "40 packets"),
    "quick_ack": (True,),
    "reconnect": ("100 ms", "1 s"),
}
"""Option of a sender or receiver -> values."""
SYSCTLS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sctp": {
        "net.sctp.addip_enable": ("1",),
        "net.sctp.addip_noauth_enable": ("1",),
        "net.sctp.auth_enable": ("1",),
        "net.sctp.cookie_preserve_enable": ("0",),
        "net.sctp.default_auto_asconf": ("1",),
        "net.sctp.ecn_enable": ("0",),
        "net.sctp.hb_interval": ("100", "1000"),
        "net.sctp.intl_enable": ("1",),
        "net.sctp.max_init_retransmits": ("1", "3"),
        "net.sctp.pf_enable": ("0",),
        "net.sctp.pf_expose": ("2",),
        "net.sctp.plpmtud_probe_interval": ("5000",),
        "net.sctp.prsctp_enable": ("0",),
        "net.sctp.rcvbuf_policy": ("1",),
        "net.sctp.reconf_enable": ("1",),
        "net.sctp.rwnd_update_shift": ("1", "8"),
        "net.sctp.sndbuf_policy": ("1",),
        "net.sctp.valid_cookie_life": ("100", "1000"),
    },
    "tcp": {
        "net.ipv4.tcp_abort_on_overflow": ("1",),
        "net.ipv4.tcp_autocorking": ("0",),
        "net.ipv4.tcp_dsack": ("0",),
        "net.ipv4.tcp_early_retrans": ("0",),
        "net.ipv4.tcp_ecn": ("0", "1"),
        "net.ipv4.tcp_fastopen": ("0", "3"),
        "net.ipv4.tcp_frto": ("0",),
        "net.ipv4.tcp_mtu_probing": ("1", "2"),
        "net.ipv4.tcp_orphan_retries": ("1",),
        "net.ipv4.tcp_recovery": ("0", "3"),
        "net.ipv4.tcp_retries2": ("3", "6"),
        "net.ipv4.tcp_sack": ("0",),
        "net.ipv4.tcp_syn_linear_timeouts": ("0",),
        "net.ipv4.tcp_syncookies": ("2",),
        "net.ipv4.tcp_thin_linear_timeouts": ("1",),
        "net.ipv4.tcp_timestamps": ("0",),
        "net.ipv4.tcp_window_scaling": ("0",),
    },
    "mptcp": {
        "net.mptcp.add_addr_timeout": ("1",),
        "net.mptcp.checksum_enabled": ("1",),
        "net.mptcp.stale_loss_cnt": ("1",),
    },
}
"""Protocol -> sysctl of a host -> values other than its default."""
LINKS: Mapping[str, tuple[str, ...]] = {
    "rate": ("100 kbit/s", "500 kbit/s", "10 Mbit/s"),
    "queue": ("2 packets", "5 packets", "1000 packets"),
    "one_way_delay": ("1 ms", "10 ms", "100 ms", "400 ms"),
    "mtu": ("600 B", "1000 B", "1280 B"),
    "loss": ("2 %", "10 %"),
    "jitter": ("5 ms", "30 ms"),
    "family": ("ipv6",),
}
FLOWS: Mapping[str, tuple[str, ...]] = {
    "message_size": ("1 B", "20 B", "200 B", "1000 B", "3 kB", "20 kB"),
    "bytes": ("1 kB", "6 kB", "30 kB", "100 kB"),
    "stop": ("100 ms", "400 ms", "3 s"),
}


BACK: Mapping[str, tuple[str, ...]] = {"bytes": ("1 kB", "20 kB")}
"""What the receiver sends, too."""


def settings_of(cell: Cell) -> dict[tuple[str, ...], tuple[Value, ...]]:
    """Every key of the spec of a cell that may be changed -> its values."""
    found: dict[tuple[str, ...], tuple[Value, ...]] = {}
    for link in cell.links:
        found |= {("link", link.name, key): values for key, values in LINKS.items()}
    for flow in cell.flows:
        if flow.program is not None:
            continue
        found |= {("flow", flow.name, key): values for key, values in FLOWS.items() if _applies(flow, key)}
        found |= {("flow", flow.name, "reverse", key): values for key, values in BACK.items()}
        found |= {
            ("flow", flow.name, role, name): values
            for name, values in POOLS.items()
            for role in OPTIONS[name].roles
            if flow.protocol in OPTIONS[name].protocols
        }
        for node in (flow.sender, flow.receiver):
            for protocol in (flow.protocol, *(["tcp"] if flow.protocol == "mptcp" else [])):
                found |= {("node", node, "sysctl", name): v for name, v in SYSCTLS.get(protocol, {}).items()}
    return found


def _applies(flow: Flow, key: str) -> bool:
    return key != "bytes" or flow.total_bytes is not None
