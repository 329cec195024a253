"""The private key and the certificate of every cell's TLS servers: the same for all, so that equal cells are equal.

The key is public: it protects nothing. P-256, self-signed with SHA-256 (357 B), for localhost, valid from 1970 to 9999.
Made once, by `openssl ca -selfsign -startdate 19700101000000Z -enddate 99991231235959Z`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.types import Cell
from ..experiment.programs import TLS

PRIVATE_KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+MI4mXZunQ/SGwif
ha4yrG5W2pq6t3j2+NC0CNmIeh+hRANCAAT7QAKHKR1R81e0tjqvjYVxe6sIfD2s
iyFCLO/qMV4nuq5XBT1+4JnvPjJZ0Tq2sL/lcyPhm8eoispjFGr19kB3
-----END PRIVATE KEY-----
"""
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBYTCCAQegAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNNzAwMTAxMDAwMDAwWhgPOTk5OTEyMzEyMzU5NTlaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPtAAocpHVHzV7S2
Oq+NhXF7qwh8PayLIUIs7+oxXie6rlcFPX7gme8+MlnROrawv+VzI+Gbx6iKymMU
avX2QHejSDBGMA8GA1UdEwEB/wQFMAMBAf8wFAYDVR0RBA0wC4IJbG9jYWxob3N0
MB0GA1UdDgQWBBQ80KSrHYSHI3dTcpOIeatrrBsUODAKBggqhkjOPQQDAgNIADBF
AiEAr6zbZP702tjjwObglFetnp1erDB7eIZUS70aIvNY4OwCICoZMomR/eggxxtY
AMygMqU6nGkV9LFZsZ09Y22CJXLp
-----END CERTIFICATE-----
"""
TLS_FILES = dict(zip(TLS, (("bin/tls-key.pem", PRIVATE_KEY), ("bin/tls-certificate.pem", CERTIFICATE)), strict=True))
"""Placeholder -> the file in a cell's directory, which is there while it runs, and what it holds."""


def tls_files(cell: Cell) -> Iterator[tuple[str, bytes]]:
    """The files of a cell and their bytes; none if no program names them."""
    programs = [flow.program for flow in cell.flows if flow.program is not None]
    texts = [text for program in programs for text in (*program.sender, *program.receiver)]
    texts += [text for program in programs if program.files for text in program.files.values()]
    for name, (path, held) in TLS_FILES.items():
        if any(f"{{{name}}}" in text for text in texts):
            yield path, held.encode()
