"""`netwarp search`: the cell of an experiment in which a metric is largest, or smallest."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ..core import invocation
from ..core.errors import SpecError
from ..core.lines import Line
from ..core.metrics.catalogue import METRICS
from ..core.units import QuantityError, parse_quantity
from ..engine.conclusions import search_conclusion
from ..engine.search import SearchResult, search
from ..present.conclusion_words import conclusion_lines
from ..sandbox.choose import BACKENDS
from .output import print_json, print_lines, run_lines
from .places import new_folder
from .run import add_plan_arguments, plan_options, unless_stopped


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "search",
        description="Runs the cells of an experiment in which a metric may be worst: each batch of points is chosen "
        "from what was measured before (docs/search.md). A point is a level of each factor of the box; its value is "
        "the worst of its cells.",
        example="netwarp search harm --minimise share_all_run_ratio --flow victim",
    )
    add_plan_arguments(parser)
    aim = parser.add_mutually_exclusive_group(required=True)
    aim.add_argument("--maximise", metavar="METRIC", help="find where it is largest")
    aim.add_argument("--minimise", metavar="METRIC", help="find where it is smallest")
    aim.add_argument("--worst", metavar="METRIC", help="find where it is worst: smallest or largest, by what it is")
    parser.add_argument("--flow", help="whose metric, if several flows have it")
    parser.add_argument(
        "--over", nargs="+", default=[], metavar="FACTOR", help="the factors of the box (default: all that are varied)"
    )
    parser.add_argument("--budget", metavar="TIME", help="choose no more points after this wall time: '30 min'")
    parser.add_argument("--points", type=int, metavar="N", help="or after so many points")
    parser.add_argument("--backend", default="auto", choices=BACKENDS, help="where cells run (default: auto)")
    parser.add_argument("--jobs", type=int, metavar="N", help="cells at once (default: cores; on the wall clock 1)")
    parser.add_argument(
        "--out", type=new_folder, metavar="DIR", help="run directory (default: results/<name>/<UTC time>/)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted search, or with more points")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--no-report", action="store_true", help="stop after the tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Search; the exit status: 0 a point was found, 1 no point has a value."""
    result = unless_stopped(
        args,
        lambda progress: search(
            metric=args.maximise or args.minimise or args.worst, largest=_largest(args), over=args.over,
            flow=args.flow, budget_s=_seconds(args.budget), points=args.points, backend=args.backend,
            jobs=args.jobs, out=args.out, resume=args.resume, report=not args.no_report, arguments=args.typed,
            progress=progress, **plan_options(args),
        ),
    )  # fmt: skip
    if isinstance(result, int):
        return result
    if args.json:
        print_json({"run_dir": str(result.run.path), "spec": result.spec and str(result.spec), **_record(result)})
    else:
        print_lines(_lines(result))
    return 0 if result.spec else 1


def _largest(args: argparse.Namespace) -> bool:
    """Whether the largest value is looked for."""
    if args.worst is None:
        return args.maximise is not None
    metric = METRICS.get(args.worst)
    if metric is None or metric.higher_is_better is None:
        why = "is no metric of docs/metrics.md" if metric is None else "is neither better nor worse where it is larger"
        raise SpecError(f"--worst {args.worst}: {why}; write --maximise or --minimise")
    return not metric.higher_is_better


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else parse_quantity(text, "time").value / 1e9
    except QuantityError as error:
        raise SpecError(f"--budget: {error}") from error


def _record(result: SearchResult) -> dict[str, object]:
    ranked = result.searched.ranked
    near, of = result.neighbours
    return {
        "asked": result.searched.asked,
        "unit": result.searched.unit,
        "points": result.searched.points,
        "tried": result.searched.tried,
        "best": ranked[0][0] if ranked else None,
        "neighbours_tried": near,
        "neighbours": of,
    }


def _lines(result: SearchResult) -> Iterator[Line]:
    yield from conclusion_lines(search_conclusion(result))
    yield Line("")
    if result.spec is not None:
        yield Line("replay: ", invocation.command("run", result.spec))
    yield from run_lines(result.run)
