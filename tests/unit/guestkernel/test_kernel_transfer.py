"""A kernel of a tiny source tree goes out as a file and comes in on another machine: the same, or not at all."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from netwarp.core.errors import KernelError
from netwarp.guestkernel import KernelBuild, export_kernel, find_kernel, import_kernel, list_kernels
from netwarp.guestkernel.cache import kernels_dir


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_is_the_same_on_the_other_machine(build: KernelBuild, tmp_path: Path) -> None:
    export_kernel(build, tmp_path / "k.tar.gz")
    export_kernel(build, tmp_path / "again.tar.gz")
    assert (tmp_path / "k.tar.gz").read_bytes() == (tmp_path / "again.tar.gz").read_bytes()
    assert list_kernels() == []
    brought = import_kernel(tmp_path / "k.tar.gz")
    assert brought == find_kernel() and brought.sha256 == build.sha256 and brought.key == build.key
    before = files(build.binary.parent)
    before.pop("build.log")
    assert files(brought.binary.parent) == before
    made = brought.binary.stat().st_ino
    assert import_kernel(tmp_path / "k.tar.gz") == brought and brought.binary.stat().st_ino == made
    brought.binary.write_bytes(b"spoilt")
    assert import_kernel(tmp_path / "k.tar.gz") == brought == find_kernel()
    assert sorted(path.name for path in kernels_dir().iterdir()) == [".lock", build.key]


def test_what_a_variant_keeps_comes_with_it(build: KernelBuild, tmp_path: Path) -> None:
    notes = build.binary.parent / "kept" / "net" / "sctp" / "input.gcno"
    notes.parent.mkdir(parents=True)
    notes.write_bytes(b"graph")
    export_kernel(build, tmp_path / "k.tar.gz")
    assert (import_kernel(tmp_path / "k.tar.gz").binary.parent / "kept/net/sctp/input.gcno").read_bytes() == b"graph"


def repacked(file: Path, change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None]) -> None:
    """Change the members of an exported file."""
    members = []
    with tarfile.open(file) as archive:
        for member in archive.getmembers():
            source = archive.extractfile(member)
            members.append(change(member, b"" if source is None else source.read()))
    with tarfile.open(file, "w:gz") as archive:
        for member, data in filter(None, members):
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def renamed(ending: str, name: str) -> Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]:
    def change(member: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if member.name.endswith(ending):
            member.name = name
        return member, data

    return change


def linked(member: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    if member.name.endswith("/config"):
        member.type, member.linkname, data = tarfile.SYMTYPE, "/etc/passwd", b""
    return member, data


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda member, data: (member, data + b"x" if member.name.endswith("/linux") else data), "is not the one"),
        (lambda member, data: None if member.name.endswith("/build.json") else (member, data), "is not the one"),
        (renamed("/config", "../../config"), "which no kernel has"),
        (renamed("/config", "/etc/config"), "which no kernel has"),
        (renamed("/config", "0123456789abcdef/config"), "is no kernel that netwarp exported"),
        (linked, "which no kernel has"),
    ],
    ids=["another binary", "no record", "a name outside", "an absolute name", "two kernels", "a link"],
)
def test_what_was_changed_does_not_come_in(
    change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None], said: str, build: KernelBuild,
    tmp_path: Path,
) -> None:  # fmt: skip
    file = tmp_path / "k.tar.gz"
    export_kernel(build, file)
    repacked(file, change)
    with pytest.raises(KernelError, match=said):
        import_kernel(file)
    assert list_kernels() == [] and not list(kernels_dir().glob(".building*"))


def test_a_file_that_was_cut_or_is_another_one_or_none(build: KernelBuild, tmp_path: Path) -> None:
    export_kernel(build, tmp_path / "k.tar.gz")
    whole = (tmp_path / "k.tar.gz").read_bytes()
    for data in (b"", b"thesis", whole[: len(whole) // 2], whole[:-9]):
        (tmp_path / "k.tar.gz").write_bytes(data)
        with pytest.raises(KernelError, match=r"k\.tar\.gz: is no kernel"):
            import_kernel(tmp_path / "k.tar.gz")
    with pytest.raises(KernelError, match="No such file"):
        import_kernel(tmp_path / "none.tar.gz")


def test_what_cannot_go_out(build: KernelBuild, tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="cannot be written"):
        export_kernel(build, tmp_path / "no" / "k.tar.gz")
    shutil.copy(build.binary, tmp_path / "linux")
    with pytest.raises(KernelError, match="is not in the cache"):
        export_kernel(KernelBuild("", tmp_path / "linux", None, *[""] * 8), tmp_path / "k.tar.gz")
    assert not list(tmp_path.glob("*.tar.gz"))
