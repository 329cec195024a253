"""lee2008's model beside the paper's Table 3, and the search for the reading of its equations that misses it least.

    .venv/bin/python experiments/lee2008/model.py --loss 1% --rate 40kbit/s --rtt 256ms    a condition
    .venv/bin/python experiments/lee2008/model.py [--reading NAME] [--read SWITCH=VALUE]   Table 3
    .venv/bin/python experiments/lee2008/model.py --search 200                             the search

The equations are in netwarp, since two metrics of the cells come from them (measure/models/lee2008.py); model.md says
what is found with this file.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args, get_type_hints

import numpy as np
from netwarp.core.errors import NetwarpError, SpecError
from netwarp.core.numbers import fixed, percent
from netwarp.core.units import Kind, QuantityError, parse_quantity
from netwarp.measure.models import throughput_models as rates
from netwarp.measure.models.lee2008 import (
    BEST_FOR_B,
    CORRECTED,
    HEADER_BYTES,
    INITIAL_WINDOW,
    PRINTED,
    Page,
    Readings,
    Values,
    check_condition,
    packets_of,
    response_time_s,
    round_trip_s,
)

Columns = Literal["A", "B", "C"]
COLUMNS: dict[Columns, str] = {
    "A": "columns as printed",
    "B": "model and testbed swapped in the rows of p",
    "C": "model and testbed swapped in the rows of mu and rtt",
}
"""Three rows of Table 3 (p = 1 %, mu = 40 kbit/s, rtt = 256 ms) are one condition and print different values, so its
columns are taken in three ways."""

NAMED_READINGS: dict[str, Readings] = {
    "printed": PRINTED,
    "corrected": CORRECTED,
    "A": replace(
        BEST_FOR_B, exponent="log2(th+1)", before_loss="closed form", floor="2 mtu in bits", avoidance="rtt a packet",
        rest_window="one",
    ),
    "B": BEST_FOR_B,
    "C": Readings(
        rounded="ceil", left="window once", exponent="figure 4", window_size="first window", cap="none",
        before_loss="sum", negative_b="zero", stalls="floor", windows="first window", floor="2 mtu in bits",
        losses="round", rest_window="initial without loss", scope="objects in turn", mtu_is="packet",
        kilobyte="1024 B", timeout="at least 200 ms",
    ),
}  # fmt: skip
"""A, B, C: for each way to read the columns the best that the search came to."""


@dataclass(frozen=True)
class Row:
    """A printed row: its condition, and the four times in s."""

    varied: Literal["p", "mu", "rtt"]
    loss: float
    rate_bit_s: float
    rtt_s: float
    model_tcp_s: float
    model_sctp_s: float
    testbed_tcp_s: float
    testbed_sctp_s: float


TABLE3 = (
    Row("p", 0.004, 40e3, 0.256, 20.76, 20.25, 18.19, 18.11),
    Row("p", 0.01, 40e3, 0.256, 20.33, 20.30, 18.22, 18.13),
    Row("p", 0.02, 40e3, 0.256, 21.26, 20.75, 18.49, 18.34),
    Row("mu", 0.01, 40e3, 0.256, 18.27, 18.13, 21.33, 20.82),
    Row("mu", 0.01, 400e3, 0.256, 4.91, 4.41, 5.09, 4.58),
    Row("mu", 0.01, 3000e3, 0.256, 3.69, 3.28, 3.99, 3.48),
    Row("rtt", 0.01, 40e3, 0.055, 14.78, 14.72, 13.71, 13.60),
    Row("rtt", 0.01, 40e3, 0.080, 14.86, 14.76, 14.55, 14.47),
    Row("rtt", 0.01, 40e3, 0.256, 18.22, 18.13, 21.33, 20.82),
)


def printed_model(row: Row, columns: Columns) -> tuple[float, float]:
    """The paper's model for TCP and SCTP, as its columns are read."""
    swapped = (columns == "B" and row.varied == "p") or (columns == "C" and row.varied != "p")
    return (row.testbed_tcp_s, row.testbed_sctp_s) if swapped else (row.model_tcp_s, row.model_sctp_s)


