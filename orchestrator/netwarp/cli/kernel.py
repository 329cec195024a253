"""`netwarp kernel build`, `list`, `headers`, `export`, `import` and `watch`; `explore` is a module of its own.

Also `python3 -m netwarp.cli.kernel`: the standard library alone is imported, so that the Makefile can build a kernel
before there is a virtual environment.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..core.errors import KernelError, NetwarpError
from ..core.lines import columns, lines_text
from ..doctor.guest import memory_dir
from ..guestkernel import (
    KernelBuild,
    build_kernel,
    export_kernel,
    find_kernel,
    import_kernel,
    list_kernels,
    load_recipe,
)
from ..guestkernel.build import HEADERS_ARCHES, make_headers
from ..guestkernel.cache import add_headers, kernels_dir
from ..guestkernel.congestion import congestion_controls, read_back, with_congestion
from ..guestkernel.coverage import counting
from ..guestkernel.tool_run import Progress
from ..guestkernel.variant import PLAIN, Variant, combined, debugging, patched
from . import EXIT_INTERRUPTED, explained, terminable
from .nipa import add_nipa_arguments
from .places import new_file

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare them."""
    add_verbs(lambda verb, **options: subparsers.add_parser(f"kernel {verb}", **options))
    from . import explore  # here: it needs more than the standard library

    exploring = subparsers.add_parser(
        "kernel explore", help="search schedules that reach new lines of the kernel, and show faults",
        example="netwarp kernel explore roots --files 'net/sctp/*.c' --cells 300",
    )  # fmt: skip
    explore.add_arguments(exploring)
    exploring.set_defaults(run=explore.run)


