"""The Linux distribution of this machine, and its commands to install packages.

Standard library only, and no syntax newer than Python 3.7: it runs on machines that lack everything. netwarp's tests
run Debian's commands; those of other distributions follow their own package names and are not run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ..core.checkout import CHECKOUT
from ..core.executables import find_executable

OS_RELEASE = Path("/etc/os-release")
INSTALL = {
    "debian": "apt-get install --no-install-recommends",
    "fedora": "dnf install",
    "suse": "zypper install",
    "arch": "pacman -S --needed",
}
IS_INSTALLED = {"fedora": ("rpm", "-q"), "suse": ("rpm", "-q"), "arch": ("pacman", "-Q")}
"""Asked of one package at a time; of Debian's dpkg-query knows all at once."""
NAMES = {
    "gcc": ("gcc", "gcc", "gcc"),
    "make": ("make", "make", "make"),
    "libc6-dev": ("glibc-devel glibc-static", "glibc-devel glibc-devel-static", "glibc"),
    "flex": ("flex", "flex", "flex"),
    "bison": ("bison", "bison", "bison"),
    "bc": ("bc", "bc", "bc"),
    "xz-utils": ("xz", "xz", "xz"),
    "patch": ("patch", "patch", "patch"),
    "ccache": ("ccache", "ccache", "ccache"),
    "libzstd-dev": ("libzstd-devel", "libzstd-devel", "zstd"),
    "zlib1g-dev": ("zlib-devel", "zlib-devel", "zlib"),
    "liblzma-dev": ("xz-devel", "xz-devel", "xz"),
    "libbz2-dev": ("bzip2-devel", "libbz2-devel", "bzip2"),
    "liblz4-dev": ("lz4-devel", "liblz4-devel", "lz4"),
    "libpcap0.8": ("libpcap", "libpcap1", "libpcap"),
    "libsctp-dev": ("lksctp-tools-devel", "lksctp-tools-devel", "lksctp-tools"),
    "python3-venv": ("python3", "python3", "python"),
    "ca-certificates": ("ca-certificates", "ca-certificates", "ca-certificates"),
    "git": ("git", "git", "git"),
    "iperf3": ("iperf3", "iperf", "iperf3"),
    "iputils-ping": ("iputils", "iputils", "iputils"),
    "util-linux": ("util-linux", "util-linux", "util-linux"),
}
"""Debian's name -> Fedora's (and RHEL's), openSUSE's, Arch's. linux-source-6.12 has no counterpart there: a tarball."""
FAMILIES = ("fedora", "suse", "arch")
UBUNTU = CHECKOUT / "setup/ubuntu.txt"
"""The same of Ubuntu, which setup/packages.sh reads too."""
MODULE_PACKAGES = {"ubuntu": "linux-modules-extra-{release}", "fedora": "kernel-modules-extra-{release}"}
"""Packages with kernel modules that a distribution ships separately (sch_netem on Ubuntu and Fedora, sctp on both)."""


def os_release() -> dict[str, str]:
    """os-release(5) as a table; empty where there is none."""
    fields = {}
    try:
        lines = OS_RELEASE.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    for line in lines:
        key, equals, value = line.partition("=")
        if equals:
            fields[key.strip()] = value.strip().strip("\"'")
    return fields


def name() -> str:
    """The distribution's name."""
    return os_release().get("PRETTY_NAME", "an unknown distribution")


def kinds() -> list[str]:
    """ID and ID_LIKE of os-release(5)."""
    release = os_release()
    return [release.get("ID", ""), *release.get("ID_LIKE", "").split()]


def family() -> str:
    """debian, fedora, suse, arch, or "": the family whose commands install packages here."""
    known = {"debian": "debian", "ubuntu": "debian", "fedora": "fedora", "rhel": "fedora", "centos": "fedora",
             "arch": "arch", "suse": "suse", "opensuse": "suse", "sles": "suse"}  # fmt: skip
    for kind in kinds():
        if kind in known or kind.startswith("opensuse"):
            return known.get(kind, "suse")
    return ""


