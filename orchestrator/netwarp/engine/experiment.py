"""An experiment written in Python that can be planned and run: `netwarp.Experiment`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from ..experiment import AnyExperiment, Study
from .planning import plan_experiment
from .running import run

Options = ParamSpec("Options")
Result = TypeVar("Result")


def _of_experiment(
    function: Callable[Concatenate[AnyExperiment, Options], Result],
) -> Callable[Concatenate[Study, Options], Result]:
    """A function of an experiment as its method, with the same options."""

    @functools.wraps(function)
    def method(experiment: Study, /, *args: Options.args, **options: Options.kwargs) -> Result:
        return function(experiment, *args, **options)

    return method


class Experiment(Study):
    """An experiment: nodes, links, flows, events, and the factors that are varied.

    Each method adds what a table of a spec.toml says (docs/spec.md); what it returns is a handle: its name as a value,
    and the dotted keys below it (`way.queue`) for `sets` of a factor. Mistakes are reported when it is planned or run,
    all together, with the file and line of each call.
    """

    plan = _of_experiment(plan_experiment)
    run = _of_experiment(run)