def add_verbs(add: Callable[..., argparse.ArgumentParser]) -> None:
    """The verbs that need the standard library alone, with their options. add: takes what Words.add_parser() takes."""
    build = add(
        "build",
        help="build the guest kernel into the cache (nothing to do if it is there)",
        example="netwarp kernel build --patch fix.patch",
        description=f"Builds a User-Mode Linux kernel into {kernels_dir()} (NETWARP_CACHE names another place).",
    )
    build.add_argument(
        "--source",
        type=Path,
        metavar="DIR|TARBALL|PACKAGE",
        help="build this Linux tree (in a copy), or another package (linux-source-6.1, or its file), instead of the "
        "release that runs use by default",
    )
    build.add_argument(
        "--second", action="store_true", help='build the release beside the default one: `kernel = "7.3"` in a spec'
    )
    build.add_argument(
        "--patch",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help='with this patch on top (again for more): `kernel = "6.12+NAME"` in a spec, where NAME is the file\'s '
        "without its ending",
    )
    build.add_argument(
        "--congestion",
        type=Path,
        action="append",
        default=[],
        metavar="FILE.c",
        help="with this congestion control built in, one source file as those of net/ipv4 (again for more): "
        '`kernel = "6.12+NAME"`, NAME as for --patch, and `congestion = "..."` by the name in the file',
    )
    build.add_argument(
        "--coverage",
        action="append",
        default=[],
        metavar="FILES",
        help="that counts how often each line of these files of the source runs (again for more), for kernel explore; "
        "for example 'net/sctp/*.c': `kernel = \"6.12+gcov-sctp\"` in a spec",
    )
    build.add_argument(
        "--debug",
        action="store_true",
        help='with checks for memory, locks and RCU (kernel/debug.config; slower): `kernel = "6.12+debug"` in a spec',
    )
    build.add_argument("--jobs", type=_positive, metavar="N", help="compilers at once (default: one per core)")
    build.add_argument(
        "--if-missing",
        action="store_true",
        help="only if no kernel made by this checkout's recipe is there, whatever its point release",
    )
    build.add_argument(
        "--wheels", type=Path, metavar="DIR", help="with --if-missing: take the kernel of a wheel there if it fits"
    )
    build.add_argument(
        "--headers-link", type=Path, metavar="LINK", help="point this symbolic link to the kernel's headers"
    )
    listing = add(
        "list", help="list the kernels built, the newest first; * marks the one runs use by default",
        example="netwarp kernel list",
    )  # fmt: skip
    headers = add(
        "headers", help="make the kernel's headers for programs, without the kernel (seconds)",
        example="netwarp kernel headers --link build/kernel-headers",
    )  # fmt: skip
    headers.add_argument("--arch", choices=HEADERS_ARCHES, default="x86", help="of the programs (default: x86)")
    headers.add_argument("--link", type=Path, required=True, help="point this symbolic link to them")
    leaving = add(
        "export", help="write a kernel into a file, for machines that shall not build one",
        example="netwarp kernel export kernel.tar.gz",
    )  # fmt: skip
    leaving.add_argument("file", type=new_file, metavar="FILE", help="e.g. kernel.tar.gz")
    leaving.add_argument("--key", help="of the kernel, or its beginning (default: the one that runs use)")
    coming = add(
        "import", help="put an exported kernel into the cache, if it is the one that was built",
        example="netwarp kernel import kernel.tar.gz",
    )  # fmt: skip
    coming.add_argument("file", type=Path, metavar="FILE")
    watching = add(
        "watch",
        help="show the changes from one kernel to another: tests, splats, numbers with the first packet that differs",
        example="netwarp kernel watch 6.12 6.12+fix.patch",
        description="Runs tests and small experiments on two kernels, and says what changed. A kernel is SOURCE, "
        "TREE@COMMIT or either with +PATCH: a built release, a tree, a tarball, a package (docs/kernel-developers.md). "
        "Exit status: 0 nothing changed, 1 something did, 2 it could not be asked, 3 a source does not build.",
    )
    watching.add_argument("kernels", nargs="+", metavar="BASE NEW", help="or one git repository, with --over")
    watching.add_argument(
        "--set",
        default="small",
        metavar="small|full|FILE",
        help="what runs (experiments/watch/sets.toml; default: small), or a file of your own: a spec, or a set",
    )
    watching.add_argument(
        "--over", metavar="A..B", help="two commits of that repository; a finding between is bisected"
    )
    watching.add_argument("--finding", metavar="N", help="with --over: its number, several (1,3), or all (default: 1)")
    watching.add_argument(
        "--git-bisect",
        action="store_true",
        help="end as a step of `git bisect run` does: 0 nothing changed, 1 something did, 125 it does not build, 255 "
        "it could not be asked; without --out nothing is kept outside the cache (docs/bisect.md)",
    )
    watching.add_argument("--anew", action="store_true", help="run what earlier calls have kept, too")
    watching.add_argument(
        "--jobs", type=_positive, metavar="N", help="compilers, cells and tests at once (default: one per core)"
    )
    watching.add_argument(
        "--out", type=Path, metavar="DIR", help="page, JSON, runs (default: results/watch/<UTC time>)"
    )
    add_nipa_arguments(watching, "kernel-developers.md", "netwarp-watch")
    for verb in (build, listing, coming, watching):
        verb.add_argument("--json", action="store_true", help="print one JSON value")
    functions = {
        build: _build, listing: _list, headers: _headers, leaving: _export, coming: _import, watching: _watch,
    }  # fmt: skip
    for verb, run in functions.items():
        verb.set_defaults(run=run)


def _watch(args: argparse.Namespace) -> int:
    from .watch import run_watch  # here: this module needs the standard library alone

    return run_watch(args)


def _headers(args: argparse.Namespace) -> int:
    with Shown("kernel headers") as shown:
        _link(args.link, make_headers(args.arch, shown.update))
    return 0


def _export(args: argparse.Namespace) -> int:
    build = find_kernel(args.key)
    if build is None:
        raise KernelError(f"there is no such kernel in {kernels_dir()}; `netwarp kernel list` lists them")
    export_kernel(build, args.file)
    print(args.file)
    return 0


def _import(args: argparse.Namespace) -> int:
    return _say(import_kernel(args.file), args.json)


def _build(args: argparse.Namespace) -> int:
    if args.second and args.source is not None:
        raise KernelError("--second names a source; leave --source out")
    args.source = Path(load_recipe().second) if args.second else args.source
    counted = [counting(args.coverage)] if args.coverage else []
    checked = [debugging()] if args.debug else []
    changed = [*map(patched, args.patch), *map(with_congestion, args.congestion)]
    variant = combined([*checked, *counted, *changed])
    default = args.source is None and not variant.label
    build = find_kernel() if args.if_missing and default else None
    if build is None and args.wheels is not None and default:
        # those of the default release alone: netwarp_kernel_7_3 is the second
        for wheel in sorted(args.wheels.glob("netwarp_kernel-*.whl")):
            import_kernel(wheel)
        build = find_kernel()
    if build is None:
        with Shown() as shown:
            build = build_kernel(args.source, args.jobs, shown.update, variant=variant)
    if args.headers_link is not None:
        if not build.key:
            raise KernelError(f"{build.binary} has no headers beside it; unset NETWARP_KERNEL to set up the apps")
        if build.include is None:
            with Shown("kernel headers") as shown:
                build = dataclasses.replace(build, include=add_headers(build, make_headers("x86", shown.update)))
        assert build.include is not None
        _link(args.headers_link, build.include)
    controls = congestion_controls(variant)
    if controls and (memory := memory_dir()) is not None:
        read_back(build, controls, memory)
    _say(build, args.json, variant)
    if controls and not args.json:
        release = ".".join(build.release.split(".")[:2])
        names = " or ".join(f'"{name}"' for name in controls)
        print(f'in a spec: kernel = "{release}+{build.variant}" and, of a flow, sender = {{ congestion = {names} }}')
    return 0


