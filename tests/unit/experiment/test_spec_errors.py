# ruff: noqa: E501 (rows of tables)
"""Every class of error in a spec: file, line, key, what is wrong, and a correct example; all of a file at once."""

from __future__ import annotations

import re

import pytest
from netwarp.experiment.options import LONGEST_LIST
from support.checkout import ROOT
from support.specs import BASE, line_of, only, plan_of, problems_of, replaced

FACTOR = '[factor.x]\nlevels = ["1 s", "2 s"]\n'


def test_a_list_is_as_long_as_the_apps_read_it() -> None:
    """64 was said here; they read 256, and a page has as many objects."""
    said = re.search(r"#define NUMBER_LIST_MAX (\d+)", (ROOT / "apps" / "common" / "options.h").read_text())
    assert said is not None and int(said[1]) == LONGEST_LIST
    text = replaced(
        'protocol = "tcp"',
        'protocol = "sctp"\nsender = { streams = 256, scheduler = "wfq", stream_values = [VALUES] }',
    )
    assert plan_of(text.replace("VALUES", ", ".join(["0"] * 256))).cells
    assert "a list of 1 to 256 whole numbers" in only(text.replace("VALUES", ", ".join(["0"] * 257)))


@pytest.mark.parametrize(
    ("old", "new", "key", "says", "example"),
    [
        # quantities
        ('rate = "1 Mbit/s"', "rate = 500", "link.p1.rate", "500 is a bare number", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "500"', "link.p1.rate", "'500' is a bare number: its unit", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "1 Mbps"', "link.p1.rate", "unknown unit 'Mbps'", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "-1 Mbit/s"', "link.p1.rate", "is negative", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "1 bit/s"', "link.p1.rate", "at least 1 kbit/s", '"500 kbit/s"'),
        ('rate = "1 Mbit/s"', 'rate = "1 s"', "link.p1.rate", "is a time, but a rate is wanted", '"500 kbit/s"'),
        ('queue = "50 packets"', 'queue = "64 ms"', "link.p1.queue", "is a time, but a number of packets or", '"50 packets"'),
        ('queue = "50 packets"', 'queue = "0 packets"', "link.p1.queue", "at least 1 packet;", '"50 packets"'),
        ('one_way_delay = "20 ms"', 'one_way_delay = "2 h"', "link.p1.one_way_delay", "at most 600 s", '"100 ms"'),
        ('one_way_delay = "20 ms"', 'loss = "2"', "link.p1.loss", "bare number", '"1 %"'),
        ('one_way_delay = "20 ms"', 'loss = "1"', "link.p1.loss", "bare number", '"1 %"'),
        ('one_way_delay = "20 ms"', 'loss = "0.01"', "link.p1.loss", "bare number", '"1 %"'),
        ('duration = "10 s"', 'duration = "0 s"', "duration", "at least 1 ms", '"100 s"'),
        # keys and names
        ('one_way_delay = "20 ms"', 'one_way_dely = "20 ms"', "link.p1.one_way_dely", "unknown key", '"one_way_delay"?'),
        ('duration = "10 s"', 'duration = "10 s"\nseeed = 1', "seeed", "unknown key", '"seed"?'),
        ("[node.b]", "[node.B]", "node.B", "is no name", "[node.a]"),
        ('name = "test"', 'name = "../x"', "name", "is no name", '"choi2009"'),
        ('name = "test"', 'name = ""', "name", "is no name", '"choi2009"'),
        ('name = "test"', 'name = "-x"', "name", "is no name", '"choi2009"'),
        # choices, types
        ('protocol = "tcp"', 'protocol = "dccp"', "flow.f.protocol", "is none of tcp, sctp, mptcp", '"sctp"'),
        ('protocol = "tcp"', 'protocol = "udp"', "flow.f.protocol", "nothing holds UDP back", "messages = {"),
        ('protocol = "tcp"', "protocol = true", "flow.f.protocol", "must be text", '"sctp"'),
        ('paths = ["p1"]', 'paths = "p1"', "flow.f.paths", "must be a list of texts", '["p1", "p2"]'),
        ('paths = ["p1"]', 'paths = ["p1"]\nport = 70000', "flow.f.port", "whole number from 1 to 65535", "5001"),
        ("[node.a]", "node.a = 3", "node.a", "must be a table", "kind"),
        ('name = "test"', 'name = 2009-01-01', "name", "a date is not a value of any key", '"10 s"'),
        # the network
        ('between = ["a", "b"]', 'between = ["a"]', "link.p1.between", "two different ends", '["a", "b"]'),
        ('between = ["a", "b"]', 'between = ["a", "a"]', "link.p1.between[1]", "twice", '["a", "b"]'),
        ('between = ["a", "b"]', 'between = ["a", "bb"]', "link.p1.between[1]", 'no node "bb"', '"b"?'),
        ('rate = "1 Mbit/s"\n', "", "link.p1.queue", "without a rate", '"10 Mbit/s"'),
        ('queue = "50 packets"\n', "", "link.p1.rate", "needs its queue", '"50 packets"'),
        ('queue = "50 packets"', 'queue = "50 packets"\nrtt = "40 ms"', "link.p1.rtt", "give one", "one_way_delay ="),
        ('one_way_delay = "20 ms"', 'rtt = "7 ns"', "link.p1.rtt", "even number of ns", '"200 ms"'),
        ('one_way_delay = "20 ms"', 'jitter = "1 ms"', "link.p1.jitter", "more than the one-way delay", "netem"),
        ('one_way_delay = "20 ms"', 'reorder = "1 %"', "link.p1.reorder", "needs a delay", '"10 ms"'),
        ('one_way_delay = "20 ms"', 'loss_correlation = "1 %"', "link.p1.loss_correlation", "without loss", '"1 %"'),
        ('one_way_delay = "20 ms"', 'burst_loss = { p = "1 %" }', "link.p1.burst_loss", "r is missing", "r ="),
        ('one_way_delay = "20 ms"', 'mtu = "67 B"', "link.p1.mtu", "at least 68 B", '"1500 B"'),
        ('one_way_delay = "20 ms"', 'mtu = "87 B"', "flow.f.paths", "tcp needs links with an MTU of 88 B", '"88 B"'),
        ('one_way_delay = "20 ms"', 'profile = "adsll"', "link.p1.profile", "there is no profile", '"adsl"?'),
        ('one_way_delay = "20 ms"', 'profile = "../../x"', "link.p1.profile", "is no name", '"adsl"'),
        ("[node.b]", '[node.b]\nsysctl = { "kernel.core_pattern" = "x" }', 'node.b.sysctl."kernel.core_pattern"',
         "no sysctl below net", "tcp_sack"),
        ("[node.b]", '[node.b]\nsysctl = { "net.ipv4./../x" = "1" }', 'node.b.sysctl."net.ipv4./../x"',
         "no sysctl below net", "tcp_sack"),
        ("[node.b]", '[node.b]\nsysctl = { "net.ipv4.x" = "a\\nb" }', 'node.b.sysctl."net.ipv4.x"',
         "must be the text", "tcp_sack"),
        # flows
        ('from = "a"\n', "", "flow.f", "from is missing", '"a"'),
        ('to = "b"', 'to = "c"', "flow.f.to", 'there is no node "c"', "a, b"),
        ('paths = ["p1"]', 'paths = ["p2"]', "flow.f.paths[0]", 'there is no link "p2"', "there is: p1"),
        ('paths = ["p1"]', "paths = []", "flow.f.paths", "at least one path", '["p1", "p2"]'),
        ('paths = ["p1"]', 'paths = ["p1"]\nstop = "11 s"', "flow.f.stop", "after the end of the cell", "duration"),
        ('paths = ["p1"]', 'paths = ["p1"]\nstart = "10 s"', "flow.f", "not after the start", '"0.5 s"'),
        ('paths = ["p1"]', 'paths = ["p1"]\nsender = { mss = "1461 B" }', "flow.f.sender.mss", "exceed the MTU", '"1460 B"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { rto_min = "2 s", rto_max = "1 s" }', "flow.f.sender.rto_min", 'above rto_max', 'rto_min of at most'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { rto_min = "1500 us" }', "flow.f.sender.rto_min", 'whole milliseconds', '"1 s"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { rto_min = 200 }', "flow.f.sender.rto_min", 'bare number', '"1 s"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { pf_retrans = 3, ps_retrans = 2 }', "flow.f.sender.pf_retrans", 'above ps_retrans', 'pf_retrans of at most'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { path_max_retrans = 0 }', "flow.f.sender.path_max_retrans", 'from 1 to 65535', '5'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { sack_delay = "1 s" }', "flow.f.sender.sack_delay", 'at most 500 ms', '"200 ms"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { sack_delay = "50 ms", sack_frequency = 1 }', "flow.f.sender.sack_delay", 'no SACK is put off', 'leave one'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { lifetime = "1 s", max_retransmissions = 1 }', "flow.f.sender.lifetime", 'one such limit', 'leave this'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { scheduler = "prio", stream_values = [1, 2] }', "flow.f.sender.stream_values", 'more values than there are streams', '(1)'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { streams = 2, scheduler = "fcfs", stream_values = [1, 2] }', "flow.f.sender.stream_values", 'has no values of streams', 'scheduler = "prio"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { streams = 2, stream_values = [1, 2] }', "flow.f.sender.stream_values", 'has no values of streams', 'scheduler = "prio"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { stream_values = 1 }', "flow.f.sender.stream_values", 'a list of 1 to 256 whole numbers', '[0, 1]'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { path_mtu = "1282 B" }', "flow.f.sender.path_mtu", 'multiples of 4 B', '"1280 B"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { path_mtu = "9000 B" }', "flow.f.sender.path_mtu", 'above the MTU', '"1500 B"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { mss = "956 B", path_mtu = "1000 B" }', "flow.f.sender.mss", 'exceed the MTU of 1000 B', '"952 B"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nreceiver = { mss = "956 B", path_mtu = "1000 B" }', "flow.f.receiver.mss", 'exceed the MTU of 1000 B', '"952 B"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { mss = "901 B" }', "flow.f.sender.mss", 'multiples of 4 B', '"900 B"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { streams = 2 }\nreceiver = { streams = 1 }', "flow.f.receiver.streams", 'the sender has 2 streams', 'leave it out'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { heartbeat_interval = "never" }', "flow.f.sender.heartbeat_interval", 'not a number with its unit', '"5 s"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { pacing_rate = "1 Mbit/s" }', "flow.f.sender.pacing_rate", 'no option of a sctp sender', 'it is one of a tcp sender'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { scheduler = "fifo" }', "flow.f.sender.scheduler", 'none of fcfs', '"rr"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { interval = "1 s", message_rate = "1 Mbit/s" }', "flow.f.sender.message_rate", 'interval says', 'leave one'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { burst = { messages = 2 } }', "flow.f.sender.burst", 'every is missing', 'every = "1 s"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { burst = { every = "1 s" } }', "flow.f.sender.burst", 'either messages', 'messages = 3'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { burst = { messages = 2, every = "1 s", size = "9 B" } }', "flow.f.sender.burst.size", 'unknown key', '"sizes"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { burst = { sizes = ["300 kB"], every = "1 s" } }', "flow.f.sender.burst", 'must fit the send buffer', '212992 B'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { burst = { sizes = [], every = "1 s" } }', "flow.f.sender.burst.sizes", 'a list of 1 to 256 sizes', '"120 B"'),
        ('protocol = "tcp"', 'protocol = "sctp"\nsender = { interval = "1 ns" }', "flow.f.sender.interval", 'at least 1 us', '"1 s"'),
        ('paths = ["p1"]', 'paths = ["p1"]\nsender = { rcvbuff = "1 KiB" }', "flow.f.sender.rcvbuff",
         "unknown option", '"rcvbuf"?'),
        ('paths = ["p1"]', 'paths = ["p1"]\nsender = { window_clamp = "4 KiB" }', "flow.f.sender.window_clamp",
         "no option of a tcp sender", "it is one of a tcp receiver"),
        ('paths = ["p1"]', 'paths = ["p1"]\nreceiver = { rcvbuf = 65536 }', "flow.f.receiver.rcvbuf",
         "bare number", '"65536 B"'),
        ('paths = ["p1"]', 'paths = ["p1"]\nreceiver = { window_clamp = "131073 B" }', "flow.f.receiver.window_clamp",
         "steps of 4 B", '"131072 B"'),
        ('paths = ["p1"]', 'paths = ["p1"]\nswitch_primary = [{ at = "1 s", path = "p1" }]', "flow.f.switch_primary",
         "only sctp", '"sctp"'),
        # captures, factors, experiments
        ('duration = "10 s"', 'duration = "10 s"\ncaptures = "none"', "captures", "must be", '"hosts"'),
        ('duration = "10 s"', 'duration = "10 s"\ncaptures = ["a.p2"]', "captures[0]", "no interface", '"a.p1"?'),
        ('duration = "10 s"', 'duration = "{time}"', "duration", '"{time}" is neither a factor nor a parameter', "none"),
        ('duration = "10 s"', 'duration = "10 s"\nexpected = "../e.toml"', "expected", "beside the spec", '"claims.toml"'),
        ('duration = "10 s"', 'duration = "10 s"\nexpected = "e.toml"', "expected", "there is no file", "leave the key out"),
        ('duration = "10 s"', 'duration = "10 s"\nshape = { kind = "ring" }', "shape.kind", "is none of", '"two-path"'),
        ('duration = "10 s"', 'duration = "10 s"\nshape = { hops = 3 }', "shape", "kind is missing", '"two-path"'),
        ('duration = "10 s"', 'duration = "10 s"\nparameter = { x = 3 }', "parameter.x", "is text, with its unit", '"1 Mbit/s"'),
        ('duration = "10 s"', 'duration = "10 s"\nparameter = { x = "{y}", y = "{x}" }', "parameter.x", "circle", "parameters"),
    ],
)  # fmt: skip
def test_one_error(old: str, new: str, key: str, says: str, example: str) -> None:
    text = replaced(old, new)
    found = only(text)
    place, _, rest = found.partition(": ")
    said_key, _, message = rest.partition(": ")
    assert said_key == key
    assert says in message
    assert example in message
    file, _, line = place.rpartition(":")
    assert file == "nowhere/spec.toml"
    written = text.splitlines()[int(line) - 1]
    last = key.rsplit(".", 1)[-1].split("[")[0].strip('"')
    assert last in written or (key == "flow.f" and "[flow.f]" in written), f"{found}\npoints at: {written}"


