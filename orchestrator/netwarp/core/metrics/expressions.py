"""Arithmetic over metrics and parameters, as a spec writes its own metrics: checks and evaluates it."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import TypeGuard

from ..errors import CaptureError
from ..numbers import given
from ..units import QuantityError, parse_quantity
from .flow_functions import ARGUMENTS, OF_A_TEXT, arguments_problem
from .packet_names import MOST_NAMES, Packets, names_problem

OF_THE_CELL = "duration_s"
OF_THE_FLOW = ("start_s", "stop_s", "rate_bit_s")
"""Names an expression may use beside metrics: when the flow starts and stops, and the bottleneck of its first path.
"""
FLOW = "flow"
"""`flow.NAME` is NAME of the flow, and never a parameter."""
LONGEST_EXPRESSION = 500
LARGEST_EXPONENT = 64
_PARAMETER = re.compile(r"\{([^{}\s]*)\}")
_OF_FLOW = re.compile(rf"(?<![\w.]){FLOW}\.(?=[A-Za-z_])", re.ASCII)
_DURATION = re.compile(rf"(?<![\w.]){OF_THE_CELL}\b", re.ASCII)
_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}
_ALLOWED = f"numbers, names, + - * / **, min, max, at, count, {', '.join(ARGUMENTS)} and brackets"


def expression_problem(
    text: str, known: set[str], parameters: Mapping[str, str], hint: Callable[[str, Iterable[str]], str]
) -> str | None:
    """The reason why a text is not a valid expression, or None. Allowed are numbers, known names, `{parameter}`,
    + - * / **, min, max, at and count of packets (packet_names.py), functions of time (flow_functions.py), and
    brackets. A name means one thing: one that could also be a parameter with its unit is refused.

    hint: text to append to the message about an unknown name.
    """
    if len(text) > LONGEST_EXPRESSION or text.count("(") > 50:
        return f"longer than {LONGEST_EXPRESSION} characters or 50 brackets"
    numbers = _quantities(parameters)
    for name in _PARAMETER.findall(text):
        if name not in parameters:
            return f'"{{{name}}}" is no parameter{hint(name, parameters)}'
        if name not in numbers:
            return f'the parameter {name} is "{parameters[name]}", which is no quantity with a unit'
    try:
        tree = ast.parse(_PARAMETER.sub(" 1 ", text).strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"'{text}' is no expression"
    with_units = {_with_unit(name, unit): name for name, (_, unit) in numbers.items()}
    nodes = list(ast.walk(tree))
    bare = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    bare |= {id(node.value) for node in nodes if _of_flow(node)}
    texts = {id(each) for node in nodes if isinstance(node, ast.Call) and _packets_of(node) for each in node.args}
    texts |= {id(call.args[0]) for call, name in map(_of_time, nodes) if call and name in OF_A_TEXT and call.args}
    for node in nodes:
        if isinstance(node, ast.Attribute) and _of_flow(node):
            if node.attr not in known:
                return f'unknown name "{FLOW}.{node.attr}"{hint(node.attr, known)}'
        elif isinstance(node, ast.Name) and id(node) not in bare:
            parameter = with_units.get(node.id)
            if parameter is not None and node.id in known:
                return f'"{node.id}" could be the flow\'s or the parameter: write {FLOW}.{node.id} or {{{parameter}}}'
            if parameter is not None:
                return f'unknown name "{node.id}": the parameter is written {{{parameter}}}'
            if node.id not in known:
                return f'unknown name "{node.id}"{hint(node.id, known)}'
        elif (names := _packets_of(node)) is not None:
            if (wrong := names_problem(*names)) is not None:
                return wrong
        elif (call := _of_time(node)[0]) is not None:
            if (wrong := arguments_problem(_of_time(call)[1], len(call.args), _first_text(call))) is not None:
                return wrong
        elif not isinstance(node, ast.Name) and not _allowed(node) and id(node) not in texts:
            return f"'{text}': only {_ALLOWED}"
    return None


def _packets_of(node: ast.AST) -> tuple[str, list[str]] | None:
    """The function and the names of packets of at("...") or count("...", ...); None: it is something else."""
    match node:
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]) if function in MOST_NAMES:
            names = [each.value for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if len(names) == len(arguments) and 1 <= len(names) <= MOST_NAMES[function]:
                return function, names
    return None


def _of_time(node: ast.AST) -> tuple[ast.Call | None, str]:
    """The call of a function of time, and its name; None: it is something else."""
    match node:
        case ast.Call(func=ast.Name(id=function), keywords=[]) if function in ARGUMENTS:
            return node, function
    return None, ""


def _first_text(node: ast.AST) -> str | None:
    """The text with which a call begins."""
    match node:
        case ast.Call(args=[ast.Constant(value=str() as text), *_]):
            return text
    return None


def parameter_units(text: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """The unit of each `{parameter}` of an expression, where it is a quantity."""
    numbers = _quantities(parameters)
    return {name: numbers[name][1] for name in _PARAMETER.findall(text) if name in numbers}


def _of_flow(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """True for `flow.NAME`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == FLOW


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


