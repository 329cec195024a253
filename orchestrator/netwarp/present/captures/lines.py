"""The results of a protocol's analyser as lines (label, text). A line without a value is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...captures.capture import NEAR
from ...captures.connection import Connection
from ...core.numbers import fixed, readable, with_unit
from ...core.units import counted
from .words import delays, seconds

if TYPE_CHECKING:
    from ...captures.mptcp import MptcpConnection

Lines = list[tuple[str, str]]
Totals = Mapping[str, Any]
INFERRED = "inferred: what they repeat was lost before it came here"
OFFLOADED = "packets of several segments each (segmentation offload): all counts are of packets as captured"
WHY_UNKNOWN = "why is not known here: that takes all TCP options, and at the receiver timestamps"


def detail_lines(connection: Connection) -> Lines:
    """For the terminal's block and the page's facts. Empty without the protocol's analyser."""
    if not connection.totals:
        return []
    of_data = _sctp_data if connection.protocol == "sctp" else _tcp_data
    lines = _sctp(connection) if connection.protocol == "sctp" else _tcp(connection)
    reverse = {name[8:]: value for name, value in connection.totals.items() if name.startswith("reverse_")}
    if reverse and (others := _kept(of_data(reverse))):
        lines += [("also data from", connection.ends[1 - connection.totals["data_direction"]]), *others]
    return lines


