"""Files beside a spec whose content takes the place of their name in the document: pages, messages, sizes of flows,
files of programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.inside import InsidePath
from ..core.names import NAME
from .problems import Problems
from .toml_positions import Item, Scalar

Content = Scalar | Sequence["Content"]


@dataclass(frozen=True, slots=True)
class SideFile:
    """A key that names such a file. tables: where it stands, by the last words of the table's own key ("page").

    kinds: endings of the file's name; none: any. read: from its bytes to what stands in its place; raises ValueError
    with what is wrong with the file. many: the key has a list of names, each of which becomes [name, content].
    """

    tables: tuple[str, ...]
    key: str
    kinds: tuple[str, ...]
    example: str
    largest_bytes: int
    read: Callable[[bytes], Content]
    many: bool = False


def with_side_files(item: Item, which: SideFile, folder: Path, files: dict[str, bytes], problems: Problems) -> Item:
    """The document with every file of this key read into its place; `files` gets their bytes."""
    if isinstance(item.value, list):
        return item.with_value([with_side_files(child, which, folder, files, problems) for child in item.value])
    if not isinstance(item.value, dict):
        return item
    read = {key: with_side_files(child, which, folder, files, problems) for key, child in item.value.items()}
    named = item.get(which.key)
    here = any(f".{item.key}".endswith(f".{table}") for table in which.tables)
    if here and not which.many and named is not None and isinstance(named.value, str):
        read[which.key] = _read(named, which, folder, files, problems)
    if here and which.many and named is not None and isinstance(named.value, list):
        children = [
            child.with_value([child, _read(child, which, folder, files, problems)])
            if isinstance(child.value, str)
            else child
            for child in named.value
        ]
        read[which.key] = named.with_value(children)
    return item.with_value(read)


def _read(item: Item, which: SideFile, folder: Path, files: dict[str, bytes], problems: Problems) -> Item:
    name = str(item.value)
    stem, _, kind = name.rpartition(".")
    path = InsidePath.at(folder, folder / name)
    known = kind in which.kinds if which.kinds else bool(NAME.fullmatch(kind))
    named = known and NAME.fullmatch(stem)
    if named and refused_link(item, path, problems):
        return item
    if not named or not path.is_file():
        kinds = " or ".join(f".{each}" for each in which.kinds)
        said = f'"{name[:60]}" is no {f"{kinds} file".strip()} beside the spec'
        example = f'["{which.example}"]' if which.many else f'"{which.example}"'
        problems.add(item, f"{said}; for example {which.key} = {example}")
        return item
    try:
        if path.stat().st_size > which.largest_bytes:
            raise ValueError(f"is larger than {which.largest_bytes} bytes")
        files[name] = path.read_bytes()
        return _in_place(item, which.read(files[name]))
    except ValueError as error:
        problems.add(item, f"{name} {error}")
        return item


def refused_link(item: Item, path: InsidePath, problems: Problems) -> bool:
    """True if a file beside the spec is a link, which may lead out of its folder (the problem is collected)."""
    linked = path.is_symlink()
    if linked:
        problems.add(item, f'"{path.name}" is a symbolic link, and a spec reads files of its own folder only: copy it')
    return linked


def _in_place(item: Item, content: Content) -> Item:
    """The content at the position of the file's name, and so is every part of it."""
    if isinstance(content, Scalar):
        return item.with_value(content)
    return item.with_value([_in_place(item, part) for part in content])
