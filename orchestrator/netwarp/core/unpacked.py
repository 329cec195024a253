"""Packages of the distribution that are unpacked into the checkout and not installed: servers that no machine should
start by itself, and their clients (setup/unpack.sh, `make programs`). Standard library only.
"""

from __future__ import annotations

from .built_programs import BUILD

UNPACKED_PACKAGES = BUILD / "packages"
"""The root below which their files are."""


def library_folders() -> list[str]:
    """The folders with their shared libraries, for programs below that root."""
    return sorted({str(path.parent) for path in UNPACKED_PACKAGES.glob("usr/lib/**/lib*.so*")})
