"""The build, played on a tiny source tree by the real make, gcc, patch and tar."""

import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from netwarp.core.errors import DoesNotBuild, KernelError
from netwarp.guestkernel import KernelBuild, build_kernel, find_kernel, list_kernels, load_recipe
from netwarp.guestkernel.build import CCACHE, find_build
from netwarp.guestkernel.cache import find_named, kernels_dir
from netwarp.guestkernel.tool_run import Progress
from support.kernel_tree import builds, contents, make_tree


def test_a_build_is_installed_whole_and_found(tmp_path: Path) -> None:
    seen: list[Progress] = []
    build = build_kernel(make_tree(tmp_path), progress=seen.append)
    assert subprocess.run([build.binary], capture_output=True, text=True, check=True).stdout == "6.12.999\n"
    assert build.release == "6.12.999"
    assert build.kind == "directory"
    assert build.include is not None
    assert "SCTP_TEST" in (build.include / "linux/sctp.h").read_text()
    assert "CONFIG_IP_SCTP=y" in (build.binary.parent / "config").read_text()
    assert (build.binary.parent / "build.log").stat().st_size > 0
    assert find_kernel() == build
    assert find_kernel(build.key) == build
    assert find_kernel(build.key[:8]) == build
    assert list_kernels() == [build]
    assert [p.name for p in kernels_dir().iterdir() if p.name != ".lock"] == [build.key]
    stages = list(dict.fromkeys(progress.stage for progress in seen))
    assert stages == [
        "unpacks",
        "patches",
        "configures",
        "compiles",
        "makes the headers",
        "installs",
        "removes its working files",
    ]
    assert max(progress.done for progress in seen) == 1


def test_nothing_is_found_before_a_build() -> None:
    assert find_kernel() is None
    assert list_kernels() == []


