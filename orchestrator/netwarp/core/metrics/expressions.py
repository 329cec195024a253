"""Arithmetic over metrics and parameters, as a spec writes its own metrics: checks and evaluates it."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from ..errors import CaptureError
from ..numbers import given
from ..units import QuantityError, parse_quantity

OF_THE_CELL = "duration_s"
OF_THE_FLOW = ("start_s", "stop_s", "rate_bit_s")
"""Names an expression may use beside metrics and parameters: when the flow starts and stops, and the bottleneck of its
first path.
"""
LONGEST_EXPRESSION = 500
LARGEST_EXPONENT = 64
_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)
_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}
_ALLOWED = "numbers, names, + - * / **, min, max and brackets"


def expression_problem(text: str, known: set[str], hint: Callable[[str, set[str]], str]) -> str | None:
    """The reason why a text is not a valid expression, or None. Allowed are numbers, known names, + - * / **, min, max
    and brackets.

    hint: text to append to the message about an unknown name.
    """
    if len(text) > LONGEST_EXPRESSION or text.count("(") > 50:
        return f"longer than {LONGEST_EXPRESSION} characters or 50 brackets"
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"'{text}' is no expression"
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if node.id not in known and id(node) not in called:
                return f'unknown name "{node.id}"{hint(node.id, known)}'
        elif not _allowed(node):
            return f"'{text}': only {_ALLOWED}"
    return None


def _allowed(node: ast.AST) -> bool:
    """True if the node is allowed in such an expression; names are checked elsewhere."""
    match node:
        case ast.Call(func=ast.Name(id=function), args=[_, _, *_], keywords=[]):
            return function in _FUNCTIONS
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(node, ast.Expression | ast.BinOp | ast.UnaryOp | ast.Load | ast.USub) or type(node) in _BINARY


class _NoValue(Exception):
    """A name is known but has no value in this cell (no fault, nothing arrived)."""


def evaluate(metric: str, expression: str, names: Mapping[str, float | None]) -> float | None:
    """The value of an expression; None if a name in it has no value.

    Raises CaptureError, which names the metric and the mistake: an unknown name, anything but such arithmetic, a
    division by zero, a result that is not a real number.
    """
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body, names)
        if isinstance(value, complex) or not math.isfinite(value):
            raise ValueError("the result is no real number")
        return float(value)
    except _NoValue:
        return None
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        raise CaptureError(f"metric {metric}: cannot be computed: {error} (in `{expression}`)") from error


def _value(node: ast.expr, names: Mapping[str, float | None]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)  # a power of whole numbers would have millions of digits
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"unknown name `{name}`; known are {', '.join(sorted(names))}")
            value = names[name]
            if value is None:
                raise _NoValue
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            first, second = _value(left, names), _value(right, names)
            if isinstance(op, ast.Pow) and abs(second) > LARGEST_EXPONENT:
                raise ValueError(f"exponent {given(second)} is beyond {LARGEST_EXPONENT}")
            return _BINARY[type(op)](first, second)
        case ast.Call(func=ast.Name(id=function), args=[_, _, *_] as operands, keywords=[]) if function in _FUNCTIONS:
            return _FUNCTIONS[function]([_value(operand, names) for operand in operands])
    raise ValueError(f"`{ast.unparse(node)}` is not arithmetic: {_ALLOWED}")


def parameter_numbers(parameters: Mapping[str, str]) -> dict[str, str]:
    """Names and values of the parameters for expressions: `setup = "1.12 s"` becomes `setup_s`, 1.12. Parameters that
    are not quantities are left out.
    """
    numbers: dict[str, str] = {}
    for name, text in parameters.items():
        try:
            quantity = parse_quantity(text)
        except QuantityError:
            continue
        word = re.sub(r"\W", "_", name)
        if quantity.kind == "time":
            numbers[f"{word}_s"] = f"{Decimal(quantity.value).scaleb(-9).normalize():f}"
        elif quantity.kind != "bdp":
            suffix = {"data": "bytes", "rate": "bit_s", "ratio": "ratio", "packets": "packets"}[quantity.kind]
            numbers[f"{word}_{suffix}"] = str(quantity.value)
    return numbers


def fill_in(expression: str, numbers: Mapping[str, str]) -> str:
    """The expression with known names replaced by their numbers."""
    return _IDENTIFIER.sub(lambda match: numbers.get(match.group(), match.group()), expression)
