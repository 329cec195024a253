"""The fit of an inventory and an experiment, as text (`netwarp plan --backend hosts`)."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.units import counted, counted_of
from ..sandbox.hosts import InventoryFit, in_words


def fit_words(fit: InventoryFit) -> Iterator[str]:
    """A line each: what is lacking, what is used of each machine, and what cannot run for it."""
    yield f"{counted_of(fit.fitting, fit.cells, 'cell')} can run on these machines"
    for what, remedy in fit.problems:
        yield f"no cell runs as long as: {what}"
        yield f"  {remedy}"
    for sentence, cells in fit.lacks.items():
        yield f"{counted(cells, 'cell')}: {sentence}"
    for sentence, cells in fit.notes.items():
        yield f"{counted(cells, 'cell')}: {sentence}"
    for machine, features in fit.needs.items():
        names = dict.fromkeys(in_words(feature)[0] for feature in features if not feature.startswith("sysctl:"))
        sysctls = sum(feature.startswith("sysctl:") for feature in features)
        asked = "asked, see above" if machine in fit.asked else "not asked"
        yield f"{machine}: needs {', '.join([*names, counted(sysctls, 'sysctl')])} of its kernel ({asked})"
