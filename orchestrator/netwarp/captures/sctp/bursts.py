"""max_burst of an association's end: how much it sends at once where its window permits more (RFC 9260 6.1 D)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from ...core.units import counted
from ...core.wire import FIRST
from ..capture import rows_of_flow
from ..inference import AT_ONCE_NS, InferredSetting
from ..native import Ints
from .association import Association
from .transmissions import NEVER

MOST_BURSTS = 20_000
LOOKED_AHEAD = 50
ENOUGH, SHARE = 3, 0.9  # So many bursts, and so many of all, are of one length
GROWTH = 2  # Packets by which a congestion window grows at most for one SACK (RFC 9260 7.2.1: one; RFC 3465: two)
ALIGNED = 3  # Chunks are multiples of 4 bytes: a full packet may lack so many of the MTU


@dataclasses.dataclass(frozen=True)
class _Burst:
    """Packets with data that were sent at once on one path. before_bytes, after_bytes: outstanding there as it began
    and as it ended; sent_bytes: sent there up to its end; reports: SACKs up to its begin; asked: one came just before;
    again: how much had been sent again by then, on any path; continues: it begins with the rest of a message; alone:
    its message is the last that was ready, so that no other send call added to it; window_bytes: the receiver's window
    left as it ended.
    """

    time_ns: int
    end_ns: int
    packets: int
    before_bytes: int
    after_bytes: int
    last_bytes: int
    sent_bytes: int
    reports: int
    asked: bool
    again: int
    continues: bool
    alone: bool
    window_bytes: int


def max_burst(association: Association, end: int) -> Iterator[InferredSetting]:
    """Of the data's sender, in its capture. Only messages of many packets show it: of those, more is known to be ready.

    A burst was ended by max_burst, not by the congestion window, if later more was outstanding than the SACKs in
    between can have added to the window. RFC 9260 adds max_burst packets to what is outstanding, in bytes, and as long
    as less is, one more is sent; others count packets: the interval has room for both.
    """
    if association.point != "sender" or not len(association.sent):
        return
    packet_bytes = _packet_bytes(association)
    limited = [burst for path in association.paths for burst in _limited(association, path, packet_bytes)]
    if not limited:
        return
    usual = int(np.bincount([burst.packets for burst in limited]).argmax())
    alike = [burst for burst in limited if burst.packets == usual]
    if len(alike) < max(ENOUGH, SHARE * len(limited)):
        return
    low = max(
        (
            (burst.after_bytes - burst.last_bytes - burst.before_bytes) // packet_bytes + 1
            for burst in alike
            if burst.alone and burst.asked == burst.continues
        ),
        default=None,
    )
    what = f"{counted(len(alike), 'burst')} ended with room in the window and more of the message ready"
    times_ns = tuple(burst.time_ns for burst in alike[:10])
    yield InferredSetting(end, "max_burst", low, usual, "", what, times_ns)


def _limited(association: Association, path: int, packet_bytes: int) -> Iterator[_Burst]:
    """The bursts of a path that neither the congestion window nor the receiver's ended, nor the end of a message."""
    bursts = list(itertools.islice(_bursts(association, path), MOST_BURSTS))
    for place, burst in enumerate(bursts[:-1]):
        following = bursts[place + 1 : place + 1 + LOOKED_AHEAD]
        more = following[0].asked and following[0].continues
        more &= following[0].time_ns - burst.end_ns > 2 * AT_ONCE_NS  # else the burst was not over
        more &= burst.window_bytes > GROWTH * packet_bytes
        more &= following[0].again == (bursts[place - 1].again if place else 0)
        if more and _had_room(burst, following, packet_bytes):
            yield burst


