"""Counters of gcov: of a small program that gcc compiles here. gcov-tool and gcov, which nobody here wrote, agree."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from netwarp.core.errors import StoreError
from netwarp.core.executables import find_executable
from netwarp.exploration.counters import counts, lines_of, read_kept, with_counts

PROGRAM = """\
#include <stdlib.h>
static int never(int x)
{
	return x * 3;
}
static int sign(int x)
{
	if (x > 5)
		return 1;
	if (x < 0)
		return -1;
	return 0;
}
int main(int argc, char **argv)
{
	int i, sum = 0;
	for (i = 1; i < argc; i++)
		sum += sign(atoi(argv[i]));
	return sum == 42 ? never(sum) : 0;
}
"""

pytestmark = pytest.mark.skipif(find_executable("gcov-tool") is None, reason="needs gcc with gcov-tool")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gcov")
    (folder / "small.c").write_text(PROGRAM)
    run = {"cwd": folder, "check": True, "capture_output": True}
    subprocess.run(["gcc", "-O0", "--coverage", "-c", "small.c", "-o", "small.o"], **run)
    subprocess.run(["gcc", "--coverage", "small.o", "-o", "small"], **run)
    return folder


def ran(program: Path, place: Path, *arguments: str) -> bytes:
    """The counters of one run."""
    place.mkdir()
    subprocess.run(
        [program / "small", *arguments], check=True, env={"GCOV_PREFIX": str(place), "GCOV_PREFIX_STRIP": "99"}
    )
    return (place / "small.gcda").read_bytes()


def test_sums_are_those_of_gcov_tool(program, tmp_path):
    one, two = ran(program, tmp_path / "one", "7", "8"), ran(program, tmp_path / "two", "-3")
    subprocess.run(["gcov-tool", "merge", "one", "two", "-o", "both"], cwd=tmp_path, check=True, capture_output=True)
    both = (tmp_path / "both" / "small.gcda").read_bytes()
    assert (counts(one) + counts(two) == counts(both)).all()
    summed = with_counts(one, counts(one) + counts(two))
    assert lines_of({"small": summed}, program) == lines_of({"small": both}, program)


def test_lines_and_functions(program, tmp_path):
    functions = {each.name: each for each in lines_of({"small": ran(program, tmp_path / "run", "7", "8")}, program)}
    assert functions["never"].calls == 0 and functions["never"].reached == 0
    assert functions["sign"].calls == 2
    assert functions["sign"].lines[9] == 2, "both numbers are above 5"
    assert functions["sign"].lines[11] == 0, "none is negative"
    assert functions["sign"].file == "small.c"


def test_functions_that_never_ran_have_counters_too(program, tmp_path):
    none, all_ran = ran(program, tmp_path / "none"), ran(program, tmp_path / "all", "7", "-1", "0")
    assert len(counts(none)) == len(counts(all_ran)), "one place for an arc, whether it ran or not"
    assert (counts(with_counts(none, counts(all_ran))) == counts(all_ran)).all()


def test_what_a_cell_left_is_read(tmp_path):
    entries = [
        ("/build/x/net/sctp/input.gcda", b"counters"),
        ("/build/x/net/ipv4/input.gcda", b"other"),
        ("waited_ns", b"5\n"),
    ]
    file = tmp_path / "counters.bin"
    file.write_bytes(b"".join(f"{name} {len(data)}\n".encode() + data for name, data in entries))
    kept = read_kept(file, ["net/sctp/input"])
    assert kept.files == {"net/sctp/input": b"counters"} and kept.texts == {"waited_ns": "5\n"}
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(StoreError, match="cut short"):
        read_kept(file, ["net/sctp/input"])


def test_no_counters():
    with pytest.raises(StoreError, match="no counters"):
        counts(b"something else")
    assert counts(b"adcg*22B" + bytes(8)).dtype == np.uint64
