"""Checks this machine's own kernel, for the netns back end alone."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from . import distribution
from .finding import Finding, answers_in_child

_PACKET_SOCKET = "libc.socket(17, 3, 768) >= 0"
"""AF_PACKET, SOCK_RAW, ETH_P_ALL in network byte order"""
_SCTP_SOCKET = "libc.socket(2, 1, 132) >= 0"
"""AF_INET, SOCK_STREAM, IPPROTO_SCTP"""
_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user/max_user_namespaces", "0", "15000"),
)
"""Sysctls that forbid ordinary users their namespaces: what they then say, what they should say."""


def _own() -> str:
    """CLONE_NEWUSER | CLONE_NEWNET, and this user as root there, which some systems refuse (O_WRONLY is 1)."""
    users = f"0 {os.geteuid()} 1"
    wrote = f"libc.write(libc.open(b'/proc/self/uid_map', 1), b'{users}', {len(users)}) == {len(users)}"
    return f"libc.unshare(0x10000000 | 0x40000000) == 0 and {wrote}"


def namespaces() -> Finding:
    """User and network namespaces without root."""
    what = "host namespaces"
    if answers_in_child(_own()):
        return Finding(what=what, state="ok", found="user and network namespaces can be made")
    found = "refused; only the netns back end asks for them"
    wrong = [f"{name.replace('/', '.')}={good}" for name, bad, good in _SWITCHES if _sysctl(name) == bad]
    if wrong:
        return Finding(
            what=what, state="note", found=found, remedy=distribution.as_root(f"sysctl -w {' '.join(wrong)}")
        )
    remedy = (
        "in a container: run it with --security-opt seccomp=unconfined; in a chroot nobody may make them: enter it by "
        "pivot_root(8), or leave it; else run netwarp as root"
    )
    return Finding(what=what, state="note", found=found, remedy=remedy)


def captures() -> Finding:
    """A packet socket in namespaces of one's own: what cell-init captures with."""
    if answers_in_child(f"{_own()} and {_PACKET_SOCKET}") or answers_in_child(_PACKET_SOCKET):
        return Finding(what="host captures", state="ok", found="packet sockets can be opened")
    remedy = "" if not answers_in_child(_own()) else distribution.module_remedy("af_packet")
    return Finding(what="host captures", state="note", found="packet sockets are refused", remedy=remedy)


def sctp() -> Finding:
    """Asked by opening a socket, which loads the module where root lets it."""
    if answers_in_child(_SCTP_SOCKET):
        return Finding(what="host SCTP", state="ok", found=f"in Linux {platform.release()}")
    return _module("host SCTP", "sctp")


def netem() -> Finding:
    """Built in, loaded, or there to be loaded when the first link is shaped."""
    if Path("/sys/module/sch_netem").is_dir() or _known("sch_netem"):
        return Finding(what="host netem", state="ok", found=f"in Linux {platform.release()}")
    return _module("host netem", "sch_netem")


def _module(what: str, module: str) -> Finding:
    found = f"not in Linux {platform.release()}; guests bring their own"
    if _known(module):
        found = f"not loaded, but there is a module for Linux {platform.release()}"
    elif not (Path("/lib/modules") / platform.release()).is_dir():
        remedy = "boot a kernel whose modules are installed"
        return Finding(what=what, state="note", found=found, remedy=remedy)
    return Finding(what=what, state="note", found=found, remedy=distribution.module_remedy(module))


def _known(module: str) -> bool:
    for name in ("modules.builtin", "modules.dep"):
        path = Path("/lib/modules") / platform.release() / name
        if path.is_file() and f"/{module}.ko" in path.read_text(errors="replace"):
            return True
    return False


def _sysctl(name: str) -> str:
    try:
        return (Path("/proc/sys") / name).read_text().strip()
    except OSError:
        return ""


def is_root() -> Finding:
    """What runs as root when netwarp does."""
    if os.geteuid() != 0:
        return Finding(what="user", state="ok", found="not root: guests see what this user may read")
    found = "root: guests become an ordinary user where that one can reach the run directory, else they stay root"
    remedy = "run netwarp as an ordinary user, who needs nothing more (docs/security.md)"
    return Finding(what="user", state="warning", found=found, remedy=remedy)
