"""Finds settings of two SCTP ends that keep a budget, and shows it by cells in which the worst instant of the fault is
searched (`netwarp sctp advise`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..captures.inference import TICK_NS
from ..core.errors import SpecError
from ..core.units import Quantity, format_quantity, parse_quantity
from .events import Progress, no_progress
from .run_directory import Run
from .running import run
from .sctp_cells import answered_in_time, latest_ns, needless_share, values_by_cell

MS = 1_000_000
FLOORS = (50, 80, 100, 150, 200, 300, 400, 500, 700, 1000)
CEILINGS = (100, 200, 300, 400, 500, 700, 900, 1000, 1500, 2000, 3000, 5000, 10_000, 30_000, 60_000)
DELAYS = (10, 20, 40, 60, 80, 120, 200)
"""Candidates of rto_min, rto_max and sack_delay in ms; the last of each is Linux' own."""
RETRANSMISSIONS = (10, 15, 20, 30, 50, 80, 120, 200, 400)
TRIED = 3
"""Candidates that are run, those nearest to Linux' own values first."""
INSTANTS = 12
"""Lengths of the outage. The repair falls at another instant between two retransmissions in each, spread evenly."""
GOLDEN = 0.6180339887
FAULT_S = 20
GAPS = ("50 ms", "1 s")
"""Mean gaps between messages in which needless retransmissions are counted, each way."""
BUSY_S = 120
FORMAT = 1


@dataclasses.dataclass(frozen=True)
class SctpBudget:
    """What signalling must keep, on one path. back_ns: from a repair to new data, at most; survive_ns: an outage that
    the association must outlive; needless: share of messages sent twice without loss, at most.
    """

    back_ns: int
    survive_ns: int
    needless: float
    rtt_ns: int

    @classmethod
    def read(cls, back: str, survive: str, needless: str, rtt: str) -> SctpBudget:
        """From texts with units. Raises SpecError."""
        values = []
        for name, text, kind in (
            ("--back", back, "time"), ("--survive", survive, "time"),
            ("--needless", needless, "ratio"), ("--rtt", rtt, "time"),
        ):  # fmt: skip
            try:
                values.append(parse_quantity(text, kind).value)  # type: ignore[arg-type]
            except ValueError as error:
                raise SpecError(f"{name}: {error}") from error
        return cls(int(values[0]), int(values[1]), float(values[2]), int(values[3]))


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of both ends alike, in ns."""

    rto_min_ns: int
    rto_max_ns: int
    association_max_retrans: int
    sack_delay_ns: int

    def options(self) -> dict[str, object]:
        """As a spec says them."""
        return {
            "rto_initial": _time(self.rto_max_ns),
            "rto_min": _time(self.rto_min_ns),
            "rto_max": _time(self.rto_max_ns),
            "association_max_retrans": self.association_max_retrans,
            "sack_delay": _time(self.sack_delay_ns),
        }

    def back_ns(self, rtt_ns: int) -> float:
        """The longest time from a repair to new data at the other end: a T3 that was set just before the repair, as
        late as timers are, and the way.
        """
        return latest_ns(self.rto_max_ns) + rtt_ns

    @property
    def survives_ns(self) -> int:
        """The shortest outage that may end the association: its timers, none of them late (RFC 9260 6.3.3, 8.1)."""
        total, rto = 0, self.rto_min_ns
        for _ in range(self.association_max_retrans + 1):
            total += rto
            rto = min(2 * rto, self.rto_max_ns)
        return total

    def fits(self, rtt_ns: int) -> bool:
        """Whether a single message is acknowledged before its T3 expires."""
        return answered_in_time(self.rto_min_ns, self.sack_delay_ns, rtt_ns)


@dataclasses.dataclass(frozen=True)
class Shown:
    """What the cells of some settings show. back_ns: the worst measured; lost: outages that ended the association."""

    settings: Settings
    back_ns: float | None
    computed_back_ns: float
    survives_ns: int
    lost: int
    outages: int
    needless: float | None
    cells: tuple[str, ...]

    def keeps(self, budget: SctpBudget) -> bool:
        """Whether everything was measured and is within the budget."""
        return (
            self.back_ns is not None
            and self.needless is not None
            and not self.lost
            and self.back_ns <= budget.back_ns
            and self.needless <= budget.needless
        )


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
                dataclasses.asdict(each) | {"keeps": each.keeps(self.budget), "options": each.settings.options()}
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
) -> SctpAdvice:
    """Enumerate settings, keep those whose timers keep the budget, and run the nearest to Linux' own. No settings: the
    budget contradicts itself, and `run` is None.
    """
    fitting = sorted(candidates(budget), key=_distance)
    chosen = fitting[:TRIED]
    if not chosen:
        return SctpAdvice(budget, 0, (), None)
    done = run(advice_spec(chosen, budget), out=out, seed=seed, jobs=jobs, progress=progress)
    shown = sorted(_shown(done, chosen, budget), key=lambda each: not each.keeps(budget))
    return SctpAdvice(budget, len(fitting), tuple(shown), done)


def candidates(budget: SctpBudget) -> Iterator[Settings]:
    """The settings whose timers keep the budget in the worst case; of association_max_retrans the least that does."""
    for floor, ceiling, delay in itertools.product(FLOORS, CEILINGS, DELAYS):
        if ceiling < floor:
            continue
        for count in RETRANSMISSIONS:
            settings = Settings(floor * MS, ceiling * MS, count, delay * MS)
            if not settings.fits(budget.rtt_ns) or settings.back_ns(budget.rtt_ns) > budget.back_ns:
                break
            if settings.survives_ns > budget.survive_ns:
                yield settings
                break


def _distance(settings: Settings) -> tuple[float, ...]:
    """How far settings are from Linux' own: the fewer and the smaller changes, the better."""
    return (
        1000 * MS / settings.rto_min_ns + 200 * MS / settings.sack_delay_ns,
        settings.association_max_retrans,
        -settings.rto_max_ns,
    )