def model_times(readings: Readings) -> Values:
    """The model in each row of Table 3: columns TCP and SCTP, in s."""
    loss, rate, rtt = (np.array([getattr(row, name) for row in TABLE3]) for name in ("loss", "rate_bit_s", "rtt_s"))
    return np.column_stack(
        [
            response_time_s(loss, rate, rtt, protocol="tcp", readings=readings),
            response_time_s(loss, rate, rtt, protocol="sctp", readings=readings),
        ]
    )


@dataclass(frozen=True)
class Miss:
    """The distance of a reading from Table 3: root mean square and largest of 18 relative differences."""

    rms: float
    largest: float


def miss(readings: Readings, columns: Columns) -> Miss:
    """The distance of that reading from the table with those columns."""
    printed = np.array([printed_model(row, columns) for row in TABLE3])
    relative = np.abs(model_times(readings) / printed - 1)
    return Miss(rms=float(np.sqrt(np.mean(relative**2))), largest=float(relative.max()))


@dataclass(frozen=True)
class Yardsticks:
    """The duration of the same transfer by other models, in s. None of them knows the rate of a link: on_link_s is the
    sending time of the packets alone, and each of the others is at least that.
    """

    cardwell_s: float
    pftk_s: float
    mathis_s: float
    on_link_s: float


def yardsticks(loss: float, rate_bit_s: float, rtt_s: float, readings: Readings = PRINTED) -> Yardsticks:
    """Cardwell, PFTK and Mathis for the paper's page over TCP: R_TO = 3/2 rtt, a window of what the path holds (at
    least 1), an acknowledgement for two packets, without handshake. Without loss PFTK and Mathis give no rate, so the
    link's replaces theirs.
    """
    check_condition(loss, rate_bit_s, rtt_s)
    page = Page()
    packets, times = packets_of(page, "tcp", readings)
    packets *= times
    rtt_s = round_trip_s(rtt_s, readings)
    packet_s = 8 * (page.mtu_bytes + (HEADER_BYTES["tcp"] if readings.mtu_is == "payload" else 0)) / rate_bit_s
    window, timeout_s = float(np.ceil(rtt_s / packet_s) + 1), 1.5 * rtt_s
    on_link = packets * packet_s
    cardwell = cardwell_s(
        packets, loss, rtt_s, timeout_s=timeout_s, window_packets=window, initial_window=INITIAL_WINDOW["tcp"]
    )
    pftk = mathis = 0.0
    if loss > 0:
        pftk = packets / rates.pftk_packets_s(loss, rtt_s, timeout_s, window, b=2)
        mathis = packets / rates.mathis_packets_s(loss, rtt_s, b=2)
    return Yardsticks(max(cardwell, on_link), max(pftk, on_link), max(mathis, on_link), on_link)


def cardwell_s(
    packets: int, p: float, rtt_s: float, *, timeout_s: float, window_packets: float, initial_window: int, b: int = 2
) -> float:
    """N. Cardwell, S. Savage, T. Anderson: Modeling TCP Latency (INFOCOM 2000), section 3, without its terms for the
    handshake and the first delayed acknowledgement: slow start (eq. 5, 11, 15), the loss that ends it (16 to 20),
    congestion avoidance for the rest, at the rate at which PFTK's packets arrive (21 to 23). b: packets per ACK.
    """
    growth = 1 + 1 / b
    lost = rates.any_lost(p, packets)
    in_slow_start = float(packets) if p == 0 else min(packets, lost * (1 - p) / p + 1)
    reached = in_slow_start * (growth - 1) / growth + initial_window / growth
    if reached > window_packets:
        doubling = math.log(max(1.0, window_packets / initial_window), growth) + 1
        at_the_limit = in_slow_start - (growth * window_packets - initial_window) / (growth - 1)
        slow_start = rtt_s * (doubling + max(0.0, at_the_limit) / window_packets)
    else:
        slow_start = rtt_s * math.log(in_slow_start * (growth - 1) / initial_window + 1, growth)
    if p == 0:
        return slow_start
    by_timeout = rates.timeout_share(p, reached)
    loss = lost * (by_timeout * rates.backed_off(p) * timeout_s / (1 - p) + (1 - by_timeout) * rtt_s)
    rest = packets - in_slow_start
    return slow_start + loss + rest / rates.pftk_received_packets_s(p, rtt_s, timeout_s, window_packets, b)


