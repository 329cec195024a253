"""Runs two SCTP ends through a fixed set of cells and says what is wrong with their settings (`netwarp sctp check`)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..captures.inference import LATE, TICK_NS
from ..core.errors import SpecError
from ..core.numbers import given, in_short, percent
from ..core.units import Quantity, QuantityError, format_quantity, parse_quantity
from ..experiment.sctp_sides import Side, read_side
from ..experiment.sctp_traps import Trap, traps
from .conclusions import check_conclusion
from .events import Progress, no_progress
from .run_directory import Run
from .running import run
from .sctp_cells import Values, answered_in_time, latest_ns, needless_share, values_by_cell

FAULT_S = 20
QUIET_S, BUSY_S = 600, 120
CUTS = (0.3, 1, 5, 20, 60, 300)
"""Lengths of an outage in s."""
AFTER_S = 90
"""Of a cell after its outage: the longest RTO of Linux and more."""
SLOW_START_S = 1.5
RESTART_S = 5
STOPPED_S = 60
PATH_S = 20
"""The time for which one of two paths fails."""
PORT = 38412
GAPS = {"quiet": "1 s", "busy": "50 ms"}
"""Mean gaps between messages, each way, of the cells so called."""
USUAL_GAP = "200 ms"
FORMAT = 1
LINUX = {"rto_min": "1 s", "sack_delay": "200 ms"}

Cases = Mapping[str, Values]
"""By the level of the factor `case`."""


@dataclasses.dataclass(frozen=True)
class SctpNetwork:
    """The network between the two ends, and the size of a message. paths: 1, or 2 alike."""

    rtt: str = "20 ms"
    rate: str = "100 Mbit/s"
    loss: str = "0"
    message: str = "200 B"
    paths: int = 1


@dataclasses.dataclass(frozen=True)
class Finding:
    """One answer. weight: the larger, the earlier it is told: the share of messages sent twice, the share of outages
    that end the association, and for the rest a rank of ours; 0: nothing is wrong. cells: ids of those that show it.
    """

    text: str
    weight: float
    cells: tuple[str, ...]
    remedy: str = ""


@dataclasses.dataclass(frozen=True)
class SctpCheck:
    """The findings, worst first, then what is well; and the run whose cells show them."""

    a: Side
    b: Side
    run: Run
    findings: tuple[Finding, ...]
    good: tuple[Finding, ...]

    @property
    def paths(self) -> int:
        """How many paths the association has."""
        return len(self.run.plan.cells[0].links)

    @property
    def traps(self) -> dict[str, tuple[Trap, ...]]:
        """By end, A or B: settings that do something else than they seem to."""
        return {
            name: tuple(traps(side.settings, connects=name == "A", paths=self.paths))
            for name, side in (("A", self.a), ("B", self.b))
        }

    def as_json(self) -> dict[str, Any]:
        """The object of `netwarp sctp check --json`."""
        return {
            "format": FORMAT,
            "run_dir": str(self.run.path),
            "sides": {name: dataclasses.asdict(side) for name, side in (("a", self.a), ("b", self.b))},
            "traps": {name.lower(): [dataclasses.asdict(trap) for trap in found] for name, found in self.traps.items()},
            "findings": [dataclasses.asdict(each) for each in self.findings],
            "good": [dataclasses.asdict(each) for each in self.good],
        }

    def write_junit(self, path: str | Path) -> None:
        """Write the cells and findings as JUnit XML: what is wrong as failed tests. Raises StoreError."""
        from ..present.junit import FAILS, HOLDS, write_junit

        rows = [
            {"claim": each.text, "condition": "", "verdict": verdict, "measured": "", "expected": each.remedy,
             "unit": "", "source": ", ".join(each.cells)}
            for verdict, findings in ((FAILS, self.findings), (HOLDS, self.good))
            for each in findings
        ]  # fmt: skip
        write_junit(Path(path), self.run.plan, self.run.results.outcomes, rows)


def check_sctp(
    a: Side | str,
    b: Side | str,
    network: SctpNetwork | None = None,
    *,
    out: str | Path | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Progress = no_progress,
    arguments: Sequence[str] = (),
) -> SctpCheck:
    """Run the cells of two ends (a connects to b; as read_side reads them) and judge them. arguments: the words of the
    command line, for the manifest. Raises what `run` raises;
    SpecError if there is no such product or file, or a setting is not accepted.
    """
    a, b = (_side(name, side) for name, side in (("A", a), ("B", b)))
    network = network or SctpNetwork()

    def judged(done: Run) -> SctpCheck:
        found = list(_findings(done, a, b, network))
        worst = sorted((each for each in found if each.weight), key=lambda each: -each.weight)
        return SctpCheck(a, b, done, tuple(worst), tuple(each for each in found if not each.weight))

    try:
        return judged(
            run(
                check_spec(a, b, network), out=out, seed=seed, jobs=jobs, progress=progress, arguments=arguments,
                conclude=lambda done: check_conclusion(judged(done)),
            )
        )  # fmt: skip
    except (SpecError, QuantityError) as error:
        raise SpecError(_of_the_sides(str(error))) from error


def _side(name: str, side: str | Side) -> Side:
    try:
        return read_side(side) if isinstance(side, str) else side
    except SpecError as error:
        raise SpecError(f"{name}'s {error}") from error


def _of_the_sides(problems: str) -> str:
    """Problems of the spec in words of the command: "B's rto_min is above rto_max"."""
    words = re.sub(r"[^\n]*?\bflow\.s\.(sender|receiver)\.(\w+):", _whose, problems)
    return re.sub(r" \(first seen in the cell [^)]*\)", "", words)


def _whose(match: re.Match[str]) -> str:
    return f"{'A' if match[1] == 'sender' else 'B'}'s {match[2]}"


def check_spec(a: Side, b: Side, network: SctpNetwork) -> dict[str, Any]:
    """The experiment of all cells: a level of the factor `case` each."""
    names = _paths(network)
    link = {"between": ["a", "b"], "rtt": network.rtt, "rate": network.rate, "queue": "1000 packets"}
    cases = _cases(a, b, network)
    for name, case in cases.items():
        if name != "restart":  # where two directions would go on after it is not known
            flow = case.setdefault("flow", {}).setdefault("s", {})
            gap = {"exponential": GAPS.get(name.rpartition("-")[2], USUAL_GAP)}
            flow["messages"] = flow.get("messages", {}) | {"gaps": gap}
            flow["reverse"] = {"gaps": gap, "sizes": network.message}
    return {
        "format": 1,
        "name": "sctp-check",
        "title": f"{a.name} and {b.name}",
        "duration": f"{QUIET_S} s",
        "node": {"a": {}, "b": {}},
        "link": {name: link | {"loss": network.loss} for name in names},
        "flow": {
            "s": {
                "from": "a",
                "to": "b",
                "protocol": "sctp",
                "paths": names,
                "message_size": network.message,
                "late": "1 s",
                "sender": a.options(connects=True) | {"reconnect": "off"},
                "receiver": b.options(connects=False),
            }
        },
        "factor": {"case": {"levels": list(cases), "level": cases}},
    }


def _paths(network: SctpNetwork) -> list[str]:
    return [f"p{number + 1}" for number in range(network.paths)]


def _cases(a: Side, b: Side, network: SctpNetwork) -> dict[str, dict[str, Any]]:
    """What each cell changes."""
    names = _paths(network)

    def failing(action: str, length_s: float, paths: list[str] = names, **more: Any) -> dict[str, Any]:
        event = {"action": action, "at": f"{FAULT_S} s", **more} | ({"for": f"{length_s:g} s"} if length_s else {})
        events = {f"fault-{name}": event | {"link": name} for name in paths}
        return {"event": events, "duration": f"{FAULT_S + length_s + AFTER_S:g} s"}

    cases: dict[str, dict[str, Any]] = {
        "quiet": {"duration": f"{QUIET_S} s"},
        "busy": {"duration": f"{BUSY_S} s"},
        "init-lost": {"link": {"p1": {"forward": {"drop": {"init": [1]}}}}, "duration": "60 s"},
        "cookie-lost": {"link": {"p1": {"forward": {"drop": {"cookie_echo": [1]}}}}, "duration": "60 s"},
        **{f"cut-{length:g}s": failing("cut", length) for length in CUTS},
        "one-way": failing("cut", 5, directions=["forward"]),
        "flap": failing("cut", 1, every="4 s"),
        "dead": failing("blackhole", 0) | {"duration": f"{QUIET_S} s"},
        "large-lost": failing("blackhole", 0, longer_than="600 B")
        | {"flow": {"s": {"messages": {"sizes": {"uniform": ["60 B", "1200 B"]}}}}, "duration": f"{QUIET_S} s"},
    }
    sender = {"reconnect": "1 s", "local_port": PORT, "interval": USUAL_GAP}
    again = {"flow": {"s": {"sender": sender}}, "duration": f"{FAULT_S + AFTER_S} s"}
    down = {"action": "restart", "at": f"{FAULT_S} s", "for": f"{RESTART_S} s"}
    cases["restart"] = {"event": {"fault": down | {"node": "b"}}} | again
    if len(names) > 1:
        cases["path"] = failing("cut", PATH_S, names[:1])
    stopped = {"action": "stop_reading", "flow": "s", "at": f"{FAULT_S} s", "for": f"{STOPPED_S} s"}
    cases["reader-stops"] = {
        "event": {"fault": stopped},
        "flow": {"s": {"message_size": "1 kB"}},  # so that the window closes
        "duration": f"{FAULT_S + STOPPED_S + AFTER_S} s",
    }
    for case, role, settings in _remedies(a, b, network):
        cases[case] = {"flow": {"s": {role: settings}}, "duration": f"{BUSY_S} s"}
    return cases


def _remedies(a: Side, b: Side, network: SctpNetwork) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Cells with the settings that cure needless retransmissions, of the ends whose settings have them: the name of the
    cell, whose options, and which.
    """
    for way, sender, receiver, roles in (("a", a, b, ("sender", "receiver")), ("b", b, a, ("receiver", "sender"))):
        least, most = _fitting(sender, receiver, network)
        if least is None:
            continue
        for case in GAPS:
            yield f"rto-{way}-{case}", roles[0], {"rto_min": least, "rto_initial": least, "rto_max": "60 s"}
            if most is not None:
                yield f"sack-{way}-{case}", roles[1], {"sack_delay": most}


