"""Kernels asked for in a word: releases, trees, commits, patches; built from a tiny tree by the real make and git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from netwarp.core.errors import DoesNotBuild, KernelError
from netwarp.guestkernel import build_kernel, list_kernels
from netwarp.guestkernel.asked import build_asked, parse_asked
from netwarp.guestkernel.source import find_source, release_of, unpack_parts
from support.kernel_tree import MAIN, PATCH, make_tree


def git(tree: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(tree), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def two_commits(tmp_path: Path) -> Path:
    """A repository: v1 as make_tree() has it, and a second commit that ends with another status."""
    tree = make_tree(tmp_path)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "one")
    git(tree, "tag", "v1")
    (tree / "main.c").write_text(MAIN.replace("return 0", "return 1"))
    git(tree, "commit", "-qam", "two")
    return tree


def patch_file(tmp_path: Path, name: str = "fix.patch") -> Path:
    file = tmp_path / name
    file.write_text(PATCH)
    return file


def test_a_word_is_divided_at_its_patches(tmp_path: Path) -> None:
    one, two = patch_file(tmp_path), patch_file(tmp_path, "two.mbox")
    asked = parse_asked(f"6.12+{one}+{two}")
    assert (asked.source, asked.patches) == ("6.12", (one, two))
    assert parse_asked("6.12+debug").source == "6.12+debug", "the label of a variant that is built"
    package = tmp_path / f"linux-source-7.3_7.3.4-1~bpo13+1_all.patch+{one.name}"
    package.touch()
    assert parse_asked(str(package)).source == str(package), "a path that exists is never divided"


@pytest.mark.parametrize("text", ["6.12+absent.patch", "+absent.patch"])
def test_a_patch_that_is_not_there_is_said(text: str) -> None:
    with pytest.raises(KernelError, match=r"there is no file absent\.patch|a patch of which kernel"):
        parse_asked(text)


def test_a_word_that_is_nothing_is_answered_with_examples() -> None:
    with pytest.raises(KernelError, match=r"6\.99: there is no such path, and no such kernel is built; for example"):
        build_asked(parse_asked("6.99"))


def test_a_release_with_a_patch_is_built_from_the_source_of_that_build(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    plain = build_kernel(tree)
    assert build_asked(parse_asked("6.12")) == (plain, tree)
    build, source = build_asked(parse_asked(f"6.12+{patch_file(tmp_path)}"))
    assert (build.variant, build.release, source) == ("fix", "6.12.999", tree)
    assert build.sha256 != plain.sha256
    assert build_asked(parse_asked("6.12+fix"))[0] == build, "once it is built its label names it"


def test_a_source_that_is_gone_is_said_where_it_is_needed(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    plain = build_kernel(tree)
    tree.rename(tmp_path / "elsewhere")
    assert build_asked(parse_asked("6.12")) == (plain, None)
    with pytest.raises(KernelError, match=r"Linux 6\.12\.999 was built from .*, which is not here: name its source"):
        build_asked(parse_asked(f"6.12+{patch_file(tmp_path)}"))


def test_a_commit_is_built_as_it_was_and_nothing_is_checked_out(tmp_path: Path) -> None:
    tree = two_commits(tmp_path)
    (tree / "main.c").write_text("not C")
    old, _ = build_asked(parse_asked(f"{tree}@v1"))
    new, source = build_asked(parse_asked(f"{tree}@HEAD"))
    assert [subprocess.run([each.binary], check=False, capture_output=True).returncode for each in (old, new)] == [0, 1]
    assert (old.kind, old.source) == ("commit", f"{tree}@{git(tree, 'rev-parse', 'v1')[:12]}")
    assert (tree / "main.c").read_text() == "not C"
    assert git(tree, "status", "--porcelain") == "M main.c"
    assert source is not None
    assert build_asked(parse_asked(f"{tree}@{git(tree, 'rev-parse', 'v1')}"))[0] == old
    assert len(list_kernels()) == 2


def test_a_patch_on_a_commit(tmp_path: Path) -> None:
    tree = two_commits(tmp_path)
    build, _ = build_asked(parse_asked(f"{tree}@v1+{patch_file(tmp_path)}"))
    assert subprocess.run([build.binary], check=False, capture_output=True).returncode == 1
    (tmp_path / "fix.patch").write_text(PATCH.replace("6.12.999", "another"))
    with pytest.raises(DoesNotBuild, match=r"patch fix\.patch does not fit"):
        build_asked(parse_asked(f"{tree}@v1+{tmp_path / 'fix.patch'}"))


def test_a_commit_that_is_not_there_is_said(tmp_path: Path) -> None:
    tree = two_commits(tmp_path)
    with pytest.raises(KernelError, match="no git repository, or has no such commit"):
        build_asked(parse_asked(f"{tree}@v9"))


def test_parts_of_a_commit(tmp_path: Path) -> None:
    source = find_source(Path(f"{two_commits(tmp_path)}@v1"), None)  # type: ignore[arg-type] # not read for a commit
    assert release_of(source) == "6.12"
    target = tmp_path / "parts"
    target.mkdir()
    unpack_parts(source, ["arch/um", "main.c", "absent"], target)
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()) == [
        "arch/um/Kconfig", "main.c",
    ]  # fmt: skip
