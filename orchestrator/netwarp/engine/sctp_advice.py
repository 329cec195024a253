"""Finds settings of two SCTP ends that keep a budget, and shows it by cells in which the worst instant of the fault is
searched (`netwarp sctp advise`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..captures.inference import TICK_NS
from ..core.numbers import in_short
from .conclusions import advice_conclusion
from .events import Progress, no_progress
from .run_directory import Run
from .running import run
from .sctp_bounds import GAP_NS, MS, SIZE_BYTES, UP_S, SctpBudget, Settings, time_text
from .sctp_cells import needless_share, values_by_cell

FLOORS = (50, 80, 100, 150, 200, 300, 400, 500, 700, 1000)
CEILINGS = (100, 200, 300, 400, 500, 700, 900, 1000, 1500, 2000, 3000, 5000, 10_000, 30_000, 60_000)
DELAYS = (10, 20, 40, 60, 80, 120, 200)
"""Candidates of rto_min, rto_max and sack_delay in ms; the last of each is Linux' own."""
THRESHOLDS = ((0, 5), (1, 5), (2, 5), (0, 3), (1, 3))
"""Of two paths: pf_retrans and path_max_retrans, Linux' own first."""
BEATS = (30_000, 10_000, 5000, 2000, 1000)
"""heartbeat_interval in ms, likewise."""
RETRANSMISSIONS = (10, 15, 20, 30, 50, 80, 120, 200, 400)
TRIED = 3
"""Candidates that are run, those nearest to Linux' own values first."""
INSTANTS = 12
"""Lengths of the outage. The repair falls at another instant between two retransmissions in each, spread evenly."""
GOLDEN = 0.6180339887
FAULT_S = int(UP_S)
SPAN_NS = 1_000 * MS
"""The instants at which one of two paths fails are spread over so much: longer than a message's gap, a SACK's delay and
the slot of a timer.
"""
PATH_NS = 5_000 * MS
"""One of two paths fails for at least so long."""
SIZE = f"{SIZE_BYTES} B"
GAPS = ("50 ms", "1 s")
"""Mean gaps between messages in which needless retransmissions are counted, each way."""
BUSY_S = 120
FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Shown:
    """What the cells of some settings show. back_ns: the worst measured; lost: outages that ended the association. Of
    two paths moves_ns: from a path's failure to new data on the other, spare_ns: from its repair to data there.
    """

    settings: Settings
    back_ns: float | None
    computed_back_ns: float
    survives_ns: int
    moves_ns: float | None
    computed_moves_ns: float | None
    spare_ns: float | None
    computed_spare_ns: float | None
    lost: int
    outages: int
    needless: float | None
    cells: tuple[str, ...]

    def keeps(self, budget: SctpBudget) -> bool:
        """Whether everything was measured and is within the budget, and nothing took longer than was computed: a bound
        that a cell exceeds is none.
        """
        pairs = [
            (self.back_ns, self.computed_back_ns),
            (self.moves_ns, self.computed_moves_ns),
            (self.spare_ns, self.computed_spare_ns),
        ]
        return (
            all(took is None or bound is None or took <= bound for took, bound in pairs)
            and self.back_ns is not None
            and self.needless is not None
            and not self.lost
            and self.back_ns <= budget.back_ns
            and (budget.paths == 1 or self._keeps_of_two(budget))
            and self.needless <= budget.needless
        )

    def _keeps_of_two(self, budget: SctpBudget) -> bool:
        moves, spare = self.moves_ns, self.spare_ns
        return moves is not None and spare is not None and moves <= budget.back_ns and spare <= budget.spare_ns


@dataclasses.dataclass(frozen=True)
class SctpAdvice:
    """The candidates that were run, those that keep the budget first. considered: by the timers alone."""

    budget: SctpBudget
    considered: int
    shown: tuple[Shown, ...]
    run: Run | None

    def as_json(self) -> dict[str, Any]:
        """The object of `netwarp sctp advise --json`."""
        return {
            "format": FORMAT,
            "run_dir": None if self.run is None else str(self.run.path),
            "budget": dataclasses.asdict(self.budget),
            "considered": self.considered,
            "candidates": [
                dataclasses.asdict(each)
                | {"keeps": each.keeps(self.budget), "options": each.settings.options(self.budget.paths)}
                for each in self.shown
            ],
        }


