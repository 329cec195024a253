"""Tests in a source: their names, the programs they call, the configuration they ask for; and the table of results."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.guestkernel import load_recipe
from netwarp.selftests.guest import OVERRIDES, Bench, Result, prepare
from netwarp.selftests.table import rows, update_page
from netwarp.selftests.tap import Case
from netwarp.selftests.tree import SELFTESTS, Selftest, Tree, needed, parse_test, selftest_recipe


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    net = tmp_path / SELFTESTS / "net"
    (net / "sub").mkdir(parents=True)
    (net / "lib.sh").write_text("./helper -x\n")
    (net / "sub/lib.sh").write_text('. "$(dirname "$0")/../lib.sh"\nsource "$here/../lib.sh"\n')
    (net / "sub/one.sh").write_text('#!/bin/sh\nsource lib.sh\nip netns exec "$ns" ./talker -l | ./listener\n')
    for name in ("sub/talker", "sub/listener", "sub/unused", "helper", "alone"):
        (net / f"{name}.c").write_text("int main(void) { return 0; }\n")
    (net / "config").write_text("CONFIG_VETH=y\nCONFIG_IFB=m\n# a comment\nCONFIG_MODULES=y\n")
    return Tree(tmp_path)


def test_names() -> None:
    assert parse_test("net/mptcp:mptcp_connect.sh -m mmap") == Selftest("net/mptcp", "mptcp_connect.sh", ("-m", "mmap"))
    assert parse_test("net:tls").name == "net:tls"
    for wrong in ("tls", "net:", "net/tls.sh", "net:a; rm -rf /", "net:a $(x)"):
        with pytest.raises(SpecError, match="COLLECTION:PROGRAM"):
            parse_test(wrong)


def test_a_test_that_is_not_there_is_an_error_with_those_that_are(tree: Tree) -> None:
    tree.check(Selftest("net/sub", "one.sh"))
    tree.check(Selftest("net", "alone"))
    with pytest.raises(SpecError, match=r"net/sub has no two\.sh \(it has lib\.sh, one\.sh, \.\.\.\)"):
        tree.check(Selftest("net/sub", "two.sh"))
    with pytest.raises(SpecError, match="has no collection drivers/none"):
        tree.check(Selftest("drivers/none", "x.sh"))


def test_the_programs_that_a_script_and_what_it_sources_name(tree: Tree) -> None:
    assert needed(tree.tests / "net/sub", "one.sh") == ["listener", "talker"]
    assert needed(tree.tests / "net", "alone") == ["alone"]
    assert needed(tree.tests / "net", "lib.sh") == ["helper"]


def test_the_kernel_has_both_configurations_but_never_modules(tree: Tree) -> None:
    recipe = load_recipe()
    options = tree.options(["net", "net/sub"])
    assert options == {"VETH": "y", "IFB": "y", "MODULES": "y"}
    other = selftest_recipe(recipe, {**options, "IP_NF_IPTABLES": "y", "HZ": "100", "INET_ESP": "y"})
    values = {option.name: option.value for option in other.fragment}
    assert values["IP_NF_IPTABLES"] == "y"
    assert (values["MODULES"], values["HZ"], values["HW_RANDOM"]) == (None, "1000", None)
    assert other.where_possible == {"IP_NF_IPTABLES"}
    assert "INET_ESP" not in values, "the generator that it selects never boots on the virtual clock"
    assert other.digest != recipe.digest
    assert len(values) == len(other.fragment)


def test_the_table_stands_between_the_marks_of_a_page(tmp_path: Path) -> None:
    found = (Case("a", "pass"), Case("b", "skip", "why"))
    results = [
        Result(Selftest("net", "a.sh"), "pass", 0, 18.01, 2.345, "", "", found),
        Result(Selftest("net", "b.sh"), "fail", None, None, 300.1, "stopped after 300 s | of wall time", "", ()),
    ]
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- selftests -->\n<!-- /selftests -->\nafter\n")
    update_page(page, rows(results, "6.12.1"))
    head = (
        "before\n<!-- selftests -->\n"
        "| test | verdict | inside: passed, failed, skipped | virtual s | wall s | kernel | reason |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
    )
    second = "| `net:b.sh` | fail |  |  | 300.1 | 6.12.1 | stopped after 300 s \\| of wall time |\n"
    tail = "<!-- /selftests -->\nafter\n"
    assert page.read_text() == f"{head}| `net:a.sh` | pass | 1, 0, 1 | 18.0 | 2.3 | 6.12.1 |  |\n{second}{tail}"
    long = "a word and " * 7 + "skipping it"
    (row,) = rows([Result(Selftest("net", "a.sh"), "skip", 4, 1.0, 1.0, long, "", ())], "7.2").values()
    assert row.endswith(" | a word and a word and a word and a word and a word and a word and a word and ... |")
    update_page(page, rows(results[:1], "7.2"))
    assert page.read_text() == f"{head}| `net:a.sh` | pass | 1, 0, 1 | 18.0 | 2.3 | 7.2 |  |\n{second}{tail}"
    (tmp_path / "other.md").write_text("no marks\n")
    with pytest.raises(SpecError, match="for the table to stand in"):
        update_page(tmp_path / "other.md", {})


def test_the_guest_reads_the_names_as_they_are(tmp_path: Path) -> None:
    """A home directory may have a blank or a dollar sign in its name."""
    packages, tests = tmp_path / "two words; $(touch here)", tmp_path / "it's $HOME"
    prepare(Bench(Path("linux"), packages, tests, 1, 1.0), Selftest("net", "a.sh", ("-m", "x")), tmp_path / "place", 7)
    script = '. ./guest.env; printf "%s\\n" "$COLLECTION" "$TEST" "$LIMIT_S" "$PACKAGES" "$TESTS"'
    said = subprocess.run(["bash", "-uc", script], cwd=tmp_path / "place", capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["net", "./a.sh -m x", "7", str(packages), str(tests)]
    assert not (tmp_path / "place/here").exists()


def test_everything_has_run_before_a_listener_is_looked_for() -> None:
    """The override sleeps once, then does what the test's own function does, with the same words."""
    own = 'sleep() { echo "slept"; }\nwait_local_port_listen()\n{\n\tlocal port="${2}"\n\techo "$1, ${port}, $3"\n}\n'
    script = own + (OVERRIDES / "net@net_helper.sh").read_text() + 'wait_local_port_listen "a b" 80 tcp\n'
    said = subprocess.run(["bash", "-uc", script], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["slept", "a b, 80, tcp"]


def test_a_program_is_compiled_with_the_header_that_makes_time_pass(tmp_path: Path) -> None:
    """The reading that counts is the first of two, and a program without a header is compiled as it is."""
    net = tmp_path / SELFTESTS / "net"
    net.mkdir(parents=True)
    (net / "Makefile").write_text("CFLAGS += $(USERCFLAGS)\n")
    counts = """
#include <stdio.h>
#include <time.h>
#undef clock_gettime
static int readings;
int clock_gettime(clockid_t clock, struct timespec *read)
{
	read->tv_nsec = ++readings;
	return clock;
}
int main(void)
{
	struct timespec read;
	int status = READ(7, &read);

	printf("%d %ld %d\\n", status, read.tv_nsec, readings);
	return 0;
}
"""
    (net / "so_txtime.c").write_text(counts.replace("READ", "read_and_pass"))
    (net / "other.c").write_text(counts.replace("READ", "clock_gettime"))
    tests = [Selftest("net", "so_txtime"), Selftest("net", "other")]
    assert Tree(tmp_path).build(tests, tmp_path) == {}
    said = [subprocess.run([net / name], capture_output=True, text=True, check=True).stdout.split()
            for name in ("so_txtime", "other")]  # fmt: skip
    assert said == [["7", "1", "2"], ["7", "1", "1"]]