def _parts(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def _some(totals: Totals, name: str, single: str, many: str = "") -> str | None:
    """ "3 words" where the total is there and above 0."""
    count = totals.get(name)
    return counted(count, single, many) if count else None


def _kept(lines: Lines) -> Lines:
    return [(label, text) for label, text in lines if text]


def _rtt(totals: Totals, begin: str, *names: str) -> str:
    values = [totals.get(f"{begin}_{name}_s") for name in names]
    if all(value is None for value in values):
        return ""
    samples = totals.get(f"{begin}_samples")
    return f"{'/'.join(names)} {delays(*values)}" + (f" of {counted(samples, 'sample')}" if samples else "")


def _with_delay(text: str, answers: str) -> str:
    return f"{text}, with the time for which the other end puts {answers} off" if text else ""


def _tcp(connection: Connection) -> Lines:
    totals = connection.totals
    agreed = [word for name, word in (("sack_permitted", "SACK"), ("timestamps", "timestamps"), ("ecn", "ECN"))
              if totals.get(name)]  # fmt: skip
    shifts = [totals.get("window_shift_initiator"), totals.get("window_shift_responder")]
    sizes = [totals.get("mss_initiator_bytes"), totals.get("mss_responder_bytes")]
    handshake = totals.get("handshake_rtt_s")
    rest = "" if (totals.get("capture_point_ratio") or 0) < NEAR else ", from here"  # not the whole round trip
    flight, window = totals.get("max_flight_bytes"), totals.get("max_window_bytes")
    initial = totals.get("initial_window_packets") if connection.facts["handshake_seen"] else None
    if not connection.directions[1 - totals.get("data_direction", 0)]["packets"]:
        flight = initial = None  # without a single acknowledgement in the capture all of it would be in flight
    return _kept([
        ("handshake", _parts(f"round trip {seconds(handshake)}" if handshake is not None else None, *agreed,
                             f"window scale {shifts[0]}/{shifts[1]}" if None not in shifts else None,
                             f"MSS {sizes[0]}/{sizes[1]}" if None not in sizes else None)),
        ("seen from", _place(totals.get("capture_point_ratio"), connection)),
        (f"RTT{rest}", _rtt(totals, "rtt", "min", "median", "p95")),
        (f"RTT by timestamps{rest}", _rtt(totals, "rtt_timestamps", "min", "median", "p95")),
        *_tcp_data(totals),
        ("order", _parts(_some(totals, "out_of_order_packets", "packet out of order", "packets out of order"),
                         _some(totals, "reordered_packets", "overtaken", "overtaken"),
                         _some(totals, "repaired_packets", "retransmitted", "retransmitted"))),
        ("acknowledged by", _parts(_some(totals, "pure_acks_back", "pure ACK"),
                                   _some(totals, "duplicate_acks", "duplicate ACK"),
                                   _some(totals, "sack_blocks", "SACK block"), _some(totals, "dsacks", "DSACK"))),
        ("in flight", _parts(f"at most {with_unit(flight, 'bytes')}" if flight else None,
                             f"window at most {with_unit(window, 'bytes')}" if window is not None else None,
                             f"initial window {counted(initial, 'packet')}" if initial else None)),
        ("ECN", _parts(_some(totals, "ect_packets", "packet ECT", "packets ECT"),
                       _some(totals, "ce_packets", "marked CE", "marked CE"),
                       _some(totals, "ece_packets", "ECE", "ECE"), _some(totals, "cwr_packets", "CWR", "CWR"))),
    ])  # fmt: skip


def _tcp_data(totals: Totals) -> Lines:
    """What was sent again in one direction, and its zero windows."""
    unknown = totals.get("retransmitted_packets") and totals.get("fast_retransmitted_packets") is None
    return [
        ("offload", _some(totals, "offloaded_packets", OFFLOADED, OFFLOADED) or ""),
        ("sent again", _parts(_some(totals, "fast_retransmitted_packets", "fast", "fast"),
                              _some(totals, "timeouts", "timeout"),
                              _some(totals, "after_timeout_retransmitted_packets", "after a timeout", "after timeouts"),
                              _some(totals, "tail_loss_probes", "tail loss probe"),
                              _some(totals, "syn_retransmitted_packets", "in the handshake", "in the handshake"),
                              _some(totals, "unknown_retransmitted_packets", "of unknown cause", "of unknown cause"),
                              _some(totals, "inferred_retransmitted_packets", INFERRED, INFERRED),
                              WHY_UNKNOWN if unknown else None)),
        ("needlessly", _parts(_some(totals, "spurious_retransmitted_packets", "packet"),
                              _some(totals, "spurious_by_dsack_packets", "by DSACK", "by DSACK"),
                              _some(totals, "spurious_by_timestamps_packets", "by timestamps", "by timestamps"))),
        ("zero windows", _zero_windows(totals)),
    ]  # fmt: skip


def _zero_windows(totals: Totals) -> str:
    return _parts(
        _some(totals, "zero_windows", "zero-window spell"),
        f"closed for {seconds(totals['zero_window_s'])}" if totals.get("zero_windows") else None,
        _some(totals, "zero_window_probes", "probe"),
    )


def _place(ratio: float | None, connection: Connection) -> str:
    """The place of the capture, from the share of the round trip between it and the data's sender."""
    if ratio is None:
        return ""
    where = _end("sender" if ratio < NEAR else "receiver" if ratio > 1 - NEAR else "middle", connection)
    if not 0.01 <= ratio <= 0.99:
        return where
    return f"{where} ({readable(100 * ratio, 2)} % of the round trip from the sender)"


def _end(point: str, connection: Connection) -> str:
    """The end at which a capture was taken, by name."""
    d = connection.totals["data_direction"]
    ends = {"sender": connection.ends[d], "receiver": connection.ends[1 - d]}
    if point in ends:
        return f"at {ends[point].rpartition(':')[0]}, the data's {point}"
    return "in the middle" if point == "middle" else ""


def _sctp(connection: Connection) -> Lines:
    totals, tables = connection.totals, connection.tables
    causes = [f"{row.get('cause', row.get('name', '?'))}" for row in tables.get("causes", ())]
    unanswered = totals.get("heartbeats_unanswered") or 0
    most = totals.get("outstanding_max_bytes")
    cut = totals.get("unknown_tsn_chunks")
    return _kept([
        ("seen from", _end(str(totals.get("point")), connection)),
        ("chunks", _parts(_some(totals, "new_data_chunks", "new DATA", "new DATA"),
                          _some(totals, "messages", "message"),
                          _some(totals, "sacks", "SACK"), _some(totals, "sacks_with_gaps", "with gaps", "with gaps"),
                          _some(totals, "duplicate_tsns_reported", "duplicate TSN reported",
                                "duplicate TSNs reported"))),
        ("carries", _carries(tables.get("payloads", ()))),
        ("RTT", _with_delay(_rtt(totals, "rtt", "min", "mean", "max"), "its SACKs")),
        *_sctp_data(totals),
        ("in flight", f"at most {with_unit(most, 'bytes')}" if most else ""),
        ("head of line", _hol(totals)),
        ("streams", _streams(tables.get("streams", ()))),
        ("not known", f"{counted(cut, 'DATA chunk')} whose TSN lies beyond the snaplen" if cut else ""),
        ("heartbeats", _parts(_some(totals, "heartbeats", "sent", "sent"),
                              f"{fixed(unanswered, 0)} without an answer" if unanswered else None)),
        ("new data moved", _some(totals, "path_changes", "time") or ""),
        ("causes", _parts(_some(totals, "aborts", "ABORT"), _some(totals, "errors", "ERROR"), *causes)),
        *[(f"path {name}", text) for name, text in _paths(connection)],
    ])  # fmt: skip


def _sctp_data(totals: Totals) -> Lines:
    """What was sent again in one direction, its zero windows and outages."""
    longest = totals.get("outage_longest_s")
    return [
        ("sent again", _parts(_some(totals, "fast_retransmitted_chunks", "chunk fast", "chunks fast"),
                              _some(totals, "timeout_retransmitted_chunks", "by timeout", "by timeout"),
                              _some(totals, "t3_expiries", "T3 expiry", "T3 expiries"),
                              _some(totals, "probe_retransmitted_chunks", "probe of a zero window",
                                    "probes of a zero window"),
                              _some(totals, "unknown_retransmitted_chunks", "of unknown cause", "of unknown cause"),
                              _some(totals, "inferred_retransmitted_chunks", INFERRED, INFERRED),
                              _some(totals, "retransmitted_other_path_chunks", "on another path", "on another path"),
                              _some(totals, "spurious_retransmitted_chunks", "needlessly", "needlessly"))),
        ("zero windows", _zero_windows(totals)),
        ("outages", _parts(_some(totals, "outages", "outage"),
                           f"longest {seconds(longest)}" if longest else None)),
    ]  # fmt: skip


def _carries(rows: Sequence[Mapping[str, Any]]) -> str:
    """The protocols that the payload protocol identifiers name."""
    return ", ".join(f"{row['name']} (PPID {row['ppid']})" for row in rows if row["name"])


def _hol(totals: Totals) -> str:
    mean, most = totals.get("hol_blocking_mean_s"), totals.get("hol_blocking_max_s")
    alone = totals.get("hol_blocking_one_stream_mean_s")
    if mean is None or not (most or alone):
        return ""
    return f"mean/max {delays(mean, most)}" + (
        f", as one stream {seconds(alone)} on average" if alone is not None and abs(alone - mean) > 0.01 * alone else ""
    )


def _streams(rows: Sequence[Mapping[str, Any]]) -> str:
    """The number of streams, and the one that waits longest for its own gaps; only if there are several."""
    waits = [(row["hol_blocking_mean_s"], row["stream"]) for row in rows if row.get("hol_blocking_mean_s")]
    if len(rows) < 2:
        return ""
    return _parts(f"{len(rows)} with data", f"number {max(waits)[1]} waits longest, {seconds(max(waits)[0])} on average"
                  if waits else None)  # fmt: skip


def _paths(connection: Connection) -> Lines:
    """The data that each path carried; only if there are several."""
    if len(connection.facts["paths"]) < 2:
        return []
    lines: Lines = []
    for path in connection.facts["paths"]:
        names = ("data_chunks", "sacks", "retransmitted_chunks")
        data, sacks, again = (max(count or 0 for count in path[name]) for name in names)
        text = _parts(counted(data, "DATA", "DATA"), counted(sacks, "SACK"),
                      f"{fixed(sum(path['heartbeats']), 0)} HB" if sum(path["heartbeats"]) else None,
                      f"{fixed(again, 0)} again" if again else None,
                      with_unit(sum(path["ip_bytes"]), "bytes"))  # fmt: skip
        lines.append((f"{path['addresses'][0]} \u2194 {path['addresses'][1]}", text))
    return lines


def multipath_lines(multipath: MptcpConnection) -> Lines:
    """An MPTCP connection's data level, and what each subflow carried of it."""
    totals = multipath.totals
    subflows = [
        (f"flow {row['flow']}",
         _parts(f"{readable(100 * row['new_ratio'], 3)} % of the data" if row["new_ratio"] is not None else None,
                with_unit(row["new_bytes"], "bytes"),
                _some(row, "retransmitted_segments", "retransmitted", "retransmitted"),
                _some(row, "reinjected_segments", "reinjected", "reinjected"), "backup" if row["backup"] else None,
                "never established" if row["asked_s"] is not None and row["joined_s"] is None else None,
                f"lost at {readable(row['lost_s'], 6)} s" if row["lost_s"] is not None else None))
        for row in multipath.tables["subflows"]
    ]  # fmt: skip
    return _kept([
        ("data level", _parts(f"{with_unit(totals['new_bytes'], 'bytes')} new",
                              f"goodput {with_unit(totals['goodput_bit_s'], 'bit/s')}")),
        ("sent again", _parts(_some(totals, "retransmitted_segments", "segment", "segments"),
                              _some(totals, "reinjected_segments", "on another subflow", "on another subflow"))),
        ("addresses", _parts(_some(totals, "addresses_told", "ADD_ADDR"))),
        *subflows,
    ])  # fmt: skip


def multipath_title(multipath: MptcpConnection) -> str:
    """MPTCP version 1 of flows 1 and 2."""
    flows = " and ".join(map(str, multipath.flows))
    rest = "" if multipath.complete else ", its handshake not in the capture"
    noun = "flow" if len(multipath.flows) == 1 else "flows"
    return f"MPTCP connection (version {multipath.version}) of {noun} {flows}{rest}"
