"""Variants of a guest kernel: what a build has on top of the recipe's, under a label (`kernel = "6.12+LABEL"`).

A variant is never what runs use by default, nor what a release without a label names.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from ..core.errors import KernelError
from .cache import KernelBuild
from .recipe import ConfigOption, Patch, Recipe, kernel_folder, parse_config, parse_fragment, patches_in, unmet

DEBUG = "debug"
"""The label of the kernel with checks."""
COUNTING = "gcov"
"""How the label of a kernel with counters begins."""
KEPT = "kept"
"""The directory beside a kernel with the files that its variant keeps."""
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9_.-]")


@dataclasses.dataclass(frozen=True)
class Variant:
    """Changes to a kernel.

    label: its name; "": no change. options: beside the fragment's, or instead of those of the same names. patches:
    applied after the recipe's. files: (place in the tree, content) of whole files. lines: (place of a makefile or
    Kconfig, lines to add at its end). kept: patterns of the names of files that the compiler makes beside the objects,
    and that stay beside the kernel, in `kept/`. where_possible: options that are left out where the source or what they
    depend on is missing.
    """

    label: str = ""
    options: tuple[ConfigOption, ...] = ()
    patches: tuple[Patch, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    where_possible: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        """SHA-256 of label, files and lines; options and patches count in the recipe's."""
        files = [[place, hashlib.sha256(content).hexdigest()] for place, content in self.files]
        return hashlib.sha256(json.dumps([self.label, files, self.lines]).encode()).hexdigest()

    def on(self, recipe: Recipe) -> Recipe:
        """The recipe (of a release) with this variant's options and patches."""
        named = {option.name for option in self.options}
        return dataclasses.replace(
            recipe,
            fragment=tuple(option for option in recipe.fragment if option.name not in named) + self.options,
            patches=recipe.patches + self.patches,
            where_possible=recipe.where_possible | self.where_possible,
        )

    def lacks(self, build: KernelBuild) -> tuple[str, ...]:
        """The options that a kernel of this variant did not take, as read from its whole configuration."""
        if not self.options:
            return ()
        config = parse_config((build.binary.parent / "config").read_text())
        return tuple(option.name for option in unmet(self.options, config))

    def lay(self, tree: Path) -> None:
        """Put files and lines into a tree; once more changes nothing. Raises KernelError where a file to add lines to
        is missing.
        """
        for place, content in self.files:
            (tree / place).parent.mkdir(parents=True, exist_ok=True)
            (tree / place).write_bytes(content)
        for place, lines in self.lines:
            try:
                text = (tree / place).read_text()
            except OSError as error:
                raise KernelError(f"{self.label}: this source has no {place}: {error.strerror}") from error
            if not text.endswith(f"\n{lines}\n"):
                (tree / place).write_text(f"{text.rstrip()}\n{lines}\n")


PLAIN = Variant()


def combined(variants: Iterable[Variant]) -> Variant:
    """All of them as one; its label is theirs in order, joined with `+`. Of an option named twice the last counts."""
    each = list(variants)
    options = {option.name: option for variant in each for option in variant.options}
    return Variant(
        label="+".join(variant.label for variant in each),
        options=tuple(options.values()),
        patches=tuple(patch for variant in each for patch in variant.patches),
        files=tuple(file for variant in each for file in variant.files),
        lines=tuple(line for variant in each for line in variant.lines),
        kept=tuple(dict.fromkeys(name for variant in each for name in variant.kept)),
        where_possible=frozenset(name for variant in each for name in variant.where_possible),
    )


def label_of(file: Path) -> str:
    """The label of a variant that is a file of the user's: its name without the ending. Raises KernelError if another
    option's kernel has that label.
    """
    label = _NOT_IN_LABELS.sub("_", file.stem)
    if label == DEBUG or label.partition("-")[0] == COUNTING:
        raise KernelError(
            f"{file}: +{label} is a kernel of --debug or --coverage; give the file another name, such as my_{file.name}"
        )
    return label


def patched(file: Path) -> Variant:
    """A kernel with a patch (git format-patch's, an mbox, a diff; applied with -p1). Raises KernelError if the file
    cannot be read or holds no patch.
    """
    try:
        text = file.read_bytes()
    except OSError as error:
        raise KernelError(f"--patch: {file} cannot be read: {error.strerror}") from error
    if not re.search(rb"^(?:---|\+\+\+) \S", text, re.MULTILINE):
        raise KernelError(f"--patch: {file} holds no patch; `git format-patch` and `git diff` write one")
    return Variant(label_of(file), patches=(Patch(file.name, text),))


def debugging() -> Variant:
    """The kernel with the checks of kernel/debug.config, and of pin.toml where possible, and with the patches of
    kernel/debug. Raises KernelError.
    """
    folder = kernel_folder()
    try:
        asked = parse_fragment((folder / "debug.config").read_text(), "debug.config")
        more = parse_fragment("\n".join(tomllib.loads((folder / "pin.toml").read_text())["debug"]["where_possible"]))
    except OSError as error:
        raise KernelError(f"--debug: {error}") from error
    patches = patches_in(folder / DEBUG)
    return Variant(
        DEBUG, options=asked + more, patches=patches, where_possible=frozenset(option.name for option in more)
    )
