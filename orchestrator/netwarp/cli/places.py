"""Types of options that name what a command writes: a place that cannot be written is refused before anything runs."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ..core.errors import SpecError, StoreError, reason_words


def new_file(text: str | Path) -> Path:
    """The file of an option (`type=`), which may exist. Raises SpecError, StoreError: it cannot be written."""
    path = Path(text)
    if path.is_dir():
        raise SpecError(f"{path}: is a directory; name a file, for example {path / 'netwarp-result'}")
    _writable(path, path.parent)
    return path


def new_folder(text: str | Path) -> Path:
    """The directory of an option, which may exist. Raises SpecError, StoreError: it cannot be made or written."""
    path = Path(text)
    if os.path.lexists(path) and not path.is_dir():
        raise SpecError(f"{path}: is a file; name a directory, a new one for example")
    _writable(path, path)
    return path


def _writable(path: Path, folder: Path) -> None:
    """Looks at the nearest directory that is there; the others would be made in it."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        raise SpecError(f"{path}: {there} is a file and not a directory; name another place")
    if not os.access(there, os.W_OK | os.X_OK):
        number = errno.EROFS if os.statvfs(there).f_flag & os.ST_RDONLY else errno.EACCES
        raise StoreError(f"{path}: {there}: {reason_words(OSError(number, os.strerror(number)))}")
