"""IP fragments: put together as the receiving host and tshark do; bounded, and counted where they are not."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.captures import Capture
from netwarp.captures.native import NONE
from netwarp.captures.summary import capture_notes
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, PadN
from support.captures import ISN, T, association, cut, data_chunk, ether, has, pcap, read, sctp, segment, timed

BUNDLE = sctp(22, *(data_chunk(ISN + n, 300, ssn=n) for n in range(5)))


def read_all(*frames: bytes, lengths: list[int] | None = None) -> Capture:
    with tempfile.TemporaryDirectory() as directory:
        records = [(T + i * 1000, frame) for i, frame in enumerate(frames)]
        return read(Path(directory), pcap(records))


def counts(capture: Capture) -> list[int]:
    return [int(capture.sources[0][name]) for name in ("fragments", "joined", "reassembled", "malformed")]


@settings(max_examples=60)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=12), st.data())
def test_any_fragments_in_any_order_are_the_datagram(sizes: list[int], data: st.DataObject) -> None:
    """Chunks, totals and the flow of every fragment, as if the datagram had come whole with the last of them."""
    parts = cut(BUNDLE, sizes)
    order = data.draw(st.permutations(range(len(parts))))
    again = [data.draw(st.sampled_from(range(len(parts) - 1)))] if len(parts) > 1 and data.draw(st.booleans()) else []
    frames = [parts[place] for place in order[:-1]]
    frames += [parts[order[place]] for place in again] + [parts[order[-1]]]
    whole = read_all(*association(), BUNDLE)
    capture = read_all(*association(), *frames)
    for column in ("tsn", "user_bytes", "stream", "message", "flow", "path", "direction", "truncated"):
        assert capture.chunks[column].tolist() == whole.chunks[column].tolist()
    assert set(capture.chunks["packet"].tolist()[-5:]) == {3 + len(frames)}
    total = capture.flow_paths[0]
    assert total["new_bytes"].tolist() == [1500, 0]
    # the datagram is one packet of the flow; a fragment that came twice is its path's only
    assert total["packets"].tolist() == [3, 2]
    assert total["ip_bytes"][0] == sum(len(frame) - 14 for frame in [*association()[::2], *parts])
    if len(parts) > 1:
        assert counts(capture) == [len(frames), len(parts), 1, 0]
        assert (capture.packets["flow"][4:] == 0).sum() == len(parts)
        assert capture.packets["marks"][-1] & 64


def test_tcp_in_fragments(tmp_path: Path) -> None:
    frames = [segment(1, 1000, flags="A"), segment(1001, 1000), segment(1, 1000)]
    parts = [part for number, frame in enumerate(frames) for part in cut(frame, [50, 50], number)]
    capture = read(tmp_path, pcap(timed(parts)), checksums=True)
    has(capture.segments, payload_bytes=[1000] * 3, is_retransmission=[False, False, True], packet=[2, 5, 8])
    assert capture.packets["flow"].tolist() == [0] * 9
    assert counts(capture) == [9, 9, 3, 0]
    assert capture_notes(capture, 0) == ["3 datagrams were reassembled from IP fragments"]
    broken = bytearray(parts[1])
    broken[40] ^= 1
    bad = read(tmp_path, pcap(timed([parts[0], bytes(broken), parts[2]])), checksums=True)
    assert bad.sources["bad_checksum"].tolist() == [1]
    assert len(bad.segments) == 0


def v6(data: bytes, offset: int, more: int, *, identity: int = 9, protocol: int = 6) -> bytes:
    header = IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrFragment(nh=protocol, offset=offset, m=more, id=identity)
    return ether(header / data)


@pytest.mark.parametrize("options", [False, True])
def test_ipv6_in_fragments(tmp_path: Path, options: bool) -> None:
    """With and without an extension header in the part that is cut."""
    data = bytes(TCP(sport=1, dport=2, seq=5, flags="A") / (b"x" * 500))
    protocol = 6
    if options:
        data = bytes(IPv6ExtHdrDestOpt(nh=6, options=[PadN(optdata=b"\0" * 12)])) + data
        protocol = 60
    parts = [v6(data[:200], 0, 1, protocol=protocol), v6(data[400:], 50, 0, protocol=protocol)]
    parts.append(v6(data[200:400], 25, 1, protocol=17 if options else 6))  # the first one's word counts
    capture = read(tmp_path, pcap(timed(parts)))
    assert capture.segments["payload_bytes"].tolist() == [500]
    assert capture.packets["flow"].tolist() == [0] * 3
    assert counts(capture) == [3, 3, 1, 0]


def test_datagrams_that_are_never_whole_are_in_no_flow(tmp_path: Path) -> None:
    parts = cut(BUNDLE, [60, 60])
    capture = read(tmp_path, pcap(timed([*association(), *parts[1:], *cut(BUNDLE, [60, 60], 8)[:2]])))
    assert counts(capture) == [4, 0, 0, 0]
    assert capture.packets["flow"].tolist()[4:] == [NONE] * 4
    assert len(capture.chunks) == 4
    assert "4 IP fragments belong to incomplete datagrams, not counted in any flow" in capture_notes(capture, 0)


def test_fragments_that_overlap_make_theirs_void(tmp_path: Path) -> None:
    one, two, three = cut(BUNDLE, [60, 60])
    other = cut(BUNDLE, [40, 70])[1]
    capture = read(tmp_path, pcap(timed([*association(), one, other, two, three])))
    assert len(capture.chunks) == 4
    assert counts(capture) == [4, 0, 0, 1]


@pytest.mark.parametrize(("offset", "more", "size"), [(8191, 1, 800), (10, 1, 33), (0, 1, 0), (8189, 0, 64)], ids=str)
def test_fragments_that_cannot_be(tmp_path: Path, offset: int, more: int, size: int) -> None:
    frame = ether(IP(dst="10.0.0.2", proto=132, frag=offset, flags="MF" if more else 0) / (b"x" * size))
    assert counts(read(tmp_path, pcap([(T, frame)]))) == [1, 0, 0, 1]


def test_two_ends_of_one_datagram(tmp_path: Path) -> None:
    """Another last fragment, and data beyond the end that was told."""
    one, _, three = cut(BUNDLE, [60, 60])
    short = ether(IP(src="10.1.0.1", dst="10.1.0.2", proto=132, id=7, frag=70) / (b"x" * 8))
    assert counts(read(tmp_path, pcap(timed([*association(), one, three, short])))) == [3, 0, 0, 1]
    assert counts(read(tmp_path, pcap(timed([*association(), short, three])))) == [2, 0, 0, 1]


def test_a_datagram_with_a_hole_is_not_complete(tmp_path: Path) -> None:
    """What lies beyond the end that is told later does not stand in for what is missing before it."""

    def part(offset: int, size: int, more: int) -> bytes:
        return ether(IP(src="10.1.0.1", dst="10.1.0.2", proto=132, id=7, frag=offset, flags=more) / (b"\0" * size))

    # 8 + 8 + 4 bytes are there, the end is at 20, and 8 to 16 are missing
    assert counts(read(tmp_path, pcap(timed([part(0, 8, 1), part(3, 8, 1), part(2, 4, 0)])))) == [3, 0, 0, 1]
    assert counts(read(tmp_path, pcap(timed([part(2, 4, 0), part(0, 8, 1), part(3, 8, 1)])))) == [3, 0, 0, 1]


def test_numbers_are_used_again_after_30_s(tmp_path: Path) -> None:
    one, two = cut(BUNDLE, [60])
    start = timed(association())
    late = read(tmp_path, pcap([*start, (T + 10**9, one), (T + 32 * 10**9, two), (T + 33 * 10**9, one)]))
    assert counts(late) == [3, 2, 1, 0]
    assert late.chunks["time_ns"][-1] == T + 33 * 10**9
    soon = read(tmp_path, pcap([*start, (T + 10**9, one), (T + 30 * 10**9, two)]))
    assert counts(soon) == [2, 2, 1, 0]


def test_more_datagrams_than_are_kept(tmp_path: Path) -> None:
    """The oldest give way: memory is bounded, and what was lost is counted."""
    firsts = [cut(BUNDLE, [60], identity)[0] for identity in range(100)]
    lasts = [cut(BUNDLE, [60], identity)[1] for identity in range(100)]
    capture = read(tmp_path, pcap(timed([*association(), *firsts, *lasts[::-1]])))
    # 64 are kept; the last ones of the 36 that were given up push out others of their own kind only
    assert counts(capture) == [200, 128, 64, 0]
    assert capture.chunks["is_retransmission"].sum() == 63 * 5


def test_fragments_of_two_files_are_not_mixed(tmp_path: Path) -> None:
    """A router's two interfaces see each fragment twice: two datagrams, one a file."""
    one, two = cut(BUNDLE, [60])
    capture = read(tmp_path, pcap([(T, one), (T + 10, two)]), pcap([(T + 5, one), (T + 15, two)]))
    assert capture.sources["reassembled"].tolist() == [1, 1]
    assert capture.chunks["is_retransmission"].tolist() == [False] * 5 + [True] * 5


