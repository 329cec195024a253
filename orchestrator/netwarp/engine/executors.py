"""Parses --executor: worker processes of this machine, or a dask cluster."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.errors import BackendUnavailable, SpecError


@dataclass(frozen=True, slots=True)
class Executor:
    """Worker processes of this machine, or (dask) the cluster at an address; address None: a temporary cluster on this
    machine.
    """

    dask: bool = False
    address: str | None = None


LOCAL = Executor()


def parse_executor(text: str, jobs: int | None, backend: str) -> Executor:
    """Parse local, dask, or dask:ADDRESS of a scheduler. Raises SpecError, BackendUnavailable (dask is not
    installed).
    """
    kind, colon, address = text.partition(":")
    if kind not in ("local", "dask") or (colon and (kind == "local" or not address)):
        raise SpecError(
            f"--executor {text}: wants local, dask (a cluster of its own on this machine) or dask:ADDRESS of a "
            "scheduler, e.g. dask:tls://10.0.0.1:8786"
        )
    if kind == "local":
        return LOCAL
    if backend not in ("auto", "virtual"):
        raise SpecError(
            f"--executor {text} with --backend {backend}: cells on the wall clock run one at a time on a machine that "
            "does nothing else, which no cluster promises; use --backend virtual"
        )
    if address and jobs is not None:
        raise SpecError(
            f"--executor {text} with --jobs {jobs}: the workers of that cluster say how many cells run at once"
        )
    need_distributed()
    return Executor(True, address or None)


def need_distributed() -> None:
    """Raise BackendUnavailable if dask.distributed is not installed."""
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError as error:
        raise BackendUnavailable(
            "--executor dask needs dask.distributed, which is not installed: pip install 'netwarp[cluster]'; "
            "in a checkout: .venv/bin/pip install --editable '.[cluster]'"
        ) from error
