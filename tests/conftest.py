"""Fixtures of every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from netwarp.core.errors import KernelError
from netwarp.guestkernel import find_kernel

# An example that takes long, or is drawn slowly, says something of the machine. A directory for all examples is right.
settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("any machine")


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
