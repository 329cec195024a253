"""The qdiscs of active queue management of one direction: red, codel, fq_codel, pie, dualpi2 below tbf; cake with its
own rate.

Written from linux/pkt_sched.h and net/sched/sch_{red,codel,fq_codel,pie,cake}.c. Lengths are those of the root's size
table (Netem.size_overhead_bytes), so RED counts the same bytes as the rate.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

from ..core.link_types import Aqm, LinkImpairment
from ..core.wire import ETHERNET_HEADER_BYTES
from .qdiscs import QdiscStage, attribute, attributes_of

KINDS = ("red", "codel", "fq_codel", "pie", "cake", "dualpi2")
ATTRIBUTES: dict[str, dict[str, int]] = {
    "codel": {"target_us": 1, "limit_packets": 2, "interval_us": 3, "ecn": 4},
    "fq_codel": {"target_us": 1, "limit_packets": 2, "interval_us": 3, "ecn": 4, "flows": 5, "quantum_bytes": 6},
    "pie": {"target_us": 1, "limit_packets": 2, "update_us": 3, "alpha": 4, "beta": 5, "ecn": 6},
    "cake": {"diffserv": 3, "flow_mode": 5, "rtt_us": 7, "memory_bytes": 10, "ack_filter": 16},
    "dualpi2": {
        "limit_packets": 1, "memory_bytes": 2, "target_us": 3, "update_us": 4, "alpha": 5, "beta": 6,
        "step_packets": 7, "step_us": 8, "step_from_packets": 9, "coupling": 10, "overload": 11, "drop_early": 12,
        "protection_percent": 13, "low_latency": 14, "split_gso": 15,
    },
}  # fmt: skip
"""Settings of 32 bits and the number of their attribute."""
_OF_8_BITS = frozenset({"coupling", "overload", "drop_early", "protection_percent", "low_latency", "split_gso"})
_EITHER = frozenset({"step_packets", "step_us"})
"""Settings of which a qdisc has one."""
_CAKE_RATE64, _CAKE_OVERHEAD, _CAKE_RAW = 2, 6, 12
_CAKE_BEST_EFFORT, _CAKE_TRIPLE_ISOLATE, _CAKE_ACK_FILTER = 3, 7, 1
_RED_PARMS, _RED_STAB, _RED_MAX_P = 1, 2, 3
_RED = struct.Struct("=IIIBBBB")
"""struct tc_red_qopt: limit, qth_min, qth_max, Wlog, Plog, Scell_log, flags."""
_RED_ECN, _RED_HARD_DROP, _RED_ADAPTIVE = 1, 2, 4
_TC_KEYS = {"ack_filter": "ack-filter", "update": "tupdate", "memory": "memlimit"}
_CODEL_SHIFT, _PIE_TICK_NS = 10, 64
_DUALPI2_ONE = 2**32 - 1
"""Its probability 1 (sch_dualpi2.c: dualpi2_scale_alpha_beta)."""
_TICK_RATES_HZ = (1000, 300, 250, 100)
"""Of Linux's timer (CONFIG_HZ). PIE updates in whole ticks, rounded up (sch_pie.c: pie_change)."""


