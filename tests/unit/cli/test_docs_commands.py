"""Every command that README, docs and --help print is one that netwarp, or make, takes, and can be planned."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.cli import COMMANDS, main, make_parser
from netwarp.cli.run import plan_of, plan_options, shard_option
from netwarp.core.errors import SpecError
from support.docs_kit import IN_ORDER, LANGUAGES, NOT_RUN, PAGES, ROOT, blocks, inline, not_run

PLACEHOLDERS = {"SPEC": "mine.toml", "FILE...": "a.pcap", "CAPTURE...": "a.pcap"}
PLANNED = ("run", "plan", "compare backends", "shell")
GROUPS = ("archive", "compare", "kernel")
MESSAGES = ("netwarp is not set up yet",)
GOOD_PLANS: set[str] = set()
FENCED = [line for page in PAGES if page != IN_ORDER[0] for block in blocks(page) if block.language in ("sh", "console")
          for line in block.lines if line.startswith(("netwarp ", "make "))]  # fmt: skip
INLINE = [line for page in PAGES for line in inline(page) if not line.startswith(MESSAGES)]


def examples(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The last line of --help of every command and verb."""
    below = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for choices in below:
        for one in choices.values():
            yield from examples(one)
    if not below:
        yield str(parser.epilog)


EXAMPLES = [epilog.removeprefix("example: ") for epilog in examples(make_parser())]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Where README's first command has written mine.toml."""
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "--example"]) == 0
    (tmp_path / "mine.toml").write_text(capsys.readouterr().out)
    return tmp_path


def words_of(line: str) -> list[str]:
    """Its arguments, placeholders filled in."""
    return [PLACEHOLDERS.get(word, word) for word in shlex.split(re.split(r" > | '?\|\|'? ", line)[0])[1:]]


def command_of(words: list[str]) -> str:
    """The command: two words where the first is that of a group."""
    return " ".join(words[: 2 if words[0] in GROUPS else 1])


def check_plan(words: list[str]) -> None:
    """Where it names an experiment that there is, the cells it asks for can be planned; the same plan is made once."""
    args = make_parser().parse_args(words)
    if command_of(words) in PLANNED and args.spec is not None and not args.spec.partition("/")[0].isupper():
        asked = repr((plan_options(args), shard_option(args)))
        if asked not in GOOD_PLANS:
            assert plan_of(args, None).cells
            GOOD_PLANS.add(asked)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert [str(block) for block in blocks(page) if block.language not in LANGUAGES] == []


def test_every_help_ends_with_an_example_of_its_own() -> None:
    """On one line of 80 columns, so that it can be copied."""
    assert [line for line in EXAMPLES if not line.startswith("netwarp ") or len(f"example: {line}") > 78] == []
    assert len(set(EXAMPLES)) == len(EXAMPLES) > len(COMMANDS)


@pytest.mark.parametrize("line", dict.fromkeys([*FENCED, *EXAMPLES]))
def test_a_command_of_a_block_or_an_example(line: str, here: Path) -> None:
    """Taken as it stands."""
    if line.startswith("make "):
        dry(shlex.split(line)[1:], here)
    elif line.endswith("= 2"):  # shows what is refused
        with pytest.raises(SpecError):
            check_plan(words_of(line))
    elif line.endswith(" --version"):
        with pytest.raises(SystemExit, match=r"^0$"):
            check_plan(words_of(line))
    else:
        check_plan(words_of(line))


@pytest.mark.parametrize("line", dict.fromkeys(INLINE))
def test_a_command_in_the_text(line: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Often a part of one: its options are those of the command; where it is whole, it is planned."""
    if line.startswith("make "):
        words = shlex.split(line)[1:]
        if not words[0].startswith("-j"):
            dry(words, here)
        return
    words = words_of(line)
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args([*command_of(words).split(), "--help"])
    assert ended.value.code == 0
    known = capsys.readouterr().out
    for option in (word for word in words if word.startswith("--")):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", known), (option, known)
    rest = words[len(command_of(words).split()) :]
    if command_of(words) in PLANNED and rest and not rest[0].startswith("-"):
        check_plan(words)


def dry(words: list[str], here: Path) -> None:
    """make says what it would do, and the netwarp commands in that are good ones."""
    # `make test ARGS=...` hands its ARGS on to every make below it
    own = {name: value for name, value in os.environ.items() if name not in ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES")}
    done = subprocess.run(["make", "-n", *words], cwd=ROOT, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    for line in done.stdout.splitlines():
        if line.startswith(".venv/bin/netwarp run"):
            check_plan(shlex.split(line)[1:])


def test_every_exception_has_its_command() -> None:
    """No reason outlives its command."""
    everything = [line for page in PAGES for block in blocks(page) if block.language == "sh" for line in block.lines]
    assert [begin for begin in NOT_RUN if not any(line.startswith(begin) for line in everything)] == []
    assert any(not not_run(line) for line in everything)
