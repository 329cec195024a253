"""Makes hostile files of real ones: mutations of bytes, of JSON and of text, and directories and archives with links,
devices, names, depths and sizes that no run has. Each follows from the random generator it is given alone.
"""

from __future__ import annotations

import contextlib
import io
import json
import lzma
import os
import random
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

TEXTS = (
    *("", ".", "..", "../../../outside/made", "/OUTSIDE/made", "a/b", "x\0y", "\x1b]0;x\x07\x1b[2J", "\u202e\u2066x"),
    *("a\nb\r\nc", "=1+1", "|x|", "-rf", "$(touch /OUTSIDE/made)", "%n%s", "a" * 300, "\ud800", "\u00e9", "9" * 400),
    *("{{7*7}}", "{{ lookup('pipe', 'touch /OUTSIDE/made') }}", "{{ lookup('file', '/OUTSIDE/secret.json') }}"),
    *("<script>", "*", "[bold]", "con", "0 s", "-1 s", "1e18 s", "99999999999 B", "1e999 bit/s", "NaN"),
)
NUMBERS = (
    0, -1, 1, 2, 3, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.0,
    1e308, 1e-320, float("nan"), float("inf"),
)  # fmt: skip
BYTES = (
    b"",
    b"\0",
    b"\xff",
    b"\x1b[2J",
    b"\xc3\x28",
    b"../",
    b"\n",
    b"\r",
    b",",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
)


