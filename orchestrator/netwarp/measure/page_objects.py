"""Times of pages and of their objects by the client's captures: request, first byte, last byte, delivery.

Pages of netwarp's own client: its records say which object went over which connection and stream, and in which order;
every time is the wire's. A connection, or a stream of an association, is a sequence of whole objects in the order of
their requests, so an object is a range of its bytes; in HTTP/2's frames it is several, which the client says.
Delivered: when all before it in that sequence was there too.

Pages of a program of the user's own: what it asks for is not read from its packets. A page is the TCP connections that
are open at the same time: it begins with the first SYN after the client has closed every connection before. Its end is
when the last byte that arrived before the client closed could be delivered: a client closes when it has what it asked
for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from ..captures.native import Ints, Rows
from ..captures.sctp.messages import messages
from ..core.numbers import fixed
from ..core.types import Check, Flow
from ..core.wire import DATA, FIN, I_DATA, RST
from ..store.app_records import AppRecord, Object, Summary
from ..store.derived import PageObject
from ..store.ndjson import last, of_kind
from .delivery import accepted_segments
from .flow_packets import FlowPackets
from .timetable import NEVER

FRAME_HEAD_BYTES = 9
"""RFC 9113 4.1; apps/web/web_frame.h."""
CLOCKS_S = 0.0001
"""The most by which the clocks of captures and programs may differ: on a machine's own clock both are set while it
runs.
"""


@dataclasses.dataclass(frozen=True)
class ByteSequence:
    """The bytes of a connection or stream: pieces [start, end) with the time each was seen (ns), in any order."""

    start: Ints
    end: Ints
    time_ns: Ints

    @classmethod
    def of_segments(cls, segments: Rows) -> ByteSequence:
        """That of a TCP connection's segments with payload: the stream's first byte is number 1."""
        start = segments["seq"].astype(np.int64) - 1
        return cls(start, start + segments["payload_bytes"].astype(np.int64), segments["time_ns"].astype(np.int64))

    def seen(self, begin: int, end: int) -> tuple[int, int]:
        """The times at which the first of these bytes and the last missing of them was seen; NEVER where it was not."""
        first = self._first_seen(begin, end)[1]
        return int(first.min()), int(first.max())

    def last_missing(self, end: int) -> int:
        """The byte before `end` that was seen last: the first of its piece."""
        cuts, first = self._first_seen(0, end)
        return int(cuts[int(first.argmax())])

    def _first_seen(self, begin: int, end: int) -> tuple[Ints, Ints]:
        """The bounds of the pieces of [begin, end), and the time at which each was first seen."""
        touching = (self.start < end) & (self.end > begin)
        low = np.clip(self.start[touching], begin, end)
        high = np.clip(self.end[touching], begin, end)
        cuts = np.unique(np.concatenate([low, high, [begin, end]]))
        first = np.full(len(cuts) - 1, NEVER, dtype=np.int64)
        for at, until, time in zip(
            np.searchsorted(cuts, low).tolist(),
            np.searchsorted(cuts, high).tolist(),
            self.time_ns[touching].tolist(),
            strict=True,
        ):
            np.minimum(first[at:until], time, out=first[at:until])
        return cuts, first


def page_objects(
    flow: Flow, client: FlowPackets, records: Iterable[AppRecord], t0_monotonic_ns: int
) -> list[PageObject]:
    """Every object that the client has complete, in the order of pages and numbers."""
    fetched = sorted(of_kind(records, Object), key=lambda record: record.requested_t_ns)
    rows = _rows_by_port(client)
    request_bytes = int(flow.receiver_options["request_bytes"])
    answers, requests = _Sequences(client, flow.protocol, back=False), _Sequences(client, flow.protocol, back=True)
    taken: dict[tuple[int, int], tuple[int, int]] = {}
    objects: list[PageObject] = []
    waiting: list[tuple[int, int, int, int]] = []
    owners: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for record in fetched:
        asked_ns = record.requested_t_ns - t0_monotonic_ns
        row = _row_at(rows, client, record.port, asked_ns)
        if row is None:
            continue
        stream, size = record.stream, record.bytes
        count, begin = taken.get((row, stream), (0, 0))
        taken[row, stream] = count + 1, begin + size
        requested, _ = requests.of(row, stream).seen(count * request_bytes, (count + 1) * request_bytes)
        pieces = _pieces(record) or [(begin, begin + size)]
        seen = [answers.of(row, stream).seen(start, end) for start, end in pieces]
        first, complete = min(first_ns for first_ns, _ in seen), max(last for _, last in seen)
        delivered = answers.delivered_ns(row, stream, pieces[-1][1])
        head = 0 if record.pieces is None else FRAME_HEAD_BYTES
        owners.setdefault((row, stream), []).extend((start - head, record.object) for start, _ in pieces)
        opened = int(client.point.capture.flows["first_ns"][row]) - client.t0_realtime_ns
        objects.append(
            PageObject(
                page=record.page,
                object=record.object,
                port=record.port,
                stream=stream,
                bytes=size,
                opened_s=opened / 1e9,
                requested_s=_seconds(requested, client),
                first_s=_seconds(first, client),
                complete_s=_seconds(complete, client),
                delivered_s=_seconds(delivered, client),
                told_s=(record.complete_t_ns - t0_monotonic_ns) / 1e9,
            )
        )
        if complete < delivered != NEVER:
            waiting.append((len(objects) - 1, row, stream, answers.of(row, stream).last_missing(pieces[-1][1])))
    for number, row, stream, byte in waiting:
        begun = [owner for owner in sorted(owners[row, stream]) if owner[0] <= byte]
        if begun:
            objects[number] = msgspec.structs.replace(objects[number], waited_for=begun[-1][1])
    return sorted(objects, key=lambda each: (each.page, each.object))


def _pieces(record: Object) -> list[tuple[int, int]]:
    """The places of an object's frames in its connection's bytes, by the client's record; [] if it came whole."""
    places = [tuple(map(int, piece.split(":"))) for piece in record.pieces.split(",")] if record.pieces else []
    return [(start, start + size) for start, size in places]


