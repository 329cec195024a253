"""The options of ssh that an inventory may give: those of which none starts a program, loads one or writes a file here.

Refused are ProxyCommand, LocalCommand, KnownHostsCommand, PKCS11Provider, ControlPath, -F, -E, -L and all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}", re.ASCII)
HOST = re.compile(r"[A-Za-z0-9_\[:][A-Za-z0-9_.:%\[\]-]{0,252}", re.ASCII)
"""A name or an address. What ~/.ssh/config does with it may be a shell command with %h in it."""
FILE = re.compile(r"[^-\0-\x1f\x7f][^\0-\x1f\x7f]{0,1023}")
JUMP = re.compile(rf"(?:(?:{USER.pattern}@)?{HOST.pattern},?)+", re.ASCII)
VALUE = re.compile(r"[A-Za-z0-9_.,:/@%~+=*!?\[\] -]{0,1024}", re.ASCII)
ALONE = frozenset(("-4", "-6", "-C", "-q", "-x", "-T", "-a", "-k"))
WITH_A_VALUE = {"-p": PORT, "-l": USER, "-i": FILE, "-J": JUMP, "-b": HOST}
NAMES = {
    **dict.fromkeys(
        (
            "addressfamily", "bindaddress", "bindinterface", "casignaturealgorithms", "checkhostip", "ciphers",
            "compression", "connectionattempts", "connecttimeout", "forwardagent", "forwardx11", "globalknownhostsfile",
            "hostkeyalgorithms", "hostkeyalias", "hostname", "identitiesonly", "ipqos", "kbdinteractiveauthentication",
            "kexalgorithms", "loglevel", "macs", "numberofpasswordprompts", "passwordauthentication", "port",
            "preferredauthentications", "pubkeyacceptedalgorithms", "pubkeyauthentication", "rekeylimit",
            "requesttty", "serveralivecountmax", "serveraliveinterval", "stricthostkeychecking", "tcpkeepalive", "user",
            "userknownhostsfile", "verifyhostkeydns",
        ),
        VALUE,
    ),
    "identityfile": FILE, "port": PORT, "user": USER, "hostname": HOST, "proxyjump": JUMP,
    "forwardagent": re.compile("no"), "forwardx11": re.compile("no"), "controlmaster": re.compile("no"),
    "controlpath": re.compile("none"),
}  # fmt: skip
"""Option in small letters -> its values."""


def unknown(words: Sequence[str]) -> list[str]:
    """The words of a command line of ssh that are none of these options."""
    return [text for text, rule, value in _options(words) if rule is None or not rule.fullmatch(value)]


def guarded(words: Sequence[str]) -> list[str]:
    """The same words. ssh writes new keys into a file of known hosts that they name: before them stands that it does
    not.
    """
    names = {text.partition("=")[0].strip().lower() for text, _, _ in _options(words)}
    if "userknownhostsfile" in names:
        return ["-o", "StrictHostKeyChecking=yes", "-o", "UpdateHostKeys=no", *words]
    return list(words)


def _options(words: Sequence[str]) -> list[tuple[str, re.Pattern[str] | None, str]]:
    """(as written, the rule for its value or None, value) of each."""
    found: list[tuple[str, re.Pattern[str] | None, str]] = []
    left = list(words)
    while left:
        word = left.pop(0)
        letter, value = word[:2], word[2:]
        if word in ALONE:
            found.append((word, VALUE, ""))
        elif (letter != "-o" and letter not in WITH_A_VALUE) or not (value or left):
            found.append((word, None, ""))
        else:
            value = value or left.pop(0)
            if letter == "-o":
                name, _, text = value.replace("=", " ", 1).strip().partition(" ")
                found.append((value, NAMES.get(name.lower()), text.strip()))
            else:
                found.append((f"{letter} {value}", WITH_A_VALUE[letter], value))
    return found
