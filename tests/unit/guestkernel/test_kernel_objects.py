"""Incremental builds: only what changed is made again, and the kernel is the one of a clean build."""

import subprocess
from pathlib import Path

import pytest
from netwarp.core.errors import KernelError
from netwarp.guestkernel import KernelBuild, build_kernel
from netwarp.guestkernel.cache import kernels_dir
from netwarp.guestkernel.run import Progress
from support.kernel_tree import builds, contents, make_tree


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NETWARP_KERNEL", raising=False)
    return tmp_path / "cache"


def build(tree: Path) -> tuple[KernelBuild, list[str]]:
    """The kernel, and the stages of its build."""
    stages: list[Progress] = []
    built = build_kernel(tree, progress=stages.append, incremental=True)
    return built, list(dict.fromkeys(progress.stage for progress in stages))


def grown(tree: Path, name: str, text: str) -> None:
    (tree / name).write_text((tree / name).read_text() + text)


def test_the_second_build_makes_only_what_changed(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    first, stages = build(tree)
    assert {"patches", "configures", "compiles", "makes the headers"} <= set(stages)
    grown(tree, "main.c", "/* another */\n")
    second, stages = build(tree)
    assert second.key != first.key
    assert "compiles" in stages and not {"patches", "configures", "makes the headers"} & set(stages)
    assert builds(tmp_path) == 2
    (tree / "another.c").write_text("")  # nothing that make looks at
    build(tree)
    assert builds(tmp_path) == 2


def test_going_back_finds_the_kernel_that_is_there(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    before = (tree / "main.c").read_text()
    first, _ = build(tree)
    grown(tree, "main.c", "/* another */\n")
    build(tree)
    (tree / "main.c").write_text(before)
    again, stages = build(tree)
    assert again == first
    assert stages == []


def test_an_incremental_kernel_is_the_one_of_a_clean_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = make_tree(tmp_path)
    build(tree)
    grown(tree, "main.c", "int other(void) { return 1; }\n")
    grown(tree, "arch/um/Kconfig", "# a comment\n")
    (tree / "link").symlink_to("main.c")
    second, stages = build(tree)
    assert "configures" in stages
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "clean"))
    clean = build_kernel(tree)
    assert (clean.key, clean.sha256, clean.config_sha256) == (second.key, second.sha256, second.config_sha256)


def test_the_kept_copy_follows_the_tree_and_the_tree_is_not_touched(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    (tree / "old.h").write_text("")
    build(tree)
    (tree / "old.h").unlink()
    (tree / "new").mkdir()
    (tree / "new/new.h").write_text("")
    grown(tree, "main.c", "/* another */\n")
    before = contents(tree)
    build(tree)
    assert contents(tree) == before
    (copy,) = (kernels_dir().parent / "objects").glob("*/tree")
    assert not (copy / "old.h").exists()
    assert (copy / "new/new.h").exists()


def test_after_a_failure_it_goes_on(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    build(tree)
    good = (tree / "main.c").read_text()
    (tree / "main.c").write_text("int main(void) { return x; }\n")
    with pytest.raises(KernelError, match="undeclared"):
        build(tree)
    (tree / "main.c").write_text(good + "/* mended */\n")
    assert build(tree)[0].release == "6.12.999"


def test_a_tarball_has_no_objects_to_keep(tmp_path: Path) -> None:
    make_tree(tmp_path)
    tarball = tmp_path / "linux.tar.xz"
    subprocess.run(["tar", "-cJf", str(tarball), "-C", str(tmp_path), "source"], check=True)
    with pytest.raises(KernelError, match="--incremental needs a tree"):
        build_kernel(tarball, incremental=True)
