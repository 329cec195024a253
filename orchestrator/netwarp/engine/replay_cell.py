"""Makes the experiment that plays a captured association again: paths, losses at their instants, messages as sent, and
settings of both ends (`netwarp explain --what-if`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..captures.explanation import Known
from ..captures.inference import TICK_NS
from ..captures.sctp.network_evidence import EDGE_NS, Dead
from ..captures.sctp.replay_inputs import END_NAMES, ReplayInputs, SeenMessage
from ..captures.sctp.settings import LINUX
from ..captures.sctp.transmissions import NEVER
from ..core.errors import CaptureError
from ..core.units import Quantity, format_quantity, parse_quantity
from ..experiment.options import OPTIONS
from ..experiment.read_messages import MOST_ROWS
from ..experiment.toml_writer import toml_text

START_NS = 1_000_000_000
"""When the association begins in the cell."""
AFTER_NS, LONG_AFTER_NS = 2_000_000_000, 40_000_000_000
"""The cell goes on so long after the capture's end: longer where nothing ended the association in order."""
LONGEST_NS = 43_200_000_000_000
MOST_DEAD = 2000
UNSURE_NS = 50_000_000
"""An interval whose end is known less closely has several ends tried."""
ENDS = {"early": 0.0, "quarter": 0.25, "half": 0.5, "most": 0.75, "late": 1.0}
"""Levels of the factor `repair`: the share of the time in which the network may have come back."""
GIVING_UP = "association_max_retrans"
NEAR = 1.2
"""Of an interval without an upper end, so many times its lower end is tried; without a lower end likewise."""
FARTHER = (1, 2, 4)
"""And the roundest number above so many times its lower end."""
ROLES = ("sender", "receiver")
LINUX_PATH_MAX_RETRANS = 5

PHASES = (0, 16, 32, 48, 128, 256, 384)
"""Starts of the association in ms after START_NS that are tried: the kernel's timers expire at multiples of 8, 64 or
512 ms of its own clock (core/timer_wheel.py), whose phase a capture does not show.
"""
MORE, MOST_COUNTS = 2, 8
SETTLING_BYTES = 100
"""Of a message that the capture does not have (ReplayInputs.settling_ns)."""
SEED, SEEDS = 1, 4
AS_CAPTURED, TO_THE_FIRST_LOSS, OWN = "as captured", "as captured up to the first loss", "the kernels' own"
"""HEARTBEATs of a cell. Up to the first loss a change of settings hardly moves them; from then on they are drawn."""
BEATS = "heartbeats.csv"

Settings = tuple[dict[str, Any], dict[str, Any]]
"""Options of a and of b, as a spec has them."""


@dataclasses.dataclass(frozen=True)
class Guess:
    """What a capture does not fully show: settings, the phase of the kernel's clock, when the network came back, and
    packets of the end that was not captured that were lost: (path, from 0; its sending after the association's start);
    the draws of the kernel (of the instants of its HEARTBEATs), by the cell's seed; and which HEARTBEATs there are.
    """

    settings: Settings
    phase_ms: int = 0
    repair: float = ENDS["half"]
    unseen: tuple[tuple[int, int], ...] = ()
    seed: int = SEED
    heartbeats: str = AS_CAPTURED

    def __hash__(self) -> int:
        settings = tuple(tuple(sorted(each.items())) for each in self.settings)
        return hash((settings, self.phase_ms, self.repair, self.unseen, self.seed, self.heartbeats))

    @property
    def start_ns(self) -> int:
        """When the association begins in the cell."""
        return START_NS + self.phase_ms * 1_000_000

    def changed(self, changes: Settings) -> Guess:
        """With other settings. One that SACKs each packet puts none off, so an inferred delay is left out then."""
        settings: Settings = (self.settings[0] | changes[0], self.settings[1] | changes[1])
        for end in (0, 1):
            if changes[end].get("sack_frequency") == 1 and "sack_delay" not in changes[end]:
                settings[end].pop("sack_delay", None)
        return dataclasses.replace(self, settings=settings)