@pytest.mark.parametrize(
    ("more", "piece", "says"),
    [
        ('[event.e]\naction = "cut"\nlink = "p9"\nat = "1 s"\n', 'link = "p9"', 'no link "p9"; there is: p1'),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "11 s"\n', 'at = "11 s"', "outside the cell"),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "9 s"\nfor = "2 s"\n', 'for = "2 s"', "ends after the cell"),
        ('[event.e]\naction = "down"\nlink = "p1"\nat = "1 s"\n', 'action = "down"', "is none of cut, blackhole, link"),
        ('[event.e]\naction = "link"\nlink = "p1"\nat = "1 s"\nend = "c"\n', 'end = "c"', 'end = { hop = "b" }'),
        ('[event.e]\naction = "link"\nlink = "p1"\nat = "1 s"\n', "[event.e]", 'end is missing; it has: "a", "b", { hop = "a" }'),
        ('[event.e]\naction = "cut"\nlink = "p1"\n', "[event.e]", 'at is missing; for example at = "50 s"'),
        ('[event.e]\naction = "change"\nlink = "p1"\nat = "1 s"\n', 'action = "change"', "changes nothing"),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nloss = "1 %"\n', "loss = ", 'action = "change"'),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\ndirections = ["up"]\n', "directions", "none of forward"),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nphase = { uniform = ["1 s", "0 s"] }\n', "phase", 'for example ["0 s", "1 s"]'),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nphase = { normal = ["0 s", "1 s"] }\n', "phase", 'unknown key "normal", did you mean "uniform"?'),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nfor = "1 s"\nfor_phase = { uniform = ["1 s"] }\n', "for_phase", 'for example ["0 s", "1 s"]'),
        ('[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nfor_phase = { uniform = ["0 s", "1 s"] }\n', "for_phase", 'for = "8 s"'),
        (
            '[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nfor = "8 s"\nfor_phase = { uniform = ["0 s", "2 s"] }\n',
            'for = "8 s"',
            "ends after the cell",
        ),
        ('[figure.f]\nseries = ["cwnd"]\n', "series", 'unknown series "cwnd"; there is: cwnd_bytes'),
        ("[figure.f]\nseries = []\n", "series", 'is empty; for example ["cwnd_bytes"]'),
        ('[figure.f]\nseries = ["cwnd_bytes"]\nmetric = "packets"\n', "metric = ", "a figure over time has"),
        ('[figure.f]\nseries = ["cwnd_bytes"]\nwindow = ["1 s"]\n', "window", 'for example ["45 s", "75 s"]'),
        ('[figure.f]\nseries = ["cwnd_bytes"]\nwindow = ["2 s", "1 s"]\n', "window", "ends before it begins"),
        ('[figure.f]\nseries = ["cwnd_bytes"]\nwindow = ["1", "2 s"]\n', "window", 'for example "45 s"'),
        ('[figure.f]\nwindow = ["1 s", "2 s"]\nmetric = "packets"\nx = "x"\n[factor.x]\nlevels = ["1"]\n', "window", 'for example series'),
        ('[table.t]\naround = ["faults"]\n', "around", '"faults" is none of fault, first_retransmission'),
        ("[table.t]\naround = []\n", "around", 'is empty; for example ["fault", "repair"]'),
        ('[table.t]\naround = ["fault"]\nrows = ["x"]\n', "rows", "a table of events has"),
        ('[table.t]\naround = ["fault"]\npackets = 11\n', "packets = 11", "from 1 to 10"),
        ('[table.t]\nmetric = "packets"\npackets = 3\n', "packets = 3", "belongs to a table of events"),
        (FACTOR + '[table.t]\naround = ["fault"]\nwhere = { x = "-" }\n', "where = ", "no cell fits its `where`"),
        (FACTOR + '[experiment.e]\nfactors = ["x"]\nrepetitions = 0\n', "repetitions = 0", "from 1 to 100000"),
        (FACTOR + '[experiment.e]\nfactors = ["x"]\nrepeat = "none"\n', "repeat", 'is none of all, random; for example "random"'),
        (
            '[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nfor = "3 s"\n'
            '[event.g]\naction = "blackhole"\nlink = "p1"\nat = "2 s"\n',
            'at = "2 s"',
            'overlaps event "e"',
        ),
        ('[factor.x]\nlevels = ["1 s", "1000 ms"]\n', "levels", '"1 s" and "1000 ms" mean the same'),
        ('[factor.x]\nlevels = [1, 2]\n', "levels", "must be a list of texts"),
        ("[factor.x]\nlevels = []\n", "levels", "is empty"),
        ("[factor.x]\n", "[factor.x]", "its levels are missing"),
        ('[factor.x]\nlevels = ["-"]\n', "levels", "cannot name a level"),
        ('[factor.duration]\nlevels = ["1 s"]\n', "[factor.duration]", "no name for a factor"),
        ('[factor.value]\nlevels = ["1 s"]\n', "[factor.value]", "is a column of the tables"),
        ('[factor.outage_s]\nlevels = ["1 s"]\n', "[factor.outage_s]", "is a metric of netwarp"),
        ('[factor.x]\nlevels = ["1 s"]\n[factor.x.level."2 s"]\n', '[factor.x.level."2 s"]', '"2 s" is none of its levels'),
        ('[factor.x]\nlevels = ["off"]\n[factor.x.off]\n', "factor.x.off", "what a level changes is [factor.x.level.off]"),
        (FACTOR + '[factor.x.level."1 s"]\nlink.p1.rat = "1 kbit/s"\n', "link.p1.rat ", 'unknown key "rat", did you mean "rate"?'),
        (FACTOR + '[factor.x.level."1 s"]\nlink.p1.rate = "1"\n', "link.p1.rate", "bare number"),
        (FACTOR + 'only = { y = ["1"] }\n', "only", 'unknown factor "y"'),
        (FACTOR + '[factor.y]\nlevels = ["1"]\nonly = { x = ["3 s"] }\n', "only", 'no level "3 s"'),
        (FACTOR + '[experiment.e]\nfactors = ["z"]\n', 'factors = ["z"]', 'unknown factor "z"'),
        (FACTOR + '[experiment.e]\nfactors = ["x"]\nfixed = { x = "1 s" }\n', "fixed", "both varied and fixed"),
        (
            FACTOR + '[factor.y]\nlevels = ["1"]\n[experiment.e]\nfactors = ["x", "y"]\nzip = [["x", "y"]]\n',
            "zip",
            "equally many levels; here: x 2, y 1",
        ),
        (FACTOR + 'title = 3\n', "title = 3", "must be text"),
        ('[link.p2]\nlike = "p3"\n', 'like = "p3"', 'there is no "p3" to be like'),
        ('[link.p2]\nlike = "p2"\n', "like", "circle of `like`"),
        ('[link.lo]\nlike = "p1"\n', "[link.lo]", "the kernel has its own use for it"),
        ('[link.a-name-too-long-for-it]\nlike = "p1"\n', "[link.a-", "15 characters"),
        ('[flow.g]\nlike = "f"\nport = 5001\n', "port", 'flow "f" has this port'),
        ('[flow.g]\nlike = "f"\nonly = { y = "1" }\n', "only", 'unknown factor "y"'),
        ('[metric.m]\nunit = "B"\nvalue = "payload_byte * 2"\n', "value", 'unknown name "payload_byte", did you mean "payload_bytes"?'),
        ('[metric.m]\nunit = "B"\nvalue = "__import__(\'os\')"\n', "value", "only numbers, names"),
        ('[metric.m]\nunit = "B"\npublished = "paper"\n', "published", 'published.csv has no number of "paper"'),
        ('[metric.m]\nunit = "B"\nvalue = "1"\npublished = "paper"\n', "published", "two definitions"),
        ('[metric.m]\nunit = "B"\nvalue = "min + 1"\n', "value", 'unknown name "min"'),
        ('[parameter]\nsize = "9 XB"\n[metric.m]\nunit = "B"\nvalue = "{size} * 2"\n', "value", 'the parameter size is "9 XB", which is no quantity'),
        ('[parameter]\npayload = "1 kB"\n[metric.m]\nunit = "B"\nvalue = "payload_bytes * 2"\n', "value", "write flow.payload_bytes or {payload}"),
        ('[parameter]\nrate = "1 Mbit/s"\n[metric.m]\nunit = "s"\nvalue = "1 / rate_bit_s"\n', "value", "write flow.rate_bit_s or {rate}"),
        ('[parameter]\nsize = "9 kB"\n[metric.m]\nunit = "B"\nvalue = "size_bytes"\n', "value", "the parameter is written {size}"),
        ('[parameter]\nsize = "9 kB"\n[metric.m]\nunit = "B"\nvalue = "{sise}"\n', "value", '"{sise}" is no parameter, did you mean "size"?'),
        ('[parameter]\nsize = "9 kB"\n[metric.m]\nunit = "B"\nvalue = "2{size}"\n', "value", "is no expression"),
        (FACTOR + '[metric.m]\nunit = "B"\nvalue = "{x}"\n', "value", 'it is a factor; let a parameter be "{x}"'),
        ("[metric.m]\nunit = 's'\nvalue = 'at(\"DTA 7\")'\n", "value", '"DTA 7" names no packet; for example at("DATA 7 again")'),
        ("[metric.m]\nunit = 's'\nvalue = 'at(\"< ACK 3 of DATA 7\")'\n", "value", '"< ACK of DATA 7"'),
        ("[metric.m]\nunit = 's'\nvalue = 'at(\"ACK 3 again\")'\n", "value", 'only a packet of the flow\'s data is sent again'),
        ("[metric.m]\nunit = 's'\nvalue = 'count(\"DATA 7\")'\n", "value", "what is counted is a kind without a number"),
        ("[metric.m]\nunit = 's'\nvalue = 'at(packets)'\n", "value", "at, count"),
        ("[metric.m]\nunit = 's'\nvalue = '\"DATA\"'\n", "value", "only numbers, names"),
        ('[metric.m]\nunit = "B"\nvalue = "flow.paylod_bytes"\n', "value", 'unknown name "flow.paylod_bytes", did you mean "payload_bytes"?'),
        ('[metric.m]\nunit = "B"\nvalue = "link.packets"\n', "value", "only numbers, names"),
        ('[metric.rate_bit_s]\nunit = "bit/s"\nvalue = "packets"\n', "[metric.rate_bit_s]", "another name"),
        ('[metric.m]\nvalue = "packets"\n', "[metric.m]", "its unit is missing"),
        ('[metric.packets]\nunit = "B"\nvalue = "packets"\n', "[metric.packets]", "another name"),
        ('[table.t]\nmetric = "goodput"\n', "metric", 'unknown metric "goodput"'),
        ('[table.t]\nmetric = "failover_time_s"\n', "metric", 'called "first_useful_arrival_other_path_s" now'),
        ('[table.cells]\nmetric = "packets"\n', "[table.cells]", "netwarp writes itself"),
        ('[table.t]\nmetric = "packets"\nrows = ["x"]\n', "rows", 'unknown factor "x"'),
        (FACTOR + '[table.t]\nmetric = "packets"\n', "[table.t]", 'choose, for example where = { x = "1 s" }, or columns = ["x"]'),
        (FACTOR + '[table.t]\nmetric = "packets"\nrows = ["x"]\nwhere = { x = "-" }\n', "where = ", "no cell fits"),
        (
            FACTOR + '[table.t]\nmetric = "packets"\nrows = ["x"]\nexperiment = "mian"\n',
            "experiment = ",
            'there is no experiment "mian", did you mean "main"?',
        ),
        (
            FACTOR + '[figure.t]\nseries = ["cwnd_bytes"]\nexperiment = []\n',
            "experiment = ",
            "is empty; for example",
        ),
        ('[factor.q]\nlevels = ["5 packetz"]\nsets = "link.p1.queue"\n', "levels = ", "did you mean \"packet\"?"),
        ('[factor.q]\nlevels = ["5 packets"]\nsets = "link.p9.queue"\n', "sets = ", 'there is no link "p9"; there is: p1'),
        ('[factor.q]\nlevels = ["5 packets"]\nsets = ["link.p1.quue"]\n', "levels = ", 'did you mean "queue"?'),
        ('[factor.q]\nlevels = ["5 packets"]\nsets = "parameter.q"\n', "sets = ", 'unknown parameter "q"; there are none'),
        ('[factor.q]\nlevels = ["5 packets"]\nsets = "name"\n', "sets = ", "is no part of a cell; for example"),
        (
            FACTOR + '[node.c]\nonly = { experiment = "main" }\n',
            "only = ",
            'unknown factor "experiment"',
        ),
        (FACTOR + '[table.t]\nmetric = "packets"\nrows = ["x"]\nflow = "g"\n', "flow = \"g\"", 'there is no flow "g"'),
        (FACTOR + '[figure.t]\nmetric = "packets"\nx = "z"\n', 'x = "z"', "x must be a factor"),
        (FACTOR + '[figure.t]\nmetric = "packets"\nx = "x"\nlines = ["x"]\n', "[figure.t]", "stands on two axes"),
        (FACTOR + '[figure.t]\nkind = "pie"\nmetric = "packets"\nx = "x"\n', "kind", "line, heatmap, cdf, box"),
        (FACTOR + '[figure.t]\nkind = "heatmap"\nmetric = "packets"\nx = "x"\n', "[figure.t]", 'kind "heatmap" needs y = a factor; there is: x'),
        (FACTOR + '[figure.t]\nkind = "cdf"\nmetric = "packets"\nx = "x"\n', 'x = "x"', "has no x, only lines, over"),
        (FACTOR + '[figure.t]\nkind = "cdf"\nmetric = "packets"\n', "[figure.t]", "would mix 2 cells"),
        (FACTOR + '[figure.t]\nkind = "box"\nmetric = "packets"\nx = "x"\nlog = true\n', "log", "of kind box has no log"),
    ],
)  # fmt: skip
def test_one_error_in_what_is_added(more: str, piece: str, says: str) -> None:
    text = BASE + more
    found = only(text)
    assert says in found
    assert found.startswith(f"nowhere/spec.toml:{line_of(text, piece if piece in more else more)}: "), found
    assert line_of(text, piece) > BASE.count("\n"), "the piece must be in what is added"


def test_names_that_are_not_there_are_said_beside_mistakes_of_the_text() -> None:
    """The plan would find them, but a spec with other mistakes never gets there."""
    text = replaced('to = "b"', 'to = "z"', replaced('paths = ["p1"]', 'paths = ["p9"]\nstart = "1"'))
    text += '[event.x]\naction = "cut"\nlink = "p7"\nat = "5 s"\n'
    found = problems_of(text)
    assert len(found) == 4, found
    for piece in ('there is no node "z"', 'there is no link "p9"', 'there is no link "p7"', "flow.f.start"):
        assert any(piece in line for line in found), piece


def test_names_that_a_shape_or_a_level_brings_are_there() -> None:
    text = replaced("[node.a]\n[node.b]\n", "nonsense = 1\n")
    text = text.replace("[link.p1]", '[link.p1]\nloss = "1 %"') + (
        '[factor.net]\nlevels = ["two"]\n[factor.net.level.two]\nshape = { kind = "two-path" }\n'
    )
    (found,) = problems_of(text)
    assert "nonsense" in found
