"""The metrics there are, and the arithmetic a spec may do with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from ..units import QuantityError, parse_quantity
from .failover import FAILOVER_METRICS
from .flow_sharing import TOGETHER_CELL_METRICS, TOGETHER_METRICS
from .head_of_line import STREAM_WAITING_METRICS, WAITING_METRICS
from .mptcp import MPTCP_METRICS
from .physics import PHYSICS_METRICS
from .sctp import SCTP_METRICS
from .transfer import TRANSFER_METRICS

METRICS: dict[str, str] = {
    "goodput_bit_s": "bit/s",
    "throughput_bit_s": "bit/s",
    "utilization_ratio": "ratio",
    "completion_time_s": "s",
    "setup_time_s": "s",
    "payload_bytes": "bytes",
    "wire_bytes": "bytes",
    "packets": "packets",
    "data_packets": "packets",
    "ack_packets": "packets",
    "unique_data_packets": "packets",
    "retransmitted_packets": "packets",
    "retransmitted_bytes": "bytes",
    "outage_s": "s",
    "first_retransmission_other_path_s": "s",
    "first_new_data_other_path_s": "s",
    "failover_time_s": "s",
    "recovery_time_s": "s",
    "undelivered_packets": "packets",
    "first_retransmission_s": "s",
    "first_arrival_other_path_s": "s",
    "data_on_repaired_path_s": "s",
    "arrival_on_repaired_path_s": "s",
    "new_data_on_repaired_path_packets": "packets",
    "heartbeat_answered_s": "s",
    "initial_window_packets": "packets",
    "slow_start_growth_ratio": "ratio",
    "peer_window_bytes": "bytes",
    "window_full_time_s": "s",
    "response_time_s": "s",
    "hol_blocking_s": "s",
    "jain_index": "ratio",
    "gave_up_s": "s",
    "cwnd_bytes": "bytes",
    "srtt_s": "s",
    "cwnd_initial_bytes": "bytes",
    "cwnd_window_time_s": "s",
    "cwnd_growth_per_rtt_packets": "packets",
    "cwnd_at_fault_bytes": "bytes",
    "cwnd_lowest_after_fault_bytes": "bytes",
    "cwnd_window_time_other_path_s": "s",
    "cwnd_end_bytes": "bytes",
    "rtt_min_s": "s",
    "rtt_median_s": "s",
    "rtt_p95_s": "s",
    "fast_retransmitted_packets": "packets",
    "timeouts": "packets",
    "tail_loss_probes": "packets",
    "spurious_retransmitted_packets": "packets",
    "reordered_packets": "packets",
    **TRANSFER_METRICS,
    **TOGETHER_METRICS,
    **TOGETHER_CELL_METRICS,
    **FAILOVER_METRICS,
    **SCTP_METRICS,
    **MPTCP_METRICS,
    **WAITING_METRICS,
    **STREAM_WAITING_METRICS,
    **PHYSICS_METRICS,
}
"""Metric -> unit (the contract's, and what expressions are made of)."""
CELL_METRICS = frozenset({"jain_index", *TOGETHER_CELL_METRICS})
"""Metrics of the whole cell: their flow is empty."""
OF_THE_CELL = "duration_s"
OF_THE_FLOW = ("start_s", "stop_s", "rate_bit_s")
"""What else an expression may use: when the flow starts and stops, and the bottleneck of its first path."""
_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub)
_FUNCTIONS = ("min", "max")
_ONLY = "only numbers, names, + - * / **, min, max and brackets"
LONGEST_EXPRESSION = 500


def expression_problem(text: str, known: set[str], hint: Callable[[str, set[str]], str]) -> str | None:
    """What is wrong with an expression of numbers, names, + - * / **, min, max and brackets; None if nothing is.

    hint: what to add for an unknown name.
    """
    if len(text) > LONGEST_EXPRESSION or text.count("(") > 50:
        return f"longer than {LONGEST_EXPRESSION} characters or 50 brackets"
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"'{text}' is no expression"
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if (
                not isinstance(node.func, ast.Name)
                or node.func.id not in _FUNCTIONS
                or node.keywords
                or len(node.args) < 2
            ):
                return f"'{text}': {_ONLY}"
        elif isinstance(node, ast.Name):
            if node.id not in known and id(node) not in called:
                return f'unknown name "{node.id}"{hint(node.id, known)}'
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
                return f"'{text}': {_ONLY}"
        elif not isinstance(node, (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Load, *_OPERATORS)):
            return f"'{text}': {_ONLY}"
    return None


def parameter_numbers(parameters: Mapping[str, str]) -> dict[str, str]:
    """What expressions call the parameters: `setup = "1.12 s"` is `setup_s`, 1.12. What is no quantity is left out."""
    numbers: dict[str, str] = {}
    for name, text in parameters.items():
        try:
            found = parse_quantity(text)
        except QuantityError:
            continue
        word = re.sub(r"\W", "_", name)
        if found.kind == "time":
            numbers[f"{word}_s"] = f"{Decimal(found.value).scaleb(-9).normalize():f}"
        elif found.kind != "bdp":
            suffix = {"data": "bytes", "rate": "bit_s", "ratio": "ratio", "packets": "packets"}[found.kind]
            numbers[f"{word}_{suffix}"] = str(found.value)
    return numbers


def fill_in(expression: str, numbers: Mapping[str, str]) -> str:
    """The expression with known names replaced by their numbers."""
    return _IDENTIFIER.sub(lambda match: numbers.get(match.group(), match.group()), expression)
