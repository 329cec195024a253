"""A kernel of a tiny source tree goes out as a file and comes in on another machine: the same, or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from netwarp.core.errors import KernelError
from netwarp.core.limits import raised
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


def _is_binary(member: tarfile.TarInfo) -> bool:
    return member.isreg() and member.name.endswith("/linux")


def linked(member: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    if member.name.endswith("/config"):
        member.type, member.linkname, data = tarfile.SYMTYPE, "/etc/passwd", b""
    return member, data


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda member, data: (member, data + b"x" if _is_binary(member) else data), "is not the one"),
        (lambda member, data: None if member.name.endswith("/build.json") else (member, data), "is not the one"),
        (renamed("/config", "../../config"), "which no kernel has"),
        (renamed("/config", "/etc/config"), "which no kernel has"),
        (renamed("/config", "0123456789abcdef/config"), "is no kernel that netwarp exported"),
        (linked, "which is no file"),
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


def _member(name: str, length: int = 0, kind: bytes = tarfile.REGTYPE, pax: dict[str, str] | None = None) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.pax_headers = kind, length, pax or {}
    return entry.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT)


KEY = "0123456789abcdef"
END = bytes(1024)
NESTED = b"[" * 100_000
ARCHIVES: dict[str, bytes] = {
    "a size in an extended header": _member(f"{KEY}/linux", pax={"size": "9" * 19}) + END,
    "a sparse file": _member(f"{KEY}/linux", pax={"GNU.sparse.map": "0,99999999999", "GNU.sparse.major": "0"}) + END,
    "an old sparse file": _member(f"{KEY}/linux", 0, tarfile.GNUTYPE_SPARSE) + END,
    "a name with NUL": _member("x", pax={"path": f"{KEY}/config\0/x"}) + END,
    "an extended header of 6 GiB": _member("x", 6 << 30, tarfile.XHDTYPE) + END,
    "a binary of 6 GiB": _member(f"{KEY}/linux", 6 << 30) + END,
    "one file twice": 2 * _member(f"{KEY}/linux") + END,
    "deep JSON": _member(f"{KEY}/build.json", len(NESTED)) + NESTED + bytes(-len(NESTED) % 512) + END,
    "JSON of another kind": _member(f"{KEY}/build.json", 2) + b"[]" + bytes(510) + END,
    "zeros behind it": _member(f"{KEY}/linux") + END + bytes(3 << 20),
    "nothing": END,
}


@pytest.mark.parametrize("what", ARCHIVES)
def test_a_hostile_archive_is_a_sentence(what: str, tmp_path: Path) -> None:
    file = tmp_path / "k.tar.gz"
    file.write_bytes(gzip.compress(ARCHIVES[what]))
    with pytest.raises(KernelError, match=r"k\.tar\.gz: ") as refused:
        import_kernel(file)
    assert str(refused.value).isprintable()
    assert list_kernels() == [] and [path.name for path in kernels_dir().iterdir()] == [".lock"]


def _wheel(*members: tuple[str, bytes], way: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", way) as made:
        for name, data in members:
            made.writestr(name, data)
    return out.getvalue()


def _encrypted(wheel: bytes) -> bytes:
    data = bytearray(wheel)
    for at, flags in ((data.index(b"PK\3\4"), 6), (data.index(b"PK\1\2"), 8)):
        data[at + flags] |= 1
    return bytes(data)


def _of(key: str, *, linux: bytes = b"x", way: int = zipfile.ZIP_DEFLATED) -> bytes:
    names = {"build.json": b"{}", "linux": linux, "config": b""}
    return _wheel(*((f"netwarp_kernels/{key}/{name}", data) for name, data in names.items()), way=way)


WHEELS: dict[str, bytes] = {
    "a bomb": _of(KEY, linux=bytes(150_000)),
    "encrypted": _encrypted(_of(KEY)),
    "LZMA": _of(KEY, way=zipfile.ZIP_LZMA),
    "damaged": _of(KEY, linux=bytes(range(256)) * 4).replace(bytes(range(100, 140)), bytes(40)),
    "cut": _of(KEY)[:-30],
    "no record": _wheel(("netwarp_kernels/x", b"")),
    "a key that leads out": _of("../.."),
    "a key of dots": _of(".."),
    "a hidden key": _of(".building-x"),
    "a key in a folder": _of(f"a/{KEY}"),
    "no wheel": b"thesis",
}


@pytest.mark.parametrize("what", WHEELS)
def test_a_hostile_wheel_is_a_sentence(what: str, tmp_path: Path) -> None:
    file = tmp_path / "k.whl"
    file.write_bytes(WHEELS[what])
    with raised(["file-bytes=100 kB"]), pytest.raises(KernelError, match=r"k\.whl: ") as refused:
        import_kernel(file)
    assert str(refused.value).isprintable()
    assert list_kernels() == [] and sorted(path.name for path in tmp_path.iterdir()) in (["k.whl"], ["cache", "k.whl"])


def test_a_record_that_acts_on_a_terminal_is_none(build: KernelBuild, tmp_path: Path) -> None:
    def change(member: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        return member, data.replace(b'"compiler": "', b'"compiler": "\\u001b[2J')

    export_kernel(build, tmp_path / "k.tar.gz")
    repacked(tmp_path / "k.tar.gz", change)
    with pytest.raises(KernelError, match="export it again"):
        import_kernel(tmp_path / "k.tar.gz")


def test_a_whole_kernel_is_never_replaced_by_another_of_its_key(build: KernelBuild, tmp_path: Path) -> None:
    file = tmp_path / "k.tar.gz"
    export_kernel(build, file)
    brought = import_kernel(file)
    other = b"another executable"

    def change(member: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if _is_binary(member):
            return member, other
        return member, data.replace(build.sha256.encode(), hashlib.sha256(other).hexdigest().encode())

    repacked(file, change)
    with pytest.raises(KernelError, match=r"another kernel is in .*, and it is whole: remove it"):
        import_kernel(file)
    assert list_kernels() == [brought] and brought.binary.read_bytes() != other