def test_truncated_fragments_are_used_up_to_the_first_hole(tmp_path: Path) -> None:
    one, two, three = cut(BUNDLE, [60, 60])
    frames = [*timed(association()), (T + 10**6, one), (T + 10**6 + 1, two[:200], len(two)), (T + 10**6 + 2, three)]
    capture = read(tmp_path, pcap(frames))
    # 480 + 200 - 34 bytes of the datagram are there: DATA 0 (12 to 328) whole, 1 (to 644) whole, 2 (644 on) is a stub
    data = capture.chunks[4:]
    has(data, user_bytes=[300, 300], truncated=[False, False])
    assert capture.sources["unseen_bytes"].tolist() == [3 * 316]
    assert capture.flow_paths["unseen_bytes"].tolist() == [[3 * 316, 0]]


def test_tshark_puts_the_same_together(tmp_path: Path) -> None:
    """tshark shows the chunks of a datagram at the fragment that made it whole, and so do we."""
    parts = cut(BUNDLE, [60, 60])
    frames = [*association(), parts[2], parts[0], BUNDLE, parts[1], *cut(BUNDLE, [100], 8), cut(BUNDLE, [9], 9)[0]]
    path = tmp_path / "0.pcap"
    capture = read(tmp_path, pcap(timed(frames)))
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-e", "frame.number", "-e", "sctp.data_tsn_raw"]
    done = subprocess.run([*command, "-Y", "sctp.data_tsn"], check=True, capture_output=True, text=True)
    theirs = [
        (int(number) - 1, int(tsn, 0))
        for number, tsns in (line.split("\t") for line in done.stdout.splitlines())
        for tsn in tsns.split(",")
    ]
    data = capture.chunks[capture.chunks["type"] == 0]
    assert [(int(row["packet"]), (ISN + int(row["tsn"])) % 2**32) for row in data] == theirs
    assert len(theirs) == 15


