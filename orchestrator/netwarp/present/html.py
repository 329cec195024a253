"""HTML and scripts with names from a spec in them: escaping templates, JSON inside scripts, file names, URLs."""

from __future__ import annotations

import re
import shlex
from hashlib import sha256
from urllib.parse import quote

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..core.numbers import THIN, duration, fixed, given, readable, speed, with_unit
from ..core.units import counted
from .style import OUTCOMES, VERDICTS, verdict_counted, verdict_shown

UNKNOWN = ("?", "unsure")
# `</script>`, `<!--` and `]]>` must not end or open anything; U+2028/9 end a line in older script engines
_UNSAFE = ("<", ">", "&", "\u2028", "\u2029")


def script_json(value: object) -> str:
    """JSON that is safe inside a <script> element or a .js file; NaN and infinities become null."""
    text = msgspec.json.encode(value).decode()
    for character in _UNSAFE:  # str.replace is many times as fast as str.translate
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def file_name(text: str) -> str:
    """A file name for a text: the text itself if it is harmless, otherwise its letters and a hash; never a path."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,150}", text):
        return text
    letters = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:60]
    return f"{letters or 'x'}-{sha256(text.encode()).hexdigest()[:10]}"


def url(*parts: str) -> str:
    """A relative URL of path segments, each percent-encoded."""
    return "/".join(quote(part, safe="") if part != ".." else ".." for part in parts)


def environment() -> Environment:
    """The environment of the templates. It escapes everything, since names come from a spec that anybody may have
    written.
    """
    templates = Environment(
        loader=PackageLoader("netwarp.present"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        readable=readable,
        given=given,
        fixed=fixed,
        verdict_shown=verdict_shown,
        grouped=lambda text: re.sub(r"(?<=\d),(?=\d{3}(?!\d))", THIN, text),
        unbroken=lambda text: text.replace("-", "\u2011"),
        command=shlex.join,
        script_json=lambda value: Markup(script_json(value)),
    )
    templates.globals.update(
        duration=duration,
        speed=speed,
        with_unit=with_unit,
        counted=counted,
        verdict_counted=verdict_counted,
        verdict=lambda name: VERDICTS.get(name, UNKNOWN),
        outcome=lambda name: OUTCOMES.get(name, UNKNOWN),
    )
    return templates
