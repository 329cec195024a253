"""Reads one direction of a link, as a spec writes it, into its impairment: delay, loss, rate, queue, active queue
management (`aqm = { kind = "codel", ecn = true }`); packet_rules.py reads its rules for single packets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import msgspec

from ..core.link_types import (
    AckThinning,
    Aqm,
    AqmKind,
    Distribution,
    GilbertElliott,
    LinkImpairment,
    Opportunities,
    Policer,
    Slots,
)
from ..core.units import Quantity
from ..experiment.fields import Reader, decode, read_quantity
from ..experiment.grammar import ACK_THINNING, AQM, DIRECTION, POLICER, RATIO, SLOTS
from .packet_rules import read_packet_rules
from .traces import MOST_WAITING, ValueTrace, read_traced

MS = 10**6
LONGEST_SPREAD_NS = 2**31 - 1
"""netem caps its jitter there (sch_netem.c: netem_change)."""
DISTRIBUTIONS: tuple[Distribution, ...] = get_args(Distribution)
AQM_KINDS: dict[AqmKind, dict[str, float | None]] = {
    "red": {"min": None, "max": None, "max_p": 0.02, "average": 9, "adaptive": 0, "hard": 0},
    "codel": {"target": 5 * MS, "interval": 100 * MS},
    "fq_codel": {"target": 5 * MS, "interval": 100 * MS, "flows": 1024, "quantum": 1514},
    "pie": {"target": 15 * MS, "update": 15 * MS, "alpha": 2, "beta": 20},
    "cake": {"rtt": 100 * MS, "ack_filter": 0},
    "dualpi2": {
        "target": 15 * MS, "update": 16 * MS, "alpha": 41, "beta": 819, "step": MS, "step_from": 0, "coupling": 2,
        "overload": 0, "drop_early": 0, "protection": 0.1, "low_latency": 0, "memory": 0,
    },
}  # fmt: skip
"""Kind -> its keys beside kind and ecn, with what Linux takes where nothing is said (None: must be said). RED's are
those of tc-red(8) and of Floyd and Jacobson 1993 (a weight of 2^-9); of the others, of the kernel's own source."""
UNITS = {"time": "_ns", "data": "_bytes", "ratio": "_ratio"}
"""Kind of quantity -> the end of a setting's name in a cell."""
PIE_MOST = 32
"""Of pie's alpha and beta (sch_pie.c: pie_policy)."""
MARKS_BY_DEFAULT = ("fq_codel", "cake", "dualpi2")
LIMITS = {"red": ("data", "packets", "bdp"), "cake": ("data",)}
"""Kinds of `queue` that are its hard limit; of the others ("packets", "bdp")."""


@dataclass(frozen=True, slots=True)
class LinkDirection:
    """One direction of a link; the queue is still as written ("1 bdp" is not yet a number of packets)."""

    shape: LinkImpairment
    queue: Quantity | None
    reader: Reader
    trace: ValueTrace | None = None
    """What changes over time; `shape` is its beginning."""

    @property
    def nominal_bit_s(self) -> int | None:
        """The rate, of a trace its mean; None if there is none."""
        shape = self.shape
        if isinstance(shape.opportunities, Opportunities):
            return shape.opportunities.mean_bit_s
        mean = self.trace.mean_bit_s if self.trace is not None else None
        return shape.rate_bit_s if mean is None else mean


