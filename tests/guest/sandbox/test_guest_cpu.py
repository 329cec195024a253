"""A guest in virtual time keeps to one CPU, and guests that run at once take different ones while there are any."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from netwarp.testbed.steps import step
from support.cell_init_kit import S, busy, ending, guest_command, namespaces, opening, outlived, prepare, tool, wait_ns

CPUS = os.sched_getaffinity(0)


@contextmanager
def running(kernel: Path, directory: Path, *options: str) -> Iterator[int]:
    """The process of a guest that is past its start."""
    prepare(directory, busy())
    process = subprocess.Popen(guest_command(kernel, directory, *options), stderr=subprocess.DEVNULL)
    try:
        for _ in range(10_000):
            if (directory / "init.ndjson").exists():
                break
            wait_ns(process, 1_000_000)
            assert process.poll() is None
        yield process.pid
    finally:
        process.kill()
        process.wait()
    assert outlived(directory) == []


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU only: nothing to choose")
def test_guests_at_once_keep_to_cpus_of_their_own(kernel: Path, tmp_path: Path) -> None:
    with running(kernel, tmp_path / "a") as first, running(kernel, tmp_path / "b") as second:
        places = [os.sched_getaffinity(pid) for pid in (first, second)]
        assert [len(place) for place in places] == [1, 1]
        # a test beside this one may have guests too: then the two may have to share
        names = Path("/proc/net/unix").read_text()
        for place in places:
            assert f"@netwarp-guest-cpu-{min(place)}-" in names
        others = names.count("@netwarp-guest-cpu-") - 2
        assert others > 0 or places[0] != places[1]


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU only: nothing to choose")
def test_guests_use_allowed_cpus_only(kernel: Path, tmp_path: Path) -> None:
    """taskset decides; a claim of a CPU that is not allowed would be an error."""
    last = max(CPUS)
    os.sched_setaffinity(0, {last})
    try:
        with running(kernel, tmp_path) as pid:
            assert os.sched_getaffinity(pid) == {last}
    finally:
        os.sched_setaffinity(0, CPUS)


@pytest.mark.parametrize("options", [["--any-cpu"], ["--mode", "wall"]], ids=lambda options: options[0])
def test_a_guest_that_is_left_to_the_scheduler(kernel: Path, tmp_path: Path, options: list[str]) -> None:
    with running(kernel, tmp_path, *options) as pid:
        assert os.sched_getaffinity(pid) == CPUS


def test_the_choice_does_not_show_in_the_guest(kernel: Path, tmp_path: Path) -> None:
    """The same steps with and without a CPU of its own: what the guest wrote is equal."""
    files = []
    for name, options in (("one", []), ("any", ["--any-cpu"])):
        directory = tmp_path / name
        prepare(directory, [*opening(), *namespaces("a"), tool("x", 0, "env", flow=0), step("ready"), ending(S)])
        subprocess.run(guest_command(kernel, directory, *options), check=True, timeout=300)
        files.append((directory / "init.ndjson").read_bytes())
    assert files[0] == files[1]
    assert files[0].count(b"\n") > 5