def settings_of(known: Sequence[Known], inputs: ReplayInputs) -> Settings:
    """A value of each inferred interval: Linux' own if it is in there, else the roundest number, a late timer's length
    preferred. What was not inferred is left out, so the kernel's own value holds.
    """
    chosen: Settings = ({}, {})
    for each in known:
        if each.name in LINUX and (each.low is not None or each.high is not None):
            chosen[each.end].update(options_of(each.name, value_in(each), each.end))
    for end in (0, 1):
        if inputs.nodelay[end]:
            chosen[end]["nodelay"] = True
        bound = chosen[end]
        if bound.get("sack_frequency") == 1:  # it puts none off
            bound.pop("sack_delay", None)
        if "rto_min" in bound and "rto_max" not in bound and ms_of(bound["rto_min"]) > LINUX["rto_max"] * 1e3:
            bound["rto_max"] = bound["rto_min"]
        if "rto_max" in bound and ms_of(bound["rto_max"]) < ms_of(bound.get("rto_min", f"{LINUX['rto_min']} s")):
            bound["rto_min"] = bound["rto_max"]
    return chosen


def ms_of(text: object) -> float:
    """A time of a spec."""
    return int(parse_quantity(str(text), "time").value) / 1e6


def options_of(name: str, value: float, end: int) -> dict[str, Any]:
    """The options of a spec that give an end this value of an inferred setting."""
    if name == "failover_threshold":
        threshold = int(value)
        return {"pf_retrans": threshold, "path_max_retrans": max(LINUX_PATH_MAX_RETRANS, threshold + 2)}
    option = OPTIONS[name]
    if ROLES[end] not in option.roles:
        return {}
    if option.field.kinds:  # late timers make an interval reach farther than the kernel takes
        value_ns = min(max(round(value * 1e3) * 1_000_000, option.field.low or 0), option.field.high or NEVER)
        return {name: format_quantity(Quantity("time", int(value_ns)))}
    return {name: max(int(value), 1)}


def value_in(known: Known) -> float:
    """See settings_of."""
    usual = LINUX[known.name]
    if (known.low or 0.0) <= usual and (known.high is None or usual <= known.high):
        return usual
    low, high, is_time = _tried(known)
    if known.high is None:
        return low
    return roundest((low + high) / 2 if is_time else low, high, is_time)


def _tried(known: Known) -> tuple[float, float, bool]:
    """The ends of an interval that are likely, and whether it is of times. Few timers are early, so a time is rather no
    longer than was seen.
    """
    is_time = known.unit == "s"
    early = TICK_NS / 1e9 if is_time else 0.0
    high = None if known.high is None else max(known.high - early, known.low or 0.0)
    low = known.low or (high or 0.0) / (NEAR if is_time else 1)
    return low, low * NEAR if high is None else high, is_time


def roundest(low: float, high: float, is_time: bool) -> float:
    """The roundest number of an interval (times in whole ms), the highest of these."""
    unit = 1e-3 if is_time else 1.0
    for power in range(6, -1, -1):
        for digit in (5, 2, 1):
            step = digit * float(10**power) * unit
            multiple = math.floor(high / step + 1e-9) * step
            if multiple >= low - 1e-12 and multiple > 0:
                return multiple
    return high


