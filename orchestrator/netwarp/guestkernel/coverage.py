"""The variant of a guest kernel that counts how often each line of chosen files runs (gcov).

KCOV would not do: it counts what a system call does, and most of a protocol runs in softirqs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from ..core.errors import KernelError
from .recipe import kernel_folder, parse_fragment, patches_in
from .variant import COUNTING, Variant

NOTES = "*.gcno"
"""What gcc writes beside each object: the graph of its functions, which gcov needs to read the counters."""
_PATTERN = re.compile(r"[A-Za-z0-9_*?./-]+\.c")


def counting(patterns: Sequence[str]) -> Variant:
    """The variant that counts the lines of these files.

    patterns: of the source, as "net/sctp/*.c". Raises KernelError if a pattern names no files of one folder of it.
    """
    folder = kernel_folder() / "coverage"
    label = label_of(patterns)
    try:
        options = parse_fragment((folder / "options.config").read_text())
        patches = patches_in(folder)
    except OSError as error:
        raise KernelError(f"the recipe of the kernel with counters cannot be read: {error}") from error
    return Variant(
        label,
        options=options,
        patches=patches,
        lines=tuple((f"{PurePosixPath(pattern).parent}/Makefile", _profiled(pattern)) for pattern in patterns),
        kept=(NOTES,),
    )


def label_of(patterns: Sequence[str]) -> str:
    """The label of the kernel with the counters of these files: "gcov-sctp", "gcov-ipv4-tcp". Raises KernelError, as
    counting().
    """
    for pattern in patterns:
        path = PurePosixPath(pattern)
        if not _PATTERN.fullmatch(pattern) or path.is_absolute() or ".." in path.parts or "*" in str(path.parent):
            raise KernelError(
                f'"{pattern}" is no pattern of C files of the source; for example "net/sctp/*.c" or "net/ipv4/tcp*.c"'
            )
    return "-".join([COUNTING, *dict.fromkeys(word for pattern in patterns for word in _words(pattern))])


def _words(pattern: str) -> list[str]:
    path = PurePosixPath(pattern)
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", path.stem).strip("-")
    return [path.parent.name, *([stem] if stem else [])]


def _profiled(pattern: str) -> str:
    """A line for the makefile of the pattern's folder: each of its objects is compiled with counters."""
    return f"$(foreach file,$(notdir $(wildcard $(srctree)/{pattern})),$(eval GCOV_PROFILE_$(basename $(file)).o := y))"
