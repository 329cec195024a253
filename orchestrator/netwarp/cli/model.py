"""`netwarp model lee2008`: the paper's response time for a condition, and its Table 3 beside every reading."""

from __future__ import annotations

import argparse
from fractions import Fraction

from ..core.errors import SpecError
from ..core.numbers import fixed, percent
from ..core.units import Kind, QuantityError, parse_quantity
from ..engine.models import (
    COLUMNS,
    NAMED_READINGS,
    TABLE3,
    Readings,
    lee2008_model,
    lee2008_yardsticks,
    miss,
    model_times,
    printed_model,
    read_switches,
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("model", help="what a paper's model says of a condition")
    models = parser.add_subparsers(dest="model", required=True, metavar="MODEL")
    lee = models.add_parser("lee2008", help="mean response time of HTTP over TCP and SCTP (docs/lee2008-model.md)")
    lee.add_argument("--loss", help='ratio of packets lost, such as "1%%"')
    lee.add_argument("--rate", help='link rate, such as "40kbit/s"')
    lee.add_argument("--rtt", help='round-trip time, such as "256ms"')
    lee.add_argument("--reading", default="printed", choices=[*NAMED_READINGS], help="default: printed")
    lee.add_argument(
        "--read", action="append", default=[], metavar="SWITCH=VALUE", help="one step read otherwise; may be repeated"
    )
    lee.add_argument("--switches", action="store_true", help="list the switches and their values")
    lee.set_defaults(run=run_lee2008)


def run_lee2008(args: argparse.Namespace) -> int:
    """The condition asked for; without one, Table 3."""
    if args.switches:
        for name, values in Readings.choices().items():
            print(f"{name:<18} {' | '.join(values)}")
        return 0
    switches = dict(_pair(text) for text in args.read)
    given = [args.loss, args.rate, args.rtt]
    if any(given) and not all(given):
        raise SpecError("a condition is --loss, --rate and --rtt; for example --loss 1% --rate 40kbit/s --rtt 256ms")
    if all(given):
        _condition(args.reading, switches, given)
    else:
        _table3(args.reading, switches)
    return 0


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SpecError(f'"{text}" is no SWITCH=VALUE; for example --read stalls=floor')
    return name, value


def _number(text: str, option: str, kind: Kind) -> float:
    try:
        value: int | float | Fraction = parse_quantity(text, kind).value
    except QuantityError as error:
        raise SpecError(f"{option}: {error}") from None
    return float(value)


def _condition(reading: str, switches: dict[str, str], given: list[str]) -> None:
    loss = _number(given[0], "--loss", "ratio")
    rate = _number(given[1], "--rate", "rate")
    rtt = _number(given[2], "--rtt", "time") / 1e9
    times = lee2008_model(loss, rate, rtt, reading=reading, switches=switches)
    beside = lee2008_yardsticks(loss, rate, rtt, reading=reading, switches=switches)
    for name, value in (
        ("E(T_tcp)", float(times.tcp_s)),
        ("E(T_sctp)", float(times.sctp_s)),
        ("Cardwell, TCP", beside.cardwell_s),
        ("PFTK, TCP", beside.pftk_s),
        ("Mathis, TCP", beside.mathis_s),
        ("the packets on the link", beside.on_link_s),
    ):
        print(f"{name:<24} {fixed(value, 2)} s")
    for row in TABLE3:
        if (row.loss, row.rate_bit_s, row.rtt_s) == (loss, rate, rtt):
            model = f"{fixed(row.model_tcp_s, 2)} and {fixed(row.model_sctp_s, 2)} s"
            testbed = f"{fixed(row.testbed_tcp_s, 2)} and {fixed(row.testbed_sctp_s, 2)} s"
            print(f"Table 3, row of {row.varied:<3}      TCP and SCTP: model {model}, testbed {testbed}")
    print(_missed(reading, switches))


def _missed(reading: str, switches: dict[str, str]) -> str:
    """The distance from Table 3 of the reading asked for, and of the best one."""

    def least(readings: Readings) -> float:
        return min(miss(readings, columns).rms for columns in COLUMNS)

    best = min(NAMED_READINGS, key=lambda name: least(NAMED_READINGS[name]))
    name = reading + (" with --read" if switches else "")
    asked = least(read_switches(reading, switches))
    return (
        f'No reading fits Table 3: "{name}" misses it by {percent(asked)} (rms, columns taken as suits it best), '
        f'the best, "{best}", by {percent(least(NAMED_READINGS[best]))}.'
    )


def _table3(reading: str, switches: dict[str, str]) -> None:
    readings = read_switches(reading, switches)
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
    for name in dict.fromkeys([reading, *NAMED_READINGS]):
        tried = readings if name == reading else NAMED_READINGS[name]
        far = {columns: miss(tried, columns) for columns in COLUMNS}
        words = "  ".join(f"{columns} {percent(off.rms)} ({percent(off.largest)})" for columns, off in far.items())
        print(f"  {name + (' with --read' if name == reading and switches else ''):<22} {words}")
    for columns, title in COLUMNS.items():
        print(f"  {columns}: {title}")
    print("No reading fits: A, B and C are the best that benchmarks/lee2008_readings.py came to for those columns.")
