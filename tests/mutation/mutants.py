"""Small changes of a source file, each of which some test should notice."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from itertools import islice

from tests.mutation.without_effect import time_bounds, without_effect

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """One change of a source: its line, a word for it, and its place in the tree."""

    line: int
    change: str
    node: int
    """The number of the changed node in the walk of the tree."""
    number: int
    """The number of the change among those of the node."""
    bounds_time: bool = False
    """It only changes how long a wait may take (tests.mutation.without_effect)."""

    def source(self, original: str) -> str:
        """Return the changed source."""
        tree = ast.parse(original)
        node = next(islice(ast.walk(tree), self.node, None))
        _, _, apply = list(_changes_of(node))[self.number]
        apply()
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module: comparisons, operators, constants, conditions and statements, one at a time."""
    tree = ast.parse(source)
    skipped, bounds = without_effect(tree), time_bounds(tree)
    for position, node in enumerate(ast.walk(tree)):
        if node in skipped:
            continue
        for number, (line, name, _) in enumerate(_changes_of(node, skipped)):
            yield Mutant(line, name, position, number, node in bounds)


def _changes_of(node: ast.AST, skipped: Container[ast.AST] = ()) -> Iterator[tuple[int, str, Callable[[], object]]]:
    """Yield the line, the name and the function of each change of a node; no `skipped` statement is dropped."""
    line: int = getattr(node, "lineno", 1)
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            other = _COMPARISONS[type(operator)]
            name = f"{type(operator).__name__} -> {other.__name__}"
            yield line, name, lambda i=index, o=other: node.ops.__setitem__(i, o())
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        other = _OPERATORS[type(node.op)]
        yield line, f"{type(node.op).__name__} -> {other.__name__}", lambda: setattr(node, "op", other())
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield line, f"{type(node.op).__name__} -> {other.__name__}", lambda: setattr(node, "op", other())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield line, "not -> ", lambda: _twice_not(node)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield line, f"{node.value} -> {node.value + 1}", lambda: setattr(node, "value", node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield line, f"{node.value} -> {not node.value}", lambda: setattr(node, "value", not node.value)
    elif isinstance(node, ast.If | ast.While):
        yield line, "condition -> False", lambda: setattr(node, "test", ast.Constant(value=False))
    bodies = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    for body in (body for body in bodies if isinstance(body, list)):
        for index, statement in enumerate(body):
            if _is_effect(statement) and statement not in skipped:
                text = ast.unparse(statement).splitlines()[0][:50]
                yield statement.lineno, f"without {text}", lambda b=body, i=index: b.__setitem__(i, ast.Pass())


def _twice_not(node: ast.UnaryOp) -> None:
    """Turn `not x` into `not not x`, which is x as a truth value."""
    node.operand = ast.UnaryOp(op=ast.Not(), operand=node.operand)


def _is_effect(statement: ast.stmt) -> bool:
    """Return whether a statement is a call or an assignment whose loss should show."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call | ast.Await)
    return isinstance(statement, ast.AugAssign | ast.Raise)