def choices() -> dict[str, tuple[str, ...]]:
    """Each switch with its values, what the paper prints first."""
    hints = get_type_hints(Readings)
    return {field.name: get_args(hints[field.name]) for field in fields(Readings)}


def read(readings: Readings, switches: Mapping[str, str]) -> Readings:
    """A reading with some steps read otherwise. SpecError: a switch or value that there is not."""
    known = choices()
    for name, value in switches.items():
        if name not in known:
            raise SpecError(f'there is no switch "{name}"; there are {", ".join(known)}')
        if value not in known[name]:
            raise SpecError(f'{name} cannot be "{value}"; it is one of {", ".join(map(repr, known[name]))}')
    return replace(readings, **switches)  # type: ignore[arg-type]  # checked above


def search(starts: int, seed: int, with_losses: bool) -> None:
    """Prints the best of what descents by single switches and pairs of them, from random starts, came to: no more than
    that. with_losses: alpha = ceil(delta p), as printed, at each start.
    """
    draw = random.Random(seed)
    for columns in COLUMNS:
        tried: dict[Readings, float] = {}
        results = []
        for number in range(starts):
            switches = {name: draw.choice(values) for name, values in choices().items()} if number else {}
            if with_losses:
                switches["losses"] = "ceil"
            results.append(_descend(read(PRINTED, switches), columns, tried))
        best, readings = min(results, key=lambda pair: pair[0])
        largest = miss(readings, columns).largest
        print(f"{columns}: {len(tried)} readings tried, best rms {best:.4f}, largest {largest:.4f}")
        for name, value in vars(readings).items():
            print(f"    {name} = {value!r}" + ("" if value == getattr(PRINTED, name) else "   # not as printed"))


def _descend(start: Readings, columns: Columns, tried: dict[Readings, float]) -> tuple[float, Readings]:
    """The reading from which no change of one or two switches leads to a smaller miss."""

    def rms(readings: Readings) -> float:
        if readings not in tried:
            try:
                tried[readings] = miss(readings, columns).rms
            except (ValueError, OverflowError):
                tried[readings] = math.inf
        return tried[readings]

    best, at = rms(start), start
    while True:
        single = [{name: value} for name, values in choices().items() for value in values if value != getattr(at, name)]
        pairs = [a | b for a, b in itertools.combinations(single, 2) if a.keys() != b.keys()]
        near = [read(at, switches) for switches in single + pairs]
        value, candidate = min(((rms(one), one) for one in near), key=lambda pair: pair[0])
        if value >= best - 1e-12:
            return best, at
        best, at = value, candidate


def _print_condition(readings: Readings, name: str, loss: float, rate_bit_s: float, rtt_s: float) -> None:
    """The response times of a condition, the yardsticks, and what Table 3 prints of it."""
    tcp, sctp = (
        float(response_time_s(loss, rate_bit_s, rtt_s, protocol=protocol, readings=readings))
        for protocol in ("tcp", "sctp")
    )
    beside = yardsticks(loss, rate_bit_s, rtt_s, readings)
    for title, value in (
        ("E(T_tcp)", tcp),
        ("E(T_sctp)", sctp),
        ("Cardwell, TCP", beside.cardwell_s),
        ("PFTK, TCP", beside.pftk_s),
        ("Mathis, TCP", beside.mathis_s),
        ("the packets on the link", beside.on_link_s),
    ):
        print(f"{title:<24} {fixed(value, 2)} s")
    for row in TABLE3:
        if (row.loss, row.rate_bit_s, row.rtt_s) == (loss, rate_bit_s, rtt_s):
            model = f"{fixed(row.model_tcp_s, 2)} and {fixed(row.model_sctp_s, 2)} s"
            testbed = f"{fixed(row.testbed_tcp_s, 2)} and {fixed(row.testbed_sctp_s, 2)} s"
            print(f"Table 3, row of {row.varied:<3}      TCP and SCTP: model {model}, testbed {testbed}")
    least = {key: min(miss(each, columns).rms for columns in COLUMNS) for key, each in NAMED_READINGS.items()}
    asked = min(miss(readings, columns).rms for columns in COLUMNS)
    best = min(least, key=least.__getitem__)
    print(
        f'No reading fits Table 3: "{name}" misses it by {percent(asked)} (rms, columns taken as suits it best), '
        f'the best, "{best}", by {percent(least[best])}.'
    )