def advise_sctp(
    budget: SctpBudget,
    *,
    out: str | Path | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Progress = no_progress,
    arguments: Sequence[str] = (),
) -> SctpAdvice:
    """Enumerate settings, keep those whose timers keep the budget, and run the nearest to Linux' own. No settings: the
    budget contradicts itself, and `run` is None. arguments: the words of the command line, for the manifest.
    """
    fitting = list(candidates(budget))
    chosen = chosen_of(budget, fitting)
    if not chosen:
        return SctpAdvice(budget, 0, (), None)

    def judged(done: Run) -> SctpAdvice:
        shown = sorted(_shown(done, chosen, budget), key=lambda each: not each.keeps(budget))
        return SctpAdvice(budget, len(fitting), tuple(shown), done)

    return judged(
        run(
            advice_spec(chosen, budget), out=out, seed=seed, jobs=jobs, progress=progress, arguments=arguments,
            conclude=lambda done: advice_conclusion(judged(done)),
        )
    )  # fmt: skip


def candidates(budget: SctpBudget) -> Iterator[Settings]:
    """The settings whose timers keep the budget in the worst case; of association_max_retrans the least that does, of
    two paths the longest heartbeat_interval.
    """
    two = budget.paths > 1
    for floor, ceiling, delay in itertools.product(FLOORS, CEILINGS, DELAYS):
        first = Settings(floor * MS, ceiling * MS, 0, delay * MS)
        if ceiling < floor or not first.fits(budget.rtt_ns) or first.back_ns(budget.rtt_ns) > budget.back_ns:
            continue
        for pf_retrans, path_max in THRESHOLDS if two else THRESHOLDS[:1]:
            settings = dataclasses.replace(first, pf_retrans=pf_retrans, path_max_retrans=path_max)
            found = _beating(settings, budget) if two else settings
            if found is None:
                continue
            for count in RETRANSMISSIONS:
                made = dataclasses.replace(found, association_max_retrans=count)
                if made.survives_ns(budget.paths) > budget.survive_ns:
                    yield made
                    break


def contradiction(budget: SctpBudget) -> str:
    """Of a budget that no settings keep: the limit that they could keep of the first part that excludes all."""
    every = [
        Settings(floor * MS, ceiling * MS, RETRANSMISSIONS[-1], delay * MS)
        for floor, ceiling, delay in itertools.product(FLOORS, CEILINGS, DELAYS)
        if floor <= ceiling
    ]
    every = [each for each in every if each.fits(budget.rtt_ns)]
    if not every:
        return f"an RTO of at most {time_text(FLOORS[-1] * MS)} is below the round trip and the SACK's delay"
    shortest = min(each.back_ns(budget.rtt_ns) for each in every)
    if shortest > budget.back_ns:
        return f"with this round trip the shortest --back is {limit_text(shortest, up=True)}"
    every = [each for each in every if each.back_ns(budget.rtt_ns) <= budget.back_ns]
    if budget.paths > 1:
        every = [
            dataclasses.replace(each, pf_retrans=pf_retrans, path_max_retrans=path_max)
            for each, (pf_retrans, path_max) in itertools.product(every, THRESHOLDS)
        ]
        moves = [(each.moves_ns(budget.rtt_ns), each) for each in every]
        quickest = min((time for time, _ in moves if time is not None), default=None)
        if quickest is None or quickest > budget.back_ns:
            said = "longer" if quickest is None else limit_text(quickest, up=True)
            return f"the shortest --back of two paths is {said}"
        every = [each for time, each in moves if time is not None and time <= budget.back_ns]
        beating = [found for each in every if (found := _beating(each, budget)) is not None]
        if not beating:
            tried = [
                dataclasses.replace(each, heartbeat_interval_ns=beat * MS)
                for each, beat in itertools.product(every, BEATS)
            ]
            spare = min((time for each in tried if (time := each.spare_ns(budget.rtt_ns)) is not None), default=None)
            return f"the shortest --spare is {'longer' if spare is None else limit_text(spare, up=True)}"
        every = beating
    longest = max(each.survives_ns(budget.paths) for each in every)
    return (
        f"with this --back{' and --spare' if budget.paths > 1 else ''} the longest --survive is "
        f"{limit_text(longest - 1, up=False)} (association_max_retrans up to {RETRANSMISSIONS[-1]} is enumerated)"
    )


