"""A minimal complete spec, printed by `netwarp plan --example`. It loads, plans and runs as it is."""

EXAMPLE_SPEC = """\
# A minimal complete netwarp spec: TCP and SCTP over one path, at three rates. Every value has its unit.
format = 1
name = "example"
title = "TCP and SCTP over one path"
duration = "10 s"

[node.a]
kind = "host"
[node.b]
kind = "host"

[link.p1]
between = ["a", "b"]
rate = "{rate}"
queue = "50 packets"
one_way_delay = "20 ms"

[flow.bulk]
from = "a"
to = "b"
protocol = "{protocol}"
paths = ["p1"]

[factor.protocol]
levels = ["tcp", "sctp"]

[factor.rate]
levels = ["1 Mbit/s", "2 Mbit/s", "5 Mbit/s"]

[table.goodput]
title = "Goodput against rate"
metric = "goodput_bit_s"
rows = ["protocol"]
columns = ["rate"]
"""
