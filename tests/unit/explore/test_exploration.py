"""Designs evaluated by the compiler and the twin: explored designs run, results are kept, the front is right."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
from hilt.explore.inference import DesignInference, LayerSchedule, infer, load_batched
from hilt.explore.page import area_statement, exploration_page
from hilt.explore.subject import Subject, load_subject
from hilt.explore.verify import DesignVerification, verify, verify_design
from hilt.network.board_run import target_of
from hilt.network.compile import compile_network
from hilt.network.latency import Latency
from hilt.network.predicted import predicted_profile
from hilt.network.search import Searcher
from hilt.schedule import WorkloadError, load_workload
from hilt.tune.problem import TuningProblem
from hilt.vta.parameters import load_parameters
from tests.unit.network_compile.graphs import Builder, residual_network

SMALL = "conv2d:n=1,ci=16,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1"
PYNQ = Design(load_parameters("pynq"))
LAYERS = Subject("small", None, ((SMALL, 2),))


def _network() -> Subject:
    builder = residual_network()
    return Subject("residual", builder.graph(builder.nodes[-1].outputs[0]))


NETWORK = _network()


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory, quick_search: None) -> tuple[Path, list[Evaluation]]:
    folder = tmp_path_factory.mktemp("designs")
    fast = Design(PYNQ.parameters, clock_hz=200_000_000)
    with ThreadPoolExecutor(1) as executor:
        return folder, explore([Task(NETWORK, PYNQ), Task(NETWORK, fast)], folder, executor)


def test_the_schedule_found_is_the_best_of_the_whole_space() -> None:
    workload = load_batched(SMALL, 1)
    found = Searcher(PYNQ.accelerator, PYNQ.memory).schedule(workload, None)
    problem = TuningProblem.of(load_workload(SMALL), PYNQ.accelerator, orders=4)
    compiled = np.flatnonzero(problem.compiles)
    programs = [program for program in problem.lowered_many(compiled) if program is not None]
    assert found.cycles <= round(1.01 * float(np.nanmin(problem.cycles_of(programs, [PYNQ.memory]))))


def test_a_layers_latency_counts_as_often_as_it_is_in_the_table() -> None:
    found = infer(LAYERS, PYNQ)
    (layer,) = found.layers
    assert layer.count == 2 and not found.whole
    assert found.latency.total == found.latency.vta == pytest.approx(2 * layer.cycles / 100)


@pytest.mark.slow
def test_a_design_is_what_the_compiler_makes_for_a_board_of_it() -> None:
    """The same layers, cycles and whole inference as `hilt compile` for the virtual board of these parameters."""
    assert NETWORK.graph is not None
    target = target_of("virtual:pynq")
    board = Design(target.accelerator.parameters, clock_hz=target.accelerator.clock_hz)
    compiled = compile_network(NETWORK.graph, target)
    wanted = predicted_profile(NETWORK.graph, compiled.manifest).latency
    found = infer(NETWORK, board)
    assert [layer.cycles for layer in found.layers] == [layer["cycles"] for layer in compiled.manifest["layers"]]
    assert found.latency == wanted and found.whole


@pytest.mark.slow
def test_batch_lanes_hold_an_image_each_or_bands_of_one() -> None:
    one = infer(NETWORK, PYNQ)
    parameters = type(PYNQ.parameters).from_mapping(PYNQ.parameters.to_mapping() | {"LOG_BATCH": 1})
    batched, banded = infer(NETWORK, Design(parameters)), infer(NETWORK, Design(parameters, bands=True))
    assert (one.images, batched.images, banded.images) == (1, 2, 1)
    assert batched.latency.vta < 2 * one.latency.vta
    assert banded.latency.vta < batched.latency.vta


@pytest.mark.slow
def test_a_network_of_the_catalogue_and_a_table_of_layers() -> None:
    found = load_subject("resnet8")
    assert found.graph is not None and found.name == "resnet8" and load_subject("resnet8").key == found.key
    builder = Builder((1, 16, 8, 8))
    other = Subject("x", builder.graph(builder.conv("x", 16)))
    assert other.key != found.key != LAYERS.key


def test_a_name_that_is_no_networks_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(WorkloadError, match=r"named 'resnet9'.* resnet18.*`hilt explore` has resnet8, .* too"):
        load_subject("resnet9")


@pytest.mark.slow
def test_kept_evaluations_are_not_repeated(evaluated: tuple[Path, list[Evaluation]]) -> None:
    folder, before = evaluated
    with ThreadPoolExecutor(1) as executor:
        executor.shutdown()  # it would refuse any work
        again = explore([Task(NETWORK, PYNQ)], folder, executor)
    assert [each.inference for each in again] == [before[0].inference]


@pytest.mark.rtl
def test_the_rtl_takes_the_cycles_that_were_predicted(evaluated: tuple[Path, list[Evaluation]]) -> None:
    for subject in (NETWORK, LAYERS):
        verified = verify_design(subject, PYNQ)
        assert verified.agrees and verified.rtl_cycles == verified.predicted_cycles
    inference = evaluated[1][0].inference
    assert verify_design(NETWORK, PYNQ).rtl_cycles == pytest.approx(inference.latency.vta * 100)


def _shown(cycles: int) -> DesignVerification:
    return DesignVerification("small", "done", 100, cycles, True)


def test_what_agreed_on_the_rtl_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = Design(PYNQ.parameters, bus_bits=128)
    slow = Design(PYNQ.parameters, clock_hz=50_000_000)
    ran: list[Design] = []

    def run(subject: Subject, design: Design) -> DesignVerification:
        ran.append(design)
        return _shown(101 if design is fast else 100)

    monkeypatch.setattr("hilt.explore.verify.verify_design", run)
    with ThreadPoolExecutor(1) as executor:
        first = verify(NETWORK, [PYNQ, slow, fast], tmp_path, executor)
        assert [shown.agrees for shown in first] == [True, True, False]
        assert ran == [PYNQ, fast, slow], "two processes compile two designs, not one"
        ran.clear()
        assert verify(NETWORK, [PYNQ, slow, fast], tmp_path, executor) == first
    assert ran == [fast], "only the design that differed runs again"


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
        latency = Latency(cycles / 100, 0.0, 0.0, 0.0, 1, "assumed")
        inference = DesignInference((LayerSchedule(SMALL, 1, {}, cycles),), images, latency)
        return Evaluation(PYNQ, inference, Area(lut, 1, 1, 1, "model"), 0.0)

    single, batch = made(353_000, 1, 9.0), made(646_000, 2, 5.0)
    assert (single.microseconds, batch.microseconds) == (3530, 6460)
    assert batch.images_a_second == pytest.approx(309.6, abs=0.1) and single.images_a_second < batch.images_a_second
    assert exploration.front([single, batch]) == [0, 1]
    assert exploration.front([made(353_000, 1, 5.0), made(646_000, 2, 5.0)]) == [0, 1], "it has the throughput"
    assert exploration.front([made(353_000, 2, 5.0), made(646_000, 2, 5.0)]) == [0]


@pytest.mark.slow
def test_a_part_that_is_too_small_takes_a_design_off_the_front(evaluated: tuple[Path, list[Evaluation]]) -> None:
    large = Evaluation(PYNQ, evaluated[1][0].inference, Area(1e6, 1, 1, 1, "model"), 0.0)
    none = Evaluation(
        PYNQ, DesignInference((), 1, Latency(0, 0, 0, 0, 0), True, "too large"), Area(1, 1, 1, 1, "model"), 0.0
    )
    assert exploration.front([large, none, evaluated[1][0]]) == [0, 2] or exploration.front([large, none]) == [0]
    assert exploration.front([large, none, evaluated[1][0]], "7z020") == [2]
    assert over(large.area, "7z020") == ["lut 1,000,000 of 53,200"]


@pytest.mark.slow
def test_the_designs_to_verify_are_along_the_front_and_then_of_the_next(
    evaluated: tuple[Path, list[Evaluation]],
) -> None:
    inference = evaluated[1][0].inference
    # Five on the first front, the faster the larger; the last is large and slow.
    sizes = [*((500 - 100 * step, 500_000_000 - 100_000_000 * step) for step in range(5)), (900, 50_000_000)]
    made = [
        Evaluation(
            Design(PYNQ.parameters, clock_hz=clock),
            replace(inference, latency=Latency(1e9 / clock, 0.0, 0.0, 0.0, 1, "assumed")),
            Area(lut, 1, 1, 1, "model"),
            0.0,
        )
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


@pytest.mark.slow
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
    page = exploration_page("small<script>", evaluated[1], ["LOG_X=1: <b>no</b>"], None, ["line"], None)
    assert "small<script>" not in page and "&lt;b&gt;no" in page
    assert "Plotly.newPlot" in page and "<link" not in page and 'src="http' not in page
    assert "(base)" not in page and '"symbol": "circle-open"' not in page


def test_the_page_marks_the_base_in_its_table_and_plots(evaluated: tuple[Path, list[Evaluation]]) -> None:
    page = exploration_page("small", evaluated[1], [], None, [], 1)
    assert page.count("(base)") == 1 and f"{evaluated[1][1].design.title} (base)" in page
    assert page.count('"symbol": "circle-open"') == 3
    assert page.count('"cliponaxis": false') == page.count('"mode": "markers"'), "no point is cut at the edge of a plot"
    assert "`hilt" not in page


@pytest.mark.rtl
def test_the_command_ends_with_the_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    sweep = tmp_path / "sweep.toml"
    sweep.write_text("[base]\nparameters = 'pynq'\n")
    monkeypatch.setattr("hilt.explore.subject.load_subject", lambda name: NETWORK)
    monkeypatch.setattr("hilt.cli.explore.executor", lambda jobs, cluster: ThreadPoolExecutor(1))
    assert hilt(["explore", "small", "--sweep", str(sweep), "--verify", "1", "--json"]) == 0
    printed = capsys.readouterr()
    said = json.loads(printed.out)
    assert said["kind"] == "exploration" and said["front"] == [0] and said["base"] == 0
    assert "RTL 1/1: " in printed.err and printed.err.rstrip().endswith("agree")
    assert said["verified"][0]["agrees"] and said["verified"][0]["design"] == 0
    assert said["designs"][0]["inference"]["latency"]["total"] == pytest.approx(
        1e3 * said["designs"][0]["milliseconds"]
    )
    assert Path(said["page"]).is_file()
    assert hilt(["explore", "small", "--sweep", "nowhere.toml"]) == 2
    assert "cannot read the sweep nowhere.toml" in capsys.readouterr().err