def test_an_equal_source_is_not_built_again_and_another_is(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    first = build_kernel(tree)
    assert build_kernel(tree) == first
    assert builds(tmp_path) == 1
    edit(tree)
    second = build_kernel(tree)
    assert second.key != first.key
    assert builds(tmp_path) == 2
    assert {build.key for build in list_kernels()} == {first.key, second.key}


def edit(tree: Path) -> None:
    """Change a file of a source."""
    (tree / "main.c").write_text((tree / "main.c").read_text() + "/* changed */\n")


def restate(build: KernelBuild, name: str, value: str) -> None:
    """Change a field of a kernel's record."""
    record = build.binary.parent / "build.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), name: value}))


def test_the_users_tree_is_copied_never_touched(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    (tree / "stale.o").write_bytes(b"of an earlier build")
    (tree / ".config").write_text("CONFIG_OWN=y\n")
    (tree / "link").symlink_to("main.c")
    before = contents(tree)
    build = build_kernel(tree)
    assert contents(tree) == before
    assert "CONFIG_OWN" not in (build.binary.parent / "config").read_text()


def test_a_git_tree_is_what_git_lists(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    (tree / ".gitignore").write_text("*.o\n")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(tree), *command], check=True)
    first = build_kernel(tree)
    (tree / "ignored.o").write_bytes(b"x")
    assert build_kernel(tree) == first
    edit(tree)
    assert build_kernel(tree).key != first.key


def test_a_tarball_builds_like_its_tree(tmp_path: Path) -> None:
    make_tree(tmp_path)
    tarball = tmp_path / "linux.tar.xz"
    subprocess.run(["tar", "-cJf", str(tarball), "-C", str(tmp_path), "source"], check=True)
    build = build_kernel(tarball)
    assert (build.kind, build.source, build.release) == ("tarball", "linux.tar.xz", "6.12.999")


def test_a_patch_already_applied_is_no_error_and_one_that_does_not_fit_is(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    kconfig = tree / "arch/um/Kconfig"
    original = kconfig.read_text()
    kconfig.write_text(original.replace("default 100\n", "default 1000\n"))
    assert build_kernel(tree).release == "6.12.999"
    kconfig.write_text(original.replace("config HZ", "config TICKS"))
    with pytest.raises(KernelError, match=r"um-hz-1000\.patch does not fit"):
        build_kernel(tree)


def test_an_option_that_did_not_take_ends_the_build_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"did not take 1 of .*\n  CONFIG_IP_SCTP=y: is not set: .* no such option"):
        build_kernel(make_tree(tmp_path, drops="IP_SCTP"))
    assert builds(tmp_path) == 0
    assert find_kernel() is None


def test_a_failed_build_shows_its_last_lines_and_keeps_its_log(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="the compiler says no") as caught:
        build_kernel(make_tree(tmp_path, during="echo the compiler says no; exit 3"))
    log = Path(str(caught.value).rpartition("The whole log: ")[2])
    assert "the compiler says no" in log.read_text()
    assert list_kernels() == []
    assert sorted(p.name for p in kernels_dir().iterdir()) == [".lock", log.name]


@pytest.mark.parametrize("spoil", [
    lambda build: build.binary.write_bytes(b"cut off"), lambda build: (build.binary.parent / "build.json").unlink(),
], ids=["another binary", "no record"])  # fmt: skip
def test_a_kernel_that_is_not_as_built_is_built_again(tmp_path: Path, spoil: Callable[[KernelBuild], None]) -> None:
    """Its binary is another, or its directory has no record: it is not used."""
    tree = make_tree(tmp_path)
    spoil(build_kernel(tree))
    assert list_kernels() == [] and find_kernel() is None
    assert build_kernel(tree) == find_kernel()
    assert builds(tmp_path) == 2


def test_a_plain_file_in_the_cache_is_no_kernel_and_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as the log of a build that failed."""
    build = build_kernel(make_tree(tmp_path))
    (kernels_dir() / f"{build.key}.log").write_text("the compiler says no\n")
    assert list_kernels() == [build]
    assert find_kernel(build.key[:8]) == build
    assert caplog.records == []


def test_the_next_build_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    left = kernels_dir() / ".building-0123456789abcdef" / "kernel"
    left.mkdir(parents=True)
    (left / "linux").write_bytes(b"half")
    assert list_kernels() == []
    build_kernel(make_tree(tmp_path))
    assert not left.parent.exists()


def test_the_distributions_kernel_comes_before_a_newer_one_of_somebody(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    first = build_kernel(tree)
    restate(first, "kind", "package")
    edit(tree)
    newer = build_kernel(tree)
    found = find_kernel()
    assert found is not None
    assert found.key == first.key != newer.key


def test_a_kernel_of_another_recipe_is_found_only_by_its_key(tmp_path: Path) -> None:
    build = build_kernel(make_tree(tmp_path))
    restate(build, "recipe", "another")
    assert find_kernel() is None
    found = find_kernel(build.key)
    assert found is not None
    assert found.recipe == "another"


def test_kernels_of_several_releases_are_named_by_release_key_and_tree(tmp_path: Path) -> None:
    """The release of a user's tree is not the default, whatever was built last."""
    own, old, new = (make_tree(tmp_path, release=release) for release in ("6.12.999", "6.1.192", "6.18.2"))
    default = build_kernel(own)
    first, later = build_kernel(old), build_kernel(new)
    assert find_kernel() == default
    assert find_named("6.1") == find_named("6.1.192") == first
    assert find_named("6.12") == default
    assert find_named("6.18") == later
    assert find_named("6.13") is None
    assert find_named(later.key[:8]) == later
    assert find_build(str(old), tmp_path) == find_build("./source-6.1.192", tmp_path) == first
    assert find_build("6.18", tmp_path) == later
    edit(old)
    assert find_build(str(old), tmp_path) is None
    with pytest.raises(KernelError, match="does not exist"):
        find_build("./none", tmp_path)
    assert "CONFIG_RANDOM_TRUST_CPU=y" in (first.binary.parent / "config").read_text()
    assert "CONFIG_RANDOM_TRUST_CPU=y" not in (default.binary.parent / "config").read_text()


def test_a_tarball_of_another_release_is_made_by_its_recipe(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, release="6.1.192")
    tarball = tmp_path / "linux.tar.xz"
    subprocess.run(["tar", "-cJf", str(tarball), "-C", str(tmp_path), tree.name], check=True)
    assert build_kernel(tarball).recipe == load_recipe().for_release("6.1").digest == build_kernel(tree).recipe


def test_an_option_that_a_release_does_not_know_is_left_out_where_that_is_said(tmp_path: Path) -> None:
    known = 'config UML_NET\n\tbool "networking"\n\tdepends on NET\n\n'
    tree = make_tree(tmp_path, release="7.2.1", drops="UML_NET")
    assert build_kernel(tree).release == "7.2.1"
    kconfig = tree / "arch/um/Kconfig"
    kconfig.write_text(known + kconfig.read_text())
    with pytest.raises(KernelError, match=r"CONFIG_UML_NET=y: is not set: it depends on NET"):
        build_kernel(tree)


def test_the_file_of_a_package_is_that_package(tmp_path: Path) -> None:
    """It can be of a release of Debian that is not the machine's."""
    tree = make_tree(tmp_path, release="7.3.4")
    place = tmp_path / "deb"
    (place / "usr/src").mkdir(parents=True)
    (place / "DEBIAN").mkdir()
    control = "Package: {name}\nVersion: 7.3.4-1\nArchitecture: all\nMaintainer: N <n@localhost>\nDescription: source\n"
    (place / "DEBIAN/control").write_text(control.format(name="linux-source-7.3"))
    tarball = place / "usr/src/linux-source-7.3.tar.xz"
    subprocess.run(["tar", "-cJf", str(tarball), "-C", str(tmp_path), tree.name], check=True)
    file = tmp_path / "linux-source-7.3_7.3.4-1_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(place), str(file)], check=True, capture_output=True)
    build = build_kernel(file)
    assert (build.kind, build.source, build.release) == ("package", "linux-source-7.3 7.3.4-1", "7.3.4")
    assert build.recipe == load_recipe().for_release("7.3").digest
    assert find_named("7.3") == build
    (place / "DEBIAN/control").write_text(control.format(name="hello"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(place), str(file)], check=True, capture_output=True)
    with pytest.raises(KernelError, match=r"is hello 7\.3\.4-1, not one of"):
        build_kernel(file)
    file.write_text("no archive")
    with pytest.raises(KernelError, match="cannot be read"):
        build_kernel(file)


def test_what_a_later_release_or_a_users_tree_knows_is_asked_for(tmp_path: Path) -> None:
    """Of the release of the package too, into which somebody laid net/quic."""
    tree = make_tree(tmp_path)
    kconfig = tree / "arch/um/Kconfig"
    kconfig.write_text('config IP_QUIC\n\ttristate "QUIC"\n\n' + kconfig.read_text())
    config = (build_kernel(tree).binary.parent / "config").read_text()
    assert "CONFIG_IP_QUIC=y" in config
    with pytest.raises(KernelError, match="CONFIG_IP_QUIC=y: is not set"):
        place = tmp_path / "drops"
        place.mkdir()
        dropping = make_tree(place, drops="IP_QUIC")
        (dropping / "arch/um/Kconfig").write_text(kconfig.read_text())
        build_kernel(dropping)


def test_netwarp_kernel_names_a_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = build_kernel(make_tree(tmp_path))
    own = tmp_path / "own-linux"
    own.write_bytes(build.binary.read_bytes())
    own.chmod(0o755)
    monkeypatch.setenv("NETWARP_KERNEL", str(own))
    found = find_kernel()
    assert found is not None
    assert (found.binary, found.sha256, found.release, found.kind) == (own, build.sha256, "6.12.999", "environment")
    monkeypatch.setenv("NETWARP_KERNEL", str(build.binary))
    assert find_kernel() == build
    monkeypatch.setenv("NETWARP_KERNEL", str(tmp_path / "none"))
    with pytest.raises(KernelError, match="NETWARP_KERNEL"):
        find_kernel()


def test_two_builds_of_one_source_in_two_places_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = make_tree(tmp_path)
    first = build_kernel(tree)
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "another/much/longer/cache"))
    second = build_kernel(tree)
    assert builds(tmp_path) == 2
    assert (first.key, first.sha256, first.config_sha256) == (second.key, second.sha256, second.config_sha256)


