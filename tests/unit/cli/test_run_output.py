"""The output of `hilt run` for an inference whose figures are known, and its lines while a board is on its way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hilt.cli import run_network as module
from hilt.cli.run_network import chain_text, print_profile, tell, telling
from hilt.measure.interfaces import BoardEvent, BoardState
from hilt.network import latency as latencies


def figures(**changed: Any) -> Any:
    layers = [
        SimpleNamespace(
            name="conv_1",
            op="conv2d",
            cycles=1_234_567.0,
            microseconds=12_345.67,
            utilisation=0.876,
            macs=9,
            bound_share=0.913,
            schedule="h=7",
        ),
        SimpleNamespace(
            name="pool",
            op="max_pool",
            cycles=10.4,
            microseconds=0.1,
            utilisation=0.5,
            macs=0,
            bound_share=0.25,
            schedule="",
        ),
    ]
    steps = [SimpleNamespace(name="pack x", kind="pack", microseconds=1_500.04)]
    latency = SimpleNamespace(crossings=30.0, processor=1_470.0, assumed="", starts=0, start=22.0)
    facts = {
        "layers": layers,
        "steps": steps,
        "latency": latency,
        "vta": 110.0,
        "utilisation": 0.5,
        "alone": 100.0,
        "residuals": 5.0,
        "between": 11.0,
        "to_dict": lambda: {"vta": 110.0},
    }
    return SimpleNamespace(**{**facts, **changed})


def lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """Return the printed lines as words."""
    return [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_a_profile_has_vtas_layers_and_the_processors_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    print_profile(figures())
    found = lines(capsys)
    assert ["conv_1", "conv2d", "1,234,567", "12,345.7", "87.6%", "91.3", "h=7"] in found
    assert ["pool", "max_pool", "10", "0.1", "-", "25.0"] in found, "without products it has no use of them"
    assert ["all", "110.0", "50.0%"] in found
    assert ["pack", "x", "pack", "1,500.0"] in found and ["all", "1,500.0"] in found
    assert not any("VTA" in line and "starts" in line for line in found)


def test_a_profile_says_what_is_assumed_and_what_starts_cost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    latency = SimpleNamespace(crossings=0.0, processor=0.0, assumed="a Cortex-A9's", starts=2, start=22.0)
    print_profile(figures(latency=latency))
    told = " ".join(word for line in lines(capsys) for word in line)
    assert "the processor's times: a Cortex-A9's" in told and "VTA 110.0 µs in 2 starts;" in told


@pytest.mark.parametrize(("starts", "words"), [(1, "1 start"), (2, "2 starts")])
def test_the_time_of_vta_is_held_against_its_layers_one_by_one(starts: int, words: str) -> None:
    latency = SimpleNamespace(starts=starts, start=22.0)
    assert chain_text(figures(latency=latency)) == (
        f"VTA 110.0 µs in {words}; its layers one by one 100.0 µs by the twin (+10.0%); of these the skip connections "
        "take 5.0 µs (5.00%); starts take 22.0 µs and the time between them 11.0 µs (30.00% of VTA's time)"
    )


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(latencies, "latency_text", lambda latency: "3 ms")
    monkeypatch.setattr(latencies, "runs_text", lambda latency: "2 inferences")

    def made(engines: dict[str, str], verified: Any = None) -> Any:
        answer = SimpleNamespace(engine="native", engines=engines)
        return module._Shown("net", "desk", figures(), answer, verified)  # type: ignore[arg-type]

    return made


@pytest.mark.parametrize(
    ("engines", "end"),
    [
        ({}, ""),
        ({"a": "native"}, ""),
        ({"a": "numpy: no library"}, ""),  # all of them: the engine itself says so
        ({"a": "native", "b": "numpy: no kernel", "c": "numpy: too large"}, "; 2 of 3 steps numpy: no kernel (b)"),
    ],
)
def test_the_steps_that_numpy_computes_are_counted(
    shown: Any, capsys: pytest.CaptureFixture[str], engines: dict[str, str], end: str
) -> None:
    shown(engines).print(False)
    assert capsys.readouterr().out.splitlines() == [
        "net on desk: 3 ms",
        f"the processor's steps: native{end}",
        "2 inferences",
    ]


def test_a_verified_run_says_so_before_its_latency(shown: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown({}, SimpleNamespace(text="all 12 tensors")).print(False)
    assert capsys.readouterr().out.splitlines()[:2] == ["verified: all 12 tensors", "net on desk: 3 ms"]


def test_the_facts_for_json_hold_the_verification_only_if_there_was_one(
    shown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "asdict", lambda verified: {"tensors": 12})
    plain = {"network": "net", "board": "desk", "profile": {"vta": 110.0}, "engine": "native", "engines": {"a": "n"}}
    assert shown({"a": "n"}).to_dict() == plain
    assert shown({"a": "n"}, SimpleNamespace()).to_dict() == {**plain, "verified": {"tensors": 12}}


@pytest.mark.parametrize(
    ("state", "detail", "is_told"),
    [
        (BoardState.LOST, "no power", True),
        (BoardState.RECOVERING, "reboot", True),
        (BoardState.RECOVERING, "", False),
        (BoardState.CONNECTING, "waiting: in use by ada", True),
        (BoardState.CONNECTING, "over SSH", False),
        (BoardState.READY, "programmed", False),
    ],
)
def test_only_faults_and_waits_are_told(
    capsys: pytest.CaptureFixture[str], state: BoardState, detail: str, is_told: bool
) -> None:
    begun: list[str] = []
    event = BoardEvent("desk", state, detail, 0.0)
    for listener in (tell, telling(SimpleNamespace(begin=begun.append))):  # type: ignore[arg-type]
        listener(event)
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.split() == (f"desk: {state}: {detail}".split() if is_told else [])
    assert begun == ([f"connecting to desk: {detail}"] if state is BoardState.CONNECTING else [])


def test_a_connection_without_a_detail_is_a_phase_of_its_own() -> None:
    begun: list[str] = []
    telling(SimpleNamespace(begin=begun.append))(BoardEvent("desk", BoardState.CONNECTING, "", 0.0))  # type: ignore[arg-type]
    assert begun == ["connecting to desk"]


def test_what_is_waited_for_stays_the_phase_while_it_is_tried_again() -> None:
    begun: list[str] = []
    listen = telling(SimpleNamespace(begin=begun.append))  # type: ignore[arg-type]
    for detail in ("preparing its bitstream", "", "waiting: in use by ada", "", "", "waiting: in use by bob", ""):
        listen(BoardEvent("desk", BoardState.CONNECTING, detail, 0.0))
    details = [words.removeprefix("connecting to desk") for words in begun]
    assert details == [": preparing its bitstream", "", ": waiting: in use by ada", ": waiting: in use by bob"]
