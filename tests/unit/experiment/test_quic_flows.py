"""Flows of QUIC in a spec: the program they have by themselves, programs of the user's own, and mistakes."""

from __future__ import annotations

import ssl
from urllib.parse import unquote

import pytest
from netwarp.core.types import Flow, Program
from netwarp.experiment.programs import ENDLESS_BYTES
from netwarp.testbed.compile import Clock, Compiled, compile_cell
from netwarp.testbed.steps import to_text
from netwarp.testbed.tls_identity import CERTIFICATE, PRIVATE_KEY, TLS_FILES
from support.specs import cell_of, only, plan_of, replaced

S = 10**9
OWN = '[flow.f.program]\nlistens = "sender"\nsender = ["server", "{port}", "{tls_key}", "{tls_certificate}"]\nreceiver = ["client", "{from}", "{total_bytes}"]\n'  # noqa: E501


def quic(more: str = "", program: str = "") -> str:
    """The base spec with its flow over QUIC."""
    return replaced('protocol = "tcp"', f'protocol = "quic"\n{more}') + program


def flow_of(more: str = "", program: str = "") -> Flow:
    return cell_of(quic(more, program)).flows[0]


def program_of(flow: Flow) -> Program:
    assert flow.program is not None
    return flow.program


def compiled(text: str) -> Compiled:
    return compile_cell(cell_of(text), Clock(t0_realtime_ns=1_700_000_000 * S))


def spawned(text: str, end: str) -> str:
    lines = to_text(compiled(text).steps).splitlines()
    return unquote(next(line for line in lines if line.startswith("spawn") and f"f.{end}" in line))


def test_a_flow_of_quic_is_ngtcp2_whose_client_asks_the_flows_sender_for_its_bytes() -> None:
    flow = flow_of('bytes = "3 MB"')
    assert (flow.total_bytes, flow.stop_ns, flow.opener) == (3_000_000, None, "receiver")
    server, client = (spawned(quic('bytes = "3 MB"'), end) for end in ("sender", "receiver"))
    assert "usr/sbin/gtlsserver arg=--cc=cubic" in server and "arg=10.0.0.1 arg=5001" in server
    assert "usr/bin/gtlsclient" in client and "https://localhost/3000000" in client and "at=0" in client


def test_one_that_ends_by_time_asks_for_more_than_it_can_get_and_is_interrupted_at_its_stop() -> None:
    text = quic('stop = "4 s"')
    assert f"https://localhost/{ENDLESS_BYTES}" in spawned(text, "receiver")
    (signal,) = [line for line in to_text(compiled(text).steps).splitlines() if line.startswith("signal")]
    assert "f.receiver" in signal and "at=4000000000" in signal
    assert not [line for line in to_text(compiled(quic('bytes = "1 kB"')).steps).splitlines() if "signal" in line[:6]]


def test_congestion_control_is_the_senders_option_as_in_tcp() -> None:
    assert "--cc=bbr" in program_of(flow_of('sender = { congestion = "bbr" }')).sender
    factor = '[factor.cc]\nlevels = ["reno", "bbr2"]\nsets = "flow.f.sender.congestion"\n'
    found = [program_of(cell.flows[0]).sender[1] for cell in plan_of(quic(program=factor)).cells]
    assert found == ["--cc=reno", "--cc=bbr2"]


def test_a_program_of_ones_own_has_the_files_of_a_server_and_the_flows_bytes() -> None:
    text = quic('bytes = "2 kB"', OWN)
    arguments = spawned(text, "sender")
    for path, _ in TLS_FILES.values():
        assert f"/proc/1/cwd/{path}" in arguments
    assert "arg=client arg=10.0.0.1 arg=2000" in spawned(text, "receiver")
    assert compiled(text).files == {path: held.encode() for path, held in TLS_FILES.values()}
    assert not compiled(replaced("paths", "paths")).files, "only where an argument names them"


def test_key_and_certificate_belong_together_and_are_valid_at_any_time(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("tls")
    (folder / "key.pem").write_text(PRIVATE_KEY)
    (folder / "certificate.pem").write_text(CERTIFICATE)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    assert len(ssl.PEM_cert_to_DER_cert(CERTIFICATE)) == 357


def test_several_flows_of_quic_may_run_between_two_hosts() -> None:
    text = quic('bytes = "1 kB"', '[flow.g]\nfrom = "a"\nto = "b"\nprotocol = "quic"\npaths = ["p1"]\n')
    assert [flow.port for flow in cell_of(text).flows] == [5001, 5002]


def test_flows_of_quic_may_arrive_at_random() -> None:
    arrivals = '[flow.f.arrivals]\nprocess = "regular"\nrate = "5 /s"\nsize = "30 kB"\nstop = "1 s"\n'
    flows = cell_of(quic(program=arrivals)).flows
    assert [(flow.total_bytes, flow.protocol) for flow in flows] == [(30_000, "quic")] * 5


@pytest.mark.parametrize(
    ("more", "program", "said"),
    [
        ('message_size = "1 kB"', "", "message_size: is not of a flow of QUIC: it has bytes or a stop"),
        ('receiver = { rcvbuf = "1 MB" }', "", "receiver: is not of a flow of QUIC"),
        (
            'sender = { congestion = "cubik" }',
            "",
            'ngtcp2 has cubic, reno, bbr, bbr2; "cubik" is none of them, did you mean "cubic"?',
        ),
        ('sender = { mss = "1 kB" }', "", "no option of a quic sender; it is one of a tcp or sctp"),
        ('sender = { congestion = "bbr" }', OWN, "of yours its arguments say it"),
        ('program = "iperf3"', "", 'iperf3 does not speak quic; for example protocol = "tcp"'),
        ('bytes = "1 MB"', OWN.replace("{total_bytes}", "{stop_s}"), "has {stop_s}, but the flow ends by bytes"),
        ('bytes = "1 MB"', OWN + "interrupt = true\n", "has interrupt, which is at the flow's stop"),
        (
            'bytes = "1 MB"',
            OWN.replace("{tls_key}", "{tls_kei}"),
            '"{tls_kei}" is neither a factor nor a parameter, did you mean "tls_key"?',
        ),
    ],
)
def test_mistakes_are_told(more: str, program: str, said: str) -> None:
    assert said in only(quic(more, program))


def test_its_links_have_room_for_the_datagrams_that_quic_promises() -> None:
    text = quic('bytes = "1 MB"').replace('rate = "', 'mtu = "1240 B"\nrate = "', 1)
    assert 'quic needs links with an MTU of 1248 B; for example mtu = "1248 B"' in only(text)


def test_a_program_of_udp_beside_it_could_not_be_told_apart() -> None:
    udp = '[flow.g]\nfrom = "a"\nto = "b"\nprotocol = "udp"\npaths = ["p1"]\nprogram = { sender = ["x"] }\n'
    assert 'cannot be told from those of flow "f"' in only(quic('bytes = "1 kB"', udp))
