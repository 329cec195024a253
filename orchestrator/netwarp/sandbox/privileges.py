"""Drops root: sandboxes run as an unprivileged user."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..core.checkout import CHECKOUT

NOBODY = 65534
BECOMING = 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID (capabilities(7)): a container may take them from its root."""


@dataclass(frozen=True, slots=True)
class User:
    """Numbers of an ordinary user."""

    uid: int
    gid: int

    def may_pass(self, directory: Path) -> bool:
        """Whether this user may look up names in it."""
        return self._allowed(directory, 0o1)

    def may_run(self, program: Path) -> bool:
        """Whether this user may get at a program, read and run it."""
        program = program.resolve()
        return all(self.may_pass(place) for place in program.parents) and self._allowed(program, 0o5)

    def _allowed(self, path: Path, permissions: int) -> bool:
        status = path.stat()
        owner, group = status.st_uid == self.uid, status.st_gid == self.gid
        return status.st_mode >> (6 if owner else 3 if group else 0) & permissions == permissions

    @property
    def arguments(self) -> list[str]:
        """What guest-exec and netns-exec are told."""
        return ["--user", f"{self.uid}:{self.gid}"]


def unprivileged() -> User | None:
    """Whom root's sandboxes become: who called sudo, else the owner of the checkout, else nobody. None for all others,
    whose sandboxes are as unprivileged as they are, and for a root who may not become anybody else."""
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


def _capabilities() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)


def open_to_all(directory: Path, *files: Path) -> bool:
    """Whether anybody may write into the directory and read and run the files: another user's sandbox could.

    Not if one is missing; who needs it says so.
    """
    mode = directory.stat().st_mode
    return mode & 0o003 == 0o003 and all(file.exists() and file.stat().st_mode & 0o005 == 0o005 for file in files)


def foreign_owner(directory: Path) -> User | None:
    """The owner that the file system gives to files of this process, where that is another user.

    So does hostfs in a guest that an ordinary user started (that user's), and NFS with root_squash (nobody's).
    In a user namespace whose root is this process such files belong to nobody, and cannot be written.
    """
    status = directory.stat()
    return None if status.st_uid == os.geteuid() else User(status.st_uid, status.st_gid)


def hand_over(directory: Path, user: User | None, programs: Iterable[Path] = ()) -> User | None:
    """Give a directory, just made, and what is in it to the user, who is to run these programs there.

    Returns the user whose it is now: the one given, or the foreign owner, whose it is already.
    None where there is none, where a directory above shuts others out (a guest walks there by name) or a program does,
    or where this file system knows no owners.
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
        for path in (directory, *directory.rglob("*")):
            os.chown(path, user.uid, user.gid, follow_symlinks=False)
    except OSError:
        take_back(directory, owner)
        return None
    return user


def take_back(directory: Path, owner: os.stat_result) -> None:
    """Give it back to its owner, when the sandbox has ended: what is neither file nor directory is removed, as root
    would follow it.

    A second name of a file from elsewhere is removed as well: its owner must not change.
    """
    for path in (directory, *directory.rglob("*")):
        status = path.lstat()
        kind = status.st_mode
        if not (stat.S_ISDIR(kind) or (stat.S_ISREG(kind) and status.st_nlink == 1)):
            path.unlink()
            continue
        if (status.st_uid, status.st_gid) != (owner.st_uid, owner.st_gid):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
        os.chmod(path, stat.S_IMODE(kind) & 0o777)