class AqmQdisc(QdiscStage, frozen=True):
    """One such qdisc as configured and as read back: `values` by name, in the kernel's units."""

    kind: str  # type: ignore[misc]
    values: dict[str, int]
    idle_table: bytes = b""
    """RED's, asked and never shown: by how much the average has decayed after an idle time."""

    def encode(self) -> bytes:
        """The body of TCA_OPTIONS."""
        values = self.values
        if self.kind == "red":
            parms = _RED.pack(
                values["limit_bytes"], values["min_bytes"], values["max_bytes"], values["average"], 0,
                values["idle_cell_log"], values["flags"],
            )  # fmt: skip
            body = attribute(_RED_PARMS, parms) + attribute(_RED_STAB, self.idle_table)
            return body + attribute(_RED_MAX_P, struct.pack("=I", values["max_p"]))
        body = b"".join(
            attribute(number, struct.pack(_format(name), values[name]))
            for name, number in ATTRIBUTES[self.kind].items()
            if name in values
        )
        if self.kind == "cake":
            body += attribute(_CAKE_RATE64, struct.pack("=Q", values["rate_byte_s"]))
            # with an overhead of 0 cake counts from the IP header on; "raw" counts what the kernel counts
            body += attribute(_CAKE_RAW, struct.pack("=I", 0)) if values["raw"] else b""
            body += b"" if values["raw"] else attribute(_CAKE_OVERHEAD, struct.pack("=i", 0))
        return body

    @classmethod
    def decode(cls, kind: str, options: Mapping[int, bytes]) -> AqmQdisc:
        """Read the attributes inside TCA_OPTIONS. Raises KeyError or struct.error if they are not of such a qdisc."""
        if kind == "red":
            limit, low, high, average, _, cell_log, flags = _RED.unpack_from(options[_RED_PARMS])
            (max_p,) = struct.unpack_from("=I", options[_RED_MAX_P])
            return cls(kind, {"limit_bytes": limit, "min_bytes": low, "max_bytes": high, "max_p": max_p,
                              "average": average, "idle_cell_log": cell_log, "flags": flags})  # fmt: skip
        values = {
            name: struct.unpack_from(_format(name), options[number])[0]
            for name, number in ATTRIBUTES[kind].items()
            if number in options or name not in _EITHER
        }
        if kind == "cake":
            (values["rate_byte_s"],) = struct.unpack_from("=Q", options[_CAKE_RATE64])
            values["raw"] = int(_CAKE_RAW in options)
        return cls(kind, values)

    def as_shown(self) -> AqmQdisc:
        """This qdisc as a dump shows it: times in the steps in which the kernel keeps them."""
        values = dict(self.values)
        for name in ("target_us", "interval_us"):
            if name not in values:
                continue
            ns = values[name] * 1000
            if "codel" in self.kind:
                values[name] = (ns >> _CODEL_SHIFT << _CODEL_SHIFT) // 1000
            elif self.kind == "pie":
                values[name] = ns // _PIE_TICK_NS * _PIE_TICK_NS // 1000
        for name in ("alpha", "beta") if self.kind == "dualpi2" else ():
            scaled = (values[name] * _DUALPI2_ONE >> 2) // 10**9
            values[name] = (scaled * 10**9 << 2) // _DUALPI2_ONE
        return AqmQdisc(self.kind, values)

    def in_place(self) -> AqmQdisc:
        """This qdisc as a change of one that is there asks for it: fq_codel's number of flows is for good, and naming
        it is refused (sch_fq_codel.c: fq_codel_change).
        """
        return AqmQdisc(self.kind, {name: v for name, v in self.values.items() if name != "flows"}, self.idle_table)

    def in_ticks_of(self, shown: AqmQdisc) -> AqmQdisc:
        """This qdisc with the update interval of the one shown, if that is what a kernel makes of this one's."""
        if self.kind != "pie":
            return self
        asked, update_us = self.values["update_us"], shown.values.get("update_us")
        if all(-(-asked * hz // 1_000_000) * 1_000_000 // hz != update_us for hz in _TICK_RATES_HZ):
            return self
        return AqmQdisc(self.kind, self.values | {"update_us": shown.values["update_us"]})

    def as_adapted(self, shown: AqmQdisc) -> AqmQdisc:
        """This qdisc with the probability of the one shown, where RED adapts it by itself (sch_red.c:
        red_adaptative_algo: between 1 % and 50 %).
        """
        if self.kind != "red" or not self.values["flags"] & _RED_ADAPTIVE:
            return self
        return AqmQdisc(self.kind, self.values | {"max_p": shown.values.get("max_p", 0)}, self.idle_table)

    def remark(self) -> str:
        """RED's idle table, weight and probability as a comment: tc(8) computes them from other numbers."""
        return f"# {self.values}" if self.kind == "red" else ""

    def text(self) -> str:
        """The same as arguments of tc(8)."""
        values = self.values
        if self.kind == "red":
            words = [f"limit {values['limit_bytes']} min {values['min_bytes']} max {values['max_bytes']} avpkt 1000",
                     f"probability {values['max_p'] / 2**32:.6g}"]  # fmt: skip
            flags = (("ecn", _RED_ECN), ("harddrop", _RED_HARD_DROP), ("adaptive", _RED_ADAPTIVE))
            return " ".join(["red", *words, *(name for name, bit in flags if values["flags"] & bit)])
        if self.kind == "cake":
            words = [f"bandwidth {8 * values['rate_byte_s']}bit besteffort rtt {values['rtt_us']}us"]
            words += [f"memlimit {values['memory_bytes']}", "raw" if values["raw"] else "overhead 0"]
            return " ".join(["cake", *words, *(["ack-filter"] if values["ack_filter"] else [])])
        if self.kind == "dualpi2":
            return _dualpi2_text(values)
        words = []
        for name, value in values.items():
            key, _, unit = name.partition("_")
            if name == "ecn":
                words.append("ecn" if value else "noecn")
            else:
                words.append(f"{_TC_KEYS.get(key, key)} {value}{'us' if unit == 'us' else ''}")
        return f"{self.kind} {' '.join(words)}"


def _dualpi2_text(values: Mapping[str, int]) -> str:
    step = f"{values['step_us']}us" if "step_us" in values else f"{values['step_packets']}p"
    words = [
        f"dualpi2 limit {values['limit_packets']} memlimit {values['memory_bytes']} target {values['target_us']}us",
        f"tupdate {values['update_us']}us alpha {values['alpha'] / 256:g} beta {values['beta'] / 256:g}",
        f"step_thresh {step} min_qlen_step {values['step_from_packets']} coupling_factor {values['coupling']}",
        "drop_on_overload" if values["overload"] else "overflow",
        "drop_enqueue" if values["drop_early"] else "drop_dequeue",
        f"classic_protection {values['protection_percent']}%",
        {1: "l4s_ect", 2: "# classic_ect", 3: "any_ect"}[values["low_latency"]],
    ]
    return " ".join(words)


def _format(name: str) -> str:
    return "=B" if name in _OF_8_BITS else "=I"


def aqm_stage(shape: LinkImpairment, mtu_bytes: int) -> AqmQdisc:
    """The qdisc of a direction that has active queue management."""
    aqm = shape.aqm
    assert aqm is not None
    assert shape.rate_bit_s is not None
    values = {name.replace("_ns", "_us"): int(value) // (1000 if name.endswith("_ns") else 1)
              for name, value in aqm.settings.items()}  # fmt: skip
    match aqm.kind:
        case "red":
            return _red(aqm, shape, mtu_bytes)
        case "cake":
            values |= {"rate_byte_s": shape.rate_bit_s // 8, "memory_bytes": shape.queue_bytes or 0,
                       "diffserv": _CAKE_BEST_EFFORT, "flow_mode": _CAKE_TRIPLE_ISOLATE,
                       "ack_filter": _CAKE_ACK_FILTER if values["ack_filter"] else 0,
                       "raw": int(shape.layer == "ethernet")}  # fmt: skip
        case "dualpi2":
            limit, of_root = shape.queue_packets or 0, mtu_bytes + ETHERNET_HEADER_BYTES
            memory = values["memory_bytes"] or min(2 * limit * of_root, 2**32 - 1)
            values |= {"limit_packets": limit, "memory_bytes": memory, "split_gso": 1,
                       "protection_percent": round(100 * aqm.settings["protection_ratio"])}  # fmt: skip
            del values["protection_ratio"]
        case _:
            values |= {"limit_packets": shape.queue_packets or 0, "ecn": int(aqm.ecn)}
    return AqmQdisc(aqm.kind, values)


def _red(aqm: Aqm, shape: LinkImpairment, mtu_bytes: int) -> AqmQdisc:
    asked = aqm.settings
    average = int(asked["average"])
    flags = aqm.ecn * _RED_ECN | bool(asked["hard"]) * _RED_HARD_DROP | bool(asked["adaptive"]) * _RED_ADAPTIVE
    cell_log, table = idle_table(average, mtu_bytes, (shape.rate_bit_s or 0) // 8)
    values = {
        "limit_bytes": shape.queue_bytes or 0, "min_bytes": int(asked["min_bytes"]),
        "max_bytes": int(asked["max_bytes"]), "max_p": round(asked["max_p_ratio"] * 2**32), "average": average,
        "idle_cell_log": cell_log, "flags": flags,
    }  # fmt: skip
    return AqmQdisc("red", values, table)


def idle_table(average: int, packet_bytes: int, rate_byte_s: int) -> tuple[int, bytes]:
    """RED's Scell_log and table of 256 shifts: entry i says how often the average is halved after i << Scell_log us of
    idle time.

    The average decays as if every packet that could have been sent meanwhile had found an empty queue, each with weight
    2^-average (Floyd and Jacobson 1993, section 4).
    """
    halvings_per_us = -math.log2(1.0 - 2.0**-average) * rate_byte_s / (1e6 * packet_bytes)
    longest_us = 31 / halvings_per_us
    cell_log = next((log for log in range(32) if longest_us / 2**log < 512), 31)
    table = [min(31, int((i << cell_log) * halvings_per_us)) for i in range(255)] + [31]
    return cell_log, bytes(table)


_MARKED_AT = {"red": 12, "codel": 24, "fq_codel": 12, "pie": 36, "dualpi2": 24}
"""The place of the marked packets in the kernel's own statistics (tc_*_xstats; fq_codel's behind its type)."""
_CAKE_TINS, _CAKE_TIN_MARKED = 10, 8


def step_marks(kind: str, statistics: bytes) -> int:
    """Number of packets that DualPI2's step marked, some of which had a mark already (sch_dualpi2.c: dualpi2_mark)."""
    at = 28
    whole = kind == "dualpi2" and len(statistics) >= at + 4
    return int(struct.unpack_from("=I", statistics, at)[0]) if whole else 0


def marked(kind: str, statistics: bytes) -> int:
    """Number of packets that the qdisc marked with ECN, from TCA_STATS_APP; 0 for a kind that marks nothing."""
    if kind == "cake":
        tins = attributes_of(attributes_of(statistics).get(_CAKE_TINS, b""))
        counts = [attributes_of(tin).get(_CAKE_TIN_MARKED, bytes(4)) for tin in tins.values()]
        return sum(struct.unpack_from("=I", count)[0] for count in counts)
    at = _MARKED_AT.get(kind)
    return 0 if at is None or len(statistics) < at + 4 else int(struct.unpack_from("=I", statistics, at)[0])
