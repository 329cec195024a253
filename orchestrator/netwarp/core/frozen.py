"""The base of the frozen types that all stages share, and their JSON."""

from __future__ import annotations

import threading
from typing import TypeVar

import msgspec

T = TypeVar("T")


class Frozen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every type here: immutable, unknown JSON fields refused."""


def to_json(value: msgspec.Struct) -> bytes:
    """Compact JSON with fields and keys in the order they have. Reading it back and writing it again gives the same
    text, hence the same id.

    The planner adds a cell's keys in the order of the spec: the same spec gives the same bytes.
    """
    return msgspec.json.encode(value)


_making = threading.Lock()


def from_json(data: bytes, kind: type[T]) -> T:
    """Read the JSON back; safe in any thread. Raises msgspec.DecodeError on an unknown field or a wrong type, and
    where it is no UTF-8 or nested too deep.
    """
    with _making:  # msgspec (0.22) shows a type's fields to other threads before it knows them all: a SIGSEGV there
        decoder = msgspec.json.Decoder(kind)
    try:
        return decoder.decode(data)
    except (RecursionError, UnicodeDecodeError) as error:  # msgspec raises these as they are
        raise msgspec.DecodeError(f"{error}") from error
