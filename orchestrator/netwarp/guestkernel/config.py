"""Configuration fragments: reads them, compares them with the resulting .config, and explains why an option did not
take.

kconfig silently drops an option whose dependency is missing, so every line is checked, as kunit_tool does.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path

from ..core.errors import KernelError

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


def parse_fragment(text: str) -> tuple[ConfigOption, ...]:
    """Read a fragment. Raises KernelError on a line that is neither option, comment nor empty, and on a name twice."""
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
            raise KernelError(f"fragment.config, line {number}: not an option: {line!r}; write CONFIG_NET=y")
        if option.name in options:
            raise KernelError(f"fragment.config, line {number}: CONFIG_{option.name} is given twice")
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
