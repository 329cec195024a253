"""Reads programs as flows: `program = "iperf3"`, or argument lists of the user's own. A flow of QUIC is always one.

An argument list is executed as it is, never through a shell; `{to}` and other placeholders are filled in once addresses
are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ..core.names import LARGEST_FILE_BYTES, MOST_ARGUMENTS, MOST_FILES
from ..core.types import Program, Protocol
from .fields import PLACEHOLDER, Field, check_keys, read_text
from .problems import Problems, nearest
from .side_files import SideFile
from .toml_positions import Item

OF_ONE = ("from", "to", "port", "start_s", "stop_s", "duration_s")
"""Addresses of sender and receiver on the flow's first path, its port, its times from T0, and how long it lasts."""
TIMES = OF_ONE[4:]
"""Of these, what only a flow with a stop has."""
OF_OUR_APPS = (
    "bytes", "message_size", "messages", "reverse", "late", "sender", "receiver", "switch_primary", "heartbeats",
)  # fmt: skip
"""Keys of a flow that mean nothing to a program of the user's own."""
NOT_OF_QUIC = tuple(key for key in OF_OUR_APPS if key not in ("bytes", "sender"))
OF_EACH = ("from_all", "to_all", "from_others", "to_others")
"""An argument that holds one of these stands once for each address of that end, in the order of the paths; of
`_others` without the first (where there is no other, the argument is left out)."""
JOINED = ("from_list", "to_list")
"""All addresses of that end, with commas between them."""
UNPACKED = "unpacked"
"""The root of the packages that `make programs` unpacks: "{unpacked}/usr/sbin/nginx"."""
FILES = "files"
"""The folder with the program's `files`: "{files}/stp.cfg"."""
TLS = ("tls_key", "tls_certificate")
"""Files (PEM) of a server's private key and its certificate, the same in every cell (testbed/tls_identity.py)."""
TOTAL_BYTES = "total_bytes"
"""The flow's `bytes`; of one that ends by time more than it can send (ENDLESS_BYTES)."""
ENDLESS_BYTES = 10**12
PLACEHOLDERS = (*OF_ONE, *OF_EACH, *JOINED, UNPACKED, FILES, *TLS, TOTAL_BYTES)
"""Placeholders in a program's arguments and files. No parameter or factor of these names is filled in there."""
EXAMPLE = '{ sender = ["iperf3", "-c", "{to}", "-t", "{duration_s}"], receiver = ["iperf3", "-s", "-1"] }'
PROGRAM: dict[str, Field] = {
    "sender": Field("open", '["ping", "-n", "{to}"]'),
    "receiver": Field("open", '["iperf3", "-s", "-1"]'),
    "ready": Field("text", '"Server listening"'),
    "interrupt": Field("switch", "true"),
    "listens": Field("choice", '"sender"', choices=("sender", "receiver")),
    "files": Field("open", '["stp.cfg"]'),
}


