"""Counts the points that a search measures until it has the worst one of a box: TPE beside points drawn by chance.

    netwarp run box.toml --keep tables --out all          # every point of the box, once
    python benchmarks/search_points.py all --minimise goodput_bit_s --flow victim

Replays the choice of points with the values of that run: no cell is run again.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from netwarp.engine.optimiser import Optimiser, Point
from netwarp.engine.run_directory import open_run
from netwarp.engine.search import BATCH, Box, box_of

Order = Callable[[int], Iterator[Point]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    aim = parser.add_mutually_exclusive_group(required=True)
    aim.add_argument("--maximise", metavar="METRIC")
    aim.add_argument("--minimise", metavar="METRIC")
    parser.add_argument("--flow", default="")
    parser.add_argument("--over", nargs="+", default=[])
    parser.add_argument("--seeds", type=int, default=50)
    args = parser.parse_args()
    run, largest, metric = open_run(args.run), args.maximise is not None, args.maximise or args.minimise
    box = box_of(run.plan, args.over)
    measured = {
        point: [run.results.by_cell[cell.id].value(args.flow, metric) for cell in cells]
        for point, cells in box.points.items()
    }
    known = {point: [value for value in each if value is not None] for point, each in measured.items()}
    if known != measured:
        parser.error(f"{args.run}: not every cell has {metric} of {args.flow or 'the whole cell'}")
    pick = max if largest else min
    values = {point: pick(each) for point, each in known.items()}
    ranks = {point: rank for rank, point in enumerate(sorted(values, key=values.__getitem__, reverse=largest), 1)}
    print(f"{len(values)} points; measured until the worst point, and until one of the worst 5 % ({args.seeds} seeds)")
    for name, order in (("TPE", by_tpe(box, values, largest)), ("by chance", by_chance(values))):
        for within in (1, max(1, len(values) // 20)):
            needed = sorted(
                next(number for number, point in enumerate(order(seed), 1) if ranks[point] <= within)
                for seed in range(args.seeds)
            )
            nine = needed[int(0.9 * len(needed))]
            print(f"  {name:<10} rank <= {within}: median {statistics.median(needed):g}, 90 % within {nine}")


def by_tpe(box: Box, values: Mapping[Point, float], largest: bool) -> Order:
    """The points in the order of a search."""

    def order(seed: int) -> Iterator[Point]:
        optimiser = Optimiser(box.levels, box.ordered, box.points, seed, largest=largest)
        while batch := optimiser.ask(BATCH):
            for point in batch:
                optimiser.tell(point, values[point])
            yield from batch

    return order


def by_chance(values: Mapping[Point, float]) -> Order:
    """The points in an order that is drawn."""
    return lambda seed: iter(random.Random(seed).sample(list(values), len(values)))


if __name__ == "__main__":
    main()
