"""When what arrived was sent: the receiver's packets found again in the sender's capture."""

from __future__ import annotations

import numpy as np

from ..captures.native import Bools, Ints, Rows
from ..core.wire import DATA, I_DATA
from .flow_packets import FlowPackets, sent_rows


def data_units(view: FlowPackets, protocol: str) -> tuple[Rows, str]:
    """The rows that carry payload from the flow's sender, and the column of their numbers (alike at both ends)."""
    if protocol == "sctp":
        chunks = sent_rows(view, view.point.capture.chunks)
        return chunks[np.isin(chunks["type"], (DATA, I_DATA))], "tsn"
    segments = sent_rows(view, view.point.capture.segments)
    return segments[segments["payload_bytes"] > 0], "seq"


def unit_paths(view: FlowPackets, rows: Rows) -> Ints:
    """Which path each row took: index into `PathNames.names`."""
    return np.array([view.path_index[path] for path in rows["path"].tolist()], dtype=np.int64)


def first_sent_since(
    sender: FlowPackets, receiver: FlowPackets, protocol: str, candidates: Bools, since_ns: int
) -> int | None:
    """Arrival (ns from T0) of the first candidate that was sent at or after an instant; None: there is none.

    candidates: packets of `receiver.data`. A packet was sent when its path last carried all of its numbers (TSNs;
    a TCP subflow's sequence numbers) before it arrived. Both captures count from the same T0.
    """
    packets = receiver.point.capture.packets
    mine = np.zeros(len(packets), dtype=np.bool_)
    for row, sends in receiver.data_direction.items():
        mine |= (packets["flow"] == row) & (packets["direction"] == sends)
    numbers = np.flatnonzero(mine)  # of the packets of receiver.data, in the same order
    arrived, column = data_units(receiver, protocol)
    sent, _ = data_units(sender, protocol)
    sent_ns, sent_path = sent["time_ns"] - sender.t0_realtime_ns, unit_paths(sender, sent)
    for place in np.flatnonzero(candidates).tolist():
        at_ns, path = int(receiver.data.t_ns[place]), int(receiver.data.path[place])
        before = (sent_path == path) & (sent_ns <= at_ns)
        times = [
            sent_ns[before & (sent[column] == unit)] for unit in arrived[column][arrived["packet"] == numbers[place]]
        ]
        if times and all(len(one) for one in times) and min(int(one[-1]) for one in times) >= since_ns:
            return at_ns
    return None
