"""Fragments: what is read, what is compared, what is said about an option that did not take."""

from pathlib import Path

import pytest
from netwarp.core.errors import KernelError
from netwarp.guestkernel.recipe import ConfigOption, explain, parse_config, parse_fragment, unmet


def test_a_fragment_is_options_set_and_unset() -> None:
    text = "# a comment\n\nCONFIG_NET=y\n# CONFIG_BLOCK is not set\nCONFIG_HZ=1000\nCONFIG_MODULES=n\n"
    assert parse_fragment(text) == (
        ConfigOption("NET", "y"),
        ConfigOption("BLOCK", None),
        ConfigOption("HZ", "1000"),
        ConfigOption("MODULES", None),
    )


@pytest.mark.parametrize(
    ("text", "says"), [("CONFIG_NET\n", "line 1"), ("\nNET=y\n", "line 2"), ("CONFIG_NET=y\nCONFIG_NET=y\n", "twice")]
)
def test_a_malformed_fragment_names_the_line(text: str, says: str) -> None:
    with pytest.raises(KernelError, match=says):
        parse_fragment(text)


def test_every_option_that_did_not_take_is_found() -> None:
    fragment = parse_fragment(
        "CONFIG_NET=y\nCONFIG_SCTP=y\nCONFIG_HZ=1000\n# CONFIG_BLOCK is not set\n# CONFIG_VT is not set\n"
    )
    config = parse_config("CONFIG_NET=y\nCONFIG_HZ=100\nCONFIG_BLOCK=y\n# CONFIG_SCTP is not set\n")
    assert [option.name for option in unmet(fragment, config)] == ["SCTP", "HZ", "BLOCK"]


KCONFIG = """\
config IP_SCTP
	tristate "SCTP"
	depends on INET
	depends on IPV6 || IPV6=n

	help
	  depends on luck

config HZ
	int
	default 100

config NETFS
	bool "files"
	select BLOCK if NET

config BLOCK
	bool "disks"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "arch/arm").mkdir(parents=True)
    (tmp_path / "net").mkdir()
    (tmp_path / "net/Kconfig").write_text(KCONFIG)
    (tmp_path / "arch/arm/Kconfig").write_text('config ONLY_ARM\n\tbool "x"\n')
    return tmp_path


def test_a_missing_dependency_is_named_with_its_state(tree: Path) -> None:
    text = explain(ConfigOption("IP_SCTP", "y"), {"IPV6": "y"}, tree)
    assert "CONFIG_IP_SCTP=y: is not set" in text
    assert "depends on INET (INET=n)" in text
    assert "IPV6=y" in text
    assert "luck" not in text


def test_an_option_without_prompt_says_so(tree: Path) -> None:
    assert "has no prompt" in explain(ConfigOption("HZ", "1000"), {"HZ": "100"}, tree)
    assert "is 100" in explain(ConfigOption("HZ", "1000"), {"HZ": "100"}, tree)


def test_the_option_that_selects_an_unwanted_one_is_named(tree: Path) -> None:
    text = explain(ConfigOption("BLOCK", None), {"BLOCK": "y", "NETFS": "y"}, tree)
    assert "is selected by NETFS" in text


@pytest.mark.parametrize("name", ["NO_SUCH", "ONLY_ARM"])
def test_an_option_of_another_source_is_distinguished(tree: Path, name: str) -> None:
    assert "no such option" in explain(ConfigOption(name, "y"), {}, tree)
