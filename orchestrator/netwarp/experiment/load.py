"""Loads a spec file into a Spec. All errors of the file are reported together, and nothing is run then."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.checkout import CHECKOUT
from ..core.errors import SpecError
from ..core.inside import InsidePath
from ..core.names import NAME
from ..core.outputs import (
    Answer,
    Claim,
    Column,
    EventTable,
    Figure,
    Metric,
    PublishedNumber,
    Source,
    Summary,
    Table,
    TimeSeries,
    Word,
)
from .arrivals import SIZE_FILE
from .factors import ExperimentSpec, FactorSpec, check_conditions, layers, read_experiments, read_factors, with_flows
from .fields import check_keys
from .grammar import RESOLVED, TOP
from .loops import expand_outputs
from .merge import merge
from .page_flows import HAR_FILE
from .problems import Problems, nearest
from .profiles import shown
from .programs import PROGRAM_FILES
from .published_numbers import read_published
from .read_claims import FILE, ClaimReader
from .read_heartbeats import HEARTBEAT_FILE
from .read_messages import MESSAGE_FILE
from .read_outputs import OutputReader, OwnMetric, known_metrics, read_metrics
from .sections import check_references, read_overrides
from .side_files import refused_link, with_side_files
from .toml_positions import Item, parse_toml, read_bounded
from .traces import with_trace_files

log = logging.getLogger(__name__)
EXPERIMENTS = CHECKOUT / "experiments"
SPEC_NAME = "spec.toml"
DEFAULT_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Spec:
    """A spec as written, checked as far as possible without resolving a cell. `document` keeps the file and line of
    every key.
    """

    name: str
    title: str
    description: str
    path: Path | None
    """None: written in Python, or given as text."""
    folder: Path
    """The folder that the files it names are in."""
    files: Mapping[str, bytes]
    """The spec as TOML, and the files that it names, by their names."""
    seed: int
    repetitions: int
    document: Item
    overrides: Item
    """The parameters of --set: laid over every level, so that they always have their effect."""
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
    expected: tuple[PublishedNumber, ...]
    claims: tuple[Claim, ...]
    columns: tuple[Column, ...]
    headline: tuple[str, ...]
    summary: Summary | None
    words: tuple[Word, ...]
    key_figure: str
    claim_places: Mapping[str, Item]
    """Claim, by its id -> where it is written."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    def text(self) -> bytes:
        """The spec as TOML."""
        return next(iter(self.files.values()))


def load_spec(path_or_name: str | Path, *, sets: Mapping[str, str] | None = None) -> Spec:
    """Load a spec: a file, a folder with spec.toml, or the name of a folder under experiments/.

    sets: `--set key=value`: a parameter or a dotted key of the document, and its new value as text. Raises SpecError
    with every problem, each as `file:line: key: what is wrong and a correct example`.
    """
    file = find_spec(path_or_name)
    if file.suffix == ".py":
        raise SpecError(f"{file}: an experiment in Python is a program: python {file}; its to_toml() gives a spec.toml")
    try:
        text = read_bounded(file)
    except OSError as error:
        raise SpecError(f"{file}: cannot be read: {error.strerror}") from error
    return parse_spec(text, file, sets=sets or {})


def find_spec(path_or_name: str | Path) -> Path:
    """The path of the spec file. Raises SpecError that lists the existing ones."""
    path = Path(path_or_name)
    candidates = [path, path / SPEC_NAME]
    if NAME.fullmatch(str(path_or_name)):
        candidates += [Path("experiments") / path / SPEC_NAME, EXPERIMENTS / path / SPEC_NAME]
    found = [candidate for candidate in candidates if candidate.is_file()]
    if found:
        if found[-1].is_relative_to(EXPERIMENTS) and not found[0].samefile(found[-1]):
            log.warning("%s is %s here; the experiment of that name is %s", path_or_name, found[0], found[-1])
        return found[0]
    beside = path.parent.glob("*.toml") if path.parent.is_dir() else ()
    names = [*sorted(map(str, beside)), *sorted(p.parent.name for p in EXPERIMENTS.glob("*/spec.toml"))]
    raise SpecError(
        f"there is no spec file '{path_or_name}', no folder of that name with a spec.toml, and no such experiment"
        f"{nearest(str(path_or_name), names)}"
    )


def parse_spec(text: bytes, file: Path | None, *, sets: Mapping[str, str]) -> Spec:
    """As load_spec, from bytes. `file`: its folder is searched for `expected`, and messages name it; None: a text that
    is in no file, which names files of the working directory.
    """
    problems = Problems()
    document = parse_toml(text, "the text" if file is None else shown(file), problems)
    problems.check()
    assert document is not None
    return read_spec(document, text, Path() if file is None else file.parent, problems, sets=sets, path=file)


