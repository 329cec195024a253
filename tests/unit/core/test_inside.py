"""No path of a run directory leads out of it: by no method, and over no kind of link, wherever it stands on the way."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from netwarp.core.errors import StoreError
from netwarp.core.inside import InsidePath
from netwarp.core.limits import raised
from netwarp.store.tables import read_rows

Use = Callable[[InsidePath, InsidePath], object]
"""(the path that is used, another one in the same directory)."""
READS: dict[str, Use] = {
    "read_bytes": lambda path, other: path.read_bytes(),
    "read_text": lambda path, other: path.read_text(),
    "exists": lambda path, other: path.exists(),
    "is_file": lambda path, other: path.is_file(),
    "is_dir": lambda path, other: path.is_dir(),
    "stat": lambda path, other: path.stat(),
    "copy_to": lambda path, other: path.copy_to(other),
}
WRITES: dict[str, Use] = {
    "write_bytes": lambda path, other: path.write_bytes(b"!"),
    "write_text": lambda path, other: path.write_text("!"),
    "append": lambda path, other: path.open("ab").write(b"!"),
    "in place": lambda path, other: path.open("r+b").write(b"!"),
    "touch": lambda path, other: path.touch(),
    "chmod": lambda path, other: path.chmod(0o600),
}
FOLDERS: dict[str, Use] = {
    "iterdir": lambda path, other: list(path.iterdir()),
    "glob": lambda path, other: list(path.glob("*")),
    "rglob": lambda path, other: list(path.rglob("*")),
    "mkdir": lambda path, other: path.mkdir(exist_ok=True),
    "copy_tree": lambda path, other: path.copy_tree(other),
}
BEHIND: dict[str, Use] = {
    **READS,
    **WRITES,
    "unlink": lambda path, other: path.unlink(),
    "remove_tree": lambda path, other: path.remove_tree(),
    "replace": lambda path, other: path.replace(other),
    "hard_link": lambda path, other: path.hard_link(other),
    "mkdir": lambda path, other: (path.parent / "new").mkdir(),
    "mkdir of parents": lambda path, other: (path.parent / "new" / "newer").mkdir(parents=True),
    "new file": lambda path, other: (path.parent / "new").write_bytes(b"!"),
}


class Scene:
    """A directory `run`, and beside it `elsewhere` with a file and a folder, which must stay as they are."""

    def __init__(self, place: Path) -> None:
        self.elsewhere = place / "elsewhere"
        (self.elsewhere / "folder").mkdir(parents=True)
        (self.elsewhere / "file").write_text("theirs")
        (self.elsewhere / "folder" / "file").write_text("theirs")
        (place / "run" / "inner").mkdir(parents=True)
        self.run = InsidePath.at(place / "run")
        self.other = self.run / "other"

    def state(self) -> dict[str, object]:
        """Everything that is elsewhere: content, permissions, number of links."""
        return {
            str(path): (path.read_bytes() if path.is_file() else None, path.stat().st_mode, path.stat().st_nlink)
            for path in sorted(self.elsewhere.rglob("*"))
        }


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_linked_file_is_refused(name: str, absolute: bool, scene: Scene) -> None:
    target = scene.elsewhere / "file" if absolute else Path("../../elsewhere/file")
    os.symlink(target, scene.run / "inner" / "x")
    before = scene.state()
    with pytest.raises(StoreError, match="is a symbolic link"):
        (READS | WRITES)[name](scene.run / "inner" / "x", scene.other)
    assert scene.state() == before and not scene.other.exists()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_linked_folder_is_refused(name: str, scene: Scene) -> None:
    os.symlink(scene.elsewhere / "folder", scene.run / "x")
    before = scene.state()
    with pytest.raises(StoreError, match="is a symbolic link"):
        FOLDERS[name](scene.run / "x", scene.other)
    assert scene.state() == before


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("name", BEHIND)
def test_what_lies_behind_a_link_is_refused(name: str, depth: int, scene: Scene) -> None:
    place = (scene.run, scene.run / "inner")[depth]
    os.symlink(scene.elsewhere, place / "x")
    before = scene.state()
    with pytest.raises(StoreError, match="is a symbolic link"):
        BEHIND[name](place / "x" / "folder" / "file", scene.other)
    assert scene.state() == before


@pytest.mark.parametrize("name", [*READS, *WRITES, *FOLDERS])
def test_names_upwards_are_refused(name: str, scene: Scene) -> None:
    before = scene.state()
    for words in ("../elsewhere/file", "inner/../../elsewhere/folder", str(scene.elsewhere / "file")):
        with pytest.raises(StoreError, match="lies outside"):
            (READS | WRITES | FOLDERS)[name](scene.run / words, scene.other)
    assert scene.state() == before


@pytest.mark.parametrize("name", [name for name in WRITES if name not in ("touch", "chmod")])
def test_a_hard_link_is_not_written(name: str, scene: Scene) -> None:
    os.link(scene.elsewhere / "file", scene.run / "x")
    before = scene.state()
    with pytest.raises(StoreError, match="is a hard link"):
        WRITES[name](scene.run / "x", scene.other)
    assert scene.state() == before


def test_what_is_removed_is_the_link(scene: Scene) -> None:
    before = scene.state()
    for remove in (InsidePath.unlink, InsidePath.remove_tree):
        os.symlink(scene.elsewhere / "folder", scene.run / "x")
        remove(scene.run / "x")
        assert not os.path.lexists(scene.run / "x") and scene.state() == before
    for place in ("", "inner"):
        os.symlink(scene.elsewhere / "folder", scene.run / place / "x")
    scene.run.remove_tree()
    assert not scene.run.exists() and scene.state() == before


def test_a_replaced_link_is_gone_and_its_target_stays(scene: Scene) -> None:
    os.symlink(scene.elsewhere / "file", scene.run / "x")
    before = scene.state()
    scene.other.write_text("ours")
    scene.other.replace(scene.run / "x")
    assert (scene.run / "x").read_text() == "ours" and scene.state() == before


def test_trees_are_copied_without_links_and_special_files(scene: Scene) -> None:
    (scene.run / "inner" / "kept").write_text("ours")
    os.symlink(scene.elsewhere / "file", scene.run / "inner" / "x")
    os.symlink(scene.elsewhere, scene.run / "inner" / "y")
    os.mkfifo(scene.run / "inner" / "pipe")
    for link in (True, False):
        (scene.run / "inner").copy_tree(scene.run / f"copy{link}", link=link)
        assert [path.name for path in (scene.run / f"copy{link}").iterdir()] == ["kept"]
        assert (scene.run / f"copy{link}" / "kept").read_text() == "ours"
    assert list(scene.run.rglob("file")) == [], "a listing follows no link"


@pytest.mark.parametrize("name", ["read_bytes", "write_bytes", "append"])
def test_pipes_and_sockets_are_refused_and_not_waited_for(
    name: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(scene.run / "pipe")
    monkeypatch.chdir(scene.run)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        for each in ("pipe", "socket"):
            with pytest.raises(StoreError, match="is neither a file nor a directory"):
                (READS | WRITES)[name](scene.run / each, scene.other)


def test_the_directory_itself_may_be_reached_by_a_link(scene: Scene, tmp_path: Path) -> None:
    (scene.run / "inner" / "x").write_text("ours")
    os.symlink("run", tmp_path / "latest")
    latest = InsidePath.at(tmp_path / "latest")
    assert (latest / "inner" / "x").read_text() == "ours"
    assert [path.name for path in latest.rglob("*")] == ["inner", "x"]


def test_paths_of_a_path_have_its_base(scene: Scene) -> None:
    path = scene.run / "inner" / "x"
    made = [path.parent, path.with_name("y"), path.with_suffix(".z"), path.joinpath("a", "b"), path / "c",
            pickle.loads(pickle.dumps(path)), InsidePath.at(path), InsidePath.at(scene.run, scene.elsewhere),
            next(iter(scene.run.glob("*"))), next(iter(scene.run.iterdir()))]  # fmt: skip
    assert {each.base for each in made} == {scene.run.base}
    assert path == Path(path) and hash(path) == hash(Path(path)) and str(path) == str(Path(path))


def test_errors_are_those_of_a_path(scene: Scene) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        (scene.run / "none").read_bytes()
    assert missing.value.filename == str(scene.run / "none")
    with pytest.raises(IsADirectoryError):
        (scene.run / "inner").read_bytes()
    with pytest.raises(FileExistsError):
        (scene.run / "inner").mkdir()
    assert not (scene.run / "none" / "x").exists()
    (scene.run / "none").unlink(missing_ok=True)
    (scene.run / "file").write_text("x")
    assert not (scene.run / "file" / "x").exists()


def test_paths_made_from_a_path_have_its_base(tmp_path: Path) -> None:
    path = InsidePath.at(tmp_path, tmp_path / "cells" / "x" / "log.txt")
    made = [path.parent, *path.parents, path / "y", path.joinpath("y"), path.with_name("y"), path.with_stem("y"),
            path.with_suffix(".y"), path.temporary(".y")]  # fmt: skip
    assert [path.base for path in made] == [tmp_path] * len(made)
    assert path.parents[1] == tmp_path / "cells"


LISTS: dict[str, Callable[[InsidePath], object]] = {
    "listed": lambda folder: folder.listed(),
    "iterdir": lambda folder: list(folder.iterdir()),
    "glob": lambda folder: list(folder.glob("*.json")),
    "rglob": lambda folder: list(folder.rglob("*")),
    "copy_tree": lambda folder: folder.copy_tree(folder.parent / "copy"),
}


@pytest.mark.parametrize("lists", LISTS)
def test_a_name_that_is_not_utf_8_is_refused(lists: str, scene: Scene) -> None:
    """No page, no JSON and no hash of names could hold it; what has such a name is removed with its folder."""
    inner = scene.run / "inner"
    Path(os.fsdecode(os.fsencode(inner) + b"/\xff\x1b.json")).touch()
    with pytest.raises(StoreError, match=r"inner: in it a file is named b'\\xff\\x1b.json', which is not UTF-8") as got:
        LISTS[lists](inner)
    assert str(got.value).isprintable()
    inner.remove_tree()
    assert not inner.exists()


@pytest.mark.parametrize("read", ["read_bytes", "read_text"])
def test_a_file_that_takes_no_room_does_not_fill_the_memory(read: str, scene: Scene) -> None:
    """A sparse file of terabytes."""
    path = scene.run / "sparse"
    path.touch()
    os.truncate(path, 1 << 42)
    with pytest.raises(StoreError, match=r"sparse: has more than 384 MiB; .*--limit whole-bytes="):
        getattr(path, read)()
    with raised(["whole-bytes=1 kB"]):
        (scene.run / "small").write_text("\u00e4\n")
        assert getattr(scene.run / "small", read)() in ("\u00e4\n", "\u00e4\n".encode())


def test_a_line_of_a_table_is_not_read_without_end(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    assert read_rows(tmp_path / "x.csv") == [{"a": "1", "b": "2"}]
    os.truncate(tmp_path / "x.csv", 1 << 42)
    with pytest.raises(StoreError, match="a line of more than"):
        read_rows(tmp_path / "x.csv")


DEEP: dict[str, Callable[[InsidePath], object]] = {
    **{name: LISTS[name] for name in ("rglob", "copy_tree")},
    "a path": lambda folder: folder.joinpath(*["d"] * 1500, "x").exists(),
    "remove_tree": lambda folder: folder.remove_tree(),
}


@pytest.mark.parametrize("use", DEEP)
def test_folders_in_folders_without_end_are_refused(use: str, scene: Scene) -> None:
    """Each takes a descriptor and a call of a call."""
    inner = scene.run / "inner"
    handle = os.open(inner, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    try:
        with pytest.raises(StoreError, match="folders in it lie more than 64 deep") as refused:
            DEEP[use](inner)
        assert len(str(refused.value)) < 400
    finally:  # pytest cannot remove it
        subprocess.run(["rm", "-rf", inner], check=True)
