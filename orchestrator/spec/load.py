"""A spec file -> Spec: every error of the file at once, nothing run on an error."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SpecError
from ..study import Answer, Claim, EventTable, Expected, Figure, Metric, Source, Table, TimeSeries
from .answers import read_answers
from .expected import ExpectedReader
from .factors import ExperimentSpec, FactorSpec, check_conditions, read_experiments, read_factors
from .fields import NAME, check_keys, read_integer, read_text
from .grammar import RESOLVED, TOP
from .located import Item, parse_toml, plain, read_bounded
from .merge import merge
from .problems import Problems, nearest
from .profiles import shown
from .timeline import read_event_tables, read_time_series
from .wanted import OwnMetric, known_metrics, read_figures, read_metrics, read_tables

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
DEFAULT_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a human wrote, checked as far as it can be without a cell. `document` keeps every key's file and line."""

    name: str
    title: str
    description: str
    path: Path
    files: tuple[Path, ...]
    seed: int
    repetitions: int
    document: Item
    overrides: Item
    """What --set asks for: laid over every level, so that it always has its effect."""
    factors: Mapping[str, FactorSpec]
    experiments: tuple[ExperimentSpec, ...]
    own_metrics: tuple[OwnMetric, ...]
    metrics: Mapping[str, Metric]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    time_series: tuple[TimeSeries, ...]
    event_tables: tuple[EventTable, ...]
    answers: tuple[Answer, ...]
    sources: tuple[Source, ...]
    expected: tuple[Expected, ...]
    claims: tuple[Claim, ...]


def load_spec(path_or_name: str | Path, *, sets: Mapping[str, str] | None = None) -> Spec:
    """Load a spec: a file, a folder that holds spec.toml, or the name of a folder under experiments/.

    sets: `--set key=value`: a parameter, or a dotted key of the document, and its new value as text.
    Raises SpecError with every problem, each `file:line: key: what is wrong and a correct example`.
    """
    file = find_spec(path_or_name)
    try:
        text = read_bounded(file)
    except OSError as error:
        raise SpecError(f"{file}: cannot be read: {error.strerror}") from error
    return parse_spec(text, file, sets=sets or {})


def find_spec(path_or_name: str | Path) -> Path:
    """The spec file meant. Raises SpecError that lists what there is."""
    path = Path(path_or_name)
    candidates = [path, path / "spec.toml"]
    if NAME.fullmatch(str(path_or_name)):
        candidates += [Path("experiments") / path / "spec.toml", EXPERIMENTS / path / "spec.toml"]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    names = sorted(p.parent.name for p in EXPERIMENTS.glob("*/spec.toml"))
    raise SpecError(
        f"there is no spec file '{path_or_name}', no folder of that name with a spec.toml, and no such experiment"
        f"{nearest(str(path_or_name), names)}"
    )


def parse_spec(text: bytes, file: Path, *, sets: Mapping[str, str]) -> Spec:
    """As load_spec, from bytes; `file` says where `expected` is looked for and what messages call the spec."""
    problems = Problems()
    document = parse_toml(text, shown(file), problems)
    problems.check()
    assert document is not None
    overrides = _overrides(document, sets, problems)
    document = merge(document, overrides)
    filled = {key: child for key, child in document.table().items() if key in RESOLVED}
    check_keys(document.with_value({k: v for k, v in document.table().items() if k not in filled}), TOP, problems)
    check_keys(document.with_value(filled), RESOLVED, problems, fill=True)
    for key in ("format", "name", "duration"):
        if document.get(key) is None:
            problems.add(document, f"{key} is missing; for example {key} = {TOP[key].example}")
    _check_parameters(document, problems)
    factors = read_factors(document, problems)
    check_conditions(document, factors, problems)
    experiments = read_experiments(document, factors, problems)
    own = read_metrics(document, factors, problems)
    metrics = known_metrics(own)
    tables = read_tables(document, metrics, factors, problems)
    figures = read_figures(document, metrics, factors, problems)
    time_series = read_time_series(document, factors, problems)
    event_tables = read_event_tables(document, factors, problems)
    answers = read_answers(document, metrics, factors, problems)
    files = [file]
    sources: tuple[Source, ...] = ()
    expected: tuple[Expected, ...] = ()
    claims: tuple[Claim, ...] = ()
    other = _expected_document(document, file, files, problems)
    if other is not None:
        reader = ExpectedReader(other, factors, metrics, problems)
        sources, expected, claims = reader.sources(), reader.numbers(), reader.claims()
    problems.check()
    name = str(_value(document, "name", ""))
    return Spec(
        name=name,
        title=str(_value(document, "title", name)),
        description=str(_value(document, "description", "")),
        path=file,
        files=tuple(files),
        seed=_integer(document, "seed", DEFAULT_SEED),
        repetitions=_integer(document, "repetitions", 1),
        document=document,
        overrides=overrides.with_value({k: v for k, v in overrides.table().items() if k in RESOLVED}),
        factors=factors,
        experiments=experiments,
        own_metrics=own,
        metrics=metrics,
        tables=tables,
        figures=figures,
        time_series=time_series,
        event_tables=event_tables,
        answers=answers,
        sources=sources,
        expected=expected,
        claims=claims,
    )


