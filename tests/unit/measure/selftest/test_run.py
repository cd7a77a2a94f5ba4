"""The selftest's verdicts on a board that is played: each fault is seen, named, and ends later steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.link.errors import RefusedError
from hilt.measure import describe_board
from hilt.measure.board_description import resolve
from hilt.measure.doctor import Finding
from hilt.measure.interfaces import Request
from hilt.measure.selftest import Check, MemoryFit, SelftestSettings, run
from hilt.trial import Outcome, Result

FIT = MemoryFit(read_latency=32, write_latency=16, bytes_per_cycle=7.25, error=0.013)
DESCRIPTION = describe_board("virtual:pynq")
BATCHES = ("buffer depths", "coherency", "hazard distance", "memory", "clock", "drift", "layer a")
"""The checks in the order in which they ask for programs."""
RIGHT = Result(Outcome.OK, cycles=1000, seconds={"run": 0.1})
WRONG = Result(Outcome.WRONG_ANSWER, "3 of 4 differ")

Answer = Callable[[str, int], Result]
"""The result of a check's program by its number in the check."""


class Played:
    """A measurer whose results come from a function, the last one first."""

    def __init__(self, answer: Answer, time_scale: float, **changed: Any) -> None:
        self.description = replace(DESCRIPTION, **changed)
        self.connection = SimpleNamespace(
            connected=SimpleNamespace(agent=SimpleNamespace(welcome=SimpleNamespace(time_scale=time_scale)))
        )
        self.closed = False
        self.keys: list[str] = []
        self.check = ""
        self.asked = 0
        self._answer = answer

    def measure(self, requests: Sequence[Request], report: Callable[[int, Result], None]) -> None:
        self.keys += [request.key for request in requests]
        first, self.asked = self.asked, self.asked + len(requests)
        for number, request in reversed(list(enumerate(requests))):
            report(request.ordinal, self._answer(self.check, first + number))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[dict[str, Check], Played, list[MemoryFit]]]:
    """Run the selftest on a played board; return its checks by name, the board, and the memories that were kept."""

    def played(
        answer: Answer = lambda check, number: RIGHT,
        fit: MemoryFit = FIT,
        identity: str | None = "hilt",
        time_scale: float = 1.0,
        predicted: float | None = 1010.0,
        minutes: float = 0.0,
        **changed: Any,
    ) -> tuple[dict[str, Check], Played, list[MemoryFit]]:
        board = Played(answer, time_scale, **changed)
        monkeypatch.setattr(run, "check_board", lambda target: iter([Finding("SSH", True, "answers")]))
        monkeypatch.setattr(run, "check_clocks", lambda target: iter([("clocks", True, "well")]))
        monkeypatch.setattr(run.BoardMeasurer, "open", lambda target, report: board)
        monkeypatch.setattr(run, "fit_memory", lambda accelerator, loads, stores: fit)
        monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: float(board.asked)))
        request = Request(0, "", None, None, 1.0)  # type: ignore[arg-type]
        layer = SimpleNamespace(name="a", request=request, predicted=predicted)
        monkeypatch.setattr(run, "choose_layer", lambda name, accelerator, fit: layer)
        kept: list[MemoryFit] = []
        target: Any = SimpleNamespace(manifest=SimpleNamespace(identity=identity))
        found: dict[str, Check] = {}
        batches = iter(BATCHES)
        board.check = next(batches)
        for check in run.selftest(target, SelftestSettings(minutes, ["a"]), kept.append):
            found[check.name] = check
            if check.name == board.check:
                board.check, board.asked = next(batches, ""), 0
        return found, board, kept

    return played


def rising(check: str, number: int) -> Result:
    """A board whose clock is right: a long run takes cycles and seconds in proportion, and 5 ms to begin."""
    if check != "clock":
        return RIGHT
    cycles = (100_000_000, 400_000_000)[number]
    return replace(RIGHT, cycles=cycles, seconds={"run": cycles / DESCRIPTION.clock_hz + 0.005})


def test_a_board_without_a_fault_is_well(play: Any) -> None:
    found, board, kept = play(rising)
    assert list(found) == ["SSH", "clocks", *BATCHES]
    assert [check.name for check in found.values() if not check.well] == []
    assert kept == [FIT] and board.closed
    assert len(set(board.keys)) == len(board.keys), "no program is answered from the journal"
    parameters = DESCRIPTION.accelerator.parameters
    assert found["buffer depths"].figures == {
        "input": parameters.inp_depth,
        "weight": parameters.wgt_depth,
        "micro_op": DESCRIPTION.accelerator.uop_depth,
        "accumulator": parameters.acc_depth,
    }
    assert found["buffer depths"].text.startswith("every element holds its value: input ")
    assert found["hazard distance"].figures == {"distance": 1.0}
    assert found["hazard distance"].text == "sums are right from a distance of 1 micro-op on"
    assert found["memory"].figures == {**FIT.values(), "error": 0.013}
    megabytes = 7.25 * DESCRIPTION.clock_hz / 1e6
    assert found["memory"].text == (
        "read latency 32 cycles, write latency 16 cycles, 7.25 bytes a cycle "
        f"({megabytes:,.0f} MB/s); 1.3 % off at most"
    )
    assert found["clock"].figures["off"] == pytest.approx(0.0)
    assert found["drift"].figures == {"off": 0.0, "runs": 5.0}
    assert found["layer a"].figures == pytest.approx({"cycles": 1000.0, "predicted": 1010.0, "off": 0.01})
    assert found["layer a"].text == "every element is right, 1,000 cycles, predicted 1,010 (+1.0 %)"


