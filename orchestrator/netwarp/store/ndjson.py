"""Reads the NDJSON of cell-init and the apps, one record a line, as types: init_records.py and app_records.py. Nothing
else parses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar, Union

import msgspec

from ..core.errors import StoreError
from ..core.limits import limits
from . import compressed


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="record", tag=_tag):
    """Base of every kind of record. Its first member `record` is the class's name in lower case: GaveUp is `gave_up`.

    A member without a default is in every record of its kind; one that the class does not have is ignored.
    """


R = TypeVar("R", bound=Record)


def kinds_of(base: type[R]) -> list[type[R]]:
    """Every kind below a base: the classes that have none below them."""
    return [kind for below in base.__subclasses__() for kind in kinds_of(below)] or [base]


def decoder_of(base: type[R]) -> msgspec.json.Decoder[R]:
    """A decoder of every kind below a base; made once a module, in one thread (core/frozen.from_json says why)."""
    return msgspec.json.Decoder(Union[tuple(kinds_of(base))])  # noqa: UP007 (of as many as there are)


def read_ndjson(path: Path, decoder: msgspec.json.Decoder[R], named: str = "") -> list[R]:
    """The records of a file, plain or compressed; only of the lines with a kind's name, where one is given.

    Raises StoreError if it cannot be read, holds more objects than the limit, or a complete line is no record that the
    decoder knows. A last line without a line feed was being written when the writer died, and is left out.
    """
    try:
        data = compressed.read(path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    data = data[: data.rfind(b"\n") + 1]
    if named:
        name = b'"%s"' % named.encode()
        data = b"\n".join(line for line in data.split(b"\n") if name in line)
    if data.count(b"{") > limits().objects:
        raise StoreError(f"{path}: has {limits().beyond('objects')}")
    try:
        return decoder.decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"{path}: not the records of this version: {error}") from error


def of_kind(records: Iterable[Record], kind: type[R]) -> list[R]:
    """The records of a kind."""
    return [record for record in records if isinstance(record, kind)]


def last(records: Sequence[Record], kind: type[R]) -> R | None:
    """The last record of a kind."""
    return next((record for record in reversed(records) if isinstance(record, kind)), None)
