"""The source of a kernel: the distribution's package, a tarball, or a user's tree or a commit of it (never touched)."""

from __future__ import annotations

import dataclasses
import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from ..core.errors import KernelError
from ..core.executables import output_of
from .recipe import PACKAGE_NAMES, Recipe
from .tool_run import Runner

Kind = Literal["package", "tarball", "directory", "commit"]
PACKAGED = Path("/usr/src")
"""The folder of the tarballs of Debian's packages of sources."""
_SHORT = 12
"""Digits of a commit's hash that people are shown."""
_PACKAGE = re.compile(rf"{PACKAGE_NAMES}\d+\.\d+")


@dataclasses.dataclass(frozen=True)
class KernelSource:
    """One source tree, not unpacked yet. `identity` is equal for equal content; `text` is for people. commit: the hash
    of one of the tree's commits, whose content counts in place of the directory's.
    """

    kind: Kind
    path: Path
    identity: str
    text: str
    commit: str = ""


def find_source(asked: Path | None, recipe: Recipe) -> KernelSource:
    """The source asked for, or (None) the distribution's package. `asked`: a directory, a tarball, a package's file
    (.deb), or the name of a package of the distribution, such as linux-source-6.1; or TREE@COMMIT of a git repository.
    A directory is read completely for its identity; a package's file is the same source as that package installed.

    Raises KernelError if there is none, with the way to get one.
    """
    if asked is None:
        return _package(recipe.package, recipe.tarball)
    if _PACKAGE.fullmatch(str(asked)) and not asked.exists():
        return _package(str(asked), PACKAGED / f"{asked}.tar.xz")
    path = asked.expanduser().resolve()
    if path.is_dir():
        if not (path / "arch/um/Kconfig").is_file():
            raise KernelError(f"{path} is not a Linux source tree with User-Mode Linux (no arch/um/Kconfig)")
        return KernelSource("directory", path, f"tree {_digest(path, None)}", str(path))
    if path.suffix == ".deb":
        return _package_file(path)
    if path.is_file():
        return KernelSource("tarball", path, f"tarball {file_sha256(path)}", path.name)
    tree, at, commit = str(path).rpartition("@")
    if at and Path(tree).is_dir():
        return _commit(Path(tree).resolve(), commit)
    raise KernelError(f"--source: {asked} does not exist")


def unpack(source: KernelSource, tree: Path, recipe: Recipe, runner: Runner) -> None:
    """Put a clean copy of the source into the new directory `tree`."""
    tree.mkdir()
    if source.kind == "directory":
        if f"tree {_digest(source.path, tree)}" != source.identity:
            raise KernelError(f"{source.path} changed while it was being copied; start again")
        if not _is_git(source.path):  # what an earlier build left in it; git's own list has no such files
            runner.run([*recipe.make, "ARCH=um", "mrproper"], cwd=tree)
    elif source.kind == "commit":
        # an index of our own: nothing changes in the repository
        git = ["env", f"GIT_INDEX_FILE={tree.parent / 'index'}", "git", f"--work-tree={tree}"]
        git.append(f"--git-dir={output_of('git', '-C', source.path, 'rev-parse', '--absolute-git-dir')}")
        without = [f":(exclude){pattern.partition('/')[2]}" for pattern in recipe.not_unpacked]
        runner.run([*git, "checkout", "-q", source.commit, "--", ".", *without], cwd=tree)
    else:
        tarball = source.path
        if tarball.suffix == ".deb":
            runner.run(["dpkg-deb", "-x", str(tarball), "package"], cwd=tree.parent)
            tarball = tree.parent / f"package{PACKAGED}" / f"{source.text.partition(' ')[0]}.tar.xz"
        command = ["tar", "-x", "--strip-components=1", "-C", str(tree), "-f", str(tarball)]
        if tarball.name.endswith(".xz"):
            command += ["-I", "xz -T0"]
        if source.kind == "package":
            command += [f"--exclude={pattern}" for pattern in recipe.not_unpacked]
        runner.run(command, cwd=tree)
    if not (tree / "arch/um/Kconfig").is_file():
        raise KernelError(f"{source.path} holds no Linux source with User-Mode Linux (no arch/um/Kconfig)")


