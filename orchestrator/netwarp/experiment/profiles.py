"""Reads netem-profiles/*.toml, each a network path, for `profile = "name"` on a link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..core.checkout import CHECKOUT
from .fields import NAME, check_keys
from .grammar import PROFILE
from .problems import Problems, nearest
from .toml_positions import Item, parse_toml, read_bounded

PROFILES = CHECKOUT / "netem-profiles"


def list_profiles(folder: Path = PROFILES) -> dict[str, str]:
    """Name -> title of every profile, sorted by name. Raises SpecError if one cannot be read."""
    problems = Problems()
    titles: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")) if folder.is_dir() else []:
        item = read_profile(path, problems)
        title = item.get("title") if item is not None else None
        titles[path.stem] = str(title.value) if title is not None else ""
    problems.check()
    return titles


def read_profile(path: Path, problems: Problems) -> Item | None:
    """One profile, checked."""
    item = parse_toml(read_bounded(path), shown(path), problems)
    if item is not None:
        check_keys(item, PROFILE, problems)
    return item


def find_profile(name: Item, problems: Problems, folder: Path = PROFILES) -> Item | None:
    """The profile that a link names. (Names contain no dots or slashes, so none leads to another folder.)"""
    text = str(name.value)
    path = folder / f"{text}.toml"
    if not NAME.fullmatch(text) or not path.is_file():
        known = sorted(p.stem for p in folder.glob("*.toml")) if folder.is_dir() else []
        problems.add(name, f'there is no profile "{text[:40]}"{nearest(text, known)}')
        return None
    return read_profile(path, problems)


def profiles_named(document: Item, folder: Path = PROFILES) -> list[Path]:
    """The files of the profiles that a document names anywhere, on a link or in a level that chooses one."""
    values = set(_texts(document))
    return [path for path in sorted(folder.glob("*.toml")) if path.stem in values] if folder.is_dir() else []


def _texts(item: Item) -> Iterator[str]:
    if isinstance(item.value, str):
        yield item.value
    for child in (*item.table().values(), *item.items()):
        yield from _texts(child)


def shown(path: Path) -> str:
    """A path as messages show it: relative to the working directory, if it is below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
