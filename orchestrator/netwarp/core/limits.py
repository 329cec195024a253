"""Limits on what is read of a file from elsewhere. A larger file is refused; `netwarp COMMAND --limit` raises them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from .errors import SpecError
from .units import Quantity as _Quantity
from .units import QuantityError, counted, format_quantity, parse_quantity

_COUNTED = {
    "members": ("file",), "connections": ("connection",), "paths": ("pair of addresses", "pairs of addresses"),
    "paths_of_one": ("path of one connection", "paths of one connection"),
    "objects": ("JSON object", "JSON objects"),
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """bytes: of all files of a bundle, expanded. whole_bytes: of one file of a run that is read at once, which may
    stand in memory twice. file_bytes: of one file of a bundle, and of records and JSON of a run: the types that they
    are decoded into take several times as much. objects: in a file of records, however small each of them is.
    members: files in a bundle or a packed cell. capture_bytes: of one compressed capture, expanded (as a power of two,
    rounded down). packets, connections, paths: of one capture point. paths_of_one: of one connection. cell_packets,
    explained_packets: of one capture point, where all rows are in memory, 256 bytes a packet (NWA_ROW_BYTES): of a
    cell that is analysed, and of what `explain` reads.
    """

    bytes: int = 1 << 30
    whole_bytes: int = 384 << 20
    file_bytes: int = 128 << 20
    capture_bytes: int = 16 << 30
    objects: int = 2_500_000
    members: int = 100_000
    packets: int = 200_000_000
    connections: int = 500_000
    paths: int = 2_000_000
    paths_of_one: int = 1000
    cell_packets: int = 10_000_000
    explained_packets: int = 2_000_000

    def shown(self, name: str) -> str:
        """One of them as text: "1 GiB", "250 000 files"."""
        value: int = getattr(self, name)
        if name.endswith("bytes"):
            return format_quantity(_Quantity("data", value))
        return counted(value, *_COUNTED.get(name, ("packet",)))

    def beyond(self, name: str) -> str:
        """The end of a sentence about a file that holds more than one of them."""
        rows = "rows than those of" if name in ("cell_packets", "explained_packets") else "than"
        return (
            f"more {rows} {self.shown(name)}; if you trust it, --limit {option(name)}={self.example(name)} reads more"
        )

    def example(self, name: str) -> str:
        """Four times as much, as the option takes it."""
        value = 4 * getattr(self, name)
        return f"'{format_quantity(_Quantity('data', value))}'" if name.endswith("bytes") else str(value)


_DEFAULT = Limits()
_current: ContextVar[Limits] = ContextVar("limits", default=_DEFAULT)


def limits() -> Limits:
    """Those that hold here."""
    return _current.get()


@contextlib.contextmanager
def raised(texts: Sequence[str]) -> Iterator[None]:
    """Within the block other limits hold, also in processes forked there. texts: of --limit, "bytes=8 GiB". Raises
    SpecError.
    """
    token = _current.set(dataclasses.replace(limits(), **dict(map(_parsed, texts))))
    try:
        yield
    finally:
        _current.reset(token)


def option(name: str) -> str:
    """The name of a limit as it is typed."""
    return name.replace("_", "-")


NAMES = tuple(option(field.name) for field in dataclasses.fields(Limits))


def _parsed(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if name not in NAMES or not value:
        raise SpecError(f"--limit {text}: wants NAME=VALUE, of these names: {', '.join(NAMES)}")
    try:
        number = parse_quantity(value, "data").value if name.endswith("bytes") else int(float(value))
    except (QuantityError, OverflowError, ValueError) as error:
        said = error if isinstance(error, QuantityError) else f"{value!r} is no whole number"
        raise SpecError(f"--limit {name}: {said}") from error
    if not 0 < number < 1 << 62:
        raise SpecError(f"--limit {name}: {value!r} is out of range")
    return name.replace("-", "_"), int(number)