def read_spec(
    document: Item, text: bytes, folder: Path, problems: Problems, *, sets: Mapping[str, str], path: Path | None = None
) -> Spec:
    """Check a document and everything beside it in `folder`; text: the document as TOML. Raises SpecError."""
    files = {SPEC_NAME if path is None else path.name: text}
    _check_format(document, problems)
    document = expand_outputs(document, problems)
    overrides = read_overrides(document, sets, problems)
    document = merge(document, overrides)
    for kind in (HAR_FILE, SIZE_FILE, MESSAGE_FILE, HEARTBEAT_FILE, PROGRAM_FILES):
        document, overrides = (with_side_files(item, kind, folder, files, problems) for item in (document, overrides))
    for item in (document, overrides):
        with_trace_files(item, folder, files, problems)
    filled = {key: child for key, child in document.table().items() if key in RESOLVED}
    of_claims = {key: child for key, child in document.table().items() if key in FILE}
    rest = {key: child for key, child in document.table().items() if key not in RESOLVED and key not in FILE}
    check_keys(document.with_value(rest), {**TOP, **FILE}, problems)
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
    names = tuple(experiment.name for experiment in experiments)
    known = OutputReader(with_flows(document, factors), names, metrics, problems)
    tables, figures = known.tables(document), known.figures(document)
    time_series, event_tables = known.time_series(document), known.event_tables(document)
    answers = known.answers(document)
    claims_document = document.with_value(of_claims)
    other = _beside(document, "expected", folder, problems)
    if other is not None:
        for child in of_claims.values():
            problems.add(child, f"stands in {other.name}, which the key `expected` names; write it there")
        files[other.name] = read_bounded(other)
        claims_document = parse_toml(files[other.name], shown(other), problems) or document.with_value({})
    reader = ClaimReader(claims_document, known)
    sources, claims, columns = reader.sources(), reader.claims(), reader.columns()
    headline, summary = reader.headline(), reader.summary()
    expected: tuple[PublishedNumber, ...] = ()
    published = _beside(document, "published", folder, problems)
    if published is not None:
        files[published.name] = read_bounded(published)
        expected = read_published(files[published.name], shown(published), [source.name for source in sources], known)
    for each in own:
        if each.metric.source and all(number.source != each.metric.source for number in expected):
            problems.add(each.item, f'published.csv has no number of "{each.metric.source}"')
    key_figure = _key_figure(document, (*figures, *time_series), problems)
    if len(problems):
        check_references(layers(document, factors), problems)  # else the plan says it, of every cell
    problems.check()
    name = document.text("name")
    seed = document.integer("seed")
    return Spec(
        name=name,
        title=document.text("title", name),
        description=document.text("description"),
        path=path,
        folder=folder,
        files=files,
        seed=DEFAULT_SEED if seed is None else seed,
        repetitions=document.integer("repetitions") or 1,
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
        columns=columns,
        headline=headline,
        summary=summary,
        words=tuple(reader.words.values()),
        key_figure=key_figure,
        claim_places=reader.places,
    )


def _key_figure(document: Item, figures: Sequence[Figure | TimeSeries], problems: Problems) -> str:
    """The figure that the report shows first; "" if none is named."""
    item, names = document.get("key_figure"), [figure.name for figure in figures]
    if item is not None and item.value not in names:
        problems.add(item, f'there is no figure "{str(item.value)[:40]}"{nearest(str(item.value), names)}')
    return "" if item is None else str(item.value)


def _check_format(document: Item, problems: Problems) -> None:
    """Reports a file of another version of the grammar; no other problem of it is reported then."""
    item, low = document.get("format"), TOP["format"].low
    if item is not None and (isinstance(item.value, bool) or item.value != low):
        problems.add(item, f"this netwarp reads format {int(low or 0)}; write format = {int(low or 0)}")
        problems.check()


def _check_parameters(document: Item, problems: Problems) -> None:
    for name, item in document.under("parameter").items():
        if not NAME.fullmatch(name) or name in TOP:
            problems.add(
                item, f'"{name[:40]}" is no name for a parameter: 1 to 32 of a-z 0-9 _ -, and no key of a spec'
            )
        if not isinstance(item.value, str):
            problems.add(item, 'a parameter is text, with its unit; for example rate = "1 Mbit/s"')


def _beside(document: Item, key: str, folder: Path, problems: Problems) -> Path | None:
    """The file next to the spec that a key names; None if there is none or it is wrong (the problem is collected)."""
    item = document.get(key)
    name = document.text(key)
    if item is None or not isinstance(item.value, str):
        return None
    example = TOP[key].example
    kind = example.strip('"').partition(".")[2]
    *stem, suffix = name.split(".")  # every part is a name: no folder, no hidden file, nothing upwards
    if suffix != kind or not stem or not all(NAME.fullmatch(part) for part in stem):
        problems.add(item, f'"{name[:60]}" must be a .{kind} file beside the spec; for example {example}')
        return None
    path = InsidePath.at(folder, folder / name)
    if refused_link(item, path, problems):
        return None
    if not path.is_file():
        problems.add(item, f'there is no file "{name}" beside the spec; leave the key out, or write the file')
        return None
    return path
