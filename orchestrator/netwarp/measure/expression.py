"""The spec's own metrics: arithmetic over numbers with names, and nothing else."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping

from ..core.errors import CaptureError
from ..core.numbers import given

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}
LARGEST_EXPONENT = 64


class _NoValue(Exception):
    """A name is known and has no value in this cell (no fault, nothing arrived)."""


def evaluate(metric: str, expression: str, names: Mapping[str, float | None]) -> float | None:
    """The value of an expression of numbers, names, + - * / **, unary minus, min, max and brackets.

    None where a name used has no value. Raises CaptureError, naming the metric and what is wrong with it: an unknown
    name, anything but such arithmetic, a division by zero, a result that is no real number.
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
            found = names[name]
            if found is None:
                raise _NoValue
            return float(found)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            one, other = _value(left, names), _value(right, names)
            if isinstance(op, ast.Pow) and abs(other) > LARGEST_EXPONENT:
                raise ValueError(f"exponent {given(other)} is beyond {LARGEST_EXPONENT}")
            return _BINARY[type(op)](one, other)
        case ast.Call(func=ast.Name(id=function), args=[_, _, *_] as operands, keywords=[]) if function in _FUNCTIONS:
            return _FUNCTIONS[function]([_value(operand, names) for operand in operands])
    raise ValueError(f"`{ast.unparse(node)}` is not arithmetic: numbers, names, + - * / **, min, max, brackets")