def _fitting(sender: Side, receiver: Side, network: SctpNetwork) -> tuple[str | None, str | None]:
    """The least rto_min that the receiver's SACK delay allows, and the longest sack_delay that the sender's rto_min
    allows: RTO.Min > SACK delay, as late as its timer may be, and the round trip. None, None: they fit; None as the
    second: no delay is short enough.
    """
    if receiver.settings.get("sack_frequency") == 1:
        return None, None
    rtt, floor, delay = (
        _ns(text) for text in (network.rtt, _setting(sender, "rto_min"), _setting(receiver, "sack_delay"))
    )
    if answered_in_time(floor, delay, rtt):
        return None, None
    least = _round(latest_ns(delay) + rtt + TICK_NS, up=True)
    most = (floor - rtt - 2 * TICK_NS) / LATE
    return least, _round(most, up=False) if most >= TICK_NS else None


def _setting(side: Side, name: str) -> str:
    return str(side.settings.get(name, LINUX[name]))


def _ns(text: str) -> float:
    return float(parse_quantity(text).value)


def _round(value_ns: float, *, up: bool) -> str:
    return format_quantity(Quantity("time", TICK_NS * (int(value_ns // TICK_NS) + up)))


def _findings(done: Run, a: Side, b: Side, network: SctpNetwork) -> Iterator[Finding]:
    ids = {str(row["case"]): str(row["cell_id"]) for row in done.table("cells")}
    measured = values_by_cell(done)
    values = {case: measured[cell] for case, cell in ids.items()}
    for row in done.table("cells"):
        if row["outcome"] != "COMPLETED":
            unknown = f"what happens in {row['case']} is unknown: its cell is {row['outcome']}, {row['reason']}"
            yield Finding(unknown, 1, (str(row["cell_id"]),))
            del ids[str(row["case"])]
    yield from _needless(values, ids, a, b, network)
    yield from _outages(values, ids)
    yield from _stuck(values, ids)
    yield from _restart(values, ids)
    yield from _start(values, ids)


def _shares(values: Cases, cases: Iterable[str], flow: str) -> dict[str, float]:
    """Needless retransmissions a message, of those cases that tell."""
    known = {case: needless_share(values.get(case, {}), flow) for case in cases}
    return {case: share for case, share in known.items() if share is not None}


def _needless(values: Cases, ids: Mapping[str, str], a: Side, b: Side, network: SctpNetwork) -> Iterator[Finding]:
    """Messages that were sent twice although nothing was lost."""
    for way, flow, sender, receiver, (who, peer) in (("a", "s", a, b, "AB"), ("b", "s.back", b, a, "BA")):
        shares = _shares(values, GAPS, flow)
        if not shares:
            continue
        case = max(shares, key=lambda each: shares[each])
        if not shares[case]:
            yield Finding(f"{who} sends no message twice without need", 0, tuple(ids[each] for each in shares))
            continue
        a_minute = shares[case] * 60 / _ns(GAPS[case]) * 1e9
        text = (
            f"{who} retransmits after {_setting(sender, 'rto_min')} at the earliest, {peer} acknowledges a single "
            f"message after {_setting(receiver, 'sack_delay')}: {percent(shares[case], 2)} of {who}'s are sent twice "
            f"(measured: {given(a_minute, 3)} a minute, with one every {GAPS[case]} on average)"
        )
        least, most = _fitting(sender, receiver, network)
        tried = [
            (words, _shares(values, (f"{what}-{way}-{each}" for each in GAPS), flow))
            for what, words in (("sack", f"{peer}'s sack_delay to {most}"), ("rto", f"{who}'s rto_min to {least}"))
        ]
        said = [f"set {words} (run: {percent(max(found.values()), 2)} sent twice)" for words, found in tried if found]
        yield Finding(text, shares[case], (ids[case],), ", or ".join(said))


def _outages(values: Cases, ids: Mapping[str, str]) -> Iterator[Finding]:
    tried = [length for length in CUTS if f"cut-{length:g}s" in ids]
    lost = {length: min(gone) for length in tried if (gone := _ended(values, f"cut-{length:g}s"))}
    kept = [length for length in tried if length not in lost and _flows_again(values, length) is not None]
    if lost:
        after, who = lost[min(lost)]
        text = f"an outage of {in_short(min(lost), 's')} ends the association: "
        text += f"{who} gives up after {in_short(after, 's')}"
        text += f" (one of {in_short(max(kept), 's')} it survives)" if kept else ""
        remedy = f"a larger association_max_retrans or rto_max of {who} rides out longer outages"
        yield Finding(text, len(lost) / len(CUTS), tuple(ids[f"cut-{length:g}s"] for length in lost), remedy)
    elif kept:
        text = f"the association survives outages of up to {in_short(max(kept), 's')}"
        yield Finding(text, 0, tuple(ids[f"cut-{length:g}s"] for length in kept))
    slow = {length: again for length in kept if (again := _flows_again(values, length)) is not None}
    if slow:
        length = max(slow, key=lambda each: slow[each])
        lasted, later = in_short(length, "s"), in_short(slow[length], "s")
        text = f"after an outage of {lasted} data flows again {later} after the repair"
        weight = 0.1 if slow[length] > max(1, length / 2) else 0
        yield Finding(text, weight, (ids[f"cut-{length:g}s"],), "a smaller rto_max shortens that" if weight else "")


def _flows_again(values: Cases, length: float) -> float | None:
    """From the repair of an outage to the first new data, in the slower direction; None: one had none."""
    found = [values[f"cut-{length:g}s"].get((flow, "recovery_time_s")) for flow in ("s", "s.back")]
    known = [value for value in found if value is not None]
    return max(known) if len(known) == len(found) else None


def _ended(values: Cases, case: str) -> list[tuple[float, str]]:
    """When after the fault an end gave the association up, and which; or when A heard that it was over."""
    found = values[case]
    ends = [(found.get((flow, "gave_up_after_fault_s")), who) for flow, who in (("s", "A"), ("s.back", "B"))]
    gone = [(after, who) for after, who in ends if after is not None]
    heard = found.get(("s", "loss_noticed_s"))
    return gone or ([] if heard is None else [(heard, "B")])


def _stuck(values: Cases, ids: Mapping[str, str]) -> Iterator[Finding]:
    dead = {who: after for after, who in _ended(values, "dead")}
    if "dead" in ids:
        said = [
            f"{who} notices after {in_short(dead[who], 's')}" if who in dead
            else f"{who} has not noticed after {in_short(QUIET_S - FAULT_S, 's')}"
            for who in "AB"
        ]  # fmt: skip
        both = [dead.get(who, float("inf")) for who in "AB"]
        weight = 0.3 if max(both) > 60 else 0.2 if max(both) > 4 * min(both) else 0
        yield Finding(f"a peer that vanishes: {', '.join(said)}", weight, (ids["dead"],))
    if "large-lost" in ids and (share := values["large-lost"].get(("s", "late_messages_ratio"))) is not None:
        gone = _ended(values, "large-lost")
        text = f"where packets above 600 B vanish, {percent(share, 2)} of A's messages come late or never; "
        text += f"{gone[0][1]} gives up after {in_short(gone[0][0], 's')}" if gone else "nobody gives up"
        yield Finding(text, 0.25 if not gone else 0.05, (ids["large-lost"],), "path MTU discovery, or path_mtu")
    whats = {
        "one-way": "5 s in which only A's packets are lost",
        "flap": "cuts of 1 s each 4 s",
        "path": f"the first path fails for {PATH_S} s",
    }
    for case, what in whats.items():
        if case not in ids:
            continue
        if gone := _ended(values, case):
            yield Finding(f"{what}: {gone[0][1]} gives up after {in_short(gone[0][0], 's')}", 0.2, (ids[case],))
        else:
            waits = [values[case].get((flow, "longest_message_delay_s")) for flow in ("s", "s.back")]
            if known := [wait for wait in waits if wait is not None]:
                yield Finding(f"{what}: a message waits {in_short(max(known), 's')} at most", 0, (ids[case],))


def _restart(values: Cases, ids: Mapping[str, str]) -> Iterator[Finding]:
    if "restart" in ids:
        back = values["restart"].get(("s", "reconnect_time_s"))
        text = f"B restarts, {RESTART_S} s long: "
        if back is None:
            yield Finding(f"{text}the association never comes back", 0.9, (ids["restart"],))
        else:
            late = back - RESTART_S
            text += f"A is connected again {in_short(late, 's')} after B is up (A tries each second)"
            yield Finding(text, 0.1 if late > RESTART_S else 0, (ids["restart"],))
    if "reader-stops" in ids:
        text = f"A's messages are not read for {STOPPED_S} s: "
        if gone := _ended(values, "reader-stops"):
            yield Finding(f"{text}{gone[0][1]} gives up after {in_short(gone[0][0], 's')}", 0.3, (ids["reader-stops"],))
        else:
            yield Finding(f"{text}the association stays", 0, (ids["reader-stops"],))


def _start(values: Cases, ids: Mapping[str, str]) -> Iterator[Finding]:
    for case, what in (("init-lost", "INIT"), ("cookie-lost", "COOKIE ECHO")):
        if case in ids and (took := values[case].get(("s", "setup_time_s"))) is not None:
            text = f"with the first {what} lost the association is up after {in_short(took, 's')}"
            slow = took > SLOW_START_S
            yield Finding(text, 0.05 if slow else 0, (ids[case],), "a smaller rto_initial of A" if slow else "")
