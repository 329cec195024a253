"""The tests of a kernel's source: unpacked once into the cache, and the programs that each needs, built there."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import KernelError, SpecError
from ..core.executables import with_sbin
from ..guestkernel.build import toolchain
from ..guestkernel.cache import kernels_dir
from ..guestkernel.recipe import ConfigOption, Recipe
from ..guestkernel.source import KernelSource, unpack_parts

SELFTESTS = Path("tools/testing/selftests")
OVERRIDES = Path(__file__).with_name("overrides")
"""COLLECTION@FILE (/ as @): appended to that file in the guest's memory; COLLECTION@FILE.first: put below its first
line; COLLECTION@PROGRAM.h: included first where that program is compiled.
"""
FIRST = ".first"
_PARTS = (str(SELFTESTS), "tools/include", "tools/arch/x86", "tools/build", "tools/lib", "tools/scripts", "scripts")
_LOCAL_SOURCE = re.compile(r"""^\s*(?:source|\.)\s+["']?(?:\$\{?\w+\}?/|\./)?([\w./-]+\.sh)""", re.MULTILINE)
COLLECTIONS = ("net", "net/mptcp", "net/netfilter")
"""Always asked for, so that one kernel serves all of them."""
_OURS = frozenset(["MODULES", "HW_RANDOM", "UML_RANDOM", "LOCALVERSION_AUTO", "HZ", "64BIT"])
"""Never taken from the tests: determinism depends on them."""
_JITTER = frozenset(["INET_ESP", "INET_ESP_OFFLOAD", "INET6_ESP", "INET6_ESP_OFFLOAD", "XFRM_ESP"])
"""Not taken either: they select a generator that waits at boot until the clock's steps vary (crypto/jitterentropy.c),
which on the virtual clock they never do.
"""


@dataclass(frozen=True, slots=True)
class Selftest:
    """One test: `net/mptcp:mptcp_connect.sh -m mmap` is collection, program and arguments."""

    collection: str
    program: str
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As the command line has it."""
        return " ".join([f"{self.collection}:{self.program}", *self.arguments])

    def folder(self, number: int) -> str:
        """The name of the folder that keeps its output. number: of the test in its run, from 1."""
        return f"{number:02d}-{self.collection.replace('/', '-')}-{self.program}"


def parse_test(text: str) -> Selftest:
    """Read a test's name. Raises SpecError."""
    place, *arguments = text.split()
    parts = re.fullmatch(r"([\w/.-]+):([\w.-]+)", place)
    if parts is None or not all(re.fullmatch(r"[\w./:=,-]+", word) for word in arguments):
        raise SpecError(f"'{text}' names no selftest; write COLLECTION:PROGRAM, for example net/mptcp:simult_flows.sh")
    return Selftest(parts[1], parts[2], tuple(arguments))


@dataclass(frozen=True, slots=True)
class Tree:
    """The unpacked tests of a source."""

    root: Path

    @property
    def tests(self) -> Path:
        """tools/testing/selftests."""
        return self.root / SELFTESTS

    def check(self, test: Selftest) -> None:
        """Raises SpecError if the source has no such test."""
        folder = self.tests / test.collection
        if not folder.is_dir():
            raise SpecError(f"{test.name}: this source has no collection {test.collection}")
        if not any((folder / name).exists() for name in (test.program, f"{test.program}.c")):
            near = ", ".join(sorted(path.name for path in folder.glob("*.sh"))[:8])
            raise SpecError(f"{test.name}: {test.collection} has no {test.program} (it has {near}, ...)")

    def options(self, collections: Sequence[str]) -> dict[str, str]:
        """The options that the collections ask of the kernel's configuration (their files `config`): name -> value."""
        options: dict[str, str] = {}
        for collection in collections:
            file = self.tests / collection / "config"
            for line in file.read_text().splitlines() if file.is_file() else ():
                if option := re.match(r"CONFIG_(\w+)=(\S+)", line.strip()):
                    options[option[1]] = "y" if option[2] == "m" else option[2]
        return options

    def build(self, tests: Sequence[Selftest], include: Path) -> dict[str, str]:
        """Build the programs that the tests call. Returns those that cannot be built: program -> what the compiler
        says.
        """
        failed: dict[str, str] = {}
        with open(self.root / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for test in tests:
                folder = (self.tests / test.collection).resolve()
                for program in needed(folder, test.program):
                    target = folder / program
                    command = ["make", "-C", str(folder), f"KHDR_INCLUDES=-isystem {include}", str(target)]
                    header = OVERRIDES / f"{test.collection}/{program}.h".replace("/", "@")
                    if header.is_file():
                        command.append(f"USERCFLAGS=-include {shlex.quote(str(header))}")
                    done = subprocess.run(
                        command, capture_output=True, text=True, check=False,
                        env={"PATH": with_sbin(os.environ.get("PATH", os.defpath)), "LC_ALL": "C"},
                    )  # fmt: skip
                    if done.returncode:
                        lines = [line for line in done.stderr.splitlines() if "error" in line] or ["make failed"]
                        failed[f"{test.collection}/{program}"] = lines[0].replace(f"{folder}/", "")
        return failed


def needed(folder: Path, program: str) -> list[str]:
    """The programs of C that a test is, or that its script and what this sources name; those of its folder only."""
    if (folder / f"{program}.c").is_file():
        return [program]
    words = {word for text in _scripts(folder, program, set()) for word in re.findall(r"[\w-]+", text)}
    return sorted(word for word in words if (folder / f"{word}.c").is_file())


def _scripts(folder: Path, name: str, seen: set[Path]) -> Iterator[str]:
    path = (folder / name).resolve()
    if path in seen or not path.is_file():
        return
    seen.add(path)
    text = path.read_text(errors="replace")
    yield text
    for other in _LOCAL_SOURCE.findall(text):
        yield from _scripts(path.parent, other, seen)


def unpack_tests(source: KernelSource) -> Path:
    """The tests of a source in the cache, unpacked unless they are there. Raises KernelError."""
    headers = [header.read_text() for header in sorted(OVERRIDES.glob("*.h"))]
    key = hashlib.sha256("\n".join([source.identity, toolchain(), *headers]).encode()).hexdigest()[:16]
    place = kernels_dir().parent / "selftests" / f"tests-{key}"
    if place.is_dir():
        return place
    work = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        unpack_parts(source, _PARTS, work)
        if not (work / SELFTESTS / "lib.mk").is_file():
            raise KernelError(f"{source.path} holds no {SELFTESTS}")
        work.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return place


def selftest_recipe(recipe: Recipe, options: Mapping[str, str]) -> Recipe:
    """The recipe with the tests' options; one that User-Mode Linux or this source cannot have is left out."""
    more = {name: value for name, value in options.items() if name not in _OURS | _JITTER}
    kept = tuple(option for option in recipe.fragment if option.name not in more)
    return dataclasses.replace(
        recipe,
        fragment=kept
        + tuple(ConfigOption(name, None if value == "n" else value) for name, value in sorted(more.items())),
        where_possible=frozenset(more) - frozenset(option.name for option in recipe.fragment),
    )
