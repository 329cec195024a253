"""What an experiment written in Python holds in its hands: a node, link, flow, ..., and the dotted keys below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .fields import Field
from .problems import nearest
from .toml_positions import Steps, dotted

PYTHON_WORDS = {"from_": "from", "for_": "for", "class_": "class"}
"""Keys of a spec that are words of Python, as keywords are written -> the key."""


class Key:
    """The dotted key of a value, such as `link.way.queue`: what `sets` of a factor and `--set` take."""

    def __init__(self, path: Steps, fields: Mapping[str, Field]) -> None:
        self._path, self._fields = path, fields

    if not TYPE_CHECKING:  # a type checker knows the keys of each handle from study_keys.pyi

        def __getattr__(self, name: str) -> Key:
            key = PYTHON_WORDS.get(name, name)
            if key not in self._fields:
                raise AttributeError(f"{dotted(self._path)} has no key {name!r}{nearest(key, self._fields)}")
            return Key((*self._path, key), self._fields[key].fields or {})

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    def __str__(self) -> str:
        return dotted(self._path)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {dotted(self._path)}>"


class Handle(Key):
    """A named table of the experiment. As a value, and in an f-string, it stands for its name."""

    def __str__(self) -> str:
        return str(self._path[-1])


class FactorHandle(Handle):
    """A factor; where a value is to be its level, write `level`."""

    @property
    def level(self) -> str:
        """The text that stands for the level of each cell, `"{name}"`."""
        return f"{{{self}}}"


class Parameter(Key):
    """A parameter; where a value is to be its value, write `value`. As a value of `sets` it stands for its key."""

    @property
    def value(self) -> str:
        """The text that stands for the parameter's value in each cell, `"{name}"`."""
        return f"{{{self._path[-1]}}}"