@pytest.mark.parametrize(
    ("check", "number", "text"),
    [
        ("buffer depths", 1, "weight: wrong_answer (3 of 4 differ)"),
        ("coherency", 5, "tensor 5: wrong_answer (3 of 4 differ)"),
        ("memory", 2, "program 2: wrong_answer (3 of 4 differ)"),
        ("clock", 1, "long run: wrong_answer (3 of 4 differ)"),
        ("drift", 4, "run 4: wrong_answer (3 of 4 differ)"),
        ("layer a", 0, "a: wrong_answer (3 of 4 differ)"),
    ],
)
def test_a_wrong_program_is_named_and_the_rest_goes_on(play: Any, check: str, number: int, text: str) -> None:
    found, board, kept = play(lambda here, place: WRONG if (here, place) == (check, number) else rising(here, place))
    assert [name for name, each in found.items() if not each.well] == [check]
    assert found[check].text == text
    assert kept == ([] if check == "memory" else [FIT]) and board.closed


@pytest.mark.parametrize(("hazards", "is_well"), [("interlock", False), ("none", True)])
def test_sums_that_are_wrong_when_close_are_a_fault_of_an_interlock_only(
    play: Any, hazards: str, is_well: bool
) -> None:
    accelerator = replace(DESCRIPTION.accelerator, hazards=hazards)
    found, _, _ = play(
        lambda check, number: WRONG if check == "hazard distance" and number < 3 else rising(check, number),
        accelerator=accelerator,
    )
    check = found["hazard distance"]
    assert check.figures == {"distance": 4.0} and check.well == is_well
    assert check.text.startswith("sums are right from a distance of 4 micro-ops on")
    assert ("the bitstream waits for hazards, but it does not" in check.text) != is_well


def test_sums_that_are_never_right_are_a_fault_of_any_design(play: Any) -> None:
    found, _, _ = play(
        lambda check, number: WRONG if check == "hazard distance" and number == 5 else rising(check, number),
        accelerator=replace(DESCRIPTION.accelerator, hazards="none"),
    )
    assert not found["hazard distance"].well and found["hazard distance"].figures == {"distance": 7.0}


@pytest.mark.parametrize(("error", "is_well"), [(0.1, True), (0.11, False)])
def test_a_memory_that_is_explained_badly_is_not_kept(play: Any, error: float, is_well: bool) -> None:
    fit = replace(FIT, error=error)
    found, _, kept = play(rising, fit=fit)
    assert found["memory"].well == is_well and kept == ([fit] if is_well else [])


def test_the_memory_behind_another_design_is_no_fault_and_is_not_kept(play: Any) -> None:
    found, _, kept = play(rising, fit=replace(FIT, error=0.5), identity=None)
    assert found["memory"].well and kept == []
    assert found["memory"].text.endswith("50.0 % off at most; no calibration: the bitstream is not hilt's own RTL")


@pytest.mark.parametrize(("share", "is_well"), [(1.019, True), (1.021, False), (0.981, True), (0.979, False)])
def test_a_clock_that_is_two_percent_off_is_a_fault(play: Any, share: float, is_well: bool) -> None:
    def answer(check: str, number: int) -> Result:
        result = rising(check, number)
        return replace(result, seconds={"run": result.seconds["run"] * share}) if check == "clock" else result

    found, _, _ = play(answer)
    seconds = 300_000_000 / DESCRIPTION.clock_hz
    assert found["clock"].well == is_well and found["clock"].figures["off"] == pytest.approx(share - 1.0)
    text = f"{seconds:.3f} s by its cycles took {seconds * share:.3f} s on the wall ({100 * (share - 1):+.2f} %)"
    assert found["clock"].text == text


def test_a_simulated_board_has_no_clock_on_the_wall(play: Any) -> None:
    found, _, _ = play(time_scale=250.0)
    assert found["clock"].well and found["clock"].text.startswith("simulated") and found["clock"].figures == {}


