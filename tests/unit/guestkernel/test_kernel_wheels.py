"""A kernel's wheel: equal bytes when packed again; found where installed; taken into the cache by `make kernel`."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from netwarp.core.errors import KernelError
from netwarp.guestkernel import KernelBuild, build_kernel, find_kernel, import_kernel, list_kernels
from netwarp.guestkernel.cache import add_headers
from support.checkout import ROOT
from support.kernel_tree import make_tree


@pytest.fixture
def packing() -> ModuleType:
    """setup/pack_wheels.py."""
    spec = importlib.util.spec_from_file_location("pack_wheels", ROOT / "setup/pack_wheels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packed(build: KernelBuild, packing: ModuleType, place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(packing, "LINKED", place / "linked")
    licence = place / "linked/licences" / build.source.split()[0].lstrip("/") / "COPYING"
    licence.parent.mkdir(parents=True)
    licence.write_text("GPL-2.0\n")
    monkeypatch.chdir(ROOT)
    record = json.loads((build.binary.parent / "build.json").read_text())
    record["source"] = build.source.lstrip("/")
    packing.lay_kernel(place / "laid/k", build.binary.parent, record, "netwarp-kernel", "6.12.999.1", "py3-none-any")
    packing.pack(place / "laid", place / "out")
    (wheel,) = (place / "out").iterdir()
    return wheel


def test_a_wheel_is_packed_alike_found_and_taken(
    build: KernelBuild, packing: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = packed(build, packing, tmp_path / "one", monkeypatch)
    for path in (build.binary, build.binary.parent / "config"):
        os.utime(path, (1, 1))
    assert packed(build, packing, tmp_path / "other", monkeypatch).read_bytes() == wheel.read_bytes()
    assert wheel.name == "netwarp_kernel-6.12.999.1-py3-none-any.whl"

    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    monkeypatch.syspath_prepend(site)
    (found,) = list_kernels()
    assert (found.key, found.sha256, found.include) == (build.key, build.sha256, None)
    assert found.binary.is_relative_to(site) and find_kernel() == found
    shutil.rmtree(site)
    importlib.invalidate_caches()

    assert list_kernels() == []
    taken = import_kernel(wheel)
    assert (taken.key, taken.sha256) == (build.key, build.sha256) and find_kernel() == taken

    assert build.include is not None
    add_headers(taken, build.include)
    whole = find_kernel()
    assert whole is not None and whole.include == taken.binary.parent / "include"
    assert (whole.include / "linux/sctp.h").is_file()


def test_another_file_is_no_wheel_of_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("other/file", "")
    (tmp_path / "b.whl").write_bytes(b"")
    for name in ("a.whl", "b.whl"):
        with pytest.raises(KernelError, match="is no wheel of a kernel"):
            import_kernel(tmp_path / name)


def test_netwarp_kernel_may_name_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NETWARP_KERNEL", "7.3")
    with pytest.raises(KernelError, match=r"NETWARP_KERNEL=7\.3: no such kernel"):
        find_kernel()
    monkeypatch.delenv("NETWARP_KERNEL")
    build = build_kernel(make_tree(tmp_path))
    monkeypatch.setenv("NETWARP_KERNEL", "6.12")
    assert find_kernel() == build