def unpack_parts(source: KernelSource, parts: Sequence[str], target: Path) -> None:
    """Put folders or files of a source, by their places in it, into the directory `target`; parts that it does not have
    are left out. Raises KernelError if it cannot be unpacked.
    """
    if source.kind == "directory":
        for part in parts:
            if (source.path / part).is_dir():
                shutil.copytree(source.path / part, target / part, symlinks=True)
            elif (source.path / part).is_file():
                (target / part).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source.path / part, target / part)
        return
    work = target / ".unpacking"
    work.mkdir()
    try:
        unpacking = ["tar", "-x", "-C", str(target)]
        if source.kind == "commit":
            listed = output_of("git", "-C", source.path, "ls-tree", "--name-only", source.commit, *parts).split()
            archive = work / "parts.tar"
            _run(["git", "-C", str(source.path), "archive", "-o", str(archive), source.commit, *listed])
            _run([*unpacking, "-f", str(archive)])
            return
        tarball = source.path
        if tarball.suffix == ".deb":
            _run(["dpkg-deb", "-x", str(tarball), str(work)])
            tarball = work / f"{str(PACKAGED)[1:]}/{source.text.partition(' ')[0]}.tar.xz"
        unpacking += ["--strip-components=1", "-f", str(tarball), "--wildcards"]
        unpacking += ["-I", "xz -T0"] if tarball.name.endswith(".xz") else []
        done = subprocess.run(
            [*unpacking, *(f"*/{part}" for part in parts)], capture_output=True, text=True, check=False
        )
        if not any((target / part).exists() for part in parts):
            raise KernelError(f"{source.path} cannot be unpacked: {done.stderr.strip()[-300:]}")
    except OSError as error:
        raise KernelError(f"{source.path} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelError(f"{command[-1]} cannot be unpacked: {done.stderr.strip()[-300:]}")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def release_of(source: KernelSource) -> str:
    """The release of a source ("6.1", as its Makefile has it); "" where that does not say."""
    if source.kind == "package":
        return source.text.partition(" ")[0].removeprefix(PACKAGE_NAMES).removesuffix(".tar.xz")
    try:
        if source.kind == "commit":
            makefile = output_of("git", "-C", source.path, "show", f"{source.commit}:Makefile").encode()
        else:
            makefile = _makefile(source.path) if source.kind == "tarball" else (source.path / "Makefile").read_bytes()
    except (OSError, tarfile.TarError, EOFError, lzma.LZMAError, zlib.error):
        return ""  # unpacking it will say what is wrong
    numbers = [re.search(rb"^%s = (\d+)$" % name, makefile, re.MULTILINE) for name in (b"VERSION", b"PATCHLEVEL")]
    return ".".join(number[1].decode() for number in numbers if number) if all(numbers) else ""


def _makefile(tarball: Path) -> bytes:
    """The Makefile at the top; read from the tarball's beginning until it comes."""
    with tarfile.open(tarball, "r|*") as archive:
        for member in archive:
            if member.isfile() and PurePosixPath(member.name).parts[1:] == ("Makefile",):
                file = archive.extractfile(member)
                return file.read() if file is not None else b""
    return b""


def _package(name: str, tarball: Path) -> KernelSource:
    if not tarball.is_file():
        raise KernelError(
            f"no kernel source: {tarball} is missing; install it with\n"
            f"  apt-get install {name}\n"
            "(Debian; Ubuntu has no such package), or name another source: --source DIRECTORY|TARBALL|FILE.deb"
        )
    answer = output_of("dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", name).split()
    if len(answer) == 2 and answer[0] == "installed":
        text = f"{name} {answer[1]}"
        return KernelSource("package", tarball, text, text)
    identity = f"tarball {file_sha256(tarball)}"
    return KernelSource("package", tarball, identity, tarball.name)


def _package_file(path: Path) -> KernelSource:
    try:
        command = ["dpkg-deb", "-W", "--showformat=${Package} ${Version}", str(path)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except OSError as error:
        raise KernelError(f"{path}: dpkg-deb is needed to read it: {error}") from error
    except subprocess.CalledProcessError as error:
        raise KernelError(f"{path} cannot be read: {error.stderr.strip()}") from error
    if not _PACKAGE.fullmatch(text.partition(" ")[0]):
        raise KernelError(f"{path} is {text}, not one of Debian's packages {PACKAGE_NAMES}*")
    return KernelSource("package", path, text, text)


def _commit(tree: Path, name: str) -> KernelSource:
    """The source of a commit; its identity is the hash of what is in it, equal for commits of equal content."""
    found = output_of("git", "-C", tree, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
    content = output_of("git", "-C", tree, "rev-parse", "--verify", "--quiet", f"{found}^{{tree}}").strip()
    if not found or not content or not name:
        raise KernelError(f"{tree}@{name}: the tree is no git repository, or has no such commit")
    if not output_of("git", "-C", tree, "ls-tree", "--name-only", found, "arch/um/Kconfig"):
        raise KernelError(f"{tree}@{name} is not a Linux source with User-Mode Linux (no arch/um/Kconfig)")
    return KernelSource("commit", tree, f"git {content}", f"{tree}@{found[:_SHORT]}", found)


def _is_git(path: Path) -> bool:
    top = output_of("git", "-C", path, "rev-parse", "--show-toplevel")
    return bool(top) and Path(top) == path


def _files(path: Path) -> Iterator[str]:
    """Relative names of the tree's files, sorted: git's (tracked, or new and not ignored), else all."""
    if _is_git(path):
        command = ["git", "-C", str(path), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, capture_output=True, check=True).stdout.split(b"\0")
        yield from sorted({os.fsdecode(name) for name in names if name})
        return
    files_below = []
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name not in (".git", ".hg")]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        files_below += [os.path.relpath(os.path.join(folder, name), path) for name in files + links]
    yield from sorted(files_below)


def _digest(path: Path, copy: Path | None) -> str:
    """SHA-256 over names, kinds, executable bits and contents. `copy`: also copy the files there, hashing exactly the
    copied bytes.
    """
    total = hashlib.sha256()
    for name, head, content in _contents(path):
        total.update(head)
        total.update(content)
        if copy is not None:
            _put(copy / name, head, content)
    return total.hexdigest()


def _contents(path: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """(name, head, content) of every file of a tree in order. The head holds kind, sizes and name; head and content of
    all files are what the identity of a tree is the SHA-256 of.
    """
    for name in _files(path):
        origin = path / name
        try:
            mode = origin.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):  # git lists a tracked file that was deleted
            continue
        if stat.S_ISLNK(mode):
            kind, content = b"l", os.fsencode(os.readlink(origin))
        elif stat.S_ISREG(mode):
            kind, content = (b"x" if mode & stat.S_IXUSR else b"f"), origin.read_bytes()
        else:
            continue
        yield name, b"%s %d %d " % (kind, len(os.fsencode(name)), len(content)) + os.fsencode(name), content


def _put(target: Path, head: bytes, content: bytes) -> None:
    """Write one of _contents() to a place where no file is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if head.startswith(b"l"):
        target.symlink_to(os.fsdecode(content))
    else:
        target.write_bytes(content)
        target.chmod(0o755 if head.startswith(b"x") else 0o644)
