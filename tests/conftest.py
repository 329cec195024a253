"""Fixtures of every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from netwarp.core.errors import KernelError
from netwarp.guestkernel import find_kernel

# An example that takes long, or is drawn slowly, says something of the machine. A directory for all examples is right.
_ANY_MACHINE = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
# The gate draws the same examples everywhere; `make fuzz` (--hypothesis-profile=fuzz) draws others in every run.
settings.register_profile("gate", _ANY_MACHINE, derandomize=True)
settings.register_profile("fuzz", _ANY_MACHINE, derandomize=False, print_blob=True)
settings.load_profile("gate")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what only root can do, for everybody else: `-m root` chooses these tests."""
    needs = item.get_closest_marker("root")
    if needs is not None and os.geteuid() != 0:
        pytest.skip(needs.kwargs["reason"])


@pytest.fixture(scope="session")
def kernel() -> Path:
    """The guest kernel a run would use. None is an error: a skip would hide it."""
    try:
        found = find_kernel()
    except KernelError as error:
        pytest.fail(str(error), pytrace=False)
    if found is None:
        pytest.fail("no guest kernel: run `make kernel`, or set NETWARP_KERNEL", pytrace=False)
    return found.binary
