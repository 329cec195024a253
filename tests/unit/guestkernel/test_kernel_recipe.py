"""The recipe: what changes the kernel changes its digest, and nothing else does."""

import dataclasses
import shutil
from pathlib import Path

import pytest
from netwarp.core.errors import KernelError
from netwarp.guestkernel.build import kernel_key
from netwarp.guestkernel.recipe import CHECKOUT, Recipe, load_recipe
from netwarp.guestkernel.source import KernelSource


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CHECKOUT / "kernel", tmp_path / "kernel"))


def digest(folder: Path) -> str:
    return load_recipe(folder).digest


def test_comments_and_order_do_not_matter(folder: Path) -> None:
    before = digest(folder)
    fragment = folder / "fragment.config"
    lines = [line for line in fragment.read_text().splitlines() if "CONFIG_" in line and not line.startswith("# ---")]
    fragment.write_text("# another comment\n" + "\n".join(reversed(lines)))
    assert digest(folder) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("fragment.config", "CONFIG_IP_SCTP=y", "CONFIG_IP_SCTP=m"),
        ("fragment.config", "# CONFIG_BLOCK is not set", "CONFIG_BLOCK=y"),
        ("pin.toml", "2024-01-01", "2024-01-02"),
        ("pin.toml", 'PAHOLE = "none"', 'PAHOLE = "pahole"'),
        ("patches/um-hz-1000.patch", "default 1000", "default 250"),
    ],
)
def test_every_input_of_the_binary_changes_the_digest(folder: Path, name: str, old: str, new: str) -> None:
    before = digest(folder)
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    assert digest(folder) != before


def test_the_fragment_asks_for_what_experiments_need(folder: Path) -> None:
    recipe = load_recipe(folder)
    options = {option.name: option.value for option in recipe.fragment}
    for name in ("IP_SCTP", "MPTCP", "NET_SCH_NETEM", "NET_SCH_TBF", "VETH", "NET_NS", "UML_TIME_TRAVEL_SUPPORT"):
        assert options[name] == "y", name
    for name in ("HW_RANDOM", "UML_RANDOM", "MODULES", "IPV6_SIT"):
        assert options[name] is None, name
    assert options["HZ"] == "1000"
    assert set(recipe.identity) == {f"KBUILD_BUILD_{word}" for word in ("TIMESTAMP", "USER", "HOST", "VERSION")}


def test_a_broken_recipe_is_an_error_that_names_the_file(folder: Path) -> None:
    (folder / "pin.toml").write_text("[source]\n")
    with pytest.raises(KernelError, match=r"pin\.toml"):
        load_recipe(folder)
    (folder / "pin.toml").unlink()
    with pytest.raises(KernelError, match="cannot be read"):
        load_recipe(folder)


def test_the_key_depends_on_source_recipe_and_compiler() -> None:
    recipe = load_recipe()
    source = KernelSource("package", Path("x"), "linux-source-6.12 6.12.117-1", "")
    other = dataclasses.replace(source, identity="linux-source-6.12 6.12.120-1")
    changed: Recipe = dataclasses.replace(recipe, fragment=recipe.fragment[1:])
    keys = {
        kernel_key(source, recipe, "gcc 12"),
        kernel_key(other, recipe, "gcc 12"),
        kernel_key(source, changed, "gcc 12"),
        kernel_key(source, recipe, "gcc 14"),
    }
    assert len(keys) == 4


def test_another_release_has_options_and_patches_of_its_own(folder: Path) -> None:
    recipe = load_recipe(folder)
    other = recipe.for_release("6.1.192")
    names = {option.name for option in other.fragment}
    assert {"RANDOM_TRUST_BOOTLOADER", "RANDOM_TRUST_CPU"} <= names & other.where_known
    assert {option.name for option in recipe.fragment} < names
    assert other.digest != recipe.digest
    assert recipe.for_release("5.10").digest == other.digest


def test_options_can_begin_with_a_release(folder: Path) -> None:
    """What a newer one asks for does not make an older kernel another one."""
    recipe = load_recipe(folder)
    old, new = recipe.for_release("6.1"), recipe.for_release("7.2.13")
    options = folder / "other-releases/options.toml"
    options.write_text(options.read_text().partition("[since.")[0])
    without = load_recipe(folder)
    assert old.digest == without.for_release("6.1").digest
    assert new.digest != without.for_release("7.2.13").digest == without.for_release("6.13").digest
    asked = {option.name: option.value for option in new.fragment}
    assert asked["UML_MAX_USERSPACE_ITERATIONS"] == "10000"
    assert "UML_MAX_USERSPACE_ITERATIONS" not in {option.name for option in old.fragment}


@pytest.mark.parametrize("release", ["", "6.12", "6.12.999", "6.12-rc3"])
def test_the_packages_own_release_is_made_as_before(folder: Path, release: str) -> None:
    recipe = load_recipe(folder)
    assert recipe.for_release(release) == recipe
    shutil.rmtree(folder / "other-releases")
    assert load_recipe(folder).digest == recipe.digest
