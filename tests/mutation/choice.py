"""The tests that should notice a mutant: those that run its line, nearest first, for a bounded time."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeGuard

from tests.mutation.nearest import ROOT, nearest_tests, users_of
from tests.mutation.record import Ran

_SECONDS = 30.0
"""Seconds that the chosen tests of a mutant take in all."""
_LONG = 1.0
"""A test of so many seconds comes after all of its turn and folder that take less."""


def chosen(name: str, line: int, tests: Mapping[str, Ran]) -> list[str]:
    """Return the tests that ran a line of a file: each test function once, then again with its other parameters.

    In each turn tests of the file's folders come first, of these the short ones, by distance of their file. A test that
    is longer than the rest of `_SECONDS` is left out. If no test ran the line, return in one turn the tests that ran a
    line of its file, then the tests of files that import it: the line may run at import, as the fields of a message
    do, or in another process.
    """
    folders = {part.removeprefix("hilt_") for part in Path(name).parts[1:-1]} - {"hilt"}
    near = {file: rank for rank, file in enumerate(nearest_tests(name))}
    runners = line_runners(name, line, tests)
    turns = _turns(sorted(runners, key=lambda test: (tests[test].seconds, test)))
    if not runners:
        runners = [test for test, ran in tests.items() if name in ran.lines or _file(test) in near]

    def order(test: str) -> tuple[int, int, bool, int, float]:
        elsewhere = -_folders_alike(folders, Path(_file(test)))
        return (
            turns.get(test, 0),
            elsewhere,
            tests[test].seconds > _LONG,
            near.get(_file(test), len(near)),
            tests[test].seconds,
        )

    found: list[str] = []
    left = _SECONDS
    for test in sorted(runners, key=order):
        if tests[test].seconds <= left or not found:
            left -= tests[test].seconds
            found.append(test)
    return found


def _turns(tests: Iterable[str]) -> dict[str, int]:
    """Return of each test how many of the same function with other parameters come before it."""
    counts: dict[str, int] = {}
    turns: dict[str, int] = {}
    for test in tests:
        function = test.partition("[")[0]
        turns[test] = counts.get(function, 0)
        counts[function] = turns[test] + 1
    return turns


def _folders_alike(folders: Iterable[str], test: Path) -> int:
    """Return how many folders have one of a test that is called alike: `network` and `network_compile` are."""
    return sum(any(part == each or part.startswith(f"{each}_") for part in test.parts[:-1]) for each in folders)


def line_runners(name: str, line: int, tests: Mapping[str, Ran]) -> list[str]:
    """Return the tests that ran the statement of a line; those that ran a use of it where it makes a global."""
    places = statement_lines(name, line)
    return [test for test, ran in tests.items() if any(ran.ran(file, lines) for file, lines in places.items())]


def statement_lines(name: str, line: int) -> dict[str, set[int]]:
    """Return the lines of a line's statement, and those that read the globals that it makes, by file.

    Of a line within a lambda they are the lambda's: its neighbours in a table of them run without it.
    """
    tree = _tree(name)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    around = [node for node in statements if _first_line(node) <= line <= (node.end_lineno or node.lineno)]
    innermost = min(around, key=lambda node: (node.end_lineno or node.lineno) - node.lineno)
    body = getattr(innermost, "body", None)
    end = body[0].lineno - 1 if body else innermost.end_lineno or innermost.lineno
    places = {name: set(range(innermost.lineno, max(end, line) + 1))}
    if own := _lambda_lines(innermost, line):
        return {name: own}
    if innermost in tree.body and not body:
        made = {node.id for node in ast.walk(innermost) if _is_stored(node)}
        places[name] |= _uses(name, made)
        places |= {user: lines for user in users_of(name) if (lines := _uses(user, made))}
    return places


def _lambda_lines(statement: ast.stmt, line: int) -> set[int]:
    """Return the lines of the bodies of a statement's lambdas that a line lies in; none if it lies in no lambda."""
    bodies = [node.body for node in ast.walk(statement) if isinstance(node, ast.Lambda)]
    within = [body for body in bodies if body.lineno <= line <= (body.end_lineno or body.lineno)]
    return {each for body in within for each in range(body.lineno, (body.end_lineno or body.lineno) + 1)}


def _uses(name: str, made: Iterable[str]) -> set[int]:
    """Return the lines of a file that read one of these globals."""
    return {line for each in made for line in _read_lines(name).get(each, ())}


@cache
def _read_lines(name: str) -> dict[str, set[int]]:
    """Return the lines of a file that read a name or an attribute, by its word."""
    found: dict[str, set[int]] = {}
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.id if isinstance(node, ast.Name) else node.attr, set()).add(node.lineno)
    return found


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _first_line(node: ast.stmt) -> int:
    """Return the line of a statement's first decorator, else of the statement."""
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def _file(test: str) -> str:
    return test.partition("::")[0]
