"""Fixtures of every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def kernel() -> Path:
    """The guest kernel: NETWARP_KERNEL, else the newest of the cache. None is an error: a skip would hide it."""
    named = os.environ.get("NETWARP_KERNEL")
    if named:
        found = [Path(named)]
    else:
        cache = Path(os.environ.get("NETWARP_CACHE") or Path.home() / ".cache" / "netwarp")
        found = sorted(cache.glob("kernels/*/linux"), key=lambda path: path.stat().st_mtime, reverse=True)
    if not found or not os.access(found[0], os.X_OK):
        pytest.fail("no guest kernel: run `make kernel`, or set NETWARP_KERNEL", pytrace=False)
    return found[0]
