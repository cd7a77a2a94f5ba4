"""`hilt_runtime` alone on boards whose caches nobody keeps coherent: every flush and every invalidate is needed.

The processor has a view of its own of each buffer. Behind a plain port VTA works on the memory: what the processor
wrote is lost until `flush`, and what it reads is old until `invalidate`. Behind a coherent port VTA works on the
processor's cache: `invalidate` alone loses what VTA wrote.
"""

from __future__ import annotations

import ast
import inspect
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hilt_runtime.placed_network
from hilt.network.compile import compile_network
from hilt.network.reference import evaluate
from hilt.simulator.build import build
from hilt.simulator.device import SimulatedDevice
from hilt_runtime import Network, read_bundle
from hilt_runtime.native.library import Engine, engine
from hilt_runtime.registers import Register

from .graphs import Builder, target, without_table

BASE, PAGE, LINE, BYTES = 0x1000_0000, 4096, 32, 1 << 20
TARGET = without_table(replace(target(), register_base=0x43C0_0000))


class View(np.ndarray[Any, np.dtype[np.uint8]]):
    """The processor's view of contiguous memory, with pynq's methods."""

    board: Board

    def __array_finalize__(self, other: Any) -> None:
        self.board = getattr(other, "board", None)  # type: ignore[assignment]

    @property
    def _place(self) -> int:
        return self.ctypes.data - self.board.cache.ctypes.data

    @property
    def physical_address(self) -> int:
        return BASE + self._place

    def flush(self) -> None:
        self.board.flush(slice(self._place, self._place + self.nbytes))

    def invalidate(self) -> None:
        self.board.invalidate(slice(self._place, self._place + self.nbytes))

    def freebuffer(self) -> None:
        pass