def read_direction(reader: Reader, link: Reader, files: Mapping[str, bytes]) -> LinkDirection:
    """The direction of a link (whose table may have an `rtt`); mistakes are collected. files: beside the spec."""
    traced = read_traced(reader, files)
    varies = frozenset[str]() if traced is None else traced.says
    delay = reader.whole("one_way_delay") or 0
    if link.has("rtt"):
        rtt = link.whole("rtt") or 0
        delay = rtt // 2
        if rtt % 2:
            link.problem("rtt", 'must be an even number of ns, half of it each way; for example rtt = "200 ms"')
    rate = reader.whole("rate")
    if reader.has("rate") and not reader.has("queue"):
        reader.problem("rate", 'a rate needs its queue; for example queue = "50 packets"')
    wrong_trace = reader.has("trace") and traced is None  # which is said already
    if reader.has("queue") and not (reader.has("rate") or reader.has("slots") or "rate" in varies or wrong_trace):
        reader.problem("queue", 'without a rate nothing queues; for example rate = "10 Mbit/s"')
    jitter, reorder = reader.whole("jitter") or 0, reader.ratio("reorder")
    if jitter > delay:
        reader.wrong("jitter", "is more than the one-way delay; what would be negative, netem makes 0")
    if reorder and not delay:
        reader.problem("reorder", 'needs a delay to overtake; for example one_way_delay = "10 ms"')
    if reorder and (jitter or reader.switch("in_order")):
        said = "stands alone: jitter overtakes by itself, and with in_order nothing may; leave one of them out"
        reader.problem("reorder", said)
    if max(jitter, delay if reorder else 0) > LONGEST_SPREAD_NS:
        reader.problem("reorder" if reorder else "jitter", "spreads delays by more than netem can: 2.147 s")
    for key, needs in (("jitter_correlation", "jitter"), ("distribution", "jitter"), ("loss_correlation", "loss")):
        if reader.has(key) and not reader.has(needs):
            reader.problem(key, f"means nothing without {needs}; for example {needs} = {DIRECTION[needs].example}")
    if reader.has("loss") and reader.has("burst_loss"):
        reader.problem("loss", "loss and burst_loss both stand here; netem has one loss model: give one")
    if reader.has("bit_errors") and reader.has("byte_errors"):
        reader.problem("bit_errors", "bit_errors and byte_errors are two readings of one thing: give one")
    if "rate" in varies and not reader.has("queue"):
        reader.problem("trace", 'a rate needs its queue; for example queue = "50 packets"')
    if reader.has("aqm") and rate is None and "rate" not in varies and not wrong_trace:
        reader.problem("aqm", 'manages the queue of a rate; for example rate = "10 Mbit/s", queue = "100 packets"')
    shape = LinkImpairment(
        one_way_delay_ns=delay,
        jitter_ns=jitter,
        jitter_correlation_ratio=reader.ratio("jitter_correlation"),
        distribution=reader.choice("distribution", DISTRIBUTIONS, "uniform"),
        loss_ratio=reader.ratio("loss"),
        loss_correlation_ratio=reader.ratio("loss_correlation"),
        burst_loss=_burst_loss(reader),
        duplicate_ratio=_duplicate(reader),
        corrupt_ratio=reader.ratio("corrupt"),
        reorder_ratio=reorder,
        rate_bit_s=rate,
        layer="ethernet" if reader.text("layer") == "ethernet" else "ip",
        keeps_order=reader.switch("in_order") is True,
        bit_error_ratio=_errors("bit_errors", reader),
        byte_error_ratio=_errors("byte_errors", reader),
        packet_rules=read_packet_rules(reader),
        aqm=_aqm(reader),
        policer=_policer(reader),
        burst_bytes=_burst(reader),
        slots=_slots(reader),
        ack_thinning=_ack_thinning(reader),
    )
    if traced is None:
        return LinkDirection(shape, reader.quantity("queue"), reader)
    shape = msgspec.structs.replace(shape, **traced.begins)
    return LinkDirection(shape, reader.quantity("queue"), reader, traced.trace)


def _errors(key: str, reader: Reader) -> float:
    ratio = reader.ratio(key)
    if ratio >= 1.0:
        reader.problem(key, f'must be below 1: with it nothing arrives; for example {key} = "1e-5"')
    return ratio


def _duplicate(reader: Reader) -> float:
    item = reader.item.get("duplicate")
    if item is None or not isinstance(item.value, str):
        return 0.0
    ratio = read_quantity(item, RATIO, reader.problems)
    return 0.0 if ratio is None else float(ratio.value)


def _burst_loss(reader: Reader) -> GilbertElliott | None:
    item = reader.item.get("burst_loss")
    if item is None:
        return None
    inner = reader.below(item, DIRECTION["burst_loss"].fields)
    for key in ("p", "r"):
        inner.need(key)
    bad = inner.ratio("bad_loss") if inner.has("bad_loss") else 1.0
    return GilbertElliott(inner.ratio("p"), inner.ratio("r"), bad, inner.ratio("good_loss"))


def _policer(reader: Reader) -> Policer | msgspec.UnsetType:
    item = reader.item.get("policer")
    if item is None:
        return msgspec.UNSET
    inner = reader.below(item, POLICER)
    needed = [inner.need(key) for key in ("rate", "burst")]
    rate, burst = inner.whole("rate"), inner.whole("burst")
    return Policer(rate, burst) if all(needed) and rate and burst else msgspec.UNSET


def _burst(reader: Reader) -> int | msgspec.UnsetType:
    burst, aqm = reader.whole("burst"), reader.item.get("aqm", "kind")
    if burst is None:
        return msgspec.UNSET
    if not reader.has("rate") and not reader.has("trace"):
        reader.problem("burst", 'is the token bucket of a rate; for example rate = "10 Mbit/s", queue = "50 packets"')
    if aqm is not None and aqm.value == "cake":
        reader.problem("burst", "cake's rate has no token bucket; leave one of them out")
    return burst