def advice_spec(chosen: list[Settings], budget: SctpBudget) -> dict[str, Any]:
    """Of each candidate the outages whose repair falls at different instants, and undisturbed traffic."""
    link = {"between": ["a", "b"], "rtt": _time(budget.rtt_ns), "rate": "100 Mbit/s", "queue": "1000 packets"}
    widest = max(each.rto_max_ns for each in chosen)
    lengths = [
        max(budget.survive_ns * number / INSTANTS - number * GOLDEN % 1 * widest, TICK_NS)
        for number in range(1, INSTANTS + 1)
    ]
    cases: dict[str, dict[str, Any]] = {
        f"cut{number}": {
            "event": {"fault": {"action": "cut", "link": "p1", "at": f"{FAULT_S} s", "for": _time(length)}},
            "duration": f"{FAULT_S + length / 1e9 + 2 * budget.back_ns / 1e9 + 10:.3f} s",
        }
        for number, length in enumerate(lengths, 1)
    }
    for number, gap in enumerate(GAPS, 1):
        cases[f"traffic{number}"] = {
            "flow": {"s": {"messages": {"gaps": {"exponential": gap}}, "reverse": {"gaps": {"exponential": gap}}}},
            "duration": f"{BUSY_S} s",
        }
    levels = {f"s{number}": {"flow": {"s": {"sender": each.options(), "receiver": each.options()}}}
              for number, each in enumerate(chosen, 1)}  # fmt: skip
    gaps = {"exponential": "100 ms"}
    return {
        "format": 1,
        "name": "sctp-advise",
        "duration": f"{BUSY_S} s",
        "node": {"a": {}, "b": {}},
        "link": {"p1": link},
        "flow": {
            "s": {
                "from": "a", "to": "b", "protocol": "sctp", "paths": ["p1"], "message_size": "200 B",
                "messages": {"gaps": gaps}, "reverse": {"gaps": gaps, "sizes": "200 B"}, "sender": {"reconnect": "off"},
            }
        },
        "factor": {
            "settings": {"levels": list(levels), "level": levels},
            "case": {"levels": list(cases), "level": cases},
        },
    }  # fmt: skip


def _shown(done: Run, chosen: list[Settings], budget: SctpBudget) -> Iterator[Shown]:
    values = values_by_cell(done)
    rows = list(done.table("cells"))
    for number, settings in enumerate(chosen, 1):
        mine = [row for row in rows if row["settings"] == f"s{number}"]
        backs, shares, lost = [], [], 0
        whole = all(row["outcome"] == "COMPLETED" for row in mine)
        for row in mine:
            found = values[str(row["cell_id"])]
            if str(row["case"]).startswith("cut"):
                again = [found.get((flow, "recovery_time_s")) for flow in ("s", "s.back")]
                backs += [value for value in again if value is not None]
                ended = [found.get(key) for key in (("s", "loss_noticed_s"), ("s.back", "gave_up_after_fault_s"))]
                lost += any(value is not None for value in ended) or None in again
            else:
                known = [needless_share(found, flow) for flow in ("s", "s.back")]
                shares += [share for share in known if share is not None]
        yield Shown(
            settings=settings,
            back_ns=max(backs) * 1e9 if backs and whole else None,
            computed_back_ns=settings.back_ns(budget.rtt_ns),
            survives_ns=settings.survives_ns,
            lost=lost,
            outages=INSTANTS,
            needless=max(shares) if shares and whole else None,
            cells=tuple(str(row["cell_id"]) for row in mine),
        )


def _time(value_ns: float) -> str:
    return format_quantity(Quantity("time", int(value_ns)))
