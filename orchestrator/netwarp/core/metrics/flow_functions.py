"""Functions of time of a flow for the expressions of metrics: sent_bit_s(2, 3), when_sending_below(1e6, 0.1, 2)."""

from __future__ import annotations

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
    "kernel": ("series", "time"),
}
"""Function -> its arguments. Times in s from T0; docs/spec.md says what each function gives."""
OF_THE_KERNEL = "kernel"
"""The function whose first argument is a text: a series that the sender's kernel told, one of SAMPLED."""


def arguments_problem(function: str, arguments: int, series: str | None) -> str | None:
    """The reason why a call of one of these functions is wrong, or None. series: the text of `kernel`."""
    wanted = ARGUMENTS[function]
    if function == OF_THE_KERNEL and series not in SAMPLED:
        return f'{function}("{SAMPLED[0]}", time): the first is a series of the kernel\'s samples: {", ".join(SAMPLED)}'
    if arguments != len(wanted):
        return f"{function} has {len(wanted)} arguments: {function}({', '.join(wanted)})"
    return None