def limit_text(value_ns: float, *, up: bool) -> str:
    """In three digits, on the side of the limit on which it holds."""
    step = 10.0 ** (math.floor(math.log10(value_ns)) - 2)
    return in_short((math.ceil if up else math.floor)(value_ns / step) * step / 1e9, "s")


def _beating(settings: Settings, budget: SctpBudget) -> Settings | None:
    """With the longest heartbeat interval that keeps the budget of two paths; None: none does."""
    moves = settings.moves_ns(budget.rtt_ns)
    if moves is None or moves > budget.back_ns:
        return None
    for beat in BEATS:
        made = dataclasses.replace(settings, heartbeat_interval_ns=beat * MS)
        spare = made.spare_ns(budget.rtt_ns)
        if spare is not None and spare <= budget.spare_ns:
            return made
    return None


def _distance(settings: Settings) -> tuple[float, ...]:
    """How far settings are from Linux' own: the fewer and the smaller changes, the better."""
    thresholds = THRESHOLDS.index((settings.pf_retrans, settings.path_max_retrans))
    return (
        1000 * MS / settings.rto_min_ns + 200 * MS / settings.sack_delay_ns,
        settings.association_max_retrans,
        thresholds,
        -settings.heartbeat_interval_ns,
        -settings.rto_max_ns,
    )


def chosen_of(budget: SctpBudget, fitting: list[Settings]) -> list[Settings]:
    """Those that are run, nearest to Linux' own first. Of two paths the nearest of each pf_retrans: with 0 a single
    lost message moves the data to the other path, with 1 not.
    """
    ordered = sorted(fitting, key=_distance)
    if budget.paths == 1:
        return ordered[:TRIED]
    chosen: dict[int, Settings] = {}
    for each in ordered:
        chosen.setdefault(each.pf_retrans, each)
    return [chosen[key] for key in sorted(chosen)][:TRIED]