class Board:
    """Memory, a cache of all of it, and the golden model behind a plain or a coherent port."""

    def __init__(self, coherent: bool) -> None:
        self.coherent = coherent
        self.model = SimulatedDevice(build(TARGET.accelerator, "golden"), replace(TARGET.memory, bytes=BYTES))
        self.memory = self.model.memory
        self.memory[:] = 0xA5
        self.cache = np.full(BYTES, 0x5A, np.uint8)
        self.dirty = np.zeros(BYTES, bool)
        self._seen = self.cache.copy()
        self._free = 0
        self._lock = threading.Lock()
        """This board moves all of its memory at once: no flush beside it."""

    def _note_writes(self) -> None:
        changed = _lines(self.cache != self._seen)
        self.dirty |= changed
        self._seen[changed] = self.cache[changed]

    def flush(self, span: slice) -> None:
        span = _whole_lines(span)
        with self._lock:
            self._note_writes()
            self.memory[span] = np.where(self.dirty[span], self.cache[span], self.memory[span])
            self.dirty[span] = False

    def invalidate(self, span: slice) -> None:
        span = _whole_lines(span)
        with self._lock:
            self._note_writes()
            self.cache[span] = self._seen[span] = self.memory[span]
            self.dirty[span] = False

    def run(self) -> None:
        self._note_writes()
        if not self.coherent:
            self.model.step(1 << 40)
            return
        kept = self.memory.copy()
        self.memory[:] = np.where(self.dirty, self.cache, self.memory)
        before = self.memory.copy()
        self.model.step(1 << 40)
        written = _lines(self.memory != before)
        self.cache[written] = self._seen[written] = self.memory[written]
        self.dirty |= written
        self.memory[:] = kept

    # --- pynq ---

    def allocate(self, shape: Any, dtype: Any, cacheable: bool) -> View:
        assert cacheable and dtype is np.uint8
        place, (size,) = self._free, shape
        self._free += -(-size // PAGE) * PAGE
        view = self.cache[place : place + size].view(View)
        view.board = self
        return view

    def read(self, offset: int) -> int:
        return 0 if offset == Register.IDENTITY else self.model.read_register(offset)

    def write(self, offset: int, value: int) -> None:
        self.model.write_register(offset, value)
        if offset == Register.STORE_CONTROL:
            with self._lock:
                self.run()


def _whole_lines(span: slice) -> slice:
    return slice(span.start // LINE * LINE, -(-span.stop // LINE) * LINE)


def _lines(changed: np.ndarray[Any, np.dtype[np.bool_]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return whole cache lines: a byte that is written again with its old value changes nothing that can be seen."""
    return changed.reshape(-1, LINE).any(axis=1).repeat(LINE)


class Case:
    """Convolutions with a transpose and a copy between them: programs, packed and unpacked tensors.

    VTA writes one of the joined tensors, then the processor the other: of 9 x 9 pixels, so they would share a line.
    """

    def __init__(self) -> None:
        builder = Builder((1, 16, 8, 8))
        first = builder.conv("x", 16)
        moved = builder.add_node("moved", "transpose", [first], (1, 16, 8, 8), {"perm": [0, 1, 3, 2]})
        padded = builder.add_node(
            "padded", "pad", [moved], (1, 16, 9, 9), {"pads": [0, 0, 1, 1, 0, 0, 0, 0], "value": 0}
        )
        by_vta = builder.conv(padded, 16)
        nothing = {"pads": [0] * 8, "value": 0}
        copied = builder.add_node("copied", "pad", [builder.conv(by_vta, 16)], (1, 16, 9, 9), nothing)
        joined = builder.add_node("joined", "concat", [by_vta, copied], (1, 32, 9, 9), {"axis": 1})
        graph = builder.graph(builder.conv(joined, 16))
        self.bundle = read_bundle(compile_network(graph, TARGET).data, "m")
        self.images = [builder.input() for _ in range(3)]
        self.expected = [evaluate(graph, {"x": image})[graph.outputs[0]] for image in self.images]


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


@pytest.fixture(params=["numpy", "native"])
def chosen(request: pytest.FixtureRequest) -> Engine:
    found = Engine(None, "numpy") if request.param == "numpy" else engine()
    if request.param == "native" and found.library is None:
        pytest.skip(found.reason)
    return found


@pytest.fixture
def boards(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Board]]:
    made = [Board(coherent) for coherent in (False, True)]
    yield made
    for board in made:
        board.model.close()


def differs(module: ModuleType, board: Board, case: Case, chosen: Engine, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run three images, then overlapped; return whether any answer is wrong, or does not come."""
    pynq = SimpleNamespace(allocate=board.allocate, MMIO=lambda base, length: board)
    monkeypatch.setitem(sys.modules, "pynq", pynq)
    try:
        monkeypatch.setattr("hilt_runtime.network.PlacedNetwork", module.PlacedNetwork)
        with Network(case.bundle, engine=chosen) as network:
            answers = [network(image) for image in case.images]
            overlapped = network(np.concatenate(case.images))
    except Exception:
        return True
    return not (
        all(np.array_equal(answer, wanted) for answer, wanted in zip(answers, case.expected, strict=True))
        and np.array_equal(overlapped, np.concatenate(case.expected))
    )


def test_a_network_is_right_behind_either_port(
    case: Case, boards: list[Board], chosen: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for board in boards:
        assert not differs(hilt_runtime.placed_network, board, case, chosen, monkeypatch)


class Without(ast.NodeTransformer):
    """Takes call number `wanted` of flush or invalidate out of a module."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.found: list[str] = []

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        named = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr
        if named in ("flush", "invalidate"):
            self.found.append(f"{node.lineno}: {ast.unparse(call)}")
            if len(self.found) - 1 == self.wanted:
                return ast.Pass()
        return node


CALLS = Without(-1)
CALLS.visit(ast.parse(inspect.getsource(hilt_runtime.placed_network)))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CALLS.found)), ids=CALLS.found)
def test_no_call_can_be_left_out(case: Case, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Without(number).visit(ast.parse(inspect.getsource(hilt_runtime.placed_network)))
    module = ModuleType("without")
    exec(compile(ast.fix_missing_locations(tree), "without", "exec"), vars(module))
    wrong = []
    for coherent in (False, True):
        for chosen in filter(lambda each: each is not None, (Engine(None, "numpy"), engine())):
            board = Board(coherent)
            wrong.append(differs(module, board, case, chosen, monkeypatch))
            board.model.close()
    assert any(wrong), f"nothing is wrong without {CALLS.found[number]}"
