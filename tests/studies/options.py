"""Values of the options of senders and receivers, by protocol: what people set, and what changes a transport."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .draw import Draw

Keys = dict[str, Any]
CONGESTION = ("reno", "cubic", "bbr", "westwood", "vegas", "dctcp", "htcp", "bic", "hybla", "illinois", "highspeed",
              "scalable", "veno", "yeah", "lp", "nv", "cdg")  # fmt: skip
"""Every one of the guest kernel's (kernel/fragment.config)."""
BOTH: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "tcp": {
        "rcvbuf": ("16 KiB", "64 KiB", "1 bdp", "1 MiB"),
        "sndbuf": ("32 KiB", "256 KiB"),
        "mss": ("536 B", "1000 B", "1200 B"),
        "nodelay": (True,),
        "connect_deadline": ("100 s",),
        "stall_deadline": ("300 s",),
    },
    "sctp": {
        "rcvbuf": ("32 KiB", "256 KiB", "1 MiB"),
        "sndbuf": ("64 KiB", "1 MiB"),
        "mss": ("536 B", "1000 B"),
        "nodelay": (True,),
        "streams": (1, 2, 10),
        "rto_initial": ("500 ms", "1 s"),
        "rto_min": ("100 ms", "200 ms"),
        "rto_max": ("5 s", "20 s"),
        "path_max_retrans": (2, 5, 8),
        "association_max_retrans": (8, 10, 20),
        "pf_retrans": (0, 1, 2),
        "ps_retrans": (3, 5),
        "heartbeat_interval": ("500 ms", "5 s", "off"),
        "sack_delay": ("1 ms", "100 ms", "200 ms"),
        "sack_frequency": (1, 2, 3, 4),
        "max_burst": (0, 2, 16),
        "path_mtu": ("600 B", "1000 B", "1280 B"),
        "unordered": (True,),
        "ppid": (3, 46, 60),
        "any_address": (True,),
        "connect_deadline": ("100 s",),
        "stall_deadline": ("300 s",),
    },
    "udp": {"rcvbuf": ("64 KiB", "1 MiB"), "sndbuf": ("64 KiB", "256 KiB")},
}
SENDER: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "tcp": {
        "initial_window": ("1 packets", "4 packets", "20 packets", "rfc3390"),
        "separate_sends": (True,),
        "pacing_rate": ("800 kbit/s", "8 Mbit/s"),
        "sample_interval": ("5 ms", "50 ms"),
        "tracepoints": (True,),
        "close": ("abort", "graceful"),
        "local_port": (2905, 40001),
    },
    "sctp": {
        "init_attempts": (4, 8),
        "init_max_timeout": ("2 s", "8 s"),
        "no_fragments": (False,),
        "scheduler": ("fcfs", "prio", "rr", "fc", "wfq"),
        "lifetime": ("200 ms", "2 s"),
        "max_retransmissions": (1, 3),
        "connect": ("connect", "connectx"),
        "sample_interval": ("5 ms", "50 ms"),
        "tracepoints": (True,),
        "close": ("abort", "graceful"),
        "local_port": (2905, 40001),
        "bare": (True,),
    },
    "udp": {"ecn": ("not-ect", "ect0", "ect1", "ce"), "local_port": (2905, 40001)},
}
RECEIVER: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "tcp": {"window_clamp": ("16 KiB", "65000 B"), "quick_ack": (True,)},
    "sctp": {},
    "udp": {},
}
NOT_OF_MPTCP = ("mss", "window_clamp", "pacing_rate", "tracepoints")
SHARE = 0.11
"""Of the flows of a protocol that set one option."""


def sender_options(draw: Draw, protocol: str) -> Keys:
    """Of a sender."""
    kind = "tcp" if protocol == "mptcp" else protocol
    options = _drawn(draw, {**BOTH[kind], **SENDER[kind]}, protocol)
    if kind == "tcp" and draw.maybe(0.75):
        options["congestion"] = draw.of(CONGESTION)
    if protocol == "udp" and draw.maybe(0.25):
        options["ecn"] = draw.of(SENDER["udp"]["ecn"])
    if protocol == "sctp":
        if "lifetime" in options:
            options.pop("max_retransmissions", None)
        if draw.maybe(0.06):
            options["scheduler"] = draw.of(("prio", "fc", "wfq"))
        if "scheduler" in options:
            options["streams"] = 2
            if options["scheduler"] in ("prio", "fc", "wfq") or (options["scheduler"] == "rr" and draw.maybe(0.6)):
                options["stream_values"] = [1, 2] if options["scheduler"] != "prio" else [0, 1]
        if "bare" in options:
            options = {key: options[key] for key in ("bare", "nodelay", "close") if key in options}
            options.pop("sample_interval", None)
    return options


def receiver_options(draw: Draw, protocol: str) -> Keys:
    """Of a receiver."""
    kind = "tcp" if protocol == "mptcp" else protocol
    options = _drawn(draw, {**BOTH[kind], **RECEIVER[kind]}, protocol)
    if kind == "tcp" and draw.maybe(0.07):
        options["congestion"] = draw.of(CONGESTION)
    if "window_clamp" in options:
        options.pop("rcvbuf", None)
    return options


def _drawn(draw: Draw, table: Mapping[str, tuple[Any, ...]], protocol: str) -> Keys:
    options = {
        key: draw.of(values)
        for key, values in table.items()
        if not (protocol == "mptcp" and key in NOT_OF_MPTCP) and draw.maybe(SHARE)
    }
    if options.get("sack_frequency", 2) == 1:
        options.pop("sack_delay", None)
    if "path_mtu" in options:
        options.pop("mss", None)
    if "rto_min" in options and "rto_max" not in options:
        options["rto_max"] = "20 s"
    return options
