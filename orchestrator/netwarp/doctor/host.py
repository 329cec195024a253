"""Checks of this machine's own kernel, which matter for the netns back end, and whether netwarp runs as root.

Standard library only, as all of `doctor`: it runs before anything is installed.
"""

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
"""Sysctls that can forbid user namespaces to ordinary users: (name, value that forbids, value that allows)."""


def _own() -> str:
    """The expression for: new user and network namespaces (CLONE_NEWUSER | CLONE_NEWNET), with this user mapped to root
    in them. Some systems refuse the second part, the write to uid_map (O_WRONLY is 1).
    """
    users = f"0 {os.geteuid()} 1"
    wrote = f"libc.write(libc.open(b'/proc/self/uid_map', 1), b'{users}', {len(users)}) == {len(users)}"
    return f"libc.unshare(0x10000000 | 0x40000000) == 0 and {wrote}"


def namespaces() -> Finding:
    """User and network namespaces without root."""
    what = "host namespaces"
    if answers_in_child(_own()):
        return Finding(what, "ok", "user and network namespaces can be made")
    detail = "refused; only the netns back end needs them"
    wrong = [f"{name.replace('/', '.')}={good}" for name, bad, good in _SWITCHES if _sysctl(name) == bad]
    if wrong:
        return Finding(what, "note", detail, distribution.as_root(f"sysctl -w {' '.join(wrong)}"))
    remedy = (
        "in a container: run it with --security-opt seccomp=unconfined; in a chroot the kernel refuses them: "
        "enter it by pivot_root(8), or leave it; else run netwarp as root"
    )
    return Finding(what, "note", detail, remedy)


def captures() -> Finding:
    """A packet socket in new namespaces: cell-init captures with it."""
    if answers_in_child(f"{_own()} and {_PACKET_SOCKET}") or answers_in_child(_PACKET_SOCKET):
        return Finding("host captures", "ok", "packet sockets can be opened")
    remedy = "" if not answers_in_child(_own()) else distribution.module_remedy("af_packet")
    return Finding("host captures", "note", "packet sockets are refused", remedy)


def laboratory() -> Finding:
    """`make lab`: namespaces, and taps in them (TUNSETIFF, an interface of its own in the new network namespace)."""
    what = "laboratory"
    tap = (
        "libc.ioctl(libc.open(b'/dev/net/tun', 2), 0x400454CA, b'netwarp-lab'.ljust(16, b'\\0') + "
        "(0x1002).to_bytes(2, 'little') + bytes(22)) == 0"
    )
    if answers_in_child(f"{_own()} and {tap}"):
        return Finding(what, "ok", "taps can be made in namespaces: make lab, as this user")
    if not answers_in_child(_own()):
        return Finding(what, "note", "make lab needs namespaces of its own", "see host namespaces; or run it as root")
    if not os.path.exists("/dev/net/tun"):
        return Finding(what, "note", "make lab needs taps; there is no /dev/net/tun", distribution.module_remedy("tun"))
    remedy = distribution.as_root("chmod 0666 /dev/net/tun")
    return Finding(what, "note", "make lab needs taps; /dev/net/tun cannot be opened", f"{remedy}; or run it as root")


def sctp() -> Finding:
    """SCTP in this kernel: opens a socket, which loads the module if that is allowed."""
    if answers_in_child(_SCTP_SOCKET):
        return Finding("host SCTP", "ok", f"in Linux {platform.release()}")
    return _module("host SCTP", "sctp")


def netem() -> Finding:
    """netem in this kernel: built in, loaded, or a module that the first shaped link loads."""
    if Path("/sys/module/sch_netem").is_dir() or _known("sch_netem"):
        return Finding("host netem", "ok", f"in Linux {platform.release()}")
    return _module("host netem", "sch_netem")


def _module(what: str, module: str) -> Finding:
    detail = f"not in Linux {platform.release()}; guest kernels have it"
    if _known(module):
        detail = f"not loaded; a module is installed for Linux {platform.release()}"
    elif not (Path("/lib/modules") / platform.release()).is_dir():
        remedy = "boot a kernel whose modules are installed"
        return Finding(what, "note", detail, remedy)
    return Finding(what, "note", detail, distribution.module_remedy(module))


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
    """Says if netwarp, and therefore its guests, run as root."""
    if os.geteuid() != 0:
        return Finding("user", "ok", "not root: guests can read what this user can read")
    detail = "root: guests run as an unprivileged user if it can reach the run directory, else as root"
    remedy = "run netwarp as an ordinary user; it needs no other right (docs/security.md)"
    return Finding("user", "warning", detail, remedy)