def _slots(reader: Reader) -> Slots | msgspec.UnsetType:
    item = reader.item.get("slots")
    if item is None:
        return msgspec.UNSET
    inner = reader.below(item, SLOTS)
    if not inner.need("after"):
        return msgspec.UNSET
    queue = reader.quantity("queue")
    wanted = 'what waits for its slot is counted in packets; for example queue = "100 packets"'
    if queue is None or queue.kind == "data" or (queue.kind == "bdp" and not reader.has("rate")):
        reader.problem("queue" if reader.has("queue") else "slots", wanted)
    for key in ("aqm", "burst"):
        if reader.has(key):
            reader.problem("slots", f"stand behind a drop-tail queue, without {key}; leave one of them out")
    least, packets = inner.whole("after") or 0, inner.whole("packets")
    most = inner.whole("to") or least
    if most < least:
        inner.problem("to", 'is less than `after`; for example slots = { after = "2 ms", to = "5 ms" }')
    return Slots(least, most, packets, inner.whole("bytes"))


def _ack_thinning(reader: Reader) -> AckThinning | msgspec.UnsetType:
    item = reader.item.get("ack_thinning")
    if item is None:
        return msgspec.UNSET
    inner = reader.below(item, ACK_THINNING)
    needed = [inner.need(key) for key in ("every", "hold")]
    every, hold = inner.quantity("every"), inner.whole("hold")
    return AckThinning(int(every.value), hold) if all(needed) and every and hold else msgspec.UNSET


def _aqm(reader: Reader) -> Aqm | None:
    item = reader.item.get("aqm")
    if item is None:
        return None
    inner = reader.below(item, AQM)
    text = inner.text("kind") if inner.need("kind") else None
    kind = next((known for known in AQM_KINDS if known == text), None)
    if kind is None:
        return None
    keys, ecn = AQM_KINDS[kind], inner.switch("ecn")
    for key in item.table():
        if key not in keys and key not in ("kind", "ecn"):
            inner.problem(key, f"{kind} has no {key}; it has {', '.join(('ecn', *keys))}")
    if kind == "cake" and ecn is False:
        inner.problem("ecn", "cake marks every packet that can be marked (cobalt_should_drop); leave it out")
    if kind == "dualpi2":
        if ecn is False:
            inner.problem("ecn", "dualpi2 marks every packet that can be marked (RFC 9332); leave it out")
        return Aqm(kind=kind, ecn=True, settings=_dualpi2(keys, inner))
    settings: dict[str, float] = {}
    for key, default in keys.items():
        field = AQM[key]
        value = _setting(key, default, inner)
        settings[key + (UNITS[field.kinds[0]] if field.kinds else "")] = value
        if field.kinds == ("time",) and value % 1000:
            inner.problem(key, "is told to the kernel in whole microseconds")
        if key in ("alpha", "beta") and value > PIE_MOST:
            inner.problem(key, f"is at most {PIE_MOST}; for example {key} = {AQM[key].example}")
    if kind == "red":
        low, high = settings["min_bytes"], settings["max_bytes"]
        if low and high and (low < 0) == (high < 0) and abs(low) >= abs(high):
            inner.problem("max", 'must be above min; for example min = "5 packets", max = "15 packets"')
        if not 0 < settings["max_p_ratio"] < 1:
            inner.problem("max_p", 'lies between 0 and 1; for example max_p = "10 %"')
    return Aqm(kind=kind, ecn=kind in MARKS_BY_DEFAULT if ecn is None else ecn, settings=settings)


def _dualpi2(keys: Mapping[str, float | None], reader: Reader) -> dict[str, float]:
    """Its settings. A step in packets has step_packets in place of step_ns; memory_bytes 0: what the kernel makes of
    the limit; the words are the kernel's numbers (linux/pkt_sched.h).
    """
    settings: dict[str, float] = {}
    for key, default in keys.items():
        field, quantity = AQM[key], None
        if field.type == "choice":
            first = 1 if key == "low_latency" else 0
            word = reader.text(key) or field.choices[0]
            numbers = {"drop": 1, "overflow": 0} if key == "overload" else {}
            settings[key] = numbers.get(word, first + field.choices.index(word))
            continue
        value = _setting(key, default, reader)
        if field.kinds and reader.has(key):
            quantity = reader.quantity(key)
        packets = key == "step_from" or (quantity is not None and quantity.kind == "packets")
        unit = "_packets" if packets else UNITS[field.kinds[0]] if field.kinds else ""
        settings[key + unit] = abs(value) if packets else value
        if unit == "_ns" and value % 1000:
            reader.problem(key, "is told to the kernel in whole microseconds")
    if settings["protection_ratio"] * 100 % 1:
        reader.problem("protection", 'is told to the kernel in whole percent; for example protection = "10 %"')
    return settings


