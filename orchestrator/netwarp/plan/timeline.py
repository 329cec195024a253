"""The events of a cell: faults with their repairs, changes of a link, and phases drawn from the seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from ..core.link_types import SIDES, DirectionName, LinkImpairment, Opportunities
from ..core.types import FAULTS, HOST_FAULTS, OF_TRACE, Action, Event, Flow, Node
from ..core.wire import ETHERNET_HEADER_BYTES
from ..experiment.fields import Reader
from ..experiment.grammar import DIRECTION, EVENT, REPEATED
from ..experiment.merge import merge
from ..experiment.problems import Problems, nearest
from ..experiment.toml_positions import Item
from .host_faults import OF_A_LINK, OWN_KEYS, HostFaults
from .impairments import finish
from .network import Network, UnresolvedLink
from .routes import draw_phase, read_phase

ACTIONS: tuple[Action, ...] = (*FAULTS, "change")
MOST_OCCURRENCES = 1000
KEPT = {"policer": "policer", "burst": "burst_bytes", "slots": "slots", "ack_thinning": "ack_thinning"}
"""Keys of a direction that no event changes -> their fields."""
LONGEST_SENDING_S = 60
"""htb charges a packet for no more (net/sched/sch_htb.c: mbuffer)."""


@dataclass(frozen=True, slots=True)
class Planned:
    """An event whose phases are not drawn yet. `undo`: the event that ends it `length_ns` later."""

    event: Event
    undo: Event | None
    length_ns: int
    phase: tuple[int, int] | None
    """Uniform from, to (ns), inclusive; added to the time."""
    length_phase: tuple[int, int] | None
    """The same, added to the length."""
    reader: Reader

    def last_ns(self) -> int:
        """The latest time at which it can end."""
        return self.event.at_ns + _most(self.phase) + self.length_ns + _most(self.length_phase)

    @property
    def drawn(self) -> bool:
        """True if the seed affects when it happens or how long it lasts."""
        return any(phase is not None and phase[0] < phase[1] for phase in (self.phase, self.length_phase))


def _most(phase: tuple[int, int] | None) -> int:
    return phase[1] if phase else 0


class TimelineReader:
    """Reads the events of one cell."""

    def __init__(
        self,
        network: Network,
        nodes: Mapping[str, Node],
        links: Mapping[str, UnresolvedLink],
        shapes: Mapping[tuple[str, DirectionName], LinkImpairment],
        rtt_ns: Mapping[tuple[str, DirectionName], int],
        duration_ns: int,
        flows: Sequence[Flow],
    ) -> None:
        self._host_faults = HostFaults(nodes, links, flows)
        self._network, self._nodes, self._links = network, nodes, links
        self._shapes, self._rtt_ns, self._duration_ns = shapes, rtt_ns, duration_ns

    def read(self, items: Mapping[str, Item], problems: Problems) -> tuple[Planned, ...]:
        """Every event in order, those of the links' profiles first; mistakes are collected."""
        planned: list[Planned] = []
        for link, draft in self._links.items():
            for name, item in draft.item.under("event").items():
                reader = Reader(item, REPEATED, problems)
                planned += self._repeated(self._event(f"{link}.{name}", link, reader), reader)
        for name, item in items.items():
            reader = Reader(item, EVENT, problems)
            of_a_link = reader.text("action") not in HOST_FAULTS or reader.text("action") in OF_A_LINK
            link = (reader.text("link") or "") if of_a_link and reader.need("link") else ""
            planned += self._repeated(self._event(name, link, reader), reader)
        planned = self._without_unchanged(planned)
        self._check_overlaps(planned)
        return (*planned, *self._traces())

    def _traced(self, link: str, side: DirectionName) -> bool:
        draft, own = self._links[link].side(side), self._shapes[link, side]
        return draft.trace is not None or isinstance(own.opportunities, Opportunities)

    def _traces(self) -> Iterator[Planned]:
        """The events that traces make."""
        for name, draft in self._links.items():
            for side in SIDES:
                direction, own = draft.side(side), self._shapes[name, side]
                if direction.trace is None:
                    continue
                for at_ns, shape in direction.trace.shapes(own, self._duration_ns):
                    self._check_kept(shape, own, direction.reader)
                    made: dict[str, LinkImpairment] = {side: shape}
                    event = Event(at_ns=at_ns, name=f"{name}{OF_TRACE}", action="change", link=name, directions=(side,))
                    event = msgspec.structs.replace(event, **made)
                    yield Planned(event, None, 0, None, None, direction.reader)

    def _without_unchanged(self, planned: list[Planned]) -> list[Planned]:
        """The events, changes without the directions that no change ever alters; reports one that changes nothing."""
        changes = [each.event for each in planned if each.event.action == "change"]
        altered = {
            (event.link, side)
            for event in changes
            for side in SIDES
            if event.side(side) not in (None, self._shapes[event.link, side])
        }
        kept: list[Planned] = []
        useless: dict[str, Reader] = {}
        for each in planned:
            event, undo = each.event, each.undo
            if event.action == "change":
                touched = tuple(side for side in event.directions if (event.link, side) in altered)
                if not touched:
                    useless[event.name] = each.reader
                    continue
                none = dict.fromkeys(set(SIDES) - set(touched))
                event = msgspec.structs.replace(event, directions=touched, **none)
                undo = undo and msgspec.structs.replace(undo, directions=touched, **none)
            kept.append(replace(each, event=event, undo=undo))
        for reader in useless.values():
            reader.problem("action", 'changes nothing; say what, for example rate = "100 kbit/s"')
        return kept

    def _repeated(self, first: Planned | None, reader: Reader) -> list[Planned]:
        """The event, or with `every` its repetitions until the cell's end; one that ends after that stays.

        An event of a link's profile that would come after the end is left out: a profile does not know how long a cell
        is.
        """
        if first is None or (reader.has("for") and not first.length_ns):  # "0 s": it does not happen
            return []
        every = reader.whole("every")
        event, latest = first.event, self._duration_ns - _most(first.phase)
        if every is None:
            return [first] if event.at_ns < latest else []
        if (latest - event.at_ns) // every >= MOST_OCCURRENCES:
            reader.wrong("every", f'more than {MOST_OCCURRENCES} times in this cell; for example every = "15 s"')
            return []
        if first.undo is None:
            reader.problem("every", 'needs `for`: what happens again has ended before; for example for = "50 ms"')
        repeats: list[Planned] = []
        for at in range(event.at_ns, latest, every):
            length = first.length_ns + _most(first.length_phase)
            stays = at + _most(first.phase) + length > self._duration_ns
            undo = None if stays else first.undo
            again = replace(first, event=msgspec.structs.replace(event, at_ns=at), undo=undo)
            repeats.append(replace(again, length_ns=0, length_phase=None) if stays else again)
        return repeats

    def _event(self, name: str, link: str, reader: Reader) -> Planned | None:
        before = len(reader.problems)
        needed = [reader.need(key) for key in ("action", "at")]
        text = reader.text("action")
        action = next((known for known in ACTIONS if known == text), None)
        at, length = reader.whole("at"), reader.whole("for")
        phase, length_phase = read_phase("phase", reader), read_phase("for_phase", reader)
        if length_phase is not None and not reader.has("for"):
            reader.problem("for_phase", 'is added to `for`, which is missing; for example for = "8 s"')
        directions = self._directions(reader)
        if link and link not in self._links:
            reader.wrong("link", f'there is no link "{link}"{nearest(link, self._links)}')
        if not all(needed) or action is None or at is None or len(reader.problems) > before:
            return None
        if not link and (action not in HOST_FAULTS or action in OF_A_LINK):
            return None
        if "." in name or reader.has("every"):
            pass  # happens as often as there is time for
        elif at + _most(phase) >= self._duration_ns:
            reader.wrong("at", "is outside the cell: it must be before the duration ends")
        elif at + _most(phase) + (length or 0) + _most(length_phase) > self._duration_ns:
            reader.wrong("for", "ends after the cell; leave `for` out if the fault stays to the end")
        if action in HOST_FAULTS:
            return self._host_fault(action, name, at, link, directions, reader)
        for key, other in OWN_KEYS.items():
            if reader.has(key):
                reader.problem(key, f'is no key of action = "{action}"; that is action = "{other}"')
        longest = reader.whole("longer_than")
        event, undo = (
            Event(at_ns=at, name=name, action=what, link=link, directions=directions, longer_than_bytes=longest)
            for what in (action, "repair")
        )
        if longest is not None and action != "blackhole":
            reader.problem("longer_than", f'belongs to action = "blackhole"; a "{action}" takes every packet')
        if action == "link":
            event = Event(at_ns=at, name=name, action=action, link=link, end=self._end(link, reader))
            undo = Event(at_ns=at, name=name, action="repair", link=link)
            if reader.has("directions"):
                reader.problem("directions", "an end that goes down stops both directions; leave this out")
        elif action == "change":
            changes = self._change(name, at, link, directions, reader)
            if changes is None:
                return None
            event, undo = changes
        if action != "change":
            for key in sorted((DIRECTION.keys() | {"rtt", *SIDES}) & reader.item.table().keys()):
                reader.problem(key, f'a "{action}" changes no {key}; that is action = "change"')
        return Planned(event, undo if length is not None else None, length or 0, phase, length_phase, reader)

    def _host_fault(
        self, action: Action, name: str, at: int, link: str, directions: tuple[DirectionName, ...], reader: Reader
    ) -> Planned | None:
        event = self._host_faults.event(action, name, at, link, directions, reader)
        if event is None:
            return None
        length, undo = reader.whole("for"), msgspec.structs.replace(event, action="repair")
        phases = read_phase("phase", reader), read_phase("for_phase", reader)
        return Planned(event, undo if length is not None else None, length or 0, *phases, reader)

    def _directions(self, reader: Reader) -> tuple[DirectionName, ...]:
        names = reader.names("directions")
        if reader.has("directions") and not names:
            reader.problem("directions", f"is empty; for example directions = {EVENT['directions'].example}")
        return tuple(side for side in SIDES if not names or side in names)

    def _end(self, link: str, reader: Reader) -> str:
        draft, item = self._links[link], reader.item.get("end")
        nodes = (draft.a, draft.b)
        ends = {f'"{node}"': node for node in nodes}
        if any(self._nodes[node].kind == "host" for node in nodes):
            ends |= {f'{{ hop = "{node}" }}': f"{link}.hop:{node}" for node in nodes}
        hop = reader.item.get("end", "hop")
        end = f"{link}.hop:{hop.value}" if hop is not None else reader.item.text("end")
        if end not in ends.values():
            said = "end is missing" if item is None else f'link "{link}" has no such end'
            reader.problem("end", f"{said}; it has: {', '.join(ends)}; for example end = {list(ends)[-1]}")
        elif end in nodes:
            beside = [other for other in self._links.values() if {other.a, other.b} == {*nodes}]
            if len(beside) > 1 and any(self._nodes[node].kind == "switch" for node in nodes):
                # the route of an interface that comes up again stands behind the other's
                use = f"use end = {list(ends)[-1]}"
                reader.problem("end", f'"{end}" would answer by its other interface for good; {use}')
        return end

    def _change(
        self, name: str, at: int, link: str, directions: tuple[DirectionName, ...], reader: Reader
    ) -> tuple[Event, Event] | None:
        """The link's impairment with the event's keys applied, and the impairment as configured."""
        keys = {k: v for k, v in reader.item.table().items() if k in DIRECTION or k in ("rtt", *SIDES)}
        draft = self._links[link]
        named = [side for side in SIDES if keys.keys() - set(SIDES) or side in keys]
        traced = [side for side in SIDES if self._traced(link, side)]
        if both := [side for side in traced if side in named and side in directions]:
            said = f"{link} {both[0]} has a trace, which says how it changes"
            reader.problem("action", f'{said}; leave the event out, or name the other one, directions = ["backward"]')
            return None
        kept = {side: draft.side(side) for side in traced}
        changed = self._network.directions(reader.below(merge(draft.item, reader.item.with_value(keys))), kept)
        if changed is None:
            return None
        new: dict[str, LinkImpairment] = {}
        for side, direction in zip(SIDES, changed, strict=True):
            shape = finish(direction, self._rtt_ns[link, side], draft.mtu_bytes)
            if shape.packet_rules != self._shapes[link, side].packet_rules:
                reader.problem("action", "rules for single packets count from the cell's start: no event changes them")
            self._check_kept(shape, self._shapes[link, side], reader)
            if side in directions and side in named:
                new[side] = shape
                self._check_rate(shape, self._shapes[link, side], draft.mtu_bytes, reader)
        touched = tuple(side for side in SIDES if side in new)
        old = {side: self._shapes[link, side] for side in touched}
        event = Event(at_ns=at, name=name, action="change", link=link, directions=touched)
        return msgspec.structs.replace(event, **new), msgspec.structs.replace(event, **old)

    @staticmethod
    def _check_kept(shape: LinkImpairment, own: LinkImpairment, reader: Reader) -> None:
        """Reports a change of what the kernel could only begin anew, and of a rate whose bucket it would fill."""
        for key, field in KEPT.items():
            if getattr(shape, field) != getattr(own, field):
                reader.problem(key, f"no event changes a link's {key}; leave it out here")
        if own.burst_bytes is not msgspec.UNSET and shape.rate_bit_s != own.rate_bit_s:
            reader.problem("rate", "a rate with a `burst` does not change: the kernel would fill its token bucket")
        if own.slots is not msgspec.UNSET and shape.rate_bit_s != own.rate_bit_s:
            reader.problem("rate", "a link with `slots` keeps its rate; leave one of them out")

    @staticmethod
    def _check_rate(shape: LinkImpairment, own: LinkImpairment, mtu_bytes: int, reader: Reader) -> None:
        """Reports a rate too low to change, or to change to."""
        rates = {each.rate_bit_s for each in (shape, own)}
        slowest = 8 * (mtu_bytes + ETHERNET_HEADER_BYTES) / LONGEST_SENDING_S
        if len(rates) > 1 and any(rate is not None and rate < slowest for rate in rates):
            said = f"at a rate that changes a packet takes at most {LONGEST_SENDING_S} s: not below {slowest:.0f} bit/s"
            reader.problem("action", f'{said}; without any rate it is action = "cut"')

    def _check_overlaps(self, planned: list[Planned]) -> None:
        """Reports two overlapping faults of one direction: the first repair would end both; the same for two
        changes.
        """
        in_time = sorted(enumerate(planned), key=lambda item: item[1].event.at_ns)
        for place, (number, first) in enumerate(in_time):
            earlier = first.event
            if first.undo is None and earlier.action == "change":
                continue
            for other_number, second in in_time[place + 1 :]:
                later = second.event
                if first.undo is not None and later.at_ns >= first.last_ns():
                    break
                if {earlier.action, later.action} & set(HOST_FAULTS):
                    if _place(earlier) == _place(later) and first.undo is not None:
                        said = f'overlaps event "{earlier.name}", which does the same; one must end first'
                        second.reader.problem("at", said)
                    continue
                if earlier.link != later.link or not set(earlier.directions) & set(later.directions):
                    continue
                if (earlier.action == "change") == (later.action == "change"):
                    listed = (first, second) if number < other_number else (second, first)
                    said = f'overlaps event "{listed[0].event.name}" on link "{earlier.link}"; one must end first'
                    listed[1].reader.problem("at", said)


def _place(event: Event) -> tuple[object, ...]:
    """What a fault of a host, an address or a middle box happens to."""
    return event.action, event.link, event.node, event.flow


def draw(planned: tuple[Planned, ...], seed: int) -> tuple[Event, ...]:
    """The events with their phases drawn, sorted by time: at one time what ends comes before what begins, else the
    order is that listed.
    """
    events: list[tuple[int, bool, Event]] = []
    for plan in planned:
        at = plan.event.at_ns + draw_phase(plan.phase, f"{seed}/phase/{plan.event.name}")
        events.append((at, True, msgspec.structs.replace(plan.event, at_ns=at)))
        if plan.undo is not None:
            length = plan.length_ns + draw_phase(plan.length_phase, f"{seed}/for/{plan.event.name}")
            events.append((at + length, False, msgspec.structs.replace(plan.undo, at_ns=at + length)))
    return tuple(event for _, _, event in sorted(events, key=lambda item: item[:2]))
