"""Programs that the tests call and this machine lacks: the distribution's packages, unpacked, never installed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from ..core.errors import KernelError
from ..guestkernel.cache import kernels_dir

WANTED = (
    "bash", "bc", "conntrack", "ethtool", "iproute2", "iptables", "iputils-ping", "jq", "libsctp1",
    "lksctp-tools", "mawk", "net-tools", "netcat-openbsd", "nftables", "procps", "psmisc", "socat", "tcpdump",
    "util-linux",
)  # fmt: skip
"""Debian's names."""
_LINKS = {
    "iptables": "xtables-nft-multi",
    "iptables-save": "xtables-nft-multi",
    "iptables-restore": "xtables-nft-multi",
    "ip6tables": "xtables-nft-multi",
    "ip6tables-save": "xtables-nft-multi",
    "ip6tables-restore": "xtables-nft-multi",
    "nc": "nc.openbsd",
}
"""Names that a package's installation would link to a program of it."""


def unpacked(packages: Sequence[str] = WANTED) -> Path:
    """A directory with those of the packages (and of what they depend on) that are not installed, laid out as a root.

    Raises KernelError if apt knows one of them not, or cannot fetch it.
    """
    files = _missing(packages)
    names = ["=".join(unquote(file).split("_")[:2]) for file in files]
    digest = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]
    place = kernels_dir().parent / "selftests" / f"packages-{digest}"
    if place.is_dir():
        return place
    work = place.with_name(f".{place.name}")
    shutil.rmtree(work, ignore_errors=True)
    root, downloads = work / "root", work / "downloads"
    for folder in (root / "usr" / "sbin", root / "usr" / "bin", downloads):
        folder.mkdir(parents=True)
    if names:
        run_command(["apt-get", "download", *names], downloads)
    for package in sorted(downloads.glob("*.deb")):
        run_command(["dpkg", "-x", str(package), str(root)], work)
    for name in ("bin", "sbin", "lib", "lib64"):  # links into usr on a system of today
        if (root / name).is_dir():
            shutil.copytree(root / name, root / "usr" / name, dirs_exist_ok=True, symlinks=True)
            shutil.rmtree(root / name)
    for name, program in _LINKS.items():
        for folder in (root / "usr" / "sbin", root / "usr" / "bin"):
            if (folder / program).exists() and not (folder / name).exists():
                (folder / name).unlink(missing_ok=True)
                (folder / name).symlink_to(program)
    root.rename(place)
    shutil.rmtree(work)
    return place


def _missing(packages: Sequence[str]) -> list[str]:
    """The files of the packages that an installation would fetch."""
    try:
        answer = subprocess.run(
            ["apt-get", "--print-uris", "-y", "--no-install-recommends", "install", *packages],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except OSError as error:
        raise KernelError(f"the selftests need programs of the distribution's packages: {error}") from error
    except subprocess.CalledProcessError as error:
        raise KernelError(f"apt-get does not know all of {', '.join(packages)}: {error.stderr.strip()}") from error
    return [line.split()[1] for line in answer.stdout.splitlines() if line.startswith("'")]


def run_command(command: list[str], at: Path, what: str = "the selftests") -> None:
    """Run one command there. Raises KernelError: it is not there, or failed."""
    try:
        done = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)
    except OSError as error:
        raise KernelError(f"{what} need {command[0]}: {error}") from error
    if done.returncode:
        raise KernelError(f"{' '.join(command[:2])} failed for {what}: {done.stderr.strip()[-400:]}")