def advice_spec(chosen: list[Settings], budget: SctpBudget) -> dict[str, Any]:
    """Of each candidate the outages whose repair falls at different instants, the longest that it must outlive, and
    undisturbed traffic.
    """
    link = {"between": ["a", "b"], "rtt": time_text(budget.rtt_ns), "rate": "100 Mbit/s", "queue": "1000 packets"}
    paths = [f"p{number}" for number in range(1, budget.paths + 1)]
    widest = max(each.rto_max_ns for each in chosen)
    lengths = [
        max(budget.survive_ns * number / INSTANTS - number * GOLDEN % 1 * widest, TICK_NS)
        for number in range(1, INSTANTS + 1)
    ]
    lengths.append(budget.survive_ns)
    cases: dict[str, dict[str, Any]] = {
        f"cut{number}": {
            "event": {("fault" if path == "p1" else f"fault-{path}"): _cut(path, 0, length) for path in paths},
            "duration": f"{FAULT_S + length / 1e9 + 2 * budget.back_ns / 1e9 + 10:.3f} s",
        }
        for number, length in enumerate(lengths, 1)
    }
    if len(paths) > 1:
        steady = {"gaps": time_text(GAP_NS)}
        longest_ns = max(each.spare_ns(budget.rtt_ns) or 0 for each in chosen)
        cases |= {
            f"path{number}": {
                "event": {"fault": _cut("p1", number * GOLDEN % 1 * SPAN_NS, max(length, PATH_NS))},
                "flow": {"s": {"messages": steady, "reverse": steady}},
                "duration": f"{FAULT_S + (SPAN_NS + max(length, PATH_NS) + longest_ns) / 1e9 + 10:.3f} s",
            }
            for number, length in enumerate(lengths[:-1], 1)
        }
    for number, gap in enumerate(GAPS, 1):
        cases[f"traffic{number}"] = {
            "flow": {"s": {"messages": {"gaps": {"exponential": gap}}, "reverse": {"gaps": {"exponential": gap}}}},
            "duration": f"{BUSY_S} s",
        }
    levels = {
        f"s{number}": {"flow": {"s": {"sender": options, "receiver": options}}}
        for number, options in enumerate((each.options(budget.paths) for each in chosen), 1)
    }
    gaps = {"exponential": "100 ms"}
    return {
        "format": 1,
        "name": "sctp-advise",
        "title": "Settings of SCTP that keep a budget",
        "duration": f"{BUSY_S} s",
        "node": {"a": {}, "b": {}},
        "link": dict.fromkeys(paths, link),
        "flow": {
            "s": {
                "from": "a", "to": "b", "protocol": "sctp", "paths": paths, "message_size": SIZE,
                "messages": {"gaps": gaps}, "reverse": {"gaps": gaps, "sizes": SIZE}, "sender": {"reconnect": "off"},
            }
        },
        "factor": {
            "settings": {"levels": list(levels), "level": levels},
            "case": {"levels": list(cases), "level": cases},
        },
    }  # fmt: skip


def _cut(path: str, after_ns: float, length_ns: float) -> dict[str, object]:
    at = time_text(FAULT_S * 1000 * MS + after_ns)
    return {"action": "cut", "link": path, "at": at, "for": time_text(length_ns)}


def _shown(done: Run, chosen: list[Settings], budget: SctpBudget) -> Iterator[Shown]:
    values = values_by_cell(done)
    rows = list(done.table("cells"))
    for number, settings in enumerate(chosen, 1):
        mine = [row for row in rows if row["settings"] == f"s{number}"]
        backs, shares, moves, spares, lost = [], [], [], [], 0
        whole = all(row["outcome"] == "COMPLETED" for row in mine)
        for row in mine:
            found, case = values[str(row["cell_id"])], str(row["case"])
            ended = [found.get(key) for key in (("s", "loss_noticed_s"), ("s.back", "gave_up_after_fault_s"))]
            if case.startswith("cut"):
                again = [found.get((flow, "recovery_time_s")) for flow in ("s", "s.back")]
                backs += [value for value in again if value is not None]
                lost += any(value is not None for value in ended) or None in again
            elif case.startswith("path"):
                moved, spare = (
                    [found.get((flow, name)) for flow in ("s", "s.back")]
                    for name in ("first_new_data_other_path_s", "data_on_repaired_path_s")
                )
                moves += [value for value in moved if value is not None]
                spares += [value for value in spare if value is not None]
                lost += any(value is not None for value in ended)
                whole = whole and None not in (*moved, *spare)
            else:
                known = [needless_share(found, flow) for flow in ("s", "s.back")]
                shares += [share for share in known if share is not None]
        yield Shown(
            settings=settings,
            back_ns=max(backs) * 1e9 if backs and whole else None,
            computed_back_ns=settings.back_ns(budget.rtt_ns),
            survives_ns=settings.survives_ns(budget.paths),
            moves_ns=max(moves) * 1e9 if moves and whole else None,
            computed_moves_ns=settings.moves_ns(budget.rtt_ns) if budget.paths > 1 else None,
            spare_ns=max(spares) * 1e9 if spares and whole else None,
            computed_spare_ns=settings.spare_ns(budget.rtt_ns) if budget.paths > 1 else None,
            lost=lost,
            outages=INSTANTS * budget.paths + 1,
            needless=max(shares) if shares and whole else None,
            cells=tuple(str(row["cell_id"]) for row in mine),
        )