def wheel(name: str) -> str:
    """The command that installs a wheel into the environment of this Python."""
    return f"{sys.executable} -m pip install {name}"


def as_root(command: str) -> str:
    """The command with sudo, unless this process is root."""
    return command if os.geteuid() == 0 else f"sudo {command}"


def local_names(packages: list[str]) -> list[str]:
    """Debian's package names translated to this distribution's; those without a counterpart are left out."""
    here = family()
    if here not in FAMILIES:
        own = _ubuntu_names() if "ubuntu" in kinds() else {}
        return [name for name in (own.get(package, package) for package in packages) if name != "-"]
    column = FAMILIES.index(here)
    return [word for package in packages if package in NAMES for word in NAMES[package][column].split()]


def _ubuntu_names() -> dict[str, str]:
    lines = [line.split() for line in UBUNTU.read_text().splitlines() if not line.startswith("#")]
    return {line[0]: line[1] for line in lines if line}


def packs(package: str) -> bool:
    """True if this distribution has Debian's package of that name."""
    return family() == "debian" and bool(local_names([package]))


def install(packages: list[str]) -> str:
    """The command line that installs packages given by their Debian names; a sentence if the distribution is
    unknown.
    """
    here = family()
    if not here:
        return f"install what Debian's packages hold: {' '.join(packages)}"
    return as_root(f"{INSTALL[here]} {' '.join(local_names(packages))}")


def missing(packages: list[str]) -> list[str] | None:
    """The packages (Debian's names) that are not installed; None if no package manager is known. A package that this
    distribution does not have is not counted as missing.
    """
    here = family()
    if find_executable("dpkg-query"):
        packages = packages if here in FAMILIES else local_names(packages)
        query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages]
        answer = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        lines = [line.split() for line in answer.stdout.decode(errors="replace").splitlines()]
        there = {line[0] for line in lines if line[1:] == ["installed"]}
        return [package for package in packages if package not in there]
    if here not in IS_INSTALLED or not find_executable(IS_INSTALLED[here][0]):
        return None
    return [package for package in packages if package in NAMES and not _all_there(package, here)]


def _all_there(package: str, here: str) -> bool:
    return all(
        subprocess.run(
            [*IS_INSTALLED[here], word], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        ).returncode
        == 0
        for word in local_names([package])
    )


def python_remedy() -> str:
    """A remedy that gives a Python that is new enough."""
    release, here = os_release(), family()
    then = "then: make setup PYTHON=/usr/bin/python3.11"
    if release.get("ID") == "ubuntu" and release.get("VERSION_ID") == "22.04":
        return f"{as_root('apt-get install python3.11 python3.11-venv')}; {then}"
    if here == "fedora":
        return f"{as_root('dnf install python3.11')}; {then}"
    if here == "suse":
        return f"{as_root('zypper install python311')}; {then}"
    if here == "debian":
        return f"{as_root('apt-get install python3-venv')} (Debian 12, Ubuntu 24.04 or newer)"
    return f"install Python 3.11 or newer, {then}"


def module_remedy(module: str) -> str:
    """A remedy that gives a module of this machine's own kernel: load it, after installing it where it is packaged
    separately.
    """
    release = os.uname().release
    load = as_root(f"modprobe {module}")
    kind = "ubuntu" if "ubuntu" in kinds() else family()
    package = MODULE_PACKAGES.get(kind)
    if package is None:
        return load
    first = as_root(f"{INSTALL[family()]} {package.format(release=release)}")
    note = ""
    if kind == "fedora" and module == "sctp":
        note = "; RHEL and Fedora forbid it: take `blacklist sctp` out of /etc/modprobe.d/sctp-blacklist.conf"
    return f"{first} && {load}{note}"
