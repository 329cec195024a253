# ruff: noqa: E501 (rows of tables)
"""A single cell: links, flows and the rest of the spec; test_plan_timeline.py has its events."""

from __future__ import annotations

import pytest
from netwarp.experiment import list_profiles, load_spec
from netwarp.plan import make_plan
from support.checkout import ROOT
from support.specs import BASE, SCTP, TWO, cell_of, line_of, plan_of, problems_of, replaced, shape

MS, S = 10**6, 10**9
X = '[factor.x]\nlevels = ["1 s", "2 s", "3 s"]\n'


def test_the_base_cell_has_no_default_left() -> None:
    cell = cell_of(BASE)
    assert [node.sysctls["net.ipv6.conf.all.disable_ipv6"] for node in cell.nodes] == ["1", "1"]
    assert all("net.sctp.pf_expose" not in node.sysctls for node in cell.nodes)
    (link,) = cell.links
    assert link.forward == link.backward == shape()
    assert (link.a, link.b, link.mtu_bytes, link.forward.layer) == ("a", "b", 1500, "ip")
    (flow,) = cell.flows
    assert (flow.start_ns, flow.stop_ns, flow.total_bytes, flow.message_bytes, flow.port) == (
        0, 10 * S, None, 1460, 5001,
    )  # fmt: skip
    (path,) = flow.paths
    assert (path.name, path.bottleneck_bit_s, path.base_rtt_ns) == ("p1", 10**6, 40 * MS)
    assert [(c.node, c.link) for c in cell.captures] == [("a", "p1"), ("b", "p1")]
    assert not cell.random
    assert cell.seed == 1


def test_buffers_of_tcp_are_those_of_a_machine_of_today_unless_the_spec_says_others() -> None:
    names = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")

    def buffers(text: str) -> list[list[str | None]]:
        return [[node.sysctls.get(name) for name in names] for node in cell_of(text).nodes]

    today = ["4096 131072 6291456", "4096 16384 4194304"]
    assert buffers(BASE) == buffers(replaced('"tcp"', '"mptcp"')) == [today, today]
    assert buffers(replaced('"tcp"', '"sctp"')) == [[None, None]] * 2, "it has no such buffers"
    own = replaced("[node.a]", '[node.a]\nsysctl = { "net.ipv4.tcp_rmem" = "4096 65536 65536" }')
    assert buffers(own) == [["4096 65536 65536", today[1]], today]
    stacked = replaced("[node.b]", '[node.b]\nstack = "linux-2.6.32-like"')
    assert buffers(stacked) == [today, ["4096 87380 4194304", "4096 16384 4194304"]]


# -- links


@pytest.mark.parametrize(
    ("link", "forward", "backward"),
    [
        ('rtt = "40 ms"', {}, {}),
        ('one_way_delay = "20 ms"\nforward = { one_way_delay = "5 ms" }', {"one_way_delay_ns": 5 * MS}, {}),
        (
            'one_way_delay = "20 ms"\nbackward = { rate = "9 kbit/s", queue = "3 packets", loss = "1 %" }',
            {},
            {"rate_bit_s": 9000, "queue_packets": 3, "loss_ratio": 0.01},
        ),
        # 1 bdp = 1 Mbit/s x 40 ms = 5000 B = 4 packets of 1500 B, the last one begun
        ('one_way_delay = "20 ms"\nqueue = "1 bdp"', {"queue_packets": 4}, {"queue_packets": 4}),
        ('one_way_delay = "20 ms"\nqueue = "0.1 bdp"', {"queue_packets": 1}, {"queue_packets": 1}),
        ('one_way_delay = "20 ms"\nlayer = "ethernet"', {"layer": "ethernet"}, {"layer": "ethernet"}),
    ],
)
def test_link_directions(link: str, forward: dict[str, object], backward: dict[str, object]) -> None:
    text = replaced('one_way_delay = "20 ms"', link)
    if "queue" in link.splitlines()[-1] and "forward" not in link and "backward" not in link:
        text = replaced('queue = "50 packets"\n', "", text)
    built = cell_of(text).links[0]
    assert built.forward == shape(**forward)
    assert built.backward == shape(**backward)


