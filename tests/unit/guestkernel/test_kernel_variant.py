"""Kernels with changes on top of the recipe: what they are made of, and that only their label names them."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import KernelError
from netwarp.guestkernel import build_kernel, find_kernel, load_recipe
from netwarp.guestkernel.cache import find_named
from netwarp.guestkernel.recipe import ConfigOption
from netwarp.guestkernel.variant import Variant, combined, debugging, label_of, patched
from support.kernel_tree import PATCH, make_tree


def patch_file(tmp_path: Path, text: str = PATCH, name: str = "my fix.patch") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def test_a_patched_kernel_is_named_by_its_label_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = make_tree(tmp_path)
    plain = build_kernel(tree)
    build = build_kernel(tree, variant=patched(patch_file(tmp_path)))
    assert build.sha256 != plain.sha256
    assert (build.variant, build.recipe, build.release) == ("my_fix", plain.recipe, plain.release)
    assert find_kernel() == find_named("6.12") == plain, "the newer one is not taken by itself"
    assert find_named("6.12+my_fix") == find_named("6.12.999+my_fix") == build
    assert find_named("6.12+other") is None
    monkeypatch.setenv("NETWARP_KERNEL", "6.12+my_fix")
    assert find_kernel() == build


def test_options_files_and_lines_are_in_the_build(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    variant = Variant(
        "mine",
        options=(ConfigOption("IP_SCTP", None), ConfigOption("MINE", "y")),
        files=(("net/ipv4/tcp_mine.c", b"/* ours */\n"),),
        lines=(("Makefile", "linux: net/ipv4/tcp_mine.c"),),
    )
    config = (build_kernel(tree, variant=variant).binary.parent / "config").read_text().splitlines()
    assert "CONFIG_MINE=y" in config
    assert "CONFIG_IP_SCTP=y" not in config
    assert not (tree / "net").exists(), "the user's tree is not touched"
    with pytest.raises(KernelError, match="mine: this source has no net/Makefile"):
        build_kernel(tree, variant=Variant("mine", lines=(("net/Makefile", "obj-y += mine.o"),)))


def test_every_part_of_a_variant_makes_another_kernel(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    variants = [
        Variant(),
        Variant("a"),
        Variant("a", files=(("x.c", b"1"),)),
        Variant("a", files=(("x.c", b"2"),)),
        Variant("a", lines=(("Makefile", "# x"),)),
        Variant("a", options=(ConfigOption("MINE", "y"),)),
    ]
    assert len({build_kernel(tree, variant=each).key for each in variants}) == len(variants)


def test_laying_twice_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n")
    variant = Variant("a", files=(("x/y.c", b"1"),), lines=(("Makefile", "obj-y += y.o"),))
    variant.lay(tmp_path)
    once = (tmp_path / "Makefile").read_text()
    variant.lay(tmp_path)
    assert (tmp_path / "Makefile").read_text() == once == "all:\nobj-y += y.o\n"


def test_of_an_option_named_twice_the_last_counts() -> None:
    both = combined([Variant("a", (ConfigOption("X", "y"),)), Variant("b", (ConfigOption("X", None),))])
    assert (both.label, both.options) == ("a+b", (ConfigOption("X", None),))
    assert combined([]) == Variant()
    assert Variant().on(load_recipe()) == load_recipe()


@pytest.mark.parametrize(("name", "label"), [("tcp_mine.c", "tcp_mine"), ("0001-a b+c.patch", "0001-a_b_c")])
def test_a_label_can_stand_in_a_spec(name: str, label: str) -> None:
    assert label_of(Path(name)) == label


@pytest.mark.parametrize("name", ["debug.patch", "debug.c", "gcov.patch", "gcov-sctp.patch"])
def test_a_file_does_not_take_the_label_of_another_option(name: str) -> None:
    with pytest.raises(KernelError, match=f"another name, such as my_{name}"):
        label_of(Path(name))


def test_a_file_that_is_no_patch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="holds no patch"):
        patched(patch_file(tmp_path, "int main(void);\n"))
    with pytest.raises(KernelError, match="cannot be read"):
        patched(tmp_path / "none.patch")
    unfit = PATCH.replace("stdio", "stdlib")
    with pytest.raises(KernelError, match=r"unfit\.patch does not fit"):
        build_kernel(make_tree(tmp_path), variant=patched(patch_file(tmp_path, unfit, "unfit.patch")))


def test_the_checks_of_a_debug_kernel_are_asked_for() -> None:
    """What must take is in debug.config, what may be missing in pin.toml, and neither is asked for twice."""
    variant = debugging()
    recipe = variant.on(load_recipe())
    options = {option.name: option.value for option in recipe.fragment}
    assert len(options) == len(recipe.fragment)
    must = options.keys() - variant.where_possible
    assert {"KASAN", "PROVE_LOCKING", "PROVE_RCU", "DEBUG_ATOMIC_SLEEP", "DEBUG_KMEMLEAK", "SLUB_DEBUG"} <= must
    assert {options[name] for name in ("KASAN", "SLUB_DEBUG")} == {"y"}, "instead of the fragment's"
    assert "KFENCE" in recipe.where_possible
    assert combined([variant, Variant("fix")]).where_possible == variant.where_possible


def test_what_a_kernel_did_not_take_is_read_from_its_configuration(tmp_path: Path) -> None:
    variant = Variant(
        "mine", (ConfigOption("MINE", "y"), ConfigOption("NOWHERE", "y")), where_possible=frozenset(["NOWHERE"])
    )
    build = build_kernel(make_tree(tmp_path), variant=variant)
    config = build.binary.parent / "config"
    config.write_text(config.read_text().replace("CONFIG_NOWHERE=y", "# CONFIG_NOWHERE is not set"))
    assert variant.lacks(build) == ("NOWHERE",)
    assert Variant("patched").lacks(build) == ()
