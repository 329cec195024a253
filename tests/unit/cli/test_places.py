"""Places that a command cannot write are refused in a sentence, before anything runs where they are known."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from netwarp.cli import main
from netwarp.core.errors import os_words
from support.checkout import ROOT

CAPTURE = ROOT / "tests/data/limits/v-pauses-5pct-receiver.pcap.zst"
BRANCH = ("--branch", "net-2026-08-20--12-00")
FOLDERS = (
    ("selftest", "packetdrill:*", "--out"), ("kernel", "watch", "6.12", "6.12", "--out"), ("run", "physics", "--out"),
    ("kernel", "explore", "roots", "--files", "net/sctp/*.c", "--out"), ("export", str(CAPTURE), "--out"),
    ("analyze", str(CAPTURE), "--csv"), ("archive", "merge", "x", "--out"), ("search", "harm", "--out"),
    ("calibrate", "--out"), ("shell", "physics", "--out"), ("sctp", "advise", "--out"),
    ("compare", "backends", "physics", "--out"), ("explain", str(CAPTURE), "--what-if", "b.rto_min=1 s", "--out"),
)  # fmt: skip
FILES = (
    ("analyze", str(CAPTURE), "--html"), ("compare", "a", "b", "--html"), ("compare", "a", "b", "--csv"),
    ("run", "physics", "--junit"), ("selftest", *BRANCH, "--nipa"), ("selftest", "--table"),
    ("archive", "bundle", "x", "--out"),
    ("archive", "merge", "x", "--junit"), ("kernel", "export"), ("kernel", "watch", "6.12", "6.12", *BRANCH, "--nipa"),
    ("calibrate", "--html"),
)  # fmt: skip


def said(words: tuple[str, ...], place: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a command that was refused."""
    assert main([*words, str(place)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("netwarp: ")
    return err.removeprefix("netwarp: ").rstrip()


@pytest.mark.parametrize("words", FOLDERS, ids=" ".join)
def test_a_file_where_a_directory_must_be(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "there"
    file.write_text("mine")
    assert said(words, file, capsys) == f"{file}: is a file; name a directory, a new one for example"
    below = file / "x"
    assert said(words, below, capsys) == f"{below}: {file} is a file and not a directory; name another place"
    assert file.read_text() == "mine"


@pytest.mark.parametrize("words", FILES, ids=" ".join)
def test_a_directory_where_a_file_must_be(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(words, tmp_path, capsys).startswith(f"{tmp_path}: is a directory; name a file, for example {tmp_path}/")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "shut"
    place.mkdir(mode=0o555)
    for words in (FOLDERS[0], FILES[0]):
        assert main([*words, str(place / "x")]) == 1
        assert (
            capsys.readouterr().err
            == f"netwarp: {place}/x: {place}: Permission denied; change its rights, or name another place\n"
        )


def test_a_step_of_git_bisect_stops_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any status below 128 would be a commit's."""
    assert main(["kernel", "watch", "6.12", "6.12", "--git-bisect", "--out", str(CAPTURE)]) == 255
    assert "is a file; name a directory" in capsys.readouterr().err


def test_what_the_system_refuses_is_said_without_its_number(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:
        (tmp_path / "absent" / "x").write_text("")
    assert os_words(caught.value) == f"{tmp_path}/absent/x: No such file or directory; look at the name"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert os_words(full) == "No space left on device; make room there, or name another place"
    tree = shutil.Error([("a", "b", f"[Errno {errno.ENOSPC}] No space left on device: 'b'")])
    assert os_words(tree) == "b: No space left on device; make room there, or name another place"


def test_an_output_that_is_full() -> None:
    command = [sys.executable, "-m", "netwarp", "profiles"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == "netwarp: No space left on device; make room there, or name another place"
    assert "Traceback" not in done.stderr