def test_profiles_lie_under_what_the_link_says() -> None:
    text = replaced(
        'rate = "1 Mbit/s"\nqueue = "50 packets"\none_way_delay = "20 ms"\n', 'profile = "adsl"\nrtt = "8 ms"\n'
    )
    link = cell_of(text).links[0]
    assert (link.forward.rate_bit_s, link.backward.rate_bit_s) == (10**6, 16 * 10**6)
    assert link.forward.one_way_delay_ns == link.backward.one_way_delay_ns == 4 * MS
    # a rate for both directions, said by the link, wins over the profile's for one
    link = cell_of(text.replace('rtt = "8 ms"', 'rate = "3 Mbit/s"')).links[0]
    assert link.forward.rate_bit_s == link.backward.rate_bit_s == 3 * 10**6
    assert link.forward.one_way_delay_ns == 10 * MS


RANDOM = {
    "wifi-80211n-good", "wifi-80211n-poor", "mobile-3g", "mobile-lte", "mobile-5g", "leo-handover", "cdma-9600",
    "transcontinental",
}  # fmt: skip
"""Profiles in which something is drawn."""


def test_every_profile_makes_a_cell() -> None:
    names = list_profiles()
    assert "adsl" in names
    for name in names:
        text = replaced('rate = "1 Mbit/s"\nqueue = "50 packets"\none_way_delay = "20 ms"\n', f'profile = "{name}"\n')
        assert cell_of(text).random == (name in RANDOM)


def test_a_patch_replaces_what_says_the_same_otherwise() -> None:
    text = (
        BASE
        + X
        + '[factor.x.level."1 s"]\nlink.p1.rtt = "2 ms"\n[factor.x.level."2 s"]\nlink.p1.forward = { one_way_delay = "7 ms" }\n'
    )
    delays = [
        (cell.links[0].forward.one_way_delay_ns, cell.links[0].backward.one_way_delay_ns)
        for cell in plan_of(text).cells
    ]
    assert delays == [(MS, MS), (7 * MS, 20 * MS), (20 * MS, 20 * MS)]


def test_defaults_and_like() -> None:
    text = (
        TWO
        + '[default.link]\nmtu = "1400 B"\nloss = "1 %"\n[link.p3]\nlike = "p2"\nloss = "2 %"\nbetween = ["a", "b"]\n'
    )
    links = {link.name: link for link in cell_of(text).links}
    assert [links[name].mtu_bytes for name in ("p1", "p2", "p3")] == [1400, 1400, 1400]
    assert [links[name].forward.loss_ratio for name in ("p1", "p2", "p3")] == [0.01, 0.01, 0.02]
    assert links["p3"].forward.rate_bit_s == 10**6


@pytest.mark.parametrize(
    ("shape_text", "nodes", "links"),
    [
        ('{ kind = "two-path" }', "a b", "p1 p2"),
        ('{ kind = "chain", hops = 3 }', "a r1 r2 b", "h1 h2 h3"),
        ('{ kind = "chain", hops = 1 }', "a b", "h1"),
        ('{ kind = "dumbbell", pairs = 2 }', "r1 r2 a1 b1 a2 b2", "bottleneck a1 b1 a2 b2"),
    ],
)
def test_shapes(shape_text: str, nodes: str, links: str) -> None:
    first, last = ("a1", "b1") if "dumbbell" in shape_text else ("a", "b")
    path = {"t": "p1", "c": "h1", "d": "a1"}[shape_text.split('"')[1][0]]
    text = (
        f'format = 1\nname = "s"\nduration = "1 s"\nshape = {shape_text}\n'
        '[default.link]\none_way_delay = "1 ms"\n'
        f'[flow.f]\nfrom = "{first}"\nto = "{last}"\nprotocol = "tcp"\nbytes = "1 MB"\npaths = ["{path}"]\n'
    )
    cell = cell_of(text)
    assert [node.name for node in cell.nodes] == nodes.split()
    assert [link.name for link in cell.links] == links.split()
    hops = {"two-path": 1, "dumbbell": 3}.get(shape_text.split('"')[1]) or len(links.split())
    assert cell.flows[0].paths[0].base_rtt_ns == 2 * hops * MS


