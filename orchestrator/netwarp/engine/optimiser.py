"""Chooses the next points of a box of factors, where a number is to be largest: Optuna's TPE sampler (the extra
`search`; docs/decisions/0023-search.md).
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from ..core.errors import SpecError
from ..core.extras import install_extra

if TYPE_CHECKING:
    import optuna

Point = tuple[str, ...]
"""A level of each factor of the box, in its order."""
BY_CHANCE = 10
"""Points are drawn until so many have a value; what the sampler chooses from then on rests on values."""
_TRIES = 20


def need_optuna() -> None:
    """Raise SpecError if Optuna is not installed."""
    if importlib.util.find_spec("optuna") is None:
        raise SpecError(f"a search needs optuna, which is not installed: {install_extra('search')}")


class Optimiser:
    """Asks for points that were not asked for before. Equal seeds and equal values give equal points, if as many are
    asked for at once. drawn: those of them that were drawn by chance.
    """

    def __init__(
        self,
        levels: Mapping[str, tuple[str, ...]],
        ordered: Collection[str],
        points: Collection[Point],
        seed: int,
        *,
        largest: bool,
    ) -> None:
        """levels: factor -> its levels. ordered: the factors whose levels are quantities in order. points: those that
        there are; not every combination need be one.
        """
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(
            direction="maximize" if largest else "minimize",
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=BY_CHANCE),
        )
        self._levels = levels
        self._ordered = frozenset(ordered)
        self._unseen = dict.fromkeys(points)
        self._random = random.Random(seed)
        self._open: dict[Point, optuna.Trial] = {}
        self._with_value = 0
        self.drawn: set[Point] = set()

    def ask(self, count: int) -> list[Point]:
        """New points, at most so many; none: all were asked for."""
        return list(self._new(count))

    def _new(self, count: int) -> Iterator[Point]:
        for _ in range(min(count, len(self._unseen))):
            point = next((point for point in self._proposed() if point in self._unseen), None)
            if point is None:  # the sampler comes back to points that are known
                point = self._random.choice(list(self._unseen))
                self._study.enqueue_trial(dict(zip(self._levels, map(self._value, self._levels, point), strict=True)))
                self._open[point] = self._trial()[1]
                self.drawn.add(point)
            if self._with_value < BY_CHANCE:
                self.drawn.add(point)
            del self._unseen[point]
            yield point

    def _proposed(self) -> Iterator[Point]:
        from optuna.trial import TrialState

        for _ in range(_TRIES):
            point, trial = self._trial()
            if point in self._unseen:
                self._open[point] = trial
            else:
                self._study.tell(trial, state=TrialState.FAIL)
            yield point

    def _trial(self) -> tuple[Point, optuna.Trial]:
        trial = self._study.ask()
        point = []
        for name, levels in self._levels.items():
            if name in self._ordered:
                point.append(levels[trial.suggest_int(name, 0, len(levels) - 1)])
            else:
                point.append(str(trial.suggest_categorical(name, levels)))
        return tuple(point), trial

    def _value(self, factor: str, level: str) -> int | str:
        return self._levels[factor].index(level) if factor in self._ordered else level

    def tell(self, point: Point, value: float | None) -> None:
        """What was measured at a point that was asked for; None: nothing."""
        from optuna.trial import TrialState

        trial = self._open.pop(point)
        if value is None:
            self._study.tell(trial, state=TrialState.FAIL)
        else:
            self._study.tell(trial, value)
            self._with_value += 1
