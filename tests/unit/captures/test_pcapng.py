"""pcapng: byte orders, sections, interfaces, resolutions, every kind of block; blocks and options that lie."""

from __future__ import annotations

import gzip
import itertools
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.captures import read_captures
from netwarp.captures.capture import ROW_TABLES
from netwarp.captures.summary import capture_notes
from netwarp.core.errors import CaptureError
from support.capture_bytes import assert_same_tables
from support.captures import T, check_transfer, has, pcap, plain, read, recorded, tcp_transfer
from support.pcapng_kit import PACKET, Writer

LITTLE, BIG = Writer("<"), Writer(">")
TABLES = ("flows", "flow_paths", "paths", *ROW_TABLES)
FRAMES = tcp_transfer()


def file(w: Writer, *more: bytes, resolution: int = 9) -> bytes:
    packets = [w.packet(time, frame) for time, frame in FRAMES]
    return b"".join([w.section(), w.interface(resolution=resolution), *packets, *more])


@pytest.mark.parametrize("w", [LITTLE, BIG], ids=["little", "big"])
def test_both_byte_orders(tmp_path: Path, w: Writer) -> None:
    capture = read(tmp_path, file(w))
    check_transfer(capture)
    assert capture.trouble == ("",)
    assert capture.packets["time_ns"].tolist() == [time for time, _ in FRAMES]
    source = capture.sources[0]
    has(source, big_endian=w is BIG, nanosecond=True, link_type=1, file_bytes=len(file(w)))
    assert capture_notes(capture, 0) == []


