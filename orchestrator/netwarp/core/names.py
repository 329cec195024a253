"""The rules for names and numbers in a spec, a plan and a run directory: a name never leads to another folder, and a
number is one that the testbed can hold.

The types of a cell and of a plan state them. Reading a stranger's file therefore checks them: msgspec raises a
ValidationError, with the position of the value that breaks a rule.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,31}", re.ASCII)
"""A name in a spec."""
FILE_NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,31}\.[a-z0-9_][a-z0-9_-]{0,31}", re.ASCII)
"""A file beside a spec that a program reads."""
SYSCTL = re.compile(r"net(\.[A-Za-z0-9_-]+)+", re.ASCII)
SYSCTL_VALUE = re.compile(r"[A-Za-z0-9_ .:,+-]{1,64}", re.ASCII)
LONGEST_TEXT = 2000
MOST_ARGUMENTS = 64
"""Of one program."""
MOST_FILES = 16
"""Of one program."""
LARGEST_FILE_BYTES = 64 * 1024
LARGEST = 2**63 - 1
MOST_CELLS = 100_000

Name = Annotated[str, Meta(pattern=rf"^{NAME.pattern}\Z")]
_INNER = r"[a-z0-9_][a-z0-9_-]{0,79}(?:[.:][a-z0-9_-]{1,80}){0,3}"
InnerName = Annotated[str, Meta(pattern=rf"^{_INNER}\Z")]
"""A name that the planner may have made of others: `p1.hop:a`, `p1-p2`, `web.outage`."""
NoneOrName = Annotated[str, Meta(pattern=rf"^(?:{_INNER})?\Z")]
"""The same, or an empty text."""
FileName = Annotated[str, Meta(pattern=rf"^{FILE_NAME.pattern}\Z")]
Key = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}\Z")]
"""An option of a program of netwarp's own."""
SysctlName = Annotated[str, Meta(pattern=rf"^{SYSCTL.pattern}\Z", max_length=200)]
SysctlValue = Annotated[str, Meta(pattern=rf"^{SYSCTL_VALUE.pattern}\Z")]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
OptionText = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_,.-]*\Z", max_length=1 << 16)]
"""The value of such an option: a word, or numbers with commas between them."""
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
"""SHA-256 in hexadecimal."""
Count = Annotated[int, Meta(ge=0, le=LARGEST)]
"""A time, an amount or a number that cannot be negative."""
Port = Annotated[int, Meta(ge=1, le=65535)]
Ratio = Annotated[float, Meta(ge=0, le=1)]