def alternatives(known: Sequence[Known], guess: Guess, gave_up: int | None) -> Iterator[Guess]:
    """Other guesses that the capture permits, each with one change. gave_up: the end that did: of it other seeds are
    tried, since HEARTBEATs count too, and their instants are random (RFC 9260 8.3).
    """
    for phase in PHASES:
        if phase != guess.phase_ms:
            yield dataclasses.replace(guess, phase_ms=phase)
    for each in known:
        if each.name not in LINUX or not (each.high or each.low) or each.name == GIVING_UP:
            continue
        low, high, is_time = _tried(each)
        values = {roundest(low, high, is_time), low, (low + high) / 2}
        if each.high is None:
            values |= {roundest(times * low, 2 * times * low, is_time) for times in FARTHER}
        for value in sorted(values if is_time else _counts(each)):
            options = options_of(each.name, value, each.end)
            if any(guess.settings[each.end].get(key) != given for key, given in options.items()):
                yield guess.changed(_of_one(each.end, options))
    for end in (0, 1):
        yield guess.changed(_of_one(end, {"nodelay": not guess.settings[end].get("nodelay", False)}))
    for share in (ENDS["early"], ENDS["late"]):
        yield dataclasses.replace(guess, repair=share)
    if gave_up is not None:
        thresholds = [each for each in known if each.name == GIVING_UP and each.end == gave_up]
        ends = [
            (each.end, options_of(each.name, count, each.end)) for each in thresholds for count in _counts(each)
        ] or [(0, {})]
        for more, (end, options) in itertools.product(range(SEEDS), ends):
            yield dataclasses.replace(guess, seed=SEED + more).changed(_of_one(end, options))


def _counts(known: Known) -> list[int]:
    """The counts of an interval, of one that is open above the first."""
    low = int(known.low or 0)
    return list(range(low, min(int(known.high or low + MORE), low + MOST_COUNTS) + 1))


def _of_one(end: int, options: Mapping[str, Any]) -> Settings:
    return ({}, dict(options)) if end else (dict(options), {})


