"""The messages of a flow's ends: its own, and those of `reverse`, the other direction of the same connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from ..core.messages import Law, Messages
from ..core.types import Flow, OptionValue, Reverse
from ..experiment.fields import Reader
from ..experiment.options import read_schedule
from ..experiment.read_messages import (
    EXAMPLE,
    MESSAGES,
    REVERSE,
    Described,
    check_count,
    read_messages,
    scheduled_already,
)
from .kinds import FLOW_KINDS

_OF_WHAT_IS_SENT = ("unordered", "ppid")
"""Options of a receiver that are of the messages it sends."""
_PARTIAL = ("lifetime_ns", "max_retransmissions")
LEAST_DATAGRAM_BYTES = 8
"""The bytes of a payload with the number of its message (docs/formats.md, The payload)."""


@dataclass(frozen=True, slots=True)
class FlowMessages:
    """Reads the messages of one flow. default_bytes: the size of a message without a word about it, of each end."""

    reader: Reader
    default_bytes: Mapping[str, int]
    largest_bytes: Mapping[str, int]

    def add(self, flow: Flow) -> Flow:
        """The flow with its messages; mistakes are collected."""
        reader = self.reader
        answers = reader.item.get("reverse")
        described = self._forward(flow)
        if described is None:
            return flow
        size = described.message_bytes
        if not FLOW_KINDS[flow.protocol].connected:
            described = self._datagrams(flow, described)
        if size is not None and reader.has("message_size") and size != flow.message_bytes:
            reader.problem("messages", "message_size says the size already: leave it or sizes out")
        late = reader.whole("late")
        ends_by_itself = described.messages is not None and described.messages.times == "file"
        ends_by_itself &= not reader.has("stop") and not reader.has("bytes")
        if answers is None and described.messages is not None and described.messages.times == "think":
            reader.problem("messages", 'think needs answers: reverse = { think = "5 ms", sizes = "2 kB" }')
        reverse = None if answers is None else self._reverse(flow, described)
        for key in _OF_WHAT_IS_SENT:
            item = reader.item.get("receiver", key)
            if item is not None and answers is None:
                reader.problems.add(
                    item, f"a receiver sends no messages without reverse; for example reverse = {EXAMPLE}"
                )
        if ends_by_itself and (reverse is None or reverse.total_bytes is not None):
            assert described.messages is not None
            total = sum(row[1] for row in described.messages.rows)
            flow = msgspec.structs.replace(flow, total_bytes=total, stop_ns=None)
        return msgspec.structs.replace(
            flow,
            message_bytes=flow.message_bytes if size is None else size,
            sender_options={**flow.sender_options, **described.options},
            messages=msgspec.UNSET if described.messages is None else described.messages,
            reverse=msgspec.UNSET if reverse is None else reverse,
            late_ns=msgspec.UNSET if late is None else late,
        )

    def _datagrams(self, flow: Flow, described: Described) -> Described:
        """What holds for the messages of UDP, of which each is a datagram."""
        reader, largest = self.reader, self.largest_bytes["sender"]
        size = described.message_bytes or flow.message_bytes
        burst = [int(each) for each in str(described.options.get("burst_bytes", size)).split(",")]
        if reader.has("reverse"):
            reader.problem("reverse", "UDP has no connection for both ends; write a second flow, from the receiver")
        if described.messages is None and not described.options:
            reader.problem("protocol", f"nothing holds UDP back: say when it sends; for example messages = {EXAMPLE}")
        if not min(burst) >= LEAST_DATAGRAM_BYTES or max(burst) > largest:
            said = f"a datagram has {LEAST_DATAGRAM_BYTES} B (its number) to {largest} B (one packet of the path)"
            reader.problem("messages" if reader.has("messages") else "message_size", said)
        messages = described.messages
        if messages is not None and any(row[1] < LEAST_DATAGRAM_BYTES for row in messages.rows):
            reader.problem("messages", f"a datagram has {LEAST_DATAGRAM_BYTES} B or more: its number")
        if messages is None:
            return described
        return replace(described, messages=msgspec.structs.replace(messages, least_bytes=LEAST_DATAGRAM_BYTES))

    def _forward(self, flow: Flow) -> Described | None:
        reader, sends = self.reader, self.reader.item.get("messages")
        size = flow.message_bytes
        schedule = read_schedule(reader.item.get("sender"), size, reader.problems)
        if sends is None:
            return Described(None, schedule, None)
        streams = int(flow.sender_options.get("streams", 1))
        described = read_messages(sends, size, self.largest_bytes["sender"], streams, reader.problems, MESSAGES)
        if described is None:
            return None
        if (key := scheduled_already(reader.item.get("sender"))) and (described.options or described.messages):
            reader.problem("messages", f"sender.{key} says when messages are due already; leave one of the two out")
        answers = reader.item.get("reverse")
        if answers is not None and answers.get("think") is not None and described.options:
            described = _one_by_one(described, size, self.largest_bytes["sender"], streams)
        self._check(flow, described.messages, "messages", flow.sender_options)
        if not described.options and described.messages is None:
            return Described(described.message_bytes, schedule, None)
        return described

    def _reverse(self, flow: Flow, forward: Described) -> Reverse | None:
        reader, answers = self.reader, self.reader.item.get("reverse")
        assert answers is not None
        table = Reader(answers, REVERSE, reader.problems)
        if flow.sender_options.get("bare"):
            reader.problem("reverse", "a bare sender takes no messages; leave bare out")
        streams = table.integer("streams") or 1
        if not FLOW_KINDS[flow.protocol].streams and table.has("streams"):
            table.problem("streams", "only sctp has streams; leave it out")
        size, largest = self.default_bytes["receiver"], self.largest_bytes["receiver"]
        described = read_messages(answers, size, largest, streams, reader.problems, REVERSE)
        total = table.whole("bytes")
        if described is None:
            return None
        messages = described.messages
        if messages is not None and messages.times == "think":
            timed = forward.messages is not None or bool(forward.options)
            if not timed:
                reader.problem("reverse", f"think is the time to an answer: what it answers is messages = {EXAMPLE}")
            if any(key in flow.sender_options for key in _PARTIAL):
                reader.problem(
                    "reverse", "a message that is given up has no answer: leave lifetime and max_retransmissions out"
                )
        elif forward.messages is not None and forward.messages.times == "think":
            reader.problem("reverse", 'the next request waits for an answer: reverse = { think = "5 ms" }')
        if messages is not None and messages.times == "file" and total is None and not reader.has("stop"):
            total = sum(row[1] for row in messages.rows)
        if total is None and reader.has("bytes") and not reader.has("stop"):
            reader.problem("reverse", "the flow ends by bytes, so this direction needs bytes too, or the flow a stop")
        self._check(flow, messages, "reverse", flow.receiver_options)
        options = dict(described.options)
        if table.has("streams"):
            options["reverse_streams"] = streams
        return Reverse(described.message_bytes or size, total, options, messages)

    def _check(self, flow: Flow, messages: Messages | None, key: str, options: Mapping[str, OptionValue]) -> None:
        item = self.reader.item.get(key)
        if messages is None or item is None:
            return
        if options.get("separate_sends"):
            self.reader.problem(
                key,
                "separate_sends is of messages of one size; leave it out: these are sent as they become due",
            )
        if flow.stop_ns is not None:
            check_count(messages, flow.stop_ns - flow.start_ns, flow.paths[0].base_rtt_ns, item, self.reader.problems)


def _one_by_one(described: Described, size: int, largest_bytes: int, streams: int) -> Described:
    """Messages of an interval as a list: their answers are told by their numbers."""
    sizes = str(described.options.get("burst_bytes", described.message_bytes or size)).split(",")
    gaps = Law("fixed", float(described.options["interval_ns"]))
    messages = Messages("gaps", Law("fixed", float(sizes[0])), largest_bytes, streams, gaps, len(sizes))
    return Described(described.message_bytes, {}, messages)