def test_a_tool_that_happens_to_be_there_does_not_reach_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kconfig writes rustc's version into the configuration, and the kernel carries that in its binary."""
    first = build_kernel(make_tree(tmp_path))
    rustc = tmp_path / "bin/rustc"
    rustc.parent.mkdir()
    rustc.write_text("#!/bin/sh\necho 109500\n")
    rustc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{rustc.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "another"))
    assert build_kernel(tmp_path / "source").config_sha256 == first.config_sha256
    assert builds(tmp_path) == 2


@pytest.mark.parametrize(("asked", "said"), [
    ("none", "does not exist"), (".", "not a Linux source tree"),
    ("linux-source-5.4", r"linux-source-5\.4\.tar\.xz is missing; .*\n  apt-get install linux-source-5\.4"),
    (None, "apt-get install linux-source-6"),
])  # fmt: skip
def test_no_source_is_an_error_with_the_way_to_get_one(tmp_path: Path, asked: str | None, said: str) -> None:
    """A path, a package of another release, and (None) the recipe's own package."""
    recipe = dataclasses.replace(load_recipe(), tarball=tmp_path / "none.tar.xz")
    source = None if asked is None else Path(asked) if asked.startswith("linux") else tmp_path / asked
    with pytest.raises(KernelError, match=said):
        build_kernel(source, recipe=recipe)


