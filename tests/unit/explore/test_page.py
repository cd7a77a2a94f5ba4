"""The page of an exploration, its front and a design's surroundings, of designs whose figures are known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt.explore.area import PARTS, Area, modelled_area, over
from hilt.explore.design import Design, compiling_apart
from hilt.explore.exploration import Evaluation, front, spread
from hilt.explore.inference import DesignInference
from hilt.explore.page import area_statement, exploration_page, summary
from hilt.network.core_speed import CORTEX_A9, CORTEX_A53
from hilt.network.latency import Latency
from hilt.vta.parameters import VTAParameters, load_parameters

PYNQ = load_parameters("pynq")
FAST, SMALL, POOR, LARGE, NONE = range(5)


def evaluation(name: str, vta: float, area: tuple[float, float, float, float], **changes: Any) -> Evaluation:
    """Return a design of these VTA microseconds; half as many again are the processor's."""
    latency = Latency(vta, vta / 8, vta / 8, vta / 4, 3)
    inference = DesignInference((), 1, latency, **changes)
    return Evaluation(Design(PYNQ, name=name), inference, Area(*area, "model"), 12.5)


DESIGNS = [
    evaluation("fast", 1000.0, (50_000, 60_000, 200, 130.5)),
    evaluation("small", 4000.0, (20_000, 25_000, 64, 90)),
    evaluation("poor", 4500.0, (21_000, 25_000, 64, 90)),
    evaluation("large", 800.0, (60_000, 70_000, 230, 150)),
    evaluation("none", 0.0, (1_000, 1_000, 8, 4), reason="conv1 has no schedule"),
]


def test_a_page_is_as_it_was(snapshot: SnapshotAssertion) -> None:
    page = exploration_page("net", DESIGNS, ["LOG_X=1: too small"], "7z020", ["fast: 1,000 cycles on the RTL"], SMALL)
    words = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    lines = (
        " ".join(re.sub(r"<[^>]*>", " ", line).split()) for line in re.sub("</(tr|p|h2|li)>", "\n", words).split("\n")
    )
    calls = re.findall(r"Plotly\.newPlot\((\"front-.*?)\);</script>", page)
    traces = [json.JSONDecoder().raw_decode(call.partition(", ")[2])[0] for call in calls]
    plots = [f"{trace['name']}: {trace['x']} {trace['y']} {trace['marker']}" for plot in traces for trace in plot]
    hovers = [trace["text"] for trace in traces[0]]
    assert "\n".join([*filter(None, lines), *plots, *map(str, hovers)]) == snapshot


def test_the_front_is_of_designs_that_no_other_beats_everywhere() -> None:
    assert front(DESIGNS) == [LARGE, FAST, SMALL]
    assert front(DESIGNS, "7z020") == [FAST, SMALL]
    assert spread(DESIGNS, 1) == [LARGE]
    assert spread(DESIGNS, 2) == [LARGE, SMALL], "the ends of the front"
    assert spread(DESIGNS, 9) == [LARGE, FAST, SMALL, POOR], "then the front of those that are left"
    assert spread(DESIGNS, 9, "7z020") == [FAST, SMALL, POOR]


def test_a_part_has_too_little_of_what_a_design_exceeds() -> None:
    whole = Area(*map(float, PARTS["7z020"]), "model")
    assert over(whole, "7z020") == []
    assert over(replace(whole, dsp=221.0, lut=60_000.0), "7z020") == ["lut 60,000 of 53,200", "dsp 221 of 220"]


def test_the_summary_counts_designs_without_a_schedule() -> None:
    assert summary("net", DESIGNS[:3], [0, 1]).startswith("3 designs for net, 2 on the Pareto front of latency")
    assert not summary("net", DESIGNS[:3], [0]).endswith("for a layer.")
    assert summary("net", DESIGNS, [0]).endswith("BRAM, 1 without a schedule for a layer.")


def test_the_statement_says_how_latency_and_area_were_made() -> None:
    by_yosys = [replace(DESIGNS[0], area=replace(DESIGNS[0].area, method="yosys"))]
    assert area_statement(by_yosys).endswith("the processor assumed. Area: Yosys, 7 series.")
    part = [replace(DESIGNS[0], inference=replace(DESIGNS[0].inference, whole=False))]
    assert area_statement(part).startswith("Latency: VTA's part alone")
    assert re.search(
        r"Area: a model fitted to \d+ Yosys syntheses of the RTL; its largest errors there: lut \d+ %",
        area_statement(part),
    )


def test_figures_of_a_design_come_back_from_their_file() -> None:
    for each in DESIGNS:
        assert Evaluation.from_dict(json.loads(json.dumps(each.to_dict()))) == each
    assert (DESIGNS[NONE].microseconds, DESIGNS[NONE].images_a_second) == (float("inf"), 0.0)
    assert DESIGNS[FAST].microseconds == 1500.0
    several = replace(DESIGNS[FAST], inference=replace(DESIGNS[FAST].inference, images=4))
    assert several.images_a_second == 4 * DESIGNS[FAST].images_a_second > 0


def test_a_design_has_the_core_and_memory_of_its_family() -> None:
    zynq, large = Design(PYNQ), Design(PYNQ, bus_bits=128)
    assert (zynq.core, large.core) == (CORTEX_A9, CORTEX_A53)
    assert (
        Design(PYNQ, clock_hz=200_000_000).core is CORTEX_A9 and Design(PYNQ, clock_hz=200_000_001).core is CORTEX_A53
    )
    assert Design(PYNQ, processor="cortex-a53").core is CORTEX_A53
    read, write, slowdown = np.exp(zynq.coordinates)
    assert (read, write, slowdown) == pytest.approx((32.0, 16.0, 1.0)), "320 and 160 ns at 100 MHz"
    read, write, slowdown = np.exp(replace(large, clock_hz=300_000_000).coordinates)
    assert (read, write) == pytest.approx((100.0, 50.0)) and slowdown == 1.0
    quick = np.exp(Design(PYNQ, read_ns=50.0, write_ns=5.0, memory_gb_s=0.4).coordinates)
    assert quick == pytest.approx((5.0, 2.0, 2.0)), "8 bytes a cycle at 100 MHz are 0.8 GB/s; two cycles at least"
    wide = Design(PYNQ, bus_bits=128, read_ports=4, clock_hz=333_000_000)
    most = wide.accelerator.bytes_per_cycle * 0.333 / 16.8
    assert np.exp(wide.coordinates)[2] == pytest.approx(most), "as much as an UltraScale+'s DDR4 moves"
    assert zynq.title == f"{PYNQ.name} {zynq.accelerator.bus} 100 MHz" and Design(PYNQ, name="own").title == "own"


def test_designs_of_one_model_are_compiled_apart() -> None:
    other = VTAParameters.from_name("1x16_i8w8a32_15_14_18_17")
    designs = [
        Design(PYNQ),
        Design(PYNQ, clock_hz=150_000_000),
        Design(other),
        Design(PYNQ, read_ns=9.0),
        Design(other),
    ]
    assert compiling_apart(designs) == [0, 2, 1, 4, 3]


@pytest.mark.parametrize("name", ["pynq", "pynq_batched", "zcu102", "block32"])
def test_the_models_area_is_as_it_was(name: str, snapshot: SnapshotAssertion) -> None:
    lines = []
    for bus_bits in (64, 128):
        area = modelled_area(Design(load_parameters(name), bus_bits=bus_bits))
        lines.append(f"bus {bus_bits}: {area.lut:.4g} {area.ff:.4g} {area.dsp:.4g} {area.bram36:.4g} {area.method}")
    assert "\n".join(lines) == snapshot