class Hostile:
    """Draws mutations. outside: a directory that nothing may write, and whose secret nothing may show."""

    def __init__(self, rng: random.Random, outside: Path) -> None:
        self.rng, self.outside = rng, outside

    def text(self) -> str:
        return self.rng.choice(TEXTS).replace("/OUTSIDE", str(self.outside))

    def file(self, name: str, content: bytes) -> bytes:
        """A file's content, mutated as its kind is written; half of all times just its bytes."""
        if self.rng.random() < 0.3:
            return self.raw(content)
        with contextlib.suppress(ValueError, zstandard.ZstdError, RecursionError):
            if name.endswith(".zst"):
                plain = zstandard.ZstdDecompressor().decompress(content)
                return zstandard.ZstdCompressor().compress(self.file(name.removesuffix(".zst"), plain))
            if name.endswith((".json", ".har")):
                return self.json(content)
            if name.endswith(".ndjson"):
                lines = content.splitlines()
                number = self.rng.randrange(len(lines))
                lines[number] = self.json(lines[number])
                return b"\n".join(lines) + b"\n"
            if name.endswith((".csv", ".toml", ".yml", ".txt", ".trace")):
                return self.lines(content)
        return self.raw(content)

    def raw(self, content: bytes) -> bytes:
        """Bytes flipped, cut, put in, repeated."""
        data = bytearray(content)
        for _ in range(self.rng.choice((1, 1, 2, 8, 64))):
            at = self.rng.randrange(len(data) + 1)
            match self.rng.randrange(5):
                case 0 if at < len(data):
                    data[at] ^= 1 << self.rng.randrange(8)
                case 1:
                    data[at:at] = self.rng.choice(BYTES)
                case 2:
                    del data[at : at + self.rng.choice((1, 4, 16, 256))]
                case 3:
                    data[at:at] = data[at : at + self.rng.choice((4, 16, 64))]
                case _ if self.rng.random() < 0.1:
                    del data[at:]
                case _:
                    data[at : at + 4] = self.rng.randbytes(4)
        return bytes(data)

    def json(self, content: bytes) -> bytes:
        """Values replaced, removed, doubled, nested."""
        value = json.loads(content)
        for _ in range(self.rng.choice((1, 1, 1, 3))):
            value = self._json(value, self.rng.randrange(1, 8))
        text = json.dumps(value, ensure_ascii=self.rng.random() < 0.5)
        if self.rng.random() < 0.03:
            text = text.replace("{", '{"x":' + "[" * 5000 + "]" * 5000 + ",", 1)
        return text.encode("utf-8", errors="surrogatepass")

    def _json(self, value: Any, depth: int) -> Any:
        inside = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
        if not depth or not inside:
            return self._value(value)
        key = self.rng.choice(inside)
        match self.rng.randrange(12):
            case 0:
                del value[key]
            case 1 if isinstance(value, list):
                value += [value[key]] * self.rng.choice((1, 2, 1000))
            case 2 if isinstance(value, dict):
                value[self.text()] = value.pop(key)
            case _:
                value[key] = self._json(value[key], depth - 1)
        return value

    def _value(self, value: Any) -> Any:
        kinds: list[Any] = [self.text(), self.rng.choice(NUMBERS), None, True, [], {}, [value], {self.text(): value}]
        if isinstance(value, str) and self.rng.random() < 0.7:
            return self.text()
        if isinstance(value, int | float) and self.rng.random() < 0.7:
            return self.rng.choice(NUMBERS)
        return self.rng.choice(kinds)

    def lines(self, content: bytes) -> bytes:
        """Words and lines of a text replaced, doubled, exchanged."""
        lines = content.decode(errors="surrogateescape").split("\n")
        for _ in range(self.rng.choice((1, 1, 2, 5))):
            at = self.rng.randrange(len(lines))
            match self.rng.randrange(5):
                case 0:
                    lines.insert(at, lines[self.rng.randrange(len(lines))])
                case 1:
                    del lines[at : at + 1]
                    lines = lines or [""]
                case 2:
                    lines[at] += self.text()
                case _:
                    words = lines[at].replace(",", " ").replace('"', " ").split() or [""]
                    lines[at] = lines[at].replace(self.rng.choice(words), self.text(), 1)
        return "\n".join(lines).encode("utf-8", errors="surrogateescape" if self.rng.random() < 0.5 else "replace")

    def tree(self, root: Path) -> None:
        """A directory: files mutated, and now and then one that is no file, or elsewhere."""
        for _ in range(self.rng.choice((1, 1, 1, 2, 4))):
            every = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
            files = [path for path in every if path.stat().st_size < 1 << 24]  # not what was made huge before
            if not files:
                return
            path = self.rng.choice(
                files if self.rng.random() < 0.5 else [file for file in files if file.suffix == ".json"] or files
            )
            if self.rng.random() < 0.6:
                path.write_bytes(self.file(path.name, path.read_bytes()))
            else:
                self._no_file(root, path)

    def _no_file(self, root: Path, path: Path) -> None:
        folder = path.parent
        match self.rng.randrange(12):
            case 0 | 1:
                path.unlink()
                path.symlink_to(self.outside / self.rng.choice(("secret.json", "missing", "folder")))
            case 2 | 3 if folder != root:
                kept = self.outside / "folder"
                shutil.rmtree(folder)
                folder.symlink_to(kept if self.rng.random() < 0.5 else os.path.relpath(kept, folder.parent))
            case 4:
                path.unlink()
                os.mkfifo(path)
            case 5:
                os.truncate(path, 3 << 30)
            case 6:
                path.unlink()
            case 7:
                path.unlink()
                path.mkdir()
            case 8:
                name = self.rng.choice(("x" * 255, "\x1b[2J", "a\nb", "-rf", "...", ".lock", ".partial", "\udcff"))
                with contextlib.suppress(OSError):
                    path.rename(folder / name)
            case 9:
                lock = root / self.rng.choice(
                    (".lock", "tables", "derived", "report", "cells/.partial", ".tables.part")
                )
                if not lock.exists() and lock.parent.is_dir():
                    lock.symlink_to(self.outside / self.rng.choice(("secret.json", "folder", "missing")))
            case 10:
                os.link(self.outside / "linked.json", folder / f"{path.name}.part")
                path.unlink()
                os.link(self.outside / "linked.json", path)
            case _:
                deep = folder
                with contextlib.suppress(OSError):
                    for _ in range(40):
                        deep /= "d" * 60
                        deep.mkdir()

    def bundle(self, root: Path) -> bytes:
        """A directory as a bundle, in which members may be anything."""
        out = io.BytesIO()
        packed = lzma.open(out, "wb", preset=0)  # noqa: SIM115  closed below
        names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        odd = self.rng.randrange(len(names)) if self.rng.random() < 0.5 else -1
        for number, name in enumerate(names):
            content = (root / name).read_bytes()
            if number != odd and self.rng.random() < 1.5 / len(names):
                content = self.file(name, content)
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            if number == odd:
                self._odd(entry, content)
            with contextlib.suppress(ValueError, UnicodeError):
                packed.write(
                    entry.tobuf(self.rng.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)), "utf-8", "surrogateescape")
                )
                packed.write(content + bytes(-len(content) % 512))
        packed.write(bytes(1024))
        packed.close()
        data = out.getvalue()
        return self.raw(data) if self.rng.random() < 0.1 else data

    def _odd(self, entry: tarfile.TarInfo, content: bytes) -> None:
        match self.rng.randrange(6):
            case 0:
                entry.name = self.text().replace("\0", "") or "x"
            case 1:
                entry.type = self.rng.choice(
                    (b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"x", b"g", b"L", b"K", b"S", b"\xff")
                )
                entry.linkname = self.rng.choice((str(self.outside / "secret.json"), "../outside", "plan.json"))
            case 2:
                entry.size = self.rng.choice((-1, 0, 1, len(content) + 512, 1 << 30, 6 << 30, 1 << 60))
            case 3:
                entry.name = "/".join(["d"] * self.rng.choice((3, 200)))
            case 4:
                entry.pax_headers = {self.rng.choice(("path", "size", "GNU.sparse.map", "linkpath", "x")): self.text()}
            case _:
                entry.name = self.rng.choice(
                    ("cells/.partial/cell.json", ".lock", "cells/x/capture/a.pcap", "spec/../x")
                )

    def zip(self, content: bytes) -> bytes:
        """A pack or a packed cell, in which members may be anything."""
        if self.rng.random() < 0.4:
            return self.raw(content)
        out = io.BytesIO()
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
                members = old.infolist()
                odd = self.rng.randrange(len(members))
                for number, member in enumerate(members):
                    data = old.read(member)
                    if number == odd:
                        if member.filename.endswith(".zip"):
                            data = self.zip(data)
                        elif self.rng.random() < 0.5:
                            data = self.file(member.filename, data)
                        else:
                            member.filename = self.text() or "x"
                        member.external_attr = self.rng.choice((0o644, stat.S_IFLNK | 0o777, stat.S_IFIFO)) << 16
                    new.writestr(member, data, compress_type=zipfile.ZIP_DEFLATED)
        except (zipfile.BadZipFile, ValueError, UnicodeError):
            return self.raw(content)
        return out.getvalue()


Mutator = Callable[[Hostile, Path], None]
