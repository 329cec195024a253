"""Two kernels of one recipe and one source by different compilers: other binaries, equal captures (docs/wheels.md).

Skipped where there is one kernel only. `make wheels` makes another: dist/netwarp_kernel-*.whl.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.guestkernel import KernelBuild, find_kernel, import_kernel, list_kernels
from support.chain_kit import Checkout, captures, same, two_paths, written
from support.checkout import ROOT


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[KernelBuild]:
    """The kernel that runs use here, and another that must give the same."""
    own = find_kernel()
    assert own is not None
    known = list_kernels()
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    known += [import_kernel(wheel) for wheel in (ROOT / "dist").glob("netwarp_kernel-*.whl")]
    others = [
        build
        for build in known
        if (build.recipe, build.source, build.variant) == (own.recipe, own.source, own.variant)
        and build.sha256 != own.sha256
    ]
    if not others:
        pytest.skip("one kernel of this recipe only; `make wheels` makes another")
    return [own, others[0]]


def test_another_compiler_gives_the_same_captures(
    checkout: Checkout, kernels: list[KernelBuild], tmp_path: Path
) -> None:
    """TCP and SCTP on two paths, with losses and jitter."""
    assert kernels[0].compiler != kernels[1].compiler
    spec = written(tmp_path / "spec.toml", two_paths(duration="20 s"))
    for name, kernel in zip("ab", kernels, strict=True):
        checkout.run(
            "run", spec, "--out", tmp_path / name, "--no-report", cwd=tmp_path, NETWARP_KERNEL=str(kernel.binary)
        ).ok()
    same(captures(tmp_path / "a"), captures(tmp_path / "b"))
    assert len(captures(tmp_path / "a")) >= 6
