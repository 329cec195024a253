"""Search for the reading of lee2008's model that misses its Table 3 least.

Descent by single switches and pairs of them from random starts. It says the best of what it tried, no more.
"""

import argparse
import itertools
import random

from netwarp.measure.models.lee2008.readings import PRINTED, Readings
from netwarp.measure.models.lee2008.table3 import COLUMNS, miss


def descend(start: Readings, columns: str, cache: dict[Readings, float]) -> tuple[float, Readings]:
    """The reading from which no change of a switch leads to a smaller miss."""
    choices = Readings.choices()

    def rms(readings: Readings) -> float:
        if readings not in cache:
            try:
                cache[readings] = miss(readings, columns).rms
            except (ValueError, OverflowError):
                cache[readings] = float("inf")
        return cache[readings]

    best, at = rms(start), start
    while True:
        single = [{name: value} for name, values in choices.items() for value in values if value != getattr(at, name)]
        pairs = [a | b for a, b in itertools.combinations(single, 2) if a.keys() != b.keys()]
        near = [at.read(**switches) for switches in single + pairs]
        value, candidate = min(((rms(one), one) for one in near), key=lambda pair: pair[0])
        if value >= best - 1e-12:
            return best, at
        best, at = value, candidate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--with-losses", action="store_true", help="alpha = ceil(delta p), as printed, in all of them")
    args = parser.parse_args()
    draw = random.Random(args.seed)
    for columns in COLUMNS:
        cache: dict[Readings, float] = {}
        results = []
        for number in range(args.starts):
            switches = {name: draw.choice(values) for name, values in Readings.choices().items()} if number else {}
            if args.with_losses:
                switches["losses"] = "ceil"
            results.append(descend(PRINTED.read(**switches), columns, cache))
        best, readings = min(results, key=lambda pair: pair[0])
        far = miss(readings, columns)
        print(f"{columns}: {len(cache)} readings tried, best rms {best:.4f}, largest {far.largest:.4f}")
        for name, value in vars(readings).items():
            print(f"    {name} = {value!r}" + ("" if value == getattr(PRINTED, name) else "   # not as printed"))


if __name__ == "__main__":
    main()