def test_a_shape_is_overlaid_by_what_the_spec_says() -> None:
    text = (
        'format = 1\nname = "s"\nduration = "1 s"\nshape = { kind = "dumbbell", pairs = 1 }\n'
        '[link.bottleneck]\nrate = "1 Mbit/s"\nqueue = "1 bdp"\none_way_delay = "50 ms"\n[link.a1]\none_way_delay = "5 ms"\n'
        '[flow.f]\nfrom = "a1"\nto = "b1"\nprotocol = "tcp"\npaths = [{ sender = "a1", receiver = "b1" }]\nreceiver = { window_clamp = "2 bdp" }\n'
    )
    cell = cell_of(text)
    (path,) = cell.flows[0].paths
    assert (path.name, path.sender_link, path.receiver_link) == ("a1-b1", "a1", "b1")
    assert (path.bottleneck_bit_s, path.base_rtt_ns) == (10**6, 110 * MS)
    # 1 Mbit/s x 110 ms = 13,750 B: ten packets of 1500 B for the queue, 27,500 B for the window
    assert cell.links[0].forward.queue_packets == 10
    assert cell.flows[0].receiver_options == {"window_clamp_bytes": 27_500}


# -- flows


def test_flow_times_sizes_and_ports() -> None:
    text = (
        replaced('paths = ["p1"]', 'paths = ["p1"]\nstart = "1 s"\nbytes = "1 MB"', SCTP)
        + '[flow.g]\nlike = "f"\nstop = "5 s"\n'
    )
    one, other = cell_of(text).flows
    assert (one.start_ns, one.stop_ns, one.total_bytes, one.message_bytes, one.port) == (S, None, 10**6, 1452, 5001)
    assert (other.stop_ns, other.total_bytes, other.port) == (5 * S, 10**6, 5002)


@pytest.mark.parametrize(
    ("options", "cell_options"),
    [
        ('rcvbuf = "64 KiB", nodelay = true', {"rcvbuf_bytes": 65536, "nodelay": True}),
        ('sndbuf = "1 bdp"', {"sndbuf_bytes": 5000}),
        ('streams = 4, mss = "1452 B"', {"mss_bytes": 1452, "streams": 4}),
        ('close = "graceful", sample_interval = "10 ms"', {"sample_interval_ns": 10 * MS, "close": "graceful"}),
        (
            'connect_deadline = "3 s", stall_deadline = "1 min"',
            {"connect_deadline_ns": 3 * S, "stall_deadline_ns": 60 * S},
        ),
        (
            'rto_min = "100 ms", rto_initial = "1 s", rto_max = "2 s", path_max_retrans = 3, pf_retrans = 0, ps_retrans = 5',
            {
                "rto_initial_ns": S, "rto_min_ns": 100 * MS, "rto_max_ns": 2 * S, "path_max_retrans": 3,
                "pf_retrans": 0, "ps_retrans": 5,
            },
        ),
        ('heartbeat_interval = "off", max_burst = 0', {"no_heartbeats": True, "max_burst": 0}),
        ('heartbeat_interval = "0 s"', {"heartbeat_interval_ns": 0}),
        ('sack_delay = "40 ms", sack_frequency = 4', {"sack_delay_ns": 40 * MS, "sack_frequency": 4}),
        ('streams = 2, scheduler = "prio", stream_values = [1, 0]',
         {"streams": 2, "scheduler": "prio", "stream_values": "1,0"}),
        ('unordered = true, ppid = 60, lifetime = "1 s"', {"unordered": True, "ppid": 60, "lifetime_ns": S}),
        ('connect = "connect", path_mtu = "1280 B"', {"connect": "connect", "path_mtu_bytes": 1280}),
        ('interval = "1 s"', {"interval_ns": S}),
        ('message_rate = "1 Mbit/s"', {"interval_ns": 1452 * 8 * 1000}),
        ('burst = { messages = 2, every = "5 s" }', {"interval_ns": 5 * S, "burst_bytes": "1452,1452"}),
        ('burst = { sizes = ["1 kB", "7 B", "7 B"], every = "1 ms" }', {"interval_ns": MS, "burst_bytes": "1000,7,7"}),
    ],
)  # fmt: skip
def test_options(options: str, cell_options: dict[str, object]) -> None:
    cell = cell_of(replaced('paths = ["p1"]', f'paths = ["p1"]\nsender = {{ {options} }}', SCTP))
    assert cell.flows[0].sender_options == cell_options


