"""A cache of kernels for each test, and a built kernel that another machine takes over."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.guestkernel import KernelBuild, build_kernel
from support.kernel_tree import make_tree


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the test's kernels are."""
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NETWARP_KERNEL", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelBuild:
    """A kernel in the cache of one machine; afterwards NETWARP_CACHE is that of another, which has none."""
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "here"))
    monkeypatch.delenv("NETWARP_KERNEL", raising=False)
    made = build_kernel(make_tree(tmp_path))
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "there"))
    return made
