"""Settings of a TCP connection's two ends that its packets tell: what their SYNs offer, how often and how soon a SYN
was sent again, the initial window, and the timers of data and acknowledgements.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.units import counted
from ...core.wire import ACK
from ..capture import Capture
from ..inference import InferredSetting, timer_bounds
from .columns import SACK_PERMITTED, TIMESTAMP
from .connection import TcpConnection, analyze_tcp
from .timers import delayed_acknowledgements, retransmission_timers

OFFERS = ((SACK_PERMITTED, "sack_permitted"), (TIMESTAMP, "timestamps"))


def infer_tcp_settings(capture: Capture, flow: int) -> list[InferredSetting]:
    """The settings of both ends that the capture of one point shows, end 0 first."""
    connection = analyze_tcp(capture, flow)
    return [setting for end in (0, 1) for setting in _of(connection, end)]


def _of(connection: TcpConnection, end: int) -> Iterator[InferredSetting]:
    direction = connection.directions[end]
    data, syns = direction.data, direction.data.syns
    if len(syns) and not connection.options_cut:
        first = int(syns[0])
        at = (int(data.time_ns[first]),)
        for bit, name in OFFERS:
            offered = int(bool(int(data.options[first]) & bit))
            yield InferredSetting(end, name, offered, offered, "", f"its SYN {'offers' if offered else 'lacks'} it", at)
        if mss := int(connection.row["mss"][end]):
            yield InferredSetting(end, "mss", mss, mss, "B", "its SYN says it", at)
        shift = connection.directions[1 - end].shift
        if shift is not None:
            yield InferredSetting(end, "window_shift", shift, shift, "", "both SYNs have a window scale", at)
    asked = syns[data.flags[syns] & ACK == 0]
    if len(asked) > 1 and end == 0:
        times = data.time_ns[asked].astype(np.int64)
        again = len(asked) - 1
        low, high = timer_bounds(int(times[1] - times[0]), int(times[1] - times[0]))
        shown = tuple(times[:10].tolist())
        what = "a SYN without answer was sent again"
        yield InferredSetting(end, "syn_timeout", low / 1e9, high / 1e9, "s", what, shown[:2])
        yield InferredSetting(end, "syn_retries", again, None, "", f"{counted(again, 'SYN')} sent again", shown)
    totals = connection.totals
    window = totals.get("initial_window_bytes" if end == connection.data_direction else "reverse_initial_window_bytes")
    if isinstance(window, int | float) and window:
        what = f"{counted(int(window), 'byte')} before the first acknowledgement; there may have been no more to send"
        yield InferredSetting(end, "initial_window", int(window), None, "B", what)
    yield from retransmission_timers(direction, end)
    yield from delayed_acknowledgements(connection.directions[1 - end], end)