def test_options_are_those_of_the_apps() -> None:
    """The table of the spec and the C programs' own table name the same options (apps/traffic/config.c)."""
    import re

    from netwarp.experiment.options import OPTIONS
    from netwarp.testbed.arguments import BY_THE_TESTBED

    source = (ROOT / "apps" / "traffic" / "config.c").read_text()
    rows = re.findall(r'\{"([a-z0-9-]+)", OPTION_\w+, (\w+), ([A-Z_| ]+?),', source)
    there = {name.replace("-", "_"): (who, what) for name, who, what in rows}
    made_by_the_testbed = {
        "protocol", "bind", "to", "port", "message_bytes", "t0_realtime_ns", "start_ns", "stop_ns", "total_bytes",
        "primary", "switch_primary", "peer", "token", "bare", "messages", "duplex", "peer_messages", "peer_total_bytes",
        "reverse_streams", "t0_file", "again", "heartbeats",
    }  # fmt: skip
    of_the_apps_tests = {"read_each"}
    keys = {key for option in OPTIONS.values() for key in (option.cell_key, option.off) if key is not None}
    assert keys - BY_THE_TESTBED == set(there) - made_by_the_testbed - of_the_apps_tests
    for option in OPTIONS.values():
        if option.cell_key in BY_THE_TESTBED:
            continue
        who, what = there[option.cell_key]
        roles = {"BOTH": ("sender", "receiver"), "ROLE_SENDER": ("sender",), "ROLE_RECEIVER": ("receiver",)}[who]
        if option.cell_key in ("interval_ns", "burst_bytes"):  # of a receiver `reverse` says them
            assert who == "BOTH"
            roles = ("sender",)
        protocols = {
            name
            for name in ("tcp", "sctp", "mptcp", "udp")
            if what == "ANY"
            or (what == "CONNECTED" and name != "udp")
            or f"PROTOCOL_{name.upper()}" in what.split(" | ")
        }
        of_the_apps = set(option.protocols) - {"quic"}  # which is a program's: test_quic_flows.py
        assert (set(option.roles), of_the_apps) == (set(roles), protocols), option.cell_key


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('paths = ["p1", "p2"]', 'paths = ["p1", "p2"]\nmessage_size = "300 kB"', "must fit the send buffer of 212992 B"),
        ('paths = ["p1", "p2"]', 'paths = ["p1", "p2"]\nswitch_primary = [{ at = "1 s" }]', "path is missing"),
        ('paths = ["p1", "p2"]', 'paths = ["p1", "p2"]\nswitch_primary = [{ at = "1 s", path = "p3" }]', "no path of this flow"),
        ('paths = ["p1", "p2"]', 'paths = ["p1", "p2"]\nswitch_primary = [{ at = "10 s", path = "p2" }]', "not before the end"),
        ('paths = ["p1", "p2"]', 'paths = ["p1"]\nstart = "2 s"\nswitch_primary = [{ at = "1 s", path = "p1" }]', "before the start"),
        ('protocol = "sctp"', 'protocol = "tcp"', "tcp has one path"),
        ('paths = ["p1", "p2"]', 'paths = [{ sender = "p1", receiver = "p3" }]', 'there is no link "p3"'),
        ('paths = ["p1", "p2"]', 'paths = [{ sender = "p1", receiver = "p2" }]', 'reaches the other end over link "p2", not over "p1"'),
        ("[node.b]", '[node.b]\nkind = "router"', '"b" is a router; flows run between hosts'),
    ],
)  # fmt: skip
def test_flow_errors(old: str, new: str, says: str) -> None:
    found = problems_of(replaced(old, new, TWO))
    assert any(says in one and one.startswith("nowhere/spec.toml:") for one in found), found


