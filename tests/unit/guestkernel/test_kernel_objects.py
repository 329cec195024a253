"""Incremental builds: only what changed is made again, and the kernel is the one of a clean build."""

import subprocess
from pathlib import Path

import pytest
from netwarp.core.errors import DoesNotBuild, KernelError
from netwarp.guestkernel import KernelBuild, build_kernel
from netwarp.guestkernel.cache import kernels_dir
from netwarp.guestkernel.tool_run import Progress
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
    with pytest.raises(DoesNotBuild, match="undeclared"):
        build(tree)
    (tree / "main.c").write_text(good + "/* mended */\n")
    assert build(tree)[0].release == "6.12.999"


def clean(tree: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> KernelBuild:
    monkeypatch.setenv("NETWARP_CACHE", str(place))
    return build_kernel(tree)


def test_a_configuration_that_was_refused_is_not_compiled_later(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    build(tree)
    (tree / "Makefile").write_text((make_tree(tmp_path / "refused", drops="IP_SCTP") / "Makefile").read_text())
    for _ in range(2):  # the same command again: nothing changed since
        with pytest.raises(DoesNotBuild, match="did not take"):
            build(tree)
    grown(tree, "main.c", "/* another */\n")
    with pytest.raises(DoesNotBuild, match="did not take"):
        build(tree)


def test_a_kconfig_change_before_a_failure_is_configured_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = make_tree(tmp_path)
    build(tree)
    good = (tree / "main.c").read_text()
    kconfig = (tree / "arch/um/Kconfig").read_text()
    (tree / "arch/um/Kconfig").write_text(kconfig.replace("config HZ", "config TICKS"))
    with pytest.raises(DoesNotBuild, match="does not fit"):
        build(tree)
    (tree / "main.c").write_text("int main(void) { return x; }\n")
    (tree / "arch/um/Kconfig").write_text(kconfig + "# a comment\n")
    with pytest.raises(DoesNotBuild, match="undeclared"):
        build(tree)
    (tree / "main.c").write_text(good + "/* mended */\n")
    mended, stages = build(tree)
    assert "configures" in stages
    grown(tree, "main.c", "/* another */\n")
    assert "configures" not in build(tree)[1]
    (tree / "main.c").write_text(good + "/* mended */\n")
    other = clean(tree, tmp_path / "clean", monkeypatch)
    assert (other.key, other.sha256, other.config_sha256) == (mended.key, mended.sha256, mended.config_sha256)


def test_headers_that_changed_before_a_failure_are_made_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = make_tree(tmp_path)
    makefile = (tree / "Makefile").read_text()
    line = next(line for line in makefile.splitlines() if "#define SCTP_TEST" in line)
    (tree / "Makefile").write_text(makefile.replace(line, "\tcp include/uapi/sctp.h usr/include/linux/"))
    (tree / "include/uapi").mkdir(parents=True)
    (tree / "include/uapi/sctp.h").write_text("#define OLD 1\n")
    build(tree)
    good = (tree / "main.c").read_text()
    (tree / "include/uapi/sctp.h").write_text("#define NEW 1\n")
    (tree / "main.c").write_text("int main(void) { return x; }\n")
    with pytest.raises(DoesNotBuild, match="undeclared"):
        build(tree)
    (tree / "main.c").write_text(good + "/* mended */\n")
    mended, _ = build(tree)
    assert mended.include is not None
    assert (mended.include / "linux/sctp.h").read_text() == "#define NEW 1\n"
    other = clean(tree, tmp_path / "clean", monkeypatch)
    assert (other.key, other.sha256) == (mended.key, mended.sha256)


def test_a_file_becomes_a_directory_and_a_directory_a_link(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    (tree / "a").write_text("")
    (tree / "old").symlink_to("arch")
    for folder in ("folder", "target"):
        (tree / folder).mkdir()
        (tree / folder / "main.c").write_text(folder)
    build(tree)
    (copy,) = (kernels_dir().parent / "objects").glob("*/tree")
    (copy / "folder/main.o").write_text("an object")
    for name in ("a", "old", "folder/main.c"):
        (tree / name).unlink()
    (tree / "folder").rmdir()
    (tree / "folder").symlink_to("target")
    for name in ("a", "old"):
        (tree / name).mkdir()
        (tree / name / "b").write_text(name)
    build(tree)
    assert (copy / "folder").readlink() == Path("target")
    assert (copy / "folder/main.c").read_text() == "target"
    assert (copy / "old/b").read_text() == "old"
    assert (copy / "arch/um/Kconfig").is_file()
    for name in ("a", "old"):  # and back
        (tree / name / "b").unlink()
        (tree / name).rmdir()
        (tree / name).write_text("a file")
    build(tree)
    assert (copy / "a").read_text() == "a file"


def test_a_fault_of_the_machine_is_not_the_sources(tmp_path: Path) -> None:
    for number, said in enumerate(("No space left on device", "fatal error: Killed signal terminated program cc1")):
        with pytest.raises(KernelError, match=said) as caught:
            build(make_tree(tmp_path / str(number), during=f"echo {said}; exit 1"))
        assert type(caught.value) is KernelError
        assert caught.value.exit_status == 1
    with pytest.raises(DoesNotBuild) as refused:
        build(make_tree(tmp_path / "other", during="exit 1"))
    assert refused.value.exit_status == 3


def test_a_tarball_has_no_objects_to_keep(tmp_path: Path) -> None:
    make_tree(tmp_path)
    tarball = tmp_path / "linux.tar.xz"
    subprocess.run(["tar", "-cJf", str(tarball), "-C", str(tmp_path), "source"], check=True)
    with pytest.raises(KernelError, match="--incremental needs a tree"):
        build_kernel(tarball, incremental=True)
