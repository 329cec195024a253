"""Specs that try to do harm, or to exhaust the machine that reads them."""

from __future__ import annotations

from support.specs import BASE, replaced

DEEP = 5000


def factors(count: int, levels: int) -> str:
    """So many factors with so many levels each, all combined."""
    listed = ", ".join(f'"{level} s"' for level in range(levels))
    return "".join(f"[factor.f{number}]\nlevels = [{listed}]\n" for number in range(count))


NAMES = ("../../x", "a/b", "a\\\\b", ".", "..", "a b", "$(id)", "`id`", "a;id", "-rf", "a\\nb", "a\\u0000b",
         "\\u202Etxt", "ünïcode", "а", "a" * 300, "", "con<script>", "'", "*")  # fmt: skip
"""As TOML writes them in a basic string."""
PLACES = {
    "name": ('name = "test"', 'name = "{}"'),
    "node": ("[node.b]", '[node."{}"]'),
    "link": ("[link.p1]", '[link."{}"]'),
    "flow": ("[flow.f]", '[flow."{}"]'),
    "profile": ('rate = "1 Mbit/s"', 'profile = "{}"'),
    "expected": ('duration = "10 s"', 'duration = "10 s"\nexpected = "{}"'),
    "factor": ('duration = "10 s"', 'duration = "10 s"\n[factor."{}"]\nlevels = ["1"]'),
    "parameter": ('duration = "10 s"', 'duration = "10 s"\n[parameter]\n"{}" = "1 s"'),
    "table": ('duration = "10 s"', 'duration = "10 s"\n[table."{}"]\nmetric = "packets"'),
    "figure": ('duration = "10 s"', 'duration = "10 s"\n[figure."{}"]\nmetric = "packets"'),
    "metric": ('duration = "10 s"', 'duration = "10 s"\n[metric."{}"]\nunit = "B"\nvalue = "packets"'),
    "experiment": ('duration = "10 s"', 'duration = "10 s"\n[experiment."{}"]\nfactors = []'),
    "congestion": ('paths = ["p1"]', 'paths = ["p1"]\nsender = {{ congestion = "{}" }}'),
}
"""The places of a name that becomes a file's, an interface's, an argument's or a page's."""
NUMBERS = ("1e400 Mbit/s", "9" * 400 + " bit/s", "nan bit/s", "inf bit/s", "-inf bit/s", "1e-400 Mbit/s", "0x10 bit/s",
           "1_000 bit/s", "٣ Mbit/s", "1e999999999 bit/s", "Infinity Mbit/s", "1" * 100_000 + " bit/s")  # fmt: skip
WHOLE = {
    "deep lists": "x = " + "[" * DEEP + "]" * DEEP,
    "deep tables": "x" + ".x" * DEEP + " = 1",
    "deep inline tables": "x = " + "{x = " * DEEP + "1" + "}" * DEEP,
    "not UTF-8": BASE.replace("test", "b\udcff"),
    "a million levels": factors(1, 1_000_000),
    "10^6 cells": BASE + factors(6, 10),
    "10^60 cells": BASE + factors(60, 10),
    "repetitions": BASE.replace('duration = "10 s"', 'duration = "10 s"\nrepetitions = 1000000000'),
    "a huge integer": BASE.replace('duration = "10 s"', 'duration = "10 s"\nseed = ' + "9" * 5000),
    "a bare nan": BASE.replace('"10 s"', "nan", 1),
    "a bare inf": BASE.replace('"10 s"', "inf", 1),
    "a duration of years": BASE.replace('"10 s"', '"1e12 s"', 1),
    "bombs of braces": BASE.replace('"10 s"', '"{a}"', 1)
    + "[parameter]\n" + "".join(f'{chr(97 + n)} = "{{{chr(98 + n)}}}{{{chr(98 + n)}}}"\n' for n in range(24))
    + 'y = "1 s"\n',
    "an expression that calls": BASE + "[metric.m]\nunit = \"B\"\nvalue = \"__import__('os').system('id')\"\n",
    "a deep expression": BASE + f'[metric.m]\nunit = "B"\nvalue = "{"(" * DEEP}packets{")" * DEEP}"\n',
    "a sysctl outside net": replaced("[node.b]", '[node.b]\nsysctl = { "kernel.core_pattern" = "|/bin/sh" }'),
    "a sysctl that climbs": replaced("[node.b]", '[node.b]\nsysctl = { "net/../kernel/core_pattern" = "x" }'),
    "null in a program": replaced('protocol = "tcp"', 'program = ["/bin/echo", "a\\u0000b"]'),
    "an empty program": replaced('protocol = "tcp"', 'program = [""]'),
    "a million nodes": BASE + "".join(f"[node.n{n}]\n" for n in range(100_000)),
}  # fmt: skip