def _setting(key: str, default: float | None, reader: Reader) -> float:
    item = reader.item.get(key)
    if item is None:
        if default is None:
            reader.need(key)
        return default or 0
    value = decode(item, AQM[key], reader.problems)
    if isinstance(value, Quantity):
        if value.kind == "packets":  # counted in bytes once the MTU is known
            return -int(value.value)
        return float(value.value) if value.kind == "ratio" else int(value.value)
    return int(value) if isinstance(value, int) else default or 0


LONGEST_BUCKET_S = (1 << 32) * 64 / 1e9
"""The kernel keeps what a token bucket holds as a time at its rate: 32 bits of 64 ns (tc_police, tc_tbf_qopt)."""
TOO_DEEP = (
    f'takes more than {LONGEST_BUCKET_S:.0f} s at this rate, the most that the kernel counts; for example "16 kB"'
)


def too_deep(burst_bytes: int, rate_bit_s: int) -> bool:
    """True if the kernel cannot count a bucket of that depth at that rate."""
    return rate_bit_s > 0 and burst_bytes * 8 / rate_bit_s > LONGEST_BUCKET_S


def check_limit(direction: LinkDirection, mtu_bytes: int) -> None:
    """Reports a queue in bytes that cannot hold a whole packet, or in a unit that its AQM does not count."""
    queue, shape, reader = direction.queue, direction.shape, direction.reader
    largest = _largest_bytes(shape, mtu_bytes)
    if isinstance(shape.policer, Policer) and shape.policer.burst_bytes < largest:
        item = reader.item.get("policer")
        below = reader if item is None else reader.below(item, POLICER)
        below.problem("burst", f'below {largest} B no packet of the MTU passes; for example burst = "64 KiB"')
    elif isinstance(shape.policer, Policer) and too_deep(shape.policer.burst_bytes, shape.policer.rate_bit_s):
        item = reader.item.get("policer")
        (reader if item is None else reader.below(item, POLICER)).problem("burst", TOO_DEEP)
    if isinstance(shape.burst_bytes, int) and too_deep(shape.burst_bytes, shape.rate_bit_s or 0):
        reader.problem("burst", TOO_DEEP)
    if isinstance(shape.burst_bytes, int) and shape.burst_bytes < largest:
        reader.problem("burst", f'must hold the largest packet, {largest} B; for example burst = "16 kB"')
    if queue is None:
        return
    if queue.kind == "data" and not largest <= queue.value < 1 << 31:
        said = f'must hold the largest packet, {largest} B, and less than 2 GiB; for example queue = "64 KiB"'
        reader.problem("queue", said)
    if isinstance(shape.opportunities, Opportunities) and queue.kind == "packets" and queue.value > MOST_WAITING:
        said = f"is at most {MOST_WAITING} packets before a trace of opportunities"
        reader.problem("queue", f'{said}; for example queue = "1000 packets"')
    if shape.aqm is None or queue.kind in LIMITS.get(shape.aqm.kind, ("packets", "bdp")):
        return
    if shape.aqm.kind == "cake":
        reader.problem("queue", 'cake counts the memory of what waits; for example queue = "1 MiB"')
    else:
        reader.problem("queue", f'{shape.aqm.kind} counts packets; for example queue = "100 packets"')


def _largest_bytes(shape: LinkImpairment, mtu_bytes: int) -> int:
    return mtu_bytes + shape.header_bytes


def bdp_bytes(rate_bit_s: int, rtt_ns: int) -> int:
    """Bandwidth-delay product in bytes, rounded up."""
    return -(-rate_bit_s * rtt_ns // (8 * 10**9))


def finish(direction: LinkDirection, rtt_ns: int, mtu_bytes: int) -> LinkImpairment:
    """The impairment with its queue in packets, rounded up; RED counts bytes: its queue and thresholds in packets
    become that many packets of the MTU. rtt_ns: the longest RTT of the paths that cross it.
    """
    queue, shape = direction.queue, direction.shape
    if queue is None:
        return shape
    if queue.kind == "data":
        shape = msgspec.structs.replace(shape, queue_bytes=int(queue.value))
    elif queue.kind == "packets":
        shape = msgspec.structs.replace(shape, queue_packets=int(queue.value))
    else:
        bdp = round(queue.value * bdp_bytes(direction.nominal_bit_s or 0, rtt_ns))
        shape = msgspec.structs.replace(shape, queue_packets=max(1, -(-bdp // mtu_bytes)))
    if shape.aqm is None or shape.aqm.kind != "red":
        return shape
    largest = _largest_bytes(shape, mtu_bytes)
    settings = {
        name: -value * largest if name in ("min_bytes", "max_bytes") and value < 0 else value
        for name, value in shape.aqm.settings.items()
    }
    aqm = msgspec.structs.replace(shape.aqm, settings=settings)
    limit = shape.queue_bytes if shape.queue_packets is None else shape.queue_packets * largest
    return msgspec.structs.replace(shape, aqm=aqm, queue_packets=None, queue_bytes=limit)