def test_a_path_that_does_not_exist() -> None:
    text = BASE + '[node.c]\n[node.d]\n[link.p2]\nbetween = ["c", "d"]\n'
    (found,) = problems_of(
        replaced(
            'paths = ["p1"]', 'paths = [{ sender = "p1", receiver = "p2" }]', replaced('to = "b"', 'to = "d"', text)
        )
    )
    assert "the path does not exist: no way leads from 'a' to 'd' over its link 'p2'" in found


def test_captures() -> None:
    chain = 'format = 1\nname = "s"\nduration = "1 s"\nshape = { kind = "chain", hops = 2 }\ncaptures = CAPTURES\n'
    chain += '[flow.f]\nfrom = "a"\nto = "b"\nprotocol = "tcp"\nbytes = "1 MB"\npaths = ["h1"]\n'
    for text, wanted in [
        ('"hosts"', ["a.h1", "b.h2"]),
        ('"all"', ["a.h1", "r1.h1", "r1.h2", "b.h2"]),
        ('["r1.h2", "b.h2", "a.h1"]', ["r1.h2", "b.h2", "a.h1"]),
    ]:
        assert [f"{c.node}.{c.link}" for c in cell_of(chain.replace("CAPTURES", text)).captures] == wanted


def test_a_metric_may_use_a_parameter_that_names_another_parameter_or_a_factor() -> None:
    parameters = '[parameter]\nsize = "{base}"\nbase = "{x}"\n'
    cells = plan_of(BASE + parameters + X + '[metric.m]\nunit = "s"\nvalue = "2 * {size}"\n').cells
    assert [cell.metrics["m"] for cell in cells] == ["2 * 1", "2 * 2", "2 * 3"]


def test_a_parameter_is_never_taken_for_a_metric_of_its_name() -> None:
    """rate_bit_s was the parameter's 1 Mbit/s on a link of 2 Mbit/s, payload_bytes 1 kB whatever arrived."""
    text = replaced('rate = "1 Mbit/s"', 'rate = "2 Mbit/s"') + (
        '[parameter]\nrate = "1 Mbit/s"\npayload = "1 kB"\n'
        '[metric.m]\nunit = "s"\nvalue = "8 * flow.payload_bytes / flow.rate_bit_s / duration_s"\n'
        '[metric.n]\nunit = "s"\nvalue = "8 * {payload} / {rate}"\n'
    )
    assert cell_of(text).metrics == {"m": "8 * payload_bytes / rate_bit_s / 10", "n": "8 * 1000 / 1000000"}
    choi2009 = make_plan(load_spec("choi2009", sets={"link.p1.rate": "2 Mbit/s"}), only=["outages"]).cells
    assert {cell.flows[0].paths[0].bottleneck_bit_s for cell in choi2009} == {2 * 10**6}
    assert {cell.metrics["paper_utilisation"].split(" / ")[-1] for cell in choi2009} == {"rate_bit_s"}


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("{payload}", 'the parameter payload is "2 kB" where x is "2 s", and in s elsewhere'),
        ("3 / {other}", 'the parameter other is "all", which is no quantity with a unit where x is "2 s"'),
        ("payload_bytes", "could be the flow's or the parameter: write flow.payload_bytes or {payload} where x is"),
    ],
)
def test_a_formula_is_checked_at_every_level(formula: str, said: str) -> None:
    """Of levels that give a parameter other units only the last was looked at."""
    text = '[parameter]\npayload = "1 s"\nother = "1 s"\n' + X + '[factor.x.level."3 s"]\nparameter.payload = "3 s"\n'
    text += '[factor.x.level."2 s"]\nparameter = { payload = "2 kB", other = "all" }\n'
    [found] = problems_of(BASE + text + f'[metric.m]\nunit = "s"\nvalue = "{formula}"\n')
    assert "metric.m.value: " in found and said in found