def _value(document: Item, key: str, default: Any) -> Any:
    item = document.get(key)
    return default if item is None else item.value


def _integer(document: Item, key: str, default: int) -> int:
    item = document.get(key)
    return default if item is None else (read_integer(item, TOP[key], Problems()) or 0)


def _check_parameters(document: Item, problems: Problems) -> None:
    parameters = document.get("parameter")
    for name, item in parameters.table().items() if parameters is not None else ():
        if not NAME.fullmatch(name) or name in TOP:
            problems.add(
                item, f'"{name[:40]}" is no name for a parameter: 1 to 32 of a-z 0-9 _ -, and no key of a spec'
            )
        if not isinstance(item.value, str):
            problems.add(item, 'a parameter is text, with its unit; for example rate = "1 Mbit/s"')


def _expected_document(document: Item, file: Path, files: list[Path], problems: Problems) -> Item | None:
    item = document.get("expected")
    name = read_text(item, TOP["expected"], Problems()) if item is not None else None
    if item is None or name is None:
        return None
    *stem, suffix = name.split(".")  # every part is a name: no folder, no hidden file, nothing upwards
    if suffix != "toml" or not stem or not all(NAME.fullmatch(part) for part in stem):
        problems.add(item, f'"{name[:60]}" must be a .toml file beside the spec; for example "expected.toml"')
        return None
    path = file.parent / name
    if not path.is_file():
        problems.add(item, f'there is no file "{name}" beside the spec; leave the key out, or write the file')
        return None
    files.append(path)
    return parse_toml(read_bounded(path), shown(path), problems)


def _overrides(document: Item, sets: Mapping[str, str], problems: Problems) -> Item:
    layer = plain({}, "--set", 0, "")
    parameters = document.get("parameter")
    for key, text in sets.items():
        path = _split(key)
        if len(path) == 1 and parameters is not None and path[0] in parameters.table():
            path = ["parameter", *path]
        if not path or (path[0] not in TOP and len(path) >= 1):
            known = [*(parameters.table() if parameters is not None else ()), *TOP]
            problems.add_at("--set", 0, key, f"unknown key{nearest(path[0] if path else key, known)}")
            continue
        if path[0] == "parameter" and (parameters is None or path[-1] not in parameters.table()):
            known = list(parameters.table()) if parameters is not None else []
            problems.add_at("--set", 0, key, f'unknown parameter "{path[-1]}"{nearest(path[-1], known)}')
            continue
        there = document.get(*path)
        value: Any = text if there is not None and isinstance(there.value, str) else _toml_value(text)
        item = plain(value, "--set", 0, key)
        for name in reversed(path):
            item = Item({name: item}, "--set", 0, key)
        layer = merge(layer, item)
    return layer


def _split(key: str) -> list[str]:
    """The parts of a dotted TOML key (`factor.outage."10 s".title`)."""
    try:
        found: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        return []
    path: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        name, found = next(iter(found.items()))
        path.append(name)
    return path


def _toml_value(text: str) -> Any:
    """A number, true, false, list or table if the text is one in TOML, else the text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, (bool, int, float, list, dict, str)) else text
