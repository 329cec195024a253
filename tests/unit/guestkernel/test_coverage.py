"""The variant of a kernel that counts its lines."""

import subprocess

import pytest
from netwarp.core.errors import KernelError
from netwarp.guestkernel.coverage import counting, label_of
from netwarp.guestkernel.variant import combined


@pytest.mark.parametrize(
    ("patterns", "label"),
    [
        (["net/sctp/*.c"], "gcov-sctp"),
        (["net/ipv4/tcp*.c"], "gcov-ipv4-tcp"),
        (["net/sctp/*.c", "net/mptcp/*.c"], "gcov-sctp-mptcp"),
        (["net/sctp/input.c"], "gcov-sctp-input"),
    ],
)
def test_labels(patterns, label):
    assert label_of(patterns) == label == counting(patterns).label


@pytest.mark.parametrize("pattern", ["net/sctp", "/net/sctp/*.c", "net/*/*.c", "../x.c", "net/sctp/*.c; rm", ""])
def test_what_is_no_pattern(pattern):
    with pytest.raises(KernelError, match="no pattern of C files"):
        counting([pattern])


def test_make_profiles_the_objects_that_match(tmp_path):
    """GNU make itself is asked what the line means."""
    (tmp_path / "net/ipv4").mkdir(parents=True)
    for name in ("tcp.c", "tcp_input.c", "udp.c"):
        (tmp_path / "net/ipv4" / name).touch()
    place, line = counting(["net/ipv4/tcp*.c"]).lines[0]
    assert place == "net/ipv4/Makefile"
    asked = "all:\n\t@echo $(foreach name,tcp tcp_input udp,$(name)=$(GCOV_PROFILE_$(name).o))\n"
    (tmp_path / "makefile").write_text(f"srctree := {tmp_path}\n{line}\n{asked}")
    said = subprocess.run(["make", "-s", "-C", str(tmp_path)], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["tcp=y", "tcp_input=y", "udp="]


def test_options_patch_and_what_is_kept():
    variant = combined([counting(["net/sctp/*.c"])])
    assert {"GCOV_KERNEL", "DEBUG_FS", "SCTP_DBG_OBJCNT"} <= {option.name for option in variant.options}
    assert [patch.name for patch in variant.patches] == ["gcov-before-main.patch"]
    assert variant.kept == ("*.gcno",)