def _had_room(burst: _Burst, following: Sequence[_Burst], packet_bytes: int) -> bool:
    """Whether the congestion window had room for a packet more as the burst ended."""
    for later in following:
        if later.again > burst.again:
            return False
        acked = (later.sent_bytes - later.after_bytes) - (burst.sent_bytes - burst.after_bytes)
        growth = min((later.reports - burst.reports) * GROWTH * packet_bytes, acked)
        if later.after_bytes - later.last_bytes - growth > burst.after_bytes:
            return True
    return False


def _packet_bytes(association: Association) -> int:
    """The largest packet with data: what its sender takes the MTU for, as far as it was seen."""
    columns, packets = association.columns, association.capture.packets
    mine = columns["packet"][columns.is_data & (columns["direction"] == association.direction)]
    return int(packets["ip_bytes"][mine].max()) + ALIGNED if len(packets) else int(columns["user_bytes"].max())


def _bursts(association: Association, path: int) -> Iterator[_Burst]:
    sent, reports, columns = association.sent, association.reports, association.columns
    mine = np.flatnonzero(sent.rows["path"] == path)
    if not len(mine):
        return
    rows = columns.rows[columns.is_data & (columns["direction"] == association.direction)]
    begins_message = np.zeros(len(sent.tsns), dtype=np.bool_)
    place = np.searchsorted(sent.tsns, rows["tsn"][rows["flags"] & FIRST != 0])
    begins_message[np.minimum(place, len(sent.tsns) - 1)] = True
    opens = np.flatnonzero(begins_message[sent.unit] & sent.new)  # on any path
    answered = np.searchsorted(reports.moment, sent.moment[opens])
    quick = sent.rows["time_ns"][opens] - np.concatenate([[-NEVER // 2], reports.time_ns])[answered] <= AT_ONCE_NS
    first = begins_message[sent.unit[mine]]
    times, moment, size = sent.rows["time_ns"][mine], sent.moment[mine], sent.rows["user_bytes"][mine]
    heard = np.searchsorted(reports.moment, moment)  # reports before each
    cut = np.diff(times) > AT_ONCE_NS
    cut |= np.diff(heard) > 0
    repeated = sent.moment[sent.repeated]
    edges = [0, *(np.flatnonzero(cut) + 1).tolist(), len(mine)]
    total = np.concatenate([[0], np.cumsum(size)])
    level, all_paths = association.outstanding_on(path), association.outstanding
    sacks = rows_of_flow(association.capture, "sacks", association.flow)
    sacks = sacks[sacks["direction"] != association.direction]
    at = association.order(sacks["packet"])
    order = np.argsort(at, kind="stable")
    at, windows = at[order], sacks["a_rwnd_bytes"][order].astype(np.int64)
    for begin, after in itertools.pairwise(edges):
        last_moment = int(moment[after - 1])
        in_last = moment[begin:after] == last_moment
        before_bytes = _value(level.moment, level.value_bytes, int(moment[begin]) - 1)
        seen = int(heard[begin])
        following = int(np.searchsorted(opens, mine[after - 1], side="right"))
        window = _value(at, windows, int(moment[begin]))
        yield _Burst(
            time_ns=int(times[begin]),
            end_ns=int(times[after - 1]),
            packets=len(np.unique(moment[begin:after])),
            before_bytes=before_bytes,
            after_bytes=_value(level.moment, level.value_bytes, last_moment),
            last_bytes=int(size[begin:after][in_last].sum()),
            sent_bytes=int(total[after]),
            reports=seen,
            asked=seen > 0 and int(times[begin]) - int(reports.time_ns[seen - 1]) <= AT_ONCE_NS,
            again=int(np.searchsorted(repeated, last_moment, side="right")),
            continues=not bool(first[begin]),
            alone=not first[begin + 1 : after].any() and not (following < len(opens) and quick[following]),
            window_bytes=window - _value(all_paths.moment, all_paths.value_bytes, last_moment),
        )


def _value(moments: Ints, values: Ints, at: int) -> int:
    """The value of a step function."""
    place = int(np.searchsorted(moments, at, side="right")) - 1
    return int(values[place]) if place >= 0 else 0
