"""pack_wheels.py lay DIR | pack DIR OUT: the last step of `make wheels` (setup/wheels.sh).

`lay` (Python 3.11, in the source to be packed) writes each wheel's files below DIR, with METADATA, WHEEL and RECORD.
`pack` (run by the old Python of the root, so that one zlib packs them) writes each as a wheel into OUT: names in order,
no time, no owner. Equal files give equal wheels.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

FILES = (
    "ansible", "experiments", "kernel", "netem-profiles", "setup/packages.txt", "setup/ubuntu.txt", "stack-profiles",
)  # fmt: skip
"""Of the checkout, beside the programs in build/: what the package reads (core/checkout.py)."""
LINKED = Path("/mnt/linked")
"""The licences of what is linked statically into the programs and the analyser, by package; and those of Linux."""
NOTICE = """The programs in netwarp/files/build/ contain, linked statically, libraries of packages of Debian, whose
licences are in linked/. Those of libc6-dev (glibc) and libsctp-dev (lksctp) are LGPL-2.1: their source, and that of
netwarp with the makefiles that link it with another version of them, come with the wheel as dist/source/.
"""
TAG = "py3-none-manylinux_2_{minor}_x86_64"


def lay(target: Path) -> None:
    """Write the files of every wheel below `target`."""
    import tomllib

    cache = Path("/mnt/cache/kernels")
    pin = tomllib.loads(Path("kernel/pin.toml").read_text())
    second = pin["source"]["second"].removeprefix("linux-source-")
    library = subprocess.run(["getconf", "GNU_LIBC_VERSION"], capture_output=True, text=True, check=True).stdout
    tag = TAG.format(minor=library.split(".")[1].strip())
    versions = {}
    for folder in sorted(path for path in cache.iterdir() if (path / "build.json").is_file()):
        record = json.loads((folder / "build.json").read_text())
        name = "netwarp-kernel" + (f"-{second}" if record["release"].startswith(second) else "")
        versions[name] = f"{record['release']}.{pin['wheel']['revision']}"
        lay_kernel(target / name, folder, record, name, versions[name], tag)
    lay_netwarp(target / "netwarp", f"netwarp-kernel=={versions['netwarp-kernel']}", tag)


def lay_kernel(target: Path, folder: Path, record: dict[str, str], name: str, version: str, tag: str) -> None:
    """The wheel of one kernel: netwarp_kernels/<key>/, where guestkernel/cache.py looks."""
    place = target / "netwarp_kernels" / folder.name
    place.mkdir(parents=True)
    shutil.copy(folder / "linux", place)
    shutil.copy(folder / "config", place)
    shutil.copytree("kernel", place / "recipe")
    # Its time says nothing: the same recipe and source give the same kernel at any time.
    record["built_at"] = "2024-01-01T00:00:00+00:00"
    (place / "build.json").write_text(json.dumps(record, indent=1) + "\n")
    of_source = LINKED / "licences" / record["source"].split()[0]
    licences: dict[str, Path | None] = {
        str(path.relative_to(of_source)): path for path in sorted(of_source.rglob("*")) if path.is_file()
    }
    information = [
        ("Name", name),
        ("Version", version),
        ("Summary", f"Linux {record['release']} as a User-Mode Linux guest kernel for netwarp"),
        ("License-Expression", "GPL-2.0-only WITH Linux-syscall-note"),
        *(("License-File", name) for name in licences),
    ]
    text = f"Made by netwarp's `make wheels` from Debian's {record['source']} with recipe/; {record['compiler']}."
    finish(target, information, text, tag, licences)


def lay_netwarp(target: Path, kernel: str, tag: str) -> None:
    """The wheel of netwarp: the package, and in netwarp/files/ what a checkout has beside it."""
    import tomllib

    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    shutil.copytree("orchestrator/netwarp", target / "netwarp", ignore=shutil.ignore_patterns("__pycache__"))
    files = target / "netwarp" / "files"
    for name in FILES:
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if Path(name).is_dir() else shutil.copy)(name, files / name)
    for kind in ("bin", "lib"):
        shutil.copytree(Path("build") / kind, files / "build" / kind)
    shutil.copy("commit.json", files)
    version = (target / "netwarp/core/version.py").read_text().split('"')[-2]
    extras = project["optional-dependencies"]
    information = [
        ("Name", project["name"]),
        ("Version", version),
        ("Summary", project["description"]),
        ("License-Expression", project["license"]),
        ("License-File", "LICENSE"),
        ("License-File", "NOTICE"),
        ("Requires-Python", project["requires-python"]),
        *(("Requires-Dist", one) for one in [kernel, *project["dependencies"]]),
        *(pair for extra in extras for pair in [("Provides-Extra", extra), *_of_extra(extra, extras[extra])]),
        ("Description-Content-Type", "text/markdown"),
    ]
    licenses: dict[str, Path | None] = {"LICENSE": Path("LICENSE"), "NOTICE": None}
    licenses |= {f"linked/{path.name}": path for path in sorted(LINKED.iterdir()) if path.is_file()}
    finish(target, information, Path("README.md").read_text(), tag, licenses)
    (entry,) = target.glob("*.dist-info")
    scripts = "".join(f"{name} = {place}\n" for name, place in project["scripts"].items())
    (entry / "entry_points.txt").write_text(f"[console_scripts]\n{scripts}")


def _of_extra(extra: str, packages: list[str]) -> list[tuple[str, str]]:
    return [("Requires-Dist", f"{package}; extra == '{extra}'") for package in packages]


def finish(
    target: Path, information: list[tuple[str, str]], text: str, tag: str, licenses: dict[str, Path | None]
) -> None:
    """METADATA, WHEEL and the licences of a wheel."""
    fields = dict(information)
    folder = target / f"{fields['Name'].replace('-', '_').replace('.', '_')}-{fields['Version']}.dist-info"
    for name, source in licenses.items():
        place = folder / "licenses" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(NOTICE.encode() if source is None else source.read_bytes())
    lines = "".join(f"{key}: {value}\n" for key, value in [("Metadata-Version", "2.4"), *information])
    (folder / "METADATA").write_text(f"{lines}\n{text}")
    (folder / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: netwarp make wheels\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )


def pack(laid: Path, out: Path) -> None:
    """Write every laid wheel into `out`."""
    out.mkdir(exist_ok=True)
    for target in sorted(laid.iterdir()):
        (entry,) = target.glob("*.dist-info")
        tag = (entry / "WHEEL").read_text().split("Tag: ")[1].strip()
        files = sorted(path for path in target.rglob("*") if path.is_file())
        record = [f"{path.relative_to(target)},sha256={_digest(path)},{path.stat().st_size}\n" for path in files]
        (entry / "RECORD").write_text("".join([*record, f"{entry.name}/RECORD,,\n"]))
        with zipfile.ZipFile(out / f"{entry.name[: -len('.dist-info')]}-{tag}.whl", "w") as wheel:
            for path in [*files, entry / "RECORD"]:
                item = zipfile.ZipInfo(str(path.relative_to(target)))
                item.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
                wheel.writestr(item, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def _digest(path: Path) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    if sys.argv[1] == "lay":
        lay(Path(sys.argv[2]))
    else:
        pack(Path(sys.argv[2]), Path(sys.argv[3]))
