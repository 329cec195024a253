"""A congestion-control file of the user's as a part of a kernel: what is taken, where it goes, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import DoesNotBuild, KernelError
from netwarp.guestkernel import build_kernel
from netwarp.guestkernel.cache import find_named
from netwarp.guestkernel.congestion import congestion_controls, with_congestion
from netwarp.sandbox.choose import not_built
from support.kernel_tree import make_tree

SOURCE = """\
// SPDX-License-Identifier: GPL-2.0
/* .name = "not_this" */
static struct tcp_congestion_ops mine __read_mostly = {
	.owner		= THIS_MODULE,
	.name		= "NAME",
};
static int __init mine_register(void)
{
	return tcp_register_congestion_control(&mine);
}
module_init(mine_register);
"""


def mine(tmp_path: Path, name: str = "mine", file: str = "tcp_mine.c", text: str = SOURCE) -> Path:
    (tmp_path / file).write_text(text.replace("NAME", name))
    return tmp_path / file


def tree_with_cubic(tmp_path: Path, during: str = "true") -> Path:
    tree = make_tree(tmp_path, during)
    folder = tree / "net/ipv4"
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text("obj-$(CONFIG_TCP_CONG_CUBIC) += tcp_cubic.o\n")
    (folder / "tcp_cubic.c").write_text(SOURCE.replace("NAME", "cubic"))
    (folder / "tcp_input.c").write_text("/* no congestion control */\n")
    return tree


def test_the_file_is_built_in_beside_the_kernels_own(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    tree = tree_with_cubic(tmp_path, f"cat net/ipv4/Makefile net/ipv4/tcp_*.c > {kept}")
    variant = with_congestion(mine(tmp_path))
    build = build_kernel(tree, variant=variant)
    assert (build.variant, congestion_controls(variant)) == ("tcp_mine", ["mine"])
    assert find_named("6.12+tcp_mine") == build
    text = kept.read_text()
    assert "+= tcp_cubic.o\nobj-y += tcp_mine.o\n" in text
    assert '"mine"' in text
    assert '"cubic"' in text


def test_a_file_of_the_kernels_name_replaces_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    tree = tree_with_cubic(tmp_path, f"cat net/ipv4/tcp_*.c > {kept}")
    variant = with_congestion(mine(tmp_path, "cubic", "tcp_cubic.c", SOURCE + "/* ours */\n"))
    assert build_kernel(tree, variant=variant).variant == "tcp_cubic"
    assert kept.read_text().count('"cubic"') == 1
    assert "/* ours */" in kept.read_text()


def test_names_that_the_kernel_has_are_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    tree = tree_with_cubic(tmp_path)
    with pytest.raises(DoesNotBuild, match=r'"cubic" is the name of net/ipv4/tcp_cubic\.c .* call your file tcp_cubic'):
        build_kernel(tree, variant=with_congestion(mine(tmp_path, "cubic")))
    with pytest.raises(DoesNotBuild, match=r"net/ipv4/tcp_input\.c of this kernel is no congestion control"):
        build_kernel(tree, variant=with_congestion(mine(tmp_path, "mine", "tcp_input.c")))


def test_the_compilers_first_errors_are_shown(tmp_path: Path) -> None:
    tree = tree_with_cubic(tmp_path, "gcc -c -o /dev/null net/ipv4/tcp_mine.c")
    lines = "".join(f"int f{n} = unknown_{n};\n" for n in range(20))
    with pytest.raises(DoesNotBuild) as caught:
        build_kernel(tree, variant=with_congestion(mine(tmp_path, text=lines + SOURCE)))
    said = str(caught.value)
    assert "net/ipv4/tcp_mine.c:1:10: error: 'unknown_0' undeclared here" in said
    assert "more errors" in said
    assert "unknown_15" not in said


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tcp_mine.c", "int main(void) { return 0; }\n"),
        ("tcp_mine.h", SOURCE),
        ("tcp_mine.c", SOURCE.replace(".name", ".key")),
    ],
)
def test_a_file_that_is_no_congestion_control_is_refused_with_an_example(tmp_path: Path, file: str, text: str) -> None:
    with pytest.raises(KernelError, match=r"is no source file .* of a congestion control") as caught:
        with_congestion(mine(tmp_path, file=file, text=text))
    assert '.name = "mine"' in str(caught.value)
    with pytest.raises(KernelError, match="cannot be read"):
        with_congestion(tmp_path / "none.c")


def test_a_kernel_that_is_not_built_is_named_with_the_command_that_builds_it() -> None:
    said = not_built("6.12+tcp_mine+debug+fix")
    assert "--source linux-source-6.12 --congestion tcp_mine.c --debug --patch fix.patch` builds it" in said


@pytest.mark.parametrize(
    "text",
    [
        SOURCE.replace("\n};", " };"),
        SOURCE.replace("\n};", ", };").replace(" = {\n", " = { "),
        SOURCE.replace("\t.owner		= THIS_MODULE,\n", "\t.key = (struct pair){ 1, { 2 } },\n"),
        SOURCE.replace("\n};", "\n}\n;"),
        SOURCE.replace("	", "        "),
    ],
    ids=["closed on its last line", "on one line", "braces inside", "semicolon on its own", "spaces"],
)
def test_a_file_may_be_written_in_any_layout(tmp_path: Path, text: str) -> None:
    assert congestion_controls(with_congestion(mine(tmp_path, text=text))) == ["mine"]


def test_two_controls_of_one_file_are_both_found(tmp_path: Path) -> None:
    one = 'static struct tcp_congestion_ops m1 = { .flags = 1, .name = "mine1", .owner = THIS_MODULE,\n\t.x = f };\n'
    text = one + one.replace("1", "2") + "int e = tcp_register_congestion_control(&m1);\n"
    assert congestion_controls(with_congestion(mine(tmp_path, text=text))) == ["mine1", "mine2"]
