"""Draws what a direction of a link does to packets: rate and queue, delay and jitter, losses of every kind."""

from __future__ import annotations

from typing import Any

from .draw import MS, Draw, S, rate_text, size_text, time_text, two_digits

Keys = dict[str, Any]
RELEASE_OF_DUALPI2 = "7.3"
TRACED = ("steps.csv", "walk.trace", "lte-made.down")
KINDS_OF_PACKETS = ("data", "syn", "syn_ack", "ack", "fin", "init", "init_ack", "cookie_echo", "cookie_ack", "sack")


def queue_of(draw: Draw, rate_bit_s: int) -> Keys:
    """A rate with its queue: tail drop in packets, bytes or bandwidth-delay products, an AQM, a token bucket, slots."""
    keys: Keys = {"rate": rate_text(rate_bit_s)}
    form = draw.whole(1, 100)
    packets = f"{two_digits(draw.log(1, 400))} packets"
    if form <= 40:
        keys["queue"] = packets
    elif form <= 50:
        keys["queue"] = size_text(two_digits(draw.log(10_000, 1_000_000)))
    elif form <= 60:
        keys["queue"] = draw.of(("1 bdp", "0.5 bdp", "2 bdp"))
    elif form <= 66:
        keys |= {
            "queue": packets,
            "burst": draw.of(("9.1 kB", "16 kB", "32 kB", "256 kB" if rate_bit_s > 8000 else "20 kB")),
        }
    elif form <= 72:
        keys |= {"queue": f"{draw.whole(20, 400)} packets", "slots": slots_of(draw)}
    else:
        keys |= aqm_of(draw)
    if draw.maybe(0.12):
        keys["layer"] = draw.of(("ethernet", "ip"))
    return keys


def slots_of(draw: Draw) -> Keys:
    """Packets that leave in groups."""
    after = draw.whole(1, 10)
    keys: Keys = {"after": f"{after} ms"}
    if draw.maybe(0.6):
        keys["to"] = f"{after + draw.whole(0, 5)} ms"
    if draw.maybe(0.6):
        keys["packets"] = f"{draw.whole(1, 40)} packets"
    if draw.maybe(0.6):
        keys["bytes"] = draw.of(("3 kB", "16 kB", "48 kB"))
    return keys


def aqm_of(draw: Draw) -> Keys:
    """A queue with active management."""
    kind = draw.of(
        ("red", "red", "red", "codel", "codel", "fq_codel", "fq_codel", "pie", "pie", "cake", "cake", "dualpi2")
    )
    aqm: Keys = {"kind": kind}
    some = 0.7
    if kind not in ("cake", "dualpi2") and draw.maybe(some):
        aqm["ecn"] = draw.maybe(0.7)
    queue = f"{draw.whole(20, 400)} packets"
    given: Keys = {}
    match kind:
        case "red":
            low = draw.whole(2, 20)
            aqm |= {"min": f"{low} packets", "max": f"{low * 3} packets"}
            if draw.maybe(0.3):
                aqm |= {"min": "6 kB", "max": "30 kB"}
                queue = "120 kB"
            else:
                queue = f"{low * 6} packets"
            given = {"max_p": draw.of(("2 %", "10 %")), "average": draw.whole(2, 9), "adaptive": True, "hard": True}
        case "codel" | "fq_codel":
            given = {"target": draw.of(("1 ms", "5 ms", "20 ms")), "interval": draw.of(("20 ms", "100 ms"))}
            if kind == "fq_codel":
                given |= {"flows": draw.of((1, 16, 1024)), "quantum": draw.of(("300 B", "1514 B", "3 kB"))}
        case "pie":
            given = {"target": "15 ms", "update": draw.of(("15 ms", "30 ms")), "alpha": draw.whole(0, 8),
                     "beta": draw.whole(1, 30)}  # fmt: skip
        case "cake":
            queue = draw.of(("64 KiB", "1 MiB"))
            given = {"rtt": draw.of(("20 ms", "100 ms")), "ack_filter": draw.maybe(0.7)}
        case "dualpi2":
            given = {"target": "15 ms", "update": "16 ms", "alpha": 41, "beta": 819,
                     "step": draw.of(("1 ms", "5 packets")), "step_from": "2 packets", "coupling": draw.whole(1, 4),
                     "overload": draw.of(("drop", "overflow")), "drop_early": draw.maybe(0.5), "protection": "10 %",
                     "low_latency": draw.of(("ect1", "ect0", "any")), "memory": "30 MB"}  # fmt: skip
    aqm |= {key: value for key, value in given.items() if draw.maybe(0.9 if kind == "dualpi2" else some)}
    return {"queue": queue, "aqm": aqm}


