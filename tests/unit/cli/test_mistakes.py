"""Typing mistakes at the command line: one sentence that names the nearest word, status 2, and nothing runs."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.cli import COMMANDS, Parser, main, make_parser


def parsers() -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Every command and verb, with its words."""
    ways: list[tuple[tuple[str, ...], argparse.ArgumentParser]] = [((), make_parser())]
    while ways:
        words, parser = ways.pop()
        yield words, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                ways += [((*words, name), each) for name, each in action.choices.items()]


EVERY = list(parsers())


def said(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out) == (2, "")
    assert captured.err.count("\n") == 1, "one sentence"
    return captured.err


def test_every_parser_is_ours() -> None:
    assert all(isinstance(parser, Parser) for _, parser in EVERY)
    assert {words[0] for words, _ in EVERY if words} == {*COMMANDS}


@pytest.mark.parametrize("words", [words for words, _ in EVERY if words], ids=" ".join)
def test_swapped_letters_of_a_command_or_verb_are_found(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    *before, last = words
    wrong = last[0] + last[2] + last[1] + last[3:]
    if wrong == last or before == ["compare"]:
        return
    found = re.search(r'did you mean "(.*?)"\?', said([*before, wrong], capsys))
    assert found is not None
    near, meant = (difflib.SequenceMatcher(None, word, wrong).ratio() for word in (found[1], last))
    assert found[1] == last or near >= meant


@pytest.mark.parametrize(("words", "parser"), EVERY, ids=[" ".join(words) or "netwarp" for words, _ in EVERY])
def test_a_misspelt_option_is_found(
    words: tuple[str, ...], parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [name for action in parser._actions for name in action.option_strings if len(name) > 6]
    for option in options:
        wrong = f"{option[:-2]}{option[-1]}{option[-2]}x"
        with pytest.raises(SystemExit):
            parser.refuse_options([f"{wrong}=1", "more"])  # type: ignore[attr-defined]
        assert f'there is no option {wrong}, did you mean "--' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["rnu"], 'netwarp: there is no command "rnu", did you mean "run"? see netwarp --help\n'),
        (["help"], 'netwarp: there is no command "help", did you mean "--help"? see netwarp --help\n'),
        (["--versoin"], 'did you mean "--version"?'),
        (["run", "x", "--jbos", "2"], 'there is no option --jbos, did you mean "--jobs"? see netwarp run --help'),
        (["run", "x", "--backend", "virtal"], 'netwarp: --backend: there is no "virtal", did you mean "virtual"?'),
        (["run", "x", "--jobs", "two"], 'netwarp: --jobs: "two" is no whole number; see netwarp run --help'),
        (["run", "a", "b"], '"b" is one argument too many'),
        (["kernel"], "netwarp: which verb? There is: build, list, "),
        (["kernel", "xyz"], 'there is no verb "xyz"; there is: build, list, '),
    ],
)  # fmt: skip
def test_what_is_said(argv: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in said(argv, capsys)


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and all(re.search(rf"\b{word}\b", captured.err) for word in COMMANDS)


@given(st.text(min_size=1, max_size=30))
def test_no_word_is_a_traceback(word: str) -> None:
    if word in COMMANDS or word in ("-h", "-v") or word.startswith("--"):
        return
    with pytest.raises(SystemExit) as ended:
        main([word, "anything"])
    assert ended.value.code == 2
