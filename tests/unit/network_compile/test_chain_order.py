"""Whatever the speeds of VTA's stages, no instruction of a network comes before those that it depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hilt.network import plan
from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.target import CompileTarget
from hilt.schedule.chain import Chain
from tests.unit.schedule.dependences import check_order

from .graphs import BATCHED, PYNQ, Builder, banded, residual_network, target
from .test_borders import FORMS as BORDERS
from .test_dilations import FORMS as DILATIONS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # compiles networks

TARGETS: Mapping[str, CompileTarget] = {
    "1x16": target(PYNQ),
    "4x8 in bands": replace(banded(target(BATCHED)), bands=True),
    "1x16 with a slow memory": replace(target(PYNQ), memory=replace(target(PYNQ).memory, read_latency=400)),
}


def by_channel(kernel: int) -> Graph:
    """Return depthwise layers between pointwise ones: window GEMMs read and reset at once."""
    builder = Builder((1, 3, 9, 9), kernel)
    made = builder.conv("x", 24, 4)
    for _ in range(2):
        kept = made
        made = builder.conv(builder.conv(made, 24, kernel, groups=24), 96, 1, clip=[0, 127])
        made = builder.conv(made, 24, 1, residual=kept)
    return builder.graph(made)


def residuals() -> Graph:
    builder = residual_network()
    return builder.graph(builder.nodes[-1].outputs[0])


NETWORKS: Mapping[str, Graph] = {
    "residuals": residuals(),
    **{f"by channel, {kernel} x {kernel}": by_channel(kernel) for kernel in (3, 7)},
    "with a border": BORDERS["with a residual"],
    "by channel with a border": BORDERS["by channel"],
    "dilated": DILATIONS["by two"],
}


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Chain]]:
    """Return the chains of all networks that are compiled from now on."""
    made: list[Chain] = []
    join = plan.joined_ahead

    def kept(links: Sequence[Any], *more: Any) -> Chain:
        made.append(join(links, *more))
        return made[-1]

    monkeypatch.setattr(plan, "joined_ahead", kept)
    yield made


@pytest.mark.parametrize(
    ("network", "aim"),
    [
        *((network, "1x16") for network in NETWORKS),
        ("residuals", "4x8 in bands"),
        ("by channel, 7 x 7", "4x8 in bands"),
        ("by channel, 7 x 7", "1x16 with a slow memory"),
    ],
)
def test_no_instruction_comes_before_its_operands(network: str, aim: str, chains: list[Chain]) -> None:
    compile_network(NETWORKS[network], TARGETS[aim])
    assert chains
    for chain in chains:
        check_order(chain.program, TARGETS[aim].accelerator)
