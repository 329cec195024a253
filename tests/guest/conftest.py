"""Fixtures of the tests that start netwarp itself."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("support.chain_kit")

from support.cell_init_kit import built, needs_user_namespaces  # noqa: E402
from support.chain_kit import Checkout, copy_checkout  # noqa: E402


@pytest.fixture
def user_namespaces() -> None:
    """For tests of netns-exec on this machine's own kernel."""
    needs_user_namespaces()


@pytest.fixture
def open_place(checkout: Checkout) -> Iterator[Path]:
    """A directory that every user may enter (pytest's own are its user's alone)."""
    place = Path("/tmp") / f"netwarp-test-open-{os.getpid()}"
    place.mkdir(mode=0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope="session")
def checkout(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One copy of the checkout for all workers of a session, its calibration measured (`netwarp run` would do it)."""
    built()
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    target = base / "checkout"
    with open(base / "checkout.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (target / "ready").exists():
            return Checkout(target, target / "linux")
        found = copy_checkout(target, kernel)
        stored = target / "results" / "calibration"
        before = set(stored.glob("*.json"))
        (target / "calibrated").mkdir()
        done = found.run("calibrate", "generic", "--json", cwd=target / "calibrated")
        (target / "calibrated" / "answer.json").write_text(done.out)
        assert done.status in (0, 1), done
        assert set(stored.glob("*.json")) >= before
        (target / "ready").touch()
        return found
