"""A run of tests that is stopped ends what runs, and begins nothing more."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest
from netwarp.engine.selftests import side_by_side
from netwarp.sandbox.children import Children, NoMoreChildren
from netwarp.selftests.guest import Result
from netwarp.selftests.tree import Selftest

TESTS = [Selftest("net", f"{name}.sh") for name in "abcd"]


def result(test: Selftest) -> Result:
    return Result(test, "pass", 0, 1.0, 1.0, "", "", ())


def test_results_are_in_the_order_of_the_tests() -> None:
    """They are told in that order too, though the second ends first."""
    second = threading.Event()
    told: list[int] = []

    def run(number: int, test: Selftest) -> Result:
        if number == 1:
            assert second.wait(300)
        if number == 2:
            second.set()
        return result(test)

    done = side_by_side(run, TESTS, 2, Children(), lambda number, _: told.append(number))
    assert [each.test for each in done] == TESTS and told == [1, 2, 3, 4]


@pytest.mark.parametrize("error", [KeyboardInterrupt, BrokenPipeError])
def test_what_ends_a_run_ends_its_guests(tmp_path: Path, error: type[BaseException]) -> None:
    guests = Children()
    waits = threading.Event()
    begun: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    def run(number: int, test: Selftest) -> Result:
        begun.append(number)
        if number == 2:
            assert waits.wait(300)
            raise error
        # a shell with a child: a group, as a guest is
        with guests.running(["sh", "-c", "sleep 1000; true"], tmp_path / f"{number}") as guest:
            started.append(guest)
            waits.set()
            guest.wait(300)
        return result(test)

    with pytest.raises(error):
        side_by_side(run, TESTS, 2, guests, lambda *_: None)
    assert started[0].returncode == -9
    assert all(guest.returncode == -9 for guest in started)
    assert 4 not in begun
    with pytest.raises(NoMoreChildren), guests.running(["true"], tmp_path / "late"):
        pass
