"""Designs evaluated by the twin: the best schedule is near the best there is, results are kept, the front is right."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.cli.main import run as hilt
from hilt.explore import area as area_module
from hilt.explore import exploration
from hilt.explore.area import COUNTS, PARTS, Area, check_error, model_error, modelled_area, over, synthesised_area
from hilt.explore.design import Design, compiling_apart
from hilt.explore.exploration import Evaluation, Task, explore, pareto_front
from hilt.explore.page import area_statement, exploration_page
from hilt.explore.schedules import LayerSchedule, NetworkSchedule, best_schedule
from hilt.explore.verify import LayerVerification, verify, verify_layer
from hilt.schedule import load_workload
from hilt.schedule.onnx_model import Layer, Network
from hilt.tune.problem import TuningProblem
from hilt.vta.parameters import load_parameters

SMALL = "conv2d:n=1,ci=16,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1"
PYNQ = Design(load_parameters("pynq"))
NETWORK = Network("small", (Layer(SMALL, nodes=["a", "b"]), Layer("", reason="too odd", nodes=["c"])), {})


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Evaluation]]:
    folder = tmp_path_factory.mktemp("designs")
    fast = Design(PYNQ.parameters, clock_hz=200_000_000)
    with ThreadPoolExecutor(1) as executor:
        return folder, explore([Task(NETWORK, PYNQ), Task(NETWORK, fast)], folder, executor)


def test_the_schedule_found_is_the_best_of_the_whole_space() -> None:
    workload = load_workload(SMALL)
    found = best_schedule(workload, PYNQ, 1)
    assert found is not None
    problem = TuningProblem.of(workload, PYNQ.accelerator, orders=1)
    compiled = np.flatnonzero(problem.compiles)
    programs = [program for program in problem.lowered_many(compiled) if program is not None]
    assert found[2] == round(float(np.nanmin(problem.cycles_of(programs, [PYNQ.memory]))))


def test_a_layers_latency_counts_as_often_as_it_is_in_the_network(evaluated: tuple[Path, list[Evaluation]]) -> None:
    first, second = evaluated[1]
    (layer,) = first.schedule.layers
    assert layer.count == 2 and first.microseconds == pytest.approx(2 * layer.cycles / 100)
    assert second.microseconds < first.microseconds


def test_kept_evaluations_are_not_repeated(evaluated: tuple[Path, list[Evaluation]]) -> None:
    folder, before = evaluated
    with ThreadPoolExecutor(1) as executor:
        executor.shutdown()  # it would refuse any work
        again = explore([Task(NETWORK, PYNQ)], folder, executor)
    assert again == before[:1]


@pytest.mark.rtl
def test_the_rtl_takes_the_cycles_that_were_predicted(evaluated: tuple[Path, list[Evaluation]]) -> None:
    verified = verify_layer(PYNQ, evaluated[1][0].schedule.layers[0])
    assert verified.agrees and verified.rtl_cycles == verified.predicted_cycles


def _shown(cycles: int) -> LayerVerification:
    return LayerVerification(SMALL, "done", 100, cycles, True)


def test_what_agreed_on_the_rtl_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = Design(PYNQ.parameters, bus_bits=128)
    layers = [LayerSchedule(SMALL, 1, index, {}, 100, 1) for index in range(2)]
    schedules = [(design, layer) for design in (PYNQ, fast) for layer in layers]
    ran: list[tuple[Design, int]] = []

    def run(design: Design, layer: LayerSchedule) -> LayerVerification:
        ran.append((design, layer.index))
        return _shown(101 if design is fast and layer.index == 1 else 100)

    monkeypatch.setattr("hilt.explore.verify.verify_layer", run)
    with ThreadPoolExecutor(1) as executor:
        first = verify(schedules, tmp_path, executor)
        assert [layer.agrees for layer in first] == [True, True, True, False]
        assert ran == [(PYNQ, 0), (fast, 0), (PYNQ, 1), (fast, 1)], "two processes compile two designs, not one"
        ran.clear()
        assert verify(schedules, tmp_path, executor) == first
    assert ran == [(fast, 1)], "only what differed runs again"


def test_designs_that_share_a_compiled_model_are_a_round_apart() -> None:
    clocks = [Design(PYNQ.parameters, clock_hz=clock) for clock in (100_000_000, 150_000_000)]
    wide = [Design(PYNQ.parameters, bus_bits=128, clock_hz=clock) for clock in (100_000_000, 150_000_000)]
    assert compiling_apart([*clocks, *wide]) == [0, 2, 1, 3], "else the second process waits for the first's compiler"


def test_the_front_is_undominated() -> None:
    assert pareto_front([(1, 9), (2, 5), (3, 6), (4, 1), (2, 5)]) == [0, 1, 3]
    assert pareto_front([]) == []
    generator = np.random.default_rng(4)
    points = generator.integers(0, 20, (60, 3))
    front = pareto_front(points.tolist())
    for place, point in enumerate(points):
        beaten = any(np.all(other <= point) and np.any(other < point) for other in points)
        assert (place in front) <= (not beaten)


def test_a_batch_has_its_whole_latency_and_does_not_push_out_the_fastest_image() -> None:
    """Two images in 6.46 ms are more a second than one in 3.53 ms, and each waits longer."""

    def made(cycles: int, images: int, lut: float) -> Evaluation:
        schedule = NetworkSchedule((LayerSchedule(SMALL, 1, 0, {}, cycles, 1),), images)
        return Evaluation(PYNQ, schedule, Area(lut, 1, 1, 1, "model"), 0.0)

    single, batch = made(353_000, 1, 9.0), made(646_000, 2, 5.0)
    assert (single.microseconds, batch.microseconds) == (3530, 6460)
    assert batch.images_a_second == pytest.approx(309.6, abs=0.1) and single.images_a_second < batch.images_a_second
    assert exploration.front([single, batch]) == [0, 1]
    assert exploration.front([made(353_000, 1, 5.0), made(646_000, 2, 5.0)]) == [0, 1], "it has the throughput"
    assert exploration.front([made(353_000, 2, 5.0), made(646_000, 2, 5.0)]) == [0]


def test_a_part_that_is_too_small_takes_a_design_off_the_front(evaluated: tuple[Path, list[Evaluation]]) -> None:
    large = Evaluation(PYNQ, evaluated[1][0].schedule, Area(1e6, 1, 1, 1, "model"), 0.0)
    none = Evaluation(PYNQ, NetworkSchedule((), 1, "too large"), Area(1, 1, 1, 1, "model"), 0.0)
    assert exploration.front([large, none, evaluated[1][0]]) == [0, 2] or exploration.front([large, none]) == [0]
    assert exploration.front([large, none, evaluated[1][0]], "7z020") == [2]
    assert over(large.area, "7z020") == ["lut 1,000,000 of 53,200"]


def test_the_designs_to_verify_are_along_the_front_and_then_of_the_next(
    evaluated: tuple[Path, list[Evaluation]],
) -> None:
    schedule = evaluated[1][0].schedule
    # Five on the first front, the faster the larger; the last is large and slow.
    sizes = [*((500 - 100 * step, 500_000_000 - 100_000_000 * step) for step in range(5)), (900, 50_000_000)]
    made = [
        Evaluation(Design(PYNQ.parameters, clock_hz=clock), schedule, Area(lut, 1, 1, 1, "model"), 0.0)
        for lut, clock in sizes
    ]
    assert exploration.front(made) == [0, 1, 2, 3, 4]
    assert exploration.spread(made, 1) == [0] and exploration.spread(made, 3) == [0, 2, 4]
    assert exploration.spread(made, 6) == [0, 1, 2, 3, 4, 5] == exploration.spread(made, 9)


def test_the_area_model_is_near_the_counts_it_was_fitted_to_and_fits_the_boards() -> None:
    assert set(model_error()) == set(COUNTS) and max(model_error().values()) < 0.1
    area = modelled_area(PYNQ)
    assert not over(area, "7z020") and area.dsp == pytest.approx(129, abs=8)
    assert set(PARTS) == {"7z020", "xczu3eg", "xczu7ev", "xczu9eg"}


def test_the_area_model_states_its_error_where_it_was_not_fitted(evaluated: tuple[Path, list[Evaluation]]) -> None:
    errors = check_error()
    assert errors["dsp"] < 0.05 and errors["bram36"] < 0.05 and errors["lut"] < 0.05 and errors["ff"] < 0.2
    assert f"ff {100 * errors['ff']:.0f} %" in area_statement(evaluated[1])


def test_synthesised_counts_are_the_netlists_and_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    numbers = {"LUT6": 5, "LUT2": 2, "FDRE": 4, "DSP48E1": 3}
    kinds = [kind for kind, number in numbers.items() for _ in range(number)]
    cells: dict[str, Any] = {str(place): {"type": kind} for place, kind in enumerate(kinds)}
    cells["bank"] = {"type": "vta_ram", "connections": {"data_i": [0] * 36, "read_index_i": [0] * 11}}
    netlist = {"modules": {"vta_top": {"cells": cells}}}
    asked = []

    def synthesise(entry: Any) -> dict[str, Any]:
        asked.append((entry.part, entry.accelerator()))
        return netlist

    monkeypatch.setattr(area_module._yosys("synthesis"), "netlist", synthesise)
    for _ in range(2):
        assert synthesised_area(PYNQ) == Area(7, 4, 3, 2, "yosys"), "2,048 words of 36 bits are two blocks"
    assert asked == [("7z020clg400", PYNQ.accelerator)]


def test_the_page_is_one_file_that_asks_for_nothing(evaluated: tuple[Path, list[Evaluation]]) -> None:
    page = exploration_page("small<script>", evaluated[1], ["LOG_X=1: <b>no</b>"], None, ["line"])
    assert "small<script>" not in page and "&lt;b&gt;no" in page
    assert "Plotly.newPlot" in page and "<link" not in page and 'src="http' not in page


@pytest.mark.rtl
def test_the_command_ends_with_the_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    sweep = tmp_path / "sweep.toml"
    sweep.write_text("[base]\nparameters = 'pynq'\n")
    monkeypatch.setattr("hilt.schedule.networks.load_network", lambda name: NETWORK)
    monkeypatch.setattr("hilt.cli.explore.executor", lambda jobs, cluster: ThreadPoolExecutor(1))
    assert hilt(["explore", "small", "--sweep", str(sweep), "--verify", "1", "--json"]) == 0
    printed = capsys.readouterr()
    said = json.loads(printed.out)
    assert said["kind"] == "exploration" and said["front"] == [0]
    assert "RTL 1/1: " in printed.err and printed.err.rstrip().endswith("agree")
    assert all(layer["agrees"] for layer in said["verified"][0]["layers"])
    assert Path(said["page"]).is_file()
    assert hilt(["explore", "small", "--sweep", "nowhere.toml"]) == 2
    assert "cannot read the sweep nowhere.toml" in capsys.readouterr().err
