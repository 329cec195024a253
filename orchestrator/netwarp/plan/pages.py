"""A flow that is pages: what its programs are told, of the page and of their transport."""

from __future__ import annotations

from ..core.types import OptionValue, Protocol
from ..experiment.pages import NOT_OF_PAGES, read_page
from .reader import Reader

OF_OTHER_FLOWS = ("bytes", "message_size", "switch_primary", "program")
"""Keys of a flow that mean nothing to pages."""


def page_options(
    name: str,
    protocol: Protocol,
    message_bytes: int,
    options: dict[str, dict[str, OptionValue]],
    reader: Reader,
) -> dict[str, dict[str, OptionValue]]:
    """The options of the flow's server (`sender`) and client (`receiver`), the page's own first."""
    item = reader.item.get("page")
    for key in OF_OTHER_FLOWS:
        if reader.has(key):
            reader.problem(key, "is not of a flow with a page; leave it out")
    if protocol not in ("tcp", "sctp"):
        reader.problem("page", f'pages are fetched over tcp or sctp, not {protocol}; for example protocol = "tcp"')
    for role, given in options.items():
        for key in sorted(NOT_OF_PAGES & given.keys()):
            reader.problem(role, f"{key} is no option of a page's programs; leave it out")
    if item is None or protocol not in ("tcp", "sctp"):
        return options
    server, client = read_page(item, name, protocol, message_bytes, reader.problems)
    return {"sender": {**server, **options["sender"]}, "receiver": {**client, **options["receiver"]}}