def losses_of(draw: Draw) -> Keys:
    """Losses, copies and errors; most directions have none."""
    keys: Keys = {}
    match draw.whole(1, 100):
        case form if form <= 12:
            keys["loss"] = draw.of(("0.5 %", "1 %", "5 %", "20 %"))
            if draw.maybe(0.5):
                keys["loss_correlation"] = draw.of(("10 %", "50 %"))
        case form if form <= 17:
            burst: Keys = {"p": draw.of(("1 %", "4 %")), "r": draw.of(("20 %", "50 %"))}
            if draw.maybe(0.7):
                burst["bad_loss"] = draw.of(("100 %", "70 %"))
            if draw.maybe(0.7):
                burst["good_loss"] = draw.of(("0 %", "1 %"))
            keys["burst_loss"] = burst
        case form if form <= 24:
            keys[draw.of(("bit_errors", "byte_errors"))] = draw.of(("1e-6", "1e-5"))
    if draw.maybe(0.10):
        keys["drop"] = rule_of(draw)
    if draw.maybe(0.07):
        keys["duplicate"] = draw.of(("1 %", "10 %")) if draw.maybe(0.5) else rule_of(draw)
    if draw.maybe(0.05):
        keys["delay"] = draw.of(({5: "30 ms"}, {3: "2 ms", "data": {1: "40 ms"}}, {"ack": {2: "10 ms"}}))
    if draw.maybe(0.06):
        keys["corrupt"] = draw.of(("1 %", "5 %"))
    return keys


def rule_of(draw: Draw) -> object:
    """Which single packets."""
    some: object = draw.of(
        (
            [],
            [draw.whole(1, 20)],
            [2, 3, 7],
            [5, {"from": 20, "to": 23}],
            {"every": f"{draw.whole(10, 60)} packets"},
            {"from": 12, "to": 15},
            {"every": "9 packets", "from": 30, "to": 80},
        )
    )
    kind = draw.of(KINDS_OF_PACKETS)
    if draw.maybe(0.4) and some:
        return {kind: some if isinstance(some, dict) else [draw.whole(1, 4)]}
    return some


def spread_of(draw: Draw, delay_ns: int) -> Keys:
    """Jitter or reordering, of a direction with a delay."""
    if delay_ns < MS or not draw.maybe(0.22):
        return {}
    if draw.maybe(0.25):
        return {"reorder": draw.of(("1 %", "5 %"))}
    keys: Keys = {"jitter": time_text(two_digits(draw.log(delay_ns / 50, delay_ns * 0.9)))}
    if draw.maybe(0.5):
        keys["distribution"] = draw.of(("uniform", "normal", "pareto", "paretonormal"))
    if draw.maybe(0.4):
        keys["in_order"] = draw.maybe(0.8)
    if draw.maybe(0.3):
        keys["jitter_correlation"] = draw.of(("10 %", "50 %"))
    return keys


def policer_of(draw: Draw, rate_bit_s: int) -> Keys:
    """A policer somewhat below or above the rate."""
    rate = max(1000, two_digits(rate_bit_s * draw.log(0.3, 2)))
    return {"rate": rate_text(rate), "burst": draw.of(("10 kB", "64 KiB" if rate > 2000 else "30 kB"))}


def traced(draw: Draw) -> Keys:
    """A direction that follows a trace."""
    file = draw.of(TRACED)
    trace: Keys = {"file": file}
    if file == "steps.csv":
        if draw.maybe(0.7):
            trace["after"] = draw.of(("hold", "repeat"))
        return {"trace": trace, "queue": f"{draw.whole(10, 200)} packets"}
    if draw.maybe(0.5):
        trace["window"] = draw.of(("50 ms", "100 ms"))
        if draw.maybe(0.6):
            trace["after"] = draw.of(("repeat", "hold"))
        keys: Keys = {"trace": trace, "queue": f"{draw.whole(30, 300)} packets"}
        return keys | ({"aqm": {"kind": "fq_codel"}} if draw.maybe(0.4) else {})
    if draw.maybe(0.6):
        trace["after"] = draw.of(("repeat", "end"))
    if draw.maybe(0.6):
        trace["opportunity"] = draw.of(("1504 B", "3000 B"))
    if draw.maybe(0.6):
        trace["overhead"] = draw.of(("4 B", "0 B"))
    return {"trace": trace, "queue": draw.of(("50 packets", "64 KiB")) if draw.maybe(0.5) else "100 packets"}


def rate_of(draw: Draw) -> int:
    """1 kbit/s to 1 Gbit/s, in bit/s; few are slower than a modem."""
    least = 1000 if draw.maybe(0.12) else 50_000
    return two_digits(draw.log(least, 10**9))


def delay_of(draw: Draw) -> int:
    """One-way delay in ns: a half of 0.1 ms to 2 s."""
    return two_digits(draw.log(0.05 * MS, 0.3 * S if draw.maybe(0.85) else S))
