"""The recipe of a guest kernel in this checkout: configuration fragment, patches, pinned identity; compares the
fragment with the resulting .config, and explains why an option did not take.

kconfig silently drops an option whose dependency is missing, so every line is checked, as kunit_tool does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from ..core.checkout import CHECKOUT
from ..core.errors import KernelError

PACKAGE_NAMES = "linux-source-"
"""The beginning of the names of Debian's packages of sources."""


@dataclasses.dataclass(frozen=True)
class Patch:
    """One file of kernel/patches, applied with -p1 in the order of the names."""

    name: str
    text: bytes


@dataclasses.dataclass(frozen=True)
class OtherReleases:
    """Differences for kernels of another release than the package's (kernel/other-releases).

    add: further options. patches: instead of the recipe's. where_known: options of the fragment that not every release
    has. since: options of the releases from (major, minor) on.
    """

    add: tuple[ConfigOption, ...]
    patches: tuple[Patch, ...]
    where_known: frozenset[str]
    since: tuple[tuple[tuple[int, int], tuple[ConfigOption, ...]], ...] = ()

    def added(self, release: str) -> tuple[ConfigOption, ...]:
        """The further options of a release."""
        numbers = release_numbers(release)
        return self.add + tuple(option for first, options in self.since if numbers >= first for option in options)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Everything that the checkout decides about its kernel; source and compiler come from the machine.

    identity: KBUILD_BUILD_* variables, which the kernel hashes into its random generator. variables: passed to every
    make. objects: approximate number of objects to compile (for the progress only). free_bytes: disk space needed for
    building. not_unpacked: tar(1) patterns of files in the package's tarball that this build never reads. where_known:
    options that are left out where the source has none of that name. where_possible: options that are left out also
    where something they depend on is missing. second: the package of the kernel beside the default one. others:
    differences for other releases.
    """

    fragment: tuple[ConfigOption, ...]
    patches: tuple[Patch, ...]
    package: str
    tarball: Path
    identity: dict[str, str]
    variables: dict[str, str]
    objects: int
    free_bytes: int
    not_unpacked: tuple[str, ...]
    where_known: frozenset[str] = frozenset()
    where_possible: frozenset[str] = frozenset()
    second: str = ""
    others: OtherReleases | None = None

    @property
    def release(self) -> str:
        """Of the package: "6.12"."""
        return self.package.removeprefix(PACKAGE_NAMES)

    def for_release(self, release: str) -> Recipe:
        """The recipe for a source of that release ("6.1", "6.1.192"; "": unknown, taken for the package's)."""
        if not release or same_release(release, self.release) or self.others is None:
            return self
        added = self.others.added(release)
        return dataclasses.replace(
            self,
            fragment=self.fragment + added,
            patches=self.others.patches,
            where_known=self.where_known | self.others.where_known | {option.name for option in added},
            others=None,
        )

    @property
    def make(self) -> list[str]:
        """The make command, to be followed by its targets."""
        return ["make", *(f"{name}={value}" for name, value in self.variables.items())]

    @property
    def digest(self) -> str:
        """SHA-256 of everything that changes the binary: options (not their comments or order), patches, pins."""
        return hashlib.sha256(
            json.dumps(
                {
                    "options": sorted(option.line for option in self.fragment),
                    "patches": [[p.name, hashlib.sha256(p.text).hexdigest()] for p in self.patches],
                    "identity": self.identity,
                    "variables": self.variables,
                    **({"where known": sorted(self.where_known)} if self.where_known else {}),
                    **({"where possible": sorted(self.where_possible)} if self.where_possible else {}),
                },
                sort_keys=True,
            ).encode()
        ).hexdigest()


def kernel_folder() -> Path:
    """kernel/ of this checkout."""
    return CHECKOUT / "kernel"


def load_recipe(folder: Path | None = None) -> Recipe:
    """Read kernel/ of this checkout (or `folder`). Raises KernelError where a file is missing or malformed."""
    folder = folder or kernel_folder()
    try:
        pin = tomllib.loads((folder / "pin.toml").read_text())
        fragment = parse_fragment((folder / "fragment.config").read_text())
        more = parse_fragment("\n".join(pin["where_known"]["options"]))
        patches = patches_in(folder / "patches")
        return Recipe(
            fragment=fragment + more,
            patches=patches,
            package=pin["source"]["package"],
            tarball=Path(pin["source"]["tarball"]),
            identity={str(k): str(v) for k, v in pin["identity"].items()},
            variables={str(k): str(v) for k, v in pin["make"].items()},
            objects=int(pin["build"]["objects"]),
            free_bytes=int(pin["build"]["free_bytes"]),
            not_unpacked=tuple(pin["build"]["not_unpacked"]),
            where_known=frozenset(option.name for option in more),
            second=pin["source"]["second"],
            others=_other_releases(folder / "other-releases"),
        )
    except OSError as error:
        raise KernelError(f"the kernel's recipe cannot be read: {error}") from error
    except (KeyError, tomllib.TOMLDecodeError) as error:
        raise KernelError(f"{folder}: pin.toml or other-releases/options.toml: {error}") from error


def patches_in(folder: Path) -> tuple[Patch, ...]:
    """The patches of a folder, in the order of their names."""
    return tuple(Patch(path.name, path.read_bytes()) for path in sorted(folder.glob("*.patch")))


def _other_releases(folder: Path) -> OtherReleases | None:
    if not folder.is_dir():
        return None
    table = tomllib.loads((folder / "options.toml").read_text())
    return OtherReleases(
        add=parse_fragment("\n".join(table["add"])),
        patches=patches_in(folder),
        where_known=frozenset(map(str, table["where_known"])),
        since=tuple(
            (release_numbers(release), parse_fragment("\n".join(more["add"])))
            for release, more in table.get("since", {}).items()
        ),
    )


def release_numbers(release: str) -> tuple[int, int]:
    """(6, 1) of "6.1.192" or "6.1-rc3"; (0, 0) where it does not begin with two numbers."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def same_release(release: str, other: str) -> bool:
    """True if "6.1.192" and "6.1" are points of one release."""
    return release_numbers(release) == release_numbers(other)


_SET = re.compile(r"CONFIG_([A-Za-z0-9_]+)=(\S.*)")
_UNSET = re.compile(r"# CONFIG_([A-Za-z0-9_]+) is not set")


@dataclasses.dataclass(frozen=True)
class ConfigOption:
    """One line of a fragment. `value` None: the option must be off."""

    name: str
    value: str | None

    @property
    def line(self) -> str:
        """As a .config has it."""
        return f"# CONFIG_{self.name} is not set" if self.value is None else f"CONFIG_{self.name}={self.value}"


def parse_fragment(text: str, name: str = "fragment.config") -> tuple[ConfigOption, ...]:
    """Read a fragment, whose file has that name. Raises KernelError on a line that is neither option, comment nor
    empty, and on a name twice.
    """
    options: dict[str, ConfigOption] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if unset := _UNSET.fullmatch(line):
            option = ConfigOption(unset[1], None)
        elif chosen := _SET.fullmatch(line):
            option = ConfigOption(chosen[1], None if chosen[2] == "n" else chosen[2])
        elif not line or line.startswith("#"):
            continue
        else:
            raise KernelError(f"{name}, line {number}: not an option: {line!r}; write CONFIG_NET=y")
        if option.name in options:
            raise KernelError(f"{name}, line {number}: CONFIG_{option.name} is given twice")
        options[option.name] = option
    return tuple(options.values())


def parse_config(text: str) -> dict[str, str]:
    """A .config's options that are set: name -> value."""
    return {m[1]: m[2] for line in text.splitlines() if (m := _SET.fullmatch(line.strip()))}


def unmet(fragment: Iterable[ConfigOption], config: dict[str, str]) -> list[ConfigOption]:
    """The options of the fragment that differ in the configuration."""
    return [option for option in fragment if config.get(option.name) != option.value]


def is_known(name: str, tree: Path) -> bool:
    """True if the source has an option of that name."""
    return _definition(name, tree) is not None


def explain(option: ConfigOption, config: dict[str, str], tree: Path) -> str:
    """One line: the option asked for, its value in the .config, and what the source's Kconfig files say about it."""
    got = f"is {config[option.name]}" if option.name in config else "is not set"
    lines = _definition(option.name, tree)
    if lines is None:
        return f"{option.line}: {got}: this source has no such option"
    depends = [line.removeprefix("depends on ") for line in lines if line.startswith("depends on ")]
    selectors = _selectors(option.name, tree) if option.value is None else []
    hints = [
        f"depends on {text} ({_state(text, config)})" if _state(text, config) else f"depends on {text}"
        for text in depends
    ]
    hints += [f"is selected by {name}" for name in selectors if name in config]
    if not any(re.match(r'(bool|tristate|int|hex|string|prompt)\s+"|prompt\b', line) for line in lines):
        hints.append("has no prompt: only its default or another option's select can set it")
    return f"{option.line}: {got}" + (": it " + "; ".join(hints) if hints else "")


def _state(expression: str, config: dict[str, str]) -> str:
    names = dict.fromkeys(re.findall(r"\b[A-Z0-9_]{2,}\b", expression))
    return ", ".join(f"{name}={config.get(name, 'n')}" for name in names)


def _kconfigs(tree: Path) -> Iterable[Path]:
    skip = {path.name for path in (tree / "arch").glob("*")} - {"um", "x86"}
    for path in sorted(tree.rglob("Kconfig*")):
        parts = path.relative_to(tree).parts
        if path.is_file() and not (parts[0] == "arch" and len(parts) > 1 and parts[1] in skip):
            yield path


def _definition(name: str, tree: Path) -> list[str] | None:
    """The stripped lines of the option's definitions in the Kconfig files; None if there is none."""
    body: list[str] | None = None
    head = re.compile(rf"(?:menu)?config\s+{re.escape(name)}")
    block = re.compile(r"(?:menu)?config\b|choice\b|endchoice\b|menu\b|endmenu\b|if\b|endif\b|source\b|comment\b")
    for path in _kconfigs(tree):
        inside = False
        for raw in path.read_text(errors="replace").splitlines():
            line = raw.strip()
            if head.fullmatch(line):
                inside, body = True, body or []
            elif inside and (line in ("help", "---help---") or block.match(line)):
                inside = False
            elif inside and body is not None and line:
                body.append(line)
    return body


def _selectors(name: str, tree: Path) -> list[str]:
    """Options that select this one, whatever their conditions."""
    selectors: dict[str, None] = {}
    for path in _kconfigs(tree):
        current = ""
        for raw in path.read_text(errors="replace").splitlines():
            line = raw.strip()
            if match := re.fullmatch(r"(?:menu)?config\s+(\w+)", line):
                current = match[1]
            elif re.match(rf"select\s+{re.escape(name)}\b", line) and current:
                selectors[current] = None
    return list(selectors)
