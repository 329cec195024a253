"""What a machine's agent may say: types, because a machine of an inventory may be anybody's."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from ...core.names import LARGEST, Count

MOST_LINE = 1 << 20
"""Bytes of a message."""
MOST_MESSAGES = 1_000_000
"""Of one connection."""
Said = Annotated[str, Meta(max_length=2000)]
Left = Annotated[list[Said], Meta(max_length=1000)]
PathThere = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@=-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.@=-]{0,99}){0,3}\Z")
]
"""Of a file in a cell's directory."""
Instant = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]


class Hello(TypedDict):
    """The first message."""

    event: Literal["hello"]
    kernel: Said
    version: Said
    machine: Said
    uid: Count


class File(TypedDict):
    """Before the bytes of a file."""

    event: Literal["file"]
    path: PathThere
    size: Count


class CellEvent(TypedDict):
    """Of a sandbox that runs."""

    event: Literal["waiting", "flows over", "time", "ended"]
    seconds: NotRequired[Annotated[float, Meta(ge=-1e9, le=1e9)]]
    status: NotRequired[int]


class Facts(TypedDict):
    """Of an interface."""

    mac: Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{2}(?::[0-9a-f]{2}){0,19})?\Z")]
    ifindex: Annotated[int, Meta(ge=0, lt=1 << 31)]
    driver: NotRequired[Said]
    speed_mbit_s: NotRequired[Said | None]
    """None: its driver does not say."""


class Answer(TypedDict):
    """To any command."""

    answer: Said
    refused: NotRequired[Said]
    remedy: NotRequired[Said]


class Clock(Answer):
    """t_ns: CLOCK_REALTIME there."""

    t_ns: Instant


class Checked(Answer):
    """To `check`."""

    problems: Annotated[list[tuple[Said, Said]], Meta(max_length=1000)]
    interfaces: dict[Said, Facts]


class Missing(Answer):
    """To `missing`."""

    missing: Left


class LeftThere(Answer):
    """To `lease` and `finish`."""

    left: Left


class Files(Answer):
    """To `files`."""

    sizes: Annotated[dict[PathThere, Count], Meta(max_length=10_000)]


ANSWERS: dict[str, Any] = {
    "hello": Hello, "clock": Clock, "check": Checked, "missing": Missing, "lease": LeftThere, "finish": LeftThere,
    "files": Files,
}  # fmt: skip
"""Command -> the type of its answer, if that is more than a word."""


def decoded(line: bytes) -> dict[str, Any]:
    """A message of an agent. Raises ValueError: it is none."""
    try:
        message = msgspec.json.decode(line, type=dict[str, Any])
        if "answer" in message:
            kind: Any = Answer if "refused" in message else ANSWERS.get(str(message["answer"]), Answer)
        else:
            kind = {"hello": Hello, "file": File}.get(str(message.get("event")), CellEvent)
        found: dict[str, Any] = msgspec.convert(message, kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return found
