"""Functions of time of a flow for the expressions of metrics: sent_bit_s(2, 3), when_sending_below(1e6, 0.1, 2)."""

from __future__ import annotations

import re

from ..outputs import SAMPLED

ARGUMENTS = {
    "sent_bit_s": ("from", "to"),
    "arrived_bit_s": ("from", "to"),
    "pace_bit_s": ("from", "to"),
    "rounds": ("from", "to"),
    "outstanding_most": ("from", "to"),
    "outstanding_least": ("from", "to"),
    "when_outstanding_above": ("bytes", "after"),
    "when_outstanding_below": ("bytes", "after"),
    "when_sending_above": ("bit/s", "over", "after"),
    "when_sending_below": ("bit/s", "over", "after"),
    "when_arriving_above": ("bit/s", "over", "after"),
    "doubling_until": (),
    "kernel": ("series", "time"),
    "counter": ("name",),
}
"""Function -> its arguments. Times in s from T0; docs/spec.md says what each function gives."""
OF_THE_KERNEL = "kernel"
"""The function whose first argument is a series that the sender's kernel told, one of SAMPLED."""
COUNTER = "counter"
"""The function whose argument is a counter of the sender's host."""
OF_A_TEXT = (OF_THE_KERNEL, COUNTER)
"""Functions whose first argument is a text."""
_COUNTER = re.compile(r"(Ip|IpExt|Icmp|IcmpMsg|Tcp|TcpExt|MPTcpExt|Udp|UdpLite|Sctp)\.\w+")


def arguments_problem(function: str, arguments: int, text: str | None) -> str | None:
    """The reason why a call of one of these functions is wrong, or None. text: the first argument, if it is one."""
    wanted = ARGUMENTS[function]
    if function == COUNTER and (text is None or not _COUNTER.fullmatch(text)):
        return f'{function}("TcpExt.TCPTimeouts"): a counter of the kernel, as `nstat` has it, after its group'
    if function == OF_THE_KERNEL and text not in SAMPLED:
        return f'{function}("{SAMPLED[0]}", time): the first is a series of the kernel\'s samples: {", ".join(SAMPLED)}'
    if arguments != len(wanted):
        return f"{function} has {len(wanted)} arguments: {function}({', '.join(wanted)})"
    return None
