"""Reads the active queue management of a link, as a spec writes it: `aqm = { kind = "codel", target = "5 ms", ecn =
true }`.
"""

from __future__ import annotations

import msgspec

from ..core.types import Aqm, LinkImpairment
from ..experiment.grammar import AQM
from ..experiment.reader import Reader

MS = 10**6
ETHERNET_HEADER_BYTES = 14
KINDS: dict[str, dict[str, float | None]] = {
    "red": {"min": None, "max": None, "max_p": 0.02, "average": 9, "adaptive": 0, "hard": 0},
    "codel": {"target": 5 * MS, "interval": 100 * MS},
    "fq_codel": {"target": 5 * MS, "interval": 100 * MS, "flows": 1024, "quantum": 1514},
    "pie": {"target": 15 * MS, "update": 15 * MS, "alpha": 2, "beta": 20},
    "cake": {"rtt": 100 * MS, "ack_filter": 0},
}
"""Kind -> its keys beside kind and ecn, with what Linux takes where nothing is said (None: must be said). RED's are
those of tc-red(8) and of Floyd and Jacobson 1993 (a weight of 2^-9); of the others, of the kernel's own source."""
UNITS = {"target": "ns", "interval": "ns", "update": "ns", "rtt": "ns", "min": "bytes", "max": "bytes",
         "quantum": "bytes", "max_p": "ratio"}  # fmt: skip
MARKS_BY_DEFAULT = ("fq_codel", "cake")
LIMITS = {"red": ("data", "packets", "bdp"), "cake": ("data",)}
"""Kinds of `queue` that are its hard limit; of the others ("packets", "bdp")."""


def setting_name(key: str) -> str:
    """The name of a setting in a cell: the key and its unit."""
    return f"{key}_{UNITS[key]}" if key in UNITS else key


def read_aqm(reader: Reader) -> Aqm | None:
    """The direction's active queue management; mistakes are collected."""
    item = reader.item.get("aqm")
    if item is None:
        return None
    inner = reader.below(item, AQM)
    kind = inner.text("kind") if inner.need("kind") else None
    known = next((name for name in ("red", "codel", "fq_codel", "pie", "cake") if name == kind), None)
    if known is None:
        return None
    keys = KINDS[known]
    for key in item.table():
        if key not in keys and key not in ("kind", "ecn"):
            inner.problem(key, f"{known} has no {key}; it has {', '.join(('ecn', *keys))}")
    if known == "cake" and inner.switch("ecn") is False:
        inner.problem("ecn", "cake marks every packet that can be marked (cobalt_should_drop); leave it out")
    ecn = inner.switch("ecn")
    settings = {setting_name(key): _value(key, default, inner) for key, default in keys.items()}
    _check(known, settings, inner)
    return Aqm(kind=known, ecn=known in MARKS_BY_DEFAULT if ecn is None else ecn, settings=settings)


def _value(key: str, default: float | None, reader: Reader) -> float:
    if not reader.has(key):
        if default is None:
            reader.need(key)
        return default or 0
    match AQM[key].type:
        case "switch":
            return int(reader.switch(key) is True)
        case "integer":
            return reader.integer(key) or 0
    quantity = reader.quantity(key)
    if quantity is None:
        return default or 0
    if quantity.kind == "packets":  # counted in bytes once the MTU is known
        return -int(quantity.value)
    return float(quantity.value) if quantity.kind == "ratio" else int(quantity.value)


def _check(kind: str, settings: dict[str, float], reader: Reader) -> None:
    for name, value in settings.items():
        if name.endswith("_ns") and value % 1000:
            reader.problem(name.removesuffix("_ns"), "is told to the kernel in whole microseconds")
    if kind != "red":
        return
    low, high = settings["min_bytes"], settings["max_bytes"]
    if low and high and (low < 0) == (high < 0) and abs(low) >= abs(high):
        reader.problem("max", 'must be above min; for example min = "5 packets", max = "15 packets"')
    if not 0 < settings["max_p_ratio"] < 1:
        reader.problem("max_p", 'lies between 0 and 1; for example max_p = "10 %"')


def limit_of(aqm: Aqm, kind: str, reader: Reader) -> None:
    """Reports a queue in a unit that this kind does not count."""
    kinds = LIMITS.get(aqm.kind, ("packets", "bdp"))
    if kind in kinds:
        return
    if aqm.kind == "cake":
        reader.problem("queue", 'cake counts the memory of what waits; for example queue = "1 MiB"')
    else:
        reader.problem("queue", f'{aqm.kind} counts packets; for example queue = "100 packets"')


def with_limits(shape: LinkImpairment, mtu_bytes: int) -> LinkImpairment:
    """RED counts bytes: a queue and thresholds in packets become that many packets of the MTU."""
    if shape.aqm is None or shape.aqm.kind != "red":
        return shape
    largest = mtu_bytes + (ETHERNET_HEADER_BYTES if shape.layer == "ethernet" else 0)
    settings = {
        name: -value * largest if name in ("min_bytes", "max_bytes") and value < 0 else value
        for name, value in shape.aqm.settings.items()
    }
    aqm = msgspec.structs.replace(shape.aqm, settings=settings)
    limit = shape.queue_bytes if shape.queue_packets is None else shape.queue_packets * largest
    return msgspec.structs.replace(shape, aqm=aqm, queue_packets=None, queue_bytes=limit)