def evaluate(
    metric: str, expression: str, names: Mapping[str, float | None], packets: Packets | None = None
) -> float | None:
    """The value of an expression; None if a name in it has no value, or a packet is not there.

    packets: those of the flow (None: their captures are not at hand, and an expression that names some is refused).

    Raises CaptureError, which names the metric and the mistake: an unknown name, anything but such arithmetic, a
    division by zero, a result that is not a real number.
    """
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body, names, packets)
        if isinstance(value, complex) or not math.isfinite(value):
            raise ValueError("the result is no real number")
        return float(value)
    except _NoValue:
        return None
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        raise CaptureError(f"metric {metric}: cannot be computed: {error} (in `{expression}`)") from error


def _value(node: ast.expr, names: Mapping[str, float | None], packets: Packets | None) -> float:
    if (asked := _packets_of(node)) is not None:
        if packets is None:
            raise ValueError("it names packets, which are in the captures alone: netwarp analyze RUN_DIR")
        function, of = asked
        found = packets.at(*of) if function == "at" else packets.count(*of)
        if found is None:
            raise _NoValue
        return found
    call, of_time = _of_time(node)
    if call is not None:
        if packets is None:
            raise ValueError(f"{of_time} is of packets, which are in the captures alone: netwarp analyze RUN_DIR")
        text = _first_text(call) or ""
        numbers = [_value(operand, names, packets) for operand in (call.args[1:] if text else call.args)]
        found = packets.over_time(of_time, numbers, text)
        if found is None:
            raise _NoValue
        return found
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
            return -_value(operand, names, packets)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            first, second = _value(left, names, packets), _value(right, names, packets)
            if isinstance(op, ast.Pow) and abs(second) > LARGEST_EXPONENT:
                raise ValueError(f"exponent {given(second)} is beyond {LARGEST_EXPONENT}")
            return _BINARY[type(op)](first, second)
        case ast.Call(func=ast.Name(id=function), args=[_, _, *_] as operands, keywords=[]) if function in _FUNCTIONS:
            return _FUNCTIONS[function]([_value(operand, names, packets) for operand in operands])
    raise ValueError(f"`{ast.unparse(node)}` is not arithmetic: {_ALLOWED}")


def _quantities(parameters: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Parameter -> number in the base unit and that unit: "1.12 s" is 1.12, s. Without those that are no quantities."""
    numbers: dict[str, tuple[str, str]] = {}
    for name, text in parameters.items():
        try:
            quantity = parse_quantity(text)
        except QuantityError:
            continue
        if quantity.kind == "time":
            numbers[name] = f"{Decimal(quantity.value).scaleb(-9).normalize():f}", "s"
        elif quantity.kind != "bdp":
            unit = {"data": "bytes", "rate": "bit_s", "ratio": "ratio", "packets": "packets"}[quantity.kind]
            numbers[name] = str(quantity.value), unit
    return numbers


def fill_in(expression: str, parameters: Mapping[str, str], duration_ns: int) -> str:
    """The expression with `{parameter}` and `duration_s` replaced by their numbers (s, bytes, bit/s, packets, ratio),
    and `flow.NAME` by NAME. A parameter that is no quantity stays as it is.
    """
    numbers = _quantities({**parameters, OF_THE_CELL: f"{duration_ns} ns"})
    text = _DURATION.sub(numbers[OF_THE_CELL][0], _OF_FLOW.sub("", expression))
    return _PARAMETER.sub(lambda match: numbers.get(match[1], [match[0]])[0], text)


def _with_unit(name: str, unit: str) -> str:
    return re.sub(r"\W", "_", f"{name}_{unit}")


def unfilled(expression: str) -> list[str]:
    """The parameters that an expression still names."""
    return _PARAMETER.findall(expression)
