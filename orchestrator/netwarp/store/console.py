"""console.txt, a guest's console: its last lines, and the kernel's reports of its own faults (splats)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

HALTED = "reboot: Power down"
"""The last line of every guest that ended as it should."""
SPLAT_LINES = 40
"""The most lines of a splat that are kept as its text."""
_TIME = re.compile(r"^\[\s*(\d+\.\d+)\](?:\[[^\]]*\])? ?")
_MARK = re.compile(r"^@\d+$")
_END = re.compile(r"^-+\[ (?:end|cut here)")
_RULE = re.compile(r"^[=\-*]{20,}$")
_HEADLINES = {
    "panic": r"Kernel panic - not syncing",
    "kasan": r"BUG: KASAN: ",
    "ubsan": r"UBSAN: ",
    "atomic": r"BUG: (?:sleeping function called from invalid context|scheduling while atomic)",
    "rcu": r"(?:WARNING: suspicious RCU usage|(?:rcu: )?INFO: rcu\S* (?:self-)?detected)",
    "lockdep": r"(?:\[ )?(?:WARNING: (?:possible |inconsistent lock|bad unlock|nested lock|held lock|lock held)"
    r"|WARNING: .* lock order|BUG: Invalid wait context|INFO: trying to register non-static key)",
    "leak": r"unreferenced object 0x",
    "hung task": r"INFO: task .* blocked for more than \d+ seconds",
    "reference": r"(?:ref_tracker: |unregister_netdevice: waiting for )",
    "slab": r"BUG \S+ \(",
    "bug": r"(?:(?:watchdog: )?BUG: |\[ BUG: |kernel BUG at |Oops: |general protection fault)",
    "warning": r"(?:\[ )?WARNING: ",
}
_HEADLINE = re.compile("|".join(f"(?P<k{number}>{text})" for number, text in enumerate(_HEADLINES.values())))
_KINDS = tuple(_HEADLINES)
_FRAME = re.compile(r"^\s*(?:\[<[0-9a-f]+>\] )?(\? )?([A-Za-z_]\w*)(?:\.\w+)*\+0x[0-9a-f]+/0x[0-9a-f]+")
# what a stack of a report begins with: the reporter's own functions
_REPORTERS = re.compile(
    r"(?:dump_stack\w*|show_stack|_*warn\w*|report_bug|print_\w+|_*kasan_\w+|_*asan_\w+|_*ubsan_\w+|lockdep_\w+|panic"
    r"|check_\w+|validate_chain|mark_\w+|_*lock_acquire|_*might_\w+|_*schedule_bug|_raw_\w+|kmemleak_\w+|_*kmalloc\w*"
    r"|_*kmem_cache_\w+|mem(?:set|cpy|move)|_*schedule|bust_spinlocks|segv\w*|relay_signal|sig_\w+|hard_handler"
    r"|save_\w+|stack_trace_\w+|set_track\w*|_*(?:alloc|create)_object)"
)
MOST_FRAMES = 5


@dataclass(frozen=True, slots=True)
class Splat:
    """A report of the kernel about itself.

    kind: of `kinds()`. line: its headline. text: its lines from there on, SPLAT_LINES at most. boot_s: its instant
    since the guest began, in seconds; None: the console has no times. mark_s: the last whole second from T0 that had
    passed before; None: none had.
    """

    kind: str
    line: str
    text: tuple[str, ...]
    boot_s: float | None
    mark_s: int | None

    @property
    def fingerprint(self) -> str:
        """Up to five functions of its stack, the innermost first, joined by `:`, as NIPA has it."""
        frames = [frame for line in self.text if (frame := _FRAME.match(line)) is not None]
        sure = [frame[2] for frame in frames if not frame[1]] or [frame[2] for frame in frames]
        while sure and _REPORTERS.fullmatch(sure[0]):
            sure.pop(0)
        return ":".join(sure[:MOST_FRAMES])


def kinds() -> tuple[str, ...]:
    """Of splats."""
    return _KINDS


def splats(path: Path) -> tuple[Splat, ...]:
    """The splats on a console, in their order; none where there is no file."""
    return tuple(_splats(_lines(path)))


def splats_in(text: str) -> tuple[Splat, ...]:
    """The same of a console's text."""
    return tuple(_splats(text.splitlines()))


def console_tail(path: Path, lines: int = 12) -> tuple[str, ...]:
    """The last lines of a console, without times and progress marks; of a splat, its text."""
    kept = _lines(path)
    if (first := next(_splats(kept), None)) is not None:
        return first.text
    plain = (line for raw in kept if not _MARK.match(line := _untimed(raw)[1]) and line and line != HALTED)
    return tuple(plain)[-lines:]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []


def _untimed(raw: str) -> tuple[float | None, str]:
    time = _TIME.match(raw)
    return (float(time[1]), raw[time.end() :].rstrip()) if time else (None, raw.rstrip())


def _splats(lines: Iterable[str]) -> Iterator[Splat]:
    """What begins with a headline, up to the next one, or its own end."""
    mark: int | None = None
    splat: Splat | None = None
    text: list[str] = []
    for raw in lines:
        boot_s, line = _untimed(raw)
        found = _HEADLINE.match(line)
        if splat is not None and (found or _END.match(line) or _MARK.match(line)):
            yield replace(splat, text=_kept(text))
            splat = None
        if _MARK.match(line):
            mark = int(line[1:])
        elif found and found.lastgroup:
            splat = Splat(
                _KINDS[int(found.lastgroup[1:])], line.strip("[ ]") if line.startswith("[") else line, (), boot_s, mark
            )
            text = [line]
        elif splat is not None and line and not _RULE.match(line) and line != HALTED:
            text.append(line)
    if splat is not None:
        yield replace(splat, text=_kept(text))


def _kept(text: list[str]) -> tuple[str, ...]:
    """The first lines, without the words of the stack of which the kernel does not know if they are calls, where there
    are others: User-Mode Linux prints each that could be one.
    """
    frames = [_FRAME.match(line) for line in text]
    sure = any(frame and not frame[1] for frame in frames)
    kept = (line for line, frame in zip(text, frames, strict=True) if not (sure and frame and frame[1]))
    return tuple(itertools.islice(kept, SPLAT_LINES))