def pages_check(flow: Flow, objects: Sequence[PageObject], records: list[AppRecord]) -> list[Check]:
    """The client's word against its captures: every object is there, and not said to be complete before it could be."""
    summary = last(records, Summary)
    reported = len(of_kind(records, Object))
    missing = [each for each in objects if each.delivered_s is None]
    late = [each.told_s - each.delivered_s for each in objects if each.delivered_s is not None]
    early, longest = min(late, default=0.0), max(late, default=0.0)
    ok = not missing and len(objects) == reported and early >= -CLOCKS_S
    detail = (
        f"{reported} objects complete by the client's word, {len(objects) - len(missing)} by its captures; it said so "
        f"{fixed(early * 1e6, 1)} to {fixed(longest * 1e6, 1)} us after"
    )
    asked = int(flow.receiver_options["pages"])
    complete, reason = (summary.pages, summary.reason) if summary else (None, None)
    pages = f"{complete} of {asked} pages complete: {reason}"
    return [Check(f"objects {flow.name}", ok, detail), Check(f"pages {flow.name}", True, pages)]


def _seconds(time_ns: int, client: FlowPackets) -> float | None:
    return None if time_ns == NEVER else (time_ns - client.t0_realtime_ns) / 1e9


def _rows_by_port(client: FlowPackets) -> dict[int, list[int]]:
    """The client's port -> the connections from it, in the order of time."""
    flows = client.point.capture.flows
    rows: dict[int, list[int]] = {}
    for row, sends in sorted(client.data_direction.items(), key=lambda pair: int(flows["first_ns"][pair[0]])):
        # direction 0 is from the first port to the second
        rows.setdefault(int(flows["port"][row][1 if sends == 0 else 0]), []).append(row)
    return rows


def _row_at(rows: Mapping[int, list[int]], client: FlowPackets, port: int, asked_ns: int) -> int | None:
    """The connection of that port that was open at an instant from T0."""
    begun = client.point.capture.flows["first_ns"]
    fitting = [row for row in rows.get(port, []) if int(begun[row]) - client.t0_realtime_ns <= asked_ns]
    return fitting[-1] if fitting else None