def test_a_parameter_that_two_levels_together_make_no_quantity_is_named() -> None:
    text = (
        '[parameter]\nsize = "1 s"\n'
        + X
        + '[factor.x.level."2 s"]\nparameter.size = "{y}"\n[factor.y]\nlevels = ["3 s", "all"]\n'
    )
    [found] = problems_of(BASE + text + '[metric.m]\nunit = "s"\nvalue = "{size}"\n')
    assert 'metric.m.value: the parameter size is "all" here, which is no quantity' in found
    assert "x=2 s" in found and "y=all" in found


def test_parameters_fill_in_and_sets_win_over_levels() -> None:
    text = replaced('rate = "1 Mbit/s"', 'rate = "{r}"') + (
        '[parameter]\nr = "{base}"\nbase = "2 Mbit/s"\n' + X + '[factor.x.level."2 s"]\nparameter.base = "3 Mbit/s"\n'
    )
    rates = [cell.links[0].forward.rate_bit_s for cell in plan_of(text).cells]
    assert rates == [2 * 10**6, 3 * 10**6, 2 * 10**6]
    assert {cell.links[0].forward.rate_bit_s for cell in plan_of(text, {"base": "9 Mbit/s"}).cells} == {9 * 10**6}
    assert plan_of(text, {"base": "9 Mbit/s"}).cells[0].parameters["r"] == "9 Mbit/s"


@pytest.mark.parametrize(
    ("sets", "holds"),
    [
        ({"seed": "9"}, lambda plan: plan.cells[0].seed == 9),
        ({"link.p1.rate": "7 Mbit/s"}, lambda plan: plan.cells[0].links[0].forward.rate_bit_s == 7 * 10**6),
        ({"link.p1.rtt": "2 ms"}, lambda plan: plan.cells[0].links[0].forward.one_way_delay_ns == MS),
        ({"duration": "11s"}, lambda plan: plan.cells[0].duration_ns == 11 * S),
        ({"flow.f.sender.nodelay": "true"}, lambda plan: plan.cells[0].flows[0].sender_options == {"nodelay": True}),
        ({"factor.x.levels": '["5 s"]'}, lambda plan: [cell.factors["x"] for cell in plan.cells] == ["5 s"]),
        ({'node.a.sysctl."net.ipv4.tcp_sack"': "0"}, lambda plan: plan.cells[0].nodes[0].sysctls["net.ipv4.tcp_sack"] == "0"),
    ],
)  # fmt: skip
def test_sets(sets: dict[str, str], holds: object) -> None:
    assert callable(holds)
    assert holds(plan_of(BASE + X, sets))


def test_the_specs_sysctl_wins_over_the_default() -> None:
    text = replaced("[node.b]", '[node.b]\nsysctl = { "net.sctp.pf_expose" = "0", "net.ipv4.tcp_sack" = 0 }', SCTP)
    a, b = cell_of(text).nodes
    assert (a.sysctls["net.sctp.pf_expose"], b.sysctls["net.sctp.pf_expose"], b.sysctls["net.ipv4.tcp_sack"]) == (
        "2",
        "0",
        "0",
    )


def test_a_flow_by_time_needs_a_rate() -> None:
    text = replaced('rate = "1 Mbit/s"\nqueue = "50 packets"\n', "")
    (problem,) = problems_of(text)
    assert problem.startswith(f"nowhere/spec.toml:{line_of(text, 'paths =')}: flow.f.paths: ")
    assert "virtual time stands still" in problem and 'bytes = "1 MB"' in problem
    assert cell_of(text + 'bytes = "1 MB"\n').flows[0].total_bytes == 10**6