def _print_table3(readings: Readings, name: str) -> None:
    """Table 3 beside the reading, and how far it and the named ones miss the table."""
    left, groups = " " * 16, ("paper's model", "this reading", "paper's testbed")
    print(left + "  ".join(f"{group:>14}" for group in groups))
    print(left + "  ".join(f"{'TCP':>7}{'SCTP':>7}" for _ in groups))
    for row, (tcp, sctp) in zip(TABLE3, model_times(readings), strict=True):
        values = {
            "p": percent(row.loss),
            "mu": f"{fixed(row.rate_bit_s / 1e3, 0)} kbit/s",
            "rtt": f"{fixed(row.rtt_s * 1e3, 0)} ms",
        }
        head = f"{row.varied:<3} {values[row.varied]:<12}"
        shown = (*printed_model(row, "A"), float(tcp), float(sctp), row.testbed_tcp_s, row.testbed_sctp_s)
        print(head + "  ".join("".join(f"{fixed(value, 2):>7}" for value in shown[at : at + 2]) for at in (0, 2, 4)))
    print()
    print("rms and largest relative difference over the 18 numbers, by how the columns are read:")
    for title, each in {name: readings, **NAMED_READINGS}.items():
        far = {columns: miss(each, columns) for columns in COLUMNS}
        words = "  ".join(f"{columns} {percent(off.rms)} ({percent(off.largest)})" for columns, off in far.items())
        print(f"  {title:<22} {words}")
    for columns, title in COLUMNS.items():
        print(f"  {columns}: {title}")
    print("No reading fits: A, B and C are the best that --search came to for those columns.")


def _number(text: str, option: str, kind: Kind) -> float:
    try:
        return float(parse_quantity(text, kind).value)
    except QuantityError as error:
        raise SpecError(f"{option}: {error}") from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SpecError(f'"{text}" is no SWITCH=VALUE; for example --read stalls=floor')
    return name, value


def main(argv: list[str] | None = None) -> None:
    """The condition asked for; without one, Table 3. Ends with status 2 where the arguments are wrong."""
    parser = argparse.ArgumentParser(description="mean response time of HTTP over TCP and SCTP by lee2008's model")
    parser.add_argument("--loss", help='ratio of packets lost, such as "1%%"')
    parser.add_argument("--rate", help='link rate, such as "40kbit/s"')
    parser.add_argument("--rtt", help='round-trip time, such as "256ms"')
    parser.add_argument("--reading", default="printed", choices=[*NAMED_READINGS], help="default: printed")
    parser.add_argument(
        "--read", action="append", default=[], metavar="SWITCH=VALUE", help="one step read otherwise; may be repeated"
    )
    parser.add_argument("--switches", action="store_true", help="list the switches and their values")
    parser.add_argument("--search", type=int, metavar="STARTS", help="look for the reading that misses Table 3 least")
    parser.add_argument("--seed", type=int, default=1, help="of the search's starts (default: 1)")
    parser.add_argument("--with-losses", action="store_true", help="of the search: alpha = ceil(delta p), as printed")
    args = parser.parse_args(argv)
    try:
        readings = read(NAMED_READINGS[args.reading], dict(_pair(text) for text in args.read))
        name = args.reading + (" with --read" if args.read else "")
        given = {"--loss": args.loss, "--rate": args.rate, "--rtt": args.rtt}
        if args.switches:
            for switch, values in choices().items():
                print(f"{switch:<18} {' | '.join(values)}")
        elif args.search:
            search(args.search, args.seed, args.with_losses)
        elif all(given.values()):
            kinds: tuple[Kind, ...] = ("ratio", "rate", "time")
            loss, rate, rtt_ns = (
                _number(text, option, kind) for (option, text), kind in zip(given.items(), kinds, strict=True)
            )
            _print_condition(readings, name, loss, rate, rtt_ns / 1e9)
        elif any(given.values()):
            raise SpecError(
                "a condition is --loss, --rate and --rtt; for example --loss 1% --rate 40kbit/s --rtt 256ms"
            )
        else:
            _print_table3(readings, name)
    except NetwarpError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