class _Sequences:
    """The sequences of one direction at the client, by connection and stream."""

    def __init__(self, client: FlowPackets, protocol: str, *, back: bool) -> None:
        self._client, self._sctp = client, protocol == "sctp"
        turned = {row: 1 - sends for row, sends in client.data_direction.items()}
        packets = dataclasses.replace(client, data_direction=turned) if back else client
        if self._sctp:
            self._table = packets.sent_chunks
        elif back:
            self._table = packets.data_segments
        else:
            self._table = accepted_segments(client, protocol)
        self._of_row: dict[int, Rows] = {}
        self._known: dict[tuple[int, int], ByteSequence] = {}
        self._ready: dict[tuple[int, int], tuple[Ints, Ints]] = {}

    def of(self, row: int, stream: int) -> ByteSequence:
        """The bytes of a connection (stream 0) or of a stream of an association."""
        if (row, stream) not in self._known:
            self._known[row, stream] = (
                self._chunks(row, stream) if self._sctp else ByteSequence.of_segments(self._rows(row))
            )
        return self._known[row, stream]

    def delivered_ns(self, row: int, stream: int, end: int) -> int:
        """The time at which everything before byte `end` of the sequence could be delivered; NEVER: not in this
        capture.
        """
        if not self._sctp:
            sequence = self.of(row, stream)
            return sequence.seen(0, end)[1]
        if (row, stream) not in self._ready:
            self._ready[row, stream] = self._messages(row, stream)
        ends, ready = self._ready[row, stream]
        at = int(np.searchsorted(ends, end))
        return int(ready[at]) if at < len(ends) else NEVER

    def _rows(self, row: int) -> Rows:
        if row not in self._of_row:
            self._of_row[row] = self._table[self._table["flow"] == row]
        return self._of_row[row]

    def _chunks(self, row: int, stream: int) -> ByteSequence:
        mine = self._rows(row)
        data = (mine["type"] == DATA) | (mine["type"] == I_DATA)
        mine = mine[data & (mine["stream"] == stream) & ~mine["is_retransmission"].astype(np.bool_)]
        mine = mine[np.argsort(mine["tsn"], kind="stable")]
        end = np.cumsum(mine["user_bytes"].astype(np.int64))
        return ByteSequence(end - mine["user_bytes"], end, mine["time_ns"].astype(np.int64))

    def _messages(self, row: int, stream: int) -> tuple[Ints, Ints]:
        """The end of each message of the stream in it, and the time at which all up to there could be delivered."""
        sent = messages(self._rows(row))
        mine = sent.chunks["stream"][sent.row] == stream
        ready = np.where(sent.delivered, sent.delivery_ns, NEVER)[mine]
        return np.cumsum(sent.payload_bytes[mine]), np.maximum.accumulate(ready)


@dataclasses.dataclass(frozen=True)
class AskedPage:
    """Times in ns from T0. closed_ns, delivered_ns: NEVER if that was not seen; connections: how many it took."""

    opened_ns: int
    requested_ns: int
    delivered_ns: int
    closed_ns: int
    connections: int = 1

    @property
    def complete(self) -> bool:
        """True if the client closed all its connections, and had every byte that arrived before."""
        return NEVER not in (self.requested_ns, self.delivered_ns, self.closed_ns)


def asked_pages(client: FlowPackets) -> list[AskedPage]:
    """The pages in the order of time."""
    pages: list[AskedPage] = []
    for connection in sorted(_connections(client), key=lambda each: each.opened_ns):
        if not pages or connection.opened_ns >= pages[-1].closed_ns:
            pages.append(connection)
            continue
        page = pages[-1]
        pages[-1] = AskedPage(
            opened_ns=page.opened_ns,
            requested_ns=min(page.requested_ns, connection.requested_ns),
            delivered_ns=max(page.delivered_ns, connection.delivered_ns),
            closed_ns=max(page.closed_ns, connection.closed_ns),
            connections=page.connections + 1,
        )
    return pages


def _connections(client: FlowPackets) -> list[AskedPage]:
    """Each connection as a page of its own."""
    capture, t0_ns = client.point.capture, client.t0_realtime_ns
    table, accepted = capture.segments, accepted_segments(client, "tcp")
    connections = []
    for row, sends in client.data_direction.items():
        asked = table[(table["flow"] == row) & (table["direction"] != sends)]
        requested = _first(asked[asked["payload_bytes"] > 0])
        closed = _first(asked[(asked["flags"] & (FIN | RST)) > 0])
        mine = accepted[(accepted["flow"] == row) & (accepted["time_ns"] <= closed)]
        sequence = ByteSequence.of_segments(mine)
        delivered = sequence.seen(0, int(sequence.end.max()))[1] if len(mine) else NEVER
        times = (int(capture.flows["first_ns"][row]), requested, delivered, closed)
        connections.append(AskedPage(*(time if time == NEVER else time - t0_ns for time in times)))
    return connections


def _first(segments: Rows) -> int:
    return int(np.min(segments["time_ns"])) if len(segments) else NEVER