def replay_spec(inputs: ReplayInputs, guess: Guess) -> dict[str, Any]:
    """The experiment without factors; its messages are in a.csv and b.csv beside it. Raises CaptureError: the capture
    holds more than a cell can.
    """
    if inputs.end_ns - inputs.start_ns > LONGEST_NS:
        raise CaptureError("the association lasts more than half a day; a replay does not: give a part of the capture")
    names = [f"p{number}" for number in range(1, len(inputs.paths) + 1)]
    links: dict[str, Any] = {}
    for name, path in zip(names, inputs.paths, strict=True):
        link: dict[str, Any] = {
            "between": ["a", "b"],
            "one_way_delay": _time(path.round_trip_ns // 2),
            "mtu": f"{max(inputs.mtu, 576 if path.family == 'ipv4' else 1280)} B",
        }
        if path.rate_bit_s is not None:
            link |= {"rate": f"{path.rate_bit_s:.0f} bit/s", "queue": "10000 packets"}
        if path.family == "ipv6":
            link["family"] = "ipv6"
        for direction, way in zip(("forward", "backward"), path.ways, strict=True):
            if way.lost:
                link[direction] = {"drop": {"data": list(way.lost)}}
        links[name] = link
    until_ns = inputs.end_ns - inputs.start_ns + guess.start_ns
    flow: dict[str, Any] = {
        "from": "a",
        "to": "b",
        "protocol": "sctp",
        "paths": names,
        "start": _time(guess.start_ns),
        "stop": _time(_stop_ns(inputs, guess)),
        "messages": {"file": "a.csv"},
        "reverse": {"file": "b.csv", "streams": _streams(inputs, 1)},
        "sender": {"reconnect": "off", "streams": _streams(inputs, 0), **_of_end(inputs, guess.settings, 0)},
        "receiver": _of_end(inputs, guess.settings, 1),
    }
    if inputs.closing is not None and inputs.closing[2]:
        flow["sender"]["close"] = "graceful"
    if inputs.ports[1]:
        flow["port"] = inputs.ports[1]
    if guess.heartbeats != OWN:
        flow["heartbeats"] = {"file": BEATS, "until": _time(_own_from_ns(inputs, guess))}
    return {
        "format": 1,
        "name": "what-if",
        "title": "A captured association, played again",
        "seed": guess.seed,
        "duration": _time(until_ns + _after_ns(inputs)),
        "node": {"a": {}, "b": {}},
        "link": links,
        "flow": {"s": flow},
        "event": dict(_events(inputs, names, guess)),
    }


def levels_of(inputs: ReplayInputs, guesses: Mapping[str, Guess]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The experiment without settings, and of each guess the level of a factor that has all that is its own."""
    bare = replay_spec(inputs, Guess(({}, {}), heartbeats=OWN))  # a level adds keys, and takes none away
    levels = {}
    for name, guess in guesses.items():
        spec = replay_spec(inputs, guess)
        flow = {key: value for key, value in spec["flow"]["s"].items() if value != bare["flow"]["s"].get(key)}
        event = {key: value for key, value in spec["event"].items() if value != bare["event"].get(key)}
        levels[name] = {"flow": {"s": flow}, "event": event, "duration": spec["duration"]}
    return bare, levels


def _of_end(inputs: ReplayInputs, settings: Settings, end: int) -> dict[str, Any]:
    options: dict[str, Any] = dict(settings[end])
    if inputs.payload_protocol[end]:
        options["ppid"] = inputs.payload_protocol[end]
    if inputs.unordered[end]:
        options["unordered"] = True
    return options


def _streams(inputs: ReplayInputs, end: int) -> int:
    """How many streams the messages of an end need."""
    return max((message.stream for message in inputs.messages[end]), default=0) + 1


def _stop_ns(inputs: ReplayInputs, guess: Guess) -> int:
    """When a closes the association: as captured, if it did."""
    if inputs.closing is not None and inputs.closing[1] == 0:
        return inputs.closing[0] - inputs.start_ns + guess.start_ns
    return inputs.end_ns - inputs.start_ns + guess.start_ns + _after_ns(inputs) // 2


def _own_from_ns(inputs: ReplayInputs, guess: Guess) -> int:
    """When the kernels begin to send their own HEARTBEATs."""
    since_ns = inputs.end_ns
    if guess.heartbeats == TO_THE_FIRST_LOSS:
        since_ns = min((dead.begin_ns for *_, dead in _dead(inputs)), default=since_ns)
    return max(since_ns - inputs.start_ns, 0) + guess.start_ns


def _after_ns(inputs: ReplayInputs) -> int:
    return AFTER_NS if inputs.closing is not None else LONG_AFTER_NS


def _dead(inputs: ReplayInputs) -> Iterator[tuple[str, int, int, Dead]]:
    for number, path in enumerate(inputs.paths, 1):
        for direction, way in enumerate(path.ways):
            for place, dead in enumerate(way.dead, 1):
                yield f"p{number}-{('forward', 'backward')[direction]}-{place}", number, direction, dead


def _events(inputs: ReplayInputs, names: Sequence[str], guess: Guess) -> Iterator[tuple[str, dict[str, Any]]]:
    every = list(_dead(inputs))
    if len(every) > MOST_DEAD:
        raise CaptureError(f"the capture has {len(every)} separate losses; a replay takes at most {MOST_DEAD}")
    taken: list[tuple[int, int, int, int]] = []
    for name, number, direction, dead in every:
        begin_ns = max(dead.begin_ns - inputs.start_ns + guess.start_ns, 0)
        event: dict[str, Any] = {
            "action": "blackhole",
            "link": names[number - 1],
            "directions": [("forward", "backward")[direction]],
            "at": _time(begin_ns),
        }
        end_ns = NEVER
        if dead.most_ns != NEVER:
            event["for"] = _time(_length_ns(dead, guess.repair))
            end_ns = begin_ns + _length_ns(dead, ENDS["late"])  # what is lost by then tells of this outage
        taken.append((number - 1, direction, begin_ns, end_ns))
        yield name, event
    away = 1 - inputs.end
    for place, (path, at_ns) in enumerate(guess.unseen, 1):
        begin_ns = max(at_ns - EDGE_NS, 0) + guess.start_ns
        end_ns = begin_ns + 2 * EDGE_NS
        if any(each[:2] == (path, away) and each[2] <= end_ns and begin_ns <= each[3] for each in taken):
            continue  # lost already
        taken.append((path, away, begin_ns, end_ns))
        yield (
            f"unseen-{place}",
            {
                "action": "blackhole",
                "link": names[path],
                "directions": [("forward", "backward")[away]],
                "at": _time(begin_ns),
                "for": _time(2 * EDGE_NS),
            },
        )


def _length_ns(dead: Dead, share: float) -> int:
    return int(dead.least_ns - dead.begin_ns + share * (dead.most_ns - dead.least_ns))


def unsure(inputs: ReplayInputs) -> list[Dead]:
    """The intervals whose end the capture does not show closely."""
    return [dead for *_, dead in _dead(inputs) if dead.most_ns != NEVER and dead.most_ns - dead.least_ns > UNSURE_NS]


def known_until_ns(inputs: ReplayInputs) -> int | None:
    """The last loss of a path and direction on which nothing was seen to pass any more: what the network did after it
    is not known. None: every path was seen to pass packets again.
    """
    return min((dead.least_ns for *_, dead in _dead(inputs) if dead.most_ns == NEVER), default=None)


def repair_factor(inputs: ReplayInputs) -> dict[str, Any] | None:
    """The factor `repair`: when the network came back, within what the capture permits; None where it shows that."""
    moved = [(name, dead) for name, _, _, dead in _dead(inputs) if dead in unsure(inputs)]
    if not moved:
        return None
    levels = {
        level: {"event": {name: {"for": _time(_length_ns(dead, share))} for name, dead in moved}}
        for level, share in ENDS.items()
    }
    return {"title": "when the network came back", "levels": list(ENDS), "level": levels}


def write_spec(folder: Path, spec: Mapping[str, Any], inputs: ReplayInputs) -> Path:
    """Write spec.toml and the messages of both ends into a new folder. Raises CaptureError."""
    folder.mkdir(parents=True)
    for end in (0, 1):
        rows = list(_rows(inputs, end))
        if len(rows) > MOST_ROWS:
            raise CaptureError(
                f"{END_NAMES[end]} sent {len(rows)} messages; a replay takes {MOST_ROWS}: give a part of the capture"
            )
        text = "".join(f"{at},{size},{stream}\n" for at, size, stream in rows)
        (folder / f"{END_NAMES[end]}.csv").write_text("time_us,bytes,stream\n" + text)
    beats = "".join(f"{at},{role},{path}\n" for at, role, path in _beats(inputs))
    (folder / BEATS).write_text("time_us,end,path\n" + beats)
    path = folder / "spec.toml"
    path.write_text(toml_text(spec))
    return path


def _rows(inputs: ReplayInputs, end: int) -> Iterator[tuple[int, int, int]]:
    """When each message is due after the flow's start, in us."""
    messages: Sequence[SeenMessage] = inputs.messages[end]
    if messages:
        yield from ((at_ns // 1000, SETTLING_BYTES, 0) for at_ns in inputs.settling_ns)
    due = [(max(message.due_ns - inputs.start_ns, 0) // 1000, message) for message in messages]
    for at, message in sorted(due, key=lambda each: each[0]):
        yield at, message.size, message.stream
    if not messages:  # a file needs one: it is due after the flow's end
        yield (inputs.end_ns - inputs.start_ns + 2 * LONG_AFTER_NS) // 1000, 1, 0


def _beats(inputs: ReplayInputs) -> list[tuple[int, str, str]]:
    """When each HEARTBEAT is sent after the flow's start, in us, by which end, and on which path; before a capture that
    begins later one each way that confirms the path.
    """
    rows = [
        (max(beat.time_ns - inputs.start_ns, 0) // 1000, role, f"p{beat.path + 1}")
        for role, beats in zip(ROLES, inputs.heartbeats, strict=True)
        for beat in beats
    ]
    paths = [f"p{number}" for number in range(1, len(inputs.paths) + 1)]
    rows += [(at_ns // 1000, role, path) for at_ns in inputs.settling_ns[:1] for role in ROLES for path in paths]
    return sorted(rows)


def _time(value_ns: float) -> str:
    return format_quantity(Quantity("time", int(value_ns)))
