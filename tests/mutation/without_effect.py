"""The parts of a module whose change no test can notice: types, log lines, and what only checks right code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_LEVELS = ("debug", "info", "warning", "error", "exception", "critical", "log")
_OF_TYPES = ("cast", "TypeVar", "NewType", "ParamSpec")
_DATACLASS_RULES = ("frozen", "slots", "repr", "kw_only")
"""The type checker holds `frozen` and `kw_only`; no result depends on `slots` and `repr`."""
_CACHES = ("cache", "lru_cache")
_HINTS = {"zip": "strict", "astype": "copy"}
"""Calls with the option that changes no result of right code: it checks, or spares a copy."""
_GENERATORS = ("default_rng", "Random")
"""Generators of random numbers: one seed that is written down is as good as another."""
_TIME = re.compile(r"(?i)(^|_)(seconds|timeout|patience)$")
"""The ends of names of bounds of time."""


def without_effect(tree: ast.Module) -> set[ast.AST]:
    """Return the nodes of a module, with all nodes below them, that change no result of right code."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        for part in _parts(node):
            found.update(ast.walk(part))
    return found


def time_bounds(tree: ast.Module) -> set[ast.AST]:
    """Return the numbers of a module that only bound a time: those of a global, or a `timeout` that is given.

    Their global's name ends with seconds, timeout or patience. One unit more changes no result, only how long a wait
    may take.
    """
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg and _TIME.search(node.arg):
            found.update(_numbers(node.value))
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        value = getattr(statement, "value", None)
        if value is not None and all(isinstance(target, ast.Name) and _TIME.search(target.id) for target in targets):
            found.update(_numbers(value))
    return found


def _numbers(value: ast.AST) -> set[ast.AST]:
    return {node for node in ast.walk(value) if isinstance(node, ast.Constant)}


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("annotation", "returns"):
        part = getattr(node, name, None)
        if part is not None:
            yield part
    if isinstance(node, ast.ClassDef):
        yield from _of_class(node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (each for each in node.decorator_list if _name(each) in _CACHES)
        if any(_name(each) == "overload" for each in node.decorator_list):
            yield node
    elif isinstance(node, ast.If):
        if _name(node.test) == "TYPE_CHECKING" or all(map(_is_log_line, [*node.body, *node.orelse])):
            yield node
    elif isinstance(node, ast.Raise):
        if node.exc is not None and _name(node.exc) == "NotImplementedError":  # of a method that each subclass has
            yield node
    elif isinstance(node, ast.Expr):
        if _is_log_line(node):
            yield node
    elif isinstance(node, ast.Assign):
        if any(_name(target) == "__all__" for target in node.targets):
            yield node
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.BinOp) and (_name(node.left), _name(node.right)) == ("O_RDONLY", "O_CLOEXEC"):
        yield node  # O_RDONLY is 0, and os.open sets O_CLOEXEC in any case


def _of_class(node: ast.ClassDef) -> Iterator[ast.AST]:
    if any(_name(base) == "Protocol" for base in node.bases):
        yield node
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _name(decorator) == "dataclass":
            yield from (keyword for keyword in decorator.keywords if keyword.arg in _DATACLASS_RULES)


def _of_call(node: ast.Call) -> Iterator[ast.AST]:
    if _name(node) in _OF_TYPES:
        yield from node.args[:1] if _name(node) == "cast" else (node,)
    elif _name(node) in _GENERATORS:
        yield from (each for each in node.args if isinstance(each, ast.Constant))
    elif _name(node) in _HINTS:
        yield from (keyword for keyword in node.keywords if keyword.arg == _HINTS[_name(node)])
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
        yield from (each for each in ast.walk(node) if _is_minus_one(each))


def _is_minus_one(node: ast.AST) -> bool:
    """Return whether a node is -1; numpy takes any negative size of a reshape for the one that follows."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and ast.unparse(node) == "-1"


def _name(node: ast.AST) -> str:
    """Return the last word of a name, an attribute, a subscripted or a called one."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_log_line(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr):
        return False
    call = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr in _LEVELS and _name(call.func.value).strip("_").lower() in ("log", "logger", "logging")
