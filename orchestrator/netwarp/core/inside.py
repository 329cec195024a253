"""The only way into a run directory: paths that are opened below it without following a link.

A run directory may come from anywhere. Each folder on the way is opened by its name in the folder above (openat(2),
O_NOFOLLOW), so no link in it leads elsewhere, and only regular files are read or written. The run directory itself may
be reached by a link (results/NAME/latest).
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import io
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PosixPath
from typing import IO, Any, NoReturn, Self

from .errors import StoreError
from .limits import limits

FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: a pipe without a writer would be waited for."""
_ACCESS = {"r": os.O_RDONLY, "w": os.O_WRONLY | os.O_CREAT, "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
           "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND}  # fmt: skip
_NONE_THERE = (FileNotFoundError, NotADirectoryError)
MOST_DEEP = 64
"""Folders of a path below its base: each takes a descriptor while it is searched, and a process may have few."""


class _TooDeep(Exception):
    """Folders lie in folders beyond MOST_DEEP."""


def _below(folder: int, pattern: list[str], deep: bool, level: int = 1) -> Iterator[tuple[str, ...]]:
    """The names below an open directory that match. deep: also those of every directory below it. Raises _TooDeep."""
    first, *rest = pattern
    if level > MOST_DEEP:
        raise _TooDeep
    with os.scandir(folder) as entries:
        there = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in there:
        matches = fnmatch.fnmatchcase(name, first)
        if matches and not rest:
            yield (name,)
        if is_directory and (deep or (matches and rest)):
            try:
                inner = os.open(name, LISTING | os.O_NOFOLLOW, dir_fd=folder)
            except _NONE_THERE:  # removed meanwhile
                continue
            try:
                if matches and rest:
                    yield from ((name, *names) for names in _below(inner, rest, False, level + 1))
                if deep:
                    yield from ((name, *names) for names in _below(inner, pattern, True, level + 1))
            finally:
                os.close(inner)


class InsidePath(PosixPath):
    """A path in a directory, the base. Its methods never follow a link below the base; they raise StoreError at one.

    Paths made from it (`/`, parent, glob) have the same base. `resolve`, `absolute` and `relative_to` give other paths,
    which are for showing and comparing.
    """

    _base: Path | None = None

    @classmethod
    def at(cls, base: Path, path: Path | None = None) -> InsidePath:
        """A path below a base, by default the base itself; one that has a base already keeps it."""
        given = base if path is None else path
        if isinstance(given, InsidePath):
            return given
        if isinstance(base, InsidePath):
            base = base.base
        return cls._made(Path(base), Path(given))

    @classmethod
    def _made(cls, base: Path, path: Path) -> Self:
        new = cls(path)
        new._base = base
        return new

    @property
    def base(self) -> Path:
        """The directory below which no link is followed."""
        if self._base is None:
            raise ValueError(f"{self}: no directory is known that it lies in")
        return self._base

    def _like(self, path: Path) -> InsidePath:
        return type(self)._made(self.base, path)

    def _plain(self) -> Path:
        return Path(os.fspath(self))

    def __reduce__(self) -> Any:
        return type(self)._made, (self.base, self._plain())

    def __truediv__(self, key: str | os.PathLike[str]) -> InsidePath:
        return self._like(self._plain() / key)

    def joinpath(self, *names: str | os.PathLike[str]) -> InsidePath:
        """The path with these names behind it."""
        return self._like(self._plain().joinpath(*names))

    @property
    def parent(self) -> InsidePath:
        """The folder it lies in; that of the base lies outside, and no method reaches it."""
        return self._like(self._plain().parent)

    @property
    def parents(self) -> tuple[InsidePath, ...]:
        """The folders above it, the innermost first; no method reaches those above the base."""
        return tuple(self._like(path) for path in self._plain().parents)

    def with_name(self, name: str) -> InsidePath:
        """The path with another last name."""
        return self._like(self._plain().with_name(name))

    def with_suffix(self, suffix: str) -> InsidePath:
        """The path with another suffix."""
        return self._like(self._plain().with_suffix(suffix))

    def absolute(self) -> Path:  # type: ignore[override]  # another path, for showing
        """The absolute path."""
        return self._plain().absolute()

    def resolve(self, strict: bool = False) -> Path:  # type: ignore[override]  # likewise
        """The path without links."""
        return self._plain().resolve(strict)

    def relative_to(self, *other: Any, **more: Any) -> Path:  # type: ignore[override]  # likewise
        """The path below another."""
        return self._plain().relative_to(*other, **more)

    # ---- the way in

    def _names(self) -> tuple[str, ...]:
        """Its names below the base. Raises StoreError."""
        try:
            names = self._plain().relative_to(self.base).parts
        except ValueError:
            names = ("..",)
        if ".." in names:
            raise StoreError(f"{self}: lies outside of {self.base}")
        if len(names) > MOST_DEEP:
            self._refuse_depth()
        return names

    def _refuse_depth(self) -> NoReturn:
        shown = Path(*self._plain().parts[: len(self.base.parts) + 3])
        raise StoreError(f"{shown}: folders in it lie more than {MOST_DEEP} deep, as in no run; remove them")

    @contextlib.contextmanager
    def folder(self) -> Iterator[tuple[int, str]]:
        """A descriptor of the folder it lies in, and its name in that. Raises OSError, StoreError: a link."""
        *folders, name = self._names() or (".",)
        handle = os.open(self.base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for number, each in enumerate(folders):
                try:
                    below = os.open(each, FOLDER, dir_fd=handle)
                except OSError as error:
                    self._refuse_link(handle, each, self.base.joinpath(*folders[: number + 1]))
                    raise self._named(error) from error
                os.close(handle)
                handle = below
            yield handle, name
        finally:
            os.close(handle)

    def _named(self, error: OSError) -> OSError:
        return type(error)(error.errno, os.strerror(error.errno or 0), str(self))

    @staticmethod
    def _refuse_link(folder: int, name: str, path: Path) -> None:
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise StoreError(
                    f"{path}: is a symbolic link, and none in a directory is followed: put what it leads to in its "
                    "place, or remove it"
                )

    def descriptor(self, flags: int, permissions: int = 0o666) -> int:
        """A descriptor of the regular file, which is not followed if it is a link. Raises OSError, StoreError."""
        with self.folder() as (folder, name):
            try:
                handle = os.open(name, flags & ~os.O_TRUNC | FILE, permissions, dir_fd=folder)
            except OSError as error:
                self._refuse_link(folder, name, self._plain())
                if error.errno == errno.ENXIO:  # a pipe that nobody reads, a socket
                    self._refuse_kind()
                raise self._named(error) from error
        try:
            status = os.fstat(handle)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self))
            if not stat.S_ISREG(status.st_mode):
                self._refuse_kind()
            if flags & (os.O_WRONLY | os.O_RDWR) and status.st_nlink > 1:
                raise StoreError(f"{self}: is a hard link to a file that may lie elsewhere, so it is not written")
            os.set_blocking(handle, True)
            if flags & os.O_TRUNC:
                os.truncate(handle, 0)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _refuse_kind(self) -> NoReturn:
        raise StoreError(f"{self}: is neither a file nor a directory (a pipe, a socket or a device); remove it")

    def open(  # type: ignore[override]  # of all modes
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """The file, as the built-in open gives it. Raises OSError, StoreError."""
        access = _ACCESS[mode.strip("bt+")]
        if "+" in mode:
            access = access & ~os.O_WRONLY | os.O_RDWR
        handle = self.descriptor(access | (os.O_TRUNC if "w" in mode else 0))
        try:
            return io.open(handle, mode, buffering, encoding, errors, newline)  # noqa: UP020  this method is `open`
        except BaseException:
            os.close(handle)
            raise

    def read_bytes(self, limit: str = "whole_bytes") -> bytes:
        """The file's content. Raises OSError, StoreError: also of a file that is larger than the limit of that name."""
        with self.open("rb") as file:
            if os.fstat(file.fileno()).st_size > getattr(limits(), limit):
                raise StoreError(f"{self}: has {limits().beyond(limit)}")
            content: bytes = file.read()
        return content

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """The same as text."""
        return io.TextIOWrapper(io.BytesIO(self.read_bytes()), encoding, errors).read()

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Its status. Raises OSError; StoreError: it is a link, and its target is asked for."""
        if not self._names():
            return os.stat(self.base)
        with self.folder() as (folder, name):
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except OSError as error:
                raise self._named(error) from error
            if follow_symlinks and stat.S_ISLNK(status.st_mode):
                self._refuse_link(folder, name, self._plain())
        return status

    def lstat(self) -> os.stat_result:
        """Its status, also of a link. Raises OSError."""
        return self.stat(follow_symlinks=False)

    def _kind(self) -> int:
        """Its kind and permissions; 0 where there is nothing. Raises OSError, StoreError: a link."""
        try:
            return self.stat().st_mode
        except _NONE_THERE:
            return 0

    def exists(self, **more: Any) -> bool:
        """True if it is there. Raises StoreError: it is a link, or lies behind one."""
        return self._kind() != 0

    def is_file(self, **more: Any) -> bool:
        """True if it is a regular file. Raises StoreError as `exists`."""
        return stat.S_ISREG(self._kind())

    def is_dir(self, **more: Any) -> bool:
        """True if it is a directory. Raises StoreError as `exists`."""
        return stat.S_ISDIR(self._kind())

    def is_symlink(self) -> bool:
        """True if it is a symbolic link."""
        try:
            return stat.S_ISLNK(self.lstat().st_mode)
        except _NONE_THERE:
            return False

    def folder_descriptor(self) -> int:
        """A descriptor of the directory itself, which is not followed if it is a link. Raises OSError, StoreError."""
        with self.folder() as (folder, name):
            try:
                return os.open(name, LISTING | (0 if name == "." else os.O_NOFOLLOW), dir_fd=folder)
            except OSError as error:
                self._refuse_link(folder, name, self._plain())
                raise self._named(error) from error

    def listed(self) -> list[str]:
        """The names in the directory, sorted. Raises OSError, StoreError: a link, or a name that is not UTF-8."""
        handle = self.folder_descriptor()
        try:
            return sorted(map(self._utf8, os.listdir(handle)))
        finally:
            os.close(handle)

    def iterdir(self) -> Iterator[InsidePath]:  # type: ignore[override]  # of this kind
        """What is in the directory."""
        return (self / name for name in self.listed())

    def glob(self, pattern: str, **more: Any) -> Iterator[InsidePath]:  # type: ignore[override]  # of this kind
        """What matches a pattern of names with slashes between them, sorted. A link that matches is given, never
        followed.
        """
        return self._matches(pattern, deep=False)

    def rglob(self, pattern: str, **more: Any) -> Iterator[InsidePath]:  # type: ignore[override]  # of this kind
        """What matches a pattern in this directory or any below it."""
        return self._matches(pattern, deep=True)

    def _matches(self, pattern: str, *, deep: bool) -> Iterator[InsidePath]:
        try:
            handle = self.folder_descriptor()
        except _NONE_THERE:
            return iter(())
        try:
            found = sorted(_below(handle, pattern.split("/"), deep))
        except _TooDeep:
            self._refuse_depth()
        finally:
            os.close(handle)
        return (self.joinpath(*map(self._utf8, names)) for names in found)

    def _utf8(self, name: str) -> str:
        """The name of a file in it. Raises StoreError: it is not UTF-8, so that no page and no JSON could hold it."""
        try:
            name.encode()
        except UnicodeEncodeError as error:
            said = f"{self}: in it a file is named {os.fsencode(name)!r}, which is not UTF-8: rename it, or remove it"
            raise StoreError(said) from error
        return name

    # ---- changes

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Make the directory. Raises OSError, StoreError."""
        if not self._names():
            self.base.mkdir(mode, parents, exist_ok)
            return
        if parents and (outer := self.parent) != self and not outer.is_dir():
            outer.mkdir(parents=True, exist_ok=True)
        with self.folder() as (folder, name):
            try:
                os.mkdir(name, mode, dir_fd=folder)
            except FileExistsError as error:
                self._refuse_link(folder, name, self._plain())
                if not (exist_ok and self.is_dir()):
                    raise self._named(error) from error
            except OSError as error:
                raise self._named(error) from error

    def touch(self, mode: int = 0o666, exist_ok: bool = True) -> None:
        """Make an empty file if there is none. Raises OSError, StoreError."""
        os.close(self.descriptor(os.O_WRONLY | os.O_CREAT | (0 if exist_ok else os.O_EXCL), mode))

    def chmod(self, mode: int, *, follow_symlinks: bool = True) -> None:
        """Set the permissions of a file or directory. Raises OSError, StoreError."""
        with self.folder() as (folder, name):
            try:
                handle = os.open(name, os.O_RDONLY | (0 if name == "." else FILE), dir_fd=folder)
            except OSError as error:
                self._refuse_link(folder, name, self._plain())
                raise self._named(error) from error
        try:
            os.chmod(handle, mode)
        finally:
            os.close(handle)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file, or the link and not its target. Raises OSError, StoreError."""
        try:
            with self.folder() as (folder, name):
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError as error:
            if not missing_ok:
                raise self._named(error) from error

    def rmdir(self) -> None:
        """Remove the empty directory. Raises OSError, StoreError."""
        with self.folder() as (folder, name):
            os.rmdir(name, dir_fd=folder)

    def replace(self, target: str | os.PathLike[str]) -> InsidePath:
        """Move it to another name, in place of what is there. Raises OSError, StoreError."""
        other = inside(Path(target) if not isinstance(target, Path) else target)
        with self.folder() as (folder, name), other.folder() as (new_folder, new_name):
            os.replace(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)
        return other

    rename = replace

    def remove_tree(self, *, ignore_errors: bool = False) -> None:
        """Remove a directory and everything in it, or a file; of a link the link alone. Raises OSError, StoreError."""
        try:
            if not self._names():
                shutil.rmtree(self.base, ignore_errors=ignore_errors)
                return
            with self.folder() as (folder, name):
                if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    shutil.rmtree(name, ignore_errors=ignore_errors, dir_fd=folder)
                else:
                    os.unlink(name, dir_fd=folder)
        except RecursionError:
            self._refuse_depth()
        except OSError as error:
            if not ignore_errors:
                raise self._named(error) from error

    def hard_link(self, target: InsidePath) -> None:
        """Make a hard link of the file at `target`, or a copy where the file system has none."""
        try:
            with self.folder() as (folder, name), target.folder() as (new_folder, new_name):
                os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder, follow_symlinks=False)
        except OSError:
            self.copy_to(target)

    def copy_to(self, target: Path) -> None:
        """Copy the file's content and permissions. Raises OSError, StoreError."""
        with self.open("rb") as source, inside(target).open("wb") as sink:
            shutil.copyfileobj(source, sink)
            os.fchmod(sink.fileno(), stat.S_IMODE(os.fstat(source.fileno()).st_mode) & 0o777)

    def copy_tree(self, target: Path, *, link: bool = False) -> None:
        """Copy a directory to a new one: its directories and regular files; links and special files are left out. link:
        files as hard links where that is possible. Raises OSError, StoreError.
        """
        new = inside(target)
        new.mkdir(parents=True, exist_ok=True)
        for path in self.iterdir():
            kind = path.lstat().st_mode
            if stat.S_ISDIR(kind):
                path.copy_tree(new / path.name, link=link)
            elif stat.S_ISREG(kind):
                (path.hard_link if link else path.copy_to)(new / path.name)

    def temporary(self, suffix: str) -> InsidePath:
        """A new name beside this one, hidden, with that suffix."""
        return self.with_name(f".{self.name}.{os.urandom(4).hex()}{suffix}")


def inside(path: Path) -> InsidePath:
    """The path itself if it knows its base; of any other the folder that it lies in is the base."""
    return path if isinstance(path, InsidePath) else InsidePath.at(path.parent, path)
