"""The recipe of a guest kernel in this checkout: configuration fragment, patches, pinned identity."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from pathlib import Path

from ..core.checkout import CHECKOUT
from ..core.errors import KernelError
from .config import Option, parse_fragment


@dataclasses.dataclass(frozen=True)
class Patch:
    """One file of kernel/patches, applied with -p1 in the order of the names."""

    name: str
    text: bytes


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Everything that the checkout decides about its kernel; source and compiler come from the machine.

    identity: KBUILD_BUILD_* variables, which the kernel hashes into its random generator. variables: passed to every
    make. objects: approximate number of objects to compile (for the progress only). free_bytes: disk space needed for
    building. not_unpacked: tar(1) patterns of files in the package's tarball that this build never reads.
    """

    fragment: tuple[Option, ...]
    patches: tuple[Patch, ...]
    package: str
    tarball: Path
    identity: dict[str, str]
    variables: dict[str, str]
    objects: int
    free_bytes: int
    not_unpacked: tuple[str, ...]

    @property
    def make(self) -> list[str]:
        """The make command, to be followed by its targets."""
        return ["make", *(f"{name}={value}" for name, value in self.variables.items())]

    @property
    def digest(self) -> str:
        """SHA-256 of everything that changes the binary: options (not their comments or order), patches, pins."""
        return hashlib.sha256(
            json.dumps(
                {
                    "options": sorted(option.line for option in self.fragment),
                    "patches": [[p.name, hashlib.sha256(p.text).hexdigest()] for p in self.patches],
                    "identity": self.identity,
                    "variables": self.variables,
                },
                sort_keys=True,
            ).encode()
        ).hexdigest()


def load_recipe(folder: Path | None = None) -> Recipe:
    """Read kernel/ of this checkout (or `folder`). Raises KernelError where a file is missing or malformed."""
    folder = folder or CHECKOUT / "kernel"
    try:
        pin = tomllib.loads((folder / "pin.toml").read_text())
        fragment = parse_fragment((folder / "fragment.config").read_text())
        patches = tuple(Patch(p.name, p.read_bytes()) for p in sorted((folder / "patches").glob("*.patch")))
        return Recipe(
            fragment=fragment,
            patches=patches,
            package=pin["source"]["package"],
            tarball=Path(pin["source"]["tarball"]),
            identity={str(k): str(v) for k, v in pin["identity"].items()},
            variables={str(k): str(v) for k, v in pin["make"].items()},
            objects=int(pin["build"]["objects"]),
            free_bytes=int(pin["build"]["free_bytes"]),
            not_unpacked=tuple(pin["build"]["not_unpacked"]),
        )
    except OSError as error:
        raise KernelError(f"the kernel's recipe cannot be read: {error}") from error
    except (KeyError, tomllib.TOMLDecodeError) as error:
        raise KernelError(f"{folder / 'pin.toml'}: {error}") from error
