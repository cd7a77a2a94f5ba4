"""Faults of a virtual board: which trial meets which, once or again, and what each does to model, clock and disk."""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.virtual.chaos import KINDS
from hilt_board.protocol import Measured
from hilt_runtime.registers import Register
from hilt_virtual_board.chaos_clock import clock_offset, follow_clock

SETTINGS: dict[str, Any] = {"rate": 1.0, "seed": 3, "kinds": ["hang", "freeze"], "again": False, "boot_seconds": 7.5}
DAY = 86400.0


@pytest.fixture(scope="module")
def chaos() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pynq", ModuleType("pynq"))
        yield importlib.import_module("hilt_virtual_board.chaos")
        del sys.modules["hilt_virtual_board.chaos"]
        for name in ("worker", "execution", "memory", "driver"):
            del sys.modules[f"hilt_board.{name}"]


@pytest.fixture
def plan(chaos: ModuleType, tmp_path: Path) -> Any:
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS))
    return chaos.Plan(tmp_path)


@pytest.fixture
def model(chaos: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model whose registers hold their own offsets, and whose step returns how far it went."""

    class Model:
        def read_register(self, offset: int) -> int:
            return offset

        def step(self, cycles: int) -> tuple[str, int]:
            return "stepped", cycles

    made = Model()
    device = SimpleNamespace(active_device=SimpleNamespace(_model=made))
    monkeypatch.setattr(chaos.pynq, "Device", device, raising=False)
    return made


@pytest.fixture
def signals(chaos: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The signals that are sent; a wait for one's own end ends at once."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setenv("HILT_INIT_PID", "4711")
    monkeypatch.setattr(chaos.os, "kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr(chaos, "time", SimpleNamespace(sleep=lambda seconds: None))
    return sent


def test_the_board_can_do_every_kind_that_a_name_may_ask_for(chaos: ModuleType) -> None:
    assert set(KINDS) == chaos.KINDS


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_a_trials_fault_depends_on_seed_and_number_and_stays_when_the_rate_rises(
    chaos: ModuleType, seed: int, number: int, rate: float, higher: float
) -> None:
    rate, higher = sorted((rate, higher))
    kinds = ["hang", "freeze", "link_drop"]
    never, kind, more, always = (
        chaos.choose({"seed": seed, "kinds": kinds, "rate": each}, str(number)) for each in (0.0, rate, higher, 1.0)
    )
    assert never is None and always in kinds
    assert kind in (None, more) and more in (None, always)


def test_faults_come_at_their_rate_and_all_kinds_alike(chaos: ModuleType) -> None:
    asked = {"seed": 1, "kinds": ["hang", "freeze"], "rate": 0.25}
    drawn = [chaos.choose(asked, str(number)) for number in range(4000)]
    assert drawn.count("hang") == pytest.approx(500, rel=0.15)
    assert drawn.count("freeze") == pytest.approx(500, rel=0.15)


def test_a_board_without_settings_strikes_nobody(chaos: ModuleType, tmp_path: Path) -> None:
    assert chaos.Plan(tmp_path).strike("run/1/0") is None
    assert not (tmp_path / "injected").exists()


def test_a_trial_is_hit_once_and_never_when_its_verdict_is_confirmed(chaos: ModuleType, plan: Any) -> None:
    assert plan.strike("run/1/1") is None
    assert plan.strike("run/1/0") == chaos.choose(SETTINGS, "1")
    assert plan.strike("run/1/0") is None
    assert plan.strike("other/1/0") == chaos.choose(SETTINGS, "1"), "another run's"
    assert chaos.Plan(plan.directory).strike("run/1/0") is None, "nor by the next worker"


def test_a_fault_that_comes_again_strikes_each_attempt(chaos: ModuleType, plan: Any) -> None:
    (plan.directory / "settings.json").write_text(json.dumps({**SETTINGS, "again": True}))
    kind = chaos.choose(SETTINGS, "1")
    assert [plan.strike(f"run/1/{attempt}") for attempt in (0, 0, 1)] == [kind] * 3


def test_what_was_injected_is_written_down_by_the_true_clock(
    chaos: ModuleType, plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plan.directory / "clock").write_text("100.0")
    monkeypatch.setattr(chaos, "time", SimpleNamespace(time=lambda: 1100.0))
    kinds = [plan.strike(f"run/{number}/0") for number in (1, 2)]
    lines = [json.loads(line) for line in (plan.directory / "injected").read_text().splitlines()]
    assert lines == [
        {"trial": f"run/{number}", "kind": kind, "at": 1000.0} for number, kind in zip((1, 2), kinds, strict=True)
    ]


def test_a_trial_that_is_not_hit_is_not_noted(plan: Any) -> None:
    (plan.directory / "settings.json").write_text(json.dumps({**SETTINGS, "rate": 0.0}))
    assert plan.strike("run/1/0") is None and not (plan.directory / "injected").exists()


@pytest.mark.parametrize(
    ("kind", "still"),
    [
        ("hang", {Register.DONE_READ, Register.CYCLES_LOW, Register.CYCLES_HIGH}),
        ("impossible_counter", {Register.CYCLES_LOW, Register.CYCLES_HIGH}),
    ],
)
def test_registers_stand_still_for_one_trial(
    chaos: ModuleType, plan: Any, model: Any, kind: str, still: set[int]
) -> None:
    with chaos._injected(kind, plan):
        zero = {offset for offset in range(4, 0x3000, 4) if model.read_register(offset) == 0}
        assert zero == still
        assert model.step(5) == ("stepped", 5)
    assert model.read_register(Register.CYCLES_LOW) == Register.CYCLES_LOW


@pytest.mark.parametrize(("kind", "file"), [("link_drop", "cut"), ("ssh_gone", "gone"), ("forged_key", "forge")])
def test_a_fault_in_the_middle_of_a_program_comes_with_its_first_step(
    chaos: ModuleType, plan: Any, model: Any, kind: str, file: str
) -> None:
    with chaos._injected(kind, plan):
        assert not (plan.directory / file).exists(), "the program has not begun"
        assert model.step(5) == ("stepped", 5)
        (plan.directory / file).unlink()
        assert model.step(6) == ("stepped", 6)
    assert not (plan.directory / file).exists(), "it comes once"
    with chaos._injected(kind, plan):
        pass
    assert model.step(7) == ("stepped", 7) and not (plan.directory / file).exists(), "nor after the trial"


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("worker_crash", ("itself", signal.SIGKILL)),
        ("daemon_crash", ("parent", signal.SIGKILL)),
        ("freeze", ("init", signal.SIGUSR2)),
        ("slow_reboot", ("init", signal.SIGUSR1)),
    ],
)
def test_a_fault_of_a_process_is_a_signal_to_it(
    chaos: ModuleType, plan: Any, model: Any, signals: list[tuple[int, int]], kind: str, sent: tuple[str, int]
) -> None:
    processes = {"itself": os.getpid(), "parent": os.getppid(), "init": 4711}
    with chaos._injected(kind, plan):
        assert not signals
        model.step(1)
    assert signals == [(processes[sent[0]], sent[1])]
    slow = plan.directory / "slow"
    assert (slow.read_text() if slow.exists() else None) == ("7.5" if kind == "slow_reboot" else None)


def test_the_clock_jumps_a_day_and_back(
    chaos: ModuleType, plan: Any, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert clock_offset(plan.directory) == 0.0
    offsets = []
    for _ in range(3):
        with chaos._injected("clock_jump", plan):
            model.step(1)
        offsets.append(clock_offset(plan.directory))
    assert offsets == [DAY, -DAY, DAY]
    clock = SimpleNamespace(time=lambda: 5.0)
    monkeypatch.setattr("hilt_virtual_board.chaos_clock.time", clock)
    follow_clock()
    assert clock.time() == 5.0, "a board without chaos"
    monkeypatch.setenv("HILT_CHAOS", str(plan.directory))
    follow_clock()
    assert clock.time() == 5.0 + DAY


def test_one_bit_of_the_first_output_that_is_compared_is_flipped(
    chaos: ModuleType, plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos.execution, "read_back", lambda output: None)
    placed = SimpleNamespace(output=np.zeros(5, np.uint8), expected=np.zeros(5, np.uint8), item=np.dtype("<i1"))
    placed.compare = lambda: chaos.execution.Placed.compare(placed)
    right = chaos.execution.Placed.compare
    with chaos._injected("wrong_output", plan):
        wrong = placed.compare()
        assert (wrong.mismatched, wrong.first, wrong.largest_error) == (1, 2, 1)
        placed.output[:] = 0
        assert placed.compare().mismatched == 0
    with chaos._injected("wrong_output", plan):
        pass
    assert chaos.execution.Placed.compare is right


class Worker:
    """A worker with successful trials; it records writes to its memory."""

    def __init__(self, chaos: ModuleType, plan: Any, kind: str) -> None:
        (plan.directory / "settings.json").write_text(json.dumps({**SETTINGS, "kinds": [kind]}))
        self.given_back = 0
        self._plan = plan
        self._memory = SimpleNamespace(give_back=self._give_back)
        self._chaos = chaos

    def _give_back(self) -> None:
        self.given_back += 1

    def measure(self, monkeypatch: pytest.MonkeyPatch, key: str) -> Any:
        chaos = self._chaos
        monkeypatch.setattr(chaos.Worker, "_measure", lambda worker, message: Measured(key, "ok", reason="fine"))
        worker = chaos.ChaosWorker.__new__(chaos.ChaosWorker)
        worker._plan, worker._memory = self._plan, self._memory
        return worker._measure(SimpleNamespace(trial=SimpleNamespace(key=key)))


def test_escape_sequences_come_before_the_reason_of_a_trial_that_is_hit(
    chaos: ModuleType, plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(chaos, plan, "escape_sequences")
    hit, well = (worker.measure(monkeypatch, f"run/1/{attempt}") for attempt in (0, 1))
    assert hit.reason.endswith("fine") and hit.reason.startswith("\x1b")
    assert (well.key, well.reason) == ("run/1/1", "fine")
    assert worker.given_back == 0


def test_a_leak_takes_all_memory_to_the_last_page(
    chaos: ModuleType, plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 5 * (1 << 12) + 100
    taken: list[int] = []

    def allocate(shape: tuple[int], dtype: str, cacheable: bool) -> str:
        if sum(taken) + shape[0] * np.dtype(dtype).itemsize > left:
            raise MemoryError
        taken.append(shape[0])
        return "buffer"

    monkeypatch.setattr(chaos.pynq, "allocate", allocate, raising=False)
    monkeypatch.setattr(chaos, "_LEAK", [])
    worker = Worker(chaos, plan, "out_of_memory")
    assert worker.measure(monkeypatch, "run/1/0").outcome == "ok"
    assert worker.given_back == 1
    assert taken == [4 << 12, 1 << 12] and len(chaos._LEAK) == 2


def test_a_full_disk_has_room_again_after_a_while(
    chaos: ModuleType, plan: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    journal.write_bytes(b"x" * 100)
    limits: list[tuple[int, ...]] = []

    def prlimit(pid: int, which: int, limit: tuple[int, int] | None = None) -> tuple[int, int]:
        assert (pid, which) == (os.getppid(), resource.RLIMIT_FSIZE)
        limits.extend([limit] if limit else [])
        return (77, 900)

    timers: list[Any] = []

    class Timer:
        def __init__(self, seconds: float, function: Any) -> None:
            self.function, self.daemon, self.started = function, False, False
            timers.append(self)

        def start(self) -> None:
            self.started = True

    monkeypatch.setattr(chaos, "open_home", lambda: SimpleNamespace(journal=journal))
    monkeypatch.setattr(chaos, "resource", SimpleNamespace(prlimit=prlimit, RLIMIT_FSIZE=resource.RLIMIT_FSIZE))
    monkeypatch.setattr(chaos, "threading", SimpleNamespace(Timer=Timer))
    assert Worker(chaos, plan, "full_disk").measure(monkeypatch, "run/1/0").outcome == "ok"
    assert limits == [(100, 900)]
    (timer,) = timers
    assert timer.started and timer.daemon
    timer.function()
    assert limits == [(100, 900), (900, 900)]