@pytest.mark.parametrize(
    ("resolution", "ticks_a_second"),
    [(None, 10**6), (6, 10**6), (0, 1), (3, 10**3), (9, 10**9), (10, 10**10)]
    + [(0x80 | n, 2**n) for n in (0, 10, 20, 30, 33)],
)
@pytest.mark.parametrize("offset_s", [None, 0, 1_000_000_000, -5])
def test_resolutions_and_offsets(
    tmp_path: Path, resolution: int | None, ticks_a_second: int, offset_s: int | None
) -> None:
    """The time of a record is its ticks over the resolution, plus the offset, rounded down to ns."""
    ticks = [(T * ticks_a_second // 10**9) % 2**63, 0, 12345]
    w = LITTLE
    packets = [w.packet(tick, FRAMES[0][1]) for tick in ticks]
    data = b"".join([w.section(), w.interface(resolution=resolution, offset_s=offset_s), *packets])
    expected = [tick * 10**9 // ticks_a_second + (offset_s or 0) * 10**9 for tick in ticks]
    assert read(tmp_path, data).packets["time_ns"].tolist() == expected


@pytest.mark.parametrize(
    ("resolution", "expected"), [(28, 1), (29, 0), (127, 0), (0xFF, 0), (0, 4_300_000_000 * 10**9)]
)
def test_resolutions_beyond_sense(tmp_path: Path, resolution: int, expected: int) -> None:
    """Ticks too fine for any time are 0 s, those beyond 64 bit of ns the last ns there is: nothing overflows."""
    w = LITTLE
    data = w.section() + w.interface(resolution=resolution) + w.packet(2**64 - 1, FRAMES[0][1])
    assert read(tmp_path, data).packets["time_ns"].tolist() == [expected]


def test_interfaces_of_several_sections(tmp_path: Path) -> None:
    """Each section counts its interfaces from 0, in its own byte order; ours are numbered through."""
    ip = FRAMES[0][1][14:]
    data = b"".join(
        [
            LITTLE.section(),
            LITTLE.interface(1, name="eth0", snaplen=96, resolution=9),
            LITTLE.interface(101, name="tun0", resolution=3),
            LITTLE.packet(1_000_000, FRAMES[0][1]),
            LITTLE.packet(2, ip, interface=1),
            LITTLE.statistics(1, received=3, dropped=2),
            LITTLE.statistics(7, received=3, dropped=2),
            BIG.section(),
            BIG.interface(147, name="a name longer than sixteen"),
            BIG.interface(113),
            BIG.packet(3_000, b"?" * 20),
            BIG.packet(4_000, struct.pack("!HHH8sH", 0, 1, 6, b"", 0x0800) + ip, interface=1),
        ]
    )
    capture = read(tmp_path, data)
    assert capture.trouble == ("",)
    has(capture.packets, interface=[0, 1, 2, 3], source=[0] * 4, time_ns=[1_000_000, 2_000_000, 3_000_000, 4_000_000])
    assert capture.packets["flow"].tolist()[:2] + capture.packets["flow"].tolist()[3:] == [0, 0, 0]
    table = capture.interfaces
    has(
        table,
        link_type=[1, 101, 147, 113],
        snaplen=[96, 0, 0, 0],
        resolution=[9, 3, 6, 6],
        packets=[1, 1, 1, 1],
        readable=[True, True, False, True],
        dropped=[0, 2, 0, 0],
        dropped_known=[False, True, False, False],
    )
    assert [capture.interface_name(number) for number in range(4)] == ["eth0", "tun0", "a name longer th", ""]
    notes = capture_notes(capture, 0)
    assert "interface a name longer th: link type 147 is not supported, so its 1 packet is only counted" in notes
    assert "interface tun0: 2 packets were dropped while capturing" in notes


def test_every_kind_of_packet_block(tmp_path: Path) -> None:
    w = LITTLE
    short = FRAMES[3][1][:60]
    data = b"".join(
        [
            w.section(options=w.option(4, b"a program")),
            w.interface(snaplen=60, resolution=9),
            w.block(4, b"names"),
            w.block(0x0BAD0001, b"custom" * 20),
            w.simple_packet(FRAMES[0][1]),
            w.packet(5, FRAMES[0][1]),
            w.block(10, b"secrets"),
            w.simple_packet(short, len(FRAMES[3][1])),
            w.old_packet(6, FRAMES[4][1]),
            w.block(0x7FFFFFFF, b""),
        ]
    )
    capture = read(tmp_path, data)
    assert capture.trouble == ("",)
    assert capture.packets["time_ns"].tolist() == [0, 5, 5, 6]
    assert (capture.packets["marks"] & 128 != 0).tolist() == [True, False, True, False]
    assert capture.packets["frame_bytes"].tolist() == [len(FRAMES[i][1]) for i in (0, 0, 3, 4)]
    assert capture.segments["payload_bytes"].tolist() == [0, 0, 400, 400]
    assert capture.sources["untimed"].tolist() == [2]
    assert any(note.startswith("2 records have no time") for note in capture_notes(capture, 0))


LIES = {
    "block of length 0": (LITTLE.block(PACKET, b"", length=0), "claims 0 bytes"),
    "block of length 13": (LITTLE.block(PACKET, b"x" * 40, length=53), "claims 53 bytes"),
    "block of 4 GiB": (LITTLE.block(9, b"x" * 40, length=2**32 - 4), "claims 4294967292 bytes"),
    "two lengths": (LITTLE.block(9, b"x" * 40, again=56), "two lengths are 52 and 56"),
    "packet of no interface": (LITTLE.packet(1, b"x", interface=1), "packet of interface 1"),
    "packet block too short": (LITTLE.block(PACKET, b"x" * 16), "packet block of 16 bytes"),
    "old packet block too short": (LITTLE.block(2, b"x" * 16), "packet block of 16 bytes"),
    "simple packet block too short": (LITTLE.block(3, b""), "packet block of 0 bytes"),
    "captured more than the block": (LITTLE.packet(1, b"x" * 8, captured=2**32 - 1), "claims 4294967295 captured"),
    "interface too short": (LITTLE.block(1, b"x" * 4), "interface description of 4 bytes"),
    "statistics too short": (LITTLE.block(5, b"x" * 8), "interface statistics of 8 bytes"),
    "section of no byte order": (struct.pack("<IIIQI", 0x0A0D0D0A, 28, 5, 0, 28), "no byte order"),
    "section too short": (LITTLE.block(0x0A0D0D0A, LITTLE.pack("I", 0x1A2B3C4D)), "section header of 4 bytes"),
    "section of version 2": (LITTLE.section(major=2), "pcapng version 2"),
    "packet right after a new section": (LITTLE.section() + LITTLE.packet(1, b"x"), "packet of interface 0"),
}


@pytest.mark.parametrize("lie", LIES)
def test_blocks_that_lie_end_the_file_there(tmp_path: Path, lie: str) -> None:
    data, text = LIES[lie]
    capture = read(tmp_path, file(LITTLE, data, LITTLE.packet(T, FRAMES[0][1])))
    check_transfer(capture)
    assert text in capture.trouble[0]
    assert "not read on from there" in capture.trouble[0]
    assert capture.sources["cut_off"].tolist() == [True]


OPTION_LIES = {
    "longer than the block": LITTLE.option(9, b"\x09", length=5000),
    "half an option": b"\x09\x00",
    "resolution of two bytes": LITTLE.option(9, b"\x09\x09"),
    "offset of four bytes": LITTLE.option(14, b"\0" * 4),
}


@pytest.mark.parametrize("lie", OPTION_LIES)
def test_options_that_lie_end_their_list_only(tmp_path: Path, lie: str) -> None:
    w = LITTLE
    body = w.pack("HHI", 1, 0, 0) + w.option(2, b"eth7") + OPTION_LIES[lie]
    data = w.section() + w.block(1, body) + b"".join(w.packet(time // 1000, frame) for time, frame in FRAMES)
    capture = read(tmp_path, data)
    check_transfer(capture)
    assert capture.trouble == ("",)
    assert capture.interfaces["malformed"].tolist() == [True]
    assert capture.interface_name(0) == "eth7"
    assert any("description block is invalid" in note for note in capture_notes(capture, 0))


def test_cut_off_at_every_byte(tmp_path: Path) -> None:
    """As many packets as there are whole blocks; what is cut is said."""
    data = file(LITTLE)
    ends, at = [], 0
    while at < len(data):
        at += struct.unpack_from("<I", data, at + 4)[0]
        ends.append(at)
    for size in range(28, len(data) + 1, 7):
        capture = read(tmp_path, data[:size])
        assert len(capture.packets) == max(0, sum(end <= size for end in ends) - 2)
        assert ("cut off in a block" in capture.trouble[0]) == (size not in ends)


def test_too_short_for_a_section(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"cut off in a block"):
        read(tmp_path, file(LITTLE)[:26])


@pytest.mark.parametrize("name", ["tcp", "sctp", "mptcp", "bundle"])
@pytest.mark.parametrize("packed", ["", "gzip"])
def test_captures_converted_by_editcap_read_the_same(name: str, packed: str, tmp_path: Path) -> None:
    """editcap writes pcapng, and nanosecond and microsecond pcap, of what the guests captured."""
    (original,) = recorded(name, "a", ["p1"])
    base = read_captures([original])
    source = tmp_path / "plain.pcap"
    source.write_bytes(plain(original))
    for kind in ("pcapng", "nsecpcap"):
        made = tmp_path / f"made.{kind}"
        subprocess.run(["editcap", "-F", kind, source, made], check=True, capture_output=True)
        if packed:
            made.write_bytes(gzip.compress(made.read_bytes()))
        again = read_captures([made])
        assert again.trouble == ("",)
        assert_same_tables(base, again, TABLES)
    made = tmp_path / "coarse.pcap"
    subprocess.run(["editcap", "-F", "pcap", source, made], check=True, capture_output=True)
    again = read_captures([made])
    assert (again.packets["time_ns"] == base.packets["time_ns"] // 1000 * 1000).all()
    times = {"time_ns", "first_ns", "last_ns"}
    assert_same_tables(base, again, TABLES, times)


@pytest.mark.parametrize("name", ["sctp", "mptcp"])
def test_captures_merged_by_mergecap_are_one_file_of_two_interfaces(name: str, tmp_path: Path) -> None:
    files = []
    for number, original in enumerate(recorded(name, "a", ["p1", "p2"])):
        files.append(tmp_path / f"{number}.pcap")
        files[-1].write_bytes(plain(original))
    merged = tmp_path / "merged.pcapng"
    subprocess.run(["mergecap", "-F", "pcapng", "-I", "none", "-w", merged, *files], check=True, capture_output=True)
    base, again = read_captures(files), read_captures([merged])
    assert again.interfaces["packets"].tolist() == base.sources["packets"].tolist()
    by_time = np.lexsort((again.packets["interface"], again.packets["time_ns"]))
    assert (again.packets["interface"][by_time] == base.packets["source"]).all()
    assert (again.packets["time_ns"][by_time] == base.packets["time_ns"]).all()
    for column in ("packets", "ip_bytes", "payload_bytes", "new_bytes", "retransmitted_chunks", "sacks"):
        assert again.flow_paths[column].sum() == base.flow_paths[column].sum()


def test_an_empty_section_is_an_empty_capture(tmp_path: Path) -> None:
    capture = read(tmp_path, LITTLE.section(), pcap(FRAMES))
    assert capture.sources["packets"].tolist() == [0, 10]
    assert capture.interfaces["source"].tolist() == [1]
    check_transfer(capture)


@pytest.mark.parametrize(("name", "link"), [("tcp", "p1"), ("sctp", "p1"), ("mptcp", "p2"), ("bundle", "p1")])
@settings(max_examples=8)
@given(st.lists(st.tuples(st.integers(1, 200), st.booleans(), st.integers(0, 2)), min_size=1, max_size=12))
def test_sections_interfaces_and_byte_orders_change_nothing(
    name: str, link: str, cuts: list[tuple[int, bool, int]]
) -> None:
    """A capture's records dealt out to sections of both byte orders, each at one of three interfaces."""
    (original,) = recorded(name, "a", [link])
    whole = plain(original)
    parts, at, expected = [], 24, []
    for count, swapped, interface in itertools.cycle(cuts):
        w = BIG if swapped else LITTLE
        base = 3 * sum(part.startswith(b"\x0a\x0d\x0d\x0a") for part in parts)
        parts += [w.section(), w.interface(resolution=9), w.interface(resolution=9, offset_s=-1), w.interface()]
        for _ in range(count):
            if at == len(whole):
                break
            seconds, rest, captured, length = struct.unpack_from("<IIII", whole, at)
            data = whole[at + 16 : at + 16 + captured]
            at += 16 + captured
            # the third interface counts microseconds: those that fit no microsecond go to the first
            chosen = 0 if interface == 2 and rest % 1000 else interface
            ns = (seconds + (chosen == 1)) * 10**9 + rest
            parts.append(w.packet(ns // 1000 if chosen == 2 else ns, data, length, interface=chosen))
            expected.append(base + chosen)
        if at == len(whole):
            break
    with tempfile.TemporaryDirectory() as directory:
        again = read(Path(directory), b"".join(parts))
    assert again.trouble == ("",)
    assert again.packets["interface"].tolist() == expected
    assert_same_tables(read_captures([original]), again, TABLES, {"interface"})