@pytest.mark.parametrize(("highest", "is_well"), [(1019, True), (1021, False)])
def test_runs_that_differ_by_more_than_two_percent_drift(play: Any, highest: int, is_well: bool) -> None:
    def answer(check: str, number: int) -> Result:
        return replace(RIGHT, cycles=highest) if (check, number) == ("drift", 2) else rising(check, number)

    found, _, _ = play(answer)
    assert found["drift"].well == is_well
    assert found["drift"].figures == pytest.approx({"off": highest / 1000 - 1, "runs": 5.0})
    assert found["drift"].text == f"5 runs of one program within {highest / 10 - 100:.2f} % of each other"


@pytest.mark.parametrize(("deterministic", "runs"), [(True, 5), (False, 120)])
def test_only_a_board_whose_latencies_move_is_watched_for_minutes(play: Any, deterministic: bool, runs: int) -> None:
    found, _, _ = play(rising, minutes=2.0, deterministic=deterministic)
    assert found["drift"].figures["runs"] == runs, "each takes a second of the played clock"


def test_a_board_without_a_counter_is_timed_by_the_wall(play: Any) -> None:
    found, _, _ = play(
        lambda check, number: (
            replace(rising(check, number), cycles=None, microseconds=50.0)
            if check in ("drift", "layer a")
            else rising(check, number)
        )
    )
    assert found["layer a"].figures["cycles"] == pytest.approx(50e-6 * DESCRIPTION.clock_hz)


def test_a_layer_without_a_prediction_has_its_cycles_only(play: Any) -> None:
    found, _, _ = play(rising, predicted=None)
    assert found["layer a"].well and found["layer a"].text == "every element is right, 1,000 cycles"
    assert found["layer a"].figures == {"cycles": 1000.0}


def test_a_board_that_cannot_be_reached_ends_the_selftest(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [
        Finding("SSH", False, "no route", "plug it in"),
        Finding("agent", True, "answers", "never mind"),
    ]
    monkeypatch.setattr(run, "check_board", lambda target: iter(findings))
    found = list(run.selftest(None, SelftestSettings()))  # type: ignore[arg-type]
    assert found == [Check("SSH", False, "no route; plug it in"), Check("agent", True, "answers")]


class Client:
    """An agent's client: the clocks at which it was programmed, and the errors that it raises there."""

    def __init__(self, errors: dict[float, RefusedError]) -> None:
        self.errors = errors
        self.megahertz: list[float] = []

    def program(self, digest: str, manifest: Any, *others: Any) -> None:
        self.megahertz.append(manifest.clock_hz / 1e6)
        if self.megahertz[-1] in self.errors:
            raise self.errors[self.megahertz[-1]]


def clocks(monkeypatch: pytest.MonkeyPatch, errors: dict[float, RefusedError]) -> tuple[Client, Any]:
    client = Client(errors)

    @contextmanager
    def opened(endpoint: object, words: str, deadline: object) -> Iterator[Any]:
        assert len(words) <= 200 and words.endswith("hilt boards selftest")
        yield SimpleNamespace(client=client)

    monkeypatch.setattr(run.AgentConnection, "open", opened)
    programmed: list[bytes] = []
    monkeypatch.setattr(run, "program_board", lambda client, target, bitstream, deadline: programmed.append(bitstream))
    target: Any = SimpleNamespace(
        virtual=False,
        manifest=replace(resolve("virtual:pynq").manifest, clock_hz=100_000_000, fclk_hz=None),
        description=DESCRIPTION,
        bitstream=lambda: b"bits",
        endpoint=lambda: None,
    )
    (check,) = run.check_clocks(target)
    assert programmed == [b"bits"]
    return client, check


@pytest.mark.parametrize(
    ("errors", "is_well", "end"),
    [
        ({}, True, "50 MHz well; 75 MHz well; 100 MHz well"),
        ({50.0: RefusedError("bitstream_refused", "no such clock")}, True, "75 MHz well; 100 MHz well"),
        ({75.0: RefusedError("wrong_answer", "canary")}, False, "canary (wrong_answer); 100 MHz well"),
        ({100.0: RefusedError("bitstream_refused", "no")}, False, "75 MHz well; 100 MHz: no (bitstream_refused)"),
    ],
)
def test_the_canary_runs_at_rising_clocks_up_to_the_bitstreams(
    monkeypatch: pytest.MonkeyPatch, errors: dict[float, RefusedError], is_well: bool, end: str
) -> None:
    client, (name, well, text) = clocks(monkeypatch, errors)
    assert client.megahertz == [50.0, 75.0, 100.0]
    assert (name, well) == ("canary at rising clocks", is_well) and text.endswith(end)


@pytest.mark.parametrize(
    ("virtual", "fclk", "why"), [(True, 0, "a virtual board has one clock"), (False, 1, "by a PLL of its own")]
)
def test_a_board_of_one_clock_has_no_others(virtual: bool, fclk: int, why: str) -> None:
    target: Any = SimpleNamespace(virtual=virtual, manifest=SimpleNamespace(fclk_hz=fclk, clock_hz=142_857_142))
    ((_, well, text),) = run.check_clocks(target)
    assert well and text.startswith("well at 142.857 MHz; ") and text.endswith(why)
