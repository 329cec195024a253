"""One congestion-control source file of the user's, built into a guest kernel beside its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import DoesNotBuild, KernelError
from .cache import KernelBuild, asks_for_a_root
from .seccomp import boot_bare, mode_of
from .variant import Variant, label_of

_PLACE = "net/ipv4"
_REGISTERS = "tcp_register_congestion_control"
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_OPS = re.compile(r"struct\s+tcp_congestion_ops\s+\w+[^=;{]*=\s*\{")
_NAME = re.compile(r'\.name\s*=\s*"([^"]+)"')
_AVAILABLE = "/proc/sys/net/ipv4/tcp_available_congestion_control"
_MARK = "available:"
_EXAMPLE = """\
static struct tcp_congestion_ops mine __read_mostly = {
	.ssthresh = mine_ssthresh, .cong_avoid = mine_cong_avoid, .undo_cwnd = mine_undo_cwnd,
	.owner = THIS_MODULE, .name = "mine",
};
static int __init mine_register(void) { return tcp_register_congestion_control(&mine); }
module_init(mine_register);"""


def with_congestion(file: Path) -> Variant:
    """A kernel with a congestion control: a source file as those of net/ipv4. One that the kernel has by the name of
    the file is replaced. Raises KernelError if the file cannot be read or holds no congestion control.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise KernelError(f"--congestion: {file} cannot be read: {error.strerror}") from error
    if file.suffix != ".c" or not _names(content):
        raise KernelError(
            f"--congestion: {file} is no source file (.c) of a congestion control with a name. Such a file has, as "
            f"{_PLACE}/tcp_cubic.c of the kernel:\n{_EXAMPLE}"
        )
    label = label_of(file)
    place = f"{_PLACE}/{label}.c"
    # a second time where the kernel's makefile has it already, which counts once
    return Variant(label, files=((place, content),), lines=((f"{_PLACE}/Makefile", f"obj-y += {label}.o"),))


def congestion_controls(variant: Variant) -> list[str]:
    """The names of the congestion controls that a variant's files register."""
    return [name for _, name in _controls(variant)]


def check_congestion(variant: Variant, tree: Path) -> None:
    """Raises DoesNotBuild if a variant's congestion control has the name of one of the tree's that it does not replace,
    or if its file would replace something else.
    """
    for place, name in _controls(variant):
        for path in sorted((tree / _PLACE).glob("*.c")):
            there = path.relative_to(tree).as_posix()
            names = _names(path.read_bytes())
            if there == place and not names:
                raise DoesNotBuild(
                    f"--congestion: {there} of this kernel is no congestion control; give your file a name of its own, "
                    "such as tcp_mine.c"
                )
            if there != place and name in names:
                raise DoesNotBuild(
                    f'--congestion: "{name}" is the name of {there} of this kernel; give yours another '
                    f'(.name = "mine"), or call your file {path.name} to replace that one'
                )


def read_back(build: KernelBuild, names: list[str], memory: Path) -> None:
    """Boots a kernel: does it have the congestion controls of these names? memory: directory of guests' memory. Raises
    KernelError if it has not.
    """
    more = ["root=none"] if asks_for_a_root(build.binary) else []
    more += ["seccomp=on"] if mode_of(build.binary, memory) == "seccomp" else []
    ask = f'"mount -t proc proc /proc && echo {_MARK} $(cat {_AVAILABLE})"'
    console = boot_bare(build.binary, memory, "/bin/sh", *more, "--", "-c", ask)
    found = re.search(rf"^{_MARK} (.*?)\r?$", console, re.MULTILINE)
    available = found[1].split() if found else []
    lacking = [name for name in names if name not in available]
    if lacking:
        said = f"it has {', '.join(available)}" if found else f"booting it failed:\n{console.strip()[-2000:]}"
        raise KernelError(
            f"the kernel is built, but has no congestion control {', '.join(lacking)}: does the file's module_init() "
            f"register it? {said}"
        )


def _controls(variant: Variant) -> Iterator[tuple[str, str]]:
    """(place of the file, name) of each congestion control of a variant."""
    for place, content in variant.files:
        if place.startswith(f"{_PLACE}/"):
            for name in _names(content):
                yield place, name


def _names(source: bytes) -> list[str]:
    text = _COMMENT.sub("", source.decode(errors="replace"))
    bodies = (_braced(text, match.end()) for match in _OPS.finditer(text))
    return [name for body in bodies for name in _NAME.findall(body)] if _REGISTERS in text else []


def _braced(text: str, begin: int) -> str:
    """The text from behind an opening brace to its closing one; a brace in a string counts as one."""
    depth = 1
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[begin:at]
    return ""