def test_too_little_room_is_said_before_anything_is_unpacked(tmp_path: Path) -> None:
    recipe = dataclasses.replace(load_recipe(), free_bytes=1 << 60)
    with pytest.raises(KernelError, match="NETWARP_CACHE names another place"):
        build_kernel(make_tree(tmp_path), recipe=recipe)
    assert builds(tmp_path) == 0


def test_a_cache_that_cannot_be_made_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "file"))
    with pytest.raises(KernelError, match="NETWARP_CACHE"):
        build_kernel(make_tree(tmp_path))


def test_a_fault_of_the_machine_is_not_the_sources(tmp_path: Path) -> None:
    for number, said in enumerate(("No space left on device", "fatal error: Killed signal terminated program cc1")):
        with pytest.raises(KernelError, match=said) as caught:
            build_kernel(make_tree(tmp_path / str(number), during=f"echo {said}; exit 1"))
        assert type(caught.value) is KernelError
        assert caught.value.exit_status == 1
    with pytest.raises(DoesNotBuild) as refused:
        build_kernel(make_tree(tmp_path / "other", during="exit 1"))
    assert refused.value.exit_status == 3


@pytest.mark.skipif(not CCACHE.is_dir(), reason="ccache is not installed")
def test_a_kernel_is_the_same_with_ccache_and_without(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiles = "gcc -c -o compiled.o main.c"
    first = build_kernel(make_tree(tmp_path, during=compiles))
    found = subprocess.run(["ccache", "--print-stats"], env={"CCACHE_DIR": str(cache / "ccache")}, capture_output=True)
    assert b"cache_miss\t1" in found.stdout
    shutil.rmtree(cache / "kernels")
    again = build_kernel(tmp_path / "source")
    found = subprocess.run(["ccache", "--print-stats"], env={"CCACHE_DIR": str(cache / "ccache")}, capture_output=True)
    assert b"direct_cache_hit\t1" in found.stdout
    monkeypatch.setattr("netwarp.guestkernel.build.CCACHE", tmp_path / "none")
    shutil.rmtree(cache / "kernels")
    plain = build_kernel(tmp_path / "source")
    assert first.sha256 == again.sha256 == plain.sha256
