"""The sets of selftests, scripts of packetdrill and parts of experiments that `netwarp kernel watch` runs on a kernel
(experiments/watch/sets.toml, or a file of the user's own).
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from ..core.checkout import CHECKOUT
from ..core.errors import SpecError
from ..core.frozen import Frozen

SETS = CHECKOUT / "experiments/watch/sets.toml"


SPEC_KEYS = frozenset(("format", "name", "node"))
"""At the top of a file they say that it is a spec."""


class WatchRun(Frozen, frozen=True):
    """A part of an experiment. spec: as for `load_experiment`; only, where: as for `plan_experiment`."""

    spec: str
    only: tuple[str, ...] = ()
    where: dict[str, str | list[str]] = msgspec.field(default_factory=dict)


class WatchSet(Frozen, frozen=True):
    """What is run on a kernel. selftests: COLLECTION:PROGRAM each; packetdrill: patterns of scripts."""

    name: str = ""
    runs: tuple[WatchRun, ...] = ()
    selftests: tuple[str, ...] = ()
    packetdrill: tuple[str, ...] = ()


def watch_set(name: str, file: Path = SETS) -> WatchSet:
    """The set of that name; with a `/` or .toml in it, the only set of that file, or the spec that it is. Raises
    SpecError.
    """
    if "/" in name or name.endswith(".toml"):
        file, name = Path(name).expanduser(), ""
    try:
        read = tomllib.loads(file.read_text())
        if not name and SPEC_KEYS & read.keys():
            return WatchSet(file.stem, (WatchRun(str(file)),))
        sets = msgspec.convert(read, dict[str, WatchSet])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise SpecError(f'{file}: {error}; a set is written as [mine] and runs = [{{ spec = "watch" }}]') from error
    if not name and len(sets) == 1:
        name = next(iter(sets))
    if name not in sets:
        wanted = f"there is no set {name}" if name else "a file of one's own holds one set"
        known = f"it has {', '.join(sets)}: --set {next(iter(sets), 'small')}"
        raise SpecError(f"{file}: {wanted}; {known}; a spec is named by its file: --set ./mine.toml")
    chosen = msgspec.structs.replace(sets[name], name=name)
    here = file.parent
    if file != SETS:  # a spec of one's own is found beside the file
        beside = {run.spec: str(here / run.spec) for run in chosen.runs if (here / run.spec).is_file()}
        runs = tuple(msgspec.structs.replace(run, spec=beside.get(run.spec, run.spec)) for run in chosen.runs)
        chosen = msgspec.structs.replace(chosen, runs=runs)
    return chosen