def _say(build: KernelBuild, as_json: bool, variant: Variant = PLAIN) -> int:
    lacks = variant.lacks(build)
    if as_json:
        print(json.dumps(_record(build) | ({"lacks": lacks} if variant.options else {})))
        return 0
    print(f"kernel {_named(build)} ({build.key or build.kind}): {build.binary}")
    if variant.options:
        took = len(variant.options) - len(lacks)
        without = f"; not in User-Mode Linux {build.release}: {', '.join(lacks)}" if lacks else ""
        print(f"{took} of {len(variant.options)} options took{without}")
    return 0


def _list(args: argparse.Namespace) -> int:
    chosen = find_kernel()
    builds = list_kernels()
    if chosen is not None and chosen.key not in {build.key for build in builds}:
        builds.insert(0, chosen)
    if args.json:
        print(json.dumps([{**_record(build), "default": build == chosen} for build in builds]))
        return 0
    if not builds:
        print(f"no kernel in {kernels_dir()}; build one: make kernel")
    recipe, rows = load_recipe(), []
    for build in builds:
        known = build.recipe in (recipe.for_release(build.release).digest, "")
        rows.append(
            (
                "*" if build == chosen else "", build.key or "-", _named(build), build.source,
                f"sha256 {build.sha256[:16]}", build.built_at,
                "" if known else "(another fragment or patches than this checkout's)",
            )
        )  # fmt: skip
    print(lines_text(columns(rows)))
    return 0


def _named(build: KernelBuild) -> str:
    """As a spec may name it."""
    return f"{build.release}+{build.variant}" if build.variant else build.release


def _record(build: KernelBuild) -> dict[str, object]:
    return {name: None if value is None else str(value) for name, value in dataclasses.asdict(build).items()}


def _link(link: Path, target: Path) -> None:
    """Point `link` to `target` by one rename; untouched if it is right already."""
    if link.is_symlink() and link.readlink() == target:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    new = link.with_name(f"{link.name}.{os.getpid()}")
    new.symlink_to(target)
    new.replace(link)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


class Shown:
    """Progress on stderr: one line that is written over on a terminal, else a line a stage and every tenth."""

    def __init__(self, what: str = "kernel build") -> None:
        self._what = what
        self._terminal = sys.stderr.isatty()
        self._said = ("", -1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal and self._said[0]:
            print(file=sys.stderr)

    def update(self, progress: Progress) -> None:
        """Show how far the build is."""
        tenth = progress.done * 10 // progress.total if progress.total else 0
        if not self._terminal and (progress.stage, tenth) == self._said:
            return
        self._said = (progress.stage, tenth)
        count = f" {progress.done} of ~{progress.total} objects" if progress.total else ""
        minutes, seconds = divmod(int(progress.elapsed_s), 60)
        line = f"{self._what} {progress.stage}{count} ({minutes}:{seconds:02d})"
        print(
            f"\r\033[K{line}" if self._terminal else line,
            end="" if self._terminal else "\n",
            file=sys.stderr,
            flush=True,
        )


def main() -> int:
    """Parse, run, and turn errors into a message and a status."""
    parser = argparse.ArgumentParser(prog="python3 -m netwarp.cli.kernel", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    add_verbs(lambda verb, **options: verbs.add_parser(verb, **explained(options)))
    try:
        args = parser.parse_args()
        with terminable():  # SIGTERM ends a build as Ctrl-C does: children first, then the unfinished directory
            status: int = args.run(args)
            return status
    except NetwarpError as error:
        print(f"netwarp: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("netwarp: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
