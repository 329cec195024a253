"""Runs the kernel's own tests: their source, programs and kernel, then each in a guest, several at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import CellError, KernelError
from ..exploration.coverage_files import counted_objects, functions_of, write_functions
from ..guestkernel import KernelBuild, build_kernel, load_recipe
from ..guestkernel.cache import find_named
from ..guestkernel.source import find_source, release_of
from ..guestkernel.tool_run import Progress as BuildProgress
from ..guestkernel.variant import PLAIN, debugging
from ..sandbox.children import Children
from ..sandbox.guest_root import FILES
from ..selftests.guest import VIRTUAL_LIMIT_S, Bench, Result, run_test
from ..selftests.lksctp import COLLECTION, add_lksctp
from ..selftests.packages import unpacked
from ..selftests.tree import COLLECTIONS, Selftest, Tree, parse_test, selftest_recipe, unpack_tests
from ..store.run_locations import refuse_used

DEFAULT = (
    "net/mptcp:mptcp_connect.sh",
    "net/mptcp:mptcp_join.sh",
    "net/mptcp:simult_flows.sh",
    "net/mptcp:mptcp_sockopt.sh",
    "net/mptcp:diag.sh",
    "net/mptcp:pm_netlink.sh",
    "net/netfilter:conntrack_sctp_collision.sh",
    "net:sctp_vrf.sh",
    "net:tcp_fastopen_backup_key.sh",
    "net:tcp_inq",
    "net:tls",
    "net:psock_snd.sh",
    "net:psock_tpacket",
    "net:psock_fanout",
    "net:txtimestamp.sh",
    "net:udpgso.sh",
    "net:ip_defrag.sh",
    "net:reuseport_bpf",
    "net:reuseaddr_conflict",
    "net:so_txtime.sh",
    "lksctp:every.sh",
)
"""Tests that need neither another machine nor a program from elsewhere."""
COUNTERS = "counters.bin"
"""The file that selftests/rest.sh leaves of a kernel that counts its lines."""


@dataclass(frozen=True, slots=True)
class SelftestRun:
    """Results in the order asked. kernel: they ran on. unbuilt: program -> why it could not be built."""

    kernel: KernelBuild
    results: tuple[Result, ...]
    unbuilt: dict[str, str]


def run_selftests(
    names: Sequence[str] = DEFAULT,
    *,
    source: Path | None = None,
    kernel: str | None = None,
    debug: bool = False,
    jobs: int | None = None,
    seed: int = 1,
    wall_limit_s: float = 600.0,
    virtual_limit_s: int = VIRTUAL_LIMIT_S,
    out: Path,
    building: Callable[[BuildProgress], None] = lambda _: None,
    finished: Callable[[int, Result], None] = lambda number, result: None,
) -> SelftestRun:
    """Run tests of a kernel's source on a guest kernel made from it.

    names: COLLECTION:PROGRAM each. source: as for build_kernel(). kernel: a kernel that is built (find_named()) instead
    of one with the options that the tests ask for, so that what needs those fails or is skipped. debug: the kernel
    built is one with the checks of kernel/debug.config. jobs: guests at once (default: cores). out: a new directory
    that keeps the output of each. building: called during the kernel's build; finished: with the number (from 1) of
    each test that ended, in any order, one call at a time. A test that the machine cannot run has failed, with the
    reason. Raises SpecError for a test that is not there, KernelError.
    """
    tests = [parse_test(name) for name in names]
    refuse_used(out)
    recipe = load_recipe()
    found = find_source(source, recipe)
    recipe = recipe.for_release(release_of(found))
    root = unpack_tests(found)
    tree = Tree(root)
    if any(test.collection == COLLECTION for test in tests):
        add_lksctp(tree.tests)
    for test in tests:
        tree.check(test)
    build = _named(kernel) if kernel else None
    if build is None:
        asked = dict.fromkeys([*COLLECTIONS, *(test.collection for test in tests)])
        build = build_kernel(
            source, progress=building, recipe=selftest_recipe(recipe, tree.options(list(asked))),
            variant=debugging() if debug else PLAIN,
        )  # fmt: skip
    if build.include is None:
        raise KernelError(f"{build.binary} has no headers beside it, and the tests are built with those")
    unbuilt = tree.build(tests, build.include)
    bench = Bench(build.binary, unpacked(), tree.tests, seed, wall_limit_s)
    out.mkdir(parents=True, exist_ok=True)
    guests = Children()

    def run(number: int, test: Selftest) -> Result:
        place = out.absolute() / test.folder(number)
        try:
            result = run_test(bench, test, place, limit_s=virtual_limit_s, guests=guests)
        except CellError as error:
            if guests.stopped:
                raise
            result = Result(test, "fail", None, None, 0.0, f"could not be run: {error}", "", ())
        shutil.rmtree(place / "overrides", ignore_errors=True)
        for left in (*FILES, ".uml", "bin", "program-clock.so"):
            path = place / left
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return result

    results = side_by_side(run, tests, jobs or os.cpu_count() or 1, guests, finished)
    if objects := counted_objects(build):  # on other kernels no test leaves counters
        write_functions(out, functions_of(sorted(out.glob(f"*/{COUNTERS}")), build, objects))
    return SelftestRun(build, results, unbuilt)


def side_by_side(
    run: Callable[[int, Selftest], Result],
    tests: Sequence[Selftest],
    jobs: int,
    guests: Children,
    finished: Callable[[int, Result], None],
) -> tuple[Result, ...]:
    """Results of run() with the number (from 1) of each test, `jobs` at once. finished: called with the number and the
    result of each, in the order of the tests. Whatever ends this early (Ctrl-C too) ends the guests first, and no
    further test begins.
    """
    told = 0
    with ThreadPoolExecutor(jobs) as pool:
        try:
            futures = [pool.submit(run, number, test) for number, test in enumerate(tests, 1)]
            for future in as_completed(futures):
                future.result()
                while told < len(futures) and futures[told].done():
                    told += 1
                    finished(told, futures[told - 1].result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # first: a guest that ends makes room for the next test
            guests.stop()
            raise
    return tuple(future.result() for future in futures)


def _named(name: str) -> KernelBuild:
    build = find_named(name)
    if build is None:
        raise KernelError(f"the kernel {name} is not built; `netwarp kernel list` lists those that are")
    return build