def test_reading_in_parts_gives_the_same(tmp_path: Path) -> None:
    from netwarp.captures.native import CoreHandle

    parts = cut(BUNDLE, [20] * 9)
    path = tmp_path / "0.pcap"
    path.write_bytes(pcap(timed([*association(), *parts, *parts])))
    handle = CoreHandle([path], ["packets", "chunks"])
    handle.read(4)
    handle.clear()
    handle.read(len(parts))
    assert handle.rows("packets")["flow"].tolist() == [0] * len(parts)
    handle = CoreHandle([path], ["packets", "chunks"])
    chunks = 0
    while handle.read(3):
        chunks += len(handle.rows("chunks"))
        handle.clear()
    chunks += len(handle.rows("chunks"))
    assert chunks == 14
    assert handle.rows("flow_paths")["packets"][0].tolist() == [4, 2]


def test_the_length_of_a_fragment_that_wraps(tmp_path: Path) -> None:
    """An IP length of 0 (TSO) in a frame that claims nearly 2^32 B: the end is not 1052."""
    offset, wrapped = 2048, 1052
    header = IP(src="10.0.0.1", dst="10.0.0.2", proto=132, id=7, frag=offset // 8, len=0)
    frame = ether(header / (b"3" * 10))
    on_wire = 2**32 - offset + wrapped + len(ether(header))
    assert counts(read(tmp_path, pcap([(T, frame, on_wire)]))) == [1, 0, 0, 1]


def test_a_later_fragment_has_no_type_of_icmp() -> None:
    """A Packet Too Big in two fragments (RFC 4443 3.2): the second begins with a byte that would be a type."""
    answer = bytes([2, 0, 0, 0]) + bytes(4) + bytes([135]) * 1200
    header = {"src": "fd00::1", "dst": "fd00::2"}
    parts = [
        IPv6(**header) / IPv6ExtHdrFragment(nh=58, offset=at // 8, m=int(at + 1000 < len(answer)), id=5)
        / answer[at : at + 1000]
        for at in range(0, len(answer), 1000)
    ]  # fmt: skip
    for frames in (parts, parts[::-1], parts[1:]):
        assert int(read_all(*map(ether, frames)).sources[0]["discovery"]) == 0
    whole = IPv6(**header, nh=58) / (bytes([135]) * 24)
    assert int(read_all(ether(whole)).sources[0]["discovery"]) == 1