def _text_of_file(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError("is no text in UTF-8") from error


PROGRAM_FILES = SideFile(("program",), "files", (), "stp.cfg", LARGEST_FILE_BYTES, _text_of_file, many=True)


@dataclass(frozen=True, slots=True)
class Preset:
    """A ready-made program: its arguments, and further ones by protocol. whole_seconds: its duration must be whole
    seconds.
    """

    program: Program
    protocols: dict[Protocol, tuple[str, ...]]
    whole_seconds: bool = False


PRESETS: dict[str, Preset] = {
    "iperf3": Preset(
        Program(
            sender=("iperf3", "-c", "{to}", "-B", "{from}", "-p", "{port}", "-t", "{duration_s}", "-J"),
            receiver=("iperf3", "-s", "-1", "-B", "{to}", "-p", "{port}", "-J"),
        ),
        {"tcp": (), "sctp": ("--sctp",), "udp": ("-u",)},
        whole_seconds=True,
    ),
    "ping": Preset(Program(sender=("ping", "-n", "-I", "{from}", "{to}"), interrupt=True), {"icmp": ()}),
    "ngtcp2": Preset(
        Program(
            sender=(
                "{unpacked}/usr/sbin/gtlsserver", "-q", "--max-dyn-length={total_bytes}", "{from}", "{port}",
                "{tls_key}", "{tls_certificate}",
            ),
            receiver=(
                "{unpacked}/usr/bin/gtlsclient", "-q", "--no-quic-dump", "--no-http-dump",
                "--exit-on-all-streams-close", "{from}", "{port}", "https://localhost/{total_bytes}",
            ),
            interrupt=True,
            listens="sender",
        ),
        {"quic": ()},
    ),
}  # fmt: skip
QUIC = "ngtcp2"
"""What a flow of QUIC is, unless it names a program: Debian's ngtcp2 (`make programs`), HTTP/3."""
QUIC_CONGESTION = ("cubic", "reno", "bbr", "bbr2")
"""What its servers have (bbr2 not in those of 2023 and later); the first is the default."""


def read_program(item: Item, protocol: Protocol, duration_ns: int, problems: Problems) -> Program | None:
    """The program of a flow that lasts duration_ns; None if it is wrong (the problem is collected)."""
    if isinstance(item.value, str):
        return _preset(item, item.value, protocol, duration_ns, problems)
    if not isinstance(item.value, dict):
        problems.add(item, f"must be {', '.join(PRESETS)} or argument lists; for example {EXAMPLE}")
        return None
    before = len(problems)
    check_keys(item, PROGRAM, problems)
    sender, receiver, ready, interrupt, listens, files = (item.get(key) for key in PROGRAM)
    if sender is None:
        problems.add(item, f"sender is missing; for example {EXAMPLE}")
    if ready is not None and receiver is None:
        problems.add(ready, "is what the receiver says when it listens, but there is no receiver; leave it out")
    if listens is not None and receiver is None:
        problems.add(listens, "says which of two ends waits for the other, but there is no receiver; leave it out")
    lists = [_arguments(arguments, problems) if arguments is not None else () for arguments in (sender, receiver)]
    text = "" if ready is None else read_text(ready, PROGRAM["ready"], problems) or ""
    if ready is not None and not text:
        problems.add(ready, f"is empty; for example {PROGRAM['ready'].example}")
    texts = msgspec.UNSET if files is None else _files(files, problems)
    if len(problems) > before:
        return None
    return Program(
        lists[0],
        lists[1],
        ready=text,
        interrupt=interrupt is not None and interrupt.value is True,
        listens="sender" if listens is not None and listens.value == "sender" else "receiver",
        files=texts,
    )


def _files(item: Item, problems: Problems) -> dict[str, str]:
    """The name and text of each file. A list of names is one of names and texts by now (PROGRAM_FILES)."""
    children = item.items() if isinstance(item.value, list) else []
    if not 1 <= len(children) <= MOST_FILES:
        problems.add(item, f'must be a list of 1 to {MOST_FILES} files beside the spec; for example ["stp.cfg"]')
        return {}
    texts: dict[str, str] = {}
    for child in children:
        pair = child.items() if isinstance(child.value, list) else []
        if len(pair) != 2:
            problems.add(child, 'must be the name of a file beside the spec; for example "stp.cfg"')
            continue
        name, text = (str(part.value) for part in pair)
        if name in texts:
            problems.add(child, f'"{name}" is there twice')
        texts[name] = text
        for number, line in enumerate(text.splitlines(), 1):
            if len({found for found in PLACEHOLDER.findall(line) if found in OF_EACH}) > 1:
                said = "stands once for each address; two of {from_all}, {to_others} and the like want a line each"
                problems.add(child, f"line {number} of {name} {said}")
    return texts


def _preset(item: Item, name: str, protocol: Protocol, duration_ns: int, problems: Problems) -> Program | None:
    preset = PRESETS.get(name)
    if preset is None:
        problems.add(item, f'"{name[:40]}" is no ready-made program{nearest(name, PRESETS)}; or write {EXAMPLE}')
        return None
    if protocol not in preset.protocols:
        spoken = " or ".join(f'"{name_of}"' for name_of in preset.protocols)
        problems.add(item, f"{name} does not speak {protocol}; for example protocol = {spoken}")
        return None
    if preset.whole_seconds and duration_ns % 10**9:
        problems.add(item, f'{name} runs for whole seconds; for example start = "1 s", stop = "11 s"')
        return None
    own = preset.program
    return msgspec.structs.replace(own, sender=(*own.sender, *preset.protocols[protocol]))


def quic_program(item: Item | None, congestion: str | None, problems: Problems) -> Program | None:
    """The program of a flow of QUIC; None if it is wrong. item: the flow's `program`, if it has one."""
    if item is not None and item.value != QUIC:
        return read_program(item, "quic", 0, problems)
    own = PRESETS[QUIC].program
    server, *arguments = own.sender
    return msgspec.structs.replace(own, sender=(server, f"--cc={congestion or QUIC_CONGESTION[0]}", *arguments))


def _arguments(item: Item, problems: Problems) -> tuple[str, ...]:
    """An argument list: the program, by name or absolute path, and its arguments."""
    children = item.items() if isinstance(item.value, list) else []
    if not 1 <= len(children) <= MOST_ARGUMENTS:
        problems.add(item, f"must be a list of 1 to {MOST_ARGUMENTS} texts, the program first; for example {EXAMPLE}")
        return ()
    before = len(problems)
    texts = [read_text(child, Field("text", '"-n"'), problems) for child in children]
    for child, text in zip(children, texts, strict=True):
        names = PLACEHOLDER.findall(text or "")
        for name in names:
            if name not in PLACEHOLDERS:  # what a parameter or a factor was put in for is gone already
                problems.add(child, f'"{{{name}}}" cannot be filled in{nearest(name, PLACEHOLDERS)}')
        if len({name for name in names if name in OF_EACH}) > 1:
            problems.add(
                child, "stands once for each address; two of {from_all}, {to_others} and the like want an argument each"
            )
    program = texts[0]
    bare = None if program is None else program.removeprefix(f"{{{UNPACKED}}}")
    if bare is not None and (not bare or PLACEHOLDER.search(bare)):
        problems.add(children[0], 'must name a program; for example "iperf3" or "/opt/bin/mine"')
    elif bare is not None and "/" in bare and not bare.startswith("/"):
        problems.add(children[0], f'"{program}" is neither a name nor an absolute path; for example "/opt/bin/mine"')
    return tuple(text or "" for text in texts) if len(problems) == before else ()
