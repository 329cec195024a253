"""Options and files of commands whose results NIPA, netdev's CI, collects."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import DoesNotBuild, SpecError
from .places import new_file

if TYPE_CHECKING:  # `netwarp.cli.kernel` has the standard library alone
    from ..selftests.nipa import Origin


def add_nipa_arguments(parser: argparse.ArgumentParser, page: str, executor: str) -> None:
    """Declare them. page: of docs/, which explains them; executor: its default."""
    nipa = parser.add_argument_group(f"a result file of NIPA, netdev's CI (docs/{page})")
    nipa.add_argument("--nipa", type=Path, metavar="FILE", help="write it there")
    nipa.add_argument("--branch", default="", metavar="NAME", help="the branch tested, of NIPA's branches.json")
    nipa.add_argument("--executor", default=executor, metavar="NAME", help=f"(default: {executor})")
    nipa.add_argument("--link", default="", metavar="URL", help="where people find what --out keeps")


@contextlib.contextmanager
def telling_nipa(args: argparse.Namespace) -> Iterator[None]:
    """Sets args.started, and writes the file of a source that does not build. Raises SpecError, DoesNotBuild."""
    args.started = datetime.now(UTC)
    if args.nipa is not None and not args.branch:
        raise SpecError("--nipa needs the branch's name, for example: --branch net-next-2026-08-20--15-00")
    if args.nipa is not None:
        new_file(args.nipa)
    try:
        yield
    except DoesNotBuild as error:
        from ..selftests.nipa import build_failure

        write_nipa(args, partial(build_failure, str(error)))
        raise


def write_nipa(args: argparse.Namespace, content: Callable[[Origin, datetime, datetime], dict[str, object]]) -> None:
    """Write the file, if it was asked for. content: makes it of its origin, the start and the end."""
    if args.nipa is None:
        return
    from ..selftests.nipa import Origin, write_result_file

    origin = Origin(args.executor, args.branch, args.link)
    write_result_file(args.nipa, content(origin, args.started, datetime.now(UTC)))
