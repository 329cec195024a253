"""Drops root: sandboxes run as an unprivileged user."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..core.checkout import CHECKOUT
from ..core.inside import InsidePath, inside

NOBODY = 65534
BECOMING = 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID (capabilities(7)): a container may take them from its root."""
CAP_SYS_ADMIN, LOADING = 1 << 21, 1 << 39 | 1 << 12
"""LOADING: CAP_BPF and CAP_NET_ADMIN."""


@dataclass(frozen=True, slots=True)
class User:
    """User and group id of an ordinary user."""

    uid: int
    gid: int

    def may_pass(self, directory: Path) -> bool:
        """True if this user may search the directory."""
        return self._allowed(directory, 0o1)

    def may_run(self, program: Path) -> bool:
        """True if this user may reach, read and run a program."""
        program = program.resolve()
        return all(self.may_pass(place) for place in program.parents) and self._allowed(program, 0o5)

    def _allowed(self, path: Path, permissions: int) -> bool:
        status = path.stat()
        owner, group = status.st_uid == self.uid, status.st_gid == self.gid
        return status.st_mode >> (6 if owner else 3 if group else 0) & permissions == permissions

    @property
    def arguments(self) -> list[str]:
        """The option --user for guest-exec and netns-exec."""
        return ["--user", f"{self.uid}:{self.gid}"]


def unprivileged() -> User | None:
    """The user as which root's sandboxes run: the one who called sudo, otherwise the owner of the checkout, otherwise
    nobody. None if this process is not root, or is a root that may not change its user.
    """
    if os.geteuid() != 0 or _capabilities() & BECOMING != BECOMING:
        return None
    owner = CHECKOUT.stat()
    called = (os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", ""))
    if all(text.isdecimal() and int(text) for text in called):
        return User(int(called[0]), int(called[1]))
    if owner.st_uid and owner.st_gid:
        return User(owner.st_uid, owner.st_gid)
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return User(NOBODY, NOBODY)
    return User(entry.pw_uid, entry.pw_gid)


def may_load_programs() -> bool:
    """True if this process may load eBPF programs for a link: root of the machine itself, not of a user namespace, with
    the capabilities that bpf(2) asks for.
    """
    held = _capabilities()
    whole = Path("/proc/self/uid_map").read_text().split() == ["0", "0", str(2**32 - 1)]
    return whole and os.geteuid() == 0 and bool(held & CAP_SYS_ADMIN or held & LOADING == LOADING)


def _capabilities() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)


def open_to_all(directory: Path, *files: Path) -> bool:
    """True if any user may write into the directory and read and run its files, so that another user's sandbox works
    there. False if one is missing; the caller reports that.
    """
    mode = directory.stat().st_mode
    return mode & 0o003 == 0o003 and all(file.exists() and file.stat().st_mode & 0o005 == 0o005 for file in files)


def foreign_owner(directory: Path) -> User | None:
    """The owner that the file system assigns to files of this process, if that is another user.

    hostfs does this in a guest that an ordinary user started (that user), NFS with root_squash (nobody). In a user
    namespace whose root is this process such files belong to nobody and cannot be written.
    """
    status = directory.stat()
    return None if status.st_uid == os.geteuid() else User(status.st_uid, status.st_gid)


def hand_over(directory: Path, user: User | None, programs: Iterable[Path] = ()) -> User | None:
    """Give a new directory and its content to the user who is to run these programs there.

    Returns the new owner: the user given, or the foreign owner, to whom it belongs already. None if there is no user,
    if the user cannot pass a parent directory (a guest opens files by name) or run a program, or if this file system
    has no owners.
    """
    if user is None:
        return None
    owner = directory.stat()
    foreign = foreign_owner(directory)
    user = foreign or user
    if not (user.uid and user.gid) or not all(user.may_pass(place) for place in directory.absolute().parents):
        return None
    if not all(user.may_run(program) for program in programs):
        return None
    if foreign is not None:
        return user
    try:
        for path in _all(directory):
            _give(path, user.uid, user.gid)
    except OSError:
        take_back(directory, owner)
        return None
    return user


def take_back(directory: Path, owner: os.stat_result) -> None:
    """Return the directory to its owner after the sandbox has ended. Everything in it that is neither file nor
    directory is removed, since root would follow it; so is a hard link to a file from elsewhere, whose owner must not
    change.
    """
    for path in _all(directory):
        status = path.lstat()
        kind = status.st_mode
        if not (stat.S_ISDIR(kind) or (stat.S_ISREG(kind) and status.st_nlink == 1)):
            path.unlink()
            continue
        if (status.st_uid, status.st_gid) != (owner.st_uid, owner.st_gid):
            _give(path, owner.st_uid, owner.st_gid)
        path.chmod(stat.S_IMODE(kind) & 0o777)


def _all(directory: Path) -> list[InsidePath]:
    """The directory and everything below it."""
    root = inside(directory)
    return [root, *root.rglob("*")]


def _give(path: InsidePath, uid: int, gid: int) -> None:
    """Change the owner of what lies there, also of a link itself."""
    with path.folder() as (folder, name):
        os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=name == ".")
