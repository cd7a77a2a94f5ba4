"""The page of a network: whole, harmless, and its bars add up to the inference."""

from __future__ import annotations

import re

import pytest

from hilt.network.latency import Latency
from hilt.report.network_page import network_page, network_section

from .views import long_view, small_view


def test_nodes_and_slices_add_up_to_the_inference() -> None:
    view = small_view()
    total = Latency.from_dict(view["latency"]).total
    assert sum(each["microseconds"] for each in view["slices"]) == pytest.approx(total, rel=0.01)
    assert sum(part for _, part in view["parts"]) == pytest.approx(total)
    of_nodes = sum(each["microseconds"] for each in view["slices"] if each["node"] is not None)
    assert sum(node["microseconds"] for node in view["nodes"]) == pytest.approx(of_nodes)


def test_a_node_has_its_facts() -> None:
    first, second = small_view()["nodes"][:2]
    assert first["where"] == "vta" and first["decibels"] == 31.5 and second["decibels"] is None
    assert first["shape"] == [1, 16, 8, 8] and first["cycles"] > 0 and "VTA takes" in first["reason"]
    assert "residual" in second["op"] and second["knobs"]


def test_the_edges_are_the_graphs() -> None:
    view = small_view()
    assert [-1, 0, "x"] in view["edges"] and [-1, 1, "x"] in view["edges"]
    assert any(edge[:2] == [0, 1] for edge in view["edges"]) and any(edge[1] == 2 for edge in view["edges"])


def test_the_page_needs_nothing_else_and_no_name_is_markup() -> None:
    page = network_page(small_view())
    assert "small<script>" not in page and "small&lt;script&gt;" in page
    assert not re.search(r"""(?:src|href)=["'](?!#)|@import|url\(|fetch\(|sourceMappingURL""", page)
    assert set(re.findall(r"https?://[^\s\"'<>]+", page)) <= {"http://www.w3.org/2000/svg"}


def test_a_narrow_column_breaks_a_name_between_its_parts() -> None:
    rows = network_section(long_view(3), static=True)
    assert '<th scope="row">features.<wbr>block_<wbr>2.<wbr>conv</th>' in rows


def test_a_static_section_has_the_table_and_no_script() -> None:
    section = network_section(long_view(12), static=True)
    assert "<script" not in section and section.count("<tr data-node=") == 12 and "1,200.0" in section
