"""An experiment written in Python. Each call adds what a table of spec.toml says and gives a handle of it; the file and
line of the call are the position of its keys, so that the same checks give the same errors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

from ..core.errors import SpecError
from .fields import Field
from .grammar import EVENT, FACTOR_KEYS, FLOW, LINK, NODE
from .load import Spec, load_spec, parse_spec, read_spec
from .problems import Problems, nearest
from .profiles import shown
from .toml_positions import DEEPEST, Item, Steps, dotted
from .toml_writer import plain, toml_text

if TYPE_CHECKING:
    from . import study_keys as of

PYTHON_WORDS = {"from_": "from", "for_": "for", "class_": "class"}
"""Keys of a spec that are words of Python, as keywords are written -> the key."""
PACKAGE = __name__.partition(".")[0]


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


class Study:
    """The document of an experiment in the making. Files that it names are beside the Python file that began it."""

    def __init__(self, name: str, **keys: Unpack[of.TopKeys]) -> None:
        self._mistakes: list[tuple[Item, str]] = []
        path, here = _caller()
        self._document = here.with_value({})
        self._folder = path.parent if path.is_file() else Path()
        self._put({"format": 1, "name": name, **keys})

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> Study:
        """The experiment that a dict with the keys of a spec says."""
        study = cls("")
        study._document.table().clear()
        study._put(document)
        return study

    def set(self, **keys: Unpack[of.TopKeys]) -> None:
        """Set more keys of the top, for example those that name what was added since."""
        self._put(keys)

    def node(self, name: str, **keys: Unpack[of.NodeKeys]) -> of.Node:
        """A node, a host where `kind` says nothing else."""
        return cast("of.Node", self._add("node", name, keys, NODE))

    def host(self, name: str, **keys: Unpack[of.NodeKeys]) -> of.Node:
        """A node on which flows begin and end."""
        return self.node(name, **keys)

    def router(self, name: str, **keys: Unpack[of.NodeKeys]) -> of.Node:
        """A node that forwards packets."""
        return cast("of.Node", self._add("node", name, {"kind": "router", **keys}, NODE))

    def switch(self, name: str, **keys: Unpack[of.NodeKeys]) -> of.Node:
        """A node that is one Ethernet segment."""
        return cast("of.Node", self._add("node", name, {"kind": "switch", **keys}, NODE))

    def link(
        self, name: str, a: of.Name | None = None, b: of.Name | None = None, /, **keys: Unpack[of.LinkKeys]
    ) -> of.Link:
        """A link between two nodes; they are left out where `like` or the shape has them."""
        ends = {} if a is None and b is None else {"between": [end for end in (a, b) if end is not None]}
        return cast("of.Link", self._add("link", name, {**ends, **keys}, LINK))

    def flow(
        self, name: str, sender: of.Name | None = None, receiver: of.Name | None = None, /, **keys: Unpack[of.FlowKeys]
    ) -> of.Flow:
        """A flow from one host to another; they are left out where `like` or a default has them."""
        ends = {key: end for key, end in (("from", sender), ("to", receiver)) if end is not None}
        return cast("of.Flow", self._add("flow", name, {**ends, **keys}, FLOW))

    def event(self, name: str, **keys: Unpack[of.EventKeys]) -> of.Event:
        """A fault or a change of a link."""
        return cast("of.Event", self._add("event", name, keys, EVENT))

    def parameter(self, name: str, value: str) -> Parameter:
        """A value with a name, for `{name}` in texts."""
        self._put({"parameter": {name: value}})
        return Parameter(("parameter", name), {})

    def factor(
        self,
        name: str,
        levels: Sequence[str] | Mapping[str, of.LevelKeys] = (),
        /,
        **keys: Unpack[of.FactorKeys],
    ) -> FactorHandle:
        """A factor. levels: their names, or what each changes; none for schedules of packets."""
        tables = {level: table for level, table in levels.items() if table} if isinstance(levels, Mapping) else {}
        listed = {"levels": list(levels)} if levels else {}
        self._add("factor", name, {**listed, **keys, **({"level": tables} if tables else {})})
        return FactorHandle(("factor", name), FACTOR_KEYS)

    def experiment(self, name: str, **keys: Unpack[of.ExperimentKeys]) -> Handle:
        """A combination of factors."""
        return self._add("experiment", name, keys)

    def metric(self, name: str, **keys: Unpack[of.MetricKeys]) -> Handle:
        """A metric computed from others."""
        return self._add("metric", name, keys)

    def table(self, name: str, **keys: Unpack[of.TableKeys]) -> Handle:
        """A table of a metric over factors, or of the packets around a fault."""
        return self._add("table", name, keys)

    def figure(self, name: str, **keys: Unpack[of.FigureKeys]) -> Handle:
        """A figure of a metric over factors, or of series over time."""
        return self._add("figure", name, keys)

    def answer(self, name: str, **keys: Unpack[of.AnswerKeys]) -> Handle:
        """A question of settings and budgets."""
        return self._add("answer", name, keys)

    def source(self, name: str, **keys: Unpack[of.SourceKeys]) -> Handle:
        """A source of claims or of published numbers."""
        return self._add("source", name, keys)

    def word(self, name: str, **keys: Unpack[of.WordKeys]) -> Handle:
        """A word of a paper as a tolerance."""
        return self._add("word", name, keys)

    def column(self, name: str, **keys: Unpack[of.ColumnKeys]) -> Handle:
        """A condition under which claims are judged again."""
        return self._add("column", name, keys)

    def claim(self, id: str, **keys: Unpack[of.ClaimKeys]) -> None:
        """A claim to test."""
        _, here = _caller()
        claims = self._document.table().setdefault("claim", here.with_value([]))
        claims.items().append(self._item({"id": id, **keys}, ("claim", len(claims.items())), here))

    def to_toml(self) -> str:
        """The experiment as the text of a spec.toml."""
        return toml_text(plain(self._document))

    def spec(self, sets: Mapping[str, str] | None = None) -> Spec:
        """The experiment, checked. Raises SpecError with every problem, each with the file and line of its call."""
        problems = Problems()
        for item, text in self._mistakes:
            problems.add(item, text)
        problems.check()
        return read_spec(self._document, self.to_toml().encode(), self._folder, problems, sets=sets or {})

    def __repr__(self) -> str:
        name = self._document.get("name")
        return f"<{type(self).__name__} {'' if name is None else name.value!r}>"

    def _add(
        self, section: str, name: str, keys: Mapping[str, object], fields: Mapping[str, Field] | None = None
    ) -> Handle:
        """Add a named table. A type checker knows the keys of its handle from study_keys.pyi."""
        self._put({section: {name: keys}})
        return Handle((section, name), fields or {})

    def _put(self, keys: Mapping[str, object]) -> None:
        """Lay tables over the document. A key that is there already is a mistake."""
        self._lay(self._document, self._item(keys, (), _caller()[1]), ())

    def _lay(self, base: Item, patch: Item, path: Steps) -> None:
        there = base.table()
        for key, child in patch.table().items():
            if key not in there:
                there[key] = child
            elif len(path) < 1 and isinstance(there[key].value, dict) and isinstance(child.value, dict):
                self._lay(there[key], child, (*path, key))
            else:
                self._mistakes.append((child, f"stands in line {there[key].line} already; leave one of the two out"))

    def _item(self, value: object, path: Steps, here: Item) -> Item:
        """A value with its position; what no spec can hold is a mistake."""
        item = Item("", here.file, here.line, dotted(path))
        if isinstance(value, Key):
            return item.with_value(str(value))
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            self._mistakes.append((item, "is no text that a file can hold: it has half of a surrogate pair"))
        elif isinstance(value, str | int | float):
            return item.with_value(value)
        elif len(path) > DEEPEST:
            self._mistakes.append((item, f"nested deeper than {DEEPEST} levels"))
        elif isinstance(value, Mapping):
            named = {PYTHON_WORDS.get(str(key), str(key)): child for key, child in value.items()}
            return item.with_value({key: self._item(child, (*path, key), here) for key, child in named.items()})
        elif isinstance(value, list | tuple):
            return item.with_value([self._item(child, (*path, n), here) for n, child in enumerate(value)])
        else:
            said = f'is a {type(value).__name__}, which no key of a spec holds; write text, for example "10 s"'
            self._mistakes.append((item, said))
        return item


AnyExperiment = str | Path | Mapping[str, object] | Study | Spec
"""An experiment: a spec file, the name of a folder of experiments/, the text of a spec (of several lines), a dict with
its keys, one written in Python, or what load_experiment gave.
"""


def load_experiment(spec: AnyExperiment, *, sets: Mapping[str, str] | None = None) -> Spec:
    """Load and check an experiment. Files that it names are beside it; those of a text, in the working directory.

    sets: parameter or dotted key -> value that replaces the spec's. Raises SpecError with every problem of the file.
    """
    if isinstance(spec, Spec):
        if sets:
            raise SpecError("sets: the experiment is loaded already; give them to load_experiment")
        return spec
    if isinstance(spec, Study):
        return spec.spec(sets)
    if isinstance(spec, Mapping):
        return Study.from_dict(spec).spec(sets)
    given: object = spec  # of code that no type checker has seen
    if not isinstance(given, str | os.PathLike):
        what = f"not a {type(given).__name__}"
        raise SpecError(f"an experiment is a spec's file, name, text or dict, or a netwarp.Experiment, {what}")
    if isinstance(spec, str) and "\n" in spec:
        return parse_spec(spec.encode(), None, sets=sets or {})
    return load_spec(spec, sets=sets)


def _caller() -> tuple[Path, Item]:
    """The Python file that called netwarp, and the position of the call."""
    frame = sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == PACKAGE:
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    return path, Item("", shown(path) if path.is_file() else str(path), frame.f_lineno, "")
