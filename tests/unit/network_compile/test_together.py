"""Schedules chosen together: a chain takes no longer than with each layer's best schedule alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hilt.network.aliases import Aliases
from hilt.network.compile import compile_network
from hilt.network.partition import parts, place
from hilt.network.plan import Planner
from hilt.network.search import Searcher
from hilt.network.together import chosen_together
from hilt.schedule import Conv2d
from hilt.schedule.residual import Skip

from .graphs import SMALL, Builder, target


@pytest.mark.slow
@pytest.mark.parametrize("skip", [None, Skip(7)])
def test_more_schedules_than_six_are_nearly_as_fast_as_the_best_alone(skip: Skip | None) -> None:
    aim = target()
    layer = Conv2d("t", 1, 32, 16, 16, 32, (3, 3), (1, 1), (1, 1), bias=True)
    found = Searcher(aim.accelerator, aim.memory).schedules(layer, skip)
    assert 6 < len(found) <= 12
    cycles = [schedule.cycles for schedule in found]
    assert cycles == sorted(cycles) and cycles[-1] <= 1.05 * cycles[0]
    names = ("tile_h", "tile_w", "oc_nthread", "h_nthread")
    assert len({tuple(schedule.knobs[name] for name in names) for schedule in found}) == len(found)


@pytest.mark.slow
def test_the_whole_chain_decides_between_schedules_that_are_nearly_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = Builder((1, 16, 16, 16))
    first = builder.conv("x", 32, stride=2)
    graph, aim = builder.graph(builder.conv(builder.conv(builder.conv(first, 32), 32), 48, 1)), target()

    def cycles() -> int:
        return int(compile_network(graph, aim).manifest["programs"][0]["cycles"])

    whole = cycles()
    monkeypatch.setattr("hilt.network.together._NEAR", -1)
    assert whole <= cycles()


@pytest.mark.slow
def test_a_chain_of_schedules_chosen_together_is_faster() -> None:
    builder = Builder((1, 16, 16, 16))
    last = builder.conv(builder.conv(builder.conv("x", 32, stride=2), 32), 32)
    graph, aim = builder.graph(last), target(SMALL)
    searcher = Searcher(aim.accelerator, aim.memory)
    (part,) = parts(graph, place(graph, searcher, {}))
    aliases = Aliases(graph, aim.layout)
    chosen = chosen_together(part, searcher, aliases)

    def cycles(those: object) -> int:
        manifest, _ = Planner(graph, aim, searcher, [those], aliases).plan()  # type: ignore[list-item]
        return int(manifest["programs"][0]["cycles"])

    assert [each.node for each in chosen.placements] == [each.node for each in part.placements]
    assert cycles(chosen) < cycles(part)
    alone = replace(part, placements=tuple(replace(each, alternatives=()) for each in part.placements))
    kept = [each.schedule for each in chosen_together(alone, searcher, aliases).placements]
    assert kept == [each.schedule for each in part.placements]
